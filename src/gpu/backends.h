/* The registry of board backends: a vendor is one folder and one row.  Nothing outside
 * gpu/ asks for a vendor, the form of an id or the path of a library: it uses one of the
 * sets below, which open several backends as one.
 */
#ifndef GPU_BACKENDS_H
#define GPU_BACKENDS_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu/row.h"
#include "underwatt/error.h"

/* A boards text says which backends are opened, and on what:
 * "nvml=/opt/libnvidia-ml.so.1", "replay=trace.csv", "rapl".  Entries stand with commas
 * between them, and an absolute path alone is the source of the role's first backend.  A
 * role of which the text names no backend keeps all that are there.  NULL: every role
 * does.
 *
 * gpu_boards_check(): -EINVAL (no such backend, one twice, no source where one is
 * needed), or what gpu_library_check() or gpu_folder_check() says of a source.  *ret is
 * the text with links followed.
 */
int gpu_boards_check(const char *text, bool privileged, char *ret, size_t size,
                     uw_error *err);
/* What the environment names: UNDERWATT_BOARDS, else UNDERWATT_NVML (the path of an NVML
 * library); NULL: nothing.  get: getenv().
 */
const char *gpu_boards_named(char *(*get)(const char *name));

/* Boards of accelerators, with no driver call: 0 and what is known of their libraries, or
 * what open() would say.
 */
int gpu_boards_look(const char *text, struct gpu_about *ret, uw_error *err);

/* The backends of a role as one; opts.source is a boards text.  Indexes count through,
 * ids stay the backends' own.  A backend that the text names must open; another that
 * fails leaves the rest alone, and about() tells of it.  Simulated boards and real ones
 * do not mix: -EINVAL.
 */
extern const struct gpu_backend gpu_boards;     /* accelerators */
extern const struct gpu_backend gpu_capped;     /* those of rows that may cap: -ENOTSUP
                                                 * where the text names another */
extern const struct gpu_backend gpu_processors; /* processors and their memory */

/* What one of those sets has open; lib as boards_lib() gives it.  Never blocks. */
const struct gpu_about *gpu_boards_about(const void *lib);

/* A job's list of boards, from the first variable that is set. */
struct gpu_visible {
    const char *name;         /* of the variable; NULL: none is set */
    const char *list, *order; /* borrowed from the environment */
    const struct gpu_job_variables *job;
};
void gpu_visible_read(char *(*get)(const char *name), struct gpu_visible *ret);

#endif
