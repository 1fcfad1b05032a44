#include "core/progress/tempo.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "core/progress/period.h"

enum {
    KEPT = 4096, /* readings, or means of a FINE-th part of a step */
    FINE = 64,
    BINS = 48,     /* of a template */
    FOLDED = 5,    /* steps in a template */
    WINDOW = 5,    /* steps in a window that is compared … */
    BEFORE = 24,   /* … with up to so many before it */
    READINGS = 40, /* … at the least */
    BLOCK = 10,    /* readings that are shifted together, at the least */
    OUT = 2,       /* windows in a row that differ */
    LAGS = 12,     /* to each side that a step is shifted by, each of LAG_SHARE */
};
#define SURE 0.25         /* confidence in the first period */
#define FIRST_EACH_S 5.0  /* while there is none, doubled up to … */
#define FIRST_MOST_S 60.0 /* … this; where power hardly swings, without end */
#define SWING 0.05        /* of the mean: more than a sensor's noise */
#define LEAST_S 6.0       /* of a window */
#define EACH_S 2.0
#define CHANGED 0.03 /* the least that is a change … */
#define CHANGED_SE 4.5
#define MOST 1.6 /* … and the most, as a factor */
#define LAG_SHARE 0.01
#define LAG_SD 0.02 /* of a step's length */
#define NOISE 0.01  /* of a reading, that a template does not show */
#define COST_MOST 9.0
#define EDGE 10.0 /* of cost that a rise by all of the swing makes good */

struct reading {
    uint64_t at_ns;
    double w;
};

struct tempo {
    struct period *period;
    struct reading kept[KEPT];
    uint64_t n;         /* ever; reading i lies at i % KEPT */
    struct reading sum; /* what is gathered for the next one: first time, sum … */
    double gathered;    /* … of so many */
    uint64_t begin_ns, next_ns, last_ns;
    double period_s;   /* 0: not known … */
    double first_s;    /* … then it is looked for each so often, … */
    uint64_t quiet_ns; /* … but not until then while power hardly swings */
    int side;          /* of windows in a row that differ */
    unsigned out;
};

int tempo_new(struct tempo **ret)
{
    auto_(tempo_free) struct tempo *t = calloc(1, sizeof *t);

    if (!t)
        return -ENOMEM;
    int r = period_new(1, &t->period);
    if (r < 0)
        return r;
    *ret = take(t);
    return 0;
}

void tempo_free(struct tempo *t)
{
    if (!t)
        return;
    period_free(t->period);
    free(t);
}

double tempo_period_s(const struct tempo *t)
{
    return t->period_s;
}

void tempo_begin(struct tempo *t, uint64_t from_ns)
{
    period_forget(t->period);
    t->begin_ns = from_ns;
    t->next_ns = from_ns;
    t->period_s = 0;
    t->first_s = FIRST_EACH_S;
    t->quiet_ns = 0;
    t->out = 0;
    t->n = 0;
    t->gathered = 0;
}

/* ---- readings ---- */

static const struct reading *reading(const struct tempo *t, uint64_t i)
{
    return &t->kept[i % KEPT];
}

static uint64_t first_of(const struct tempo *t)
{
    return t->n > KEPT ? t->n - KEPT : 0;
}

/* First reading at or after at_ns; t->n if none. */
static uint64_t seek(const struct tempo *t, uint64_t at_ns)
{
    uint64_t low = first_of(t), high = t->n;

    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (reading(t, mid)->at_ns < at_ns)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

void tempo_feed(struct tempo *t, const struct activity *a)
{
    if (isnan(a->power_w) || a->at_ns <= t->last_ns || a->at_ns < t->begin_ns)
        return;
    period_feed(t->period, 0, a);
    if (t->gathered > 0 && s_between(t->sum.at_ns, a->at_ns) >= t->period_s / FINE) {
        uint64_t half_ns = (t->last_ns - t->sum.at_ns) / 2;
        t->kept[t->n++ % KEPT] =
            (struct reading){t->sum.at_ns + half_ns, t->sum.w / t->gathered};
        t->gathered = 0;
    }
    t->last_ns = a->at_ns;
    if (t->gathered == 0)
        t->sum = (struct reading){a->at_ns, 0};
    t->sum.w += a->power_w;
    t->gathered++;
}

/* ---- where it began ---- */

/* What a step looks like: means and variances by phase. */
struct template
{
    uint64_t from_ns; /* of the phase 0 */
    double period_s;
    int bins;
    double mean[BINS], var[BINS], n[BINS];
    double noise2; /* the typical variance */
};

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void fill_gaps(struct template *m)
{
    for (int k = 0; k < m->bins; k++)
        for (int d = 1; m->n[k] == 0 && d < m->bins; d++) {
            int a = (k + m->bins - d) % m->bins;
            if (m->n[a] == 0)
                continue;
            m->mean[k] = m->mean[a];
            m->n[k] = 1e-9;
        }
}

/* Of the readings in [from, to), whole steps; false: too few. */
static bool learn(const struct tempo *t, uint64_t from_ns, uint64_t to_ns,
                  double period_s, struct template *ret)
{
    double n = 0, var[BINS];
    int known = 0;

    uint64_t first = seek(t, from_ns), end = seek(t, to_ns);
    double bins = fmax(6, fmin(BINS, (double)(end - first) / 3));
    *ret = (struct template){.from_ns = from_ns, .period_s = period_s, .bins = (int)bins};
    for (uint64_t i = first; i < end; i++) {
        double phase = fmod(s_between(from_ns, reading(t, i)->at_ns) / period_s, 1);
        int k = (int)(phase * ret->bins) % ret->bins;
        double off = reading(t, i)->w - ret->mean[k];
        ret->n[k]++;
        ret->mean[k] += off / ret->n[k];
        ret->var[k] += off * (reading(t, i)->w - ret->mean[k]);
        n++;
    }
    if (n < 12)
        return false;
    for (int k = 0; k < ret->bins; k++)
        if (ret->n[k] > 1)
            var[known++] = ret->var[k] / (ret->n[k] - 1);
    if (known < 4)
        return false;
    qsort(var, (size_t)known, sizeof *var, by_value);
    ret->noise2 = fmax(1, var[known / 2]) + NOISE * NOISE * ret->mean[0] * ret->mean[0];
    fill_gaps(ret);
    return true;
}

/* Mean time between the newest readings. */
static double gap_s(const struct tempo *t)
{
    uint64_t first = t->n > 64 ? t->n - 64 : 0;

    return s_between(reading(t, first)->at_ns, reading(t, t->n - 1)->at_ns) /
           (double)(t->n - 1 - first);
}

/* As long as a template takes to learn. */
static double folded_s(const struct tempo *t, double period_s)
{
    return fmax(FOLDED, ceil(READINGS * gap_s(t) / period_s)) * period_s;
}

/* How ill reading i fits the template, whose phase 0 is at zero_ns. */
static double misfit(const struct tempo *t, const struct template *m, uint64_t i,
                     double zero_s)
{
    double at_s = s_of_ns(reading(t, i)->at_ns) - zero_s;
    double phase = at_s / m->period_s - floor(at_s / m->period_s);
    int k = (int)(phase * m->bins) % m->bins;
    double off = reading(t, i)->w - m->mean[k];

    return fmin(COST_MOST, off * off / m->noise2);
}

struct shift {
    double s;    /* by which the template fits best */
    double cost; /* of a shift so large */
};

/* Readings [a, b), of so many steps. */
static struct shift find_shift(const struct tempo *t, const struct template *m,
                               double zero_s, uint64_t a, uint64_t b, double steps)
{
    struct shift ret = {0};
    double best = INFINITY;

    for (int lag = -LAGS; lag <= LAGS; lag++) {
        double by = lag * LAG_SHARE;
        double cost = by * by / (steps * LAG_SD * LAG_SD), sum = cost;
        for (uint64_t i = a; i < b; i++)
            sum += misfit(t, m, i, zero_s + by * m->period_s);
        if (sum < best) {
            best = sum;
            ret = (struct shift){by * m->period_s, cost};
        }
    }
    return ret;
}

static uint64_t bounded(uint64_t i, uint64_t base, uint64_t end)
{
    return i < base ? base : i > end ? end : i;
}

/* Follows the template step by step from where it was learnt through the readings
 * [base, end), forwards (direction 1) or backwards (-1); steps vary a little.
 * cost[i - base]: of each reading.
 */
static void follow(const struct tempo *t, const struct template *m, uint64_t from_ns,
                   int direction, uint64_t base, uint64_t end, double *cost)
{
    double zero = s_of_ns(m->from_ns), at = s_of_ns(from_ns);
    double steps = ceil(BLOCK * gap_s(t) / m->period_s), block_s = steps * m->period_s;
    double stop = s_of_ns(reading(t, direction > 0 ? end - 1 : base)->at_ns);

    while (direction * (stop - at) >= 0) {
        double low = direction > 0 ? at : at - block_s;
        uint64_t a = bounded(seek(t, ns_of_s(fmax(0, low))), base, end);
        uint64_t b = bounded(seek(t, ns_of_s(fmax(0, low + block_s))), base, end);
        struct shift shift = find_shift(t, m, zero, a, b, steps);
        for (uint64_t i = a; i < b; i++)
            cost[i - base] =
                misfit(t, m, i, zero + shift.s) + shift.cost / (double)(b - a);
        zero += shift.s;
        at += shift.s + direction * block_s;
    }
}

/* The moment of least cost; where work begins is likelier than any other. */
static uint64_t choose(const struct tempo *t, const double *cost, uint64_t base,
                       uint64_t end, double range_w)
{
    double best = INFINITY;
    uint64_t at = base;

    for (uint64_t i = base; i < end; i++) {
        double rise = i > base ? (reading(t, i)->w - reading(t, i - 1)->w) / range_w : 0;
        double here = cost[i - base] - EDGE * fmax(0, fmin(1, rise));
        if (here < best) {
            best = here;
            at = i;
        }
    }
    return at;
}

/* Where the one became the other; the old pattern is certain until old_to, the new one
 * since new_from.
 */
static uint64_t place(const struct tempo *t, double was_s, double is_s, uint64_t old_to,
                      uint64_t new_from)
{
    struct template was, is;
    uint64_t now = reading(t, t->n - 1)->at_ns;
    uint64_t old_from = old_to - ns_of_s(folded_s(t, was_s));
    uint64_t new_to = new_from + ns_of_s(folded_s(t, is_s));
    uint64_t base = seek(t, old_to), end = seek(t, new_from);

    if (new_to > now)
        new_to = now;
    if (base >= end || end - base > KEPT || old_from < t->begin_ns ||
        !learn(t, old_from, old_to, was_s, &was) ||
        !learn(t, new_from, new_to, is_s, &is))
        return new_from;
    auto_(mem_free) double *a = calloc(end - base + 1, sizeof *a);
    auto_(mem_free) double *b = calloc(end - base + 1, sizeof *b);
    if (!a || !b)
        return new_from;
    was.noise2 = is.noise2 = fmax(was.noise2, is.noise2);
    follow(t, &was, old_to, 1, base, end, a);
    follow(t, &is, new_from, -1, base, end, b);
    /* Sum of the old pattern's misfit before i and of the new one's from i on. */
    double sum = 0, low = INFINITY, high = -INFINITY;
    for (uint64_t i = base; i < end; i++)
        sum += b[i - base];
    for (uint64_t i = base; i < end; i++) {
        double here = sum;
        sum += a[i - base] - b[i - base];
        a[i - base] = here;
    }
    for (int k = 0; k < was.bins; k++) {
        low = fmin(low, was.mean[k]);
        high = fmax(high, was.mean[k]);
    }
    uint64_t at = choose(t, a, base, end, fmax(1, high - low));
    return reading(t, at < t->n ? at : t->n - 1)->at_ns;
}

/* ---- looking ---- */

/* What is kept is not just one level with noise. */
static bool swings(const struct tempo *t)
{
    double mean = 0, sum2 = 0, n = 0;

    for (uint64_t i = first_of(t); i < t->n; i++) {
        double off = reading(t, i)->w - mean;
        mean += off / ++n;
        sum2 += off * (reading(t, i)->w - mean);
    }
    return sqrt(sum2 / n) > SWING * fabs(mean);
}

/* The dearest look of all, a third of a second: constant power is not asked over and
 * over.
 */
static void look_first(struct tempo *t, uint64_t now_ns)
{
    struct period_found f;

    t->next_ns = now_ns + ns_of_s(t->first_s);
    t->first_s = fmin(2 * t->first_s, FIRST_MOST_S);
    if (now_ns < t->quiet_ns && !swings(t))
        return;
    t->quiet_ns = now_ns + (now_ns - t->begin_ns);
    period_find(t->period, &f);
    if (f.why == PERIOD_FOUND && f.confidence >= SURE && f.from_ns >= t->begin_ns)
        t->period_s = f.period_s;
}

/* Steps in the newest window, and before it. */
static bool compare(const struct tempo *t, uint64_t now_ns, double window_s,
                    struct period_found *was, struct period_found *is)
{
    uint64_t cut = now_ns - ns_of_s(window_s);
    uint64_t reach = ns_of_s(fmax(BEFORE * t->period_s, 4 * LEAST_S));
    uint64_t from = cut > t->begin_ns + reach ? cut - reach : t->begin_ns;

    if (s_between(from, cut) < WINDOW * t->period_s)
        return false;
    period_near(t->period, from, cut, t->period_s, was);
    if (was->why != PERIOD_FOUND)
        return false;
    period_between(t->period, cut, now_ns, was->period_s / MOST, was->period_s * MOST,
                   is);
    return is->why == PERIOD_FOUND;
}

bool tempo_look(struct tempo *t, uint64_t now_ns, struct tempo_change *ret)
{
    struct period_found was, is;
    double change, se;

    if (now_ns < t->next_ns || t->n < 2)
        return false;
    if (t->period_s <= 0) {
        look_first(t, now_ns);
        return false;
    }
    double window_s = fmax(WINDOW * t->period_s, LEAST_S);
    double each_s = fmax(EACH_S, t->period_s);
    t->next_ns = now_ns + ns_of_s(each_s);
    if (s_between(t->begin_ns, now_ns) < 2 * window_s)
        return false;
    if (!compare(t, now_ns, window_s, &was, &is) ||
        !period_change(&was, &is, &change, &se)) {
        return false;
    }
    int side = change > 0 ? 1 : -1;
    bool out = fabs(change) >= fmax(CHANGED, CHANGED_SE * se);
    t->out = !out ? 0 : side == t->side ? t->out + 1 : 1;
    t->side = side;
    if (!out)
        t->period_s = was.period_s;
    if (t->out < OUT)
        return false;
    uint64_t new_from = now_ns - ns_of_s(fmin(window_s, folded_s(t, is.period_s)));
    uint64_t old_to = t->begin_ns + ns_of_s(folded_s(t, was.period_s));
    double back_s = 2 * window_s + (OUT + 1) * each_s;
    if (s_between(old_to, now_ns) > back_s)
        old_to = now_ns - ns_of_s(back_s);
    *ret = (struct tempo_change){place(t, was.period_s, is.period_s, old_to, new_from),
                                 was.period_s, is.period_s};
    tempo_begin(t, now_ns);
    return true;
}
