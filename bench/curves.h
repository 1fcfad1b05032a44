/* Recorded curves from a CSV file: header curve,cap_w,time_s,energy_j, a row a
 * measured cap, energy of one GPU.
 */
#ifndef BENCH_CURVES_H
#define BENCH_CURVES_H

#include <stdbool.h>

#include "pchip.h"

struct record {
    char *name;
    struct curve *curve;
    double *cap_w;                /* the recorded caps … */
    size_t n;                     /* … and their number */
    double min_w, max_w;          /* the lowest and the highest cap */
    struct curve_value reference; /* at the highest cap */
};

struct records {
    struct record *items;
    size_t n, cap;
};

/* Curves in the order of their first rows.  Refused with "FILE:LINE: …": a row
 * that is empty or not a number, a cap given twice, a value that is not
 * positive, fewer than 3 rows of a curve.  -errno; on failure nothing is kept.
 */
int records_read(const char *path, struct records *ret, uw_error *err);
/* Whether the cap has an effect: there or at a higher cap the curve's time or power is
 * off the reference's by more than what such recordings repeat to.
 */
bool record_binds(const struct record *rec, double cap_w);
void records_fini(struct records *r);
static inline void records_fini_p(struct records *r)
{
    records_fini(r);
}

#endif
