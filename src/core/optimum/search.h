/* The search for a job's best cap: a pure state machine.  It is told the boards'
 * range and each finished window, and says which cap to go to next and how, or
 * which to hold, and why.  It reads no clock and sets nothing.
 *
 *     search_new(&setup, &s, &err);
 *     loop:
 *         step = search_step(s);
 *         SEARCH_MEASURE: walk to step->cap_mw as step says, wait for it to
 *                         settle, measure whole steps of work, search_on_window()
 *         SEARCH_HOLD:    walk there and stay; windows may still be told, and
 *                         search_look() asked for
 *
 * All GPUs of a job get the same cap; time and energy are the job's (energy of
 * all its GPUs) a unit of work, `gpus` says how many share it.
 *
 * slowdown:F: where windows have errors, a cap is kept only if its time is expected
 * within F and, 99 times of 100 (after a look more surely), within F and 0.2 % of it;
 * where they have none, only if it was measured within F.
 *
 * Safety (what it never does on its own account): name a cap below the soft
 * floor, 0.50 x demand unless configured, below the board's minimum, above the
 * original or above a hard limit; a first cap below 0.87 of the observed peak
 * (step->first_mw), a way down steeper than the ramp; more than max_windows
 * windows of ordinary length before it holds, or SEARCH_LOOK_WINDOWS more for each look.
 * A hard limit may push under the soft floor, never under the board's minimum.
 */
#ifndef CORE_OPTIMUM_SEARCH_H
#define CORE_OPTIMUM_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "core/optimum/goal.h"
#include "underwatt/error.h"

#define SEARCH_FLOOR 0.50 /* of the demand */
#define SEARCH_FIRST 0.87 /* of the observed peak */
#define SEARCH_RAMP 0.005 /* of the default limit a second */
#define SEARCH_SETTLE_S 1.0
enum { SEARCH_WINDOWS_MAX = 64, SEARCH_EARLIER_MAX = 10, SEARCH_NO_LIMIT = 0 };
enum { SEARCH_LOOK_WINDOWS = 6 };

struct prior; /* core/optimum/prior.h */

struct search_setup {
    struct goal goal;
    uint32_t min_mw, max_mw, default_mw; /* the board's; the tightest of the job's */
    uint32_t original_mw;                /* the limit found: the reference cap */
    uint32_t grain_mw;    /* caps are multiples of this; 0: 1000 (whole watts) */
    uint32_t hard_mw;     /* highest cap allowed now; SEARCH_NO_LIMIT: any */
    unsigned gpus;        /* GPUs that share time and energy; 0: 1 */
    double floor;         /* soft floor as a fraction of the demand; 0: SEARCH_FLOOR */
    double ramp;          /* fraction of the default limit a second; 0: SEARCH_RAMP */
    unsigned max_windows; /* of ordinary length until it must hold, the reference
                             included; 0: 24 */
    const struct prior *prior; /* what curves look like; NULL: prior_recorded */
};

/* A finished window of whole units of work at a settled cap. */
struct search_window {
    uint32_t cap_mw; /* really in force (read back), lowest of the job's GPUs */
    double time_s;   /* a unit of work */
    double energy_j; /* a unit of work, all GPUs of the job */
    double time_rse; /* relative standard errors; 0: exact … */
    double energy_rse;
    double peak_w;   /* 99th percentile of 100 ms power, the highest GPU's; 0 unknown */
    unsigned length; /* search_step's; 0: 1 */
};

enum search_kind {
    SEARCH_MEASURE,
    SEARCH_HOLD,
};

enum { SEARCH_WHY_MAX = 200 };

struct search_step {
    enum search_kind kind;
    uint32_t cap_mw;
    /* The way: raising is at once.  Lowering from a cap above first_mw goes to
     * first_mw at once and stays there until check_steps units of work are
     * done, then down by ramp_mw_s milliwatts a second; where urgent is set (a
     * hard limit) at once all the way.
     */
    uint32_t first_mw;
    double ramp_mw_s;
    unsigned check_steps;
    bool urgent;
    /* A window begins when both have passed since cap_mw came into force. */
    double settle_s;
    unsigned settle_steps;
    unsigned length;          /* as long as so many ordinary windows: 1 to 4 */
    char why[SEARCH_WHY_MAX]; /* one line for a human */
};

struct search;

/* -EINVAL or -ERANGE with a text that names the value and the limit; -ENOMEM. */
int search_new(const struct search_setup *setup, struct search **ret, uw_error *err);
void search_free(struct search *s);
DEFINE_AUTO(struct search *, search_free);

/* What to do now; valid until the next call that tells it something. */
const struct search_step *search_step(const struct search *s);

/* A window is finished, at whatever cap it was.  -EINVAL (nothing changed): a
 * value is not finite and positive, an error is negative.  While holding, a
 * window adds to what is known and does not end the hold.
 */
int search_on_window(struct search *s, const struct search_window *w, uw_error *err);
/* A window of an earlier run of the same job, told before any of this run: it tells the
 * shape of the curve, never its height, and no more than this run's windows bear out:
 * once four caps of this run tell, all that does not fit them is forgotten.  No cap is
 * kept that was not measured near in this run.  demand_w: one GPU's mean
 * power at the reference then.  -EINVAL (nothing changed): as search_on_window(),
 * demand_w is not positive, or a window of this run was told before.  Of more than
 * SEARCH_EARLIER_MAX caps the first count.
 */
int search_on_earlier(struct search *s, const struct search_window *w, double demand_w,
                      uw_error *err);
/* The job made no progress at this cap after a step down: goes up, and never
 * again to this cap or below.
 */
void search_on_stall(struct search *s, uint32_t cap_mw);
/* Caps above mw are forbidden from now on; SEARCH_NO_LIMIT lifts it. */
void search_on_hard_limit(struct search *s, uint32_t mw);
/* Time or energy a unit of work has changed for good.  now: a window of it, at the cap
 * that was held.  Where the job is as it was in a regime of before, what was found then
 * is held again at once; else measures the reference anew and looks, with the shape of
 * the curve of before to go by.  NULL: a unit of work is another thing now, and no regime
 * of before comes back.
 */
void search_on_change(struct search *s, const struct search_window *now);
/* A cap that was found before (by a search that this one was told the windows of): holds
 * it and looks no further, until a change.
 */
void search_on_found(struct search *s, uint32_t cap_mw);
/* In a hold: measures the middle of the widest gap between this run's measured caps, down
 * to the lowest allowed (look.h), of those where the goal's value is expected to be worse
 * than the best by no more than this part of it; then proposes again: holds what was
 * measured to be best, by up to SEARCH_LOOK_WINDOWS windows in all.  What drifted since
 * the hold began (its last windows against all of them) is taken out of what windows from
 * then on say.  False: no hold, no such gap, no room for another cap, or a goal that it
 * would not serve (time); nothing changed.
 *
 * slowdown:F: first proposes again, with all that the hold's windows tell, what is worth
 * its price in a job of an hour: the step may be a window at any cap, the reference too,
 * or at once the hold of a better one (of one that is allowed, where the hold's cap is no
 * more).  Where that is nothing, a gap as above, whose time, too, is expected to be over
 * the bound by no more than this part.  False as well until the hold has eight windows,
 * and where their time is not what was measured at its cap before them: it can be
 * compared with the reference no more.
 */
bool search_look(struct search *s, double most);

/* ---- what is known ---- */

enum search_memory { /* of an earlier run */
                     SEARCH_MEMORY_NONE,
                     SEARCH_MEMORY_KEPT, /* there is one, and nothing speaks against it */
                     SEARCH_MEMORY_DENIED, /* this run's caps did not fit it: it is
                                              forgotten */
};

struct search_result {
    bool has_reference;
    uint32_t reference_mw; /* the original, or the highest cap allowed then */
    double demand_w;       /* mean power at the reference, one GPU */
    double peak_w;
    uint32_t floor_mw;
    uint32_t best_mw;     /* what it would hold now */
    double best_time_s;   /* expected there … */
    double best_energy_j; /* … a unit of work */
    double best_time_rse; /* slowdown:F: of best_time_s over ref_time_s, as it was when
                             this was chosen; 0: exact, or another goal */
    double ref_time_s, ref_energy_j;
    unsigned caps, windows; /* measured since the start or the last change */
    bool measured;          /* best_mw itself was measured */
    enum search_memory memory;
};
void search_result(const struct search *s, struct search_result *ret);
/* What was measured since the start or the last change, a window a cap (its length: all
 * of them), the reference first; so many, `most` at the most.
 */
size_t search_known(const struct search *s, struct search_window *ret, size_t most);

#endif
