/* Takes over what earlier runs of the daemon left: running jobs, valid claims, and
 * searches, which continue from their saved state.
 *
 * Owns: nothing.  Touches: the parts named below.  Thread: the loop's, which waits for
 * the ledger: called only while the node opens its boards.
 * Explained in docs/design/ledger.md and docs/design/reliability.md.
 */
#ifndef NODE_TAKE_OVER_H
#define NODE_TAKE_OVER_H

#include "caps/caps.h"
#include "caps/claim-watches.h"
#include "jobs/job-records.h"
#include "node/ledger-writer.h"

/* What is kept of a board while all boards are reopened. */
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
    struct attribution *attribution;
    struct claim_watches *watches;
    struct ledger_writer *writer;
    const struct kept_board *kept; /* their claims replace the ledger's */
    size_t n_kept;
    bool silent; /* a board has not answered: its jobs and claims stay in the ledger */
    /* Continues a job's search or cap by name, if it has one, from this state ("":
     * unknown).
     */
    int (*begin_search)(const struct job_entry *job, struct job_record *rec,
                        const char *state, void *user, uw_error *err);
    void *user;
};

/* Takes over the jobs and claims of the ledger (if readable), of rows in memory, and of
 * kept boards.
 */
int take_over_all(const struct take_over *t, uw_error *err);
/* Takes over the claims of kept boards only. */
void take_over_kept(const struct take_over *t);

#endif
