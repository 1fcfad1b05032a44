#include "core/optimum/change.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LINE 0.6  /* of the change to detect [changes, edp: windows] */
#define ODDS 1e-6 /* a comparison's probability of a false alarm [changes, edp: lost] */
#define LEAST_QUARTILE 7e-4 /* smaller ones count as this [no row: a guard] */
#define SURE 2.0       /* standard errors of a correlation [no row: noise with memory] */
#define LEAST_PART 0.5 /* of correlated windows, counts at least [the same] */
enum { LATEST_MIN = 2 }; /* [changes, edp: windows] */

void change_init(struct change *c, double least)
{
    *c = (struct change){.least = least > 0 ? least : 0.05};
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts v. */
static double median(double *v, unsigned n)
{
    qsort(v, n, sizeof *v, rising);
    return (v[(n - 1) / 2] + v[n / 2]) / 2;
}

/* The older windows of a track, by their distance from their median in the direction of
 * a change.
 */
struct base {
    unsigned n;
    double off[CHANGE_BASE_MAX];
    double quartile; /* of their scatter: median distance, upper limit (97.5 %) */
};

static void base_make(struct base *b, const double *value, double middle, int side)
{
    double v[CHANGE_BASE_MAX];

    for (unsigned i = 0; i < b->n; i++) {
        b->off[i] = side * (value[i] - middle);
        v[i] = fabs(b->off[i]);
    }
    qsort(v, b->n, sizeof *v, rising);
    b->quartile = v[(unsigned)ceil(b->n / 2.0 + sqrt(b->n)) - 1];
}

/* The probability that a window without a change is off by as much: of Student's t with
 * 2 degrees of freedom by the quartile, of the normal distribution by the stated error,
 * or the share of older windows, whichever is highest.
 */
static double tail(const struct base *b, double off, double rse)
{
    double x = off / fmax(b->quartile, LEAST_QUARTILE);
    double p = (1 - x / sqrt(3 + x * x)) / 2;
    unsigned as_far = 0;

    for (unsigned i = 0; i < b->n; i++)
        as_far += b->off[i] >= off;
    if (rse > 0)
        p = fmax(p, erfc(off / rse / M_SQRT2) / 2);
    return fmax(p, (double)as_far / b->n);
}

/* The part of the windows that counts as independent: (1 - r) / (1 + r) with the
 * correlation r of one window with the next, as for a mean; r is as low as the older
 * windows allow.  Less than LEAST_PART would hide changes of 5 %.
 */
static double independent(const struct base *b)
{
    double next = 0, all = 0;

    for (unsigned i = 0; i < b->n; i++) {
        all += b->off[i] * b->off[i];
        next += i > 0 ? b->off[i] * b->off[i - 1] : 0;
    }
    double r = all > 0 ? next / all - SURE / sqrt(b->n) : 0;
    return r > 0 ? fmax((1 - r) / (1 + r), LEAST_PART) : 1;
}

/* The probability of k or more of n, each with probability p. */
static double at_least(unsigned k, unsigned n, double p)
{
    double sum = 0, ways = 1; /* n choose i */

    for (unsigned i = n; i >= k; i--) {
        sum += ways * pow(p, i) * pow(1 - p, n - i);
        ways = ways * i / (n - i + 1);
    }
    return sum;
}

/* Whether three quarters of the latest windows are off to one side by more than the line,
 * and would not be by chance.
 */
static bool changed(const struct change_track *t, unsigned n, unsigned latest,
                    double line)
{
    const double *value = t->value + n - latest, *rse = t->rse + n - latest;
    unsigned older = n - latest, k = latest - latest / 4, above = 0, below = 0;
    struct base b = {.n = older < CHANGE_BASE_MAX ? older : CHANGE_BASE_MAX};
    double p[CHANGE_LATEST_MAX], sorted[CHANGE_BASE_MAX];

    memcpy(sorted, t->value, b.n * sizeof *sorted);
    double middle = median(sorted, b.n);
    for (unsigned i = 0; i < latest; i++) {
        above += value[i] - middle > line;
        below += middle - value[i] > line;
    }
    if (above < k && below < k)
        return false;
    int side = above >= k ? 1 : -1;
    base_make(&b, t->value, middle, side);
    for (unsigned i = 0; i < latest; i++) {
        double off = side * (value[i] - middle);
        p[i] = off > line ? tail(&b, off, rse[i]) : 1;
    }
    qsort(p, latest, sizeof *p, rising);
    return pow(at_least(k, latest, p[k - 1]), independent(&b)) <= ODDS;
}

/* When full, drops the oldest window beside those of the baseline. */
static void add(struct change_track *t, unsigned n, double value, double rse)
{
    if (n == CHANGE_WINDOWS) {
        size_t moved = CHANGE_LATEST_MAX - 1;
        memmove(t->value + CHANGE_BASE_MAX, t->value + CHANGE_BASE_MAX + 1,
                moved * sizeof *t->value);
        memmove(t->rse + CHANGE_BASE_MAX, t->rse + CHANGE_BASE_MAX + 1,
                moved * sizeof *t->rse);
        n--;
    }
    t->value[n] = value;
    t->rse[n] = rse;
}

static void keep_latest(struct change_track *t, unsigned n, unsigned latest)
{
    memmove(t->value, t->value + n - latest, latest * sizeof *t->value);
    memmove(t->rse, t->rse + n - latest, latest * sizeof *t->rse);
}

static bool good(double value, double rse)
{
    return isfinite(value) && value > 0 && isfinite(rse) && rse >= 0;
}

static unsigned least_older(unsigned latest)
{
    return latest > CHANGE_BASE_MIN ? latest : CHANGE_BASE_MIN;
}

int change_on_window(struct change *c, double time_s, double energy_j, double time_rse,
                     double energy_rse)
{
    double line = LINE * log1p(c->least);

    if (!good(time_s, time_rse) || !good(energy_j, energy_rse))
        return CHANGE_NONE;
    add(&c->time, c->n, log(time_s), time_rse);
    add(&c->energy, c->n, log(energy_j), energy_rse);
    if (c->n < CHANGE_WINDOWS)
        c->n++;
    for (unsigned latest = LATEST_MIN;
         latest <= CHANGE_LATEST_MAX && c->n >= latest + least_older(latest);
         latest += (latest + 1) / 2) {
        int what = (changed(&c->time, c->n, latest, line) ? CHANGE_TIME : 0) |
                   (changed(&c->energy, c->n, latest, line) ? CHANGE_ENERGY : 0);
        if (!what)
            continue;
        keep_latest(&c->time, c->n, latest);
        keep_latest(&c->energy, c->n, latest);
        c->n = latest;
        return what;
    }
    return CHANGE_NONE;
}
