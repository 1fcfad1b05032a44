/* The mean power of the last second or two, for people to watch: from the energy
 * counter where there is one, else the mean of the readings.  For energy itself ask the
 * meter.  Pure.
 */
#ifndef CORE_METER_MEAN_H
#define CORE_METER_MEAN_H

#include <stdbool.h>
#include <stdint.h>

enum { MEAN_MARKS = 4 };

struct mean_power {
    struct {
        uint64_t at_ns, counter_mj;
    } mark[MEAN_MARKS]; /* counter as it was at each tick, newest first */
    unsigned n;
    double sum_w; /* readings since the last tick */
    unsigned n_readings;
    double w;
    uint64_t w_ns; /* when w was made; 0: never */
};

/* A reading, whenever one is taken. */
void mean_reading(struct mean_power *m, double power_w);
/* About once a second; has_counter: counter_mj was read at at_ns (else ignored).  A
 * counter that stood still or went back counts as none.
 */
void mean_tick(struct mean_power *m, bool has_counter, uint64_t counter_mj,
               uint64_t at_ns);
/* The mean at the last tick; false where none is known since since_ns. */
bool mean_known(const struct mean_power *m, uint64_t since_ns, double *ret_w);

#endif
