/* Whether a board works for the job that has it, from one stretch of time after the
 * other: working, or one of the classes of waste (names.h: WASTE_CLASSES).  Pure.
 *
 * What is uncertain counts as working: a board without readings of its utilisation, one
 * that draws more than an idle board can, the time of a pause up to limits.after_ns, and
 * a board whose users have just changed.  Waste is thus a lower bound.  Reasons and
 * defaults are in docs/waste.md.
 */
#ifndef CORE_JOB_WASTE_H
#define CORE_JOB_WASTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/names.h"

struct waste_limits {
    uint64_t after_ns; /* no kernel for longer is idle, for less a pause; 0: off */
    double under;      /* utilisation, or share of the power, that is too little */
    uint64_t under_ns; /* on average over this time */
};
/* The defaults; docs/design/waste.md says why these. */
enum { WASTE_AFTER_S = 300, WASTE_UNDER_S = 900 };
#define WASTE_UNDER_SHARE 0.1

/* A board as it is known. */
struct waste_board {
    double idle_w;  /* of nobody's; 0: unknown */
    double limit_w; /* its default limit; 0: unknown */
    double cap_w;   /* in force; 0: unknown */
};

/* One stretch of the board's time. */
struct waste_seen {
    uint64_t begin_ns, end_ns;
    unsigned n;       /* readings of the utilisation; 0: none */
    double mean, top; /* of them, 0 to 1 */
    double power_w;   /* mean, of the meter; negative: unknown */
};

enum { WASTE_SLOTS = 16 };

/* What is remembered of a board; all 0 at first. */
struct waste_track {
    uint64_t end_ns;   /* of the last stretch; 0: none */
    uint64_t read_ns;  /* end of the last one with readings */
    uint64_t quiet_ns; /* since when nothing runs; 0: something does */
    struct waste_slot {
        double s, util_s, power_j;
    } slot[WASTE_SLOTS]; /* a ring */
    unsigned at;
};

/* The state of a board in a stretch. */
enum waste_state { WASTE_STATE_BUSY, WASTE_STATE_QUIET, WASTE_STATE_UNDER };

/* Takes the next stretch.  anew: other jobs have the board than in the stretch before,
 * whose time is not theirs.
 */
enum waste_state waste_step(struct waste_track *t, const struct waste_limits *limits,
                            const struct waste_board *board, const struct waste_seen *s,
                            bool anew);

/* The class of the stretch for a job that has the board.  has_process: on the board, or
 * that is not known.
 */
enum waste_class waste_of_job(enum waste_state state, bool has_process);

/* The board's power as a part of what lies between idle and its limit; negative: unknown.
 */
double waste_share(const struct waste_board *board, double power_w);

#endif
