/* Internals of the NVML backend. */
#ifndef GPU_NVML_DEV_H
#define GPU_NVML_DEV_H

#include <stdatomic.h>

#include "gpu/gpu.h"
#include "gpu/nvml/abi.h"
#include "gpu/nvml/nvml.h"

enum { NVML_BOARDS_MAX = 64, NVML_OTHERS_MAX = 16 };

struct lib;

/* Written only while the library is opened or boards are attached, except calls and the
 * members for dev_procs() and dev_use().
 */
struct gpu_dev {
    struct lib *lib;
    nvml_device handle; /* NULL: none, or the board is detached */
    struct gpu_info info;
    uw_error error;    /* "", or why handle or a part of info is missing */
    bool reasons_old;  /* use throttle_reasons() */
    bool field_limits; /* the two limits can be read as fields */
    bool field_energy; /* the energy counter can be read as a field */

    atomic_ullong calls;

    /* For dev_procs() and dev_use(); one call at a time. */
    uint64_t procs_sum, procs_polls, use_seen_us;
    struct gpu_proc others[NVML_OTHERS_MAX];
    size_t n_others; /* above NVML_OTHERS_MAX: others is not valid */
};

struct lib {
    struct nvml_abi abi;
    struct gpu_clock clock;
    struct gpu_about about;
    bool prefer_v2;   /* process lists: this driver's _v3 has another layout */
    atomic_uint busy; /* calls under way; close() does not free what they use */
    bool begun;       /* nvmlInit() has succeeded, nvmlShutdown() is due */
    struct gpu_dev *dev;
    unsigned n;
    struct lib *next_abandoned; /* see lib_close_abandoned() */
};

/* Call lib_enter() and lib_leave() around each use of the library by a board. */
static inline void lib_enter(struct lib *lib)
{
    atomic_fetch_add(&lib->busy, 1);
}

static inline void lib_leave(struct lib *lib)
{
    atomic_fetch_sub(&lib->busy, 1);
}

/* Counts one driver call. */
static inline void dev_count(struct gpu_dev *dev)
{
    atomic_fetch_add_explicit(&dev->calls, 1, memory_order_relaxed);
}

/* Whether driver calls can be made on this board.  -ENODEV. */
int dev_usable(const struct gpu_dev *dev, uw_error *err);

/* identify.c: sets dev->handle and dev->info; blocks and may hang. */
void dev_identify(struct gpu_dev *dev);
/* Sets dev->handle only. */
void dev_take_handle(struct gpu_dev *dev);
/* open.c: calls fn for all boards in parallel, except those in away.  A board that does
 * not answer in time gets an error text and is otherwise unchanged; its thread keeps
 * lib->busy above 0.  -ENOMEM.
 */
int lib_ask(struct lib *lib, void (*fn)(struct gpu_dev *dev), uint64_t away,
            uw_error *err);

/* attach.c: see gpu_backend.attach. */
int lib_attach(struct lib *lib, uint64_t away, uw_error *err);
/* Initialises NVML with the boards of opts.known; identifies those not in opts.away. */
int lib_begin_known(struct lib *lib, const struct gpu_open_opts *opts, uw_error *err);
/* nvml.c: reads the versions; NVML must be initialised. */
void lib_note_versions(struct lib *lib);
/* nvml.c: closes libraries that hung calls had kept open, if these have returned.  False:
 * one still hangs.
 */
bool lib_close_abandoned(void);
/* identify.c: marks the board as detached. */
void dev_put_away(struct gpu_dev *dev);

/* mark.c: see gpu_backend.driver_mark. */
int lib_mark(const struct lib *lib, char *ret, size_t size, uw_error *err);

int dev_sample(struct gpu_dev *dev, uint32_t want, struct gpu_sample *ret, uw_error *err);
int dev_limits(struct gpu_dev *dev, struct gpu_limits *ret, uw_error *err);
int dev_set_limit(struct gpu_dev *dev, uint32_t mw, uw_error *err);
int dev_lock_clocks(struct gpu_dev *dev, uint32_t min_mhz, uint32_t max_mhz,
                    uw_error *err);
int dev_reset_clocks(struct gpu_dev *dev, uw_error *err);
int dev_procs(struct gpu_dev *dev, struct gpu_proc *ret, size_t *ret_n, uw_error *err);
int dev_use(struct gpu_dev *dev, struct gpu_use *ret, size_t *ret_n, uw_error *err);

/* Reads energy, instant and average power and the two limits, as far as wanted (enum
 * gpu_sample_has), as fields in one call.  Sets ret->has for the values that were read.
 */
nvml_result dev_fields(struct gpu_dev *dev, uint32_t want, struct gpu_sample *ret);

#endif
