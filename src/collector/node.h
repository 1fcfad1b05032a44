/* What a node's daemon is to be told, and what it was told: a chain of requests of what
 * differs, or is due again.  Pure; times are the loop's.
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
    NODE_JOBS = 512, /* of one node; more are not told */
    NODE_SIGNALS = 3 * FIGURES_MAX,
    NODE_PATH = 128,
    NODE_BODY = 4096,
    NODE_ANSWER = 1 << 20,
    NODE_LOOK_S = 20, /* a look at Slurm, all its calls */
    NODE_SEND_S = 5,  /* all requests to one node in one round */
};

/* What one job's request said last. */
struct node_job {
    uint64_t id, hash;
    uint64_t due_ns;   /* to be said again, if it is the same */
    size_t at;         /* in jobs, this round */
    unsigned refusals; /* with 5xx, in a row: said after all others, with a backoff */
};
/* A signal that the daemon has. */
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
    uint64_t names_due_ns; /* when to ask which signals it has; 0: now */
    unsigned failures;     /* chains without an answer, in a row */
    unsigned refusals;     /* chains that began with 429 or 5xx, in a row */
    uint64_t again_ns;     /* after both: not before */
    uint64_t tried_ns;     /* the end of its last chain */
    bool busy;             /* a chain is under way */
    bool denied;           /* its last chain but for the names ended with 401 or 403 */
    enum node_state { NODE_ANSWERS, NODE_BUSY, NODE_SILENT } state;
};
void node_fini(struct node *node);

/* The jobs that run on the node (indices into jobs->job), in place of those before; what
 * was said of one that stays is kept.  -ENOMEM: nothing changed.
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
/* What is to be said now; nothing: n is 0.  Where it is not known which signals the node
 * has, that alone is asked.  -ENOMEM.
 */
int node_plan(const struct node *node, const struct node_now *now, struct node_asks *ret);
/* The answer to one of them: NODE_ASK_NAMES takes the body.  The node may have got other
 * jobs and signals since the plan; an answer to what it has no more is dropped.
 */
void node_answered(struct node *node, const struct node_now *now,
                   const struct node_ask *ask, unsigned status, const char *body);
/* How a chain ended. */
struct node_end {
    int r;            /* < 0: nobody answered, or the node refuses us */
    unsigned status;  /* 429, 5xx: of its last answer, which ended it; or 0 */
    unsigned retry_s; /* Retry-After of that; 0: none */
    bool some;        /* others of its requests were answered with 2xx */
    bool names;       /* the chain asked for the node's signals and told it nothing */
};
/* What was answered with 2xx stays told after 429, 5xx and a time that was up.  A node
 * that has refused what it was told, and names its signals, has not answered yet.  Where
 * nobody answers another daemon may be next, which was told nothing.  Returns whether
 * node->state is another one now.
 */
bool node_over(struct node *node, const struct node_now *now, const struct node_end *end);

/* The body of PATCH /v1/jobs/slurm:ID; free() it.  NULL: out of memory. */
char *node_job_body(const struct collector_config *config, const struct slurm_job *job,
                    uint64_t for_ns);

#endif
