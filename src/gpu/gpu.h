/* Interface of the board backends.  A backend only translates driver calls and makes no
 * decisions.  All calls block and may hang in the driver: call them in a worker of
 * io/loop, one worker per board.
 */
#ifndef GPU_GPU_H
#define GPU_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "base/names.h"
#include "base/sensor.h"
#include "underwatt/error.h"

/* The caller's clock (loop_now_ns()); read before and after driver calls. */
struct gpu_clock {
    uint64_t (*now_ns)(void *user);
    void *user;
};

struct gpu_given;
struct gpu_info;

struct gpu_open_opts {
    /* Path of a library, folder or trace, depending on the backend (gpu/backends.h);
     * NULL: the system's default.
     */
    const char *source;
    struct gpu_clock clock;  /* mandatory */
    struct gpu_given *given; /* counters that the actuator has opened, or NULL */
    void *backend_user;      /* world of a virtual backend; else NULL */
    /* All boards of the node in the order of an earlier open(), and a mask of boards that
     * must not be touched, as if attach() had detached them; those are listed with the
     * info given here.  Borrowed for the call; NULL, 0, 0: all boards of the driver.
     * Ignored by backends without attach().
     */
    const struct gpu_info *known;
    size_t n_known;
    uint64_t away;
};

enum gpu_arch { /* NVML's numbers */
                GPU_ARCH_UNKNOWN = 0,
                GPU_ARCH_KEPLER = 2,
                GPU_ARCH_MAXWELL = 3,
                GPU_ARCH_PASCAL = 4,
                GPU_ARCH_VOLTA = 5,
                GPU_ARCH_TURING = 6,
                GPU_ARCH_AMPERE = 7,
                GPU_ARCH_ADA = 8,
                GPU_ARCH_HOPPER = 9,
                GPU_ARCH_BLACKWELL = 10,
};

/* Abilities of a board; a missing driver function or "not supported" clears the bit. */
enum gpu_ability {
    GPU_CAN_ENERGY = 1u << 0,    /* a hardware energy counter */
    GPU_CAN_INSTANT = 1u << 1,   /* instant power beside the plain reading */
    GPU_CAN_AVERAGE = 1u << 2,   /* 1 s average power */
    GPU_CAN_LIMIT = 1u << 3,     /* read power limits */
    GPU_CAN_SET_LIMIT = 1u << 4, /* set power limits, given the permission */
    GPU_CAN_LOCK_CLOCKS = 1u << 5,
    GPU_CAN_REASONS = 1u << 6,
    GPU_CAN_UTIL = 1u << 7,
    GPU_CAN_TEMP = 1u << 8,
    GPU_CAN_CLOCKS = 1u << 9,
    GPU_CAN_PROCS = 1u << 10,
    GPU_CAN_LIMITED = 1u << 11, /* the time for which the power limit was reached */
};

/* A slice of a board in MIG mode. */
struct gpu_mig {
    char uuid[96];
    unsigned gpu_instance, compute_instance;
};
enum { GPU_MIGS_MAX = 8 };

/* How the name of a board that is no board of this node ends: the simulated driver and
 * the backend of traces write it.
 */
#define GPU_NAME_SIMULATED " (simulated)"
#define GPU_NAME_RECORDED " (recorded)"

struct gpu_info {
    unsigned index; /* the driver's order on this node */
    char uuid[96];  /* stable across reboots */
    char name[96];
    char pci_bus_id[32]; /* "00000000:3B:00.0"; "": unknown */
    bool has_minor;
    uint32_t minor; /* of its device file, /dev/nvidia3; only with has_minor */
    enum gpu_arch arch;
    uint32_t abilities; /* enum gpu_ability */
    bool simulated;
    bool mig_enabled; /* power is known for the board only, not for its slices */
    bool persistence; /* only with has_persistence */
    bool has_persistence;
    uint32_t clock_max_mhz; /* highest SM clock; 0: unknown */
    uint32_t clock_min_mhz; /* lowest SM clock for a lock; 0: unknown */
    struct gpu_mig mig[GPU_MIGS_MAX];
    unsigned n_migs;
    char domain[32];  /* of a processor: "package-0", "dram-0"; else "" */
    char backend[16]; /* name of the backend, for boards of gpu_boards etc. */
};

enum { GPU_MISSING_MAX = 16 };

/* A backend's library and driver, for diagnosis; "": unknown. */
struct gpu_about {
    char library[256]; /* the file that was loaded */
    char driver_version[80];
    char library_version[80];
    bool simulated; /* simulated or recorded boards, not of this node */
    bool recorded;
    char clock[64];                       /* of a simulated world: "T0_NS:SPEED" */
    char state_dir[256];                  /* of a simulated world */
    const char *missing[GPU_MISSING_MAX]; /* optional functions that the library lacks */
    size_t n_missing;
    char failed[200]; /* of a set: why another backend did not open */
};

struct gpu_limits {
    uint32_t min_mw, max_mw, default_mw;
};

enum gpu_sample_has {
    GPU_HAS_POWER = 1u << 0,
    GPU_HAS_INSTANT = 1u << 1,
    GPU_HAS_AVERAGE = 1u << 2,
    GPU_HAS_ENERGY = 1u << 3,
    GPU_HAS_ENFORCED = 1u << 4,
    GPU_HAS_REQUESTED = 1u << 5,
    GPU_HAS_UTIL = 1u << 6,
    GPU_HAS_TEMP = 1u << 7,
    GPU_HAS_CLOCKS = 1u << 8,
    GPU_HAS_REASONS = 1u << 9,
    GPU_HAS_LIMITED = 1u << 10,
};

/* Clock event reasons; NVML's bits. */
enum gpu_reason { CLOCK_REASONS(NAME_FLAG) };

struct gpu_sample {
    uint32_t has;             /* enum gpu_sample_has: which fields are valid */
    uint64_t began_ns;        /* time before the first driver call */
    uint64_t at_ns;           /* time after the last one */
    uint64_t energy_began_ns; /* time right before the energy call */
    uint64_t energy_at_ns;    /* time right after it */
    double power_w; /* the plain reading; its meaning depends on the generation */
    double instant_w;
    double average_w;
    uint64_t energy_mj;          /* raw counter; the meter handles wraps and resets */
    uint32_t enforced_mw;        /* the limit in force */
    uint32_t requested_mw;       /* the requested limit; may be above the enforced one */
    uint32_t util_gpu, util_mem; /* percent */
    int32_t temp_c;
    uint32_t sm_mhz, mem_mhz;
    uint64_t reasons;    /* enum gpu_reason */
    uint64_t limited_ns; /* counter: the power limit held the clock down */
};

struct gpu_proc {
    pid_t pid;
    uint64_t used_bytes; /* 0: unknown */
    bool compute;        /* else graphics */
};
enum { GPU_PROCS_MAX = 256 };

/* Recent use of a board by a process; processes without use are left out. */
struct gpu_use {
    pid_t pid;
    uint32_t sm_percent; /* of the SMs' time, as the driver reports it */
};

struct gpu_dev; /* defined by each backend */

enum {
    GPU_ABSENT = 1, /* open: this node has no board of the backend; not an error */
};

/* Errors of the functions below: -ENOTSUP (the board cannot do it), -EPERM (missing
 * permission), -ERANGE (the value was refused), -ENODEV (board lost or driver unloaded),
 * -EIO (another driver error).  *err contains the driver's own text
 * and names no board: the caller adds the name.
 */
struct gpu_backend {
    const char *name; /* "nvml", "rapl", "virtual" */

    /* The functions up to sensors() are mandatory.  A board that does not answer during
     * open() is listed too, with partial info.  -ESTALE: the boards differ from
     * opts.known.
     */
    int (*open)(const struct gpu_open_opts *opts, void **ret_lib, uw_error *err);
    void (*close)(void *lib); /* safe while a call hangs in another thread */
    size_t (*count)(const void *lib);
    struct gpu_dev *(*at)(void *lib, size_t i); /* borrowed until close */
    const struct gpu_info *(*info)(const struct gpu_dev *dev);
    /* want: enum gpu_sample_has; values that cannot be read are left out of ret->has. */
    int (*sample)(struct gpu_dev *dev, uint32_t want, struct gpu_sample *ret,
                  uw_error *err);
    /* Model of the board's sensors; makes no driver call. */
    void (*sensors)(const struct gpu_dev *dev, struct sensor_model *ret);

    /* Optional: NULL if the backend does not support it. */
    int (*limits)(struct gpu_dev *dev, struct gpu_limits *ret, uw_error *err);
    int (*set_limit)(struct gpu_dev *dev, uint32_t mw, uw_error *err);
    /* Keeps the SM clocks within this range until a reset by any program; the driver
     * rounds to supported clocks.  No driver reports whether clocks are locked.
     */
    int (*lock_clocks)(struct gpu_dev *dev, uint32_t min_mhz, uint32_t max_mhz,
                       uw_error *err);
    int (*reset_clocks)(struct gpu_dev *dev, uw_error *err);
    /* Lists up to GPU_PROCS_MAX processes on the board. */
    int (*procs)(struct gpu_dev *dev, struct gpu_proc *ret, size_t *ret_n, uw_error *err);
    /* Lists up to GPU_PROCS_MAX processes that used the board since the last call, or
     * recently in the first one.  One call at a time.
     */
    int (*use)(struct gpu_dev *dev, struct gpu_use *ret, size_t *ret_n, uw_error *err);
    /* Number of driver calls on this board; may be called in any thread. */
    uint64_t (*calls)(const struct gpu_dev *dev);
    /* Detaches the driver from the boards in the mask away, so that they can be reset,
     * and attaches all others.  struct gpu_dev and info stay valid; calls on a detached
     * board fail with -ENODEV and do not reach the driver.  No other call may run
     * meanwhile. -EBUSY (an earlier call hangs in the driver), -ENOTSUP (the driver
     * cannot detach single boards): nothing has changed.  Another error: the driver was
     * closed and could not be opened again, calls on all boards fail.  NULL: no board is
     * ever attached.
     */
    int (*attach)(void *lib, uint64_t away, uw_error *err);
    /* Text that changes when the driver of this board (NULL: any driver) is reloaded; "":
     * unknown.
     */
    int (*driver_mark)(void *lib, const struct gpu_dev *dev, char *ret, size_t size,
                       uw_error *err);
    /* Describes an open library; never blocks. */
    const struct gpu_about *(*about)(const void *lib);
    /* Describes the library without driver calls; errors as of open(). */
    int (*look)(const char *source, struct gpu_about *ret, uw_error *err);
};

#endif
