/* What the node knows of the phases of its jobs, for phase rules: under which caps each
 * has run, and how long it takes; and how soon a limit is set on a board and acts there.
 *
 * Owns one record a job and a board.  Touches caps_look() alone; overhears the samplers.
 * Thread: the loop's.  It lives as long as the boards are open.  Explained in
 * docs/policies.md.
 */
#ifndef NODE_PHASE_WATCH_H
#define NODE_PHASE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "core/policy/phase-book.h"
#include "core/policy/phase-cost.h"
#include "underwatt/error.h"

struct caps;
struct loop;
struct phase_watch;
struct sampler;

/* sampler: one a board; outlives it. */
int phase_watch_new(struct loop *loop, const struct caps *caps,
                    struct sampler *const *sampler, size_t n_boards,
                    struct phase_watch **ret, uw_error *err);
void phase_watch_free(struct phase_watch *w);
DEFINE_AUTO(struct phase_watch *, phase_watch_free);

/* The phase of a job is known (enum uw_phase); whether it is another one.  Not remembered
 * where memory is short.
 */
bool phase_watch_phase(struct phase_watch *w, uint64_t job, uint32_t phase);
/* A limit has come into force; 0: unknown. */
void phase_watch_cap(struct phase_watch *w, size_t board, uint32_t mw);
void phase_watch_end(struct phase_watch *w, uint64_t job);

/* Of a job and its boards (a mask): how long its phase takes, and what pays. */
struct view_phases {
    const struct phase_book *book; /* NULL: nothing is known; borrowed */
    struct phase_latency latency;  /* of the slowest of its boards */
    double break_even_s;
};
void phase_watch_look(const struct phase_watch *w, uint64_t job, uint64_t boards,
                      struct view_phases *ret);

#endif
