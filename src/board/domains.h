/* Energy of processors and their memory over time: their counters, read once a second.
 *
 * Owns: the set of counters, a sampler and the values of each.  Touches: the backend of
 * the counters.  Thread: the loop's.  Logs nothing; who opens it is told what fails.
 */
#ifndef BOARD_DOMAINS_H
#define BOARD_DOMAINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/units.h"
#include "board/boards.h"
#include "board/sampler.h"
#include "underwatt/error.h"

enum { DOMAINS_MAX = 16 };
#define DOMAINS_STEP_J 1.0 /* of the shown values */

struct domains;

struct domains_opts {
    struct loop *loop;
    const struct gpu_backend *backend;
    struct gpu_open_opts gpu;
    uint64_t shown_ns; /* update period of the shown values */
    /* Called once; r: 0, GPU_ABSENT (there are none), or < 0. */
    int (*on_open)(int r, const uw_error *err, void *user);
    /* Once a second of each counter that can be read, and at the first time; or NULL. */
    void (*on_look)(size_t i, void *user);
    /* A counter cannot be read, which is tried again after a minute; or NULL. */
    void (*on_refused)(const uw_error *err, void *user);
    void *user;
};
int domains_new(const struct domains_opts *opts, struct domains **ret, uw_error *err);
void domains_free(struct domains *d);
DEFINE_AUTO(struct domains *, domains_free);

/* Changes opts.shown_ns. */
void domains_period(struct domains *d, uint64_t shown_ns);
/* Retries counters that could not be read with the next poll. */
void domains_retry(struct domains *d);
/* Reads all counters now, those that were read in the last 0.2 s left out. */
void domains_read(struct domains *d);

struct domain_view {
    const char *name, *uuid; /* "package-0", "dram-0" */
    struct sampler *sampler; /* NULL: the counter was not readable yet, … */
    int r;                   /* … why, as of board_sample(); 0: not known yet */
    uw_error error;          /* … of r */
    uint64_t last_ns;        /* of the last value */
    double energy_j;         /* since the first value */
    struct maybe power_w;    /* between the last two values */
    /* In whole DOMAINS_STEP_J, renewed every opts.shown_ns; shown_ns 0: never. */
    uint64_t shown_ns;
    double shown_j;
    struct maybe shown_w;
};
size_t domains_count(const struct domains *d);
/* Borrowed until domains_free(). */
const struct domain_view *domains_at(const struct domains *d, size_t i);

/* The energy of domain i in a time, by the exact values, or by those that are shown,
 * between which it is interpolated.  false: not known.
 */
bool domains_between(const struct domains *d, size_t i, bool exact, uint64_t begin_ns,
                     uint64_t end_ns, double *ret_j, double *ret_half_j);

#endif
