/* Makes the view of the node's boards and jobs that everybody is shown (view.h).
 *
 * Owns: what is counted of each board for the view alone, and while all boards are opened
 * anew what was known of them.
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

/* Of the boards that are open; borrowed until viewer_close(). */
struct viewer_sources {
    struct boards *boards;
    struct sampler *const *sampler;
    struct caps *caps;
    struct released_boards *released;
    struct roster *roster;
    struct job_records *records;
    struct searches *searches;
    struct attribution *attribution;
};

/* -ENOMEM */
int viewer_new(struct loop *loop, struct viewer **ret);
void viewer_free(struct viewer *v);
DEFINE_AUTO(struct viewer *, viewer_free);

void viewer_open(struct viewer *v, const struct viewer_sources *from);
void viewer_close(struct viewer *v);

/* Each tick, dt after the last. */
void viewer_tick(struct viewer *v, double dt);
/* The power of a board since from_ns, or unknown. */
struct view_value viewer_power(const struct viewer *v, size_t board, uint64_t from_ns);
/* A claim on the board has lost its right; text: which, whose and why. */
void viewer_lost(struct viewer *v, size_t board, const char *text);

/* The boards are to be closed for a while: what they are and their claims stay in view
 * until viewer_drop().
 */
void viewer_keep(struct viewer *v);
void viewer_drop(struct viewer *v);
const struct kept_board *viewer_kept(const struct viewer *v, size_t *ret_n);
/* How the caps of a kept board stood. */
const struct caps_view *viewer_kept_cap(const struct viewer *v, size_t i);

/* See node_board(). */
int viewer_board(const struct viewer *v, const char *name, size_t *ret, uw_error *err);
/* Boards and jobs; a power older than fresh_ns is not shown. */
void viewer_look(struct viewer *v, uint64_t fresh_ns, struct node_view *ret);

#endif
