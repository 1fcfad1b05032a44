/* Delays of caps, for the limit and the clock lock. */
#ifndef CAPS_TIMES_H
#define CAPS_TIMES_H

#define CAPS_TICK_NS (100 * 1000000ull) /* least time between two steps of a ramp */
#define CAPS_DENIED_NS \
    (30 * 1000000000ull) /* first delay after a missing right, doubled … */
#define CAPS_DENIED_MOST_NS (300 * 1000000000ull) /* … up to this */

#endif
