#include "core/meter/half-sum.h"

#include <math.h>

struct half_sum half_sum_of(double energy_j, double half_j, bool counted)
{
    double fixed_j = counted ? fmin(half_j, METER_FLOOR * energy_j) : half_j;

    return (struct half_sum){fixed_j, half_j * half_j - fixed_j * fixed_j};
}

struct half_sum half_sum_share(const struct half_sum *whole, double share)
{
    return (struct half_sum){whole->fixed_j * share, whole->noise2_j2 * share};
}

void half_sum_add(struct half_sum *sum, const struct half_sum *other)
{
    sum->fixed_j += other->fixed_j;
    sum->noise2_j2 += other->noise2_j2;
}

double half_sum_j(const struct half_sum *sum)
{
    return hypot(sum->fixed_j, sqrt(sum->noise2_j2));
}
