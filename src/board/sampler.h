/* Samples boards into meters, as often as each meter asks, and answers for the
 * energy of windows.  One sampler a job; a board that does not answer keeps the
 * others' pace.
 */
#ifndef BOARD_SAMPLER_H
#define BOARD_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board/boards.h"
#include "board/window-worker.h"
#include "core/meter/meter.h"

struct sampler;

/* How much is asked of a board. */
enum sampler_rate {
    SAMPLER_ALL,    /* everything, limits and clocks once a second: commands */
    SAMPLER_REST,   /* nobody computes: 2 driver calls a second at most */
    SAMPLER_JOB,    /* a job does */
    SAMPLER_SEARCH, /* its best cap is searched for: 15 driver calls a second at most */
};

struct sampler_opts {
    uint64_t period_ns; /* mean time between samples; 0: the meter's own */
    uint64_t rest_ns;   /* … of SAMPLER_REST; 0: 1 s */
    uint64_t search_ns; /* … of SAMPLER_SEARCH; 0: 100 ms */
    uint64_t seed;
    double history_s; /* see struct meter_opts */
    struct window_worker
        *folds; /* windows are computed there, beside the loop; NULL: here */
};

/* What is known of one board now. */
struct sampler_now {
    struct gpu_sample last; /* has == 0: nothing yet.  What the last round did not ask for
                             * is from an earlier one */
    struct gpu_sample limits; /* the last round that asked for limits, as it was */
    unsigned failures;        /* calls that failed since the last good one */
    uw_error error;           /* of the last that failed */
};

/* The energy of a window over all boards of the sampler. */
struct sampler_window {
    int r; /* 0, or -ENODATA: some board cannot say; see error */
    uw_error error;
    uint64_t begin_ns, end_ns;
    size_t n;
    const struct meter_result *board; /* one a board; borrowed for the callback */
    double energy_j, half_j;          /* sums; half: 95 %, boards independent */
    double power_w;                   /* mean of all boards together */
    double peak_w; /* observed peak of the hungriest board; 0 unknown */
    uint32_t why;  /* enum meter_why of all boards */
};
typedef int (*sampler_window_fn)(struct sampler *s, const struct sampler_window *w,
                                 void *user);

/* Starts sampling at once.  The boards outlive the sampler. */
int sampler_new(struct loop *loop, struct board *const *boards, size_t n,
                const struct sampler_opts *opts, struct sampler **ret, uw_error *err);
/* Windows still waited for are forgotten. */
void sampler_free(struct sampler *s);
DEFINE_AUTO(struct sampler *, sampler_free);

/* A window will begin or end about then: see meter_mark(). */
void sampler_mark(struct sampler *s, uint64_t at_ns);

/* Boards at rest, which marks do not wake: one sample at at_ns, or as soon after the last
 * one as is decent.
 */
void sampler_soon(struct sampler *s, uint64_t at_ns);

/* fn is called once, when every meter can answer at full accuracy, or 2 s (loop's
 * time) after that should have been.  0, -EAGAIN (16 are waited for already), -ENOMEM.
 */
int sampler_window(struct sampler *s, uint64_t begin_ns, uint64_t end_ns,
                   sampler_window_fn fn, void *user);

/* Windows asked with this user are not answered. */
void sampler_forget(struct sampler *s, const void *user);

/* Does board i count in windows?  All do at first; one that does not is sampled all
 * the same, its results are 0.
 */
void sampler_count_in(struct sampler *s, size_t i, bool in);
/* From now on; all boards begin with SAMPLER_ALL.  held: its limits are watched more
 * closely than the rate wants, as somebody's cap is in force there.  See meter_pace().
 */
void sampler_rate(struct sampler *s, size_t i, enum sampler_rate rate, bool held);
/* Its clock is locked: clock and utilisation are read with the limits. */
void sampler_watch_clock(struct sampler *s, size_t i, bool watch);
/* Other periods (as in sampler_opts) from now on. */
void sampler_periods(struct sampler *s, uint64_t period_ns, uint64_t rest_ns,
                     uint64_t search_ns);
/* Board i is sampled now, and everything of it. */
void sampler_refresh(struct sampler *s, size_t i);
/* Board i is let go of: it is not sampled until it is back. */
void sampler_detach(struct sampler *s, size_t i, bool away);
/* Board i is none of ours for good: neither sampled nor counted. */
void sampler_rest(struct sampler *s, size_t i);

/* Every board that does not rest has given a sample, or 4 s of the wall's time have
 * passed (one may not answer): a window may begin.
 */
bool sampler_fed(const struct sampler *s, uint64_t now_ns);

/* Somebody who hears every sample of board i, until sampler_deaf() or the sampler's end.
 * What the round did not ask for is not in s->has.  While anybody listens, power is read
 * each round; who overhears takes what is read anyway.
 */
struct sampler_ear {
    void (*fn)(size_t board, const struct gpu_sample *s, void *user);
    void *user;
    size_t board;
    bool overhears;
    struct sampler_ear *next; /* for sampler.c */
};
/* How the power that is heard comes about: the instant reading where the board has one,
 * else the plain one.
 */
const struct sensor *sampler_sensor(const struct sampler *s, size_t i);
void sampler_hear(struct sampler *s, size_t i, struct sampler_ear *ear);
void sampler_deaf(struct sampler *s, size_t i, struct sampler_ear *ear);

size_t sampler_count(const struct sampler *s);
const struct sampler_now *sampler_board(const struct sampler *s, size_t i);
struct meter *sampler_meter(struct sampler *s, size_t i);
/* Driver calls made so far on all of its boards, whoever made them (board_calls()). */
uint64_t sampler_calls(const struct sampler *s);

#endif
