/* A simulated machine: its boards, who may set limits, what goes wrong when.
 * docs/machine-file.md says how it is written in YAML.
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
};

enum sim_may_set {
    SIM_MAY_ROOT, /* root and who stands in uids */
    SIM_MAY_ANYONE,
};

enum sim_fault_kind { SIM_FAULTS(NAME_ENUM) SIM_FAULT_K_N };

struct sim_fault {
    uint64_t at_ns; /* after the world's start; 0: at once */
    enum sim_fault_kind kind;
    unsigned board;  /* SIM_ALL_BOARDS: each */
    uint32_t mw;     /* SIM_FAULT_K_LIMIT */
    uint64_t for_ns; /* > 0: undone after so long (sim_fault_may_last) */
};
#define SIM_ALL_BOARDS UINT32_MAX

struct sim_machine_board {
    struct plant_board plant; /* a board of the catalogue, as the file changed it */
    double gain;              /* sensor's gain error: 1.03 reads 3 % high; 0: drawn */
    double speed_noise;       /* its speed wanders by this share */
    struct plant_trait trait; /* what sets it apart from others of its model */
    bool no_clock_locks;      /* requests to lock clocks answer "not supported" */
    bool ideal;               /* no gain error, offset or noise in its sensor */
    uint32_t limit_mw;        /* in force at the start; 0: the default limit */
    char uuid[96];            /* "": made from the seed */
};

/* A workload that the file describes: another one's numbers, with those replaced
 * that are not 0 (see plant/workload.h for what they mean).
 */
struct sim_workload {
    char name[32], like[32];
    char board[24]; /* a model; "": each */
    uint32_t steps;
    double gap_s, clock_s, memory_s; /* of an epoch */
    double dynamic_w, gap_w, static_w;
};

struct sim_machine {
    char name[80];
    char driver_version[80];
    uint64_t seed;           /* uuids, noise and sensor phases follow from it */
    uint64_t set_latency_ns; /* how long a set request takes; 0: as the board's model */
    enum sim_may_set may_set;
    uint32_t uids[SIM_UIDS_MAX]; /* who may beside root, under SIM_MAY_ROOT */
    size_t n_uids;
    struct sim_machine_board board[SIM_MACHINE_BOARDS_MAX];
    size_t n_boards;
    struct sim_workload workload[SIM_WORKLOADS_MAX];
    size_t n_workloads;
    struct sim_fault fault[SIM_FAULTS_MAX];
    size_t n_faults;
};

#define SIM_DRIVER_VERSION "570.00.00-simulated"

/* True for those that a duration ends: lost, hang, refuse, unload, stuck, ignore. */
bool sim_fault_may_last(enum sim_fault_kind kind);

/* count boards of one model, anyone may set limits, no faults. -EINVAL: no such
 * model (the text names those there are) or a count outside 1..64.
 */
int sim_machine_builtin(const char *model, unsigned count, struct sim_machine *ret,
                        uw_error *err);

/* Read a machine file; errors say "file:line: …". */
int sim_machine_read(const char *path, struct sim_machine *ret, uw_error *err);
/* The same from memory; name stands in the errors. */
int sim_machine_read_text(const char *name, const char *text, size_t len,
                          struct sim_machine *ret, uw_error *err);

/* "[BOARD] KIND [WATTS] [for TIME]" as `underwatt-sim fault` takes it, where BOARD
 * is an index or "all" (the default): "1 lost for 5s", "0 limit 200W", "reload".
 */
int sim_fault_parse(const char *text, struct sim_fault *ret, uw_error *err);

#endif
