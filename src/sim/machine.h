/* A simulated machine: its boards, who may set limits, and a schedule of faults.
 * docs/machine-file.md describes the YAML file.
 */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/names.h"
#include "plant/board.h"
#include "plant/gpu.h"
#include "underwatt/error.h"

enum {
    SIM_FAULTS_MAX = 256,
    SIM_UIDS_MAX = 32,
    SIM_MACHINE_BOARDS_MAX = 64,
    SIM_WORKLOADS_MAX = 32,
    SIM_MINOR_MAX = 1023, /* of a device file */
};

enum sim_may_set {
    SIM_MAY_ROOT, /* root and the users in uids */
    SIM_MAY_ANYONE,
};

enum sim_fault_kind { SIM_FAULTS(NAME_ENUM) SIM_FAULT_K_N };

struct sim_fault {
    uint64_t at_ns; /* after the world's start; 0: at once */
    enum sim_fault_kind kind;
    unsigned board;  /* SIM_ALL_BOARDS: all */
    uint32_t mw;     /* SIM_FAULT_K_LIMIT */
    uint64_t for_ns; /* > 0: ends after this time (sim_fault_may_last) */
};
#define SIM_ALL_BOARDS UINT32_MAX

struct sim_machine_board {
    struct plant_board plant; /* a board of the catalogue, with the file's changes */
    double gain;              /* sensor's gain error: 1.03 reads 3 % high; 0: drawn */
    double speed_noise;       /* relative random variation of its speed */
    double speed_memory_s;    /* time constant of this variation; 0: none */
    struct plant_trait trait; /* difference from other boards of its model */
    bool no_clock_locks;      /* requests to lock clocks answer "not supported" */
    bool ideal;               /* no gain error, offset or noise in its sensor */
    uint32_t limit_mw;        /* in force at the start; 0: the default limit */
    char uuid[96];            /* "": derived from the seed */
    uint32_t minor;           /* of its device file */
    bool mig;                 /* in MIG mode, without slices */
};

/* A workload described in the file: the numbers of workload `like`, replaced where not 0
 * here (see plant/workload.h).
 */
struct sim_workload {
    char name[32], like[32];
    char board[24]; /* a model; "": all */
    uint32_t steps;
    double gap_s, clock_s, memory_s; /* seconds per epoch */
    double dynamic_w, gap_w, static_w;
};

struct sim_machine {
    char name[80];
    char driver_version[80];
    uint64_t seed;           /* uuids, noise and sensor phases are derived from it */
    uint64_t set_latency_ns; /* duration of a set request; 0: the board model's */
    enum sim_may_set may_set;
    uint32_t uids[SIM_UIDS_MAX]; /* other users with permission, under SIM_MAY_ROOT */
    size_t n_uids;
    struct sim_machine_board board[SIM_MACHINE_BOARDS_MAX];
    size_t n_boards;
    struct sim_workload workload[SIM_WORKLOADS_MAX];
    size_t n_workloads;
    struct sim_fault fault[SIM_FAULTS_MAX];
    size_t n_faults;
};

#define SIM_DRIVER_VERSION "570.00.00-simulated"

/* Whether the fault may have a duration: lost, hang, refuse, unload, stuck, ignore. */
bool sim_fault_may_last(enum sim_fault_kind kind);

/* count boards of one model; anyone may set limits, no faults. -EINVAL: no such model
 * (the text lists the models) or a count outside 1..64.
 */
/* Fails, and says which board models there are. */
int sim_machine_no_board(const char *model, uw_error *err);
int sim_machine_builtin(const char *model, unsigned count, struct sim_machine *ret,
                        uw_error *err);

/* Reads a machine file; error texts begin with "file:line:". */
int sim_machine_read(const char *path, struct sim_machine *ret, uw_error *err);
/* The same from memory; name is used in error texts. */
int sim_machine_read_text(const char *name, const char *text, size_t len,
                          struct sim_machine *ret, uw_error *err);

/* Parses "[BOARD] KIND [WATTS] [for TIME]" of `underwatt-sim fault`, where BOARD is an
 * index or "all" (the default): "1 lost for 5s", "0 limit 200W", "reload".
 */
int sim_fault_parse(const char *text, struct sim_fault *ret, uw_error *err);

#endif
