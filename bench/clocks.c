/* What locked SM clocks save over power caps, at a bound on the time.
 *
 *     clocks [--data FOLDER] [--table] [--json FILE|-]
 *
 * Each look at most 1, 5 and 10 % slower than at the highest limit and clock:
 *
 *   jobs    measured: pipeline-parallel jobs under one limit for all GPUs, and the same
 *           jobs under frequency plans (a clock per instruction) of Perseus and EnvPipe
 *
 *   stages  measured time and energy of each stage's instructions at each locked clock,
 *           put together to an iteration (one forward, one backward, 1F1B) here; a cap is
 *           the highest clock whose mean power keeps it
 *
 *   plant   simulated boards with believable clocks (plant/vf.h), caps, locks and both
 *
 *   found   simulated: what the product's search for a cap and its choice of a lock
 *           (core/optimum: search.h, lock.h) find on the same boards within an hour, for
 *           other goals, too, and with errors of windows of several sizes
 *
 * FOLDER has zeus/power_sweep.csv and zeus/sosp24/; without it the plant alone.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "csvfile.h"
#include "found.h"
#include "stats.h"
#include "vfboards.h"
#include "virtual/vf.h"

enum { BOUNDS = 3, JOBS_MAX = 32, POINTS_MAX = 4096, STAGES_MAX = 16, PLANTS = 200 };

static const double bounds[BOUNDS] = {0.01, 0.05, 0.10};

struct point {
    double time_s, energy_j;
};

/* The largest share of ref's energy saved within each bound; 0: none. */
static void savings(const struct point *p, size_t n, struct point ref, double ret[BOUNDS])
{
    for (int b = 0; b < BOUNDS; b++) {
        double best = ref.energy_j;
        for (size_t i = 0; i < n; i++)
            if (p[i].time_s <= ref.time_s * (1 + bounds[b]) && p[i].energy_j < best)
                best = p[i].energy_j;
        ret[b] = 1 - best / ref.energy_j;
    }
}

static int number(const char *text, double *ret, uw_error *err)
{
    int r = parse_double(text, ret, err);

    return r == 0 && *ret <= 0 ? fail(err, -EINVAL, "'%s' is not above 0", text) : r;
}

/* ---- recorded jobs ---- */

struct job {
    char name[64];
    struct point limit[32], plan[128];
    double top_w;
    size_t n_limits, n_plans;
    struct point top, fastest; /* at the highest limit; plan 0 */
};

struct jobs {
    struct job at[JOBS_MAX];
    size_t n;
};

static struct job *job_named(struct jobs *jobs, const char *gpu, const char *model,
                             bool may_add)
{
    char name[64];

    (void)snprintf(name, sizeof name, "%.16s %.40s", gpu, model);
    for (size_t i = 0; i < jobs->n; i++)
        if (strcmp(jobs->at[i].name, name) == 0)
            return &jobs->at[i];
    if (!may_add || jobs->n == JOBS_MAX)
        return NULL;
    struct job *job = &jobs->at[jobs->n++];
    memcpy(job->name, name, sizeof name);
    return job;
}

static int on_limit(char *const *f, void *user, uw_error *err)
{
    struct point p = {0};
    double w = 0;

    if (strcmp(f[5], "sosp24") != 0)
        return 0;
    struct job *job = job_named(user, f[0], f[1], true);
    int r = number(f[2], &w, err);
    if (r == 0)
        r = number(f[3], &p.time_s, err);
    if (r == 0)
        r = number(f[4], &p.energy_j, err);
    if (r < 0 || !job || job->n_limits == n_elements(job->limit))
        return r < 0 ? r : fail(err, -E2BIG, "more jobs or limits than expected");
    if (w > job->top_w) {
        job->top_w = w;
        job->top = p;
    }
    job->limit[job->n_limits++] = p;
    return 0;
}

static int on_plan(char *const *f, void *user, uw_error *err)
{
    struct point p = {0};
    struct job *job = job_named(user, f[0], f[1], false);

    int r = number(f[4], &p.time_s, err);
    if (r == 0)
        r = number(f[5], &p.energy_j, err);
    if (r < 0 || !job)
        return r;
    if (job->n_plans == n_elements(job->plan))
        return fail(err, -E2BIG, "more plans than expected");
    if (strcmp(f[2], "perseus") == 0 && strcmp(f[3], "0") == 0)
        job->fastest = p;
    job->plan[job->n_plans++] = p;
    return 0;
}

/* Plan 0 of one job is already optimised (data/zeus/README.md), so all of its clocks are
 * compared with the highest limit.
 */
static void finish_jobs(struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++) {
        struct job *job = &jobs->at[i];
        if (strcmp(job->name, "A40 gpt3-6.7b") == 0 || job->fastest.time_s <= 0)
            job->fastest = job->top;
    }
}

static int read_jobs(const char *folder, struct jobs *ret, uw_error *err)
{
    static const char *const limits[] = {"gpu",    "model",    "power_limit_w",
                                         "time_s", "energy_j", "source"};
    static const char *const plans[] = {"gpu",  "model",       "method",
                                        "plan", "iter_time_s", "iter_energy_j"};
    char path[512];

    (void)snprintf(path, sizeof path, "%s/zeus/power_sweep.csv", folder);
    int r = csv_read(path, limits, n_elements(limits), on_limit, ret, err);
    (void)snprintf(path, sizeof path, "%s/zeus/sosp24/perseus_frequency_plans.csv",
                   folder);
    if (r == 0)
        r = csv_read(path, plans, n_elements(plans), on_plan, ret, err);
    finish_jobs(ret);
    return r;
}

/* ---- stages ---- */

/* One way to run a stage: a clock, or a cap. */
struct way {
    double forward_s, backward_s, energy_j; /* of a microbatch */
};

struct stage {
    struct {
        double mhz, s[2], j[2];
    } clock[256]; /* forward, backward */
    size_t n;
};

struct pipeline {
    struct stage stage[STAGES_MAX];
    size_t n;
};

enum { MICROBATCHES = 64 };
#define WAIT_SHARE 0.2 /* waiting power over that at the highest clock */

static int on_instruction(char *const *f, void *user, uw_error *err)
{
    struct pipeline *p = user;
    uint64_t at = 0;
    double mhz = 0, s = 0, j = 0;
    int kind = strcmp(f[1], "backward") == 0;

    int r = parse_u64(f[0], &at, err);
    if (r == 0 && at >= STAGES_MAX)
        r = fail(err, -ERANGE, "stage %s: %d at most", f[0], STAGES_MAX - 1);
    if (r == 0)
        r = number(f[2], &mhz, err);
    if (r == 0)
        r = number(f[3], &s, err);
    if (r == 0)
        r = number(f[4], &j, err);
    if (r < 0)
        return r;
    struct stage *stage = &p->stage[at];
    size_t k = 0;
    while (k < stage->n && fabs(stage->clock[k].mhz - mhz) > 0.5)
        k++;
    if (k == n_elements(stage->clock))
        return fail(err, -E2BIG, "more clocks than expected");
    stage->n = k == stage->n ? k + 1 : stage->n;
    stage->clock[k].mhz = mhz;
    stage->clock[k].s[kind] = s;
    stage->clock[k].j[kind] = j;
    p->n = at + 1 > p->n ? at + 1 : p->n;
    return 0;
}

static struct way at_clock(const struct stage *s, size_t i)
{
    return (struct way){s->clock[i].s[0], s->clock[i].s[1],
                        s->clock[i].j[0] + s->clock[i].j[1]};
}

/* Each instruction at the highest clock whose mean power is within the cap, or the
 * lowest clock.
 */
static struct way at_cap(const struct stage *s, double cap_w)
{
    double t[2] = {0}, j = 0;

    for (int kind = 0; kind < 2; kind++) {
        size_t best = 0, low = 0;
        bool kept = false;
        for (size_t i = 0; i < s->n; i++) {
            low = s->clock[i].mhz < s->clock[low].mhz ? i : low;
            if (s->clock[i].j[kind] / s->clock[i].s[kind] > cap_w)
                continue;
            best = !kept || s->clock[i].mhz > s->clock[best].mhz ? i : best;
            kept = true;
        }
        best = kept ? best : low;
        t[kind] = s->clock[best].s[kind];
        j += s->clock[best].j[kind];
    }
    return (struct way){t[0], t[1], j};
}

struct done {
    double forward[STAGES_MAX][MICROBATCHES], backward[STAGES_MAX][MICROBATCHES];
};

struct turn {
    bool forward;
    unsigned microbatch;
};

/* The action of a stage at this step of 2 MICROBATCHES in the order of 1F1B; warm: the
 * number of forward passes at the start.
 */
static struct turn turn_of(unsigned warm, unsigned step)
{
    if (step < warm)
        return (struct turn){true, step};
    if (step >= 2 * MICROBATCHES - warm)
        return (struct turn){false, step - MICROBATCHES};
    bool forward = (step - warm) % 2 == 0;
    return (struct turn){forward, (step - warm) / 2 + (forward ? warm : 0)};
}

/* Runs the next instruction of stage i if its inputs are ready. */
static bool one_step(const struct way *way, size_t n, size_t i, unsigned step,
                     struct done *d, double *free_s)
{
    struct turn t = turn_of((unsigned)(n - i - 1), step);
    unsigned m = t.microbatch;
    double ready_s = t.forward   ? (i > 0 ? d->forward[i - 1][m] : *free_s)
                     : i + 1 < n ? d->backward[i + 1][m]
                                 : d->forward[i][m];

    if (ready_s <= 0 && step + i > 0)
        return false;
    *free_s = fmax(ready_s, *free_s) + (t.forward ? way->forward_s : way->backward_s);
    *(t.forward ? &d->forward[i][m] : &d->backward[i][m]) = *free_s;
    return true;
}

/* An iteration of the pipeline, one forward and one backward; all stages wait for its
 * end.
 */
static struct point iterate(const struct pipeline *p, const struct way *way,
                            const double *wait_w)
{
    struct done d = {0};
    unsigned step[STAGES_MAX] = {0};
    double free_s[STAGES_MAX] = {0}, until = 0;
    struct point r = {0};
    bool moved = true;

    while (moved) {
        moved = false;
        for (size_t i = 0; i < p->n; i++)
            while (step[i] < 2 * MICROBATCHES &&
                   one_step(&way[i], p->n, i, step[i], &d, &free_s[i])) {
                step[i]++;
                moved = true;
            }
    }
    for (size_t i = 0; i < p->n; i++)
        until = fmax(until, free_s[i]);
    r.time_s = until;
    for (size_t i = 0; i < p->n; i++)
        r.energy_j +=
            MICROBATCHES * way[i].energy_j +
            wait_w[i] * (until - MICROBATCHES * (way[i].forward_s + way[i].backward_s));
    return r;
}

enum { BY_CAP, BY_CLOCK };

static size_t count_ways(const struct pipeline *p, int by)
{
    return by == BY_CLOCK ? p->stage[0].n : 100;
}

/* The i-th way: clocks as measured, caps from 500 W down in steps of 4 W. */
static struct way way_of(const struct stage *s, int by, size_t i)
{
    return by == BY_CLOCK ? at_clock(s, i < s->n ? i : s->n - 1)
                          : at_cap(s, 500 - 4 * (double)i);
}

/* The way of a stage with the least energy that takes at most this time a microbatch. */
static struct way cheapest(const struct pipeline *p, size_t stage, int by, double most_s)
{
    struct way best = way_of(&p->stage[stage], by, 0);

    for (size_t i = 0; i < count_ways(p, by); i++) {
        struct way w = way_of(&p->stage[stage], by, i);
        if (w.forward_s + w.backward_s <= most_s && w.energy_j < best.energy_j)
            best = w;
    }
    return best;
}

struct pipe_table {
    double same[2][BOUNDS], each[2][BOUNDS]; /* one for all, one a stage; by cap, clock */
};

/* One way for each stage, each as slow as a budget allows; the budget shrinks until the
 * iteration is within the bound.
 */
static double each_stage(const struct pipeline *p, int by, double bound, struct point ref,
                         double slowest_s, const double *wait_w)
{
    for (int k = 0; k < 200; k++) {
        double most = slowest_s * (1 + bound) * (1 - 0.001 * k);
        struct way way[STAGES_MAX];
        for (size_t i = 0; i < p->n; i++)
            way[i] = cheapest(p, i, by, most);
        struct point got = iterate(p, way, wait_w);
        if (got.time_s <= ref.time_s * (1 + bound))
            return fmax(0, 1 - got.energy_j / ref.energy_j);
    }
    return 0;
}

static void fill_table(const struct pipeline *p, struct pipe_table *ret)
{
    struct way way[STAGES_MAX];
    double wait_w[STAGES_MAX], slowest_s = 0;

    for (size_t i = 0; i < p->n; i++) {
        way[i] = at_cap(&p->stage[i], 1e9);
        double s = way[i].forward_s + way[i].backward_s;
        wait_w[i] = WAIT_SHARE * way[i].energy_j / s;
        slowest_s = fmax(slowest_s, s);
    }
    struct point ref = iterate(p, way, wait_w);
    for (int by = BY_CAP; by <= BY_CLOCK; by++) {
        static struct point got[512];
        size_t n = count_ways(p, by);
        for (size_t k = 0; k < n; k++) {
            for (size_t i = 0; i < p->n; i++)
                way[i] = way_of(&p->stage[i], by, k);
            got[k] = iterate(p, way, wait_w);
        }
        savings(got, n, ref, ret->same[by]);
        for (int b = 0; b < BOUNDS; b++)
            ret->each[by][b] = each_stage(p, by, bounds[b], ref, slowest_s, wait_w);
    }
}

/* ---- plant ---- */

struct plant_row {
    struct stats saving[3][BOUNDS]; /* caps, clocks, both */
    double more[BOUNDS];            /* mean of clocks - caps */
    double least_more[BOUNDS];
};

static struct point point_of(const struct plant_vf *v, double cap_w, uint32_t mhz)
{
    struct plant_steady s = plant_vf_step(v, cap_w, mhz);

    return (struct point){s.time_s, s.energy_j};
}

/* Caps in steps of 5 W down to the board's minimum; clocks from the driver's list. */
static void play_plant(const struct plant_vf *v, size_t board, double ret[3][BOUNDS])
{
    static struct point p[3][POINTS_MAX * 8];
    size_t n[3] = {0};
    const double max_w = vfboards[board].max_w;
    struct point ref = point_of(v, max_w, 0);

    for (int k = 0; max_w - 5 * k >= vfboards[board].min_w; k++) {
        double w = max_w - 5 * k;
        p[0][n[0]++] = point_of(v, w, 0);
        for (unsigned i = 0; plant_vf_clock_at(v, i); i += 2)
            p[2][n[2]++] = point_of(v, w, plant_vf_clock_at(v, i));
    }
    for (unsigned i = 0; plant_vf_clock_at(v, i); i++)
        p[1][n[1]++] = point_of(v, max_w, plant_vf_clock_at(v, i));
    memcpy(&p[2][n[2]], p[1], n[1] * sizeof p[1][0]);
    n[2] += n[1];
    for (int k = 0; k < 3; k++)
        savings(p[k], n[k], ref, ret[k]);
}

static void fill_plant(size_t board, bool slow, struct plant_row *ret)
{
    static double got[3][BOUNDS][PLANTS];
    struct rng rng;

    *ret = (struct plant_row){.least_more = {1, 1, 1}};
    rng_init(&rng, 2026 + board);
    for (unsigned i = 0; i < PLANTS; i++) {
        struct plant_vf v = vfboard_made_up(board, slow, &rng);
        double s[3][BOUNDS];
        play_plant(&v, board, s);
        for (int b = 0; b < BOUNDS; b++) {
            for (int k = 0; k < 3; k++)
                got[k][b][i] = s[k][b];
            ret->more[b] += (s[1][b] - s[0][b]) / PLANTS;
            ret->least_more[b] = fmin(ret->least_more[b], s[1][b] - s[0][b]);
        }
    }
    for (int k = 0; k < 3; k++)
        for (int b = 0; b < BOUNDS; b++)
            ret->saving[k][b] = stats_of(got[k][b], PLANTS);
}

/* ---- output ---- */

struct output {
    FILE *json; /* or NULL */
    bool table;
    const char *comma;
};

static void row(struct output *o, const char *part, const char *name, const char *what,
                const double v[BOUNDS])
{
    if (o->table)
        (void)printf("%-7s %-28s %-22s %6.1f %6.1f %6.1f\n", part, name, what, 100 * v[0],
                     100 * v[1], 100 * v[2]);
    if (!o->json)
        return;
    (void)fprintf(o->json, "%s\n  {\"part\":", o->comma);
    text_json(o->json, part);
    (void)fprintf(o->json, ",\"name\":");
    text_json(o->json, name);
    (void)fprintf(o->json, ",\"by\":");
    text_json(o->json, what);
    (void)fprintf(o->json, ",\"saving\":{\"1\":%.5f,\"5\":%.5f,\"10\":%.5f}}", v[0], v[1],
                  v[2]);
    o->comma = ",";
}

static int show_jobs(struct output *o, const char *folder, uw_error *err)
{
    static struct jobs jobs;
    double mean[3][BOUNDS] = {{0}};

    int r = read_jobs(folder, &jobs, err);
    for (size_t i = 0; r == 0 && i < jobs.n; i++) {
        const struct job *job = &jobs.at[i];
        double cap[BOUNDS], plan[BOUNDS];
        savings(job->limit, job->n_limits, job->top, cap);
        savings(job->plan, job->n_plans, job->fastest, plan);
        row(o, "jobs", job->name, "one limit", cap);
        row(o, "jobs", job->name, "frequency plans", plan);
        for (int b = 0; b < BOUNDS; b++) {
            mean[0][b] += cap[b] / (double)jobs.n;
            mean[1][b] += plan[b] / (double)jobs.n;
        }
    }
    if (r == 0) {
        row(o, "jobs", "mean", "one limit", mean[0]);
        row(o, "jobs", "mean", "frequency plans", mean[1]);
    }
    return r;
}

static int show_stages(struct output *o, const char *folder, uw_error *err)
{
    static const char *const names[] = {"gpt3-175b_a100_sxm", "bloom_a100_sxm",
                                        "gpt3-175b_a40", "bloom_a40"};
    static const char *const columns[] = {"stage", "instruction", "frequency", "time",
                                          "energy"};
    static const char *const words[2] = {"cap", "clock"};
    int r = 0;

    for (size_t i = 0; r == 0 && i < n_elements(names); i++) {
        static struct pipeline p;
        struct pipe_table t;
        char path[512], what[40];
        p = (struct pipeline){.n = 0};
        (void)snprintf(path, sizeof path, "%s/zeus/sosp24/stage_profile_%s_bf16.csv",
                       folder, names[i]);
        r = csv_read(path, columns, n_elements(columns), on_instruction, &p, err);
        if (r < 0)
            break;
        fill_table(&p, &t);
        for (int by = BY_CAP; by <= BY_CLOCK; by++) {
            (void)snprintf(what, sizeof what, "one %s", words[by]);
            row(o, "stages", names[i], what, t.same[by]);
            (void)snprintf(what, sizeof what, "a %s a stage", words[by]);
            row(o, "stages", names[i], what, t.each[by]);
        }
    }
    return r;
}

static void show_plant(struct output *o)
{
    static const char *const words[3] = {"caps", "clocks", "both"};

    for (int slow = 0; slow < 2; slow++)
        for (size_t b = 0; b < VFBOARDS; b++) {
            struct plant_row t;
            char name[40];
            (void)snprintf(name, sizeof name, "%s, %s parts", vfboards[b].name,
                           slow ? "slow" : "fast");
            fill_plant(b, slow, &t);
            for (int k = 0; k < 3; k++) {
                double mean[BOUNDS];
                for (int i = 0; i < BOUNDS; i++)
                    mean[i] = t.saving[k][i].mean;
                row(o, "plant", name, words[k], mean);
            }
            row(o, "plant", name, "clocks - caps, mean", t.more);
            row(o, "plant", name, "clocks - caps, least", t.least_more);
        }
}

static int run(const char *folder, struct output *o, uw_error *err)
{
    int r = 0;

    if (o->table)
        (void)printf(
            "saving of energy in %%, no slower than by      1 %%    5 %%   10 %%\n");
    if (o->json)
        (void)fprintf(
            o->json,
            "{\"bench\":\"clocks\",\"simulated\":[\"plant\",\"found\"],\"wait_share\":%g,"
            "\"microbatches\":%d,\"plants\":%d,\"rows\":[",
            WAIT_SHARE, MICROBATCHES, PLANTS);
    if (folder)
        r = show_jobs(o, folder, err);
    if (folder && r == 0)
        r = show_stages(o, folder, err);
    if (r == 0) {
        show_plant(o);
        r = found_show(PLANTS, o->table, o->json, &o->comma, err);
    }
    if (o->json)
        (void)fprintf(o->json, "\n]}\n");
    return r;
}

int main(int argc, char **argv)
{
    struct output o = {.comma = ""};
    const char *folder = NULL, *json = NULL;
    uw_error err = {""};

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--table") == 0) {
            o.table = true;
        } else if (strcmp(argv[i], "--data") == 0 && argv[i + 1]) {
            folder = argv[++i];
        } else if (strcmp(argv[i], "--json") == 0 && argv[i + 1]) {
            json = argv[++i];
        } else {
            (void)fprintf(stderr,
                          "usage: clocks [--data FOLDER] [--table] [--json FILE|-]\n");
            return 2;
        }
    }
    o.json = json && strcmp(json, "-") != 0 ? fopen(json, "we") : NULL;
    if (json && strcmp(json, "-") != 0 && !o.json) {
        (void)fprintf(stderr, "clocks: %s: %s\n", json, strerror(errno));
        return 1;
    }
    if (!o.json && (!o.table || json))
        o.json = stdout;
    int r = run(folder, &o, &err);
    if (o.json && o.json != stdout && fclose(o.json) != 0 && r == 0)
        r = fail(&err, -EIO, "%s: not written", json);
    if (r < 0) {
        (void)fprintf(stderr, "clocks: %s\n", err.text);
        return 1;
    }
    return 0;
}
