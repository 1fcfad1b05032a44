/* Goals and methods over one file of curves, as one table. */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "play.h"

struct table_opts {
    struct play base; /* method and goal aside; looks: a row of its own; 0: none */
    const char *goal; /* NULL: all of the table */
    unsigned seeds;
    FILE *json; /* or NULL */
    bool quiet; /* no table, the JSON alone */
};

/* Tells on a terminal's standard error how many of the runs of a row are done. */
void table_progress(const char *goal, const char *method, size_t done, size_t all);

/* The table to stdout unless quiet, the same as JSON to opts->json. */
int table_print(const struct records *recs, const struct table_opts *opts, uw_error *err);

#endif
