/* A simulated machine: its boards, who may set limits, what goes wrong when.
 * docs/machine-file.md says how it is written in YAML.
 */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "underwatt/error.h"

enum {
    SIM_FAULTS_MAX = 256,
    SIM_UIDS_MAX = 32,
    SIM_MACHINE_BOARDS_MAX = 64,
};

enum sim_may_set {
    SIM_MAY_ROOT, /* root and who stands in uids */
    SIM_MAY_ANYONE,
};

enum sim_fault_kind {
    SIM_FAULT_K_LOST,    /* the board falls off the bus … */
    SIM_FAULT_K_FOUND,   /* … and comes back */
    SIM_FAULT_K_HANG,    /* calls on the board block … */
    SIM_FAULT_K_RELEASE, /* … and return again */
    SIM_FAULT_K_REFUSE,  /* set requests are refused … */
    SIM_FAULT_K_ACCEPT,  /* … and accepted again */
    SIM_FAULT_K_LIMIT,   /* somebody else sets the limit to mw */
    SIM_FAULT_K_RELOAD,  /* the driver is loaded anew: limits, counters, lock reset */
    SIM_FAULT_K_UNLOAD,  /* the driver is unloaded … (K_RELOAD brings it back) */
    SIM_FAULT_K_STUCK,   /* the energy counter stands still … */
    SIM_FAULT_K_UNSTUCK, /* … and jumps to where it belongs */
    SIM_FAULT_K_N,
};

/* "lost", "found", … as the machine file and `underwatt-sim fault` write them. */
extern const char *const sim_fault_names[SIM_FAULT_K_N];

struct sim_fault {
    uint64_t at_ns; /* after the world's start; 0: at once */
    enum sim_fault_kind kind;
    unsigned board;  /* SIM_ALL_BOARDS: each */
    uint32_t mw;     /* SIM_FAULT_K_LIMIT */
    uint64_t for_ns; /* > 0: undone after so long (lost, hang, refuse, unload, stuck) */
};
#define SIM_ALL_BOARDS UINT32_MAX

/* What the file may change of a board model; a value that was not given keeps
 * the model's (has: enum sim_board_has).
 */
enum sim_board_has {
    SIM_BOARD_GAIN = 1u << 0,
    SIM_BOARD_NOISE = 1u << 1,
    SIM_BOARD_IDLE = 1u << 2,
    SIM_BOARD_COUNTER = 1u << 3,
    SIM_BOARD_AMBIENT = 1u << 4,
    SIM_BOARD_RESISTANCE = 1u << 5,
    SIM_BOARD_TAU = 1u << 6,
    SIM_BOARD_LIMIT = 1u << 7,
    SIM_BOARD_UUID = 1u << 8,
};

struct sim_machine_board {
    char model[24]; /* "v100", "rtx6000", "a100", "h100", "b200" */
    uint32_t has;
    double gain;         /* sensor's gain error: 1.03 reads 3 % high */
    double noise_w;      /* standard deviation of a power sample */
    double idle_w;       /* without a job */
    bool counter_sensed; /* the counter sums what the sensor saw, not true power */
    double ambient_c, resistance_kpw, tau_s;
    uint32_t limit_mw; /* limit at the driver's load; default: the board's default */
    char uuid[96];
};

struct sim_machine {
    char name[80];
    char driver_version[80];
    uint64_t seed;           /* uuids, noise and sensor phases follow from it */
    uint64_t set_latency_ns; /* how long a set request takes: about 32 ms */
    enum sim_may_set may_set;
    uint32_t uids[SIM_UIDS_MAX];
    size_t n_uids;
    bool restore_on_unload; /* unused boards forget their limit (persistence off) */
    struct sim_machine_board board[SIM_MACHINE_BOARDS_MAX];
    size_t n_boards;
    struct sim_fault fault[SIM_FAULTS_MAX];
    size_t n_faults;
};

/* count boards of one model, anyone may set limits, no faults. -EINVAL: no such
 * model (the text names those there are) or a count outside 1..64.
 */
int sim_machine_builtin(const char *model, unsigned count, struct sim_machine *ret,
                        uw_error *err);

/* Read a machine file; errors say "file:line: …". */
int sim_machine_read(const char *path, struct sim_machine *ret, uw_error *err);

/* "BOARD KIND [WATTS] [for DURATION]" as `underwatt-sim fault` takes it; BOARD is
 * an index or "all".
 */
int sim_fault_parse(const char *text, struct sim_fault *ret, uw_error *err);

#endif
