/* How good is slack (core/slack)?  Plays the product's state machine, with all its
 * checks, on jobs whose boards wait for each other.
 *
 *   slack [--pipes PIPES.csv [--local LOCAL.csv]] [--noise SD] [--seeds N]
 *         [--windows N] [--json FILE|-] [--table] [--trace]
 *
 * Three tables: simulated boards of one model that differ, under a node budget; the same
 * without one; and the recorded pipeline jobs of tools/zeus-pipes.  A window is a unit of
 * work (an iteration); its time errs by the noise, and each board's power by as much,
 * independently; --windows is the length of a job, its search included.  Time and energy
 * are ratios to the same work at the first caps, without noise.  --trace tells each step
 * of the first seed on stderr.  Exit status: 0 done, 1 failed, 2 bad arguments or values.
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
#include "pipes.h"
#include "slackplay.h"
#include "spread.h"
#include "stats.h"

enum { SEEDS_MAX = 10000, CLIENT_WINDOWS_MAX = 1000000, EXIT_USAGE = 2 };
#define NOISE_MAX 0.3

struct opts {
    const char *pipes, *local, *json;
    double noise;
    uint64_t seeds, windows;
    bool table, trace;
};

/* Over all seeds. */
struct row {
    double saving, slowdown, worst, over; /* whole jobs; over: share of them above 1 % */
    double held_saving, held_slowdown, held_worst;
    double to_hold, tried, undone, gave_back;
};

static int usage(void)
{
    (void)fputs("usage: slack [--pipes PIPES.csv [--local LOCAL.csv]] [--noise SD] "
                "[--seeds N]\n             [--windows N] [--json FILE|-] [--table] "
                "[--trace]\n",
                stderr);
    return EXIT_USAGE;
}

static int play_seeds(const struct slack_world *w, struct slack_play *p,
                      const struct opts *o, struct row *ret, uw_error *err)
{
    struct row sum = {.worst = -1, .held_worst = -1};
    double n = (double)o->seeds;

    p->noise = o->noise;
    p->windows = (unsigned)o->windows;
    for (uint64_t k = 0; k < o->seeds; k++) {
        struct slack_score s;
        p->seed = 1000 + k;
        p->trace = o->trace && k == 0 ? stderr : NULL;
        int r = slack_play(w, p, &s, err);
        if (r < 0)
            return r;
        sum.saving += (1 - s.energy) / n;
        sum.slowdown += (s.time - 1) / n;
        sum.worst = fmax(sum.worst, s.time - 1);
        sum.over += (s.time > 1 + p->allowance) / n;
        sum.held_saving += (1 - s.held_energy) / n;
        sum.held_slowdown += (s.held_time - 1) / n;
        sum.held_worst = fmax(sum.held_worst, s.held_time - 1);
        sum.to_hold += s.result.hold_windows / n;
        sum.tried += s.result.tried / n;
        sum.undone += s.result.undone / n;
        sum.gave_back += s.result.gave_back / n;
    }
    *ret = sum;
    return 0;
}

static void row_json(FILE *f, const struct row *r)
{
    (void)fprintf(f,
                  "\"saving\":%.6g,\"slowdown\":%.6g,\"slowdown_worst\":%.6g,"
                  "\"over_share\":%.6g,\"held_saving\":%.6g,\"held_slowdown\":%.6g,"
                  "\"held_slowdown_worst\":%.6g,\"windows_to_hold\":%.6g,\"steps\":%.6g,"
                  "\"undone\":%.6g,\"gave_back\":%.6g}",
                  r->saving, r->slowdown, r->worst, r->over, r->held_saving,
                  r->held_slowdown, r->held_worst, r->to_hold, r->tried, r->undone,
                  r->gave_back);
}

/* ---- simulated boards ---- */

struct case_ {
    const char *board, *workload;
};
static const struct case_ cases[] = {
    {"rtx6000", "vgg19"},  {"rtx6000", "resnet152"}, {"v100", "vgg19"},
    {"v100", "resnet152"}, {"a100", "resnet152"},    {"h100", "vgg19"},
};
static const double budgets[] = {0.6, 0.7, 0.8};

static int budget_row(const struct case_ *c, enum spread_kind kind, double share,
                      const struct opts *o, FILE *json, double *ret_gain, uw_error *err)
{
    const struct plant_board *board = plant_board_find(c->board);
    uint32_t start = (uint32_t)(share * board->default_mw / MW_PER_W) * MW_PER_W;
    struct spread_opts so = {c->board, c->workload, kind, start};
    auto_(spread_free) struct spread *s = NULL;
    struct slack_world w;
    struct slack_play p = {.budget_mw = (uint64_t)start * SPREAD_BOARDS};
    struct row row;

    int r = spread_new(&so, &s, err);
    if (r < 0)
        return r;
    spread_world(s, &w);
    for (size_t i = 0; i < w.n; i++)
        p.start_mw[i] = start;
    r = play_seeds(&w, &p, o, &row, err);
    if (r < 0)
        return r;
    double best = spread_best_time(s, p.budget_mw);
    *ret_gain = 1 / (1 + row.slowdown) - 1;
    if (o->table)
        printf(
            "| %s | %s | %s | %.0f | %.1f | %.1f | %.1f | %.1f | %.0f | %.1f | %.1f |\n",
            c->board, c->workload, spread_names[kind], 1e-3 * (double)p.budget_mw,
            100 * *ret_gain, 100 * (1 / (1 + row.held_slowdown) - 1),
            100 * (1 / best - 1), 100 * row.saving, row.to_hold, row.tried, row.undone);
    if (json) {
        (void)fprintf(json,
                      "{\"board\":\"%s\",\"workload\":\"%s\",\"spread\":\"%s\","
                      "\"budget_w\":%.6g,\"faster\":%.6g,\"faster_best\":%.6g,",
                      c->board, c->workload, spread_names[kind],
                      1e-3 * (double)p.budget_mw, *ret_gain, 1 / best - 1);
        row_json(json, &row);
    }
    return 0;
}

static int budget_table(const struct opts *o, FILE *json, uw_error *err)
{
    if (o->table)
        (void)puts("| board | workload | spread | budget W | faster % | held | best | "
                   "energy saved % | windows to hold | steps | undone |\n"
                   "|---|---|---|---|---|---|---|---|---|---|---|");
    if (json)
        (void)fputs("\"budget\":[", json);
    for (int kind = 0; kind < SPREAD_KINDS; kind++) {
        double sum = 0, least = INFINITY, gain;
        size_t n = 0;
        for (size_t i = 0; i < n_elements(cases); i++)
            for (size_t k = 0; k < n_elements(budgets); k++, n++) {
                if (json && (kind || i || k))
                    (void)fputc(',', json);
                int r = budget_row(&cases[i], (enum spread_kind)kind, budgets[k], o, json,
                                   &gain, err);
                if (r < 0)
                    return r;
                sum += gain;
                least = fmin(least, gain);
            }
        if (o->table)
            printf("| | | %s: mean %.1f, least %.1f | | | | | | | | |\n",
                   spread_names[kind], 100 * sum / (double)n, 100 * least);
    }
    if (json)
        (void)fputs("],", json);
    return 0;
}

static int free_row(const struct case_ *c, enum spread_kind kind, const struct opts *o,
                    FILE *json, uw_error *err)
{
    const struct plant_board *board = plant_board_find(c->board);
    struct spread_opts so = {c->board, c->workload, kind, board->default_mw};
    auto_(spread_free) struct spread *s = NULL;
    struct slack_world w;
    struct slack_play p = {.allowance = SLACK_ALLOWANCE};
    struct slack_best uniform, best;
    struct row row;

    int r = spread_new(&so, &s, err);
    if (r < 0)
        return r;
    spread_world(s, &w);
    for (size_t i = 0; i < w.n; i++)
        p.start_mw[i] = board->default_mw;
    r = play_seeds(&w, &p, o, &row, err);
    if (r < 0)
        return r;
    slack_uniform(&w, &p, &uniform);
    slack_oracle(&w, &p, &best);
    if (o->table)
        printf("| %s | %s | %s | %.1f | %.1f | %.1f | %.1f | %.2f | %.2f | %.0f | %.0f | "
               "%.1f | %.1f |\n",
               c->board, c->workload, spread_names[kind], 100 * (1 - uniform.energy),
               100 * (1 - best.energy), 100 * row.saving, 100 * row.held_saving,
               100 * row.slowdown, 100 * row.worst, 100 * row.over, row.to_hold,
               row.tried, row.undone);
    if (json) {
        (void)fprintf(json,
                      "{\"board\":\"%s\",\"workload\":\"%s\",\"spread\":\"%s\","
                      "\"uniform_saving\":%.6g,\"oracle_saving\":%.6g,",
                      c->board, c->workload, spread_names[kind], 1 - uniform.energy,
                      1 - best.energy);
        row_json(json, &row);
    }
    return 0;
}

static int free_table(const struct opts *o, FILE *json, uw_error *err)
{
    if (o->table)
        (void)puts(
            "\n| board | workload | spread | uniform cap saves % | best | slack | "
            "held | slowdown % | worst | over 1 %: % of jobs | windows to hold | "
            "steps | undone |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    if (json)
        (void)fputs("\"free\":[", json);
    for (int kind = 0; kind < SPREAD_KINDS; kind++)
        for (size_t i = 0; i < n_elements(cases); i++) {
            if (json && (kind || i))
                (void)fputc(',', json);
            int r = free_row(&cases[i], (enum spread_kind)kind, o, json, err);
            if (r < 0)
                return r;
        }
    if (json)
        (void)fputs("],", json);
    return 0;
}

/* ---- recorded pipelines ---- */

static double run_pipe(void *of, const uint32_t *cap_mw, double *ret_energy_j)
{
    const struct pipe_job *j = of;
    double cap_w[PIPE_RANKS_MAX];

    for (size_t k = 0; k < j->n_ranks; k++)
        cap_w[k] = w_of_mw(cap_mw[k]);
    return pipe_iteration(j, cap_w, ret_energy_j);
}

struct pipe_row {
    struct row row;
    double uniform, best;
};

static int pipe_row(struct pipe_job *j, const struct opts *o, FILE *json,
                    struct pipe_row *ret, uw_error *err)
{
    struct slack_world w = {.n = j->n_ranks, .run = run_pipe, .of = j};
    struct slack_play p = {.allowance = SLACK_ALLOWANCE};
    struct slack_best uniform, best;

    for (size_t k = 0; k < j->n_ranks; k++) {
        w.least_mw[k] = mw_of_w(j->limit_w[0]);
        w.most_mw[k] = p.start_mw[k] = mw_of_w(j->limit_w[j->n_limits - 1]);
    }
    int r = play_seeds(&w, &p, o, &ret->row, err);
    if (r < 0)
        return r;
    slack_uniform(&w, &p, &uniform);
    slack_oracle(&w, &p, &best);
    ret->uniform = 1 - uniform.energy;
    ret->best = 1 - best.energy;
    const struct row *row = &ret->row;
    if (o->table)
        printf(
            "| %s | %zu | %.1f | %.1f | %.1f | %.1f | %.2f | %.2f | %.0f | %.0f | %.1f | "
            "%.1f | %.1f |\n",
            j->name, j->n_ranks, 100 * ret->uniform, 100 * ret->best, 100 * row->saving,
            100 * row->held_saving, 100 * row->slowdown, 100 * row->worst,
            100 * row->over, row->to_hold, row->tried, row->undone, row->gave_back);
    if (json) {
        (void)fputs("{\"job\":", json);
        text_json(json, j->name);
        (void)fprintf(json,
                      ",\"ranks\":%zu,\"transfer_s\":%.6g,\"uniform_saving\":%.6g,"
                      "\"oracle_saving\":%.6g,",
                      j->n_ranks, j->transfer_s, ret->uniform, ret->best);
        row_json(json, row);
    }
    return 0;
}

static int pipes_rows(struct pipe_jobs *jobs, const struct opts *o, FILE *json,
                      uw_error *err)
{
    struct pipe_row row, sum = {{0}, 0, 0};
    double n = (double)jobs->n;

    for (size_t i = 0; i < jobs->n; i++) {
        if (json && i)
            (void)fputc(',', json);
        int r = pipe_row(&jobs->items[i], o, json, &row, err);
        if (r < 0)
            return r;
        sum.uniform += row.uniform / n;
        sum.best += row.best / n;
        sum.row.saving += row.row.saving / n;
        sum.row.held_saving += row.row.held_saving / n;
        sum.row.slowdown += row.row.slowdown / n;
        sum.row.worst = fmax(sum.row.worst, row.row.worst);
        sum.row.over += row.row.over / n;
        sum.row.to_hold += row.row.to_hold / n;
    }
    if (o->table)
        printf(
            "| mean | | %.1f | %.1f | %.1f | %.1f | %.2f | %.2f | %.1f | %.0f | | | |\n",
            100 * sum.uniform, 100 * sum.best, 100 * sum.row.saving,
            100 * sum.row.held_saving, 100 * sum.row.slowdown, 100 * sum.row.worst,
            100 * sum.row.over, sum.row.to_hold);
    if (json)
        (void)fprintf(json,
                      "],\"pipes_mean\":{\"uniform_saving\":%.6g,\"oracle_saving\":%.6g,"
                      "\"saving\":%.6g,\"slowdown\":%.6g,\"over_share\":%.6g},",
                      sum.uniform, sum.best, sum.row.saving, sum.row.slowdown,
                      sum.row.over);
    return 0;
}

static int pipes_table(const struct opts *o, FILE *json, uw_error *err)
{
    auto_(pipes_fini) struct pipe_jobs jobs = {0};
    struct pipe_fit fit = {0};

    int r = pipes_read(o->pipes, &jobs, err);
    if (r >= 0 && o->local)
        r = pipes_fit(o->local, &jobs, &fit, err);
    if (r < 0)
        return r;
    if (o->table)
        (void)puts("\n| job | ranks | uniform cap saves % | best | slack | held | "
                   "slowdown % | worst | over 1 %: % of jobs | windows to hold | steps | "
                   "undone | gave back "
                   "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    if (json)
        (void)fputs("\"pipes\":[", json);
    r = pipes_rows(&jobs, o, json, err);
    if (r < 0)
        return r;
    if (o->table && fit.runs > 0)
        printf(
            "\nThe model against %zu measured runs with other limits for each stage: "
            "time %.1f %% off on the mean (bias %+.1f %%, worst %.1f %%), energy %.1f %% "
            "(worst %.1f %%).\n",
            fit.runs, 100 * fit.time_mean, 100 * fit.time_bias, 100 * fit.time_worst,
            100 * fit.energy_mean, 100 * fit.energy_worst);
    if (json)
        (void)fprintf(json,
                      "\"model\":{\"runs\":%zu,\"time_mean\":%.6g,\"time_bias\":%.6g,"
                      "\"time_worst\":%.6g,\"energy_mean\":%.6g,\"energy_worst\":%.6g},",
                      fit.runs, fit.time_mean, fit.time_bias, fit.time_worst,
                      fit.energy_mean, fit.energy_worst);
    return 0;
}

/* ---- the command ---- */

static int parse_option(int c, struct opts *o, uw_error *err)
{
    switch (c) {
    case 'p':
        o->pipes = optarg;
        return 0;
    case 'l':
        o->local = optarg;
        return 0;
    case 'j':
        o->json = optarg;
        return 0;
    case 't':
        o->table = true;
        return 0;
    case 'v':
        o->trace = true;
        return 0;
    case 'n':
        return parse_double(optarg, &o->noise, err);
    case 's':
        return parse_u64(optarg, &o->seeds, err);
    default:
        return parse_u64(optarg, &o->windows, err);
    }
}

static int parse(int argc, char **argv, struct opts *o, uw_error *err)
{
    static const struct option names[] = {
        {"pipes", required_argument, NULL, 'p'},
        {"local", required_argument, NULL, 'l'},
        {"json", required_argument, NULL, 'j'},
        {"table", no_argument, NULL, 't'},
        {"trace", no_argument, NULL, 'v'},
        {"noise", required_argument, NULL, 'n'},
        {"seeds", required_argument, NULL, 's'},
        {"windows", required_argument, NULL, 'w'},
        {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        int r = c == '?' ? fail(err, -EINVAL, "no such option") : parse_option(c, o, err);
        if (r < 0)
            return r;
    }
    if (optind < argc)
        return fail(err, -EINVAL, "'%s' is no option", argv[optind]);
    if (!(o->noise >= 0 && o->noise <= NOISE_MAX))
        return fail(err, -ERANGE, "--noise %g is outside 0..%g", o->noise, NOISE_MAX);
    if (o->seeds < 1 || o->seeds > SEEDS_MAX || o->windows < 1 ||
        o->windows > CLIENT_WINDOWS_MAX)
        return fail(err, -ERANGE, "--seeds is 1..%d, --windows 1..%d", SEEDS_MAX,
                    CLIENT_WINDOWS_MAX);
    return 0;
}

static int tables(const struct opts *o, uw_error *err)
{
    FILE *json = NULL;

    if (o->json)
        json = strcmp(o->json, "-") == 0 ? stdout : fopen(o->json, "we");
    if (o->json && !json)
        return fail(err, -errno, "%s: %s", o->json, strerror(errno));
    if (json)
        (void)fputc('{', json);
    int r = budget_table(o, json, err);
    if (r >= 0)
        r = free_table(o, json, err);
    if (r >= 0 && o->pipes)
        r = pipes_table(o, json, err);
    if (r >= 0 && json)
        (void)fprintf(json,
                      "\"noise\":%.6g,\"seeds\":%" PRIu64 ",\"windows\":%" PRIu64 "}\n",
                      o->noise, o->seeds, o->windows);
    if (json && json != stdout && fclose(json) != 0 && r >= 0)
        r = fail(err, -errno, "%s: %s", o->json, strerror(errno));
    return r;
}

int main(int argc, char **argv)
{
    struct opts o = {.noise = 0.01, .seeds = 5, .windows = 1000};
    uw_error err;

    if (parse(argc, argv, &o, &err) < 0) {
        (void)fprintf(stderr, "slack: %s\n", err.text);
        return usage();
    }
    if (!o.json)
        o.table = true;
    if (tables(&o, &err) < 0) {
        (void)fprintf(stderr, "slack: %s\n", err.text);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
