/* Rows of a CSV file without quotes, by the names of its columns. */
#ifndef BENCH_CSVFILE_H
#define BENCH_CSVFILE_H

#include <stddef.h>

#include "underwatt/error.h"

enum { CSV_COLUMNS_MAX = 12 };

/* field: as many as names, in their order, good until it returns.  Negative ends it. */
typedef int (*csv_row_fn)(char *const *field, void *user, uw_error *err);
/* -EINVAL with "FILE:LINE: …": no such column, a row that is too short; what the open
 * said; what fn said.
 */
int csv_read(const char *path, const char *const *names, size_t n, csv_row_fn fn,
             void *user, uw_error *err);

#endif
