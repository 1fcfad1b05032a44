/* The search for a job's best cap: a pure state machine.  Its input is the boards'
 * range and each finished window; its output is the next cap to measure or the cap
 * to hold, and the reason.  It reads no clock and sets nothing.  Explained in
 * docs/design/search-quality.md.
 *
 *     search_new(&setup, &s, &err);
 *     loop:
 *         step = search_step(s);
 *         SEARCH_MEASURE: change the cap to step->cap_mw as step says, wait for it
 *                         to settle, measure whole steps of work, search_on_window()
 *         SEARCH_HOLD:    change the cap and keep it; search_on_window() and
 *                         search_probe_gap() are optional
 *
 * A window below the reference whose cap had no effect (search-effect.c) is one more
 * window of the reference, and no cap between the two is measured any more.
 *
 * All GPUs of a job get the same cap.  Time and energy are per unit of work; energy
 * is the sum over the job's GPUs, whose number is `gpus`.
 *
 * slowdown:F: where windows have errors, a cap is kept only if its expected time is
 * within F and its time is within F x 1.002 at 99 % confidence; where windows are exact,
 * only if its measured time is within F.  The noise is estimated from all windows and
 * their times (compare.h); a window without its time ends that.
 *
 * Safety: the search never proposes a cap below the soft floor (0.50 x demand unless
 * configured), below the board's minimum, above the original cap or above a hard limit;
 * a first cap below 0.87 of the observed peak (step->first_mw; under slowdown:F, a cap
 * that this run has measured is its own first cap); a descent steeper than the ramp; more
 * than max_windows windows of ordinary length before it holds (the first max_windows
 * windows at all do not count if they have no effect), and SEARCH_PROBE_WINDOWS for each
 * look.  Exceptions: a hard limit may force a cap below the soft floor (never
 * below the board's minimum), and search_on_found() does not check it.
 */
#ifndef CORE_OPTIMUM_SEARCH_H
#define CORE_OPTIMUM_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "core/optimum/binding.h"
#include "core/optimum/goal.h"
#include "underwatt/error.h"

#define SEARCH_FLOOR 0.50 /* of the demand */
#define SEARCH_FIRST 0.87 /* of the observed peak */
#define SEARCH_RAMP 0.005 /* of the default limit per second */
#define SEARCH_SETTLE_S 1.0
enum { SEARCH_WINDOWS_MAX = 64, SEARCH_EARLIER_MAX = 10, SEARCH_NO_LIMIT = 0 };
enum { SEARCH_PROBE_WINDOWS = 6 };

struct prior; /* core/optimum/prior.h */

struct search_setup {
    struct goal goal;
    uint32_t min_mw, max_mw, default_mw; /* board limits, the tightest of the job's */
    uint32_t original_mw;                /* limit before the job: the reference cap */
    uint32_t grain_mw;    /* caps are multiples of this; 0: 1000 (whole watts) */
    uint32_t hard_mw;     /* highest cap allowed now; SEARCH_NO_LIMIT: any */
    unsigned gpus;        /* GPUs of the job; 0: 1 */
    double floor;         /* soft floor as a fraction of the demand; 0: SEARCH_FLOOR */
    double ramp;          /* fraction of the default limit per second; 0: SEARCH_RAMP */
    unsigned max_windows; /* of ordinary length before the hold, reference included;
                             0: 24 */
    const struct prior *prior; /* prior of the curves; NULL: prior_recorded */
};

enum search_kind {
    SEARCH_MEASURE,
    SEARCH_HOLD,
};

enum { SEARCH_WHY_MAX = 200 };

struct search_step {
    enum search_kind kind;
    uint32_t cap_mw;
    /* How to change the cap: raise it immediately.  Lower a cap above first_mw to
     * first_mw immediately, wait there for check_steps units of work, then lower it
     * by ramp_mw_s milliwatts per second; if urgent (a hard limit), lower it to
     * cap_mw immediately.
     */
    uint32_t first_mw;
    double ramp_mw_s;
    unsigned check_steps;
    bool urgent;
    /* A window may begin when both have passed since cap_mw took effect. */
    double settle_s;
    unsigned settle_steps;
    unsigned length;          /* of the window, in ordinary windows: 1 to 4 */
    char why[SEARCH_WHY_MAX]; /* one line for a human */
};

/* A finished window of whole units of work at a settled cap. */
struct search_window {
    uint32_t cap_mw; /* in force (read back), lowest of the job's GPUs */
    double time_s;   /* per unit of work */
    double energy_j; /* per unit of work, all GPUs of the job */
    double time_rse; /* relative standard error; 0: exact */
    double energy_rse;
    double peak_w;        /* 99th percentile of 100 ms power, highest GPU; 0: unknown */
    unsigned length;      /* as in struct search_step; 0: 1 */
    enum binding binding; /* of the cap, on all GPUs */
    bool known; /* of an earlier search of this job, the reference's first: the errors are
                   those of one window, length only counts for max_windows */
    double start_s;  /* on any clock */
    double lasted_s; /* 0: unknown */
    unsigned parts;  /* whose scatter time_rse states; 0: unknown */
};

struct search;

/* -EINVAL, -ERANGE (the text names the value and the limit), -ENOMEM. */
int search_new(const struct search_setup *setup, struct search **ret, uw_error *err);
void search_free(struct search *s);
DEFINE_AUTO(struct search *, search_free);

/* What to do now; valid until the next non-const call. */
const struct search_step *search_step(const struct search *s);

/* Adds a finished window at any cap; one above the reference is the new reference, and
 * continues the search as a raised limit does.  -EINVAL (nothing changed): a value is not
 * finite and positive, or an error is outside 0..1.  A window of a hold updates the
 * levels and does not end the hold.
 */
int search_on_window(struct search *s, const struct search_window *w, uw_error *err);
/* Adds a window of an earlier run of the same job; only before the first window of this
 * run.  The search takes the shape of the curve from it, never the height, and discards
 * all earlier windows if they disagree with the first four caps of this run.  No cap is
 * kept unless this run has measured a cap near it.  demand_w: mean power of one GPU at
 * the reference in that run.  -EINVAL (nothing changed): as search_on_window(), demand_w
 * is not positive, or this run has windows.  Caps beyond the first SEARCH_EARLIER_MAX
 * are ignored.
 */
int search_on_earlier(struct search *s, const struct search_window *w, double demand_w,
                      uw_error *err);
/* The job made no progress at this cap after a step down: proposes a higher cap, and
 * never again this cap or a lower one.
 */
void search_on_stall(struct search *s, uint32_t cap_mw);
/* Caps above mw are forbidden from now on; SEARCH_NO_LIMIT lifts the limit.  If the
 * reference was measured more than 5 % below the highest cap allowed now, it is measured
 * again there, and the search continues with up to max_windows further windows.
 */
void search_on_hard_limit(struct search *s, uint32_t mw);
/* Time or energy per unit of work has changed permanently.  now: a window of the new
 * regime, at the held cap.  If it fits an earlier regime of the job, the cap found then
 * is held immediately; else the reference is measured again and the search starts over,
 * using the shape of the old curve.  NULL: the unit of work itself is another one, which
 * also discards the earlier regimes.
 */
void search_on_change(struct search *s, const struct search_window *now);
/* Holds cap_mw, the result of an earlier search whose windows this search has received,
 * until a change.
 */
void search_on_found(struct search *s, uint32_t cap_mw);
/* Starts a look out of a hold: measures the middle of the widest gap between this run's
 * measured caps, down to the lowest allowed cap (gap-probe.h), where the expected value
 * of the goal is at most the fraction `most` worse than the best; then proposes again and
 * holds the best measured cap.  A look takes up to SEARCH_PROBE_WINDOWS windows, which
 * are corrected for the drift of the job during the hold (last windows against all).
 * False (nothing changed): no hold, no such gap, no free level, or goal time.
 *
 * slowdown:F: first proposes again with the hold's windows included.  The step may be a
 * window at any cap, also at the reference, or the hold of a better cap (or of an allowed
 * one, if the held cap is no longer allowed).  If nothing is worth its price, probes a
 * gap as above whose expected time also exceeds the bound by at most `most`.  Also false
 * until the hold has eight windows, and, where the noise is unknown, when their time has
 * left the time expected at this cap: it can no longer be compared with the reference.
 */
bool search_probe_gap(struct search *s, double most);
/* Ends a look before its time: holds again what was held, for the reason of then. */
void search_end_look(struct search *s);

/* slowdown:F: whether a step at cap_mw takes at most `most` x the reference's time (upper
 * limit, 97.5 %).
 */
bool search_takes_at_most(const struct search *s, uint32_t cap_mw, double most);
/* slowdown:F: replaces a measurement at a cap that may take longer than that: by one at
 * the lowest cap above it that does not and was not measured.  If there is none, waits:
 * holds the best measured cap within the bound, or measures at the reference; a look ends
 * instead, unless it has found a better cap to hold.  Windows of a wait are none of
 * max_windows.  Ends the search instead of a wait that nothing would end: the bound is 1
 * and a cap can be held, or the step is kept off by search_on_spent() and there is no new
 * cap above it.  With a bound of 1 windows at the reference are some of max_windows.
 */
void search_afford(struct search *s, double most);
/* Whether a cap was found, or is looked for out of such a hold. */
bool search_is_over(const struct search *s);
/* Whether the hold is such a wait: search_go_on() proposes again, with its windows, and
 * after max_windows of them in a row ends the search.
 */
bool search_waits(const struct search *s);
void search_go_on(struct search *s);
/* The job is over: the reason of the step, which of a wait says that it was in vain.
 * Valid until s changes.
 */
const char *search_last_why(struct search *s);
/* The cap of the step costs more than the bound leaves: neither it nor a cap up to a
 * quarter of the way to the reference is measured until another new cap was, or a look
 * begins.
 */
void search_on_spent(struct search *s);

/* ---- results ---- */

/* What the windows at this cap show once search_on_window() has added the last one, in
 * one line: the goal's value against that at the reference, or the time where it exceeds
 * the bound, with half of the 95 % interval; which cap is the best so far, or that
 * held_mw, which was held before (0: none), is held again.  "" at the reference and
 * before it is known.  At most 69 columns for caps below 10 kW, differences below 100 %
 * and intervals of 0.01 % and more.
 */
void search_trial(const struct search *s, uint32_t cap_mw, uint32_t held_mw,
                  char ret[SEARCH_WHY_MAX]);

enum search_memory { /* windows of an earlier run */
                     SEARCH_MEMORY_NONE,
                     SEARCH_MEMORY_KEPT,   /* in use */
                     SEARCH_MEMORY_DENIED, /* disagreed with this run's: discarded */
};

struct search_result {
    bool has_reference;
    uint32_t reference_mw; /* the original cap, or the highest allowed at that time */
    double demand_w;       /* mean power at the reference, one GPU */
    double peak_w;
    uint32_t floor_mw;
    uint32_t best_mw;     /* the cap that would be held now */
    double best_time_s;   /* expected at best_mw, per unit of work */
    double best_energy_j; /* same */
    double best_time_rse; /* slowdown:F: of best_time_s / ref_time_s when best_mw was
                             chosen; 0: exact, or another goal */
    double ref_time_s, ref_energy_j;
    unsigned caps, windows; /* measured since the start or the last change */
    bool measured;          /* best_mw itself was measured */
    enum search_memory memory;
};
void search_result(const struct search *s, struct search_result *ret);
/* The levels measured since the start or the last change, one window per cap (length:
 * the sum of its windows), the reference first.  Returns their number, up to `most`.
 */
size_t search_known(const struct search *s, struct search_window *ret, size_t most);

#endif
