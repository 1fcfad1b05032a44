/* Which device files Slurm's GPU indices stand for: SLURM_JOB_GPUS counts the devices of
 * gres.conf as slurmd lists them (`slurmd -G`), whatever NVML's order is: by the types of
 * slurm.conf's Gres in their order, within a type in the order of gres.conf's lines,
 * those that begin with NodeName last.  Pure: no file is read here.
 */
#ifndef SLURM_GRES_H
#define SLURM_GRES_H

#include <stdbool.h>
#include <stddef.h>

#include "underwatt/error.h"

enum {
    GRES_LINE_MAX = 4096,  /* bytes of a line of gres.conf, including its continuations */
    GRES_CONF_MAX = 65536, /* bytes of slurm.conf and gres.conf that the plugin reads */
    GRES_PATH_MAX = 256,
    GRES_DEVICES_MAX = 1024,
    GRES_TYPES_MAX = 16,
    GRES_TYPE_MAX = 64,
};

/* A node's GPUs by slurm.conf, type by type; a single type "": no types are named. */
struct gres_types {
    size_t n;
    struct gres_type {
        char name[GRES_TYPE_MAX];
        unsigned count;
        unsigned found; /* of these, with a device file in gres.conf: gres_read() */
    } type[GRES_TYPES_MAX];
};

/* Read Gres of the node from the text of a slurm.conf.  -ENOENT: no line has this node;
 * -EINVAL: a line of no known form, Include.
 */
int gres_types(const char *text, size_t len, const char *node, struct gres_types *ret,
               uw_error *err);

/* Called with each GPU of a node: its index for Slurm, its device file. */
typedef void gres_fn(unsigned index, const char *file, void *user);

/* Read the text of a gres.conf for the node of this name.  types: of slurm.conf; NULL:
 * not known.  Returns the number of its GPUs, or, with the line: -ENOTUNIQ: GPUs of
 * several Types, whose order is not known without types; -ENOTSUP: GPUs without File
 * (AutoDetect), -ENODEV: MIG instances; -EINVAL: Include, or a line of no known form.  fn
 * may have been called by then.
 */
int gres_read(const char *text, size_t len, const char *node, struct gres_types *types,
              gres_fn *fn, void *user, uw_error *err);

/* Whether an expression of names ("n[1-4,07],login") of len bytes contains this name. */
bool gres_names(const char *expression, size_t len, const char *name);

#endif
