/* The registry of board backends: a vendor is one folder and one row.  Nothing outside
 * gpu/ asks for a vendor, the form of an id or the path of a library: it uses one of the
 * sets below, which open several backends as one.
 */
#ifndef GPU_BACKENDS_H
#define GPU_BACKENDS_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu/gpu.h"
#include "gpu/select.h"
#include "underwatt/error.h"

struct gpu_counters;

/* What a backend opens: what stands behind NAME= in a boards text. */
enum gpu_source { GPU_SOURCE_LIBRARY, GPU_SOURCE_FOLDER, GPU_SOURCE_FILE };

enum gpu_role { GPU_ROLE_ACCELERATOR, GPU_ROLE_PROCESSOR };

/* Which boards a scheduler or a user left to a job: variables of its environment. */
struct gpu_job_variables {
    const char *list, *order;
    /* As select_cuda(). */
    int (*select)(const char *list, const char *order,
                  const struct gpu_info *const *boards, size_t n, struct selection *ret,
                  uw_error *err);
};

/* NULL or false: the backend does not have it. */
struct gpu_backend_row {
    const struct gpu_backend *backend; /* its name selects it */
    enum gpu_role role;
    enum gpu_source source;
    bool may_cap;     /* the actuator may write limits of its boards */
    bool asked_alone; /* opened only where a boards text names it with a source */
    const char *const *id_forms; /* prefixes of ids that a user may omit */
    const struct gpu_job_variables *job;
    /* For the actuator's sandbox: patterns of device files, types of ioctl(). */
    const char *const *devices;
    const char *ioctl_types;
    /* Counters that only root may open: see gpu/counters.h. */
    void (*open_counters)(const char *root, uid_t owner, struct gpu_counters *ret);
    bool (*is_counter)(const char *name);
};

/* Every backend there is; NULL at the end. */
extern const struct gpu_backend_row *const gpu_backends[];
enum { GPU_BACKENDS_MAX = 8, GPU_BOARDS_TEXT = 2048 };

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
