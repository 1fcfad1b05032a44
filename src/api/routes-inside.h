/* Shared by the files of routes. */
#ifndef API_ROUTES_INSIDE_H
#define API_ROUTES_INSIDE_H

#include "api/events.h"
#include "api/metrics/metrics.h"
#include "api/routes.h"
#include "io/json.h"

struct routes {
    struct routes_opts opts;
    struct metrics *metrics;
    struct http_text *scrape; /* the last text of /metrics, whose memory serves again */
    struct events *events;
    const struct http_server *server; /* or NULL */
};

/* One request whose client is authenticated. */
struct ask {
    struct routes *r;
    struct http_exchange *x;
    const struct node_who *who;
    bool local;
    const char *part;              /* the value of {…} in the path; "" none */
    const struct json_value *body; /* or NULL */
};
typedef void (*route_fn)(struct ask *a);

static inline struct node *ask_node(const struct ask *a)
{
    return a->r->opts.node;
}

/* The board or id in the path.  false: x has been answered with an error. */
bool ask_board(struct ask *a, size_t *ret);
bool ask_id(struct ask *a, const char *what, uint64_t *ret);
/* `from` of the query; 0: left out.  false: as above. */
bool ask_from(struct ask *a, uint64_t *ret);
/* Replies 201 with the id and its path; more: further members as JSON, ", \"a\": 1". */
void ask_made(struct ask *a, const char *under, uint64_t id, const char *more);

/* Whether the path names a job, "slurm:4711", in place of its id; whether such a name is
 * sound: false as above.
 */
bool ask_is_name(const struct ask *a);
bool ask_name(struct ask *a);

/* routes-read.c */
void route_metrics(struct ask *a);
void route_openapi(struct ask *a);
void route_node(struct ask *a);
void route_gpus(struct ask *a);
void route_gpu(struct ask *a);
void route_explain(struct ask *a);
void route_claims(struct ask *a);
void route_jobs(struct ask *a);
void route_job(struct ask *a);
void route_signals(struct ask *a);
void route_window_samples(struct ask *a);
void route_history(struct ask *a);
void route_events(struct ask *a);
void route_policy(struct ask *a);
/* routes-write.c */
void route_claim(struct ask *a);
void route_withdraw(struct ask *a);
void route_job_begin(struct ask *a);
void route_job_end(struct ask *a);
void route_job_put(struct ask *a);
void route_job_patch(struct ask *a);
void route_job_goal(struct ask *a);
void route_release(struct ask *a);
void route_take_back(struct ask *a);
void route_report(struct ask *a);
void route_signal_set(struct ask *a);
void route_signal_unset(struct ask *a);
void route_policy_try(struct ask *a);
void route_reload(struct ask *a);
void route_window_begin(struct ask *a);
void route_window_batch(struct ask *a);
void route_window_end(struct ask *a);
void route_window_drop(struct ask *a);

#endif
