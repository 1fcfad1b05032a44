/* The one way to fail: a result code and a line for a human.
 *
 * Results are 0 (done), -errno (a fault, passed up unchanged) or positive (an
 * outcome that the header names).  err may be NULL everywhere.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "underwatt/error.h"

/* Write the text into *err and return r.  The text names the thing, the value
 * and the limit: "GPU-3f…: 999000 mW is outside 100000..400000".
 */
int fail(uw_error *err, int r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "context: " before the text that is there already and return r. */
int fail_in(uw_error *err, int r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
