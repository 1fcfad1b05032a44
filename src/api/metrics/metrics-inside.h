/* How /metrics is written: what metrics.c, metrics-board.c and metrics-job.c share. */
#ifndef API_METRICS_METRICS_INSIDE_H
#define API_METRICS_METRICS_INSIDE_H

#include "api/metrics/metrics-table.h"
#include "api/metrics/metrics.h"
#include "base/text.h"

/* A job beyond the bound, and what of it is in job_id="other" already. */
struct metrics_other {
    uint64_t job;
    double energy_j;
};
enum { METRICS_BOARDS = 64 };

struct metrics {
    struct text out;
    struct text label;                   /* label sets of boards and jobs … */
    size_t board_at[METRICS_BOARDS + 1]; /* … board i's from here to the next's … */
    size_t job_at[VIEW_JOBS_MAX + 2];    /* … and so on; "other" behind the last */
    struct metrics_other other[VIEW_JOBS_MAX];
    size_t n_other;
    double other_j; /* never falls: it is a counter */
};

struct metrics_slice {
    const char *at;
    size_t len;
};

struct metrics_render {
    struct metrics *m;
    const struct node_view *v;
    const struct metrics_opts *opts;
    size_t jobs; /* with series of their own */
    enum metrics_id id;
    bool headed;
};

/* A family begins: HELP and TYPE come with its first series. */
void metrics_begin(struct metrics_render *r, enum metrics_id id);
/* name{labels,key="value"} and the blank: all but the value.  labels: no braces; key
 * may be NULL.
 */
void metrics_put(struct metrics_render *r, struct metrics_slice labels, const char *key,
                 const char *value);
/* The whole line; what is not finite is left out. */
void metrics_series(struct metrics_render *r, struct metrics_slice labels,
                    const char *key, const char *value, double v);
void metrics_series_u64(struct metrics_render *r, struct metrics_slice labels,
                        const char *key, const char *value, uint64_t v);

/* key="value"; key may begin with the comma. */
void metrics_label(struct text *t, const char *key, const char *value);
void metrics_label_u64(struct text *t, const char *key, uint64_t value);
struct metrics_slice metrics_board(const struct metrics_render *r, size_t i);
struct metrics_slice metrics_job(const struct metrics_render *r, size_t i);

void metrics_put_boards(struct metrics_render *r);
void metrics_put_jobs(struct metrics_render *r);

#endif
