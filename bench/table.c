#include "table.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "stats.h"

static const char *const goals[] = {"energy",        "edp",          "eds:2",
                                    "eds:1.5",       "cost:0.5",     "slowdown:1.02",
                                    "slowdown:1.05", "slowdown:1.1", "slowdown:1.2"};

static const struct {
    const char *name;
    enum method method;
    double share;
    bool looks; /* with an hour of its hold */
} methods[] = {
    {"search", METHOD_SEARCH, 0, false},
    {"search, 1 h", METHOD_SEARCH, 0, true},
    {"Zeus' scan 25 W", METHOD_SCAN, 0, false},
    {"golden section", METHOD_GOLDEN, 0, false},
    {"golden 0.5-1.02", METHOD_GOLDEN_NEAR, 0, false},
    {"hill climb", METHOD_CLIMB, 0, false},
    {"static 0.90", METHOD_STATIC, 0.90, false},
    {"static 0.85", METHOD_STATIC, 0.85, false},
    {"static 0.80", METHOD_STATIC, 0.80, false},
    {"static 0.75", METHOD_STATIC, 0.75, false},
};

struct cell {
    struct stats regret, allowed, slowdown, over;
    double over_p99;
    double within, saving, oracle_saving, caps, windows, cost,
        first_s; /* shares, means */
    size_t broken, n;
};

void table_progress(const char *goal, const char *method, size_t done, size_t all)
{
    if (done % (all / 100 + 1) != 0 || !isatty(STDERR_FILENO))
        return;
    (void)fprintf(stderr, "\r\033[K%s, %s: %zu of %zu runs\r", goal, method, done, all);
}

/* Plays a row with the method and goal of `base`; the names are for the progress output.
 */
static int fill(const struct records *recs, const struct play *base, unsigned seeds,
                const char *names[2], struct cell *ret, uw_error *err)
{
    struct cell c = {.n = recs->n * seeds};
    auto_(mem_free) double *regret = calloc(c.n, sizeof *regret);
    auto_(mem_free) double *allowed = calloc(c.n, sizeof *allowed);
    auto_(mem_free) double *slow = calloc(c.n, sizeof *slow);
    auto_(mem_free) double *over = calloc(c.n, sizeof *over);
    if (!regret || !allowed || !slow || !over)
        return fail(err, -ENOMEM, "no memory for %zu results", c.n);

    for (size_t i = 0; i < c.n; i++) {
        struct play p = *base;
        struct score s = {0};
        p.seed = 1 + i % seeds;
        table_progress(names[0], names[1], i, c.n);
        int r = play(&recs->items[i / seeds], &p, &s, err);
        if (r < 0)
            return r;
        double n = (double)c.n;
        regret[i] = s.regret;
        allowed[i] = s.regret_allowed;
        slow[i] = s.slowdown;
        c.within += (s.regret <= 0.01 && !s.broken) / n;
        c.saving += s.saving / n;
        c.oracle_saving += s.oracle_saving / n;
        c.caps += s.caps / n;
        c.windows += s.windows / n;
        c.cost += s.cost / n;
        c.first_s += s.first_s / n;
        over[i] = s.excess;
        c.broken += s.broken;
    }
    c.regret = stats_of(regret, c.n);
    c.allowed = stats_of(allowed, c.n);
    c.slowdown = stats_of(slow, c.n);
    c.over = stats_of(over, c.n);
    c.over_p99 = quantile_of(over, c.n, 0.99);
    *ret = c;
    return 0;
}

static void print_row(const char *name, const struct cell *c)
{
    (void)printf("  %-15s %6.1f %7.2f %7.2f %7.2f %7.2f %7.2f %8.1f %6.1f %6.2f %6.2f "
                 "%8.2f %6.2f %5.2f %6.1f %5.2f %6.2f\n",
                 name, 100 * c->within, 100 * c->regret.mean, 100 * c->regret.p95,
                 100 * c->regret.max, 100 * c->allowed.mean, 100 * c->allowed.max,
                 100 * c->saving, 100 * c->saving / c->oracle_saving, c->slowdown.mean,
                 c->slowdown.max, c->caps, c->windows, 100 * c->cost,
                 100.0 * (double)c->broken / (double)c->n, 100 * c->over_p99,
                 100 * c->over.max);
}

static void json_row(FILE *f, const char *name, const struct cell *c)
{
    (void)fprintf(f, "{\"method\":");
    text_json(f, name);
    (void)fprintf(f, ",\"within_1pct\":%.6g,\"regret\":", c->within);
    stats_json(f, &c->regret);
    (void)fprintf(f, ",\"regret_allowed\":");
    stats_json(f, &c->allowed);
    (void)fprintf(f, ",\"slowdown\":");
    stats_json(f, &c->slowdown);
    (void)fprintf(
        f,
        ",\"saving\":{\"mean\":%.9g},\"oracle_saving\":{\"mean\":%.9g},"
        "\"caps\":{\"mean\":%.6g},\"windows\":{\"mean\":%.6g},\"held_s\":{\"mean\":%.6g},"
        "\"cost_hour\":%.6g,"
        "\"broken\":%.6g,\"excess_p99\":%.6g,\"worst_excess\":%.6g}",
        c->saving, c->oracle_saving, c->caps, c->windows, c->first_s, c->cost,
        (double)c->broken / (double)c->n, c->over_p99, c->over.max);
}

static int print_goal(const struct records *recs, const struct table_opts *opts,
                      const char *text, uw_error *err)
{
    struct play p = opts->base;
    int r = goal_parse(text, &p.goal, err);
    if (r < 0)
        return r;

    if (!opts->quiet)
        (void)printf("%s\n", text);
    if (opts->json)
        (void)fprintf(opts->json, "{\"goal\":\"%s\",\"methods\":[", text);
    for (size_t m = 0; m < n_elements(methods); m++) {
        struct cell c = {0};
        if (methods[m].looks && !opts->base.looks)
            continue; /* same as without looks */
        p.looks = methods[m].looks ? opts->base.looks : 0;
        p.method = methods[m].method;
        p.share = methods[m].share;
        r = fill(recs, &p, p.method == METHOD_STATIC ? 1 : opts->seeds,
                 (const char *[]){text, methods[m].name}, &c, err);
        if (r < 0)
            return r;
        if (!opts->quiet)
            print_row(methods[m].name, &c);
        if (opts->json) {
            (void)fputs(m ? "," : "", opts->json);
            json_row(opts->json, methods[m].name, &c);
        }
    }
    if (opts->json)
        (void)fprintf(opts->json, "]}");
    return 0;
}

static void print_head(const struct records *recs, const struct table_opts *opts)
{
    const struct play *p = &opts->base;

    (void)printf("%zu curves, noise %g", recs->n, p->noise);
    if (p->memory_s > 0)
        (void)printf(" (memory %g s, correlation %g)", p->memory_s, p->correlation);
    (void)printf(", %u seed%s\n"
                 "                  within   regret %%                 floor kept    "
                 "  saving of "
                 "oracle's slowdown      caps windows cost  bound overshoot %%\n"
                 "                   1 %%    mean     p95     max    mean     max    "
                 " mean %%     "
                 "%%   mean    max     mean   mean  %%/h  broken %%  p99  worst\n",
                 opts->seeds, opts->seeds == 1 ? "" : "s");
}

int table_print(const struct records *recs, const struct table_opts *opts, uw_error *err)
{
    size_t n = opts->goal ? 1 : n_elements(goals);

    if (!opts->quiet)
        print_head(recs, opts);
    if (opts->json)
        (void)fprintf(opts->json,
                      "{\"curves\":%zu,\"noise\":%g,\"memory_s\":%g,\"correlation\":%g,"
                      "\"seeds\":%u,\"goals\":[",
                      recs->n, opts->base.noise, opts->base.memory_s,
                      opts->base.correlation, opts->seeds);
    for (size_t g = 0; g < n; g++) {
        if (opts->json && g)
            (void)fputc(',', opts->json);
        int r = print_goal(recs, opts, opts->goal ? opts->goal : goals[g], err);
        if (r < 0)
            return r;
    }
    if (opts->json)
        (void)fprintf(opts->json, "]}\n");
    return 0;
}
