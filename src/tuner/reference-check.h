/* Reference checks: while a searched cap is held, the reference cap is measured again
 * from time to time, so that the saving is measured (core/optimum/counterfactual.h).
 * Decides when a check is due, its duration, and the weight of its window.  Pure.
 */
#ifndef TUNER_REFERENCE_CHECK_H
#define TUNER_REFERENCE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/optimum/counterfactual.h"
#include "core/optimum/search.h"
#include "core/progress/window.h"
#include "tuner/savings.h"

/* A capped board is cooler and leaks less; its temperature needs one to two minutes to
 * adapt (time constants of 20 to 60 s).
 */
#define REFERENCE_CHECK_SETTLE_S 60.0

struct reference_check {
    uint64_t since_ns; /* begin of the last check */
    double takes_s;    /* its expected duration */
    double
        settle_s; /* BRIEF_SETTLE_S: the check does not wait until the boards are warm */
    double most_windows; /* longest window, as a multiple of the shortest one */
    struct reference_checks checks; /* checks made so far */
};

/* When the check takes too long, because of a pause of the job or long steps. */
uint64_t reference_check_late_ns(const struct reference_check *c);
/* Ends the check under way, with or without a window. */
void reference_check_end(struct reference_check *c, uint64_t now_ns);

/* Converts a window of the hold for counterfactual.h. */
struct pair_seen reference_check_hold_seen(const struct search_window *w,
                                           uint64_t now_ns);
/* The same for a window at the reference cap, with an error for boards that are still
 * cool.  held: the savings with the last hold, or NULL; trains_ns: begin of the training;
 * closed: the window.
 */
struct pair_seen reference_check_seen(const struct savings *held, uint64_t trains_ns,
                                      const struct window *closed,
                                      const struct search_window *w, uint64_t now_ns);

#endif
