/* A job's search for its cap while the job runs: windows at the reference cap, then at
 * the search's caps, each reached by the ramp and measured over whole steps; the best cap
 * is held and watched for a change of the job.  Of a cap by name it only measures the
 * saving.
 *
 * Owns: the search, the job's regimes and what was measured in them.  Its parts own the
 * rest, see tuner-inside.h.
 * May touch: caps through the table in tuner-caps.h, meters of energy_sum.h and the
 * period of power.  It opens no board, writes no cap and reads no progress page. Thread:
 * the loop's.  progress-period.h computes in a worker, on copies. Explained in:
 * docs/architecture.md, docs/search-quality.md, docs/progress.md.
 *
 *     tuner_new() → tuner_on_steps() after each read of the job's page →
 *     tuner_finish() when the job has ended: boards released, done called.
 *
 * The cap that counts is the one in force.  Where others hold a board lower, windows are
 * booked at that cap, and the reference is the highest cap that others allow.
 *
 * For a job that tells of no steps, tuner_listen() infers progress: a fixed number of its
 * launches, or one period of its boards' power, stands for a step.  Where neither is sure
 * the job gets the safe static cap, or none.  Steps that are told later replace what was
 * inferred and begin a new regime.  A job whose steps stay away for two minutes goes back
 * to the original cap, and its progress is inferred.
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
#include "tuner/board-caps.h"
#include "tuner/notes.h"
#include "tuner/progress-period.h"
#include "tuner/regimes.h"
#include "tuner/tuner-caps.h"

struct tuner;

/* What an earlier run of the job measured, for search_on_earlier(). */
struct tuner_earlier {
    uint64_t job; /* whose it was */
    struct search_window window[SEARCH_EARLIER_MAX];
    size_t n;
    double demand_w;
};

/* What is known of the job from before; regime: its last one goes on where caps are
 * given, and is closed where there are none (other boards).
 */
struct tuner_known {
    const struct savings *regime;
    size_t n_regimes; /* TUNER_REGIMES_MAX at the most */
    const struct tuner_cap *cap;
    size_t n_caps;
    uint32_t reference_mw;
    uint32_t held_mw; /* with these boards; 0: none was */
    double demand_w, peak_w;
    unsigned windows, changes, stalls;
    struct visits visits;    /* its share is not used */
    struct gap_probes looks; /* of the last regime; most is not used */
    bool by_period;          /* steps are periods of its power */
};

struct tuner_opts {
    struct loop *loop;
    const struct tuner_caps *caps;
    void *caps_of;                  /* for caps */
    struct energy_sum *meters;      /* of exactly these boards … */
    struct progress_period *period; /* … and so is this; NULL: steps alone count */
    struct board *const *boards;
    const uint32_t *original_mw; /* the limit found on each */
    /* Where each may be set (the actuator's word); NULL: the boards' own limits. */
    const struct actuator_range *range;
    size_t n;
    bool search; /* find the best cap for goal, else go to cap */
    struct goal goal;
    struct cap_arg cap; /* percent: of each board's default limit, within its range */
    double floor, ramp; /* 0: the search's own */
    double window_s;    /* length of a window; 0: 10 s */
    double warm_s;      /* training seen before anything is measured; 0: 10 s */
    /* While a cap that was searched for is held, the reference cap is looked at again for
     * this part of the job's time, so that what is saved is measured (counterfactual.h);
     * 0: VISITS_SHARE, below 0: never.
     */
    double checks_share;
    /* While it is held, so many windows in a regime go to gaps between the caps that were
     * measured (core/optimum/gap-probe.h); 0: LOOKS, below 0: none.
     */
    int looks;
    /* A searched cap that is held on several boards goes lower on those that wait for
     * others, while the job's time grows by no more than this part (core/slack); 0:
     * never.
     */
    double slack;
    /* A searched cap that is held is compared with locks of the SM clock, in its place
     * and beside it (core/optimum/lock.h), where the table of caps has them; not with
     * slack.
     */
    bool clocks;
    tuner_note_fn note;
    void *user;
    /* The rate of the job's launches now, of rate_of; NULL: none is counted.  The
     * function may be NULL.
     */
    struct rate *(*rate)(void *rate_of);
    void *rate_of;
    const struct tuner_known *known; /* or NULL; borrowed for tuner_new() */
    /* Or NULL; borrowed as well, and left out where caps of this run are known. */
    const struct tuner_earlier *earlier;
};

/* -ERANGE: a cap outside a board's range (text: GPU, value, range; a percentage: outside
 * every board's) or boards that have no range in common.
 */
int tuner_new(const struct tuner_opts *opts, struct tuner **ret, uw_error *err);
void tuner_free(struct tuner *t);
DEFINE_AUTO(struct tuner *, tuner_free);

/* Each time the job's page was read. */
int tuner_on_steps(struct tuner *t, const struct steps *steps, uint64_t now_ns);
/* Others' claims allow no cap above ceiling_mw now (UINT32_MAX: any), and enforced_mw
 * is the lowest limit in force on the boards (0: unknown): a window that began under
 * another one counts for nothing.
 */
int tuner_on_force(struct tuner *t, uint32_t ceiling_mw, uint32_t enforced_mw);
/* No steps are told of: from now on the rate of its launches, or the period of the
 * boards' power counts, once it is sure.  False: there is no struct progress_period, or
 * no search.
 */
bool tuner_listen(struct tuner *t);
/* Nothing is under way: it waits for training steps. */
bool tuner_waits(const struct tuner *t);
/* Before any steps were told: goes on at a cap that was held before, at once. */
int tuner_resume(struct tuner *t, uint32_t held_mw);
/* A search that was resumed, and whose job tells of no steps: whether it goes on cannot
 * be seen, so the originals are back until it tells.
 */
int tuner_blind(struct tuner *t);
/* What the actuator's on_event was told. */
int tuner_on_event(struct tuner *t, enum actuator_event event,
                   const struct actuator_reply *what);
/* The job's processes are stopped (SIGSTOP, ^Z, a suspending scheduler), or go on:
 * as long as they are the originals are in force; then the step under way begins
 * again.
 */
int tuner_on_stopped(struct tuner *t, bool stopped);
/* A cap asked for by name needs no progress: go there now (jobs that report none). */
int tuner_cap_now(struct tuner *t);

typedef int (*tuner_done_fn)(struct tuner *t, void *user);
/* The job is over (or is to be left alone): stop, release every board, then call done. */
int tuner_finish(struct tuner *t, tuner_done_fn done, void *user);

/* What stands for a job's progress. */
enum search_status { SEARCH_STATUSES(NAME_ENUM) };
enum tuner_by { PROGRESS_UNITS(NAME_ENUM) };

struct tuner_report {
    enum tuner_by by;
    double period_s, confidence; /* the last that was sure; 0: none was.  By launches:
                                  * the time of those that stand for a step */
    char unknown[80];            /* "" or why neither is sure now */
    double busy;                 /* see period_busy(), while none is; NAN unknown */
    bool started;                /* training steps were seen, or their period */
    bool holding;                /* a cap was chosen (or reached) */
    uint32_t held_mw;            /* that cap */
    uint32_t best_mw;            /* the best so far; 0: none known yet */
    uint32_t lock_mhz;           /* the SM clocks are locked to at most this; 0: are not.
                                  * Then the cap is … */
    uint32_t lock_mw;            /* … this one */
    uint32_t original_mw;        /* the highest original of the boards */
    uint32_t reference_mw;       /* in force in the reference windows; 0: none yet.  Below
                                  * the original: others allowed no more */
    double demand_w, peak_w;     /* of a board, in those; 0 unknown */
    const struct tuner_cap *cap; /* caps measured, in order of first measure */
    size_t n_caps;
    unsigned windows, changes, stalls;
    struct visits visits;
    struct gap_probes looks; /* of this regime */
    bool modelled;           /* what the search's model says of the cap it would hold: */
    double model_saving,
        model_slowdown;            /* part of the reference's energy; time over its */
    enum search_memory memory;     /* of an earlier run: */
    uint64_t earlier_job;          /* whose; 0: none was told */
    const struct savings *account; /* one a regime: the job's changes end one.  The first
                                    * may hold older ones */
    size_t n_regimes;
    struct savings_saved saved;
    char why[TUNER_TEXT];     /* why this cap */
    uint64_t ended_ns;        /* when that was; 0: not */
    char ended[TUNER_TEXT];   /* "" or why caps ended early … */
    bool board_lost;          /* … others have a board, or it is lost: not for good */
    bool restored;            /* every board is back at its original, read back … */
    bool unsure;              /* … as far as it was answered: see tuner_verified() */
    char restore[TUNER_TEXT]; /* else: which is not, and why */
    char after[TUNER_TEXT];   /* what was read once all was over; "" it was not read */
};
/* The boards have been read after tuner_finish(): nothing of ours is in force, or text
 * says what is.
 */
void tuner_verified(struct tuner *t, bool restored, const char *text);
/* Borrowed until tuner_free(). */
const struct tuner_report *tuner_report(struct tuner *t);

/* "searching: window 3 at 210 W, 41 % done" … for the live line. */
enum search_status tuner_status(const struct tuner *t, char *ret, size_t size);
/* The cap asked for now, mW (highest board). */
uint32_t tuner_cap_mw(const struct tuner *t);

#endif
