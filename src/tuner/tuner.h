/* A job's search for its cap while the job runs: measures windows at the reference cap,
 * then at the search's caps, each reached by the ramp and measured over whole steps;
 * holds the best cap and watches for a change of the job.  For a cap by name, measures
 * only the saving.
 *
 * Owns: the search, the job's regimes and the measurements in them.  Its parts own the
 * rest, see tuner-table.h.
 * May touch: caps through the table in tuner-caps.h, meters of energy-sum.h and the
 * period of power.  Opens no board, writes no cap and reads no progress page.
 * Thread: the loop's; progress-period.h computes in a worker, on copies.
 * Explained in: docs/architecture.md, docs/design/search-quality.md, docs/progress.md.
 *
 *     tuner_new() → tuner_on_steps() after each read of the job's page →
 *     tuner_finish() when the job has ended: boards released, done called.
 *
 * Windows are booked at the cap in force, which others' claims may have lowered; the
 * reference is then the highest cap that those claims allow.
 *
 * For a job that reports no steps, tuner_on_silent() infers progress: a fixed number of
 * its launches, or one period of its boards' power, stands for a step.  If neither is
 * certain, the job gets the safe static cap, or none.  Steps that the job reports later
 * replace the inferred ones and begin a new regime.  A job without steps for two minutes
 * gets the original cap back, and its progress is inferred.
 */
#ifndef TUNER_TUNER_H
#define TUNER_TUNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "actuator/result.h"
#include "base/names.h"
#include "base/units.h"
#include "board/boards.h"
#include "board/energy-sum.h"
#include "core/optimum/counterfactual.h"
#include "core/optimum/gap-probe.h"
#include "core/optimum/goal.h"
#include "core/optimum/search.h"
#include "core/progress/rate.h"
#include "core/progress/steps.h"
#include "tuner/activity.h"
#include "tuner/board-caps.h"
#include "tuner/notes.h"
#include "tuner/progress-period.h"
#include "tuner/progress-source.h"
#include "tuner/regimes.h"
#include "tuner/tuner-caps.h"

struct tuner;

/* Measurements of an earlier run of the job, for search_on_earlier(). */
struct tuner_earlier {
    uint64_t job; /* id of that run */
    struct search_window window[SEARCH_EARLIER_MAX];
    size_t n;
    double demand_w;
};

/* State of an earlier tuner of the job.  The last regime continues if caps are given; it
 * is closed if n_caps is 0 (other boards).
 */
struct tuner_known {
    const struct savings *regime;
    size_t n_regimes; /* at most TUNER_REGIMES_MAX */
    const struct tuner_cap *cap;
    size_t n_caps;
    uint32_t reference_mw, allowed_mw, lifted_mw; /* see struct tuner_report */
    uint32_t held_mw;                             /* cap held on these boards; 0: none */
    bool searching; /* out of that hold: slowdown:F left no time yet */
    double demand_w, peak_w;
    double stopped_s, waited_s;
    unsigned windows, changes, stalls;
    struct activity_kept kept;
    bool by_period; /* the steps are periods of power */
};

struct tuner_opts {
    struct loop *loop;
    const struct tuner_caps *caps;
    void *caps_of;                  /* first argument of the table's functions */
    struct energy_sum *meters;      /* of exactly these boards */
    struct progress_period *period; /* likewise; NULL: do not infer progress */
    struct board *const *boards;
    const uint32_t *original_mw; /* the limit found on each board */
    /* The actuator's range of each board; NULL: the boards' own limits. */
    const struct actuator_range *range;
    size_t n;
    bool search; /* search the best cap for goal; else set cap */
    struct goal goal;
    struct cap_arg cap; /* percent: of each board's default limit, within its range */
    double floor, ramp; /* 0: the search's defaults */
    double window_s;    /* length of a window; 0: 10 s */
    double warm_s;      /* training time before the first measurement; 0: 10 s */
    /* While a searched cap is held: the part of the job's time for reference checks,
     * which measure the saving (counterfactual.h); 0: VISITS_SHARE; < 0: none.
     */
    double checks_share;
    /* While a searched cap is held: the number of windows per regime in gaps between
     * measured caps (core/optimum/gap-probe.h); 0: GAP_PROBES_MAX; < 0: none.
     */
    int gap_checks;
    /* While a searched cap is held on several boards: lowers the caps of boards that wait
     * for others, as long as the job's time grows by at most this part (core/slack); 0:
     * never.
     */
    double slack;
    /* While a searched cap is held: compares it with locks of the SM clock, with and
     * without a cap (core/optimum/lock.h), if the table of caps has locks; not with
     * slack.
     */
    bool clocks;
    tuner_note_fn note;
    void *user;
    /* Returns the rate of the job's launches; NULL: launches are not counted.  May be
     * NULL.
     */
    struct rate *(*rate)(void *rate_of);
    void *rate_of;
    const struct tuner_known *known; /* or NULL; borrowed for tuner_new() */
    /* Or NULL; borrowed for tuner_new(); ignored if known has caps. */
    const struct tuner_earlier *earlier;
};

/* -ERANGE: a cap outside a board's range (text: GPU, value, range; a percentage: outside
 * the range of every board), or the boards have no common range.
 */
int tuner_new(const struct tuner_opts *opts, struct tuner **ret, uw_error *err);
void tuner_free(struct tuner *t);
DEFINE_AUTO(struct tuner *, tuner_free);

/* Call after each read of the job's page. */
int tuner_on_steps(struct tuner *t, const struct steps *steps, uint64_t now_ns);
/* What the caps tell of a board, as claimant_fn.  Discards the window under way
 * if the limit in force has changed.
 */
int tuner_on_told(struct tuner *t, size_t board, const struct claim_told *told,
                  const char *text);
/* Whether the tuner waits for the first training steps of a job that is not stopped, and
 * does not infer any.
 */
bool tuner_waits(const struct tuner *t);
/* The job reports no steps while tuner_waits(): infers them from its launches or its
 * boards' power from now on, or, without a struct progress_period, restores the originals
 * until it reports some.  A cap by name is set now, without a measurement.
 */
int tuner_on_silent(struct tuner *t);
/* Sets a cap that was held before at once; call it before any steps are reported. */
int tuner_resume(struct tuner *t, uint32_t held_mw);
/* No caps can be set any more: text says why. */
int tuner_no_caps(struct tuner *t, const char *text);
/* The job's processes were stopped (SIGSTOP, a suspending scheduler) or continued.  The
 * originals are in force while the job is stopped; the step under way is then repeated.
 */
int tuner_on_stopped(struct tuner *t, bool stopped);
/* This process was kept from running, and the job perhaps with it: the time until now is
 * no delay of a step, and the window under way begins again.
 */
int tuner_on_gap(struct tuner *t);

typedef int (*tuner_done_fn)(struct tuner *t, void *user);
/* The job is over, or is not to be capped any more: releases every board, then calls done
 * once.
 */
int tuner_finish(struct tuner *t, tuner_done_fn done, void *user);

enum search_status { SEARCH_STATUSES(NAME_ENUM) };

struct tuner_report {
    enum tuner_by by;
    double period_s, confidence; /* the last certain ones; 0: none.  By launches: time of
                                  * the launches that stand for a step */
    char unknown[80];            /* why progress is not certain now; "": it is */
    double busy;                 /* see period_busy(), while not certain; NAN: unknown */
    bool started;                /* training steps, or their period, were seen */
    bool ruled;                  /* rests: the policy is below the cap */
    double ruled_s;              /* booked while it rested */
    double stopped_s;            /* time for which the job's processes were stopped */
    double waited_s;             /* time without its boards, which were lost or taken */
    bool holding;                /* a cap was chosen (or reached) */
    bool searching;              /* the search is not over */
    uint32_t held_mw;            /* the cap held, if holding … */
    bool reached;                /* … and whether it has been in force … */
    uint32_t lowest_mw;          /* … else the lowest limit on the way, 0: none */
    uint32_t best_mw;            /* the best so far; 0: unknown */
    uint32_t lock_mhz;           /* highest SM clock of the lock; 0: no lock */
    uint32_t lock_mw;            /* the cap with this lock */
    uint32_t original_mw;        /* the highest original of the boards */
    uint32_t reference_mw;       /* in force in the reference windows; 0: none yet; below
                                  * the original: others' claims or limits allowed no
                                  * more */
    uint32_t allowed_mw;         /* the highest cap that other claims allowed then; 0:
                                  * no reference */
    uint32_t lifted_mw;          /* a cap by name: other claims allowed this later, above
                                  * allowed_mw: this regime is not compared; 0: no */
    double demand_w, peak_w;     /* of one board at the reference; 0: unknown */
    const struct tuner_cap *cap; /* measured caps, in order of first measurement */
    size_t n_caps;
    unsigned windows, changes, stalls;
    struct reference_checks checks;
    struct gap_probes gap_checks; /* of this regime */
    bool modelled;                /* the search's model has a result: */
    double model_saving,
        model_slowdown;            /* part of the reference's energy; ratio to its time */
    enum search_memory memory;     /* use of an earlier run's measurements */
    uint64_t earlier_job;          /* id of that run; 0: none */
    const struct savings *account; /* one per regime; the first may include older ones */
    size_t n_regimes;
    struct savings_saved saved;
    char why[TUNER_TEXT];     /* why this cap */
    uint64_t ended_ns;        /* when caps ended early; 0: they did not */
    char ended[TUNER_TEXT];   /* why caps ended early; "" */
    uint64_t released_ns;     /* when the board was released for which caps ended; 0 */
    bool board_lost;          /* ended because a board is lost or others control it; may
                               * come back */
    bool restored;            /* every board is back at its original */
    bool unsure;              /* a board did not confirm it */
    char restore[TUNER_TEXT]; /* not restored: which board, and why */
    char after[TUNER_TEXT];   /* what a command read afterwards; "": nothing */
};
/* Borrowed until tuner_free(). */
const struct tuner_report *tuner_report(struct tuner *t);

/* Status and text for people: "measures at 210 W (window 3)". */
enum search_status tuner_status(const struct tuner *t, char *ret, size_t size);
/* Of a cap by name: the lowest limit of another claim below it; 0: none. */
uint32_t tuner_lower_mw(const struct tuner *t);

#endif
