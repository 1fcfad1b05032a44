/* Counters and power readings of one board to the energy of any window.
 *
 * The meter is pure: it is told samples and asked for windows; it reads no
 * clock.  One meter a board (or a RAPL domain), one thread at a time.
 *
 * The loop that drives it:
 *
 *     meter_mark(m, t)                    a window begins or ends at t: now, soon,
 *                                         or a moment ago; ends are hunted for
 *     at = meter_next(m, now)             take the next sample then: 5 to 20 Hz with
 *                                         jitter, faster for a moment round marks
 *     meter_feed(m, &sample, err)         what the driver said
 *     meter_ready(m, b)                   from then on a window that ends at b can be
 *                                         had at full accuracy (lag and one tick later)
 *     meter_window(m, a, b, &r, err)      energy, interval, method, why
 *
 * Where a counter integrates true power its differences are the energy, and the
 * window's ends are placed inside the counter's period.  Where only a sensor that
 * looks part of the time sees the board (25 of every 100 ms), the readings of
 * before, within and after the window are folded on the load's own period; what no
 * reading has seen widens the interval, and the flags say so.  Feed it for 15 s
 * before the first window where that can be had: a period must be seen to be known.
 */
#ifndef CORE_METER_METER_H
#define CORE_METER_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/names.h"
#include "base/sensor.h"
#include "underwatt/error.h"

enum meter_has {
    METER_HAS_POWER = 1u << 0,
    METER_HAS_INSTANT = 1u << 1,
    METER_HAS_AVERAGE = 1u << 2,
    METER_HAS_COUNTER = 1u << 3,
};

/* What one round of driver calls gave, with the clock on both sides.  The power
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
    double history_s;   /* windows begin no longer ago than that (60 s at least): older
                         * times are forgotten, and memory goes by need.  0: any time,
                         * thinned out as it grows old */
};

struct meter;

/* 0, -EINVAL (the model has neither counter nor reading, or is out of range) or
 * -ENOMEM.  Memory grows with what is kept, up to 0.8 MiB a meter; with a history of
 * 180 s about 0.2 MiB at 10 Hz and 30 KiB at rest.
 */
int meter_new(const struct meter_opts *opts, struct meter **ret, uw_error *err);
void meter_free(struct meter *m); /* NULL is fine */
DEFINE_AUTO(struct meter *, meter_free);
/* All it knows now, for windows computed elsewhere; NULL: no memory. */
struct meter *meter_clone(const struct meter *m);

enum meter_feed_outcome {
    METER_E_OLD =
        1,       /* out of order, or its clock runs backwards: refused, nothing changed */
    METER_E_BAD, /* a field is no number or no power (negative, above 100 kW): that field
                  * is left out, the rest taken */
};

/* 0, enum meter_feed_outcome, or -ENOMEM. */
int meter_feed(struct meter *m, const struct meter_sample *s, uw_error *err);

/* A window will begin or end, or has just begun or ended, at at_ns.  Up to 64 are
 * kept: the first, where a whole run begins, and the newest.  Windows may be asked for
 * without a mark; with one the sampling is dense there, and the place stays exact however
 * old it grows.
 */
void meter_mark(struct meter *m, uint64_t at_ns);

/* When to take the next sample; in the past means at once.  Ask again after each
 * feed and each mark.
 */
uint64_t meter_next(struct meter *m, uint64_t now_ns);

/* Another pace from now on, for a meter that runs for ever: a mean time of period_ns
 * between samples, and no more than that where a counter of true power has proved
 * itself.  From METER_REST_NS on the board is taken to be at rest: marks are not hunted
 * for, and a part-time sensor is not read more often either.
 */
#define METER_REST_NS 1000000000ull
void meter_pace(struct meter *m, uint64_t period_ns);

/* From then on what is needed for a window that ends at end_ns has been published;
 * a sample taken at or after it must be fed first.
 */
uint64_t meter_ready(const struct meter *m, uint64_t end_ns);

enum meter_method { METER_METHODS(NAME_ENUM) };

/* Why a result is less sure than it could be. */
enum meter_why { METER_DOUBTS(NAME_FLAG) };
/* "aliasing, gap": names of the flags, comma between; "" for none.  Returns ret. */
const char *meter_why_text(uint32_t why, char *ret, size_t size);
/* What the lowest of these flags means, for people; NULL: there is none. */
const char *meter_why_words(uint32_t why);

struct meter_result {
    double energy_j;
    double power_w; /* energy_j over the window's length */
    double half_j;  /* half width of the 95 % interval of energy_j, gain error left out */
    double half_w;  /* … of power_w */
    double period_s; /* the load's period as folded on; 0: none found */
    enum meter_method method;
    uint32_t why; /* enum meter_why */
};

/* Energy of [begin_ns, end_ns].  0; -EINVAL (end <= begin); -ENODATA (nothing was fed
 * that tells about any part of it, or it begins before the first sample or ends after
 * the last one by more than 2 s).  Nothing is written on failure.
 */
int meter_window(struct meter *m, uint64_t begin_ns, uint64_t end_ns,
                 struct meter_result *ret, uw_error *err);

/* The `quantile` (0.99: observed peak) of the board's power over pieces of 100 ms that
 * lie wholly within the window; where readings are longer than that, of those.  At most
 * the last 120 s are looked at.  0, -EINVAL or -ENODATA.
 */
int meter_quantile(struct meter *m, uint64_t begin_ns, uint64_t end_ns, double quantile,
                   double *ret_w, uw_error *err);
/* meter_quantile with 0.99. */
int meter_peak(struct meter *m, uint64_t begin_ns, uint64_t end_ns, double *ret_w,
               uw_error *err);

struct meter_state {
    bool counter_proved; /* its differences are used */
    bool counter_fed;    /* it adds up what the sensor saw */
    bool counter_stuck, sensor_stuck;
    double counter_update_s; /* as observed; 0: not yet */
    double sensor_update_s;
    double period_s; /* the load's, as last found; 0: none */
    double mismatch; /* counter against integrated readings, (c - i) / i; 0 unknown */
    uint64_t resets, wraps, refused, gaps;
    uint64_t last_ns;  /* of the last sample taken */
    bool counter_used; /* windows are counter differences now; readings are second */
    bool intent;       /* an edge is hunted for: meter_next() is to be kept to */
};
void meter_state(struct meter *m, struct meter_state *ret);

#endif
