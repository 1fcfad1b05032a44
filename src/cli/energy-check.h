/* Energy counters against power, all boards side by side for a few seconds. */
#ifndef CLI_ENERGY_CHECK_H
#define CLI_ENERGY_CHECK_H

#include "cli/doctor.h"

/* One result a board of the survey (s->n of them, zeroed by the caller). */
int energy_check(struct survey *s, struct doctor_energy *ret, uw_error *err);

#endif
