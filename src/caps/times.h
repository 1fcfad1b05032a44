/* How long caps wait, for the limit and for the clock's lock alike. */
#ifndef CAPS_TIMES_H
#define CAPS_TIMES_H

#define CAPS_TICK_NS (100 * 1000000ull) /* between two steps of a ramp, at least */
#define CAPS_STAY_NS                                                   \
    (30 * 1000000000ull) /* at a first cap, where no steps are counted \
                          */
#define CAPS_DENIED_NS \
    (30 * 1000000000ull) /* until a missing right is asked for again … */
#define CAPS_DENIED_MOST_NS (300 * 1000000000ull) /* … doubled up to */

#endif
