/* What the node knows of the phases of its jobs, for phase rules: under which caps each
 * has run, and how long it takes.
 *
 * Owns one record a job.  Touches nothing but caps_look().  Thread: the loop's.  It lives
 * as long as the boards are open.  Explained in docs/policies.md.
 */
#ifndef NODE_PHASE_WATCH_H
#define NODE_PHASE_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "core/policy/phase-book.h"
#include "underwatt/error.h"

struct caps;
struct loop;
struct phase_watch;

int phase_watch_new(struct loop *loop, const struct caps *caps, size_t n_boards,
                    struct phase_watch **ret, uw_error *err);
void phase_watch_free(struct phase_watch *w);
DEFINE_AUTO(struct phase_watch *, phase_watch_free);

/* The phase of a job is known (enum uw_phase); the same one again is no news.  Not
 * remembered where memory is short.
 */
void phase_watch_phase(struct phase_watch *w, uint64_t job, uint32_t phase);
/* A limit has come into force; 0: unknown. */
void phase_watch_cap(struct phase_watch *w, size_t board, uint32_t mw);
void phase_watch_end(struct phase_watch *w, uint64_t job);

/* NULL: nothing is known.  Borrowed until the next call of the others. */
const struct phase_book *phase_watch_book(const struct phase_watch *w, uint64_t job);

#endif
