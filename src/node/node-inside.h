/* The node's composition, shared by node.c (opens and closes the boards, the tick, the
 * end), parts.c (starts the parts and forwards their events) and requests.c (requests
 * and the view).
 */
#ifndef NODE_NODE_INSIDE_H
#define NODE_NODE_INSIDE_H

#include "caps/actuator-link.h"
#include "caps/budget.h"
#include "caps/caps-log.h"
#include "caps/claim-watches.h"
#include "caps/released-boards.h"
#include "energy/processors.h"
#include "gpu/backends.h"
#include "jobs/history.h"
#include "jobs/job-records.h"
#include "node/ledger-writer.h"
#include "node/node-policy.h"
#include "node/node.h"
#include "node/outside.h"
#include "node/phase-watch.h"
#include "node/refusals.h"
#include "node/rights.h"
#include "node/scheduler.h"
#include "node/viewer.h"

enum {
    NODE_TICK_MS = 1000,
    NODE_TICK_AT_MS =
        450, /* of each second: by its end the samplers' rounds have woken */
    NODE_TICK_SLACK_MS = 500, /* the loop (board/sampler.c), which the tick joins */
};

/* Detects that a process begins to use a board without a job. */
struct node_rest {
    double power_w;   /* at the last tick without a job; 0 unknown */
    bool busy;        /* the driver reported utilization then */
    uint64_t seen_ns; /* the last sample passed to caps */
};

enum { NODE_ENDED_MAX = 64, NODE_ENDED_NAME = sizeof ROSTER_SLURM + 10 };

struct node {
    struct loop *loop;
    struct node_opts opts;
    struct node_config config;
    char source[GPU_BOARDS_TEXT]; /* the boards' source */
    char hostname[CONFIG_WORD];

    /* Parts that live as long as the node. */
    struct ledger_writer *writer;
    struct history *history;
    struct loop_worker *saver; /* writes small files */
    struct released_boards *released;
    struct processors *processors; /* NULL: not measured */
    struct claim_watches *watches;
    struct refusals *refusals;
    struct outside *outside; /* NULL: no policy yet, no signal was set or asked for */
    struct viewer *viewer;
    struct node_policy *policy;    /* NULL: a private node */
    struct accounting *accounting; /* pue: of the last report */

    /* Parts that depend on the boards: opened and closed together. */
    struct boards *boards;
    struct window_worker *window_worker;
    struct sampler *sampler[BOARDS_MAX];
    struct node_rest rest[BOARDS_MAX];
    size_t n;          /* samplers */
    uint64_t measured; /* see node_measure() */
    struct caps *caps;
    struct budget *budget;
    struct actuator_link *link;
    struct roster *roster;
    struct attribution *attribution;
    struct attribution_board before[BOARDS_MAX];
    struct client_windows *windows;
    struct job_records *records;
    struct phase_watch *phases; /* of jobs */
    struct searches *searches;
    struct scheduler *scheduler;
    struct loop_timer *tick;
    bool open; /* all of these exist */
    /* Slurm's jobs whose end was told while they did not. */
    char ended[NODE_ENDED_MAX][NODE_ENDED_NAME];
    size_t n_ended;

    /* Reopening the boards. */
    struct loop_timer *reopen;
    size_t silent;    /* boards that did not answer when they were opened */
    unsigned reopens; /* reopenings in a row because of silent boards */
    uw_error boards_error;
    uint64_t marked_ns; /* last check of the driver's mark */

    char actuator_text[200]; /* why it is not connected; "" connected, or unknown */
    bool actuator_over;      /* of a private node: it has failed or ended */
    caps_done_fn needed;     /* of node_need_actuator(); NULL: nobody waits */
    void *needed_user;
    struct caps_budget_log budget_log;
    enum claim_end how; /* reason of current withdrawals, for the ledger */

    bool ready, ending, leave_caps;
    uint64_t began_ns, ticked_ns;
    node_listen_fn listen;
    void *listen_user;
    int (*on_end)(struct node *node, void *user);
    void *end_user;
    unsigned end_waits;
    struct loop_timer *end_timer;
    uint64_t config_loads, config_failures;
    char config_error[200]; /* why the last reload was refused; "" */
    struct node_view view;
};

/* ---- node.c ---- */

void node_tell(struct node *node, enum node_event event, const void *what);
const struct gpu_info *node_info(const struct node *node, size_t board);
/* node_opts.next_job, for the roster. */
uint64_t node_next_job(void *user);
/* Opens the boards; the node reopens them itself later. */
int node_boards_begin(struct node *node, uw_error *err);

/* ---- requests.c ---- */

/* Withdraws claims on the board whose user has lost the right: its new user must not find
 * the former user's caps.
 */
void node_check_rights(struct node *node, size_t board);
int node_scheduler_start(struct node *node, uw_error *err);
/* Ends the jobs whose end was told while no board was open. */
void node_scheduler_opened(struct node *node);

/* ---- parts.c ---- */

/* Creates the parts that live as long as the node, then opens processors and boards. */
int node_parts_new(struct node *node, uw_error *err);
void node_parts_free(struct node *node);
int node_caps_start(struct node *node, uint64_t first_claim, uw_error *err);
void node_caps_configure(struct node *node);
void node_caps_tick(struct node *node);
int node_jobs_start(struct node *node, uint64_t first_job, uw_error *err);
void node_jobs_stop(struct node *node);
int node_take_over(struct node *node, uw_error *err);
int node_actuator_start(struct node *node, uw_error *err);
/* Reads the policy's file.  *ret NULL: there is none. */
int node_policy_file(struct node *node, const char *path, struct policy_file **ret,
                     uw_error *err);
/* Makes the store of signals from outside where there is none yet. */
int node_outside(struct node *node, uw_error *err);
/* Puts a policy in force. */
int node_policy_take(struct node *node, struct policy_file *file, const char *path,
                     uw_error *err);
/* Whether a search needs windows of this board. */
bool node_is_searched(const struct node *node, size_t board);
/* Begins a job's search or cap by name.  state: saved by an earlier run, or NULL. */
int node_search_begin(struct node *node, const struct job_entry *job,
                      struct job_record *rec, const char *state, uw_error *err);
/* Gives the job's search the goal of its record, a policy's before the job's own, and its
 * class.
 */
int node_give_goal(struct node *node, const struct job_entry *job, struct job_record *rec,
                   uw_error *err);
/* Of a job that begins, or its search: see nested.h. */
void node_nested_begin(struct node *node, const struct job_entry *job,
                       struct job_record *rec);
void node_nested_tick(struct node *node);
void node_ledger_job(struct node *node, const struct job_entry *job);
/* Write rows of all jobs, of all claims. */
void node_restate_jobs(struct node *node);
void node_restate_claims(struct node *node);
/* Withdraws a claim on all boards. */
void node_withdraw_claim(struct node *node, uint64_t id, enum claim_end how);

#endif
