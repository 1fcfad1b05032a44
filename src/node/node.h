/* The node: composes boards, jobs, energy, caps, searches and the ledger, and answers
 * requests.  It decides only who may ask for what.
 *
 * Owns: all of these parts; one node a process.
 * Touches: the boards and /proc, through its parts; the ledger's file and files beside
 * it; the actuator's socket.  HTTP, sockets and tokens belong to src/api.
 * Thread: the loop's, also a virtual loop's; the ledger and files beside it are written
 * in workers' threads.  Explained in docs/architecture.md.
 */
#ifndef NODE_NODE_H
#define NODE_NODE_H

#include "config/config.h"
#include "energy/client-windows.h"
#include "gpu/backends.h"
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
    struct gpu_given *cpu_given; /* takes the actuator's descriptors; NULL: none */
    struct gpu_open_opts gpu;    /* source is copied */
    const char *version;         /* of the program; borrowed */
    bool simulated;              /* a simulated world: its figures are marked */
    /* The node of one command (ask/own-node.h): the actuator is a process of its own,
     * which node_need_actuator() or the first claim starts, once; missing boards are an
     * error; claims of persons may raise a limit above the original.  The boards are
     * opened once, and say themselves whether they are simulated.
     */
    bool private;
    /* Of a private node: keeps those of the boards just opened that its command uses
     * (boards_keep()).  r < 0: the node cannot run.  NULL: gpus and visible say.
     */
    int (*choose)(struct boards *set, void *user, uw_error *err);
    const char *gpus; /* as board/selection.h selects boards */
    const struct gpu_visible *visible;
    /* Of a private node that runs one job: samples each board as its meter likes it, and
     * keeps what a window of any length needs; looks for the job's processes twice a
     * second; a search that had to leave a board to others does not come back to it.
     */
    bool runs_job;
    /* Of a private node, with user: the id of its next job; 0: unknown.  NULL: from 1 on.
     */
    uint64_t (*next_job)(void *user);
    double window_s; /* length of a search's window; 0: the tuner's default */
    void (*note)(uint64_t job, const char *text, bool important, void *user);
    void (*on_caps)(
        void *user); /* of a private node: a board's cap has changed; or NULL */
    /* A virtual world's actuator over the open boards; false: connect to the service. */
    bool virtual_actuator;
    const struct actuator_virtual *service; /* a virtual service; NULL: none */
    const char *boot_id; /* of a virtual world; borrowed; NULL: the kernel's */
    proc_read_fn read;   /* a virtual world's processes; NULL: /proc */
    void *read_user;
    /* Called once; r < 0: the node cannot run.  Missing boards or a missing actuator are
     * not an error: the node keeps looking for them.
     */
    int (*on_ready)(struct node *node, int r, const uw_error *err, void *user);
    void *user;
};
int node_new(const struct node_opts *opts, struct node **ret, uw_error *err);
/* Restores all limits, writes all rows, then calls fn (after 5 s at most). */
int node_end(struct node *node, int (*fn)(struct node *node, void *user), void *user);
/* node_end() will leave caps in force: the actuator holds them for a grace period and
 * restores the limits if no new daemon connects.
 */
void node_leave_caps(struct node *node);
void node_free(struct node *node);
DEFINE_AUTO(struct node *, node_free);

/* Before the first claim on a private node: starts its actuator, once.  1: it is ready;
 * 0: fn is called once, later (r < 0: it cannot start, and text says why); < 0: it could
 * not start before, or has ended.  -EBUSY: somebody waits already.
 */
int node_need_actuator(struct node *node, caps_done_fn fn, void *user, uw_error *err);
/* Of a private node: holds all boards without a claim, or no longer. */
void node_hold(struct node *node, bool hold);
/* Of a private node: whether another user computes on one of its boards; ret: as
 * job_entry.held.
 */
bool node_held(const struct node *node, char ret[static JOB_HELD]);
/* Whether an energy window may begin and the users of all boards are known. */
bool node_is_fed(const struct node *node);

/* What a private node's own command uses: claimants (caps/claimant.h), calls to boards,
 * energy.  Board i has sampler i.  Borrowed until node_free(); NULL: not open.
 */
struct caps *node_caps(const struct node *node);
struct boards *node_boards(const struct node *node);
struct sampler *node_sampler(const struct node *node, size_t board);
/* Bit i: board i is read as often and as completely as by a command that measures it. */
void node_measure(struct node *node, uint64_t boards);

/* Applies a checked configuration; keys that need a restart keep their values. */
int node_configure(struct node *node, const struct node_config *config, uw_error *err);
/* Counts and records a refused configuration; the old one stays in force. */
void node_config_failed(struct node *node, const char *text);

const struct node_view *node_look(struct node *node);

/* Events for live views and followers: an event of caps, the roster, a rule or a limit of
 * the policy (struct node_rule_event, struct limits_event), or a new sample of all
 * boards.  One listener (the API).
 */
enum node_event {
    NODE_EVENT_CAPS,
    NODE_EVENT_JOB,
    NODE_EVENT_SAMPLES,
    NODE_EVENT_RULE,
    NODE_EVENT_LIMIT,
};
typedef void (*node_listen_fn)(enum node_event event, const void *what, void *user);
void node_listen(struct node *node, node_listen_fn fn, void *user);

/* The functions below return 0, -EPERM (the text says who may not do what, and why; HTTP
 * status 403), -ENOENT (no such board or job), -ERANGE, -EINVAL, -EBUSY, -E2BIG, -EAGAIN.
 * Boards are named by index ("0") or UUID.
 */
int node_board(struct node *node, const char *name, size_t *ret, uw_error *err);

int node_claim(struct node *node, const struct node_who *who,
               const struct node_claim *ask, uint64_t *ret_id, uw_error *err);
int node_withdraw(struct node *node, const struct node_who *who, uint64_t id,
                  uw_error *err);

int node_job_begin(struct node *node, const struct node_who *who,
                   const struct node_job *ask, uint64_t *ret_id, uw_error *err);
/* Has the process join the running job of its user and group (ask->reg.group), or
 * ask->before where that runs, has no group (any more, after a restart) and has the
 * process.  1: joined; 0: there is none, begin it.  -EPERM: the job is not the client's,
 * or an administrator began it and it would have more boards; -ERANGE: they cannot have
 * its cap by name.
 */
int node_job_join(struct node *node, const struct node_who *who,
                  const struct node_job *ask, uint64_t *ret_id, uw_error *err);
/* The process has no part in the job any more, which ends with the last one's. */
int node_job_leave(struct node *node, const struct node_who *who, uint64_t id, pid_t pid,
                   uw_error *err);
/* Sets the progress page of a running job; page_fd is closed or owned by the node. */
int node_job_page(struct node *node, const struct node_who *who, uint64_t id, int page_fd,
                  uw_error *err);
/* The progress page of a job of that user: a descriptor, borrowed.  -ENOENT: there is no
 * such job; -ENODATA: it has none (yet).
 */
int node_job_page_of(struct node *node, uid_t uid, uint64_t id, uw_error *err);
/* Another goal for a running job; NULL: none, its search rests.  A job without a search
 * begins one.  -EEXIST: it holds a cap by name.
 */
int node_job_goal(struct node *node, const struct node_who *who, uint64_t id,
                  const struct goal *goal, uw_error *err);
int node_job_end(struct node *node, const struct node_who *who, uint64_t id,
                 uw_error *err);

/* Registers a scheduler's job by its name, or takes over what is new about the one of
 * this name.  0, or 1: it was there.  A cap, goal or class that the job cannot have does
 * not fail: its record's refused says why.  -EPERM: not an administrator; -ENOTSUP: a
 * number is no board's; -EBUSY: a board is another user's, of another registrar.
 */
int node_scheduler_put(struct node *node, const struct node_who *who,
                       const struct scheduler_ask *ask, uint64_t *ret_id, uw_error *err);
/* What the scheduler knows of a running job beside that.  -EPERM; -ENOENT: it does not
 * run here; -E2BIG: labels.
 */
int node_scheduler_amend(struct node *node, const struct node_who *who, const char *name,
                         const struct scheduler_facts *facts, uw_error *err);
/* Ends the job of this name; 0, too, where there is none.  -EPERM. */
int node_scheduler_end(struct node *node, const struct node_who *who, const char *name,
                       uw_error *err);

/* Windows of the boards' energy: see energy/client-windows.h.  A client that may only
 * read is refused (-EPERM); -EAGAIN: no boards are open.
 */
int node_window_begin(struct node *node, const struct node_who *who, uint64_t *ret_id,
                      uw_error *err);
/* boot_ns: CLOCK_BOOTTIME of this machine; 0: now. */
int node_window_stop(struct node *node, const struct node_who *who, uint64_t id,
                     uint64_t boot_ns, uw_error *err);
int node_window_end(struct node *node, const struct node_who *who, uint64_t id,
                    const struct client_window_ask *ask, uw_error *err);
int node_window_look(struct node *node, const struct node_who *who, uint64_t id,
                     struct client_window_result *ret, uw_error *err);
/* See client_windows_powers(). */
int node_window_powers(struct node *node, const struct node_who *who, uint64_t id,
                       struct client_window_powers *powers, uw_error *err);
/* A board's power up to now, as of meter_powers(); at most 180 s are looked back to. */
struct node_history {
    struct meter_power *buf; /* the caller's */
    size_t room, n;
    double length_s; /* from the first one's beginning to now; 0: n is 0 */
};
/* 0 with n == 0: nothing is known yet; -ENOMEM. */
int node_history(struct node *node, size_t board, struct node_history *h, uw_error *err);
int node_window_drop(struct node *node, const struct node_who *who, uint64_t id,
                     uw_error *err);

/* The energy of processors in the time of a window; exact: for administrators.  Returns
 * their number.
 */
size_t node_window_processors(struct node *node, bool exact,
                              const struct client_window_result *window,
                              struct processors_energy ret[LEDGER_DOMAINS]);

/* Makes a report of the whole ledger in another thread; fn is called once, never from
 * inside.  -ENOTSUP: this node keeps no ledger.
 */
int node_report(struct node *node, const struct ledger_query *query, ledger_report_fn fn,
                void *user, uw_error *err);

/* Signals from outside by hand, of administrators; -EINVAL: there is no such signal, or
 * it has another type or unit; -ENOENT: it is not set.
 */
int node_signal_set(struct node *node, const struct node_who *who, const char *name,
                    const struct node_signal *ask, uw_error *err);
int node_signal_unset(struct node *node, const struct node_who *who, const char *name,
                      uw_error *err);
/* All signals from outside, the well-known ones too; borrowed as the view. */
int node_signals(struct node *node, const struct signal_view **ret, size_t *ret_n,
                 uw_error *err);

/* What this policy would do now (node/policy-trial.h), of administrators; -EINVAL: it is
 * wrong; -ENOTSUP: a private node; -EAGAIN: no board is open.
 */
struct policy_trial;
int node_policy_would(struct node *node, const struct node_who *who, const char *text,
                      struct policy_trial **ret, uw_error *err);

int node_release(struct node *node, const struct node_who *who, const char *board,
                 uint64_t hold_off_ns, caps_done_fn fn, void *user, uw_error *err);
int node_take_back(struct node *node, const struct node_who *who, const char *board,
                   uw_error *err);

#endif
