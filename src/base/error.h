/* The common way to report failure: a result code and a text for users.
 *
 * Results are 0 (done), -errno (an error, passed on unchanged) or positive (an outcome
 * named in the header). err may be NULL everywhere.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "underwatt/error.h"

/* Writes the text into *err and returns r.  The text names the object, the value and the
 * limit: "GPU-3f…: 999000 mW is outside 100000..400000".
 */
int fail(uw_error *err, int r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the existing text and returns r. */
int fail_in(uw_error *err, int r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The text without "NAME: " at its beginning, for messages that name the object already.
 */
const char *error_after(const char *text, const char *name);

#endif
