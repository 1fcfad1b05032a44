/* Half width of the interval of a sum of energies, of stretches and boards.
 *
 * A counter's stretches share the sensor's error in proportion to the energy
 * (METER_FLOOR; the gain error is in no interval): these parts add up.  What is left is
 * the noise of the stretches' ends, which adds up in squares.  What a part-time sensor
 * does not see of the load may be the same in each stretch, so half widths of readings
 * add up as they are.  For a counter, a sum of sums equals the sum over all stretches.
 * Pure.
 */
#ifndef CORE_METER_HALF_SUM_H
#define CORE_METER_HALF_SUM_H

#include <stdbool.h>

#define METER_FLOOR 0.004 /* of the energy: no interval is narrower */

/* {0}: of nothing. */
struct half_sum {
    double fixed_j;   /* half widths that add up */
    double noise2_j2; /* squares of those that do not */
};

/* half_j: half width of energy_j; counted: a counter gave it, without readings. */
struct half_sum half_sum_of(double energy_j, double half_j, bool counted);
/* Of one of the shares (0..1) that split an energy: the sum of all shares has the
 * whole's.
 */
struct half_sum half_sum_share(const struct half_sum *whole, double share);
void half_sum_add(struct half_sum *sum, const struct half_sum *other);
double half_sum_j(const struct half_sum *sum);

#endif
