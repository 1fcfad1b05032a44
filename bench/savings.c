/* How honest is what a job is said to have saved?  Plays whole jobs under the daemon's
 * own tuner in worlds whose truth is known (savingsplay.h), and holds what its books say
 * against it.
 *
 *   savings --curves FILE.csv [--seeds N] [--every N] [--goal GOAL] [--row NAME]
 *           [--json FILE|-] [--trace]
 *
 * A row is a kind of job at one length, over every N-th curve and all seeds.  The truth:
 * the energy that the same steps would have used at the original cap, less what they
 * used; as a part of the former.  --row plays the rows of this name alone; --trace says
 * what the tuner says.  Exit status: 0 done, 1 failed, 2 bad arguments or values.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "savingsplay.h"
#include "stats.h"

enum { SEEDS_MAX = 1000, EXIT_USAGE = 2, TWICE = 4 };

struct opts {
    const char *curves, *json, *row;
    struct goal goal;
    uint64_t seeds, every;
    bool trace;
};

struct row {
    const char *name;
    struct savings_job job;
};

#define METER \
    0.001 /* of 10 s: uncertainty at the ends of a counter (docs/design/metering.md) */

static const struct row rows[] = {
    {"steady", {.noise = 0}},
    {"noise 1 %", {.noise = 0.01, .meter = METER}},
    {"noise 3 %", {.noise = 0.03, .meter = METER}},
    {"slow noise 1 %", {.noise = 0.01, .memory_s = 60, .meter = METER}},
    {"energy alone 1 %", {.energy_noise = 0.01, .memory_s = 60, .meter = METER}},
    {"grows 4 %",
     {.noise = 0.003, .drift_time = 0.02, .drift_energy = 0.04, .meter = METER}},
    {"warms 3 %", {.noise = 0.003, .warm_energy = 0.03, .cool = 0.026, .meter = METER}},
    {"cold board", {.cool = 0.026, .noise = 0.003, .meter = METER}},
    {"jump 2 %", {.noise = 0.003, .jump = 0.02, .meter = METER}},
    {"jump 15 %", {.noise = 0.003, .jump = 0.15, .meter = METER}},
    {"caps save more and more", {.noise = 0.003, .shape = 0.3, .meter = METER}},
};

static const struct length {
    const char *name;
    double s;
} lengths[] = {{"1 min", 60}, {"10 min", 600}, {"1 h", 3600}, {"8 h", 28800}};

/* Sums of the scores of a row. */
struct sums {
    size_t n, known, visited;
    size_t covered, slower_covered, start_covered;
    double saved, bias, half, off, slower_off, start_bias, start_off, model_off;
    double start_half, visits, start_s, told;
    size_t twice;            /* runs repeated without visits: the cost of visits … */
    double cost_j, faster_s; /* … as shares of energy and time */
    double *share;           /* share of time in visits, for each job */
};

static int usage(void)
{
    (void)fputs("usage: savings --curves FILE.csv [--seeds N] [--every N] [--goal GOAL]\n"
                "               [--row NAME] [--json FILE|-] [--trace]\n",
                stderr);
    return EXIT_USAGE;
}

static bool holds(const struct savings_word *w, double truth)
{
    return fabs(w->value - truth) <= w->half;
}

static void sums_add(struct sums *s, const struct savings_score *x)
{
    double off = x->saved.value - x->true_saved;
    double start_off = x->start_saved.value - x->true_saved;

    s->share[s->n++] = x->visits_s / x->job_s;
    if (!x->saved.known)
        return;
    s->known++;
    s->visited += x->visits > 0;
    s->covered += holds(&x->saved, x->true_saved);
    s->slower_covered += holds(&x->slower, x->true_slower);
    s->start_covered += holds(&x->start_saved, x->true_saved);
    s->saved += x->true_saved;
    s->bias += off;
    s->off += fabs(off);
    s->half += x->saved.half;
    s->slower_off += fabs(x->slower.value - x->true_slower);
    s->start_bias += start_off;
    s->start_off += fabs(start_off);
    s->start_half += x->start_saved.half;
    s->model_off += fabs(x->model_saved.value - x->true_saved);
    s->visits += x->visits;
    s->start_s += x->start_s / x->job_s;
    s->told += x->told_part;
}

/* Plays the same job without visits. */
static int add_cost(struct sums *s, const struct savings_play *p,
                    const struct savings_score *with, uw_error *err)
{
    struct savings_play alone = *p;
    struct savings_score x;

    alone.checks_share = -1;
    alone.trace = NULL;
    int r = savings_play(&alone, &x, err);
    if (r < 0)
        return r;
    s->twice++;
    s->cost_j += with->used_j / x.used_j - 1;
    s->faster_s += 1 - with->job_s / x.job_s;
    return 0;
}

static int play_row(const struct records *recs, const struct opts *o,
                    const struct row *row, const struct length *length, struct sums *s,
                    uw_error *err)
{
    struct savings_play p = {
        .job = row->job,
        .goal = o->goal,
        .length_s = length->s,
        .trace = o->trace ? stderr : NULL,
    };

    for (size_t i = 0; i < recs->n; i += o->every)
        for (uint64_t seed = 1; seed <= o->seeds; seed++) {
            struct savings_score x;
            p.rec = &recs->items[i];
            p.seed = seed * 1000 + i;
            int r = savings_play(&p, &x, err);
            if (r < 0)
                return r;
            if (p.trace)
                (void)fprintf(p.trace, "%s: true %.5f said %.5f +- %.5f (%u visits)\n",
                              p.rec->name, x.true_saved, x.saved.value, x.saved.half,
                              x.visits);
            sums_add(s, &x);
            if (x.visits > 0 && s->n % TWICE == 0)
                r = add_cost(s, &p, &x, err);
            if (r < 0)
                return r;
        }
    return 0;
}

static void print_row(const struct row *row, const struct length *length,
                      const struct sums *s, const struct stats *share)
{
    double k = (double)s->known, pc = 100 / k, twice = fmax((double)s->twice, 1);

    printf("| %s | %s | %.0f ", row->name, length->name, 100 * k / (double)s->n);
    if (s->known == 0) {
        (void)puts("| | | | | | | | | | | | |");
        return;
    }
    printf("| %.1f | **%.0f** | %.0f | %+.2f | %.2f | %.2f | %.1f | %.2f / %.2f / %.2f | "
           "%.3f / %.3f | %.0f | %.2f | %.2f |\n",
           pc * s->saved, pc * (double)s->covered, pc * (double)s->slower_covered,
           pc * s->bias, pc * s->off, pc * s->half, s->visits / k, 100 * share->mean,
           100 * share->p95, 100 * share->max, 100 * s->cost_j / twice,
           100 * s->faster_s / twice, pc * (double)s->start_covered, pc * s->start_off,
           pc * s->model_off);
}

static void json_row(FILE *f, const struct row *row, const struct length *length,
                     const struct sums *s, const struct stats *share, bool first)
{
    double k = (double)s->known, twice = fmax((double)s->twice, 1);

    (void)fputs(first ? "" : ",", f);
    (void)fputs("{\"row\":", f);
    text_json(f, row->name);
    (void)fprintf(f, ",\"length_s\":%g,\"jobs\":%zu,\"known\":%zu,\"visits_share\":",
                  length->s, s->n, s->known);
    stats_json(f, share);
    if (s->known > 0)
        (void)fprintf(
            f,
            ",\"saved\":%.6g,\"covered\":%.6g,\"time_covered\":%.6g,\"bias\":%.6g,"
            "\"off\":%.6g,\"half\":%.6g,\"visits\":%.6g,\"start_share\":%.6g,"
            "\"cost\":%.6g,\"faster\":%.6g,\"start_covered\":%.6g,\"start_off\":%.6g,"
            "\"start_half\":%.6g,\"model_off\":%.6g",
            s->saved / k, (double)s->covered / k, (double)s->slower_covered / k,
            s->bias / k, s->off / k, s->half / k, s->visits / k, s->start_s / k,
            s->cost_j / twice, s->faster_s / twice, (double)s->start_covered / k,
            s->start_off / k, s->start_half / k, s->model_off / k);
    (void)fputc('}', f);
}

static int one_row(const struct records *recs, const struct opts *o,
                   const struct row *row, const struct length *length, FILE *json,
                   bool first, uw_error *err)
{
    size_t most = (size_t)(recs->n * o->seeds);
    auto_(mem_free) double *share = calloc(most, sizeof *share);
    struct sums s = {.share = share};

    if (!share)
        return fail(err, -ENOMEM, "out of memory");
    int r = play_row(recs, o, row, length, &s, err);
    if (r < 0)
        return r;
    struct stats of = stats_of(share, s.n);
    if (json)
        json_row(json, row, length, &s, &of, first);
    if (json != stdout)
        print_row(row, length, &s, &of);
    (void)fflush(stdout);
    return 0;
}

static int tables(const struct records *recs, const struct opts *o, FILE *json,
                  uw_error *err)
{
    bool first = true;

    if (json != stdout)
        (void)puts(
            "| job | length | known % | saved % | covered % | time: covered % | bias | "
            "off | half | visits | share of time %: mean / p95 / worst | they cost %: "
            "energy / time won | start alone: covered % | off | model: off |\n"
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    if (json)
        (void)fprintf(json, "{\"seeds\":%" PRIu64 ",\"every\":%" PRIu64 ",\"rows\":[",
                      o->seeds, o->every);
    for (size_t i = 0; i < n_elements(rows); i++)
        for (size_t k = 0; k < n_elements(lengths); k++) {
            if ((o->row && strcmp(o->row, rows[i].name) != 0) || (k == 0 && i > 0))
                continue;
            int r = one_row(recs, o, &rows[i], &lengths[k], json, first, err);
            if (r < 0)
                return r;
            first = false;
        }
    if (json)
        (void)fputs("]}\n", json);
    return 0;
}

static int parse_count(const char *name, const char *arg, uint64_t *ret, uw_error *err)
{
    int r = parse_u64(arg, ret, err);

    if (r == 0 && (*ret < 1 || *ret > SEEDS_MAX))
        r = fail(err, -ERANGE, "%s is outside 1..%d", arg, SEEDS_MAX);
    return r < 0 ? fail_in(err, r, "%s", name) : 0;
}

static int parse_row(const char *name, struct opts *o, uw_error *err)
{
    o->row = name;
    for (size_t i = 0; i < n_elements(rows); i++)
        if (strcmp(name, rows[i].name) == 0)
            return 0;
    return fail(err, -EINVAL, "--row '%s' is none of the table's", name);
}

static int parse_option(int c, struct opts *o, uw_error *err)
{
    switch (c) {
    case 'c':
        o->curves = optarg;
        return 0;
    case 'j':
        o->json = optarg;
        return 0;
    case 'r':
        return parse_row(optarg, o, err);
    case 't':
        o->trace = true;
        return 0;
    case 'g':
        return goal_parse(optarg, &o->goal, err);
    case 's':
        return parse_count("--seeds", optarg, &o->seeds, err);
    case 'e':
        return parse_count("--every", optarg, &o->every, err);
    default:
        return fail(err, -EINVAL, "no such option");
    }
}

static int parse(int argc, char **argv, struct opts *o, uw_error *err)
{
    static const struct option names[] = {
        {"curves", required_argument, NULL, 'c'}, {"json", required_argument, NULL, 'j'},
        {"row", required_argument, NULL, 'r'},    {"trace", no_argument, NULL, 't'},
        {"goal", required_argument, NULL, 'g'},   {"seeds", required_argument, NULL, 's'},
        {"every", required_argument, NULL, 'e'},  {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        int r = parse_option(c, o, err);
        if (r < 0)
            return r;
    }
    if (optind < argc)
        return fail(err, -EINVAL, "'%s' is no option", argv[optind]);
    if (!o->curves)
        return fail(err, -EINVAL, "--curves FILE is missing");
    return 0;
}

static int run(const struct opts *o, uw_error *err)
{
    auto_(records_fini) struct records recs = {0};
    FILE *json = NULL;
    int r = records_read(o->curves, &recs, err);

    if (r < 0)
        return r;
    if (o->json)
        json = strcmp(o->json, "-") == 0 ? stdout : fopen(o->json, "we");
    if (o->json && !json)
        return fail(err, -errno, "%s: %s", o->json, strerror(errno));
    r = tables(&recs, o, json, err);
    if (json && json != stdout && fclose(json) != 0 && r >= 0)
        r = fail(err, -errno, "%s: %s", o->json, strerror(errno));
    return r;
}

int main(int argc, char **argv)
{
    struct opts o = {.seeds = 1, .every = 1, .goal = {.kind = GOAL_EDS, .param = 2}};
    uw_error err = {""};

    if (parse(argc, argv, &o, &err) < 0) {
        (void)fprintf(stderr, "savings: %s\n", err.text);
        return usage();
    }
    if (run(&o, &err) < 0) {
        (void)fprintf(stderr, "savings: %s\n", err.text);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
