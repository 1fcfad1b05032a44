/* The time by which rows are old.  UTC may be set by hours or years, and a roll-up cannot
 * be undone.  So this time advances with the time that really passes, and takes UTC over
 * where both agree, or once UTC has not been set for seven days of running.
 */
#ifndef IO_STORE_CLOCK_H
#define IO_STORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct tidy_clock {
    int64_t at_ms;    /* kept in the ledger; 0: not begun */
    int64_t stood_ms; /* running time since UTC was last set; kept, too */
    bool seen;        /* in this run */
    uint64_t seen_ns; /* the loop's time (CLOCK_BOOTTIME) at the last look */
    int64_t utc_ms;   /* UTC at the last look; kept, too */
};

enum { TIDY_NEAR_MS = 60000 };
#define TIDY_OFF_MS INT64_C(86400000) /* longest pause after which UTC is believed */
#define TIDY_STOOD_MS                                                 \
    (7 * INT64_C(86400000)) /* until a clock that was set is believed \
                             */

/* Advances it to now; pure. */
void tidy_clock_look(struct tidy_clock *c, uint64_t now_ns, int64_t utc_ms);

#endif
