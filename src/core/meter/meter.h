/* Computes the energy of any window from the counter and power readings of one board.
 *
 * The meter is pure: it is fed samples and queried for windows, and reads no clock.
 * One meter a board (or RAPL domain), used by one thread at a time.
 *
 * The loop that drives it:
 *
 *     meter_mark(m, t)                    a window begins or ends at t: now, soon, or a
 *                                         moment ago; samples are dense around t
 *     at = meter_next(m, now)             take the next sample then: 5 to 20 Hz with
 *                                         jitter, faster for a moment around marks
 *     meter_feed(m, &sample, err)         the values that were read
 *     meter_ready(m, b)                   when a window that ends at b is available at
 *                                         full accuracy (lag and one tick after b)
 *     meter_window(m, a, b, &r, err)      energy, interval, method, why
 *
 * If a counter integrates true power, energy is the difference of its values,
 * interpolated at the window's ends within the counter's period.  If only a part-time
 * sensor is available (25 of every 100 ms), the readings before, within and after the
 * window are folded on the load's period; a part of the period that no reading covers
 * widens the interval and sets a flag.  Feed the meter for 15 s before the first window
 * if possible, so that the load's period can be found.
 */
#ifndef CORE_METER_METER_H
#define CORE_METER_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/names.h"
#include "base/sensor.h"
#include "core/meter/half-sum.h"
#include "underwatt/error.h"

enum meter_has {
    METER_HAS_POWER = 1u << 0,
    METER_HAS_INSTANT = 1u << 1,
    METER_HAS_AVERAGE = 1u << 2,
    METER_HAS_COUNTER = 1u << 3,
};

/* The values of one round of driver calls, with the clock before and after.  The power
 * fields were read some time within [power_began_ns, power_at_ns].
 */
struct meter_sample {
    uint32_t has; /* enum meter_has */
    uint64_t power_began_ns, power_at_ns;
    uint64_t counter_began_ns, counter_at_ns; /* only with METER_HAS_COUNTER */
    double power_w, instant_w, average_w;
    uint64_t counter; /* raw counts */
};

struct meter_opts {
    struct sensor_model model;
    uint64_t period_ns; /* mean time between samples; 0: 50 ms */
    uint64_t seed;      /* of the jitter */
    /* windows begin at most this long ago (60 s at least); older samples are dropped. 0:
     * no bound, older samples are thinned out
     */
    double history_s;
    double most_w; /* highest power of the board at any moment; 0: unknown */
};

struct meter;

/* 0, -EINVAL (the model has neither counter nor reading, or is out of range) or
 * -ENOMEM.  Memory grows with what is kept, up to 0.8 MiB a meter; with a history of
 * 180 s about 0.2 MiB at 10 Hz and 30 KiB at rest.
 */
int meter_new(const struct meter_opts *opts, struct meter **ret, uw_error *err);
void meter_free(struct meter *m); /* NULL is fine */
DEFINE_AUTO(struct meter *, meter_free);
/* A copy of the meter's state, for windows computed elsewhere; NULL: no memory. */
struct meter *meter_clone(const struct meter *m);

enum meter_feed_outcome {
    /* sample out of order, or with a clock that runs backwards: nothing changed */
    METER_E_OLD = 1,
    /* a field is no number or no power (negative, above 100 kW): that field is ignored,
     * the others are used
     */
    METER_E_BAD,
};

/* 0, enum meter_feed_outcome, or -ENOMEM. */
int meter_feed(struct meter *m, const struct meter_sample *s, uw_error *err);

/* Announces that a window begins or ends at at_ns, in the near future or just past.  Up
 * to 64 marks are kept: the first, where a run begins, and the newest.  Windows need no
 * marks; a mark makes the sampling dense there, and keeps the energy at that time exact
 * after older samples are thinned out.
 */
void meter_mark(struct meter *m, uint64_t at_ns);

/* When to take the next sample; a time in the past means now.  Call again after each feed
 * and each mark.
 */
uint64_t meter_next(struct meter *m, uint64_t now_ns);

/* Changes the mean time between samples to period_ns, for a meter that runs without end.
 * With a proved counter of true power, values between samples may then go unread.  From
 * METER_REST_NS on the board is taken to be at rest: sampling is not denser around marks,
 * nor for a part-time sensor.
 */
#define METER_REST_NS 1000000000ull
void meter_pace(struct meter *m, uint64_t period_ns);

/* When the driver has published all that a window ending at end_ns needs; a sample taken
 * at or after that time must be fed first.
 */
uint64_t meter_ready(const struct meter *m, uint64_t end_ns);

/* When a counter of true power shows the energy used until end_ns, by the phase of its
 * changes.  UINT64_MAX: that phase is not known well, or energy may not be taken from the
 * counter.
 */
uint64_t meter_shows(const struct meter *m, uint64_t end_ns);

enum meter_method { METER_METHODS(NAME_ENUM) };

/* Reasons for a wide interval. */
enum meter_why { METER_DOUBTS(NAME_FLAG) };
/* "aliasing, gap": names of the flags, separated by commas; "" for none.  Returns ret. */
const char *meter_why_text(uint32_t why, char *ret, size_t size);
/* Description of the lowest flag set, for users; NULL: none is set. */
const char *meter_why_words(uint32_t why);

/* Whether the energy is the counter's alone: readings had no part in it (half-sum.h). */
static inline bool meter_counted(enum meter_method method, uint32_t why)
{
    return method == METER_COUNTER && !(why & (METER_WHY_RESET | METER_WHY_STUCK));
}

struct meter_result {
    double energy_j;
    double power_w;  /* energy_j over the window's length */
    double half_j;   /* half width of the 95 % interval of energy_j, without gain error */
    double period_s; /* the load's period used for folding; 0: none found */
    enum meter_method method;
    uint32_t why; /* enum meter_why */
};
/* For the half width of a sum. */
static inline struct half_sum meter_half(const struct meter_result *r)
{
    return half_sum_of(r->energy_j, r->half_j, meter_counted(r->method, r->why));
}

/* Energy of [begin_ns, end_ns]. 0; -EINVAL (end <= begin); -ENODATA (no data in it, or it
 * begins more than 2 s before the first sample or ends more than 2 s after the last).
 * *ret is unchanged on failure.
 */
int meter_window(struct meter *m, uint64_t begin_ns, uint64_t end_ns,
                 struct meter_result *ret, uw_error *err);

/* As meter_window() where that takes microseconds.  METER_E_FOLDS: readings of a
 * part-time sensor have to be folded, which may take a second; nothing is written.
 */
enum { METER_E_FOLDS = 1 };
int meter_window_known(const struct meter *m, uint64_t begin_ns, uint64_t end_ns,
                       struct meter_result *ret, uw_error *err);

/* Whether a part-time sensor, without a better counter, sees the same part of each step
 * throughout a window of length_s: the step time is near one to four times its period.
 * Readings then contain nothing of the rest, and the energy is unknown.
 */
bool meter_hides(const struct meter *m, double step_s, double length_s);

/* As meter_window() before meter_ready(end_ns): where the counter has a value of end_ns
 * or later, or what the board may use between its last value and end_ns is little beside
 * the interval's half width, which then covers it.  METER_E_EARLY: it is not little, or
 * the counter is not what the energy is taken from; nothing is written.  Else as
 * meter_window().
 */
enum { METER_E_EARLY = 1 };
int meter_window_early(struct meter *m, uint64_t begin_ns, uint64_t end_ns,
                       struct meter_result *ret);

/* The `quantile` (0.99: observed peak) of the board's power over pieces of 100 ms that
 * lie wholly within the window, or over the readings where those are longer.  Only the
 * last 120 s of the window are used. 0, -EINVAL or -ENODATA.
 */
int meter_quantile(const struct meter *m, uint64_t begin_ns, uint64_t end_ns,
                   double quantile, double *ret_w, uw_error *err);
/* meter_quantile with 0.99. */
int meter_peak(const struct meter *m, uint64_t begin_ns, uint64_t end_ns, double *ret_w,
               uw_error *err);

/* Mean power over the over_s seconds that end end_s after a window's beginning. */
struct meter_power {
    double end_s, over_s, power_w;
};
/* The power in a window, by the source that its energy is from: means between changes of
 * the counter, or of readings (METER_INTEGRATED, METER_FOLDED), of at least one of the
 * source's periods; of 10 s and more where that is so long ago that only chunks are kept.
 * They follow each other from the window's beginning to its end, and power times length
 * sums to meter_window()'s energy (not where that is folded).  At most `room` (>= 1):
 * where there are more, each is the mean of several.  Results and errors as of
 * meter_window().
 */
int meter_powers(const struct meter *m, uint64_t begin_ns, uint64_t end_ns,
                 struct meter_power *buf, size_t room, size_t *ret_n, uw_error *err);
/* The earliest time from which windows are known; UINT64_MAX: none. */
uint64_t meter_since(const struct meter *m);
/* Joins neighbours until each but the last spans at least least_s; returns their number.
 * over_s sums up: what lies between two that do not touch is in no mean.
 */
size_t meter_powers_join(struct meter_power *p, size_t n, double least_s);

struct meter_state {
    bool counter_proved; /* its differences agree with the readings */
    bool counter_fed;    /* the counter sums the sensor's readings */
    bool
        counter_true; /* the counter measures more than the readings: it misses nothing */
    bool counter_stuck, sensor_stuck;
    double counter_update_s; /* as observed; 0: not yet known */
    double period_s;         /* the load's, last found; 0: none */
    double mismatch; /* counter against integrated readings, (c - i) / i; 0 unknown */
    uint64_t resets, wraps, refused, gaps;
    uint64_t last_ns;  /* of the last sample taken */
    bool counter_used; /* windows are counter differences now, not readings */
    bool intent;       /* sampling is dense around an edge: follow meter_next() closely */
};
void meter_state(struct meter *m, struct meter_state *ret);

#endif
