/* A node in the process of one command, for where no daemon runs: no ledger, no TCP, no
 * discovery of jobs, and only the boards that the command uses.
 *
 * Owns: the node, its API, and a socket in the user's runtime folder where others of the
 * same user read.  Touches: what the node touches; the actuator is a process of its own,
 * started before the first claim (POST /v1/claims), once.  Thread: the loop's.
 * Explained in docs/architecture.md.
 */
#ifndef ASK_OWN_NODE_H
#define ASK_OWN_NODE_H

#include "ask/ask.h"
#include "node/node.h"

struct own_node;

struct own_node_opts {
    /* Loop, backend, gpu, version; of a virtual world also its own.  config, private,
     * choose and on_ready are set here.
     */
    const struct node_opts *node;
    const char *only; /* the boards, as for --gpus; NULL: those of visible */
    const struct gpu_visible *visible; /* NULL, or none named: all boards */
    /* In place of both: node_opts.choose, called before own_node_new() returns. */
    int (*choose)(struct boards *set, void *user, uw_error *err);
    void *user;
    /* An existing folder for the socket, node-PID.sock, and for the file from which the
     * jobs have their numbers (ask/job-number.h); NULL: no socket, numbers from 1 on.
     * world: of a simulated world, node-WORLD-PID.sock; NULL: real boards.
     */
    const char *runtime_dir, *world;
    /* In place of that, for other processes: a socket at this path, where this user may
     * do everything.
     */
    const char *socket;
    /* For a command that runs a job, see node_opts.runs_job. */
    bool runs_job;
    /* Lines for people: of a job's search, or (job 0) of the choice of boards. */
    void (*note)(uint64_t job, const char *text, bool important, void *user);
    void *note_user;
};
/* Runs the loop until the boards are open.  -ENODEV: there are none; -EINTR: something
 * else stopped the loop; -EINVAL: only.
 */
int own_node_new(const struct own_node_opts *opts, struct own_node **ret, uw_error *err);
/* Ends the actuator's process, which restores what is still held. */
void own_node_free(struct own_node *own);
DEFINE_AUTO(struct own_node *, own_node_free);

/* Requests to it, as an administrator's; borrowed. */
struct ask *own_node_ask(const struct own_node *own);
/* The node itself, for claimants of the command; borrowed. */
struct node *own_node_node(const struct own_node *own);
/* Starts the actuator without a claim, and runs the loop until it is ready: it restores
 * what killed processes left.  -EPERM with its text; -EINTR.
 */
int own_node_actuator(struct own_node *own, uw_error *err);

/* Holds every board as its caps do, without a claim: as long as true, no other process
 * can.  GET /v1/gpus tells which boards are held.  false: gives them back.
 */
void own_node_hold(struct own_node *own, bool hold);
/* Runs the loop until energy windows may begin and the processes on the boards are known,
 * for some seconds where a board does not answer.  -EINTR.
 */
int own_node_feed(struct own_node *own, uw_error *err);
/* Runs the loop until the cap of a board changes (its state, claims or limit), or until
 * until_ns; what else stops the loop ends the wait, too.
 */
void own_node_wait(struct own_node *own, uint64_t until_ns);
/* Adopts a job's progress page; fd is the node's, or closed.  As node_job_page(). */
int own_node_page(struct own_node *own, uint64_t job, int fd, uw_error *err);
/* As node_job_page_of(). */
int own_node_page_of(struct own_node *own, uid_t uid, uint64_t job, uw_error *err);
/* The open boards, for what no request tells; borrowed until control returns to the loop.
 */
struct boards *own_node_boards(const struct own_node *own);

#endif
