/* All goals and all methods over one file of curves, as one table. */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "play.h"

struct table_opts {
    double noise;
    unsigned seeds;
    unsigned looks;            /* of the search in its hold: a row of its own; 0: none */
    const struct prior *prior; /* NULL: the built-in one */
    FILE *json;                /* or NULL */
    bool quiet;                /* no table, the JSON alone */
};

/* The table to stdout unless quiet, the same as JSON to opts->json. */
int table_print(const struct records *recs, const struct table_opts *opts, uw_error *err);

#endif
