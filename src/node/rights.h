/* Checks whether a client may make a request, before anything is changed.
 *
 * Owns: nothing.  Touches: the parts below, which it only reads.  Thread: the loop's.
 * Explained in docs/jobs.md and underwattd.yaml(5).
 *
 * Results are those of node.h's requests: -EPERM and the like, with a text that says who
 * may not do what, and why.
 */
#ifndef NODE_RIGHTS_H
#define NODE_RIGHTS_H

#include "config/config.h"
#include "jobs/job-records.h"
#include "node/request.h"

struct rights {
    const struct node_config *config;
    /* Parts of the open boards; boards NULL: none are open. */
    struct boards *boards;
    struct caps *caps;
    struct roster *roster;
    struct job_records *records;
};

/* The client's name; "somebody" without one. */
const char *rights_name(const struct node_who *who);

/* The one board with this name ("0", a UUID) among n.  -ENOENT. */
int rights_board_named(const struct gpu_info *const *info, size_t n, const char *name,
                       size_t *ret, uw_error *err);
/* Checks a claim at now_ns.  Sets *ret_boards, the boards that it is on, and job, made_ns
 * and until_ns of *ret.
 */
int rights_claim(const struct rights *r, const struct node_who *who,
                 const struct node_claim *ask, uint64_t now_ns, uint64_t *ret_boards,
                 struct claim *ret, uw_error *err);
/* The limit that a claim asks of one board; 0: a claim on the clock. */
int rights_limit(const struct rights *r, const struct node_who *who,
                 const struct node_claim *ask, size_t board, uint32_t *ret_mw,
                 uw_error *err);
int rights_withdraw(const struct node_who *who, const struct claim *c, uw_error *err);
int rights_begin_job(const struct rights *r, const struct node_who *who,
                     const struct node_job *ask, uw_error *err);
/* Whether a running job is the client's to change. */
int rights_job(const struct rights *r, const struct node_who *who, uint64_t id,
               uw_error *err);
/* The same, and whether it may have the boards that ask->reg names beside its own. */
int rights_join_job(const struct rights *r, const struct node_who *who, uint64_t id,
                    const struct node_job *ask, uw_error *err);
/* Whether a claim's maker still has the right to it. */
bool rights_stands(const struct rights *r, size_t board, const struct claim *c);

#endif
