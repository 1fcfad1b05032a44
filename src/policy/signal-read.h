/* The bytes of a source's file as a value or a series.  Pure: the time is an argument.
 * Errors name lines, columns and keys, never what the file holds: whoever reads them need
 * not be allowed to read the file.
 *
 * JSON: one value, at the source's path.
 * CSV, with commas, values in double quotes or without, and a newline behind each line (a
 * last line without one is torn): where lines begin with a time ("2026-11-25T14:00Z",
 * "2026-11-25 14:00", UTC where no zone is given) a series in the order of time, and an
 * empty field is unknown; else one value, of the last line.  A first line that does not
 * begin with a time names the columns.  Lines that begin with # are passed over.
 */
#ifndef POLICY_SIGNAL_READ_H
#define POLICY_SIGNAL_READ_H

#include "core/policy/series.h"
#include "policy/signal-source.h"

enum { SIGNAL_DAYS = 14 }; /* of a series, before and behind now; the rest is left out */

struct signal_reading {
    bool is_series;
    struct signal_value value;
    struct policy_point *point;
    size_t n;
};
void signal_reading_fini(struct signal_reading *r); /* also of {0} */

/* -EINVAL, -ENODATA (no value), -E2BIG (too many lines), -ENOMEM: *ret is unchanged. */
int signal_read(const struct signal_source *source, const char *text, size_t len,
                int64_t utc_s, struct signal_reading *ret, uw_error *err);

#endif
