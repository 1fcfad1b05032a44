/* The period of a counter: learnt, kept while nothing locks, and learnt anew after it has
 * changed.
 */
#include <math.h>

#include "base/rng.h"
#include "core/meter/edges.h"
#include "tap.h"

#define NOMINAL_S 0.1

struct reader {
    struct edges e;
    struct rng g;
    double at_s, since_s, period_s; /* since_s: of an edge */
};

/* Polls every 20 ms, up to 10 % more or less, for the given time; a grid in step with the
 * counter shows no change but at its polls.
 */
static void polls(struct reader *r, double seconds)
{
    double end_s = r->at_s + seconds, sd;

    while (r->at_s < end_s) {
        double was_s = r->at_s;
        r->at_s += 0.02 * (0.9 + 0.2 * rng_uniform(&r->g));
        double k = floor((r->at_s - r->since_s) / r->period_s);
        if (k > floor((was_s - r->since_s) / r->period_s))
            (void)edges_change(&r->e, was_s, r->at_s, &sd);
    }
}

static void other_period(struct reader *r, double period_s)
{
    r->since_s = r->at_s;
    r->period_s = period_s;
}

/* Seconds until the edges are locked on a period within 0.1 % of that of the counter. */
static double until_right(struct reader *r, double most_s)
{
    double began_s = r->at_s;

    while (r->at_s - began_s < most_s) {
        polls(r, 1);
        if (r->e.locked && fabs(r->e.period_s / r->period_s - 1) < 1e-3)
            return r->at_s - began_s;
    }
    return HUGE_VAL;
}

static void changes(double period_s, unsigned seed)
{
    struct reader r = {.period_s = 1.02 * NOMINAL_S};
    unsigned false_locks = 0;

    edges_init(&r.e, NOMINAL_S);
    rng_init(&r.g, seed);
    double first_s = until_right(&r, 60);
    polls(&r, 60);
    ok(first_s < 10 && r.e.learnt && fabs(r.e.known_s / r.period_s - 1) < 1e-3,
       "a period of %.4f s is learnt within %.0f s", r.period_s, first_s);
    other_period(&r, period_s);
    for (int i = 0; i < 20; i++) {
        polls(&r, 1);
        false_locks += i >= 5 && edges_error(&r.e, r.at_s) < 0.01 * period_s &&
                       fabs(r.e.period_s / period_s - 1) > 0.01;
    }
    ok(false_locks == 0, "  %.4f s from now on: sure of another period %u times",
       period_s, false_locks);
    double again_s = until_right(&r, 1000);
    polls(&r, 60);
    ok(again_s < 300 && r.e.learnt && fabs(r.e.known_s / period_s - 1) < 1e-3,
       "  it is learnt anew after %.0f s", again_s);
}

int main(void)
{
    static const double periods[] = {0.09, 0.097, 0.1012, 0.1035, 0.105, 0.12};

    for (size_t i = 0; i < sizeof periods / sizeof *periods; i++)
        for (unsigned seed = 1; seed <= 5; seed++)
            changes(periods[i], seed);
    return done();
}
