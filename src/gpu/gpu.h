/* Boards behind one table of functions.  Backends are dumb: they translate and
 * never decide.  All calls block and may hang in the driver: programs make them
 * from a worker of io/loop, one worker a board.
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

/* Reads the clock of whoever calls (loop_now_ns); called around driver calls. */
struct gpu_clock {
    uint64_t (*now_ns)(void *user);
    void *user;
};

struct gpu_given;
struct gpu_info;

struct gpu_open_opts {
    /* A library, a folder or a trace, as the backend has it (gpu/backends.h); NULL: the
     * system's.
     */
    const char *source;
    struct gpu_clock clock;  /* mandatory */
    struct gpu_given *given; /* counters that the actuator has opened, or NULL */
    void *backend_user;      /* a virtual backend's world; NULL else */
    /* All boards of the node as an earlier opening told them, in its order, and a bit
     * for each that must not be touched, as if attach() had let go of it: such a board
     * is listed as it is known here.  Borrowed until open() has returned; NULL, 0, 0:
     * whatever the driver shows.  Backends without attach() pass it over.
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

/* What a board can do; a missing symbol or a "not supported" clears the bit. */
enum gpu_ability {
    GPU_CAN_ENERGY = 1u << 0,    /* a hardware energy counter */
    GPU_CAN_INSTANT = 1u << 1,   /* instant power apart from the plain reading */
    GPU_CAN_AVERAGE = 1u << 2,   /* 1 s average power */
    GPU_CAN_LIMIT = 1u << 3,     /* power limits can be read */
    GPU_CAN_SET_LIMIT = 1u << 4, /* … and set, rights permitting */
    GPU_CAN_LOCK_CLOCKS = 1u << 5,
    GPU_CAN_REASONS = 1u << 6,
    GPU_CAN_UTIL = 1u << 7,
    GPU_CAN_TEMP = 1u << 8,
    GPU_CAN_CLOCKS = 1u << 9,
    GPU_CAN_PROCS = 1u << 10,
};

/* A slice of a board in MIG mode. */
struct gpu_mig {
    char uuid[96];
    unsigned gpu_instance, compute_instance;
};
enum { GPU_MIGS_MAX = 8 };

struct gpu_info {
    unsigned index; /* the driver's order on this node */
    char uuid[96];  /* stable across reboots */
    char name[96];
    char pci_bus_id[32]; /* "00000000:3B:00.0"; "" unknown */
    enum gpu_arch arch;
    uint32_t abilities; /* enum gpu_ability */
    bool simulated;
    bool mig_enabled; /* power belongs to the board, not to its slices */
    bool persistence; /* only where has_persistence */
    bool has_persistence;
    uint32_t clock_max_mhz; /* highest SM clock; 0 unknown */
    uint32_t clock_min_mhz; /* lowest that it may be locked to; 0 unknown */
    struct gpu_mig mig[GPU_MIGS_MAX];
    unsigned n_migs;
    char domain[32];  /* of a processor: "package-0", "dram-0"; "" another board */
    char backend[16]; /* its name, where the board is one of a set */
};

enum { GPU_MISSING_MAX = 16 };

/* What is known of a backend's library and the driver behind it, for a diagnosis; ""
 * unknown.
 */
struct gpu_about {
    char library[256]; /* the file that was loaded */
    char driver_version[80];
    char library_version[80];
    bool simulated; /* or recorded: no board of this node */
    bool recorded;
    char clock[64];      /* of a simulated world: "T0_NS:SPEED" */
    char state_dir[256]; /* of a simulated world */
    /* Optional functions that this library lacks. */
    const char *missing[GPU_MISSING_MAX];
    size_t n_missing;
    char failed[200]; /* of a set: why another backend is not there */
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
};

/* Clock-event reasons, NVML's bits. */
enum gpu_reason { CLOCK_REASONS(NAME_FLAG) };

struct gpu_sample {
    uint32_t has;             /* enum gpu_sample_has: which fields are real */
    uint64_t began_ns;        /* clock before the first driver call … */
    uint64_t at_ns;           /* … and after the last */
    uint64_t energy_began_ns; /* clock right before the energy call … */
    uint64_t energy_at_ns;    /* … and right after it */
    double power_w; /* the plain reading: what it means depends on the generation */
    double instant_w;
    double average_w;
    uint64_t energy_mj;    /* the raw counter; wraps and resets are the meter's matter */
    uint32_t enforced_mw;  /* the limit in force */
    uint32_t requested_mw; /* the limit asked for; may be above the enforced one */
    uint32_t util_gpu, util_mem; /* percent */
    int32_t temp_c;
    uint32_t sm_mhz, mem_mhz;
    uint64_t reasons; /* enum gpu_reason */
};

struct gpu_proc {
    pid_t pid;
    uint64_t used_bytes; /* 0 unknown */
    bool compute;        /* else graphics */
};
enum { GPU_PROCS_MAX = 256 };

/* What a process used of a board of late; those that used nothing are left out. */
struct gpu_use {
    pid_t pid;
    uint32_t sm_percent; /* of the SMs' time, as the driver says it */
};

struct gpu_dev; /* the backend's own */

enum {
    GPU_ABSENT = 1, /* open: nothing of this backend on this node, no fault */
};

/* Results of the functions below, beside 0: -ENOTSUP (the board cannot), -EPERM
 * (the right is missing), -ERANGE (refused as out of range), -ENODEV (board
 * lost or driver gone), -EIO (another driver error).  Text names the driver's.
 */
struct gpu_backend {
    const char *name; /* "nvml", "rapl", "virtual" */

    /* All of these are mandatory.  A board that fails to answer at open is
     * listed all the same, with what is known of it.  -ESTALE: other boards are there
     * than opts knows of.
     */
    int (*open)(const struct gpu_open_opts *opts, void **ret_lib, uw_error *err);
    void (*close)(void *lib); /* after every board; safe with a hung call elsewhere */
    size_t (*count)(const void *lib);
    struct gpu_dev *(*at)(void *lib, size_t i); /* borrowed until close */
    const struct gpu_info *(*info)(const struct gpu_dev *dev);
    /* want: enum gpu_sample_has; what cannot be had is left out of ret->has. */
    int (*sample)(struct gpu_dev *dev, uint32_t want, struct gpu_sample *ret,
                  uw_error *err);
    /* How its readings come about; no driver call. */
    void (*sensors)(const struct gpu_dev *dev, struct sensor_model *ret);

    /* Optional, NULL where the backend has none. */
    int (*limits)(struct gpu_dev *dev, struct gpu_limits *ret, uw_error *err);
    int (*set_limit)(struct gpu_dev *dev, uint32_t mw, uw_error *err);
    /* Keeps the SM clocks within this range until a reset by any program.  No driver
     * tells whether they are locked.  The range snaps to clocks that the board has.
     */
    int (*lock_clocks)(struct gpu_dev *dev, uint32_t min_mhz, uint32_t max_mhz,
                       uw_error *err);
    int (*reset_clocks)(struct gpu_dev *dev, uw_error *err);
    /* Up to GPU_PROCS_MAX; *ret_n says how many. */
    int (*procs)(struct gpu_dev *dev, struct gpu_proc *ret, size_t *ret_n, uw_error *err);
    /* Of the processes that used it since the last call (or lately, the first time): up
     * to GPU_PROCS_MAX.  One call at a time.
     */
    int (*use)(struct gpu_dev *dev, struct gpu_use *ret, size_t *ret_n, uw_error *err);
    /* Driver calls made on this board so far; any thread may ask. */
    uint64_t (*calls)(const struct gpu_dev *dev);
    /* Let go of the boards in away (a bit each), so that they can be reset, and attach
     * all others.  Boards and infos stay where they are; calls on one that is away fail
     * with -ENODEV and reach no driver.  No other call may be made meanwhile.  -EBUSY (a
     * call of before hangs in the driver) and -ENOTSUP (this driver lets go of all or
     * none): nothing has changed.  Another fault: the driver was let go of and does not
     * come back; calls on all boards fail.  NULL: boards are never attached.
     */
    int (*attach)(void *lib, uint64_t away, uw_error *err);
    /* Something that changes when the driver of this board (NULL: of any) is loaded anew;
     * "" unknown.
     */
    int (*driver_mark)(void *lib, const struct gpu_dev *dev, char *ret, size_t size,
                       uw_error *err);
    /* Of an open library; never blocks. */
    const struct gpu_about *(*about)(const void *lib);
    /* The library alone, with no driver call: 0 and what is known of it, or what open()
     * would say.
     */
    int (*look)(const char *source, struct gpu_about *ret, uw_error *err);
};

#endif
