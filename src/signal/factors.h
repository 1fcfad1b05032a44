/* Yearly carbon intensity of electricity by country: a table. */
#ifndef SIGNAL_FACTORS_H
#define SIGNAL_FACTORS_H

#include <stdbool.h>
#include <stddef.h>

/* Whose figures they are: Our World in Data. */
#define FACTORS_ORIGIN "Our World in Data"
#define FACTORS_LICENCE "CC BY 4.0"
/* What the figures include. */
#define FACTORS_BOUND "generation, life cycle"

/* Grams of CO2 equivalent a kWh.  *year 0: the newest one, which is written to it.
 * false: the table has no such figure, nothing changed.
 */
bool factor_find(const char *country, unsigned *year, double *ret_g);
/* The i-th country of the table; NULL behind the last. */
const char *factor_country(size_t i);

#endif
