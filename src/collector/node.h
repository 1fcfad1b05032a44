/* The state of one node: what was sent to its daemon and what must be sent, as a chain of
 * requests for everything that differs or is due again.  Pure; times are the loop's.
 */
#ifndef COLLECTOR_NODE_H
#define COLLECTOR_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "collector/config.h"
#include "collector/figures.h"
#include "collector/jobs.h"
#include "underwatt/error.h"

enum {
    NODE_NAME = 64,
    NODE_JOBS = 512, /* jobs of one node; further jobs are not sent */
    NODE_SIGNALS = 3 * FIGURES_MAX,
    NODE_PATH = 128,
    NODE_BODY = 4096,
    NODE_ANSWER = 1 << 20,
    NODE_LOOK_S = 20, /* a look at Slurm, with all its calls */
    NODE_SEND_S = 5,  /* all requests to one node in one round */
};

/* The last request for one job. */
struct node_job {
    uint64_t id, hash;
    uint64_t due_ns; /* time at which an unchanged request is repeated */
    size_t at;       /* in jobs, this round */
    unsigned
        refusals; /* consecutive answers 5xx: sent after all others, with a backoff */
};
/* A signal of the daemon. */
struct node_signal_told {
    char word[FIGURES_WORD]; /* the partition's; "": of all */
    int what;                /* enum node_what */
    uint64_t value, due_ns;
    unsigned refusals; /* as above */
};
enum node_what { NODE_DEPTH, NODE_WAIT, NODE_GPUS, NODE_WHATS };

struct node {
    char name[NODE_NAME];
    struct node_job *job;
    size_t n_jobs, jobs_cap;
    struct node_signal_told *signal;
    size_t n_signals, signals_cap;
    uint64_t names_due_ns; /* when to query the names of its signals; 0: now */
    unsigned failures;     /* chains without an answer, in a row */
    unsigned refusals;     /* chains that began with 429 or 5xx, in a row */
    uint64_t again_ns;     /* after either: no chain before this time */
    uint64_t tried_ns;     /* the end of its last chain */
    bool busy;             /* a chain is under way */
    bool denied; /* its last chain, other than for the names, ended with 401 or 403 */
    enum node_state { NODE_ANSWERS, NODE_BUSY, NODE_SILENT } state;
};
void node_fini(struct node *node);

/* Sets the jobs that run on the node (indices into jobs->job); the state of jobs that
 * stay is kept.  -ENOMEM: nothing changed.
 */
int node_jobs(struct node *node, const struct jobs *jobs, const size_t *at, size_t n);

/* One request of the chain. */
struct node_ask {
    const char *method;
    char path[NODE_PATH];
    char *body; /* NULL: none */
    enum { NODE_ASK_NAMES, NODE_ASK_SIGNAL, NODE_ASK_JOB } of;
    uint64_t id; /* of the job, or … */
    int what;    /* … of the signal, with its word */
    char word[FIGURES_WORD];
    uint64_t hash;
};
struct node_asks {
    struct node_ask *ask;
    size_t n, cap;
};
void node_asks_fini(struct node_asks *asks);

struct node_now {
    const struct collector_config *config;
    const struct queues *queues;
    const struct jobs *jobs;
    uint64_t now_ns;
};
/* The requests to send now; none: n is 0.  If the names of the node's signals are
 * unknown, only these are queried.  -ENOMEM.
 */
int node_plan(const struct node *node, const struct node_now *now, struct node_asks *ret);
/* Processes the answer to a request: NODE_ASK_NAMES takes the body.  The node's jobs and
 * signals may have changed since the plan; answers for those that are gone are dropped.
 */
void node_answered(struct node *node, const struct node_now *now,
                   const struct node_ask *ask, unsigned status, const char *body);
/* The end of a chain. */
struct node_end {
    int r;            /* < 0: no answer, or the node refuses this client */
    unsigned status;  /* 429, 5xx: of its last answer, which ended it; or 0 */
    unsigned retry_s; /* Retry-After of that; 0: none */
    bool some;        /* other requests of the chain were answered with 2xx */
    bool names;       /* the chain only queried the names of the node's signals */
};
/* Processes the end of a chain.  Requests answered with 2xx count as sent even after 429,
 * 5xx or a timeout.  A node that has refused requests but answers the query of its names
 * counts as refusing.  After no answer, the next daemon may be a new one, to which
 * nothing was sent.  Returns whether node->state has changed.
 */
bool node_over(struct node *node, const struct node_now *now, const struct node_end *end);

/* The body of PATCH /v1/jobs/slurm:ID; free() it.  NULL: out of memory. */
char *node_job_body(const struct collector_config *config, const struct slurm_job *job,
                    uint64_t for_ns);

#endif
