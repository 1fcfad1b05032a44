/* Compares energy counters with power on all boards at once, for a few seconds. */
#ifndef CLI_ENERGY_CHECK_H
#define CLI_ENERGY_CHECK_H

#include "cli/doctor.h"

/* Fills one result per board of the survey (s->n, zeroed by the caller). */
int energy_check(struct survey *s, struct doctor_energy *ret, uw_error *err);

#endif
