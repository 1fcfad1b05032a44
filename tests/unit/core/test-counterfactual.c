#include "core/optimum/counterfactual.h"

#include "base/rng.h"
#include "tap.h"

static void pairs(void)
{
    struct counterfactual c = {0};

    is_int(counterfactual_said(&c).pairs, 0, "nothing is known at first");
    counterfactual_on_reference(&c, 1.0, 100, 0.002, 0.002);
    counterfactual_on_reference(&c, 1.0, 100, 0.002, 0.002);
    is_int(counterfactual_said(&c).pairs, 0, "a reference alone is no pair");
    ok(counterfactual_on_hold(&c, 1.1, 80, 0.002, 0.002),
       "with the hold after it, it is");
    struct counterfactual_said s = counterfactual_said(&c);
    is_near(s.time, 1 / 1.1, 1e-12, "its time against the hold's");
    is_near(s.energy, 100.0 / 80, 1e-12, "and its energy");
    /* var 0.002^2/2 + 0.002^2; Student's quantile of 4 degrees of freedom */
    is_near(s.energy_half, 1.25 * 2.776 * sqrt(6e-6), 1e-5,
            "95 %% of what windows claim");
    ok(!counterfactual_on_hold(&c, 1.1, 80, 0.002, 0.002),
       "a hold's window alone is none");
    counterfactual_on_reference(&c, NAN, 100, 0, 0);
    counterfactual_on_reference(&c, 1, -1, 0, 0);
    ok(!counterfactual_on_hold(&c, 1.1, 80, 0.002, 0.002),
       "values that cannot be are left");
    counterfactual_on_reference(&c, 1.0, 100, 0.002, 0.002);
    counterfactual_break(&c);
    ok(!counterfactual_on_hold(&c, 1.1, 80, 0.002, 0.002) &&
           counterfactual_said(&c).pairs == 1,
       "a break forgets what is half done, not what is known");
}

/* Steps grow dearer all the time: neither level nor drift is taken for a saving. */
static void drift(void)
{
    struct counterfactual c = {0};
    double level = 1;

    for (unsigned i = 0; i < 60; i++) {
        bool visit = i % 10 == 5;
        level *= 1.01;
        if (visit)
            counterfactual_on_reference(&c, level, 100 * level, 0, 0);
        else
            (void)counterfactual_on_hold(&c, 1.1 * level, 80 * level, 0, 0);
    }
    struct counterfactual_said s = counterfactual_said(&c);
    is_int(s.pairs, 6, "six visits");
    is_near(s.energy, 1.25, 1e-9, "drift falls out of the energy");
    is_near(s.time, 1 / 1.1, 1e-9, "and of the time");
}

/* Share of jobs whose interval holds the truth; windows err by noise but claim less. */
static double covered(unsigned visits, double noise, double claimed)
{
    enum { JOBS = 4000 };
    struct rng g;
    unsigned held = 0;

    rng_init(&g, 5);
    for (unsigned k = 0; k < JOBS; k++) {
        struct counterfactual c = {0};
        for (unsigned i = 0; i < 3 * visits; i++) {
            double f = exp(noise * rng_normal(&g));
            if (i % 3 == 1)
                counterfactual_on_reference(&c, f, 100 * f, claimed, claimed);
            else
                (void)counterfactual_on_hold(&c, 1.1 * f, 80 * f, claimed, claimed);
        }
        struct counterfactual_said s = counterfactual_said(&c);
        held += fabs(s.energy - 1.25) <= s.energy_half;
    }
    return (double)held / JOBS;
}

static void intervals(void)
{
    double right = covered(1, 0.003, 0.003), many = covered(12, 0.003, 0.003);
    double bold = covered(12, 0.006, 0.003), two = covered(2, 0.006, 0.003);

    ok(right > 0.95 && many > 0.95, "windows that claim what they err: %.3f, %.3f", right,
       many);
    ok(bold > 0.90, "windows that err twice what they claim, 12 visits: %.3f", bold);
    ok(two < bold, "two visits cannot tell yet: %.3f", two);
}

static void schedule(void)
{
    struct visits none = {0}, v = {.share = VISITS_SHARE};
    unsigned at_hour[24] = {0};
    double before_s = -1e9, least_gap_s = 1e9, most_gap_s = 0;

    ok(!visits_due(&none, 1e6, 14), "no share, no visits");
    for (double t = 0; t < 24 * 3600; t += 10) {
        if (!visits_due(&v, t, 14))
            continue;
        visits_made(&v, 15);
        if (v.spent_s > VISITS_SHARE * t)
            ok(false, "%.0f s of %.0f s", v.spent_s, t);
        at_hour[(size_t)(t / 3600)]++;
        if (before_s > 0) {
            least_gap_s = fmin(least_gap_s, t - before_s);
            most_gap_s = fmax(most_gap_s, t - before_s);
        }
        before_s = t;
    }
    ok(v.n >= 26 && v.n <= 29, "a day of visits, all it may have: %u", v.n);
    ok(at_hour[1] + at_hour[2] > 0 && at_hour[22] + at_hour[23] > 0,
       "from early to late");
    ok(most_gap_s > 1.2 * least_gap_s, "at uneven distances: %.0f to %.0f s", least_gap_s,
       most_gap_s);
}

int main(void)
{
    pairs();
    drift();
    intervals();
    schedule();
    return done();
}
