/* The minimum of a function of a few numbers (Nelder and Mead 1965). */
#ifndef BENCH_MINIMUM_H
#define BENCH_MINIMUM_H

#include <stddef.h>

typedef double (*minimum_fn)(const double *v, void *user);

/* From v, first steps of size `step`, at most `calls` calls.  v becomes the best
 * found.  0 or -ENOMEM.
 */
int minimum(minimum_fn fn, void *user, double *v, size_t n, double step, unsigned calls);

#endif
