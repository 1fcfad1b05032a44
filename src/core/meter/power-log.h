/* Mean power of consecutive stretches of time, kept for as long as a daemon runs: if
 * there are too many, stretches that are short for their age are merged, so that the
 * length of each is about 1 % of its age.  Pure.
 */
#ifndef CORE_METER_POWER_LOG_H
#define CORE_METER_POWER_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "core/meter/meter.h"

enum { POWER_LOG_MAX = 1024 };

struct power_log { /* {0}: empty */
    struct {
        uint64_t begin_ns, end_ns;
        double j;
    } * at;
    size_t n, room;
};

void power_log_fini(struct power_log *l);
/* Adds a stretch; ignored if it begins before the end of the last one.  Without memory
 * the oldest is lost.
 */
void power_log_add(struct power_log *l, uint64_t begin_ns, uint64_t end_ns, double j);
/* The stretches between begin_ns and upto_ns, in order; the first may have begun earlier,
 * the last one is cut off.  Times are relative to begin_ns.  buf has room for
 * POWER_LOG_MAX; returns their number.
 */
size_t power_log_between(const struct power_log *l, uint64_t begin_ns, uint64_t upto_ns,
                         struct meter_power *buf);
/* The end of the first stretch that ends at at_ns or later; 0: there is none. */
uint64_t power_log_end_from(const struct power_log *l, uint64_t at_ns);

#endif
