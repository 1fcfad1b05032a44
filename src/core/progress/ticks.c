#include "core/progress/ticks.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

enum {
    BINS = 128, /* of a tick's phase */
    FIRST = 16, /* brackets of the first search; doubled for each further one */
    LOOK_AFTER = 16,
    STEPS_A_TICK = 12, /* of the search for the period, at the span's end */
    SPAN_TICKS = 1500, /* longer spans cost too much, and clocks drift apart */
};
#define WIDE 0.93 /* of a period: wider brackets are ignored */
/* least excess of matching brackets over chance, in standard deviations */
#define TELLING 5.5
#define OFF_NOMINAL 0.03 /* largest relative deviation from the nominal period */
#define FITTING 0.9      /* least share of brackets that hold a tick */
#define ERROR_MOST 0.1   /* largest error of the ticks, in periods */

void ticks_init(struct ticks *t, double update_s)
{
    *t = (struct ticks){.nominal_s = update_s, .period_s = update_s, .value = NAN};
}

/* ---- search for the ticks ---- */

/* A fit of ticks with one period to the brackets. */
struct lie {
    unsigned inside;     /* brackets that hold a tick, at the best phase */
    double phase, width; /* of the range of best phases: middle and width, in periods */
    double at_s, period_s;
};

/* The longest circular run of bins that reach the best count. */
static void best_run(const int *inside, int top, struct lie *ret)
{
    unsigned run = 0, best = 0, end = 0;

    for (unsigned k = 0; k < 2 * BINS; k++) {
        run = inside[k % BINS] == top && run < BINS ? run + 1 : 0;
        if (run > best) {
            best = run;
            end = k + 1;
        }
    }
    ret->width = (double)best / BINS;
    ret->phase = ((double)end - best / 2.0) / BINS;
}

/* Fits the newest n brackets; only `inside` is set if it is below best's. */
static struct lie lie_of(const struct ticks *t, unsigned n, double period_s,
                         const struct lie *best)
{
    int change[BINS + 1] = {0}, inside[BINS];
    double origin_s = t->from_s[(t->n - 1 - n / 2) % TICKS_KEPT];
    struct lie ret = {.at_s = origin_s, .period_s = period_s};

    for (unsigned i = t->n - n; i < t->n; i++) {
        double from = (t->from_s[i % TICKS_KEPT] - origin_s) / period_s;
        double width = (t->to_s[i % TICKS_KEPT] - t->from_s[i % TICKS_KEPT]) / period_s;
        int first = (int)((from - floor(from)) * BINS), bins = (int)ceil(width * BINS);
        int last = first + (bins < BINS ? bins : BINS);
        change[first]++;
        change[last < BINS ? last : BINS]--;
        if (last > BINS) {
            change[0]++;
            change[last - BINS]--;
        }
    }
    int top = 0;
    for (int k = 0, sum = 0; k < BINS; k++) {
        inside[k] = sum += change[k];
        top = sum > top ? sum : top;
    }
    ret.inside = (unsigned)top;
    if (ret.inside >= best->inside)
        best_run(inside, top, &ret);
    return ret;
}

/* By how many standard deviations the number of the newest n brackets that hold a tick
 * exceeds that expected for random ticks.
 */
static double no_chance(const struct ticks *t, unsigned n, unsigned inside)
{
    double sum = 0, var = 0;

    for (unsigned i = t->n - n; i < t->n; i++) {
        double width = t->to_s[i % TICKS_KEPT] - t->from_s[i % TICKS_KEPT];
        double share = fmin(1, width / t->nominal_s + 1.0 / BINS);
        sum += share;
        var += share * (1 - share);
    }
    return var > 0 ? (inside - sum) / sqrt(var) : 0;
}

/* From the start of the oldest of the newest n brackets to the end of the newest. */
static double span_of(const struct ticks *t, unsigned n)
{
    return t->to_s[(t->n - 1) % TICKS_KEPT] - t->from_s[(t->n - n) % TICKS_KEPT];
}

/* Tries periods outwards from the nominal one, then in finer steps around the best one
 * with twice as many brackets each time: a longer span resolves the period better.
 */
static void look(struct ticks *t)
{
    unsigned most = t->n < TICKS_KEPT ? t->n : TICKS_KEPT;
    double middle_s = t->nominal_s, range = OFF_NOMINAL;
    struct lie good = {0};

    for (unsigned n = FIRST; n <= most; n *= 2) {
        double span_s = span_of(t, n);
        if (span_s > SPAN_TICKS * t->nominal_s)
            break;
        double step = middle_s / span_s / STEPS_A_TICK;
        struct lie best = {0};
        for (int i = 0; i * step <= range; i++)
            for (int sign = -1; sign <= 1; sign += 2) {
                struct lie l = lie_of(t, n, middle_s * (1 + sign * i * step), &best);
                if (l.inside > best.inside ||
                    (l.inside == best.inside && l.width > best.width))
                    best = l;
            }
        bool fits = best.inside >= FITTING * n && no_chance(t, n, best.inside) > TELLING;
        if (!fits && good.inside == 0)
            continue; /* more brackets may decide */
        if (!fits) {
            t->known = false;
            return;
        }
        good = best;
        middle_s = best.period_s;
        range = 3 * step;
    }
    t->known = good.inside > 0 && good.width / sqrt(12) + 1.0 / BINS < ERROR_MOST;
    if (!t->known)
        return;
    t->at_s = good.at_s + good.phase * good.period_s;
    t->period_s = good.period_s;
    t->error_s = good.period_s * (good.width / sqrt(12) + 1.0 / BINS);
}

static void bracket(struct ticks *t, double from_s, double to_s)
{
    if (to_s - from_s > WIDE * t->nominal_s || to_s <= from_s)
        return;
    t->from_s[t->n % TICKS_KEPT] = from_s;
    t->to_s[t->n % TICKS_KEPT] = to_s;
    if (++t->n >= 2 * TICKS_KEPT) /* keep the index in the ring, without overflow */
        t->n -= TICKS_KEPT;
    if (++t->fresh < LOOK_AFTER || t->n < FIRST)
        return;
    t->fresh = 0;
    look(t);
}

/* ---- readings ---- */

double ticks_late(const struct ticks *t, double at_s)
{
    double ticks = (t->at_s - at_s) / t->period_s;

    return ticks - round(ticks);
}

double ticks_before(const struct ticks *t, double at_s)
{
    return t->at_s + floor((at_s - t->at_s) / t->period_s) * t->period_s;
}

void ticks_see(struct ticks *t, uint64_t at_ns, double value)
{
    double at_s = s_of_ns(at_ns), read_s = s_of_ns(t->read_ns);

    if (isnan(value) || at_ns <= t->read_ns)
        return;
    if (value != t->value && !isnan(t->value))
        bracket(t, read_s, at_s);
    else if (value == t->value) /* no tick up to at_s */
        bracket(t, at_s, read_s + t->nominal_s);
    t->read_ns = at_ns;
    t->value = value;
    if (t->known && at_s - t->at_s > SPAN_TICKS * t->nominal_s)
        t->known = false; /* not confirmed for too long */
}
