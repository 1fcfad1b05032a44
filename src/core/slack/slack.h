/* Slack inside a synchronous job, whose boards all wait for the slowest.  A pure state
 * machine that lowers the caps of boards that wait in small steps and keeps each step
 * only if the job's measured time allows it; under a budget it gives the watts to boards
 * that do not wait.  Explained in docs/design/slack.md.
 *
 *     slack_new(&setup, &s, &err);
 *     loop:
 *         step = slack_step(s);
 *         set step->cap_mw (under a budget: lower first, read back, then raise), wait
 *         for the caps to settle, measure whole steps of work, slack_on_window()
 *
 * Without a budget no cap exceeds its first one, and the job's time stays within
 * (1 + allowance) x its time at the first caps, as far as the windows show: a step is
 * kept if the measured ratio plus one standard error is within that, else undone.  In a
 * hold the ratio is measured further, with visits to the first caps, and caps are raised
 * when it exceeds the allowance.  When no board waits any longer, the rest of the
 * allowance is spent by lowering the caps of all boards together.
 *
 * Under a budget the sum of caps is always within it.  A step is kept if the job is not
 * slower than before by more than 0.4 %.
 *
 * The estimate of who waits (waits.h) only selects the next step; the job's time decides.
 * A change of the job restores the first caps immediately and restarts the search.
 */
#ifndef CORE_SLACK_SLACK_H
#define CORE_SLACK_SLACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "core/slack/waits.h"
#include "underwatt/error.h"

enum { SLACK_BOARDS_MAX = 64, SLACK_WHY_MAX = 160 };

#define SLACK_ALLOWANCE 0.01
#define SLACK_ALLOWANCE_MOST 0.2

struct slack_range {
    uint32_t least_mw; /* lowest cap: soft floor, board's minimum */
    uint32_t start_mw; /* first cap: the reference */
    uint32_t most_mw;  /* highest cap under a budget; without one it is start_mw */
};

struct slack_setup {
    const struct slack_range *board; /* copied */
    size_t n;                        /* 2..SLACK_BOARDS_MAX */
    double allowance;   /* slowdown allowed without a budget, 0..SLACK_ALLOWANCE_MOST */
    uint64_t budget_mw; /* 0: none; else >= the sum of start_mw */
    uint32_t grain_mw;  /* 0: 1000 */
};

enum slack_kind { SLACK_MEASURE, SLACK_HOLD };

/* The outcome of the previous step. */
enum slack_did { SLACK_BEGAN, SLACK_KEPT, SLACK_UNDONE, SLACK_GAVE_BACK };

enum slack_role {
    SLACK_UNKNOWN,
    SLACK_PACE,  /* busiest, within tolerance: the other boards wait for it */
    SLACK_WAITS, /* for other boards */
    SLACK_LEAST, /* waits, at its lowest cap */
};

struct slack_step {
    enum slack_kind kind;
    enum slack_did did;
    bool reference; /* cap_mw are the first caps */
    bool visit;     /* a window at the first caps during a hold */
    uint32_t cap_mw[SLACK_BOARDS_MAX];
    enum slack_role role[SLACK_BOARDS_MAX];
    double waits[SLACK_BOARDS_MAX]; /* 1 - busy share / the busiest board's, 0..1 */
    char why[SLACK_WHY_MAX];        /* one line for a human */
};

/* A window of whole steps of work at the settled caps of slack_step(). */
struct slack_window {
    double time_s, time_rse; /* per unit of work; relative standard error, 0: exact */
    const struct slack_seen *board; /* one per board */
};

struct slack;

/* -EINVAL, -ERANGE (the text names board, value and limit), -ENOMEM. */
int slack_new(const struct slack_setup *setup, struct slack **ret, uw_error *err);
void slack_free(struct slack *s);
DEFINE_AUTO(struct slack *, slack_free);

/* What to do now; valid until the next non-const call. */
const struct slack_step *slack_step(const struct slack *s);
/* -EINVAL (nothing changed): a value is not finite and positive, or a cap in force is not
 * that of the step.
 */
int slack_on_window(struct slack *s, const struct slack_window *w, uw_error *err);
/* The job's pace has changed, or it makes no progress: starts over at the first caps. */
void slack_restart(struct slack *s, const char *why);

struct slack_result {
    unsigned windows;       /* since slack_new() or the last restart */
    unsigned tried, undone; /* steps */
    unsigned gave_back;     /* how often caps were raised to keep the allowance */
    unsigned restarts;      /* since slack_new() */
    unsigned hold_windows;  /* windows until the first hold; 0: no hold yet */
    bool known;             /* time_ratio is set */
    double time_ratio;      /* time at the kept caps / time at the first caps */
    int64_t watts_mw;       /* sum of the kept caps less that of the first caps */
};
void slack_result(const struct slack *s, struct slack_result *ret);

#endif
