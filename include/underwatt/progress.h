/* The progress page: how a job tells Underwatt what it has done.
 *
 * `underwatt run` makes a file of UW_PROGRESS_BYTES and passes its path in the
 * environment variable UNDERWATT_PROGRESS.  Each process of the job maps it
 * (shared, read-write), takes a slot of its own (LOCAL_RANK where there is one,
 * else the first whose pid is 0) and writes there.  Numbers are little-endian
 * and naturally aligned; a single writer a slot, no locks.  Time is
 * CLOCK_BOOTTIME in nanoseconds.  The job's progress is its slowest live slot.
 *
 * Who touches the file (futimens(2)) after a change of phase is heard at once where
 * that matters; else it is seen within 20 ms there.
 */
#ifndef UNDERWATT_PROGRESS_H
#define UNDERWATT_PROGRESS_H

#include <stdint.h>

enum {
    UW_PROGRESS_BYTES = 4096,
    UW_PROGRESS_SLOTS = 63, /* slot i lies at byte 64 x (i + 1) */
    UW_PROGRESS_VERSION = 1,
};
#define UW_PROGRESS_MAGIC "UWPROGR1"

enum uw_phase {
    UW_PHASE_UNKNOWN = 0,
    UW_PHASE_TRAIN = 1,
    UW_PHASE_VALIDATE = 2,
    UW_PHASE_LOAD = 3,
    UW_PHASE_CHECKPOINT = 4,
    UW_PHASE_STARTUP = 5,
};

struct uw_progress_slot {
    uint64_t pid;          /* 0: free */
    uint64_t steps;        /* whole steps done since the start */
    uint64_t last_step_ns; /* when the last of them ended; write it before steps */
    uint32_t phase;        /* enum uw_phase */
    uint32_t reserved[9];  /* the Python package's */
};

struct uw_progress_page {
    char magic[8];         /* UW_PROGRESS_MAGIC */
    uint32_t version;      /* UW_PROGRESS_VERSION */
    uint32_t slots;        /* UW_PROGRESS_SLOTS */
    uint32_t reserved[12]; /* likewise */
    struct uw_progress_slot slot[UW_PROGRESS_SLOTS];
};

#endif
