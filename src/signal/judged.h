/* The judges of forecasts as JSON, for a file: values that wait and errors of the last
 * days, kept over restarts.
 *
 * Owns: nothing.  Touches: nothing.  Explained in
 * docs/design/signals.md#forecasts-judged.
 */
#ifndef SIGNAL_JUDGED_H
#define SIGNAL_JUDGED_H

#include "core/carbon/judge.h"
#include "signal/signal.h"
#include "underwatt/error.h"

enum {
    JUDGED_MAX = 32,     /* forecasts of one process */
    JUDGED_SOURCE = 200, /* "gb", "file /srv/grid.csv" */
};

/* A forecast and its judge. */
struct judged {
    char signal[SIGNAL_NAME], source[JUDGED_SOURCE], unit[SIGNAL_UNIT];
    struct judge judge;
};

/* free() *ret. */
int judged_write(const struct judged *const *list, size_t n, char **ret, uw_error *err);
/* free() each, up to JUDGED_MAX.  -EINVAL with one line: torn or damaged; -ENOMEM.
 * Nothing is in the list then.
 */
int judged_read(const char *name, const char *text, size_t len,
                struct judged *list[JUDGED_MAX], size_t *ret_n, uw_error *err);

#endif
