#include "core/optimum/counterfactual.h"

#include "base/rng.h"
#include "tap.h"

static bool on_hold(struct counterfactual *c, double at_s, double time_s, double energy_j,
                    double rse)
{
    struct pair_seen seen = {at_s, time_s, energy_j, rse, rse};
    return counterfactual_on_hold(c, &seen);
}

static void on_reference(struct counterfactual *c, double at_s, double time_s,
                         double energy_j, double rse)
{
    struct pair_seen seen = {at_s, time_s, energy_j, rse, rse};
    counterfactual_on_reference(c, &seen);
}

static void pairs(void)
{
    struct counterfactual c = {0};

    ok(!counterfactual_said(&c).known, "nothing is known at first");
    (void)on_hold(&c, 0, 1.1, 80, 0.002);
    ok(!counterfactual_said(&c).known, "nor by a hold alone");
    on_reference(&c, 10, 1.0, 100, 0.002);
    on_reference(&c, 10, 1.0, 100, 0.002);
    is_int(counterfactual_said(&c).pairs, 0, "a reference alone is no pair");
    ok(on_hold(&c, 20, 1.1, 80, 0.002), "with the hold after it, it is");
    struct counterfactual_said s = counterfactual_said(&c);
    ok(s.known && s.pairs == 1, "one pair");
    is_near(s.time, 1 / 1.1, 1e-12, "its time against the hold's");
    is_near(s.energy, 100.0 / 80, 1e-12, "and its energy");
    /* var 0.002^2/2 + 0.002^2/2; Student's quantile of 4 degrees of freedom */
    is_near(s.energy_half, 1.25 * 2.776 * 0.002, 2e-5, "95 %% of what windows claim");
    ok(!on_hold(&c, 30, 1.1, 80, 0.002), "a hold's window alone is none");
    on_reference(&c, 40, NAN, 100, 0);
    on_reference(&c, 40, 1, -1, 0);
    ok(!on_hold(&c, 50, 1.1, 80, 0.002), "values that cannot be are left");
    on_reference(&c, 60, 1.0, 100, 0.002);
    counterfactual_break(&c);
    ok(!on_hold(&c, 70, 1.1, 80, 0.002) && counterfactual_said(&c).pairs == 1,
       "a break forgets what is half done, not what is known");
}

/* Steps grow dearer all the time: neither level nor drift is taken for a saving. */
static void drift(void)
{
    struct counterfactual c = {0};
    double level = 1;

    for (unsigned i = 0; i < 60; i++) {
        level *= 1.01;
        if (i % 10 == 5)
            on_reference(&c, 10 * i, level, 100 * level, 0);
        else
            (void)on_hold(&c, 10 * i, 1.1 * level, 80 * level, 0);
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
                on_reference(&c, 10 * i, f, 100 * f, claimed);
            else
                (void)on_hold(&c, 10 * i, 1.1 * f, 80 * f, claimed);
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
    ok(bold > 0.93, "windows that err twice what they claim, 12 visits: %.3f", bold);
    ok(two < bold, "two visits cannot tell yet: %.3f", two);
}

/* A job whose cost goes up and down within a minute, by more than its windows claim; the
 * reference was measured at its start alone.  How far it wanders the hold tells.
 */
static void wandering(void)
{
    enum { JOBS = 2000, WINDOWS = 60 };
    const double keeps = exp(-10.0 / 60), noise = 0.01;
    double halves = 0;
    struct rng g;
    unsigned held = 0;

    rng_init(&g, 6);
    for (unsigned k = 0; k < JOBS; k++) {
        struct counterfactual c = {0};
        double x = noise * rng_normal(&g);
        for (unsigned i = 0; i < WINDOWS; i++) {
            x = keeps * x + noise * sqrt(1 - keeps * keeps) * rng_normal(&g);
            double f = exp(x);
            if (i < 2)
                on_reference(&c, 10 * i, f, 100 * f, 0.001);
            else if (i >= 10) /* between them it searches */
                (void)on_hold(&c, 10 * i, 1.1 * f, 80 * f, 0.001);
        }
        struct counterfactual_said s = counterfactual_said(&c);
        held += fabs(s.energy - 1.25) <= s.energy_half;
        halves += s.energy_half / 1.25 / JOBS;
    }
    ok(held > 0.93 * JOBS && held < 0.995 * JOBS, "the interval holds it: %.3f",
       (double)held / JOBS);
    ok(halves > 0.02 && halves < 0.04, "and is no wider than it must be: %.4f", halves);
}

/* Windows at the reference before the hold alone: what drifts in it is no saving. */
static void link(void)
{
    struct counterfactual c = {0};
    double level = 1;

    for (unsigned i = 0; i < 200; i++) {
        level *= 1.0002;
        if (i < 2)
            on_reference(&c, 10 * i, level, 100 * level, 0.001);
        else if (i >= 10)
            (void)on_hold(&c, 10 * i, 1.1 * level, 80 * level, 0.001);
    }
    struct counterfactual_said s = counterfactual_said(&c);
    ok(s.known && s.pairs == 0, "no visit, and yet it is known");
    is_near(s.energy, 1.25, 0.005, "by the first windows of the hold: %.4f", s.energy);
    ok(fabs(s.energy - 1.25) < s.energy_half, "give or take %.4f", s.energy_half);
    /* the hold on the whole is 2 % dearer: that may be the cap's doing, or the job's */
    ok(s.energy_half > 1.25 * 0.02 && s.energy_half < 1.25 * 0.06,
       "with doubt about what grew");
    on_reference(&c, 2010, level, 100 * level, 0.001);
    (void)on_hold(&c, 2020, 1.1 * level, 80 * level, 0.001);
    double doubt = s.energy_half;
    s = counterfactual_said(&c);
    ok(s.pairs == 1 && s.energy_half < 0.8 * doubt, "a visit at its end knows more: %.4f",
       s.energy_half);
}

/* A cap that does less and less: the windows at the start say too much. */
static void other_ratio(void)
{
    struct counterfactual c = {0};
    double would_j = 0, used_j = 0;

    on_reference(&c, 0, 1, 100, 0.001);
    for (unsigned i = 0; i < 300; i++) {
        double hold_j = 80 + 0.02 * i;
        (void)on_hold(&c, 100 + 10 * i, 1.1, hold_j, 0.001);
        would_j += 100;
        used_j += hold_j;
    }
    struct counterfactual_said s = counterfactual_said(&c);
    double truth = would_j / used_j;
    ok(fabs(s.energy - truth) > 0.03 && fabs(s.energy - truth) < s.energy_half,
       "far off, and says so: %.4f +- %.4f of %.4f", s.energy, s.energy_half, truth);
}

/* Another cap is held: what is known goes along. */
static void other_hold(void)
{
    struct counterfactual c = {0};

    on_reference(&c, 0, 1, 100, 0.001);
    for (unsigned i = 0; i < 20; i++)
        (void)on_hold(&c, 10 + 10 * i, 1.1, 80, 0.001);
    double half = counterfactual_said(&c).energy_half;
    counterfactual_hold_anew(&c);
    ok(!counterfactual_said(&c).known, "of the new cap nothing is known yet");
    (void)on_hold(&c, 250, 1.15, 75, 0.001);
    struct counterfactual_said s = counterfactual_said(&c);
    is_near(s.energy, 100.0 / 75, 1e-6, "by its first window it is");
    is_near(s.time, 1 / 1.15, 1e-6, "in time, too");
    ok(s.energy_half > half && s.energy_half < 3 * half, "a little less sure: %.4f, %.4f",
       s.energy_half, half);
}

/* The job's last windows showed that it has changed: that is another regime's affair. */
static void change(void)
{
    struct counterfactual c = {0};

    on_reference(&c, 0, 1, 100, 0.001);
    for (unsigned i = 0; i < 40; i++)
        (void)on_hold(&c, 100 + 10 * i, 1.1, 80, 0.001);
    double half = counterfactual_said(&c).energy_half;
    for (unsigned i = 40; i < 43; i++)
        (void)on_hold(&c, 100 + 10 * i, 1.1 * 1.15, 80 * 1.15, 0.001);
    counterfactual_break(&c);
    struct counterfactual_said s = counterfactual_said(&c);
    is_near(s.energy, 1.25, 1e-9, "what was known stays");
    ok(s.energy_half < 0.03 && s.energy_half > half, "nearly as sure: %.4f, %.4f",
       s.energy_half, half);
}

static void cool(void)
{
    is_near(counterfactual_cool_rse(0.3, 0), 0.0075, 1e-12, "a third cooler");
    ok(counterfactual_cool_rse(0.3, 65) < 0.2 * counterfactual_cool_rse(0.3, 0),
       "a minute later little of it is left");
    is_near(counterfactual_cool_rse(-1, 0), 0, 0, "never less than none");
    is_near(counterfactual_cool_rse(9, -9), 0.025, 1e-12, "nor more than all");
}

static void schedule(void)
{
    struct reference_checks none = {0}, v = {.share = VISITS_SHARE};
    unsigned at_hour[24] = {0};
    double before_s = -1e9, least_gap_s = 1e9, most_gap_s = 0;

    ok(!reference_checks_due(&none, 1e6, 14), "no share, no visits");
    ok(!reference_checks_due(&v, 2799, 14) && reference_checks_due(&v, 2801, 14),
       "the first as soon as it is within the share");
    for (double t = 0; t < 24 * 3600; t += 10) {
        if (!reference_checks_due(&v, t, 14))
            continue;
        visits_made(&v, 14);
        if (v.spent_s > VISITS_SHARE * t)
            ok(false, "%.0f s of %.0f s", v.spent_s, t);
        at_hour[(size_t)(t / 3600)]++;
        if (before_s > 0) {
            least_gap_s = fmin(least_gap_s, t - before_s);
            most_gap_s = fmax(most_gap_s, t - before_s);
        }
        before_s = t;
    }
    ok(v.n >= 28 && v.n <= 31, "a day of visits, all it may have: %u", v.n);
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
    wandering();
    link();
    other_ratio();
    other_hold();
    change();
    cool();
    schedule();
    return done();
}
