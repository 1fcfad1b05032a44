/* Points of the calendar: "2026-11-21", "2026-11-21T14:30", "2026-11-21 14:30:00+01:00".
 */
#ifndef BASE_MOMENT_H
#define BASE_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

/* A point of a calendar, and whether it names a whole day. */
struct moment {
    int year, month, day, hour, minute, second;
    bool date_only, has_zone;
    int zone_min; /* east of UTC */
};

/* The whole text, of 1970 to 2200; a blank in place of the zone's '+' is accepted (a URL
 * turns it into one).  false: it is none, *ret is unchanged.
 */
bool moment_read(const char *text, struct moment *ret);
/* Seconds since 1970; without a zone it is taken for UTC. */
int64_t moment_utc_s(const struct moment *m);

#endif
