/* Mean, 95th percentile and maximum of a column of figures, and JSON bits. */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stddef.h>
#include <stdio.h>

struct stats {
    double mean, p95, max;
};

/* Sorts v.  p95 is interpolated between ranks; n > 0. */
struct stats stats_of(double *v, size_t n);
/* The share-th quantile (0..1) of sorted v, interpolated between ranks; n > 0. */
double quantile_of(const double *v, size_t n, double share);
/* {"mean":…,"p95":…,"max":…} */
void stats_json(FILE *f, const struct stats *s);
/* The text as a JSON string, quotes included. */
void text_json(FILE *f, const char *text);

#endif
