/* The phases of a job in the view (node/phase-watch.h). */
#ifndef NODE_VIEW_PHASES_H
#define NODE_VIEW_PHASES_H

#include <stdbool.h>

#include "core/policy/phase-book.h"
#include "core/policy/phase-cost.h"
#include "core/policy/phase-curve.h"

/* The length of a job's phases, and whether capping them pays. */
struct view_phases {
    const struct phase_book *book; /* NULL: unknown; borrowed */
    struct phase_latency latency;  /* of the slowest of its boards */
    double break_even_s;
    bool costly; /* see struct phase_returns: off */
    double lost, worst_s;
    unsigned returns, late;
    struct phase_compared compared; /* caps of phases against a static cap */
    bool no_gain;                   /* the static cap saves as much */
};

#endif
