/* libunderwatt: read power and energy of this node's boards.
 *
 * Return values: 0 or a documented positive outcome on success, -errno on
 * failure.  On failure *err (may be NULL) holds one line for a human.
 * Out-parameters are written only on success.  Threads: one context per thread, or
 * the caller's lock; a context keeps a thread of its own that samples the boards.
 * Nothing here aborts, exits, prints or reads the environment.  Units: in the names
 * (mW, W, J, s).  C99 and C++.
 *
 *     uw_ctx *ctx;
 *     uw_window *win;
 *     uw_energy e;
 *     uw_error err;
 *
 *     if (uw_ctx_open(NULL, &ctx, &err) < 0) …
 *     uw_window_begin(ctx, &win, &err);
 *     work();
 *     uw_window_end(win, &err);
 *     uw_window_energy(win, uw_device_at(ctx, 0), &e, &err);
 *     printf("%.0f J +- %.0f J\n", e.energy_j, e.half_j);
 *     uw_window_free(win);
 *     uw_ctx_free(ctx);
 */
#ifndef UNDERWATT_UNDERWATT_H
#define UNDERWATT_UNDERWATT_H

#include <stddef.h>
#include <stdint.h>

#include "underwatt/error.h"
#include "underwatt/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef UW_API
#define UW_API
#endif

typedef struct uw_ctx uw_ctx;
typedef struct uw_device uw_device;
typedef struct uw_window uw_window;

/* NULL stands for all defaults.  Set size to sizeof(uw_options); what a later version
 * adds is then 0.
 */
typedef struct uw_options {
    size_t size;
    const char *nvml; /* the NVML library to load; NULL: the system's libnvidia-ml.so.1 */
    const char
        *clock; /* of a sped-up simulated node, as UNDERWATT_CLOCK has it; or NULL */
} uw_options;

/* Version of the library that is loaded, "0.1.0". */
UW_API const char *uw_version(void);

/* Open every board the node has and begin to sample them.  -ENODEV: no library, no
 * driver or no board, the text says which.  Free *ret_ctx with uw_ctx_free().
 */
UW_API int uw_ctx_open(const uw_options *opts, uw_ctx **ret_ctx, uw_error *err);
/* Frees its devices and ends its windows; NULL is fine. */
UW_API void uw_ctx_free(uw_ctx *ctx);

UW_API size_t uw_device_count(const uw_ctx *ctx);
/* Borrowed: valid until uw_ctx_free(). NULL when i is out of range. */
UW_API uw_device *uw_device_at(uw_ctx *ctx, size_t i);
UW_API const char *uw_device_id(
    const uw_device *dev); /* "GPU-…", stable across reboots */
UW_API const char *uw_device_name(const uw_device *dev);
UW_API int uw_device_is_simulated(const uw_device *dev); /* 1 or 0 */

typedef struct uw_limits {
    uint32_t min_mw, max_mw, default_mw;
    uint32_t enforced_mw; /* in force now; 0: unknown */
} uw_limits;

/* -ENOTSUP: the board's limits cannot be read.  -ETIMEDOUT: the driver hangs. */
UW_API int uw_device_limits(uw_device *dev, uw_limits *ret, uw_error *err);
/* The driver's newest reading, the instant one where the board has both. */
UW_API int uw_device_power(uw_device *dev, double *ret_w, uw_error *err);

/* A window of time, over all boards.  It begins now. */
UW_API int uw_window_begin(uw_ctx *ctx, uw_window **ret, uw_error *err);
/* It ends now; waits (about 0.3 s, at most 4 s) until its energy can be told.
 * -EALREADY: it has ended before.
 */
UW_API int uw_window_end(uw_window *win, uw_error *err);

typedef struct uw_energy {
    double time_s;
    double energy_j;
    double half_j; /* half width of the 95 % interval, the sensor's gain error left out */
    double power_w;     /* mean */
    const char *method; /* "counter", "integrated", … : static text */
} uw_energy;

/* Of an ended window.  -EINVAL: not ended, or a device of another context; -ENODATA:
 * the board told nothing about that time.
 */
UW_API int uw_window_energy(const uw_window *win, const uw_device *dev, uw_energy *ret,
                            uw_error *err);
UW_API void uw_window_free(uw_window *win); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
