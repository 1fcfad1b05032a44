/* Description of a backend: one row of the registry of gpu/backends.h. */
#ifndef GPU_ROW_H
#define GPU_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "gpu/gpu.h"
#include "underwatt/error.h"

enum { GPU_BACKENDS_MAX = 8, GPU_BOARDS_TEXT = 2048 };

struct selection; /* gpu/select.h */
struct gpu_counters;

/* Kind of a backend's source, which follows NAME= in a boards text. */
enum gpu_source { GPU_SOURCE_LIBRARY, GPU_SOURCE_FOLDER, GPU_SOURCE_FILE };

enum gpu_role { GPU_ROLE_ACCELERATOR, GPU_ROLE_PROCESSOR };

/* Environment variables in which a scheduler or user selects a job's boards. */
struct gpu_job_variables {
    const char *list, *order;
    /* As select_cuda(). */
    int (*select)(const char *list, const char *order,
                  const struct gpu_info *const *boards, size_t n, struct selection *ret,
                  uw_error *err);
};

/* NULL or false: not supported. */
struct gpu_backend_row {
    const struct gpu_backend *backend; /* its name selects it */
    enum gpu_role role;
    enum gpu_source source;
    bool may_cap;                /* the actuator may write limits of its boards */
    bool asked_alone;            /* opened only if a boards text names it with a source */
    const char *const *id_forms; /* prefixes of ids that a user may omit */
    const struct gpu_job_variables *job;
    /* For the actuator's sandbox: patterns of device files, types of ioctl(). */
    const char *const *devices;
    const char *ioctl_types;
    /* Counters that only root may open: see gpu/counters.h. */
    void (*open_counters)(const char *root, uid_t owner, struct gpu_counters *ret);
    bool (*is_counter)(const char *name);
};

/* All backends (backends.c), terminated by NULL. */
extern const struct gpu_backend_row *const gpu_backends[];

#endif
