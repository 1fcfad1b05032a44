/* What the injection library (libunderwatt-cuda.so) counts, behind the progress page in
 * the same file: kernel and graph launches of each process, by stream.
 *
 * The file of UNDERWATT_PROGRESS is UW_LAUNCHES_END bytes long where launches are to be
 * counted; a file of UW_PROGRESS_BYTES has no place for them, and none are.  Slot i lies
 * at byte UW_LAUNCHES_AT + 256 x (i + 1).  A process takes a slot by writing its pid over
 * a 0 (or over its own, or over that of a process that is dead) and adds to the counters
 * with atomic instructions; counters never go back and are never set to 0, so only
 * differences under one (pid, since_ns) mean anything.  Numbers are little-endian.
 */
#ifndef UNDERWATT_LAUNCHES_H
#define UNDERWATT_LAUNCHES_H

#include <stdint.h>

#include "underwatt/progress.h"

enum {
    UW_LAUNCHES_AT = UW_PROGRESS_BYTES,
    UW_LAUNCHES_END = UW_LAUNCHES_AT + 16384,
    UW_LAUNCHES_VERSION = 1,
    UW_LAUNCHES_SLOTS = 63,
    UW_LAUNCHES_STREAMS = 16, /* kernels: streams are folded onto so many counters … */
    UW_LAUNCHES_GRAPHS = 8,   /* … and graphs onto so many */
};
#define UW_LAUNCHES_MAGIC "UWLAUNC1"

enum uw_launches_state {
    UW_LAUNCHES_BEGUN = 1,  /* it has a slot, and has not come further */
    UW_LAUNCHES_ALONE = 2,  /* counts, as CUPTI's one subscriber */
    UW_LAUNCHES_SHARED = 3, /* counts, others may subscribe as well */
    UW_LAUNCHES_ABSENT = 4, /* no CUPTI there */
    UW_LAUNCHES_ASIDE = 5,  /* CUPTI said no (result); nothing is counted */
};

struct uw_launches_slot {
    uint64_t pid;      /* 0: free */
    uint64_t since_ns; /* CLOCK_BOOTTIME when it was taken */
    uint32_t state;    /* enum uw_launches_state */
    uint32_t cupti;    /* its cuptiGetVersion() */
    uint32_t result;   /* the CUptiResult that made it stand aside */
    uint32_t reserved[9];
    uint64_t kernels[UW_LAUNCHES_STREAMS];
    uint64_t graphs[UW_LAUNCHES_GRAPHS];
};

struct uw_launches {
    char magic[8];    /* UW_LAUNCHES_MAGIC */
    uint32_t version; /* UW_LAUNCHES_VERSION */
    uint32_t slots;   /* UW_LAUNCHES_SLOTS */
    uint32_t reserved[60];
    struct uw_launches_slot slot[UW_LAUNCHES_SLOTS];
};

#endif
