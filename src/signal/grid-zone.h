/* Zones of the grid as facility.zone names them: the country of ISO 3166-1 in two
 * letters, then parts of it ("DE", "NO-NO1", "US-CAL-CISO", as Electricity Maps writes
 * them).  Which parts a country has is not known here.
 */
#ifndef SIGNAL_GRID_ZONE_H
#define SIGNAL_GRID_ZONE_H

#include "underwatt/error.h"

enum { GRID_ZONE_MAX = 31 };

/* countries: iso3166.tab of the time zone database, lines of CODE, a tab and a name;
 * NULL: only the form is checked.  -EINVAL.
 */
int grid_zone_check(const char *zone, const char *countries, uw_error *err);

#endif
