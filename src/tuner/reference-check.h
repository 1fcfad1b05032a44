/* Reference checks: while a searched cap is held, the reference cap is measured again now
 * and then, so that what is saved is measured (core/optimum/counterfactual.h).  When one
 * is due, what it takes, and what its window is worth.  Pure.
 */
#ifndef TUNER_REFERENCE_CHECK_H
#define TUNER_REFERENCE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/optimum/counterfactual.h"
#include "core/optimum/search.h"
#include "core/progress/window.h"
#include "tuner/savings.h"

/* A board that was capped is cool and leaks less: it takes a minute or two to be as warm
 * as it would have been (time constants of 20 to 60 s).
 */
#define REFERENCE_CHECK_SETTLE_S 60.0

struct reference_check {
    bool on; /* the hold is left for one, since … */
    uint64_t since_ns;
    double takes_s;       /* … and it should take this long */
    bool brief;           /* it does not wait until the boards are warm */
    bool cools;           /* one is over: the hold's boards are warmer than before it */
    struct visits visits; /* made so far */
};

/* The hold as it is when a check may begin. */
struct reference_check_hold {
    const struct savings *savings; /* of the regime under way */
    double trained_s;              /* in all regimes */
    double window_s;               /* the shortest window of the hold; its last one: */
    double kept_s;
};
/* True: one begins now. */
bool reference_check_begin(struct reference_check *c,
                           const struct reference_check_hold *hold, uint64_t now_ns);
/* To the reference cap, which is raised to at once. */
struct search_step reference_check_step(const struct reference_check *c,
                                        uint32_t reference_mw);
/* It takes too long: a pause of the job, or steps that are too long. */
bool reference_check_is_late(const struct reference_check *c, uint64_t now_ns);
/* It is over, with or without a window; nothing where none was on. */
void reference_check_end(struct reference_check *c, uint64_t now_ns);

/* A window of the hold, as savings compare it. */
struct pair_seen reference_check_hold_seen(const struct search_window *w,
                                           uint64_t now_ns);
/* A window at the reference cap, which boards come to cooler than they would be.  held:
 * the savings with the last hold, or NULL; trains_ns: since when the job trains; closed:
 * the window.
 */
struct pair_seen reference_check_seen(const struct savings *held, uint64_t trains_ns,
                                      const struct window *closed,
                                      const struct search_window *w, uint64_t now_ns);

#endif
