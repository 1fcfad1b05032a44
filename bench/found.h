/* What the product's search and its choice of a lock find on made-up boards (vfboards.h),
 * beside the best there is.  Simulated.
 */
#ifndef BENCH_FOUND_H
#define BENCH_FOUND_H

#include <stdbool.h>
#include <stdio.h>

#include "underwatt/error.h"

/* plants: of each board.  json may be NULL; its rows begin with *comma. */
int found_show(unsigned plants, bool table, FILE *json, const char **comma,
               uw_error *err);

#endif
