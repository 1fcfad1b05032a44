/* What the actuator answers, the same on the wire, in the program and in virtual
 * time.
 */
#ifndef ACTUATOR_RESULT_H
#define ACTUATOR_RESULT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/names.h"
#include "gpu/gpu.h"

enum actuator_result { ACTUATOR_RESULTS(NAME_ENUM) ACTUATOR_N_RESULTS };

/* Why another's limit is there, as far as the driver tells. */
enum actuator_why {
    ACTUATOR_WHY_OTHER = 0, /* somebody has set it */
    ACTUATOR_WHY_RELOADED,  /* the driver was loaded anew since */
    ACTUATOR_N_WHYS,
};

/* Where limits may be set, whatever the board itself allows: root's configuration and the
 * board's own range.  The original may always be set, and is min_mw where it is lower.
 */
struct actuator_range {
    uint32_t min_mw, max_mw; /* 0, 0: unknown */
};

struct actuator_reply {
    enum actuator_result result;
    char uuid[96];
    uint32_t enforced_mw;     /* the limit in force, read back; 0: unknown */
    uint32_t original_mw;     /* the limit found by hold; 0: unknown */
    struct gpu_limits limits; /* the board's range; all 0: unknown */
    uint32_t locked_mhz;      /* SM clocks are locked by us to at most this; 0: are not */
    pid_t pid;                /* ACTUATOR_TAKEN: who holds it (0: unknown) */
    enum actuator_why why;    /* of ACTUATOR_YIELDED */
    char text[200];           /* one line for a human unless DONE; names the board */
    /* Revision 1; an older actuator leaves these 0. */
    uint32_t set_mw; /* the limit that is set: above enforced_mw where heat or the board's
                      * management holds that down; 0: unknown */
    struct actuator_range range; /* in force for this board: of hold, set and release */
};

/* Kernel time. */
enum {
    ACTUATOR_RENEW_MS = 550, /* at the latest, where a board is held */
    ACTUATOR_LEASE_MS = 2500,
    ACTUATOR_WRITE_GAP_MS = 50,
    ACTUATOR_HOLD_GAP_MS = 200, /* of one board's holds; one that is sooner waits */
    ACTUATOR_PASSING_MS = 5000, /* a hold waits for a board that is being restored, as
                                 * long as that may take, before it is TAKEN */
};

#endif
