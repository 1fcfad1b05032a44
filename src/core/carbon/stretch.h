/* The best start of a job of a given length: the stretch of a forecast with the lowest
 * mean.  Pure.
 */
#ifndef CORE_CARBON_STRETCH_H
#define CORE_CARBON_STRETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A value between two times. */
struct stretch_point {
    int64_t from_utc_s, to_utc_s;
    double v; /* finite */
};

/* The time-weighted mean of the points between two times.  point: in order of time,
 * without overlap.  false: a part has no value, or the length is 0.
 */
bool stretch_mean(const struct stretch_point *point, size_t n, int64_t from_utc_s,
                  int64_t to_utc_s, double *ret);
/* The stretch of this length that begins at from_utc_s or later and has the lowest mean;
 * the first of several.  false: the points cover none.
 */
bool stretch_lowest(const struct stretch_point *point, size_t n, int64_t from_utc_s,
                    int64_t length_s, int64_t *ret_begin_utc_s, double *ret_mean);

#endif
