/* The numbers of a prior as learn-prior prints them, a line each. */
#ifndef BENCH_PRIORFILE_H
#define BENCH_PRIORFILE_H

#include "core/optimum/prior.h"
#include "underwatt/error.h"

/* -errno with "FILE:LINE: …"; *ret is written only on success. */
int prior_read(const char *path, struct prior *ret, uw_error *err);

#endif
