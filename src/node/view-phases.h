/* What the view has of a job's phases (node/phase-watch.h). */
#ifndef NODE_VIEW_PHASES_H
#define NODE_VIEW_PHASES_H

#include <stdbool.h>

#include "core/policy/phase-book.h"
#include "core/policy/phase-cost.h"
#include "core/policy/phase-curve.h"

/* How long a job's phase takes, and what pays. */
struct view_phases {
    const struct phase_book *book; /* NULL: nothing is known; borrowed */
    struct phase_latency latency;  /* of the slowest of its boards */
    double break_even_s;
    bool costly; /* see struct phase_returns: off */
    double lost, worst_s;
    unsigned returns, late;
    struct phase_compared compared; /* caps of phases against a static cap */
    bool no_gain;                   /* which saves as much */
};

#endif
