#include "noise.h"

#include <math.h>

void noise_pass(struct noise *n, double seconds)
{
    double keep = n->begun ? exp(-seconds / n->memory_s) : 0;
    double fresh = n->sd * sqrt(1 - keep * keep);
    double a = rng_normal(n->rng), b = rng_normal(n->rng), r = n->correlation;

    n->begun = true;
    n->log_t = keep * n->log_t + fresh * a;
    n->log_p = keep * n->log_p + fresh * (r * a + sqrt(1 - r * r) * b);
}

static double rse_of(double sum, double sum2, unsigned n)
{
    double variance = fmax(sum2 - sum * sum / n, 0) / (n - 1); /* of one step */

    return sqrt(variance / n);
}

struct noise_window noise_window(struct noise *n, unsigned steps, double step_s)
{
    double t = 0, t2 = 0, e = 0, e2 = 0;

    for (unsigned i = 0; i < steps; i++) {
        noise_pass(n, step_s);
        double log_e = n->log_t + n->log_p;
        t += n->log_t;
        t2 += n->log_t * n->log_t;
        e += log_e;
        e2 += log_e * log_e;
    }
    return (struct noise_window){.log_t = t / steps,
                                 .log_e = e / steps,
                                 .time_rse = rse_of(t, t2, steps),
                                 .energy_rse = rse_of(e, e2, steps)};
}
