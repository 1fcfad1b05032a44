#include "core/progress/onset.h"

#include <math.h>

#include "base/units.h"

/* Two classes of readings, above and below a threshold. */
struct classes {
    double n[2], sum[2];
};

static void count(struct classes *k, const struct history *h, enum channel c,
                  double split, uint64_t from, uint64_t to)
{
    *k = (struct classes){0};
    for (uint64_t i = from; i < to; i++) {
        double v = history_value(h, c, i);
        k->n[v > split]++;
        k->sum[v > split] += v;
    }
}

static double share(const struct classes *k, int class)
{
    return (k->n[class] + 0.05) / (k->n[0] + k->n[1] + 0.1);
}

static double mean_of(const struct classes *k, int class, double otherwise)
{
    return k->n[class] > 0 ? k->sum[class] / k->n[class] : otherwise;
}

/* Sample after which the log-likelihood ratio of all readings is largest. */
static uint64_t best_split(const struct history *h, enum channel c, double split,
                           const struct classes *before, const struct classes *after,
                           uint64_t first)
{
    double sum = 0, best = -INFINITY;
    uint64_t at = h->n - 1;

    for (uint64_t i = h->n; i-- > first;) {
        double v = history_value(h, c, i);
        int k = v > split;
        double sd = 1.5 * history_noise(h, c, v);
        double was = (v - mean_of(before, k, v + 4 * sd)) / sd;
        double is = (v - mean_of(after, k, v + 4 * sd)) / sd;
        double gain = fmax(-8, fmin(8, (was * was - is * is) / 2));
        sum += gain + log(share(after, k) / share(before, k));
        if (sum > best) {
            best = sum;
            at = i;
        }
    }
    return at;
}

struct onset onset_find(const struct history *h, uint64_t from_ns, const struct breach *b)
{
    enum channel c = b->channel;
    uint64_t now = history_at_ns(h, h->n - 1);
    bool swing = b->edge == EDGE_TOP_FELL || b->edge == EDGE_BOTTOM_ROSE;
    double window = fmax(scale_s(b->scale), h->fresh_s) * (swing ? BUCKETS_BACK + 2 : 1) +
                    0.4 * swing;
    double reach = fmax(3 * window, 2) + 2 * h->step_s;
    uint64_t old = history_seek(h, from_ns);
    uint64_t least = now > (uint64_t)(reach * 1e9) ? now - (uint64_t)(reach * 1e9) : 0;
    uint64_t first = history_seek(h, least < from_ns ? from_ns : least);
    double low = INFINITY, high = -INFINITY;

    if (first <= old)
        first = old + 1 < h->n ? old + 1 : h->n - 1;
    for (uint64_t i = old; i < first; i++) {
        low = fmin(low, history_value(h, c, i));
        high = fmax(high, history_value(h, c, i));
    }
    double split =
        high - low > 8 * history_noise(h, c, high) ? (low + high) / 2 : INFINITY;
    struct classes before, after;
    count(&before, h, c, split, old, first);
    uint64_t back = (uint64_t)(fmax(window * 0.6, h->fresh_s) * 1e9);
    uint64_t at = history_seek(h, now > back ? now - back : 0);
    if (at >= h->n)
        at = h->n - 1;
    for (int round = 0; round < 3; round++) {
        count(&after, h, c, split, at, h->n);
        at = best_split(h, c, split, &before, &after, first);
    }
    double was =
        history_mean(h, CHANNEL_POWER, history_at_ns(h, old), history_at_ns(h, first));
    double is = 0;
    for (uint64_t i = at; i < h->n; i++)
        is += history_value(h, CHANNEL_POWER, i) / (double)(h->n - at);
    return (struct onset){.at_ns = history_at_ns(h, at), .level_w = is, .up = is > was};
}
