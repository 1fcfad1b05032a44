/* Figures that a report shows in addition to the booked ones: market-based and embodied
 * emissions.
 */
#ifndef IO_STORE_REPORT_BESIDE_H
#define IO_STORE_REPORT_BESIDE_H

#include "io/store/report-inside.h"

/* *ret is NULL if neither was requested. */
int report_beside_new(const struct report *rep, struct report_beside **ret,
                      uw_error *err);
void report_beside_free(struct report_beside *b); /* NULL is fine */

struct report_beside_row {
    int64_t board, kind, res, begin_ms, span_ms, energy_uj;
};
/* Adds a row of `energy`, not of a domain. */
void report_beside_row(const struct report_beside *b, const struct report_beside_row *row,
                       double add[REPORT_BESIDE]);

/* An object with the requested members of facility_co2_g, market_g, market_covered etc.
 */
void report_put_beside(const struct report *rep, const struct report_charges *c,
                       int64_t energy_uj);
/* Their origins, of "factors". */
void report_put_origins(const struct report *rep);

#endif
