/* The file of market-based figures: CSV text to contracts.  Pure. */
#ifndef CORE_CARBON_MARKET_READ_H
#define CORE_CARBON_MARKET_READ_H

#include <stdbool.h>

#include "core/carbon/market.h"
#include "underwatt/error.h"

enum { MARKET_BYTES = 8 << 20 }; /* of a file */

/* A header, "from,to,kwh,share,g_per_kwh,origin", then one contract a line, in the order
 * in which they apply; empty lines and lines that begin with # are skipped.  from, to: as
 * moment_read() takes them, UTC where they have no zone; a date as `to` includes its day.
 * kwh or share (0 to 1), the other one empty; both empty: a residual factor.  origin: a
 * text for people, in double quotes where it has a comma.  text: NUL-terminated behind
 * its len bytes.  name: of the file, for errors.  hidden: errors do not show the text.
 *
 * free() *ret.  -EINVAL, -ERANGE (the text names line, value and limit), -E2BIG, -ENOMEM.
 */
int market_read(const char *name, const char *text, size_t len, bool hidden,
                struct market_contract **ret, size_t *ret_n, uw_error *err);

#endif
