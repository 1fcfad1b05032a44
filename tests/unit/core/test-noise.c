#include "../../../bench/noise.h"

#include <math.h>

#include "base/rng.h"
#include "tap.h"

enum { RUNS = 20000 };
#define SD 0.01

static struct noise noise_of(struct rng *rng, double memory_s, double correlation)
{
    rng_init(rng, 7);
    return (struct noise){
        .sd = SD, .memory_s = memory_s, .correlation = correlation, .rng = rng};
}

/* Independent runs, so that a sample correlation r errs by (1 - r^2) / sqrt(RUNS). */
static void test_memory(void)
{
    static const double memories_s[] = {1, 5, 60, 300};
    static const unsigned parts[] = {1, 7};

    for (unsigned i = 0; i < 8; i++) {
        double memory_s = memories_s[i % 4], t = 0, p = 0, var = 0, tp = 0;
        struct rng rng;
        struct noise n = noise_of(&rng, memory_s, 0.6);
        for (unsigned k = 0; k < RUNS; k++) {
            n.begun = false;
            noise_pass(&n, 1);
            double t0 = n.log_t, p0 = n.log_p;
            for (unsigned j = 0; j < parts[i / 4]; j++)
                noise_pass(&n, memory_s / parts[i / 4]);
            t += t0 * n.log_t;
            p += p0 * n.log_p;
            var += (t0 * t0 + p0 * p0 + n.log_t * n.log_t + n.log_p * n.log_p) / 4;
            tp += t0 * p0;
        }
        double e = exp(-1), errs = (1 - e * e) / sqrt(RUNS);
        is_near(t / var, e, 4 * errs, "memory %g s in %u: time's autocorrelation is 1/e",
                memory_s, parts[i / 4]);
        is_near(p / var, e, 4 * errs, "… and power's");
        is_near(sqrt(var / RUNS) / SD, 1, 0.02, "… standard deviation");
        is_near(tp / var, 0.6, 4 * 0.64 / sqrt(RUNS), "… correlation of time and power");
    }
}

/* A mean over T of a process with memory M varies by 2 (M/T) (1 - (M/T) (1 - e^-T/M)). */
static void test_window(void)
{
    static const double memories_s[] = {0.01, 5, 60};

    for (unsigned i = 0; i < 3; i++) {
        double memory_s = memories_s[i], x = memory_s / 10, var = 0, stated = 0, e = 0;
        struct rng rng;
        struct noise n = noise_of(&rng, memory_s, 0);
        for (unsigned k = 0; k < RUNS / 10; k++) {
            n.begun = false;
            struct noise_window w = noise_window(&n, 100, 0.1);
            var += w.log_t * w.log_t / (RUNS / 10.0);
            e += w.log_e * w.log_e / (RUNS / 10.0);
            stated += w.time_rse * w.time_rse / (RUNS / 10.0);
        }
        double mean = 2 * x * (1 - x * (1 - exp(-1 / x))) * SD * SD;
        if (i == 0) /* steps are independent */
            mean = SD * SD / 100;
        is_near(var / mean, 1, 0.15, "memory %g s: a window's variance", memory_s);
        is_near(e / var, 2, 0.3, "… time and power add up to energy");
        if (i == 0)
            is_near(stated / var, 1, 0.15, "… it states all of it");
        else
            ok(stated < 0.05 * var, "… it states %.2g of it", stated / var);
    }
}

int main(void)
{
    test_memory();
    test_window();
    return done();
}
