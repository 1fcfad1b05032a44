/* What a second search costs, and whether it is begun when it should be: whole jobs that
 * change while they run, and jobs that do not.  Simulated, of recorded curves.
 *
 *   changes --curves FILE.csv [--case CASE] [--goal GOAL] [--noise SD] [--seeds N]
 *           [--first SEED] [--json FILE|-] [--trace]
 *
 * Cases (bench/regimes.h): batch, freeze, network, heat, comes, steady.  A job is
 * searched, held for the rest of 45 minutes, changes, and goes on for an hour; three
 * times with the same noise: a search from what is known (what the daemon does), one that
 * knows nothing, and none, the old cap.  "comes" goes on for four hours, "steady" is
 * eight hours without a change.  Noise is of each window of 10 s; the search is told it,
 * as a run is told the scatter of its steps.  Exit status: 0 done, 1 failed, 2 bad
 * arguments or values.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "changeplay.h"
#include "core/optimum/gap-probe.h"
#include "stats.h"

enum { SEEDS_MAX = 1000, EXIT_USAGE = 2, JOBS_MAX = 4096 };
#define NOISE_MAX 0.3
#define CHANGE_S 2700.0
#define HOUR_S 3600.0

static const char *const goals[] = {"energy", "edp", "eds:2", "cost:0.5", "slowdown:1.1"};
static const char *const answers[ANSWERS] = {"known", "anew", "none"};

struct opts {
    const char *curves, *only, *goal, *json;
    double noise;
    uint64_t seeds, first;
    bool trace;
};

/* A figure of every job. */
struct column {
    double *v;
    size_t n;
};

enum figure {
    FIG_WINDOWS,
    FIG_CAPS,
    FIG_TOOK,
    FIG_COST,
    FIG_REGRET,
    FIG_OVER,   /* slowdown:F: excess over the bound at the cap found */
    FIG_END,    /* regret at the end of the job … */
    FIG_LOST,   /* … and on average since the change */
    FIG_MORE,   /* searches begun; one is needed (heat, comes: none or several) */
    FIG_SEARCH, /* share of the time spent in searches */
    FIGURES,
};
static const char *const figure_names[FIGURES] = {
    "windows", "caps", "took_s", "cost",     "regret",
    "over",    "end",  "lost",   "searches", "search_share"};

struct cell {
    struct column of[ANSWERS][FIGURES], first[FIG_END];
    struct column found_s, found_windows, old_regret, old_over;
    size_t jobs, missed;
};

static void push(struct column *c, double v)
{
    if (!c->v)
        c->v = calloc(JOBS_MAX, sizeof *c->v);
    if (c->v && c->n < JOBS_MAX)
        c->v[c->n++] = v;
}

static void cell_fini(struct cell *c)
{
    for (int a = 0; a < ANSWERS; a++)
        for (int f = 0; f < FIGURES; f++)
            free(c->of[a][f].v);
    for (int f = 0; f < FIG_END; f++)
        free(c->first[f].v);
    free(c->found_s.v);
    free(c->found_windows.v);
    free(c->old_regret.v);
    free(c->old_over.v);
}

static void cell_fini_p(struct cell *c)
{
    cell_fini(c);
}

static double over(const struct goal *g, double slowdown)
{
    return g->kind == GOAL_SLOWDOWN ? fmax(0, slowdown / g->param - 1) : 0;
}

static void push_search(struct column *c, const struct searched *s, const struct goal *g)
{
    push(&c[FIG_WINDOWS], s->windows);
    push(&c[FIG_CAPS], s->caps);
    push(&c[FIG_TOOK], s->took_s);
    push(&c[FIG_COST], s->cost);
    push(&c[FIG_REGRET], s->regret);
    push(&c[FIG_OVER], over(g, s->slowdown));
}

/* Adds the result of a job under one answer to its change. */
static void push_job(struct cell *c, const struct changeplay *p, const struct played *got)
{
    struct column *of = c->of[p->answer];

    for (unsigned i = 0; i < got->n_again && i < SEARCHED_MAX; i++)
        push_search(of, &got->again[i], &p->goal);
    push(&of[FIG_END], got->end_regret);
    push(&of[FIG_LOST], got->lost);
    push(&of[FIG_MORE], got->n_again * HOUR_S / got->since_s);
    push(&of[FIG_SEARCH], got->again_s / got->since_s);
    if (p->answer != ANSWER_KNOWN)
        return;
    push_search(c->first, &got->first, &p->goal);
    c->jobs++;
    c->missed += isinf(got->found_s) != 0;
    push(&c->old_regret, got->old_regret);
    push(&c->old_over, over(&p->goal, got->old_slowdown));
    if (!isinf(got->found_s)) {
        push(&c->found_s, got->found_s);
        push(&c->found_windows, got->found_windows);
    }
}

/* A separate seed for each curve, case and seed, independent of the rest of the file. */
static uint64_t seed_of(const char *name, unsigned kind, uint64_t seed)
{
    uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3ull;
    return h + kind + seed * 0x9e3779b97f4a7c15ull;
}

struct pair {
    const struct record *before, *after; /* NULL: the same curve, changed */
};

static int play_job(struct cell *c, enum regime_kind kind, const struct pair *curves,
                    const struct goal *goal, const struct opts *o, uint64_t seed,
                    uw_error *err)
{
    static const double ends_s[REGIME_KINDS] = {
        [REGIME_COMES] = CHANGE_S + 4 * HOUR_S, [REGIME_STEADY] = 8 * HOUR_S};
    uint64_t of = seed_of(curves->before->name, kind, seed);
    struct regimes r;

    regimes_init(&r, kind, curves->before, curves->after, goal, CHANGE_S, of);
    for (enum answer a = 0; a < ANSWERS; a++) {
        struct changeplay p = {
            .answer = a,
            .goal = *goal,
            .noise = o->noise,
            .told = o->noise,
            .seed = of,
            .end_s = ends_s[kind] > 0 ? ends_s[kind] : CHANGE_S + HOUR_S,
            .looks = GAP_PROBES_MAX,
            .trace = o->trace ? stderr : NULL,
        };
        struct played got;
        int res = changeplay(&r, &p, &got, err);
        if (res < 0)
            return res;
        push_job(c, &p, &got);
    }
    return 0;
}

/* Another batch size: the next curves in the file that differ in nothing else. */
static int play_pairs(struct cell *c, const struct records *recs, const struct goal *goal,
                      const struct opts *o, uint64_t seed, uw_error *err)
{
    for (size_t i = 0; i < recs->n; i++)
        for (size_t k = 0; k < recs->n; k++) {
            const struct pair p = {&recs->items[i], &recs->items[k]};
            double by = regimes_batch(p.after->name) / regimes_batch(p.before->name);
            if (!regimes_are_pair(p.before, p.after) || by > 2.01 || by < 0.49)
                continue;
            int r = play_job(c, REGIME_BATCH, &p, goal, o, seed, err);
            if (r < 0)
                return r;
        }
    return 0;
}

static int play_case(struct cell *c, enum regime_kind kind, const struct records *recs,
                     const struct goal *goal, const struct opts *o, uw_error *err)
{
    int r = 0;

    for (uint64_t s = o->first; s < o->first + o->seeds && r >= 0; s++) {
        if (kind == REGIME_BATCH) {
            r = play_pairs(c, recs, goal, o, s, err);
            continue;
        }
        for (size_t i = 0; i < recs->n && r >= 0; i++)
            r = play_job(c, kind, &(struct pair){&recs->items[i], NULL}, goal, o, s, err);
    }
    return r;
}

/* ---- what is printed ---- */

static double mean(struct column *c)
{
    return c->n ? stats_of(c->v, c->n).mean : NAN;
}

static double high(struct column *c, double share)
{
    if (!c->n)
        return NAN;
    (void)stats_of(c->v, c->n);
    return quantile_of(c->v, c->n, share);
}

static void print_head(void)
{
    (void)printf(
        "case     goal          jobs missed  found after     | windows           minutes "
        "       cost %%/h         | regret %%  mean (p95)                       | lost %%"
        "                 | searches/h  %% of time\n"
        "                                    windows p95   s | first second anew  first "
        "second first second  anew | first       second      anew        old cap     | "
        "known  anew  old cap   | mean   p95\n");
}

static void print_row(const char *name, const char *goal, struct cell *c)
{
    struct column *k = c->of[ANSWER_KNOWN], *a = c->of[ANSWER_ANEW];
    struct column *o = c->of[ANSWER_NONE], *f = c->first;

    (void)printf("%-8s %-13s %4zu %5.1f%% %6.1f %4.0f %5.0f | ", name, goal, c->jobs,
                 100.0 * (double)c->missed / (double)c->jobs, mean(&c->found_windows),
                 high(&c->found_windows, 0.95), mean(&c->found_s));
    (void)printf("%5.1f %5.1f %5.1f %5.1f %5.1f %6.2f %5.2f %5.2f | ",
                 mean(&f[FIG_WINDOWS]), mean(&k[FIG_WINDOWS]), mean(&a[FIG_WINDOWS]),
                 mean(&f[FIG_TOOK]) / 60, mean(&k[FIG_TOOK]) / 60,
                 100 * mean(&f[FIG_COST]), 100 * mean(&k[FIG_COST]),
                 100 * mean(&a[FIG_COST]));
    (void)printf("%5.2f (%4.1f) %5.2f (%4.1f) %5.2f (%4.1f) %5.2f (%4.1f) | ",
                 100 * mean(&f[FIG_REGRET]), 100 * high(&f[FIG_REGRET], 0.95),
                 100 * mean(&k[FIG_REGRET]), 100 * high(&k[FIG_REGRET], 0.95),
                 100 * mean(&a[FIG_REGRET]), 100 * high(&a[FIG_REGRET], 0.95),
                 100 * mean(&c->old_regret), 100 * high(&c->old_regret, 0.95));
    (void)printf("%5.2f %5.2f %5.2f | %5.2f %5.2f %6.2f", 100 * mean(&k[FIG_LOST]),
                 100 * mean(&a[FIG_LOST]), 100 * mean(&o[FIG_LOST]), mean(&k[FIG_MORE]),
                 high(&k[FIG_MORE], 0.95), 100 * mean(&k[FIG_SEARCH]));
    (void)printf(" | over %.2f %.2f %.2f\n", 100 * high(&k[FIG_OVER], 0.99),
                 100 * high(&a[FIG_OVER], 0.99), 100 * high(&c->old_over, 0.99));
}

static void json_columns(FILE *f, struct column *c, int n)
{
    const char *comma = "";

    (void)fputc('{', f);
    for (int i = 0; i < n; i++) {
        if (!c[i].n)
            continue;
        struct stats s = stats_of(c[i].v, c[i].n);
        (void)fprintf(f, "%s\"%s\":", comma, figure_names[i]);
        stats_json(f, &s);
        comma = ",";
    }
    (void)fputc('}', f);
}

static void json_row(FILE *f, const char *name, const char *goal, struct cell *c)
{
    (void)fprintf(f, "{\"case\":\"%s\",\"goal\":\"%s\",\"jobs\":%zu,\"missed\":%.6g,",
                  name, goal, c->jobs, (double)c->missed / (double)c->jobs);
    if (c->found_s.n)
        (void)fprintf(f, "\"found_s\":%.6g,\"found_windows\":%.6g,", mean(&c->found_s),
                      mean(&c->found_windows));
    (void)fprintf(f, "\"old_regret\":%.6g,\"first\":", mean(&c->old_regret));
    json_columns(f, c->first, FIG_END);
    for (int a = 0; a < ANSWERS; a++) {
        (void)fprintf(f, ",\n \"%s\":", answers[a]);
        json_columns(f, c->of[a], FIGURES);
    }
    (void)fputc('}', f);
}

struct out {
    FILE *json; /* or NULL */
    bool quiet, some;
};

/* The row of a case and a goal, if it has any job. */
static int run_cell(const struct records *recs, const struct opts *o,
                    enum regime_kind kind, const char *name, struct out *out,
                    uw_error *err)
{
    auto_(cell_fini) struct cell c = {0};
    struct goal goal;

    int r = goal_parse(name, &goal, err);
    if (r >= 0)
        r = play_case(&c, kind, recs, &goal, o, err);
    if (r < 0 || c.jobs == 0)
        return r;
    if (!out->quiet)
        print_row(regime_names[kind], name, &c);
    (void)fflush(stdout);
    if (out->json) {
        (void)fputs(out->some ? ",\n" : "\n", out->json);
        json_row(out->json, regime_names[kind], name, &c);
    }
    out->some = true;
    return 0;
}

static int run(const struct records *recs, const struct opts *o, FILE *json,
               uw_error *err)
{
    struct out out = {.json = json, .quiet = json == stdout};
    int r = 0;

    if (!out.quiet)
        print_head();
    if (json)
        (void)fprintf(json, "{\"noise\":%g,\"seeds\":%" PRIu64 ",\"rows\":[", o->noise,
                      o->seeds);
    for (unsigned k = 0; k < REGIME_KINDS; k++)
        for (size_t g = 0; g < n_elements(goals) && r >= 0; g++)
            if ((!o->only || strcmp(o->only, regime_names[k]) == 0) &&
                (!o->goal || strcmp(o->goal, goals[g]) == 0))
                r = run_cell(recs, o, k, goals[g], &out, err);
    if (json)
        (void)fprintf(json, "\n]}\n");
    if (r >= 0 && !out.some)
        return fail(err, -EINVAL, "no such case, goal or pair of curves");
    return r;
}

/* ---- arguments ---- */

static int parse_option(int c, const char *arg, struct opts *o, uw_error *err)
{
    int r = 0;

    switch (c) {
    case 'c':
        o->curves = arg;
        return 0;
    case 'k':
        o->only = arg;
        return 0;
    case 'g':
        o->goal = arg;
        return 0;
    case 'j':
        o->json = arg;
        return 0;
    case 'v':
        o->trace = true;
        return 0;
    case 'n':
        r = parse_double(arg, &o->noise, err);
        if (r == 0 && !(o->noise >= 0 && o->noise <= NOISE_MAX))
            r = fail(err, -ERANGE, "%s is outside 0..%g", arg, NOISE_MAX);
        return r < 0 ? fail_in(err, r, "--noise") : 0;
    case 's':
        r = parse_u64(arg, &o->seeds, err);
        if (r == 0 && (o->seeds < 1 || o->seeds > SEEDS_MAX))
            r = fail(err, -ERANGE, "%s is outside 1..%d", arg, SEEDS_MAX);
        return r < 0 ? fail_in(err, r, "--seeds") : 0;
    case 'f':
        r = parse_u64(arg, &o->first, err);
        return r < 0 ? fail_in(err, r, "--first") : 0;
    default:
        return fail(err, -EINVAL, "see the usage above");
    }
}

static int parse_opts(int argc, char **argv, struct opts *ret, uw_error *err)
{
    static const struct option longs[] = {
        {"curves", required_argument, NULL, 'c'},
        {"case", required_argument, NULL, 'k'},
        {"goal", required_argument, NULL, 'g'},
        {"noise", required_argument, NULL, 'n'},
        {"seeds", required_argument, NULL, 's'},
        {"first", required_argument, NULL, 'f'},
        {"json", required_argument, NULL, 'j'},
        {"trace", no_argument, NULL, 'v'},
        {0},
    };
    struct opts o = {.seeds = 1, .first = 1, .noise = 0.01};
    int c;

    while ((c = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
        int r = parse_option(c, optarg, &o, err);
        if (r < 0)
            return r;
    }
    if (optind < argc)
        return fail(err, -EINVAL, "argument '%s' is one too many", argv[optind]);
    if (!o.curves)
        return fail(err, -EINVAL, "--curves FILE: missing");
    *ret = o;
    return 0;
}

static int complain(const uw_error *err, int status)
{
    (void)fprintf(stderr, "changes: %s\n", err->text);
    return status;
}

int main(int argc, char **argv)
{
    auto_(records_fini) struct records recs = {0};
    auto_(file_close) FILE *f = NULL;
    struct opts o = {0};
    uw_error err = {""};

    if (parse_opts(argc, argv, &o, &err) < 0) {
        (void)complain(&err, EXIT_USAGE);
        (void)fputs("usage: changes --curves FILE.csv [--case CASE] [--goal GOAL] "
                    "[--noise SD] [--seeds N]\n"
                    "       [--first SEED] [--json FILE|-] [--trace]\n",
                    stderr);
        return EXIT_USAGE;
    }
    if (records_read(o.curves, &recs, &err) < 0)
        return complain(&err, EXIT_USAGE);
    if (o.json && strcmp(o.json, "-") != 0) {
        f = fopen(o.json, "we");
        if (!f) {
            (void)fail(&err, -errno, "%s: %s", o.json, strerror(errno));
            return complain(&err, EXIT_FAILURE);
        }
    }
    int r = run(&recs, &o, f ? f : o.json ? stdout : NULL, &err);
    if (r == 0 && fflush(stdout) != 0)
        r = fail(&err, -errno, "standard output: %s", strerror(errno));
    return r < 0 ? complain(&err, EXIT_FAILURE) : 0;
}
