/* When the readings of a sensor that looks at fixed moments came about: a reader meets
 * each up to a whole tick later, at random.  A value that was still the old one at one
 * reading and is new at the next was published between the two; where the ticks are that
 * lie in all of these brackets, the moment of each value is known to a few hundredths.
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
    uint64_t read_ns;               /* last reading */
    double value;
    unsigned n, fresh; /* brackets ever; since the ticks were looked for */
    double from_s[TICKS_KEPT], to_s[TICKS_KEPT]; /* bracket i lies at i % TICKS_KEPT */
};

/* update_s: time between ticks as the sensor's maker has it, > 0. */
void ticks_init(struct ticks *t, double update_s);
void ticks_see(struct ticks *t, uint64_t at_ns, double value);
/* The last tick at or before a moment; ticks are known. */
double ticks_before(const struct ticks *t, double at_s);
/* How late the ticks are after a moment: -0.5..0.5 of their distance; ticks are known. */
double ticks_late(const struct ticks *t, double at_s);

#endif
