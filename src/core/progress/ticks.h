/* Update times ("ticks") of a sensor that samples at fixed times, which a reader sees up
 * to one tick later.  A value that is old at one reading and new at the next was
 * published between the two; ticks that lie in all such brackets give the time of each
 * value to a few hundredths of a tick.  Pure.
 */
#ifndef CORE_PROGRESS_TICKS_H
#define CORE_PROGRESS_TICKS_H

#include <stdbool.h>
#include <stdint.h>

enum { TICKS_KEPT = 256 };

struct ticks {
    double nominal_s;
    bool known;                     /* then: */
    double at_s, period_s, error_s; /* ticks are at at_s + k period_s */
    uint64_t read_ns;               /* time of the last reading */
    double value;
    unsigned n, fresh; /* brackets: all; since the last search */
    double from_s[TICKS_KEPT], to_s[TICKS_KEPT]; /* bracket i is at i % TICKS_KEPT */
};

/* update_s: nominal time between ticks, > 0. */
void ticks_init(struct ticks *t, double update_s);
void ticks_see(struct ticks *t, uint64_t at_ns, double value);
/* The last tick at or before at_s; only while known. */
double ticks_before(const struct ticks *t, double at_s);
/* Delay of the nearest tick after at_s, -0.5..0.5 periods; only while known. */
double ticks_late(const struct ticks *t, double at_s);

#endif
