/* Renders the node's view in Prometheus' text format 0.0.4; docs/metrics.md lists names,
 * units and labels.  Unknown values are left out, never 0.
 *
 * Pure: a view in, a text out.  Buffers are kept between scrapes: a scrape allocates
 * only where one must grow.
 */
#ifndef API_METRICS_METRICS_H
#define API_METRICS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "node/view.h"
#include "underwatt/error.h"

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct metrics;

/* Statistics of the HTTP server. */
struct metrics_http {
    uint64_t requests, refused;
    unsigned connections, followers;
};

/* The reader's rights: see docs/man/underwattd-api.5.scd. */
struct metrics_opts {
    bool per_job;      /* write series of jobs */
    unsigned max_jobs; /* jobs with series of their own; job_id="other" sums the rest */
    bool all;          /* show the names of all jobs, else of uid's */
    uid_t uid;
    uint64_t only_job;               /* of uid's, only this job; 0: all */
    const struct metrics_http *http; /* NULL: left out */
};
#define METRICS_DEFAULT ((struct metrics_opts){.per_job = true, .max_jobs = 64})

int metrics_new(struct metrics **ret, uw_error *err);
void metrics_free(struct metrics *m);
DEFINE_AUTO(struct metrics *, metrics_free);

/* *ret is borrowed until the next call.  -ENOMEM, -E2BIG (over 16 MiB). */
int metrics_render(struct metrics *m, const struct node_view *view,
                   const struct metrics_opts *opts, const char **ret, size_t *ret_len,
                   uw_error *err);

/* The table: name, type and help of each family; NULL when i is out of range. */
const char *metrics_family(size_t i, const char **ret_type, const char **ret_help);

#endif
