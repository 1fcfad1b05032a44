/* Rendering of /metrics: shared by metrics.c, metrics-board.c and metrics-job.c. */
#ifndef API_METRICS_METRICS_INSIDE_H
#define API_METRICS_METRICS_INSIDE_H

#include "api/metrics/metrics-table.h"
#include "api/metrics/metrics.h"
#include "base/text.h"

/* A job beyond max_jobs, and its energy that job_id="other" already includes. */
struct metrics_other {
    uint64_t job;
    double energy_j;
};
enum { METRICS_BOARDS = 64 };

struct metrics {
    struct text out;
    struct text label;                   /* label sets of boards and jobs */
    size_t board_at[METRICS_BOARDS + 1]; /* start of board i's; the end of the last */
    size_t job_at[VIEW_JOBS_MAX + 2];    /* start of job i's, of "other", and the end */
    struct metrics_other other[VIEW_JOBS_MAX];
    size_t n_other;
    double other_j; /* a counter: never decreases */
};

struct metrics_slice {
    const char *at;
    size_t len;
};

struct metrics_render {
    struct metrics *m;
    const struct node_view *v;
    const struct metrics_opts *opts;
    size_t jobs; /* jobs with series of their own */
    enum metrics_id id;
    bool headed;
};

/* Begins a family; HELP and TYPE are written with its first series. */
void metrics_begin(struct metrics_render *r, enum metrics_id id);
/* Writes name{labels,key="value"} and a blank, without the value.  labels: no braces; key
 * may be NULL.
 */
void metrics_put(struct metrics_render *r, struct metrics_slice labels, const char *key,
                 const char *value);
/* Writes the whole line; leaves out a value that is not finite. */
void metrics_series(struct metrics_render *r, struct metrics_slice labels,
                    const char *key, const char *value, double v);
void metrics_series_u64(struct metrics_render *r, struct metrics_slice labels,
                        const char *key, const char *value, uint64_t v);

/* Writes the whole line of a board's info: its labels, and those that only the info has,
 * spelled as in dcgm-exporter.
 */
void metrics_info(struct metrics_render *r, const struct view_board *b,
                  struct metrics_slice l);

/* Writes key="value"; key may begin with a comma. */
void metrics_label(struct text *t, const char *key, const char *value);
void metrics_label_u64(struct text *t, const char *key, uint64_t value);
/* The labels key, hostname and, in a simulated world, simulated, in place of the label
 * sets of boards and jobs.  Empty: no memory.
 */
struct metrics_slice metrics_labels(struct metrics_render *r, const char *key,
                                    const char *value);
struct metrics_slice metrics_board(const struct metrics_render *r, size_t i);
struct metrics_slice metrics_job(const struct metrics_render *r, size_t i);

/* What energy is charged with: families id (emissions), and the three behind it. */
void metrics_put_charge(struct metrics_render *r, enum metrics_id first,
                        struct metrics_slice l, const struct charges_sum *sum);

void metrics_put_boards(struct metrics_render *r);
void metrics_put_jobs(struct metrics_render *r);
/* Overwrites the label sets. */
void metrics_put_waste(struct metrics_render *r);

#endif
