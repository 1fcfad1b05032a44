/* History of a board's telemetry, at all time scales: the recent samples, and the
 * empirical envelope of their sliding means (the least and the most that any window of
 * 0.1 to 51 s has held; network calculus calls the pair arrival curves, Le Boudec and
 * Thiran 2001).  Power that swings with the iteration stays inside once a few periods
 * were seen, whatever the phase and the jitter of the steps; a dip longer than the usual
 * gap, or a shift of the mean, leaves the envelope at the scale where it shows first.  A
 * second pair, of the highest and lowest mean within eight windows, shows swings that
 * became smaller.
 *
 * Bounds learn values that are at least two buckets old, so that a shift is found before
 * the bounds adapt to it.  Pure; O(scales) a sample.
 */
#ifndef CORE_PROGRESS_ENVELOPE_H
#define CORE_PROGRESS_ENVELOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/progress/activity.h"

enum channel { CHANNEL_POWER, CHANNEL_SM, CHANNEL_MEM, CHANNELS };
enum { HISTORY_SAMPLES = 4096, SCALES = 11, BUCKETS_BACK = 8, BUCKETS = 11 };

/* The newest samples, with running integrals; a reading stands for the time before it.
 * All zero: none.  Pages that are not written yet take no memory where they came from
 * calloc().
 */
struct history {
    uint64_t at_ns[HISTORY_SAMPLES];
    double value[CHANNELS][HISTORY_SAMPLES];
    double sum[CHANNELS][HISTORY_SAMPLES]; /* unit x seconds */
    uint64_t n;             /* samples ever added; sample i lies at i % HISTORY_SAMPLES */
    bool known[CHANNELS];   /* in at least half of the recent samples */
    double share[CHANNELS]; /* smoothed share of samples that hold it */
    double noise[CHANNELS]; /* see history_noise() */
    double step_s;          /* mean time between samples */
    double fresh_s;         /* mean time between readings that differ */
    uint64_t changed_ns;
};

/* false: not added, as it is not later than the last one or has no power. */
bool history_add(struct history *h, const struct activity *a);
uint64_t history_first(const struct history *h); /* oldest index kept */
uint64_t history_at_ns(const struct history *h, uint64_t i);
/* Estimated standard deviation of a reading near that level. */
double history_noise(const struct history *h, enum channel c, double level);
double history_value(const struct history *h, enum channel c, uint64_t i);
/* First index at or after at_ns; h->n if none. */
uint64_t history_seek(const struct history *h, uint64_t at_ns);
/* Mean over (from, to]; from < to, clamped to the samples kept. */
double history_mean(const struct history *h, enum channel c, uint64_t from_ns,
                    uint64_t to_ns);

/* Seconds of window k; 0: the single reading. */
double scale_s(int k);

enum edge { EDGE_OVER, EDGE_UNDER, EDGE_TOP_FELL, EDGE_BOTTOM_ROSE, EDGES };

struct bound {
    double now, before;  /* extreme of this generation and of the last one */
    uint64_t moved;      /* bucket of the last significant move */
    unsigned generation; /* 0: nothing learned */
};

struct watch {
    double top[BUCKETS], bottom[BUCKETS]; /* by bucket */
    uint64_t bucket, resumed; /* finished buckets: all, and at the last resume */
    uint64_t end_ns;          /* of the open bucket; 0: none open */
    double swing; /* range of single readings, for the error at a window's ends */
    struct bound bound[EDGES];
};

struct envelope {
    uint64_t from_ns; /* windows begin here or later */
    struct watch watch[CHANNELS][SCALES];
};

struct breach {
    double excess; /* over the margin, in margins; <= 0: none */
    enum channel channel;
    int scale;
    enum edge edge;
};

void envelope_init(struct envelope *e, uint64_t from_ns);
/* The regime is resumed at from_ns; its bounds are kept. */
void envelope_resume(struct envelope *e, uint64_t from_ns);
/* Tests sample i against the bounds. swings: test for smaller swings too, which takes a
 * regime that has lasted. period_s: known period of an iteration, or 0.
 */
struct breach envelope_test(const struct envelope *e, const struct history *h, uint64_t i,
                            bool swings, double period_s);
void envelope_learn(struct envelope *e, const struct history *h, uint64_t i);
/* Whether the samples [from, to) fit this regime; only windows inside them are tested. */
bool envelope_fits(const struct envelope *e, const struct history *h, uint64_t from,
                   uint64_t to);
/* Least and greatest single reading learned; false: none yet. */
bool envelope_range(const struct envelope *e, enum channel c, double *ret_low,
                    double *ret_high);

#endif
