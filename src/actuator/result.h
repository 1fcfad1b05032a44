/* The actuator's answers, the same on the wire, in the program and in virtual time. */
#ifndef ACTUATOR_RESULT_H
#define ACTUATOR_RESULT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/names.h"
#include "gpu/gpu.h"

enum actuator_result { ACTUATOR_RESULTS(NAME_ENUM) ACTUATOR_N_RESULTS };

/* Why another program's limit is in force, as far as the driver reports. */
enum actuator_why {
    ACTUATOR_WHY_OTHER = 0, /* another program has set it */
    ACTUATOR_WHY_RELOADED,  /* the driver was reloaded */
    ACTUATOR_N_WHYS,
};

/* The range in which limits may be set: the intersection of root's configuration and the
 * board's own range.  The original limit is always allowed, and is min_mw where it is
 * lower.
 */
struct actuator_range {
    uint32_t min_mw, max_mw; /* 0, 0: unknown */
};

/* The same range as root's configuration states it, for each end.  Both 0: the board's
 * own end.
 */
struct actuator_rule {
    uint32_t mw;
    uint32_t ppm; /* of the board's default limit */
};

struct actuator_reply {
    enum actuator_result result;
    char uuid[96];
    uint32_t enforced_mw;     /* the limit in force, read back; 0: unknown */
    uint32_t original_mw;     /* the limit found by hold; 0: unknown */
    struct gpu_limits limits; /* the board's range; all 0: unknown */
    uint32_t
        locked_mhz; /* upper end of Underwatt's lock of the SM clock; 0: not locked */
    pid_t pid;      /* ACTUATOR_TAKEN: pid of the holder (0: unknown) */
    enum actuator_why why; /* of ACTUATOR_YIELDED */
    char text[200];        /* one line for people unless DONE; names the board */
    /* Revision 1; an older actuator leaves these 0. */
    uint32_t set_mw; /* the limit that is set: above enforced_mw where heat or the board's
                        management enforces a lower limit; 0: unknown */
    struct actuator_range
        range; /* the range of this board, in answers to hold, set and release */
    /* Revision 3, in ACTUATOR_EVENT_BOARD. */
    struct actuator_rule from, to;
};

/* Kernel time. */
enum {
    ACTUATOR_RENEW_MS = 550, /* longest interval between renewals while a board is held */
    ACTUATOR_LEASE_MS = 2500,
    ACTUATOR_WRITE_GAP_MS = 50,
    ACTUATOR_HOLD_GAP_MS = 200, /* least interval between holds of one board; a hold that
                                   comes sooner waits */
    ACTUATOR_PASSING_MS = 5000, /* how long a hold waits for a board that is being
                                   restored before it is answered TAKEN */
};

#endif
