/* How good is the search?  Plays the product's search, with its safety rules on,
 * on recorded curves.
 *
 *   search --curves FILE.csv --goal GOAL [OPTION...]
 *   search --curves FILE.csv --table [--goal GOAL] [--json FILE|-] [OPTION...]
 *   options: [--noise SD [--memory SECONDS [--correlation R]]] [--seeds N|--runs N]
 *            [--looks N]
 *
 * Between the recorded caps a curve is a monotone cubic in log time and in mean
 * power; choices are whole watts; reference and original are the highest cap,
 * which also stands for Pmax in cost:ETA.  Noise multiplies time and energy of
 * each window independently; the search is told its size.  With --memory, step time and
 * power have noise of this SD and memory (noise.h), time passes as in a job, and a window
 * tells the search the scatter of its steps of 1 s.  --runs: as many seeds as make N runs
 * a row or more.  What was found is held for the rest of an hour, with
 * looks into gaps as the daemon makes them in a job of an hour; --looks: no more than so
 * many, 0 stops where it holds first; the table has a row for each.  Oracle and regret
 * are of the curve without noise and over its whole range; where a bound is broken the
 * regret is the part by which it is; regret_allowed is against an
 * oracle that keeps the search's soft floor, too.  --prior takes numbers that learn-prior
 * printed in place of the built-in ones; --trace tells each step on stderr.  Exit status:
 * 0 done, 1 failed, 2 bad arguments or values.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "core/optimum/gap-probe.h"
#include "curves.h"
#include "play.h"
#include "priorfile.h"
#include "stats.h"
#include "table.h"

enum { SEEDS_MAX = 1000000, EXIT_USAGE = 2 };
#define NOISE_MAX 0.3
#define MEMORY_MAX_S 86400.0
#define HEADROOM_MAX 10.0

struct opts {
    const char *curves, *goal, *json, *prior_file;
    const struct prior *prior; /* read from prior_file; NULL: the built-in prior */
    double noise, memory_s, correlation, headroom;
    uint64_t seeds, runs, looks; /* runs: least number in a row; 0: seeds are used */
    uint64_t earlier; /* 0: none, n: the search remembers the curve n - 1 places later */
    bool table, trace;
    enum binding binding;
};

static int usage(void)
{
    (void)fputs("usage: search --curves FILE.csv --goal GOAL [OPTION...]\n"
                "       search --curves FILE.csv --table [--goal GOAL] [--json FILE|-] "
                "[OPTION...]\n"
                "options: [--noise SD [--memory SECONDS [--correlation R]]] [--seeds "
                "N|--runs N]\n"
                "         [--looks N] [--headroom R [--binding|--reasons]]\n",
                stderr);
    return EXIT_USAGE;
}

/* A number in lo..hi. */
static int parse_in(const char *arg, const char *name, double lo, double hi, double *ret,
                    uw_error *err)
{
    int r = parse_double(arg, ret, err);
    if (r == 0 && !(*ret >= lo && *ret <= hi))
        r = fail(err, -ERANGE, "%s is outside %g..%g", arg, lo, hi);
    return r < 0 ? fail_in(err, r, "%s", name) : 0;
}

static int parse_count(const char *arg, const char *name, uint64_t lo, uint64_t hi,
                       uint64_t *ret, uw_error *err)
{
    int r = parse_u64(arg, ret, err);
    if (r == 0 && (*ret < lo || *ret > hi))
        r = fail(err, -ERANGE, "%s is outside %" PRIu64 "..%" PRIu64, arg, lo, hi);
    return r < 0 ? fail_in(err, r, "%s", name) : 0;
}

static int parse_option(int c, const char *arg, struct opts *o, uw_error *err)
{
    switch (c) {
    case 'c':
        o->curves = arg;
        break;
    case 'g':
        o->goal = arg;
        break;
    case 'j':
        o->json = arg;
        break;
    case 'p':
        o->prior_file = arg;
        break;
    case 'v':
        o->trace = true;
        break;
    case 't':
        o->table = true;
        break;
    case 'n':
        return parse_in(arg, "--noise", 0, NOISE_MAX, &o->noise, err);
    case 'm':
        return parse_in(arg, "--memory", 0, MEMORY_MAX_S, &o->memory_s, err);
    case 'r':
        return parse_in(arg, "--correlation", -1, 1, &o->correlation, err);
    case 'h':
        return parse_in(arg, "--headroom", 1, HEADROOM_MAX, &o->headroom, err);
    case 'b':
        o->binding = BINDING_NONE;
        break;
    case 'B':
        o->binding = BINDING_CLEAR;
        break;
    case 'e':
        o->earlier = 1 + (uint64_t)(strcmp(arg, "other") == 0);
        if (o->earlier == 1 && strcmp(arg, "same") != 0)
            return fail(err, -EINVAL, "--history %s is neither same nor other", arg);
        break;
    case 'l':
        return parse_count(arg, "--looks", 0, GAP_PROBES_MAX, &o->looks, err);
    case 's':
        return parse_count(arg, "--seeds", 1, SEEDS_MAX, &o->seeds, err);
    case 'u':
        return parse_count(arg, "--runs", 1, SEEDS_MAX, &o->runs, err);
    default:
        return fail(err, -EINVAL, "see the usage above");
    }
    return 0;
}

/* 0, or -errno with a text. */
static int parse_opts(int argc, char **argv, struct opts *ret, uw_error *err)
{
    static const struct option longs[] = {
        {"curves", required_argument, NULL, 'c'},
        {"goal", required_argument, NULL, 'g'},
        {"noise", required_argument, NULL, 'n'},
        {"memory", required_argument, NULL, 'm'},
        {"correlation", required_argument, NULL, 'r'},
        {"runs", required_argument, NULL, 'u'},
        {"headroom", required_argument, NULL, 'h'},
        {"binding", no_argument, NULL, 'b'},
        {"reasons", no_argument, NULL, 'B'},
        {"seeds", required_argument, NULL, 's'},
        {"looks", required_argument, NULL, 'l'},
        {"history", required_argument, NULL, 'e'},
        {"json", required_argument, NULL, 'j'},
        {"prior", required_argument, NULL, 'p'},
        {"trace", no_argument, NULL, 'v'},
        {"table", no_argument, NULL, 't'},
        {0},
    };
    struct opts o = {.looks = GAP_PROBES_MAX};
    int c;

    while ((c = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
        int r = parse_option(c, optarg, &o, err);
        if (r < 0)
            return r;
    }
    if (optind < argc)
        return fail(err, -EINVAL, "argument '%s' is one too many", argv[optind]);
    if (!o.curves || (!o.goal && !o.table))
        return fail(err, -EINVAL, "--curves FILE and --goal GOAL or --table: missing");
    if (o.seeds && o.runs)
        return fail(err, -EINVAL, "--seeds and --runs: one of them");
    if ((o.memory_s > 0 && !(o.noise > 0)) || (o.correlation != 0 && !(o.memory_s > 0)))
        return fail(err, -EINVAL,
                    "--correlation needs --memory, --memory needs --noise: missing");
    if (!o.seeds)
        o.seeds = 1;
    *ret = o;
    return 0;
}

struct columns {
    double *regret, *allowed, *slowdown, *excess;
    size_t broken;
    double caps, windows, caps_first, windows_first;
    size_t n;
};

static int print_results(const struct records *recs, const struct play *base,
                         const struct opts *o, struct columns *col, uw_error *err)
{
    for (size_t i = 0; i < recs->n; i++)
        for (uint64_t seed = 1; seed <= o->seeds; seed++) {
            struct play p = *base;
            struct score s = {0};
            p.seed = seed;
            table_progress(o->goal, "search", col->n, recs->n * o->seeds);
            if (o->earlier)
                p.earlier = &recs->items[(i + o->earlier - 1) % recs->n];
            int r = play(&recs->items[i], &p, &s, err);
            if (r < 0)
                return r;
            (void)printf("%s\n{\"curve\":", col->n ? "," : "");
            text_json(stdout, recs->items[i].name);
            (void)printf(",\"seed\":%" PRIu64 ",\"cap_w\":%.10g,\"regret\":%.9g,"
                         "\"regret_allowed\":%.9g,\"slowdown\":%.9g,\"excess\":%.9g,"
                         "\"saving\":%.9g,\"oracle_saving\":%.9g,"
                         "\"caps\":%u,\"windows\":%u,\"held_s\":%.6g,\"cost\":%.6g}",
                         seed, s.cap_w, s.regret, s.regret_allowed, s.slowdown, s.excess,
                         s.saving, s.oracle_saving, s.caps, s.windows, s.first_s, s.cost);
            col->regret[col->n] = s.regret;
            col->allowed[col->n] = s.regret_allowed;
            col->excess[col->n] = s.excess;
            col->broken += s.broken;
            col->slowdown[col->n++] = s.slowdown;
            col->caps += s.caps;
            col->windows += s.windows;
            col->caps_first += s.caps_first;
            col->windows_first += s.windows_first;
        }
    return 0;
}

static struct play base_of(const struct opts *o)
{
    return (struct play){.method = METHOD_SEARCH,
                         .noise = o->noise,
                         .memory_s = o->memory_s,
                         .correlation = o->correlation,
                         .headroom = o->headroom,
                         .binding = o->binding,
                         .looks = (unsigned)o->looks,
                         .prior = o->prior,
                         .trace = o->trace ? stderr : NULL};
}

static void print_summary(struct columns *col)
{
    struct stats a = stats_of(col->regret, col->n), b = stats_of(col->slowdown, col->n);
    struct stats f = stats_of(col->allowed, col->n), x = stats_of(col->excess, col->n);
    double n = (double)col->n;

    (void)printf("],\n\"summary\":{\"regret\":");
    stats_json(stdout, &a);
    (void)printf(",\"regret_allowed\":");
    stats_json(stdout, &f);
    (void)printf(",\"slowdown\":");
    stats_json(stdout, &b);
    (void)printf(",\"broken\":%.9g,\"excess\":{\"p99\":%.9g,\"max\":%.9g}",
                 (double)col->broken / n, quantile_of(col->excess, col->n, 0.99), x.max);
    (void)printf(
        ",\"caps\":{\"mean\":%.9g},\"windows\":{\"mean\":%.9g},"
        "\"until_held\":{\"caps\":{\"mean\":%.9g},\"windows\":{\"mean\":%.9g}}}}\n",
        col->caps / n, col->windows / n, col->caps_first / n, col->windows_first / n);
}

static int print_goal(const struct records *recs, const struct opts *o,
                      const struct goal *goal, uw_error *err)
{
    struct play base = base_of(o);
    size_t n = recs->n * o->seeds;
    auto_(mem_free) double *figures = calloc(4 * n + 1, sizeof *figures);
    struct columns col = {.regret = figures,
                          .allowed = figures + n,
                          .slowdown = figures + 2 * n,
                          .excess = figures + 3 * n};
    if (recs->n == 0 || !figures)
        return fail(err, -ENOMEM, "no memory for %zu curves x %" PRIu64 " seeds", recs->n,
                    o->seeds);

    base.goal = *goal;
    (void)printf("{\"results\":[");
    int r = print_results(recs, &base, o, &col, err);
    if (r < 0)
        return r;
    print_summary(&col);
    return 0;
}

static int print_table(const struct records *recs, const struct opts *o, uw_error *err)
{
    struct table_opts t = {
        .base = base_of(o), .goal = o->goal, .seeds = (unsigned)o->seeds};
    auto_(file_close) FILE *f = NULL;

    if (o->json && strcmp(o->json, "-") != 0) {
        f = fopen(o->json, "we");
        if (!f)
            return fail(err, -errno, "%s: %s", o->json, strerror(errno));
    }
    t.json = f ? f : o->json ? stdout : NULL;
    t.quiet = o->json && !f;
    return table_print(recs, &t, err);
}

static int complain(const uw_error *err, int status)
{
    (void)fprintf(stderr, "search: %s\n", err->text);
    return status;
}

int main(int argc, char **argv)
{
    auto_(records_fini) struct records recs = {0};
    struct opts o = {0};
    struct goal goal = {0};
    struct prior prior;
    uw_error err = {""};

    if (parse_opts(argc, argv, &o, &err) < 0) {
        (void)complain(&err, EXIT_USAGE);
        return usage();
    }
    if (o.goal && goal_parse(o.goal, &goal, &err) < 0)
        return complain(&err, EXIT_USAGE);
    if (o.prior_file) {
        if (prior_read(o.prior_file, &prior, &err) < 0)
            return complain(&err, EXIT_USAGE);
        o.prior = &prior;
    }
    if (records_read(o.curves, &recs, &err) < 0)
        return complain(&err, EXIT_USAGE);
    if (o.runs)
        o.seeds = (o.runs + recs.n - 1) / recs.n;
    int r = o.table ? print_table(&recs, &o, &err) : print_goal(&recs, &o, &goal, &err);
    if (r == 0 && fflush(stdout) != 0)
        r = fail(&err, -errno, "standard output: %s", strerror(errno));
    return r < 0 ? complain(&err, EXIT_FAILURE) : 0;
}
