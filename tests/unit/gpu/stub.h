/* A stand-in for libnvidia-ml.so, told what to answer through `stub`.  Built in
 * several generations: each has the functions of its time.
 */
#ifndef TESTS_UNIT_GPU_STUB_H
#define TESTS_UNIT_GPU_STUB_H

#include <stdatomic.h>
#include <stdint.h>

enum { STUB_BOARDS = 64, STUB_PROCS = 300, STUB_MIG = 12345 };

struct stub_proc {
    uint32_t pid;
    uint64_t bytes;
};

struct stub_board {
    unsigned by_index, uuid; /* NVML results of the first calls … */
    unsigned all;            /* … and of all others, 0: they work */
    unsigned energy, fields, field, constraints, enforced, reasons, util, temp, clock,
        set, procs;   /* result of one kind of calls */
    atomic_bool hang; /* calls on this board do not return */
    unsigned power_mw, average_mw, instant_mw, requested_mw, enforced_mw, min_mw, max_mw,
        default_mw, locked_min, locked_max, mig, persistence;
    unsigned long long energy_mj, reason_bits;
    struct stub_proc compute[STUB_PROCS], graphics[STUB_PROCS];
    unsigned n_compute, n_graphics;
    unsigned grow; /* the list is longer by so many at its second look */
};

struct stub {
    unsigned init;
    unsigned n;
    atomic_int inits, shutdowns;
    atomic_int bare; /* begun without attaching */
    atomic_uint_least64_t attached;
    uint64_t load_id;
    const char *driver;
    const char *name;      /* of all boards; NULL: "Stub N" */
    unsigned last_call_v2; /* the limit was set with the newer function */
    struct stub_board board[STUB_BOARDS];
};

#endif
