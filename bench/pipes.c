#include "pipes.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/units.h"
#include "pchip.h"

enum {
    FIT_STEPS = 60,
    JOBS_MAX = 1000,
    COLUMNS = 11,
    STAGES_MAX = PIPE_RANKS_MAX,
    ROUNDS = 8,
    MICROBATCHES_MAX = 4096
};
enum column {
    JOB,
    RANK,
    STAGE,
    MICROBATCHES,
    LIMIT,
    TIME,
    FORWARD,
    BACKWARD,
    BUSY,
    WAIT,
    BONUS
};
#define FIT_STEP 0.0025 /* of a forward and a backward pass */
#define LEAST_SLOW 0.005
static const char header[] = "job,rank,stage,microbatches,limit_w,time_s,forward_s,"
                             "backward_s,busy_w,wait_w,bonus\n";
static const char local_header[] = "job,time_s,energy_j,limits_w\n";

/* ---- reading ---- */

static struct pipe_job *job_named(struct pipe_jobs *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->items[i].name, name) == 0)
            return &p->items[i];
    return NULL;
}

static int split(char *line, char *field[], size_t n, uw_error *err)
{
    char *rest = line;

    line[strcspn(line, "\n")] = '\0';
    for (size_t i = 0; i < n; i++)
        if (!(field[i] = strsep(&rest, ",")))
            return fail(err, -EINVAL, "%zu fields, not %zu", i, n);
    return rest ? fail(err, -EINVAL, "more than %zu fields", n) : 0;
}

static int add_job(struct pipe_jobs *p, const char *name, struct pipe_job **ret,
                   uw_error *err)
{
    if (strlen(name) >= sizeof p->items->name)
        return fail(err, -E2BIG, "the name '%s' is too long", name);
    int r = array_grow(&p->items, &p->cap, p->n, JOBS_MAX);
    if (r < 0)
        return fail(err, r, "more than %d jobs, or no memory", JOBS_MAX);
    *ret = &p->items[p->n++];
    **ret = (struct pipe_job){0};
    (void)snprintf((*ret)->name, sizeof(*ret)->name, "%s", name);
    return 0;
}

/* The rows of a job are sorted by limit, ascending, and then by rank. */
static int add_row(struct pipe_jobs *p, char *field[], uw_error *err)
{
    double v[COLUMNS];
    struct pipe_job *j = job_named(p, field[JOB]);

    int r = j ? 0 : add_job(p, field[JOB], &j, err);
    for (size_t i = RANK; r >= 0 && i < COLUMNS; i++) {
        r = parse_double(field[i], &v[i], err);
        if (r >= 0 && (v[i] < 0 || (i >= MICROBATCHES && i < BONUS && !(v[i] > 0))))
            r = fail(err, -ERANGE, "%s is not positive", field[i]);
    }
    if (r < 0)
        return r;
    if (j->n_limits == 0 || j->limit_w[j->n_limits - 1] != v[LIMIT]) {
        if (j->n_limits == PIPE_LIMITS_MAX ||
            (j->n_limits > 0 && v[LIMIT] < j->limit_w[j->n_limits - 1]))
            return fail(err, -EINVAL, "limit %g W: out of order, or more than %d",
                        v[LIMIT], PIPE_LIMITS_MAX);
        j->limit_w[j->n_limits++] = v[LIMIT];
    }
    size_t l = j->n_limits - 1, k = (size_t)v[RANK];
    if (k >= PIPE_RANKS_MAX || v[STAGE] >= STAGES_MAX ||
        v[MICROBATCHES] > MICROBATCHES_MAX)
        return fail(err, -ERANGE, "rank, stage or microbatches are too many");
    if (k >= j->n_ranks)
        j->n_ranks = k + 1;
    struct pipe_rank *rank = &j->rank[k];
    rank->stage = (unsigned)v[STAGE];
    if (rank->stage >= j->stages)
        j->stages = rank->stage + 1;
    j->microbatches = (unsigned)v[MICROBATCHES];
    j->time_s[l] = v[TIME];
    j->wait_w = v[WAIT];
    j->bonus[l] = v[BONUS];
    rank->log_forward[l] = log(v[FORWARD]);
    rank->log_backward[l] = log(v[BACKWARD]);
    rank->busy_w[l] = v[BUSY];
    rank->waits[l] = fmax(0, 1 - v[MICROBATCHES] * (v[FORWARD] + v[BACKWARD]) / v[TIME]);
    return 0;
}

/* Sets the transfer time, and the rest of an iteration's time at the highest limit. */
static void set_transfer(struct pipe_job *j, double transfer_s)
{
    double cap_w[PIPE_RANKS_MAX], energy_j[PIPE_RANKS_MAX];

    for (size_t k = 0; k < j->n_ranks; k++)
        cap_w[k] = j->limit_w[j->n_limits - 1];
    j->transfer_s = transfer_s;
    j->extra_s = 0;
    j->extra_s = j->time_s[j->n_limits - 1] - pipe_iteration(j, cap_w, energy_j);
}

static int finish(struct pipe_job *j, uw_error *err)
{
    size_t n = j->n_limits;

    if (n < 2 || j->n_ranks < 2)
        return fail(err, -EINVAL, "%s: %zu limits of %zu ranks are too few", j->name, n,
                    j->n_ranks);
    for (size_t k = 0; k < j->n_ranks; k++) {
        struct pipe_rank *r = &j->rank[k];
        pchip_slopes(j->limit_w, r->log_forward, n, r->slope_f);
        pchip_slopes(j->limit_w, r->log_backward, n, r->slope_b);
        pchip_slopes(j->limit_w, r->busy_w, n, r->slope_w);
        pchip_slopes(j->limit_w, r->waits, n, r->slope_u);
    }
    pchip_slopes(j->limit_w, j->bonus, n, j->slope_bonus);
    set_transfer(j, 0);
    return 0;
}

static int read_lines(const char *path, const char *head, size_t columns,
                      int (*row)(void *user, char *field[], uw_error *err), void *user,
                      uw_error *err)
{
    auto_(mem_free) char *line = NULL;
    char *field[COLUMNS] = {0};
    size_t size = 0, no = 0;
    int r = 0;
    FILE *f = fopen(path, "re");

    if (!f)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    while (r >= 0 && getline(&line, &size, f) > 0) {
        if (++no == 1)
            r = strcmp(line, head) == 0 ? 0
                                        : fail(err, -EINVAL, "not the header %s", head);
        else
            r = split(line, field, columns, err);
        if (r >= 0 && no > 1)
            r = row(user, field, err);
    }
    if (r < 0)
        (void)fail_in(err, r, "%s:%zu", path, no);
    (void)fclose(f);
    return r;
}

static int on_row(void *user, char *field[], uw_error *err)
{
    return add_row(user, field, err);
}

int pipes_read(const char *path, struct pipe_jobs *ret, uw_error *err)
{
    struct pipe_jobs p = {0};

    int r = read_lines(path, header, COLUMNS, on_row, &p, err);
    for (size_t i = 0; r >= 0 && i < p.n; i++)
        r = finish(&p.items[i], err);
    if (r < 0)
        pipes_fini(&p);
    else
        *ret = p;
    return r;
}

void pipes_fini(struct pipe_jobs *p)
{
    free(p->items);
    *p = (struct pipe_jobs){0};
}

/* ---- the schedule ---- */

struct passes {
    double forward_s, backward_s;
};

/* Whether the k-th pass of a stage is forward: 1F1B, with as many initial forward passes
 * as there are later stages.
 */
static bool is_forward(const struct pipe_job *j, unsigned stage, unsigned k,
                       unsigned *ret_microbatch)
{
    unsigned m = j->microbatches, warm = j->stages - 1 - stage;

    if (warm > m)
        warm = m;
    if (k < warm) {
        *ret_microbatch = k;
        return true;
    }
    if (k >= 2 * m - warm) {
        *ret_microbatch = k - m;
        return false;
    }
    *ret_microbatch = (k - warm) / 2 + ((k - warm) % 2 == 0 ? warm : 0);
    return (k - warm) % 2 == 0;
}

/* End of each pass; negative: not yet done. */
struct pass_times {
    double forward[STAGES_MAX][MICROBATCHES_MAX], backward[STAGES_MAX][MICROBATCHES_MAX];
};

/* The earliest start of stage s on microbatch i; negative: not yet known. */
static double ready_s(const struct pipe_job *j, const struct pass_times *t, unsigned s,
                      unsigned i, bool forward)
{
    double before = 0;

    if (forward && s > 0)
        before = t->forward[s - 1][i];
    else if (!forward && s + 1 < j->stages)
        before = t->backward[s + 1][i];
    return before > 0 ? before + j->transfer_s : before;
}

/* Runs all passes that stage s can run now; returns their number. */
static unsigned advance(const struct pipe_job *j, const struct passes *own, unsigned s,
                        struct pass_times *t, unsigned *next, double *at)
{
    unsigned first = *next, i;

    for (; *next < 2 * j->microbatches; ++*next) {
        bool forward = is_forward(j, s, *next, &i);
        double ready = ready_s(j, t, s, i, forward);
        if (ready < 0)
            break;
        *at = fmax(*at, ready) + (forward ? own->forward_s : own->backward_s);
        *(forward ? &t->forward[s][i] : &t->backward[s][i]) = *at;
    }
    return *next - first;
}

static double schedule(const struct pipe_job *j, const struct passes *stage)
{
    static struct pass_times t;
    double at[STAGES_MAX] = {0}, end = 0;
    unsigned next[STAGES_MAX] = {0};

    for (unsigned s = 0; s < j->stages; s++)
        for (unsigned i = 0; i < j->microbatches; i++)
            t.forward[s][i] = t.backward[s][i] = -1;
    for (unsigned moved = 1; moved > 0;) {
        moved = 0;
        for (unsigned s = 0; s < j->stages; s++)
            moved += advance(j, &stage[s], s, &t, &next[s], &at[s]);
    }
    for (unsigned s = 0; s < j->stages; s++)
        end = fmax(end, at[s]);
    return end;
}

/* A rank at this limit that waits for this share of its time: its passes, and its power
 * during work.
 */
static struct passes passes_at(const struct pipe_job *j, const struct pipe_rank *r,
                               double cap_w, double waits, double *ret_busy_w)
{
    size_t n = j->n_limits;
    double then = pchip_value(j->limit_w, r->waits, r->slope_u, n, cap_w);
    double bonus = pchip_value(j->limit_w, j->bonus, j->slope_bonus, n, cap_w);
    double lost_w = bonus * cap_w * (then - waits), at_w = cap_w - lost_w;

    *ret_busy_w = pchip_value(j->limit_w, r->busy_w, r->slope_w, n, cap_w) - lost_w;
    return (struct passes){
        exp(pchip_value(j->limit_w, r->log_forward, r->slope_f, n, at_w)),
        exp(pchip_value(j->limit_w, r->log_backward, r->slope_b, n, at_w)),
    };
}

double pipe_iteration(const struct pipe_job *job, const double *cap_w,
                      double *ret_energy_j)
{
    double waits[PIPE_RANKS_MAX], busy_w[PIPE_RANKS_MAX], time_s = 0;
    struct passes own[PIPE_RANKS_MAX];
    double m = job->microbatches;

    for (size_t k = 0; k < job->n_ranks; k++)
        waits[k] = pchip_value(job->limit_w, job->rank[k].waits, job->rank[k].slope_u,
                               job->n_limits, cap_w[k]);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct passes stage[STAGES_MAX] = {{0, 0}};
        for (size_t k = 0; k < job->n_ranks; k++) {
            struct passes *s = &stage[job->rank[k].stage];
            own[k] = passes_at(job, &job->rank[k], cap_w[k], waits[k], &busy_w[k]);
            s->forward_s = fmax(s->forward_s, own[k].forward_s);
            s->backward_s = fmax(s->backward_s, own[k].backward_s);
        }
        time_s = schedule(job, stage) + job->extra_s;
        for (size_t k = 0; k < job->n_ranks; k++) {
            double busy = m * (own[k].forward_s + own[k].backward_s) / time_s;
            waits[k] = (waits[k] + fmax(0, 1 - busy)) / 2;
        }
    }
    for (size_t k = 0; k < job->n_ranks; k++) {
        double busy_s = fmin(time_s, m * (own[k].forward_s + own[k].backward_s));
        ret_energy_j[k] = busy_w[k] * busy_s + job->wait_w * (time_s - busy_s);
    }
    return time_s;
}

/* ---- measured runs with other limits ---- */

/* False: the run was split into other stages, as a rank of the profile would have worked
 * for longer than the whole iteration took.
 */
static bool fits(const struct pipe_job *j, const double *cap_w, double time_s)
{
    for (size_t k = 0; k < j->n_ranks; k++) {
        const struct pipe_rank *r = &j->rank[k];
        size_t n = j->n_limits;
        double f = exp(pchip_value(j->limit_w, r->log_forward, r->slope_f, n, cap_w[k]));
        double b = exp(pchip_value(j->limit_w, r->log_backward, r->slope_b, n, cap_w[k]));
        if (j->microbatches * (f + b) > time_s)
            return false;
    }
    return true;
}

static int on_local(void *user, char *field[], uw_error *err)
{
    struct pipe_jobs *p = user;
    struct pipe_run run = {0};
    double by_stage[STAGES_MAX] = {0};
    char *rest = field[3], *word;
    size_t n = 0;

    struct pipe_job *j = job_named(p, field[0]);
    if (!j)
        return 0;
    int r = parse_double(field[1], &run.time_s, err);
    if (r >= 0)
        r = parse_double(field[2], &run.energy_j, err);
    while (r >= 0 && (word = strsep(&rest, " ")) && n < STAGES_MAX)
        r = parse_double(word, &by_stage[n++], err);
    if (r >= 0 && n != j->stages)
        r = fail(err, -EINVAL, "%zu limits for %u stages", n, j->stages);
    if (r >= 0 && j->n_runs == PIPE_RUNS_MAX)
        r = fail(err, -E2BIG, "more than %d runs of one job", PIPE_RUNS_MAX);
    if (r < 0)
        return r;
    for (size_t k = 0; k < j->n_ranks; k++)
        run.cap_w[k] = by_stage[j->rank[k].stage];
    if (fits(j, run.cap_w, run.time_s))
        j->run[j->n_runs++] = run;
    return 0;
}

/* Error of the slowdown against the reference, relative to the slowdown measured. */
static double misfit(const struct pipe_job *j)
{
    double energy_j[PIPE_RANKS_MAX], sum = 0;

    for (size_t i = 0; i < j->n_runs; i++) {
        const struct pipe_run *run = &j->run[i];
        double off = log(pipe_iteration(j, run->cap_w, energy_j) / run->time_s);
        sum +=
            fabs(off) / fmax(LEAST_SLOW, log(run->time_s / j->time_s[j->n_limits - 1]));
    }
    return sum;
}

static double pass_s(const struct pipe_job *j)
{
    size_t top = j->n_limits - 1;
    return exp(j->rank[0].log_forward[top]) + exp(j->rank[0].log_backward[top]);
}

static bool same_board(const struct pipe_job *a, const struct pipe_job *b)
{
    return strncmp(a->name, b->name, strcspn(a->name, "/") + 1) == 0;
}

/* Sets the transfer time of all jobs on the boards of this one to a share of a pass. */
static bool set_board(struct pipe_jobs *p, const struct pipe_job *of, double share,
                      double *ret_misfit)
{
    bool possible = true;

    *ret_misfit = 0;
    for (size_t i = 0; i < p->n; i++) {
        struct pipe_job *j = &p->items[i];
        if (!same_board(of, j))
            continue;
        set_transfer(j, share * pass_s(j));
        possible &= j->extra_s >= 0;
        *ret_misfit += misfit(j);
    }
    return possible;
}

static void fit_board(struct pipe_jobs *p, const struct pipe_job *of)
{
    double best = 0, least = INFINITY, now;

    for (unsigned k = 0; k <= FIT_STEPS && set_board(p, of, k * FIT_STEP, &now); k++)
        if (now < least) {
            least = now;
            best = k * FIT_STEP;
        }
    (void)set_board(p, of, best, &now);
}

int pipes_fit(const char *path, struct pipe_jobs *p, struct pipe_fit *ret, uw_error *err)
{
    struct pipe_fit sum = {0};
    double energy_j[PIPE_RANKS_MAX];

    int r = read_lines(path, local_header, 4, on_local, p, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < p->n; i++)
        fit_board(p, &p->items[i]);
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->items[i].n_runs; k++) {
            const struct pipe_run *run = &p->items[i].run[k];
            double joules = 0;
            double t =
                pipe_iteration(&p->items[i], run->cap_w, energy_j) / run->time_s - 1;
            for (size_t q = 0; q < p->items[i].n_ranks; q++)
                joules += energy_j[q];
            double e = joules / run->energy_j - 1;
            sum.runs++;
            sum.time_bias += t;
            sum.time_mean += fabs(t);
            sum.energy_mean += fabs(e);
            sum.time_worst = fmax(sum.time_worst, fabs(t));
            sum.energy_worst = fmax(sum.energy_worst, fabs(e));
        }
    double n = fmax(1, (double)sum.runs);
    sum.time_bias /= n;
    sum.time_mean /= n;
    sum.energy_mean /= n;
    *ret = sum;
    return 0;
}
