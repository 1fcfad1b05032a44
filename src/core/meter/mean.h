/* Mean power over the last one to two seconds, for display: from the energy counter if
 * there is one, else from the readings.  The meter computes energy.  Pure.
 */
#ifndef CORE_METER_MEAN_H
#define CORE_METER_MEAN_H

#include <stdbool.h>
#include <stdint.h>

enum { MEAN_MARKS = 4 };

struct mean_power {
    struct {
        uint64_t at_ns, counter_mj;
    } mark[MEAN_MARKS]; /* counter at each tick, newest first */
    unsigned n;
    double sum_w; /* readings since the last tick */
    unsigned n_readings;
    double w;
    uint64_t w_ns; /* time of w; 0: never */
};

/* Call for every reading. */
void mean_reading(struct mean_power *m, double power_w);
/* Call about once a second. has_counter: counter_mj was read at at_ns, else it is
 * ignored.  A counter that did not advance is ignored too.
 */
void mean_tick(struct mean_power *m, bool has_counter, uint64_t counter_mj,
               uint64_t at_ns);
/* The mean at the last tick; false if that tick is before since_ns or had no data. */
bool mean_known(const struct mean_power *m, uint64_t since_ns, double *ret_w);

#endif
