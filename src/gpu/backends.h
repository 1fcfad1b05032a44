/* The registry of board backends: a vendor is one folder and one row.  Code outside gpu/
 * does not depend on vendors, id formats or library paths: it uses the sets below, which
 * open several backends as one.
 */
#ifndef GPU_BACKENDS_H
#define GPU_BACKENDS_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu/row.h"
#include "underwatt/error.h"

/* A boards text names backends and their sources, separated by commas:
 * "nvml=/opt/libnvidia-ml.so.1", "replay=trace.csv", "rapl".  An absolute path alone is
 * the source of the role's first backend.  If the text names no backend of a role, or is
 * NULL, all backends of that role are opened, except rows with asked_alone.
 *
 * gpu_boards_check(): -EINVAL (no such backend, a backend named twice, or a missing
 * source), or an error of gpu_library_check() or gpu_folder_check().  *ret is the text
 * with symbolic links resolved.
 */
int gpu_boards_check(const char *text, bool privileged, char *ret, size_t size,
                     uw_error *err);
/* The boards text of the environment: UNDERWATT_BOARDS, else UNDERWATT_NVML (path of an
 * NVML library); NULL: neither is set.  get: getenv().
 */
const char *gpu_boards_named(char *(*get)(const char *name));

/* Describes the first accelerator library that can be loaded, without driver calls;
 * errors as of open().
 */
int gpu_boards_look(const char *text, struct gpu_about *ret, uw_error *err);

/* The backends of a role as one; opts.source is a boards text.  Board indexes are
 * consecutive over all backends, ids are unchanged.  open() fails if a backend that the
 * text names does not open; the failure of another backend is reported by about().
 * -EINVAL: simulated and real boards are mixed.
 */
extern const struct gpu_backend gpu_boards;     /* accelerators */
extern const struct gpu_backend gpu_capped;     /* rows with may_cap; -ENOTSUP: the text
                                                 * names another backend */
extern const struct gpu_backend gpu_processors; /* processors and their memory */

/* Whether a text that is for gpu_boards names a backend of processors, too. */
bool gpu_processors_named(const char *text);

/* Describes an open set; lib: see boards_lib().  Never blocks. */
const struct gpu_about *gpu_boards_about(const void *lib);

/* A job's list of boards, from the first backend's variable that is set. */
struct gpu_visible {
    const char *name;         /* the variable; NULL: none is set */
    const char *list, *order; /* borrowed from the environment */
    const struct gpu_job_variables *job;
};
void gpu_visible_read(char *(*get)(const char *name), struct gpu_visible *ret);

#endif
