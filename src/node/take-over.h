/* Takes over what earlier runs of the daemon left: jobs that still run, claims that still
 * hold, searches that go on where they were.
 *
 * Owns: nothing.  Touches: the parts named below.  Thread: the loop's; it waits for the
 * ledger, as it is called while the node begins or opens its boards anew.
 * Explained in docs/ledger.md and docs/reliability.md.
 */
#ifndef NODE_TAKE_OVER_H
#define NODE_TAKE_OVER_H

#include "caps/caps.h"
#include "caps/claim-watches.h"
#include "jobs/job-records.h"
#include "node/ledger-writer.h"

/* What is known of a board while all boards are opened anew. */
struct kept_board {
    struct gpu_info info;
    struct claims claims;
};

struct take_over {
    struct loop *loop;
    struct boards *boards;
    struct caps *caps;
    struct roster *roster;
    struct job_records *records;
    struct claim_watches *watches;
    struct ledger_writer *writer;
    const struct kept_board *kept; /* their claims count, not the ledger's */
    size_t n_kept;
    bool silent; /* some board has not answered yet: what is on it waits in the ledger */
    /* A job's search or cap by name goes on from this state ("" unknown). */
    int (*begin_search)(const struct job_entry *job, struct job_record *rec,
                        const char *state, void *user, uw_error *err);
    void *user;
};

/* Jobs and claims of the ledger (where it can be read), of rows that wait, and of the
 * boards that were kept.
 */
int take_over_all(const struct take_over *t, uw_error *err);
/* The claims of kept boards alone. */
void take_over_kept(const struct take_over *t);

#endif
