#include "tuner/whole-job.h"

#include <math.h>

#define Z95 1.96

double whole_job_left_s(const struct savings *a, size_t n,
                        const struct whole_job_more *more, double bound)
{
    struct savings_whole all = savings_whole(a, n);
    const struct savings_mean *ref = &a[n - 1].reference;
    double left = bound * (all.would_s - all.half_s) - all.time_s;

    left += (bound - 1) * more->own_s;
    if (ref->windows > 0) {
        double least = 1 - Z95 * savings_mean_time_rse(ref);
        left += bound * more->steps * savings_mean_time(ref) * least - more->time_s;
    }
    return left;
}

double whole_job_most(double bound, double left_s, double takes_s)
{
    return bound * (1 + fmax(0, WHOLE_JOB_SPEND * left_s / takes_s));
}
