/* The node: composes boards, jobs, energy, caps, searches and the ledger, and answers
 * what is asked of them.  It decides nothing of its own but who may ask for what.
 *
 * Owns: all of these parts; one node a process.
 * Touches: the boards and /proc, through its parts; the ledger's file and those beside
 * it; the actuator's socket.  It serves nobody: HTTP, sockets and tokens are src/api's.
 * Thread: the loop's, also a virtual loop's; the ledger and files beside it are written
 * in workers' threads.  Explained in docs/architecture.md.
 */
#ifndef NODE_NODE_H
#define NODE_NODE_H

#include "config/config.h"
#include "energy/client-windows.h"
#include "io/ledger-queue.h"
#include "io/proc.h"
#include "node/request.h"
#include "node/view.h"

struct node;

struct node_opts {
    struct loop *loop;
    const struct node_config *config;        /* copied */
    const struct gpu_backend *backend, *cpu; /* cpu: processors, or NULL */
    const char *cpu_source;                  /* borrowed */
    struct gpu_given *cpu_given; /* takes what the actuator hands over; NULL: none */
    struct gpu_open_opts gpu;    /* its source: copied */
    const char *version;         /* of the program; borrowed */
    bool simulated;              /* a world's boards: figures are marked so */
    /* A virtual world's actuator over the open boards; false: connect to the service. */
    bool virtual_actuator;
    const struct actuator_virtual *service; /* … or a virtual service; NULL: none */
    const char *boot_id; /* of a virtual world; borrowed; NULL: the kernel's */
    proc_read_fn read;   /* a virtual world's processes; NULL: /proc */
    void *read_user;
    /* Once: r < 0: it cannot run at all.  No boards, no actuator are no reason: the
     * node goes on looking for them.
     */
    int (*on_ready)(struct node *node, int r, const uw_error *err, void *user);
    void *user;
};
int node_new(const struct node_opts *opts, struct node **ret, uw_error *err);
/* Everything given back and written, then fn (5 s at most). */
int node_end(struct node *node, int (*fn)(struct node *node, void *user), void *user);
/* node_end() will leave caps in force: the actuator's grace holds them for the next
 * daemon, and gives them back where none comes.
 */
void node_leave_caps(struct node *node);
void node_free(struct node *node);
DEFINE_AUTO(struct node *, node_free);

/* A new configuration, already checked; keys that need a restart stay what they were. */
int node_configure(struct node *node, const struct node_config *config, uw_error *err);
/* One that was refused: counted and written down; the old one stays. */
void node_config_failed(struct node *node, const char *text);

const struct node_view *node_look(struct node *node);

/* Something happened that live views and followers want to know: one of caps' or the
 * roster's events, or a sample round.  One listener (the API).
 */
enum node_event { NODE_EVENT_CAPS, NODE_EVENT_JOB, NODE_EVENT_SAMPLES };
typedef void (*node_listen_fn)(enum node_event event, const void *what, void *user);
void node_listen(struct node *node, node_listen_fn fn, void *user);

/* What follows returns 0, -EPERM (text names who, what and why not: the API says 403),
 * -ENOENT (no such board or job), -ERANGE, -EINVAL, -EBUSY, -E2BIG, -EAGAIN.  Boards
 * are named by index ("0") or UUID.
 */
int node_board(struct node *node, const char *name, size_t *ret, uw_error *err);

int node_claim(struct node *node, const struct node_who *who,
               const struct node_claim *ask, uint64_t *ret_id, uw_error *err);
int node_withdraw(struct node *node, const struct node_who *who, uint64_t id,
                  uw_error *err);

int node_job_begin(struct node *node, const struct node_who *who,
                   const struct node_job *ask, uint64_t *ret_id, uw_error *err);
/* The page of a job that runs; taken over. */
int node_job_page(struct node *node, const struct node_who *who, uint64_t id, int page_fd,
                  uw_error *err);
int node_job_end(struct node *node, const struct node_who *who, uint64_t id,
                 uw_error *err);

/* Windows of the boards' energy: see energy/client-windows.h.  Who may only read holds
 * none (-EPERM); -EAGAIN: no boards are open.
 */
int node_window_begin(struct node *node, const struct node_who *who, uint64_t *ret_id,
                      uw_error *err);
int node_window_end(struct node *node, const struct node_who *who, uint64_t id,
                    client_window_fn fn, void *user, uw_error *err);
int node_window_drop(struct node *node, const struct node_who *who, uint64_t id,
                     uw_error *err);

/* A report of all that is in the ledger up to now, made in another thread; fn is called
 * once, never from inside.  -ENOTSUP: this node keeps no ledger.
 */
int node_report(struct node *node, const struct ledger_query *query, ledger_report_fn fn,
                void *user, uw_error *err);

int node_release(struct node *node, const struct node_who *who, const char *board,
                 uint64_t hold_off_ns, caps_done_fn fn, void *user, uw_error *err);
int node_take_back(struct node *node, const struct node_who *who, const char *board,
                   uw_error *err);

#endif
