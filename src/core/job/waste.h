/* Judges stretch by stretch whether a board works for the job that has it: working, or
 * one of the classes of waste (names.h: WASTE_CLASSES).  Pure.
 *
 * What is uncertain counts as working: a board without readings of its utilisation, one
 * that draws more than an idle board can, the time of a pause up to limits.after_ns, and
 * a board whose users have just changed.  Waste is thus a lower bound.  docs/waste.md has
 * reasons and defaults.
 */
#ifndef CORE_JOB_WASTE_H
#define CORE_JOB_WASTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/names.h"

struct waste_limits {
    uint64_t after_ns; /* without a kernel for longer the board is idle, for less it
                          pauses; 0: off */
    double under; /* utilisation, or share of the power, below which a board is underused,
                     … */
    uint64_t under_ns; /* … on average over this time */
};
/* The defaults; docs/design/waste.md has the reasons. */
enum { WASTE_AFTER_S = 300, WASTE_UNDER_S = 900 };
#define WASTE_UNDER_SHARE 0.1

/* What is known of a board. */
struct waste_board {
    double idle_w;  /* power of an idle board; 0: unknown */
    double limit_w; /* the board's default limit; 0: unknown */
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

/* The state kept for a board; zeroed at first. */
struct waste_track {
    uint64_t end_ns;   /* of the last stretch; 0: none */
    uint64_t read_ns;  /* end of the last one with readings */
    uint64_t quiet_ns; /* since when nothing runs; 0: something runs */
    struct waste_slot {
        double s, util_s, power_j;
    } slot[WASTE_SLOTS]; /* a ring */
    unsigned at;
};

/* The state of a board in a stretch. */
enum waste_state { WASTE_STATE_BUSY, WASTE_STATE_QUIET, WASTE_STATE_UNDER };

/* Takes the next stretch.  anew: the jobs on the board differ from those of the stretch
 * before, whose time does not count for them.
 */
enum waste_state waste_step(struct waste_track *t, const struct waste_limits *limits,
                            const struct waste_board *board, const struct waste_seen *s,
                            bool anew);

/* The class of the stretch for a job that has the board.  has_process: a process of the
 * job is on the board, or this is unknown.
 */
enum waste_class waste_of_job(enum waste_state state, bool has_process);

/* The board's power as a fraction of the range from idle power to its limit; negative:
 * unknown.
 */
double waste_share(const struct waste_board *board, double power_w);

#endif
