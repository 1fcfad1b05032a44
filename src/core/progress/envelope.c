#include "core/progress/envelope.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

#define GENERATION_BUCKETS 64.0
#define GENERATION_S 300.0
#define LEAST_BUCKET_S 0.375
/* a bound that moved counts as settled after this time at the latest */
#define LONGEST_S 130.0
#define MARGIN_SD 5.0
#define SWING_MARGIN 2
#define YOUNG_BUCKETS 6     /* the margin is wider while fewer windows were seen */
#define MARGIN_WIDTH 0.07   /* of the envelope's own width */
#define MARGIN_ENDS 0.25    /* of a sample's share of the window, times the swing */
#define MARGIN_LEVEL 0.004  /* of the level */
#define DRIFT_PER_S 0.0003  /* of the level: allows for warming */
#define NOISE_QUANTILE 0.25 /* of the differences between readings */
/* standard deviation over that quantile, of normal noise: 1 / 0.4506 */
#define NOISE_OF_QUANTILE 2.2
#define NOISE_MOST 0.04 /* of the level: more is the workload's own swing */
#define SHARE_RATE 0.05 /* smoothing of the share of samples that hold a channel */
/* below this share the held values are too old for an envelope */
#define SHARE_KNOWN 0.5

uint64_t history_first(const struct history *h)
{
    return h->n > HISTORY_SAMPLES ? h->n - HISTORY_SAMPLES : 0;
}

uint64_t history_at_ns(const struct history *h, uint64_t i)
{
    return h->at_ns[i % HISTORY_SAMPLES];
}

double history_value(const struct history *h, enum channel c, uint64_t i)
{
    return h->value[c][i % HISTORY_SAMPLES];
}

#define NOISE_BASE_W 20.0 /* the part of the noise that does not grow with power */

static double noise_unit(enum channel c, double level)
{
    return c == CHANNEL_POWER ? fabs(level) + NOISE_BASE_W : 1;
}

double history_noise(const struct history *h, enum channel c, double level)
{
    return h->noise[c] * noise_unit(c, level);
}

/* Running quantile of the difference between readings, adapted by factors. */
static void learn_noise(struct history *h, enum channel c, double difference,
                        double level)
{
    static const double least[CHANNELS] = {0.001, 0.7, 0.7},
                        most[CHANNELS] = {NOISE_MOST, 4, 4};
    double d = difference / noise_unit(c, level);
    double q = h->noise[c] / NOISE_OF_QUANTILE;
    double rate = h->n < 64 ? 0.2 : 0.04;

    if (q <= 0)
        q = d / 2;
    q *= exp(rate * (d < q ? NOISE_QUANTILE - 1 : NOISE_QUANTILE));
    h->noise[c] = fmin(fmax(q * NOISE_OF_QUANTILE, least[c]), most[c]);
}

/* v is NAN: not read, the last value is held. */
static void add_value(struct history *h, enum channel c, double value, double dt)
{
    uint64_t slot = h->n % HISTORY_SAMPLES,
             last = (h->n + HISTORY_SAMPLES - 1) % HISTORY_SAMPLES;
    double before = h->n > 0 ? h->value[c][last] : 0;
    double v = isnan(value) ? before : value, has = isnan(value) ? 0 : 1;

    h->value[c][slot] = v;
    h->sum[c][slot] = (h->n > 0 ? h->sum[c][last] : 0) + v * dt;
    if (h->known[c] && has > 0 && v != before)
        learn_noise(h, c, fabs(v - before), fmax(v, before));
    h->share[c] += h->n > 0 ? SHARE_RATE * (has - h->share[c]) : has;
    h->known[c] = h->share[c] > SHARE_KNOWN && (has > 0 || h->known[c]);
}

bool history_add(struct history *h, const struct activity *a)
{
    const double values[CHANNELS] = {a->power_w, a->sm_util, a->mem_util};
    uint64_t slot = h->n % HISTORY_SAMPLES,
             last = (h->n + HISTORY_SAMPLES - 1) % HISTORY_SAMPLES;

    if (isnan(a->power_w) || (h->n > 0 && a->at_ns <= h->at_ns[last]))
        return false;
    double dt = h->n > 0 ? s_of_ns(a->at_ns - h->at_ns[last]) : 0;
    if (h->n > 0 && (h->step_s <= 0 || dt < 10 * h->step_s))
        h->step_s = h->step_s > 0 ? h->step_s + 0.05 * (dt - h->step_s) : dt;
    for (enum channel c = 0; c < CHANNELS; c++)
        add_value(h, c, values[c], dt);
    h->at_ns[slot] = a->at_ns;
    if (h->n > 0 && h->value[0][slot] != h->value[0][last]) {
        double gap = fmin(s_of_ns(a->at_ns - h->changed_ns), 4 * h->step_s);
        h->fresh_s = h->fresh_s > 0 ? h->fresh_s + 0.05 * (gap - h->fresh_s) : gap;
        h->changed_ns = a->at_ns;
    }
    h->n++;
    return true;
}

uint64_t history_seek(const struct history *h, uint64_t at_ns)
{
    uint64_t low = history_first(h), high = h->n;

    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (history_at_ns(h, mid) < at_ns)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static double integral_at(const struct history *h, enum channel c, uint64_t at_ns)
{
    uint64_t i = history_seek(h, at_ns);

    if (i == h->n)
        i = h->n - 1;
    double late = (double)((int64_t)(history_at_ns(h, i) - at_ns)) * 1e-9;
    if (i == history_first(h))
        late = fmax(0, fmin(late, 0)); /* nothing is known before the first sample */
    return h->sum[c][i % HISTORY_SAMPLES] - late * history_value(h, c, i);
}

double history_mean(const struct history *h, enum channel c, uint64_t from_ns,
                    uint64_t to_ns)
{
    uint64_t first = history_at_ns(h, history_first(h));

    from_ns = from_ns < first ? first : from_ns;
    if (to_ns <= from_ns)
        return history_value(h, c, h->n - 1);
    return (integral_at(h, c, to_ns) - integral_at(h, c, from_ns)) /
           s_of_ns(to_ns - from_ns);
}

double scale_s(int k)
{
    return k == 0 ? 0 : 0.1 * (double)(1u << (unsigned)(k - 1));
}

static double bucket_s(int k)
{
    return fmax(LEAST_BUCKET_S, scale_s(k));
}

void envelope_init(struct envelope *e, uint64_t from_ns)
{
    memset(e, 0, sizeof *e);
    e->from_ns = from_ns;
}

void envelope_resume(struct envelope *e, uint64_t from_ns)
{
    e->from_ns = from_ns;
    for (enum channel c = 0; c < CHANNELS; c++)
        for (int k = 0; k < SCALES; k++) {
            e->watch[c][k].end_ns = 0;
            e->watch[c][k].resumed = e->watch[c][k].bucket;
        }
}

/* All bounds are kept as upper bounds: of the value or of its negative. */
static double edge_value(const struct bound *b, enum edge edge)
{
    double v = b->generation > 1 ? fmax(b->now, b->before) : b->now;
    return edge == EDGE_OVER || edge == EDGE_BOTTOM_ROSE ? v : -v;
}

static double margin(const struct watch *w, const struct history *h, enum channel c,
                     int k)
{
    static const double least[CHANNELS] = {0.5, 2, 2};
    double s = scale_s(k), n = fmax(1, s / fmax(h->fresh_s, 1e-3));
    double high = edge_value(&w->bound[EDGE_OVER], EDGE_OVER);
    double low = edge_value(&w->bound[EDGE_UNDER], EDGE_UNDER);
    double level = c == CHANNEL_POWER ? fabs(high + low) / 2 : 0;

    return MARGIN_SD * history_noise(h, c, high) / sqrt(n) + MARGIN_WIDTH * (high - low) +
           MARGIN_ENDS * w->swing / (n + 1) + (MARGIN_LEVEL + DRIFT_PER_S * s) * level +
           least[c];
}

static void bound_take(struct bound *b, double v, double slack, uint64_t bucket, int k)
{
    double per = fmax(GENERATION_BUCKETS, GENERATION_S / bucket_s(k));
    unsigned generation = 1 + (unsigned)((double)bucket / per);

    if (b->generation == 0) {
        *b = (struct bound){.now = v, .before = v, .moved = bucket, .generation = 1};
        return;
    }
    double old = b->generation > 1 ? fmax(b->now, b->before) : b->now;
    if (generation != b->generation) {
        b->before = b->now;
        b->now = v;
        b->generation = generation;
    }
    if (v > old + slack)
        b->moved = bucket;
    b->now = fmax(b->now, v);
}

static double bucket_most(const struct watch *w, uint64_t from, uint64_t to)
{
    double v = -INFINITY;
    for (uint64_t i = from; i < to; i++)
        v = fmax(v, w->top[i % BUCKETS]);
    return v;
}

static double bucket_least(const struct watch *w, uint64_t from, uint64_t to)
{
    double v = INFINITY;
    for (uint64_t i = from; i < to; i++)
        v = fmin(v, w->bottom[i % BUCKETS]);
    return v;
}

/* Closes bucket w->bucket, and learns the bucket two before it. */
static void bucket_end(struct watch *w, const struct history *h, enum channel c, int k)
{
    uint64_t n = ++w->bucket;

    if (n < w->resumed + 3)
        return;
    double slack = w->bound[EDGE_OVER].generation ? margin(w, h, c, k) / 2 : 0;
    uint64_t i = n - 3;
    bound_take(&w->bound[EDGE_OVER], w->top[i % BUCKETS], slack, n, k);
    bound_take(&w->bound[EDGE_UNDER], -w->bottom[i % BUCKETS], slack, n, k);
    if (n < w->resumed + BUCKETS_BACK + 2)
        return;
    bound_take(&w->bound[EDGE_TOP_FELL], -bucket_most(w, n - BUCKETS_BACK - 2, n - 2),
               slack, n, k);
    bound_take(&w->bound[EDGE_BOTTOM_ROSE], bucket_least(w, n - BUCKETS_BACK - 2, n - 2),
               slack, n, k);
}

static void watch_learn(struct watch *w, const struct history *h, enum channel c, int k,
                        uint64_t at_ns, double v)
{
    uint64_t length = (uint64_t)(bucket_s(k) * 1e9);

    if (w->end_ns != 0 && at_ns >= w->end_ns)
        bucket_end(w, h, c, k);
    uint64_t slot = w->bucket % BUCKETS;
    if (w->end_ns == 0 || at_ns >= w->end_ns) {
        w->end_ns = w->end_ns != 0 && at_ns < w->end_ns + length ? w->end_ns + length
                                                                 : at_ns + length;
        w->top[slot] = w->bottom[slot] = v;
    }
    w->top[slot] = fmax(w->top[slot], v);
    w->bottom[slot] = fmin(w->bottom[slot], v);
}

/* Start of the window of scale k that ends at sample i; false: it would begin too early,
 * or the readings are too coarse for it.
 */
static bool window_of(const struct history *h, uint64_t from_ns, uint64_t i, int k,
                      uint64_t *ret_from)
{
    uint64_t to = history_at_ns(h, i), length = (uint64_t)(scale_s(k) * 1e9);

    if (k > 0 && scale_s(k) < 1.5 * h->fresh_s)
        return false;
    if (to < from_ns + length || to - length < history_at_ns(h, history_first(h)))
        return false;
    *ret_from = to - length;
    return true;
}

static double window_value(const struct history *h, enum channel c, uint64_t i, int k,
                           uint64_t from)
{
    return k == 0 ? history_value(h, c, i)
                  : history_mean(h, c, from, history_at_ns(h, i));
}

static double swing_of(const struct envelope *e, enum channel c)
{
    double low, high;

    return envelope_range(e, c, &low, &high) ? high - low : 0;
}

void envelope_learn(struct envelope *e, const struct history *h, uint64_t i)
{
    for (int k = 0; k < SCALES; k++) {
        uint64_t from;
        if (!window_of(h, e->from_ns, i, k, &from))
            continue;
        for (enum channel c = 0; c < CHANNELS; c++) {
            struct watch *w = &e->watch[c][k];
            if (!h->known[c])
                continue;
            w->swing = k > 0 ? swing_of(e, c) : 0;
            watch_learn(w, h, c, k, history_at_ns(h, i), window_value(h, c, i, k, from));
        }
    }
}

/* Whether the bound has not moved for as long as it took to settle. */
static bool settled(const struct watch *w, enum edge edge, int k, double period_s)
{
    const struct bound *b = &w->bound[edge];
    double most = fmax(30, LONGEST_S / bucket_s(k));
    uint64_t need = 2 + (uint64_t)fmin((double)b->moved, most);

    if (b->generation == 0)
        return false;
    if (period_s > 0 && (double)w->bucket * bucket_s(k) < 2 * period_s)
        return false;
    return w->bucket >= b->moved + need;
}

/* One watch under test: of channel c and scale k, against its margin. */
struct trial {
    const struct watch *w;
    enum channel c;
    int k;
    double slack, period_s;
};

static void worse(const struct trial *t, double over, enum edge edge, struct breach *b)
{
    double excess = over / t->slack - 1;

    if (excess > b->excess && settled(t->w, edge, t->k, t->period_s))
        *b = (struct breach){excess, t->c, t->k, edge};
}

static double edge_of(const struct watch *w, enum edge edge)
{
    return edge_value(&w->bound[edge], edge);
}

/* Whether the swing of the last buckets became smaller. */
static void swings_test(struct trial t, struct breach *b)
{
    uint64_t from = t.w->bucket - BUCKETS_BACK, to = t.w->bucket + 1;

    t.slack *= SWING_MARGIN;
    worse(&t, edge_of(t.w, EDGE_TOP_FELL) - bucket_most(t.w, from, to), EDGE_TOP_FELL, b);
    worse(&t, bucket_least(t.w, from, to) - edge_of(t.w, EDGE_BOTTOM_ROSE),
          EDGE_BOTTOM_ROSE, b);
}

static void watch_test(struct trial *t, const struct history *h, double v, bool swings,
                       struct breach *b)
{
    const struct watch *w = t->w;

    if (w->bound[EDGE_OVER].generation == 0)
        return;
    t->slack = margin(w, h, t->c, t->k) * (1 + YOUNG_BUCKETS / (double)(w->bucket + 1));
    worse(t, v - edge_of(w, EDGE_OVER), EDGE_OVER, b);
    worse(t, edge_of(w, EDGE_UNDER) - v, EDGE_UNDER, b);
    if (swings && t->k > 0 && w->bucket >= w->resumed + BUCKETS_BACK &&
        BUCKETS_BACK * bucket_s(t->k) >= 1.2 * t->period_s)
        swings_test(*t, b);
}

struct breach envelope_test(const struct envelope *e, const struct history *h, uint64_t i,
                            bool swings, double period_s)
{
    struct breach b = {0};

    for (int k = 0; k < SCALES; k++) {
        uint64_t from;
        if (!window_of(h, e->from_ns, i, k, &from))
            continue;
        for (enum channel c = 0; c < CHANNELS; c++) {
            struct trial t = {.w = &e->watch[c][k], .c = c, .k = k, .period_s = period_s};
            if (h->known[c])
                watch_test(&t, h, window_value(h, c, i, k, from), swings, &b);
        }
    }
    return b;
}

static bool inside(const struct watch *w, const struct history *h, double v,
                   enum channel c, int k)
{
    if (w->bound[EDGE_OVER].generation == 0)
        return true;
    double slack = margin(w, h, c, k);
    return v <= edge_value(&w->bound[EDGE_OVER], EDGE_OVER) + slack &&
           v >= edge_value(&w->bound[EDGE_UNDER], EDGE_UNDER) - slack;
}

bool envelope_fits(const struct envelope *e, const struct history *h, uint64_t from,
                   uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        for (int k = 0; k < SCALES; k++) {
            uint64_t begin;
            if (!window_of(h, history_at_ns(h, from), i, k, &begin))
                continue;
            for (enum channel c = 0; c < CHANNELS; c++)
                if (h->known[c] &&
                    !inside(&e->watch[c][k], h, window_value(h, c, i, k, begin), c, k))
                    return false;
        }
    return true;
}

bool envelope_range(const struct envelope *e, enum channel c, double *ret_low,
                    double *ret_high)
{
    const struct watch *w = &e->watch[c][0];

    if (w->bound[EDGE_OVER].generation == 0)
        return false;
    *ret_low = edge_value(&w->bound[EDGE_UNDER], EDGE_UNDER);
    *ret_high = edge_value(&w->bound[EDGE_OVER], EDGE_OVER);
    return true;
}
