/* How good is the search?  Plays the product's search, with its safety rules on,
 * on recorded curves.
 *
 *   search --curves FILE.csv --goal GOAL [--noise SD] [--seeds N] [--looks N]
 *   search --curves FILE.csv --table [--noise SD] [--seeds N] [--looks N] [--json FILE|-]
 *
 * Between the recorded caps a curve is a monotone cubic in log time and in mean
 * power; choices are whole watts; reference and original are the highest cap,
 * which also stands for Pmax in cost:ETA.  Noise multiplies time and energy of
 * each window independently; the search is told its size, as a run tells it the
 * scatter of the steps in a window.  What was found is held for the rest of an hour, with
 * looks into gaps as the daemon makes them in a job of an hour; --looks: no more than so
 * many, 0 stops where it holds first; the table has a row for each.  Oracle and regret
 * are of the curve without noise and over its whole range; regret_allowed is against an
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
#define HEADROOM_MAX 10.0

struct opts {
    const char *curves, *goal, *json, *prior_file;
    const struct prior *prior; /* read from prior_file; NULL: the built-in one */
    double noise, headroom;
    uint64_t seeds, looks;
    uint64_t earlier; /* 0: none, n: the search remembers the curve n - 1 further on */
    bool table, trace, binding;
};

static int usage(void)
{
    (void)fputs("usage: search --curves FILE.csv --goal GOAL [--noise SD] [--seeds N]\n"
                "       search --curves FILE.csv --table [--noise SD] [--seeds N] "
                "[--json FILE|-]\n"
                "       [--looks N]\n",
                stderr);
    return EXIT_USAGE;
}

static int parse_option(int c, const char *arg, struct opts *o, uw_error *err)
{
    int r = 0;

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
        r = parse_double(arg, &o->noise, err);
        if (r == 0 && !(o->noise >= 0 && o->noise <= NOISE_MAX))
            r = fail(err, -ERANGE, "%s is outside 0..%g", arg, NOISE_MAX);
        return r < 0 ? fail_in(err, r, "--noise") : 0;
    case 'h':
        r = parse_double(arg, &o->headroom, err);
        if (r == 0 && !(o->headroom >= 1 && o->headroom <= HEADROOM_MAX))
            r = fail(err, -ERANGE, "%s is outside 1..%g", arg, HEADROOM_MAX);
        return r < 0 ? fail_in(err, r, "--headroom") : 0;
    case 'b':
        o->binding = true;
        break;
    case 'e':
        o->earlier = 1 + (uint64_t)(strcmp(arg, "other") == 0);
        if (o->earlier == 1 && strcmp(arg, "same") != 0)
            return fail(err, -EINVAL, "--history %s is neither same nor other", arg);
        break;
    case 'l':
        r = parse_u64(arg, &o->looks, err);
        if (r == 0 && o->looks > GAP_PROBES_MAX)
            r = fail(err, -ERANGE, "%s is outside 0..%d", arg, GAP_PROBES_MAX);
        return r < 0 ? fail_in(err, r, "--looks") : 0;
    case 's':
        r = parse_u64(arg, &o->seeds, err);
        if (r == 0 && (o->seeds < 1 || o->seeds > SEEDS_MAX))
            r = fail(err, -ERANGE, "%s is outside 1..%d", arg, SEEDS_MAX);
        return r < 0 ? fail_in(err, r, "--seeds") : 0;
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
        {"headroom", required_argument, NULL, 'h'},
        {"binding", no_argument, NULL, 'b'},
        {"seeds", required_argument, NULL, 's'},
        {"looks", required_argument, NULL, 'l'},
        {"history", required_argument, NULL, 'e'},
        {"json", required_argument, NULL, 'j'},
        {"prior", required_argument, NULL, 'p'},
        {"trace", no_argument, NULL, 'v'},
        {"table", no_argument, NULL, 't'},
        {0},
    };
    struct opts o = {.seeds = 1, .looks = LOOKS};
    int c;

    while ((c = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
        int r = parse_option(c, optarg, &o, err);
        if (r < 0)
            return r;
    }
    if (optind < argc)
        return fail(err, -EINVAL, "argument '%s' is one too many", argv[optind]);
    if (!o.curves || (!o.goal && !o.table) || (o.goal && o.table))
        return fail(err, -EINVAL,
                    "--curves FILE and one of --goal GOAL, --table: missing");
    *ret = o;
    return 0;
}

struct columns {
    double *regret, *allowed, *slowdown;
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
            if (o->earlier)
                p.earlier = &recs->items[(i + o->earlier - 1) % recs->n];
            int r = play(&recs->items[i], &p, &s, err);
            if (r < 0)
                return r;
            (void)printf("%s\n{\"curve\":", col->n ? "," : "");
            text_json(stdout, recs->items[i].name);
            (void)printf(",\"seed\":%" PRIu64 ",\"cap_w\":%.10g,\"regret\":%.9g,"
                         "\"regret_allowed\":%.9g,\"slowdown\":%.9g,\"saving\":%.9g,"
                         "\"oracle_saving\":%.9g,"
                         "\"caps\":%u,\"windows\":%u,\"held_s\":%.6g,\"cost\":%.6g}",
                         seed, s.cap_w, s.regret, s.regret_allowed, s.slowdown, s.saving,
                         s.oracle_saving, s.caps, s.windows, s.first_s, s.cost);
            col->regret[col->n] = s.regret;
            col->allowed[col->n] = s.regret_allowed;
            col->slowdown[col->n++] = s.slowdown;
            col->caps += s.caps;
            col->windows += s.windows;
            col->caps_first += s.caps_first;
            col->windows_first += s.windows_first;
        }
    return 0;
}

static int print_goal(const struct records *recs, const struct opts *o,
                      const struct goal *goal, uw_error *err)
{
    struct play base = {.method = METHOD_SEARCH,
                        .goal = *goal,
                        .noise = o->noise,
                        .headroom = o->headroom,
                        .binding = o->binding,
                        .looks = (unsigned)o->looks,
                        .prior = o->prior,
                        .trace = o->trace ? stderr : NULL};
    auto_(mem_free) double *regret = calloc(recs->n * o->seeds + 1, sizeof *regret);
    auto_(mem_free) double *allowed = calloc(recs->n * o->seeds + 1, sizeof *allowed);
    auto_(mem_free) double *slowdown = calloc(recs->n * o->seeds + 1, sizeof *slowdown);
    struct columns col = {.regret = regret, .allowed = allowed, .slowdown = slowdown};
    if (recs->n == 0 || !regret || !allowed || !slowdown)
        return fail(err, -ENOMEM, "no memory for %zu curves x %" PRIu64 " seeds", recs->n,
                    o->seeds);

    (void)printf("{\"results\":[");
    int r = print_results(recs, &base, o, &col, err);
    if (r < 0)
        return r;
    struct stats a = stats_of(regret, col.n), b = stats_of(slowdown, col.n);
    struct stats f = stats_of(allowed, col.n);
    (void)printf("],\n\"summary\":{\"regret\":");
    stats_json(stdout, &a);
    (void)printf(",\"regret_allowed\":");
    stats_json(stdout, &f);
    (void)printf(",\"slowdown\":");
    stats_json(stdout, &b);
    double n = (double)col.n;
    (void)printf(
        ",\"caps\":{\"mean\":%.9g},\"windows\":{\"mean\":%.9g},"
        "\"until_held\":{\"caps\":{\"mean\":%.9g},\"windows\":{\"mean\":%.9g}}}}\n",
        col.caps / n, col.windows / n, col.caps_first / n, col.windows_first / n);
    return 0;
}

static int print_table(const struct records *recs, const struct opts *o, uw_error *err)
{
    struct table_opts t = {.noise = o->noise,
                           .seeds = (unsigned)o->seeds,
                           .looks = (unsigned)o->looks,
                           .prior = o->prior};
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
    int r = o.table ? print_table(&recs, &o, &err) : print_goal(&recs, &o, &goal, &err);
    if (r == 0 && fflush(stdout) != 0)
        r = fail(&err, -errno, "standard output: %s", strerror(errno));
    return r < 0 ? complain(&err, EXIT_FAILURE) : 0;
}
