/* The report of waste (docs/waste.md). */
#ifndef IO_STORE_REPORT_WASTE_H
#define IO_STORE_REPORT_WASTE_H

#include "io/store/report-inside.h"

/* Writes all of it, in place of the usual report. */
int report_waste(struct report *rep, uw_error *err);

#endif
