/* Recorded pipeline jobs (tools/zeus-pipes) as worlds for bench/slack: a 1F1B schedule of
 * the ranks' forward and backward passes at each rank's own limit.  Between recorded
 * limits log time and power are monotone cubics.  Ranks that hold the same stage (tensor
 * and data parallel) wait for each other at each pass.  A rank that waits less than it
 * did when it was recorded at this limit is slower than then, as a limit holds the mean
 * power of a while (column bonus).  A transfer to the next stage takes the share of a
 * pass that fits the measured runs in which stages had different limits best, one number
 * a board; what an iteration took beyond all that at the highest limit is a constant of
 * the job.
 */
#ifndef BENCH_PIPES_H
#define BENCH_PIPES_H

#include <stddef.h>

#include "base/auto.h"
#include "underwatt/error.h"

enum { PIPE_RANKS_MAX = 64, PIPE_LIMITS_MAX = 32, PIPE_RUNS_MAX = 16 };

struct pipe_rank {
    unsigned stage;
    double log_forward[PIPE_LIMITS_MAX], log_backward[PIPE_LIMITS_MAX],
        busy_w[PIPE_LIMITS_MAX], waits[PIPE_LIMITS_MAX];
    double slope_f[PIPE_LIMITS_MAX], slope_b[PIPE_LIMITS_MAX], slope_w[PIPE_LIMITS_MAX],
        slope_u[PIPE_LIMITS_MAX];
};

struct pipe_run { /* with another limit for each stage */
    double time_s, energy_j, cap_w[PIPE_RANKS_MAX];
};

struct pipe_job {
    char name[64];
    size_t n_ranks, n_limits;
    unsigned stages, microbatches;
    double limit_w[PIPE_LIMITS_MAX]; /* ascending */
    double time_s[PIPE_LIMITS_MAX];  /* of an iteration, recorded */
    double bonus[PIPE_LIMITS_MAX], slope_bonus[PIPE_LIMITS_MAX];
    double wait_w, extra_s;
    double transfer_s; /* from a pass to its neighbour stage's */
    struct pipe_rank rank[PIPE_RANKS_MAX];
    struct pipe_run run[PIPE_RUNS_MAX];
    size_t n_runs;
};

struct pipe_jobs {
    struct pipe_job *items;
    size_t n, cap;
};

/* "FILE:LINE: …" on bad input. */
int pipes_read(const char *path, struct pipe_jobs *ret, uw_error *err);
void pipes_fini(struct pipe_jobs *p);
static inline void pipes_fini_p(struct pipe_jobs *p)
{
    pipes_fini(p);
}

/* One iteration under these limits: its time, and each rank's energy. */
double pipe_iteration(const struct pipe_job *job, const double *cap_w,
                      double *ret_energy_j);

/* Takes the measured runs in which stages had other limits, and fits transfers to them.
 * ret: how far pipe_iteration() is from these runs then, relative.
 */
struct pipe_fit {
    size_t runs;
    double time_mean, time_bias, time_worst, energy_mean, energy_worst;
};
int pipes_fit(const char *path, struct pipe_jobs *p, struct pipe_fit *ret, uw_error *err);

#endif
