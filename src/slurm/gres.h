/* Which device files Slurm's GPU indices stand for: SLURM_JOB_GPUS counts the devices of
 * gres.conf in the order of its lines, those that begin with NodeName last, whatever
 * NVML's order is.  Pure: no file is read
 * here.
 */
#ifndef SLURM_GRES_H
#define SLURM_GRES_H

#include <stdbool.h>
#include <stddef.h>

#include "underwatt/error.h"

enum {
    GRES_LINE_MAX = 4096, /* bytes of a line of gres.conf, with those it goes on in */
    GRES_PATH_MAX = 256,
    GRES_DEVICES_MAX = 1024,
};

/* Called with each GPU of a node: its index for Slurm, its device file. */
typedef void gres_fn(unsigned index, const char *file, void *user);

/* Read the text of a gres.conf for the node of this name.  Returns the number of its
 * GPUs, or -EINVAL with the line: where what stands there leaves open which device an
 * index is (AutoDetect, several Types, GPUs without File, MIG instances, Include) or is
 * of no known form. fn may have been called by then.
 */
int gres_read(const char *text, size_t len, const char *node, gres_fn *fn, void *user,
              uw_error *err);

/* Whether an expression of names ("n[1-4,07],login") of len bytes has this name. */
bool gres_names(const char *expression, size_t len, const char *name);

#endif
