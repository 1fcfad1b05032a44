/* Interface of a simulated world: a page that the writer (underwatt-sim) publishes and
 * all others map read-only, and requests to the writer.
 *
 * Each board's readings are protected by a sequence lock, which is odd while the writer
 * changes them.  A reader copies, and copies again if the number changed.  A reader that
 * is killed leaves no state behind; if the writer is killed, the file lock on `lock`
 * becomes free, which tells readers that the world has stopped.
 *
 * Files of a state directory: state (this page), socket (SOCK_SEQPACKET), lock (held
 * while the world lives), users (a lock for each board that a process has open),
 * lib/libnvidia-ml.so.1 (a copy: the library finds its world by the path of its own file)
 * and lib/libnvidia-ml.so, log.  dev: another's folder of device files (devices.h).
 */
#ifndef SIM_STATE_H
#define SIM_STATE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_MAGIC "UWSIMST1"
enum {
    SIM_VERSION = 1,
    SIM_BOARDS_MAX = 64,
    SIM_PROCS_MAX = 32, /* per board */
    SIM_PATH_MAX = 200,
    SIM_SOCKET_MAX = 100, /* length of a state directory's path: sun_path has 108 */
    /* after this time without a publication a call waits for the next one … */
    SIM_LATE_MS = 40,
    /* … and after this time no longer, and checks whether the writer lives */
    SIM_STALE_MS = 2000,
};

/* Results are NVML's own numbers. */
enum sim_result {
    SIM_OK = 0,
    SIM_UNINITIALIZED = 1,
    SIM_INVALID = 2,
    SIM_NOT_SUPPORTED = 3,
    SIM_NO_PERMISSION = 4,
    SIM_NOT_FOUND = 6,
    SIM_TOO_SMALL = 7,
    SIM_NO_DRIVER = 9,
    SIM_TIMEOUT = 10,
    SIM_LOST = 15,
    SIM_IN_USE = 19,
    SIM_NO_DATA = 21,
    SIM_VERSION_MISMATCH = 25,
    SIM_UNKNOWN = 999,
};

enum sim_fault_flag {
    SIM_FAULT_LOST = 1u << 0,   /* calls answer "GPU is lost" */
    SIM_FAULT_HANG = 1u << 1,   /* calls block until this is cleared */
    SIM_FAULT_REFUSE = 1u << 2, /* set requests answer "no permission" */
    SIM_FAULT_STUCK = 1u << 3,  /* the energy counter is stuck */
    SIM_FAULT_IGNORE = 1u << 4, /* clock locks are accepted and not obeyed */
};

enum sim_ability { /* calls that this generation of boards supports */
                   SIM_HAS_ENERGY = 1u << 0,
                   SIM_HAS_INSTANT = 1u << 1, /* field 186 */
                   SIM_HAS_AVERAGE = 1u << 2, /* field 185 */
                   SIM_HAS_LOCKED_CLOCKS = 1u << 3,
};

/* Constant while the world lives. */
struct sim_identity {
    char uuid[96]; /* "GPU-…" */
    char name[96];
    char serial[32];
    char bus_id[32]; /* "00000000:3B:00.0" */
    uint32_t pci_bus, pci_device_id, pci_subsystem_id;
    uint32_t arch; /* NVML's numbers */
    uint32_t cc_major, cc_minor;
    uint32_t abilities; /* enum sim_ability */
    uint32_t min_mw, max_mw, default_mw;
    uint32_t sm_max_mhz, sm_min_mhz, mem_max_mhz;
    uint32_t sm_step_mhz;
    uint32_t slowdown_c, shutdown_c;
    uint32_t pcie_gen, pcie_width;
    uint32_t cores;
    uint32_t fan; /* has one of its own */
    uint32_t counter_period_ms;
    uint64_t memory_bytes;
    uint64_t minor; /* of its device file */
    uint64_t mig;   /* 1: in MIG mode, without slices */
    uint64_t reserved[6];
};

/* Changes over time.  Only 64-bit words, copied word by word. */
struct sim_readings {
    uint64_t at_ns;        /* simulated time of these readings */
    uint64_t faults;       /* enum sim_fault_flag */
    uint64_t requested_mw; /* the limit requested */
    uint64_t enforced_mw;  /* the limit in force */
    uint64_t power_mw;     /* nvmlDeviceGetPowerUsage: by generation */
    uint64_t instant_mw;   /* field 186 */
    uint64_t average_mw;   /* field 185 */
    uint64_t energy_mj;    /* since the driver's load */
    uint64_t true_uj;      /* the plant's true energy since the world began (for tests) */
    uint64_t true_mw;      /* true power now */
    uint64_t sm_mhz, mem_mhz;
    uint64_t util_gpu, util_mem; /* percent */
    uint64_t temp_c;
    uint64_t fan_percent;
    uint64_t reasons; /* clock-event reasons, NVML's bits */
    uint64_t memory_used_bytes;
    uint64_t power_violation_ns, thermal_violation_ns; /* since the driver's load */
    uint64_t locked_min_mhz, locked_max_mhz;           /* 0: not locked */
    uint64_t persistence;
    uint64_t limit_writes; /* limits accepted since the world began (for tests) */
    uint64_t clock_resets; /* resets of clock locks since the world began */
    uint64_t reserved[7];
};

struct sim_proc {
    uint64_t pid;
    uint64_t used_bytes;
    uint64_t util_gpu, util_mem; /* percent */
};

struct sim_procs {
    uint64_t n;
    uint64_t at_us; /* UTC of the utilisation samples */
    struct sim_proc proc[SIM_PROCS_MAX];
};

struct sim_board {
    struct sim_identity identity;
    uint64_t readings_seq;
    struct sim_readings readings;
    uint64_t procs_seq;
    struct sim_procs procs;
} __attribute__((aligned(64)));

struct sim_page {
    char magic[8];    /* SIM_MAGIC */
    uint32_t version; /* SIM_VERSION */
    uint32_t bytes;   /* of the whole page */
    uint32_t n_boards;
    /* 1: set requests need root or a listed user, see machine file */
    uint32_t sets_need_root;
    uint64_t world_id;
    uint64_t t0_ns; /* the clock: simulated now = t0 + speed x (BOOTTIME - t0) */
    double speed;
    uint64_t server_pid;
    char state_dir[SIM_PATH_MAX];
    char driver_version[80];
    char machine[80]; /* its name */
    uint64_t reserved[8];

    /* These change; each is one word. */
    uint64_t load_id;     /* identifies a load of the driver; a reload changes it */
    uint64_t driver_gone; /* 1 while the driver is unloaded */
    uint64_t stopped;     /* 1: the world has ended */
    uint64_t beat_ns;     /* CLOCK_BOOTTIME of the last publication */
    uint64_t n_jobs;

    struct sim_board board[SIM_BOARDS_MAX];
};

/* ---- requests ---- */

enum sim_op {
    SIM_OP_SET_LIMIT = 1,   /* a: mW */
    SIM_OP_LOCK_CLOCKS = 2, /* a, b: MHz */
    SIM_OP_RESET_CLOCKS = 3,
    SIM_OP_PERSISTENCE = 4, /* a: 0, 1 */
    SIM_OP_FAULT = 5,       /* text: a line of the fault script */
    SIM_OP_JOB = 6,         /* text: the job's options; the answers are progress */
    SIM_OP_STOP = 7,        /* allowed for root and the user who started the world */
    SIM_OP_RESET = 8,       /* likewise; resets the board */
    SIM_OP_DRIVE = 9,       /* text: --workload, --gpus of a job that does what the client
                               grants; lives as long as the connection */
    SIM_OP_GRANT = 10, /* board: enum uw_phase; a: steps to train or validate, or b: ns of
                          another phase; answered when the boards have done it */
};

struct sim_request {
    uint32_t version; /* SIM_VERSION */
    uint32_t op;      /* enum sim_op */
    uint32_t board;
    uint32_t reserved;
    uint64_t a, b;
    char text[512];
};

/* Answer to a request; a job gets further ones as it progresses, a driven job one for
 * each grant, when it is done or refused.
 */
struct sim_reply {
    int32_t result;        /* enum sim_result */
    uint32_t phase;        /* enum uw_phase */
    uint64_t steps;        /* whole training steps done */
    uint64_t last_step_ns; /* end of the last of them; of a grant: when it was done */
    uint64_t total_steps;
    uint64_t done; /* 1: the job has ended */
    /* of a grant: its number, from 1, or 0 where it is refused; time until its end in
     * which the boards waited for a grant; true energy of the job's boards at its end
     */
    uint64_t grant;
    uint64_t waited_ns;
    double energy_j;
    char text[200];
};

/* The byte of `users` that a process locks while it has a board open. */
static inline uint64_t sim_users_at(uint64_t board, uint64_t pid)
{
    return board << 32 | pid;
}

/* ---- the sequence lock ---- */

/* Copies n words protected by seq; false: the writer did not finish its change. */
static inline bool sim_seq_read(const uint64_t *seq, const void *from, void *to,
                                size_t words)
{
    const uint64_t *src = (const uint64_t *)from;
    uint64_t *dst = (uint64_t *)to;

    for (unsigned spin = 0; spin < 1000000; spin++) {
        uint64_t before = __atomic_load_n(seq, __ATOMIC_ACQUIRE);
        if (before & 1) {
            if (spin % 64 == 63) /* the writer may wait for this processor */
                (void)sched_yield();
            continue;
        }
        for (size_t i = 0; i < words; i++)
            dst[i] = __atomic_load_n(&src[i], __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(seq, __ATOMIC_RELAXED) == before)
            return true;
    }
    return false;
}

static inline void sim_seq_write(uint64_t *seq, void *to, const void *from, size_t words)
{
    const uint64_t *src = (const uint64_t *)from;
    uint64_t *dst = (uint64_t *)to;
    uint64_t was = __atomic_load_n(seq, __ATOMIC_RELAXED);

    __atomic_store_n(seq, was + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (size_t i = 0; i < words; i++)
        __atomic_store_n(&dst[i], src[i], __ATOMIC_RELAXED);
    __atomic_store_n(seq, was + 2, __ATOMIC_RELEASE);
}

#endif
