/* Hours of the week by the wall clock of a zone.  The zone's offsets are the caller's.
 * Pure.
 */
#ifndef CORE_POLICY_SCHEDULE_H
#define CORE_POLICY_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

enum { POLICY_DAY_MIN = 24 * 60 };

/* On these days, from this minute on, up to and without that one; where `to` is not above
 * `from` it is on the next day.
 */
struct policy_schedule {
    uint8_t days; /* bit 0: Monday */
    uint16_t from_min, to_min;
};

/* A zone at an instant: the wall clock is UTC + offset_s until change_utc_s, from then on
 * UTC + after_s.
 */
struct policy_zone {
    int32_t offset_s, after_s;
    int64_t change_utc_s; /* INT64_MAX: none is known */
};

struct policy_hours {
    bool inside;
    int64_t edge_utc_s; /* when that changes; INT64_MAX: not within 8 days */
};

/* The zone has at most one change within 8 days of utc_s, and it is change_utc_s. */
void policy_schedule_at(const struct policy_schedule *s, const struct policy_zone *zone,
                        int64_t utc_s, struct policy_hours *ret);

/* The longest time without an edge inside, in seconds of the wall clock; UINT32_MAX: for
 * ever.
 */
uint32_t policy_schedule_longest_s(const struct policy_schedule *s);

#endif
