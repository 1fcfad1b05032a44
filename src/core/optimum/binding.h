/* Whether a cap has an effect on a board: the driver counts the time for which the power
 * limit held the clock down (nvmlDeviceGetViolationStatus).  Power alone does not tell: a
 * job may lose time at caps well above its mean power.
 */
#ifndef CORE_OPTIMUM_BINDING_H
#define CORE_OPTIMUM_BINDING_H

#include <stdint.h>

enum binding {
    BINDING_UNKNOWN,
    BINDING_NONE, /* the limit did not hold the clock down */
    BINDING_SEEN,
};

enum { BINDING_READINGS = 64 };

/* The last readings of the counter of one board. */
struct binding_log {
    uint64_t at_ns[BINDING_READINGS], limited_ns[BINDING_READINGS];
    unsigned n; /* ever added */
};

void binding_add(struct binding_log *log, uint64_t at_ns, uint64_t limited_ns);
/* From the readings between begin_ns and end_ns, which must span half of that time. */
enum binding binding_within(const struct binding_log *log, uint64_t begin_ns,
                            uint64_t end_ns);
/* Of two boards together, or of two parts of a window. */
enum binding binding_both(enum binding a, enum binding b);

#endif
