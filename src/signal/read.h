/* The bytes of a file, or of a server's answer, as a value or a series.  Pure: the time
 * is an argument. Errors name lines, columns and keys, never what the file holds, except
 * a time in a wrong form: whoever reads them need not be allowed to read the file.
 *
 * JSON: one value, at the format's path.
 * CSV, with commas, values in double quotes or without, and a newline behind each line (a
 * last line without one is torn): where lines begin with a time ("2026-11-25T14:00Z",
 * "2026-11-25 14:00", UTC where no zone is given) a series in the order of time, and an
 * empty field is unknown; else one value, of the last line.  A first line that does not
 * begin with a time names the columns.  Lines that begin with # are passed over.  Where
 * the values are in another column, a date or time of another form is refused, and so is
 * a plain number, of several lines.
 */
#ifndef SIGNAL_READ_H
#define SIGNAL_READ_H

#include "core/policy/series.h"
#include "signal/signal.h"

enum { SIGNAL_PATH = 128, SIGNAL_PATH_KEYS = 16 };

/* The format of the bytes; all texts are borrowed. */
struct signal_format {
    const char *name; /* of errors: the file, or the source */
    enum policy_type type;
    bool csv, is_forecast; /* a forecast has times */
    bool whole;            /* the text is complete: its last line may lack a newline */
    const char *path;      /* in JSON, shorter than SIGNAL_PATH; "": the whole */
    const char *column;    /* of CSV, by its header; "": the column after the time */
};
/* Whether a path consists of keys and item numbers separated by single dots, at most
 * SIGNAL_PATH_KEYS of them.
 */
bool signal_path_check(const char *path);

struct signal_reading {
    bool is_series;
    struct signal_value value;
    struct policy_point *point;
    size_t n;
};
void signal_reading_fini(struct signal_reading *r); /* also of {0} */

/* -EINVAL, -ENODATA (no value), -E2BIG (too many lines), -ENOMEM: *ret is unchanged. */
int signal_read(const struct signal_format *format, const char *text, size_t len,
                int64_t utc_s, struct signal_reading *ret, uw_error *err);

#endif
