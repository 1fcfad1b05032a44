/* Slack inside a synchronous job: all its boards wait for the slowest.  A pure state
 * machine that takes watts from the boards that wait, in small steps, each of which is
 * kept only if the job's measured time allows it; under a budget it gives them to those
 * that do not wait.
 *
 *     slack_new(&setup, &s, &err);
 *     loop:
 *         step = slack_step(s);
 *         go to step->cap_mw (under a budget: lower first, read back, then raise), wait
 *         for the caps to settle, measure whole steps of work, slack_on_window()
 *
 * Without a budget caps never rise over those it started at, and the job's time is never
 * kept at more than (1 + allowance) x the time at the caps it started at, as far as
 * windows can tell: a step is kept where the measured ratio and one standard error fit,
 * else undone, and in a hold the ratio goes on being measured, with windows at the first
 * caps in between, and more is given back as soon as it is exceeded.  Once nobody waits,
 * what is left of the allowance is taken from all boards together.
 *
 * Under a budget the sum of caps is never above it, and a step is kept where the job
 * became faster.
 *
 * Who waits is a guess (waits.h) that only says where to try: what counts is the job's
 * time.  A change of the job brings the first caps back at once, and it begins anew.
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
    uint32_t least_mw; /* lowest cap it may get: floor, board's minimum */
    uint32_t start_mw; /* in force at the beginning: the reference */
    uint32_t most_mw;  /* under a budget: highest cap it may get; else start_mw counts */
};

struct slack_setup {
    const struct slack_range *board; /* copied */
    size_t n;                        /* 2..SLACK_BOARDS_MAX */
    double allowance;   /* without a budget; 0..SLACK_ALLOWANCE_MOST (0: none at all) */
    uint64_t budget_mw; /* 0: none; else >= the sum of start_mw */
    uint32_t grain_mw;  /* 0: 1000 */
};

enum slack_kind { SLACK_MEASURE, SLACK_HOLD };

/* What became of the step before. */
enum slack_did { SLACK_BEGAN, SLACK_KEPT, SLACK_UNDONE, SLACK_GAVE_BACK };

enum slack_role {
    SLACK_UNKNOWN,
    SLACK_PACE,  /* nobody is busier: the others wait for it */
    SLACK_WAITS, /* for others */
    SLACK_LEAST, /* waits, and its cap cannot go lower */
};

struct slack_step {
    enum slack_kind kind;
    enum slack_did did;
    bool reference; /* the caps that it started at … */
    bool visit;     /* … which a hold is left for, to look at them again */
    uint32_t cap_mw[SLACK_BOARDS_MAX];
    enum slack_role role[SLACK_BOARDS_MAX];
    double waits[SLACK_BOARDS_MAX]; /* share of its time, against the busiest; 0..1 */
    char why[SLACK_WHY_MAX];        /* one line for a human */
};

/* A window of whole steps of work at the settled caps of slack_step(). */
struct slack_window {
    double time_s, time_rse; /* of a unit of work; relative standard error, 0: exact */
    const struct slack_seen *board; /* one a board */
};

struct slack;

/* -EINVAL, -ERANGE with a text that names board, value and limit; -ENOMEM. */
int slack_new(const struct slack_setup *setup, struct slack **ret, uw_error *err);
void slack_free(struct slack *s);
DEFINE_AUTO(struct slack *, slack_free);

/* What to do now; valid until the next call that tells it something. */
const struct slack_step *slack_step(const struct slack *s);
/* 0.  -EINVAL (nothing changed): a value is not finite and positive, or a cap in force
 * is not that of the step: such a window says nothing.
 */
int slack_on_window(struct slack *s, const struct slack_window *w, uw_error *err);
/* The job's pace is another, or it made no progress: the first caps, and anew. */
void slack_restart(struct slack *s, const char *why);

struct slack_result {
    unsigned windows;       /* since the beginning or the last restart */
    unsigned tried, undone; /* steps */
    unsigned gave_back;     /* times that a hold gave some watts back */
    unsigned restarts;      /* since the beginning */
    unsigned hold_windows;  /* windows until the first hold; 0: not yet */
    bool known;             /* both times below are */
    double time_ratio;      /* kept caps over first caps */
    double time_ratio_se;   /* its standard error, relative */
    int64_t watts_mw;       /* sum of kept caps less that of the first */
};
void slack_result(const struct slack *s, struct slack_result *ret);

#endif
