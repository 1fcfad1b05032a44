/* The series of jobs (max_jobs jobs each have their own, one sum has the others), and of
 * their waste, by user and project.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/metrics/metrics-inside.h"
#include "base/names.h"
#include "base/units.h"
#include "node/wasters.h"

/* Adds the new energy of the jobs beyond max_jobs: their sum is a counter, so the energy
 * of an ended job must stay in it.
 */
static void keep_other(struct metrics *m, const struct node_view *v, size_t first)
{
    struct metrics_other now[VIEW_JOBS_MAX];
    size_t n = 0;

    for (size_t i = first; i < v->n_jobs && n < VIEW_JOBS_MAX; i++) {
        double before = 0;
        now[n] = (struct metrics_other){v->job[i].job->id, v->job[i].energy_j};
        for (size_t k = 0; k < m->n_other; k++)
            if (m->other[k].job == now[n].job)
                before = m->other[k].energy_j;
        if (now[n].energy_j > before)
            m->other_j += now[n].energy_j - before;
        n++;
    }
    memcpy(m->other, now, n * sizeof *now);
    m->n_other = n;
}

static void put_other(struct metrics_render *r)
{
    keep_other(r->m, r->v, r->jobs);
    if (r->m->other_j > 0 || r->m->n_other > 0)
        metrics_series(r, metrics_job(r, r->jobs), NULL, NULL, r->m->other_j);
}

/* NaN where the limit of one of its boards is unknown, as in `underwatt jobs`. */
static double cap_in_force(const struct node_view *v, const struct view_job *j)
{
    double most_w = NAN;

    for (size_t i = 0; i < v->n_boards && !j->job->ended_ns; i++) {
        const struct gpu_sample *last = &v->board[i].last;
        if (!(j->job->boards >> i & 1))
            continue;
        if (!(last->has & GPU_HAS_ENFORCED))
            return NAN;
        most_w = fmax(most_w, w_of_mw(last->enforced_mw)); /* fmax() ignores NaN */
    }
    return most_w;
}

static double job_value(const struct node_view *v, const struct view_job *j,
                        enum metrics_id id)
{
    const struct searches_view *s = &j->search;

    switch (id) {
    case METRICS_JOB_ENERGY:
        return j->energy_j;
    case METRICS_JOB_TIME:
        return j->time_s;
    case METRICS_JOB_STEPS:
        return j->steps > 0 ? (double)j->steps : NAN; /* a job may report no steps */
    case METRICS_JOB_PHASE:
        return j->phase.phase ? (double)j->phase.phase : NAN;
    case METRICS_JOB_CAP:
        return cap_in_force(v, j);
    case METRICS_JOB_BEST_CAP:
        return s->on && s->cap_mw > 0 ? w_of_mw(s->cap_mw) : NAN;
    case METRICS_JOB_SAVED:
        return s->saved.known ? s->saved.fraction : NAN;
    case METRICS_JOB_SAVED_LOWER:
        return s->saved.known ? s->saved.fraction - s->saved.half : NAN;
    case METRICS_JOB_SAVED_UPPER:
        return s->saved.known ? s->saved.fraction + s->saved.half : NAN;
    case METRICS_JOB_SLOWDOWN:
        return s->saved.known ? s->saved.slowdown : NAN;
    default:
        return NAN;
    }
}

void metrics_put_charge(struct metrics_render *r, enum metrics_id first,
                        struct metrics_slice l, const struct charges_sum *sum)
{
    static const char *const signals[LEDGER_CHARGES] = {"carbon", "carbon.marginal",
                                                        "price"};
    enum ledger_charge which = (enum ledger_charge)(r->id - first);

    if (which == LEDGER_CHARGES) {
        for (int i = 0; i < LEDGER_CHARGES; i++)
            if (sum->covered_uj[i] > 0)
                metrics_series(r, l, "signal", signals[i],
                               (double)sum->covered_uj[i] * 1e-6);
    } else if (sum->covered_uj[which] > 0) {
        bool cost = which == LEDGER_COST;
        metrics_series(r, l, cost ? "currency" : NULL, cost ? sum->currency : NULL,
                       (double)sum->amount[which] * (cost ? 1e-6 : 1e-3));
    }
}

static void put_job_charges(struct metrics_render *r)
{
    for (int id = METRICS_JOB_CO2E; id <= METRICS_JOB_CHARGED; id++) {
        metrics_begin(r, (enum metrics_id)id);
        for (size_t i = 0; i < r->jobs; i++)
            metrics_put_charge(r, METRICS_JOB_CO2E, metrics_job(r, i),
                               &r->v->job[i].charged);
    }
}

static void put_job_boards(struct metrics_render *r)
{
    char id[24];

    metrics_begin(r, METRICS_JOB_GPU);
    for (size_t i = 0; i < r->jobs; i++) {
        const struct job_entry *job = r->v->job[i].job;
        (void)snprintf(id, sizeof id, "%" PRIu64, job->id);
        for (size_t k = 0; k < r->v->n_boards; k++)
            if (job->boards >> k & 1)
                metrics_series_u64(r, metrics_board(r, k), "job_id", id, 1);
    }
}

void metrics_put_jobs(struct metrics_render *r)
{
    for (int id = METRICS_JOB_ENERGY; id <= METRICS_JOB_SLOWDOWN; id++) {
        metrics_begin(r, (enum metrics_id)id);
        for (size_t i = 0; i < r->jobs; i++)
            metrics_series(r, metrics_job(r, i), NULL, NULL,
                           job_value(r->v, &r->v->job[i], r->id));
        if (id == METRICS_JOB_ENERGY)
            put_other(r);
    }
    put_job_charges(r);
    put_job_boards(r);
}

/* ---- waste by user and by project ---- */

static void put_one(struct metrics_render *r, struct metrics_slice l,
                    const struct waster *w, int which)
{
    const double *v = which == 0 ? w->j : w->s;

    if (which < 2) {
        for (unsigned use = WASTE_ALLOCATED; use < WASTE_NOBODY; use++)
            metrics_series(r, l, "use", names_word(NAMES_USE, use), v[use]);
    } else if (w->cost_uj > 0 && which == 2) {
        metrics_series(r, l, "currency", wasters_currency(r->v->wasters),
                       (double)w->cost * 1e-6);
    } else if (w->cost_uj > 0) {
        metrics_series(r, l, NULL, NULL, (double)w->cost_uj * 1e-6);
    }
}

/* Four families from `first` on: energy, time, cost, and the energy with a known cost. */
static void put_of(struct metrics_render *r, enum wasters_of of, enum metrics_id first,
                   const char *key)
{
    const struct waster *w = NULL;

    for (int which = 0; which < 4; which++) {
        metrics_begin(r, (enum metrics_id)((int)first + which));
        for (size_t i = 0; (w = wasters_at(r->v->wasters, of, i)); i++) {
            struct metrics_slice l = metrics_labels(r, key, w->name);
            if (l.len > 0)
                put_one(r, l, w, which);
        }
    }
}

void metrics_put_waste(struct metrics_render *r)
{
    if (!r->v->wasters)
        return;
    put_of(r, WASTERS_USER, METRICS_USER_WASTE_ENERGY, "user");
    if (r->opts->all) /* like names of jobs */
        put_of(r, WASTERS_PROJECT, METRICS_PROJECT_WASTE_ENERGY, "project");
}
