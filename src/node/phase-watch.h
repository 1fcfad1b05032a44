/* The node's knowledge of the phases of its jobs, for phase rules: under which caps each
 * phase has run, and how long it takes; and how soon a limit is set on a board and takes
 * effect.
 *
 * Owns one record a job and a board.  Calls only caps_look(); listens to the samplers.
 * Logs, and writes to the ledger, when it ends the caps of a job's phases.
 * Thread: the loop's.  It exists as long as the boards are open.  Explained in
 * docs/policies.md.
 */
#ifndef NODE_PHASE_WATCH_H
#define NODE_PHASE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "node/view-phases.h"
#include "underwatt/error.h"

struct caps;
struct ledger_writer;
struct loop;
struct phase_watch;
struct sampler;

struct phase_watch_opts {
    struct loop *loop;
    const struct caps *caps;
    struct sampler *const *sampler; /* one a board; they outlive it */
    size_t n_boards;
    struct ledger_writer *writer;
    const struct steps *(*steps)(uint64_t job, void *user); /* NULL: none */
    void *user;
};
int phase_watch_new(const struct phase_watch_opts *opts, struct phase_watch **ret,
                    uw_error *err);
void phase_watch_free(struct phase_watch *w);
DEFINE_AUTO(struct phase_watch *, phase_watch_free);
/* Whether a change of phase is needed at once, as rules may depend on it; initially true.
 */
void phase_watch_hurry(struct phase_watch *w, bool hurry);

/* Sets the phase of a job on these boards (enum uw_phase); returns whether it has
 * changed. Not recorded if memory is short.
 */
bool phase_watch_phase(struct phase_watch *w, uint64_t job, uint64_t boards,
                       uint32_t phase);
/* A limit has come into force; 0: unknown. */
void phase_watch_cap(struct phase_watch *w, size_t board, uint32_t mw);
void phase_watch_end(struct phase_watch *w, uint64_t job);

/* The view of a job and its boards (a mask). */
void phase_watch_look(const struct phase_watch *w, uint64_t job, uint64_t boards,
                      struct view_phases *ret);

#endif
