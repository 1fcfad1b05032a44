/* Reads samples of boards into their meters, at the rate that each meter needs, and
 * computes the energy of windows.  A board that does not answer does not delay others.
 */
#ifndef BOARD_SAMPLER_H
#define BOARD_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board/boards.h"
#include "board/window-worker.h"
#include "core/meter/meter.h"
#include "core/optimum/binding.h"

struct sampler;

/* How often a board is read. */
enum sampler_rate {
    SAMPLER_ALL,    /* all values each time, limits and clocks once a second: commands */
    SAMPLER_REST,   /* idle board: at most 2 driver calls a second */
    SAMPLER_JOB,    /* a job computes */
    SAMPLER_SEARCH, /* the search for a cap runs: at most 15 driver calls a second, or 45
                     * while a listener `listens`; 10 or 20 more on a board that does not
                     * count the time for which its limit held it down */
};

struct sampler_opts {
    uint64_t period_ns; /* mean time between samples; 0: the meter's default */
    uint64_t rest_ns;   /* the same for SAMPLER_REST; 0: 1 s */
    uint64_t search_ns; /* the same for SAMPLER_SEARCH; 0: 100 ms */
    uint64_t seed;
    double history_s;            /* see struct meter_opts */
    struct window_worker *folds; /* computes windows; NULL: the loop's thread does */
};

/* The latest state of one board. */
struct sampler_now {
    struct gpu_sample last;   /* has == 0: none yet.  Values that the last round did not
                               * read are from earlier rounds */
    struct gpu_sample limits; /* the last round that read limits, unmerged */
    unsigned failures;        /* failed calls since the last success */
    uw_error error;           /* of the last failure */
};

/* The energy of a window over all boards of the sampler. */
struct sampler_window {
    int r; /* 0, or -ENODATA, -ENOMEM: unknown for some board; see error */
    uw_error error;
    uint64_t begin_ns, end_ns;
    size_t n;
    const struct meter_result *board; /* one per board; borrowed for the callback */
    double energy_j;                  /* sum of all boards */
    double half_j;  /* root of the sum of the boards' squared half widths: to compare
                     * windows of the same boards, which share the rest of the error */
    double power_w; /* mean of all boards together */
    double peak_w;  /* highest observed peak of one board; 0: unknown */
    enum binding binding; /* of the limit, on all boards; at SAMPLER_SEARCH only */
    uint32_t why;         /* enum meter_why of all boards */
};
typedef int (*sampler_window_fn)(struct sampler *s, const struct sampler_window *w,
                                 void *user);

/* Starts sampling at once.  The boards must outlive the sampler. */
int sampler_new(struct loop *loop, struct board *const *boards, size_t n,
                const struct sampler_opts *opts, struct sampler **ret, uw_error *err);
/* Pending windows are dropped without a callback. */
void sampler_free(struct sampler *s);
DEFINE_AUTO(struct sampler *, sampler_free);

/* Announces that a window will begin or end about at_ns, see meter_mark(). */
void sampler_mark(struct sampler *s, uint64_t at_ns);

/* Until until_ns short windows follow each other: boards that are not at SAMPLER_REST are
 * read every 50 ms at least, the counter as well, unless its calls would take more than 2
 * % of the time.
 */
void sampler_dense(struct sampler *s, uint64_t until_ns);

/* Schedules one sample of each board at SAMPLER_REST for at_ns, at least 100 ms after the
 * board's last one; marks do not raise the rate of such boards.
 */
void sampler_soon(struct sampler *s, uint64_t at_ns);
/* Schedules one sample of each board for at_ns and, after that one, one for then_ns, at
 * least 50 ms after the board's last one (SAMPLER_REST: 100 ms; SAMPLER_ALL: none, it
 * reads as often).  Of several calls the first at_ns and the last then_ns count.
 */
void sampler_around(struct sampler *s, uint64_t at_ns, uint64_t then_ns);

/* Calls fn once, never from inside: when every meter can answer at full accuracy, or 2 s
 * of real time after it should have been able to.  -EAGAIN (16 windows are pending),
 * -ENOMEM.
 */
int sampler_window(struct sampler *s, uint64_t begin_ns, uint64_t end_ns,
                   sampler_window_fn fn, void *user);

/* Drops pending windows with this user pointer. */
void sampler_forget(struct sampler *s, const void *user);

/* Sets whether board i counts in windows (default: yes).  Otherwise its results are 0; it
 * is still sampled.
 */
void sampler_count_in(struct sampler *s, size_t i, bool in);
/* Sets the rate; the default is SAMPLER_ALL.  held: a cap is in force, limits are read
 * every 2 s at least.  See meter_pace().
 */
void sampler_rate(struct sampler *s, size_t i, enum sampler_rate rate, bool held);
/* watch: the board's clock is locked, read clock and utilisation with the limits. */
void sampler_watch_clock(struct sampler *s, size_t i, bool watch);
/* watch: read the temperature, and the limits with their reasons, each second, however
 * rarely the board is read otherwise.
 */
void sampler_watch_heat(struct sampler *s, size_t i, bool watch);
/* Changes the periods of sampler_opts. */
void sampler_periods(struct sampler *s, uint64_t period_ns, uint64_t rest_ns,
                     uint64_t search_ns);
/* Reads all values of board i now. */
void sampler_refresh(struct sampler *s, size_t i);
/* Board i is detached (away) or attached again; it is not sampled while detached. */
void sampler_detach(struct sampler *s, size_t i, bool away);

/* Whether a window may begin: each board that is sampled has a sample, or 4 s of real
 * time have passed since sampler_new().
 */
bool sampler_fed(const struct sampler *s, uint64_t now_ns);

/* Listener that gets every sample of one board.  s->has tells which values were read in
 * this round.  With a listener, power is read in each round, unless all listeners have
 * `overhears`.
 */
struct sampler_ear {
    void (*fn)(size_t board, const struct gpu_sample *s, void *user);
    void *user;
    size_t board;
    bool overhears;
    bool patient;             /* it may get samples up to 1 s late */
    bool listens;             /* see sampler_listen() */
    struct sampler_ear *next; /* for sampler.c */
};
/* Model of the power reading that listeners get: the instant one if the board has it,
 * else the plain one.
 */
const struct sensor *sampler_sensor(const struct sampler *s, size_t i);
/* Adds a listener; ear is borrowed until sampler_deaf() or sampler_free(). */
void sampler_hear(struct sampler *s, size_t i, struct sampler_ear *ear);
void sampler_deaf(struct sampler *s, size_t i, struct sampler_ear *ear);
/* While a listener listens, power and energy of a board at SAMPLER_SEARCH are read every
 * 50 ms, at uneven times: a slower reader cannot resolve the training steps of most jobs.
 */
void sampler_listen(struct sampler *s, size_t i, struct sampler_ear *ear, bool listens);

size_t sampler_count(const struct sampler *s);
const struct sampler_now *sampler_board(const struct sampler *s, size_t i);
struct meter *sampler_meter(struct sampler *s, size_t i);
/* Sum of board_calls() over all boards. */
uint64_t sampler_calls(const struct sampler *s);

#endif
