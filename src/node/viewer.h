/* Makes the view of the node's boards and jobs (view.h).
 *
 * Owns: per-board counters for the view and, while all boards are reopened, the last
 * known state of the boards.
 * Touches: the parts below, which it only reads.  Thread: the loop's.
 * Explained in docs/architecture.md.
 */
#ifndef NODE_VIEWER_H
#define NODE_VIEWER_H

#include "caps/released-boards.h"
#include "energy/attribution.h"
#include "node/take-over.h"
#include "node/view.h"
#include "tuner/searches.h"

struct viewer;

/* Parts of the open boards; borrowed until viewer_close(). */
struct viewer_sources {
    struct boards *boards;
    struct sampler *const *sampler;
    struct caps *caps;
    struct released_boards *released;
    struct roster *roster;
    struct job_records *records;
    struct searches *searches;
    struct attribution *attribution;
    struct phase_watch *phases;
    const struct charges *charges;
};

/* -ENOMEM */
int viewer_new(struct loop *loop, struct viewer **ret);
void viewer_free(struct viewer *v);
DEFINE_AUTO(struct viewer *, viewer_free);

/* Makes room for n boards; call it before any function below.  -ENOMEM. */
int viewer_room(struct viewer *v, size_t n);
void viewer_open(struct viewer *v, const struct viewer_sources *from);
void viewer_close(struct viewer *v);

/* Call at each tick, dt after the last. */
void viewer_tick(struct viewer *v, double dt);
/* The mean power of a board since from_ns, or unknown. */
struct maybe viewer_power(const struct viewer *v, size_t board, uint64_t from_ns);
/* Records that a claim on the board lost its right; text: claim, owner and reason. */
void viewer_lost(struct viewer *v, size_t board, const char *text);

/* Before the boards are closed for a while: keeps their identity and claims in the view
 * until viewer_drop().
 */
void viewer_keep(struct viewer *v);
void viewer_drop(struct viewer *v);
const struct kept_board *viewer_kept(const struct viewer *v, size_t *ret_n);
/* The last caps view of a kept board. */
const struct caps_view *viewer_kept_cap(const struct viewer *v, size_t i);

/* See node_board(). */
int viewer_board(const struct viewer *v, const char *name, size_t *ret, uw_error *err);
/* Fills boards and jobs; readings older than fresh_ns, and the limit in force of a board
 * that is not held and has no newer ones, are left out.
 */
void viewer_look(struct viewer *v, uint64_t fresh_ns, struct node_view *ret);

#endif
