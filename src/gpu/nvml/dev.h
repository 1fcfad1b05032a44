/* Inside of the NVML backend. */
#ifndef GPU_NVML_DEV_H
#define GPU_NVML_DEV_H

#include <stdatomic.h>

#include "gpu/gpu.h"
#include "gpu/nvml/abi.h"
#include "gpu/nvml/nvml.h"

enum { NVML_BOARDS_MAX = 64, NVML_OTHERS_MAX = 16 };

struct lib;

/* Written while the library is opened, or boards are attached; constant else, but for
 * what is said.
 */
struct gpu_dev {
    struct lib *lib;
    nvml_device handle; /* NULL: the board gave none, or is away */
    struct gpu_info info;
    uw_error error;    /* "" or why something of info is missing */
    bool reasons_old;  /* asks with the older name */
    bool limit_v2;     /* sets limits with the newer call */
    bool field_limits; /* tells the two limits as fields */
    bool field_energy; /* … and the counter */

    atomic_ullong calls;

    /* Of dev_procs() and dev_use(), one at a time. */
    uint64_t procs_sum, procs_looks, use_seen_us;
    struct gpu_proc others[NVML_OTHERS_MAX];
    size_t n_others; /* more than there is room for: not remembered */
};

struct lib {
    struct nvml_abi abi;
    struct gpu_clock clock;
    struct gpu_about about;
    bool prefer_v2;   /* process lists: this driver's _v3 has another layout */
    atomic_uint busy; /* calls under way; close() leaves what they use */
    bool begun;       /* nvmlInit() is to be undone */
    struct gpu_dev *dev;
    unsigned n;
    struct lib *next_left; /* of those that could not be closed */
};

/* Around each use of the library by a board. */
static inline void lib_enter(struct lib *lib)
{
    atomic_fetch_add(&lib->busy, 1);
}

static inline void lib_leave(struct lib *lib)
{
    atomic_fetch_sub(&lib->busy, 1);
}

/* One call of the driver is made. */
static inline void dev_count(struct gpu_dev *dev)
{
    atomic_fetch_add_explicit(&dev->calls, 1, memory_order_relaxed);
}

/* 0, or why no call can be made on this board. */
int dev_usable(const struct gpu_dev *dev, uw_error *err);

/* identify.c: fills dev->handle and dev->info; blocks, and may hang. */
void dev_identify(struct gpu_dev *dev);
/* The handle alone. */
void dev_take_handle(struct gpu_dev *dev);
/* open.c: has fn ask lib->dev[0..n) side by side, but for those in away.  A board that
 * stays silent is left as it is, with its text; its thread keeps lib->busy above 0.
 */
int lib_ask(struct lib *lib, void (*fn)(struct gpu_dev *dev), uint64_t away,
            uw_error *err);

/* attach.c: see gpu_backend.attach. */
int lib_attach(struct lib *lib, uint64_t away, uw_error *err);
/* Begin with the boards that opts knows; identifies those that are not away. */
int lib_begin_known(struct lib *lib, const struct gpu_open_opts *opts, uw_error *err);
/* nvml.c: what the driver says of itself, once it is begun. */
void lib_note_versions(struct lib *lib);
/* nvml.c: what earlier openings could not close, once their calls have come back.
 * False: one still hangs.
 */
bool lib_close_left(void);
/* identify.c: no handle, and why. */
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

/* These of energy, instant and average power and the two limits (enum gpu_sample_has) as
 * fields, in one call; what the board lacks is left out of ret->has.
 */
nvml_result dev_fields(struct gpu_dev *dev, uint32_t want, struct gpu_sample *ret);

#endif
