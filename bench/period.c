/* The iteration period from telemetry: of recorded traces, and how good it is on
 * simulated ones whose period is known.
 *
 *     period --trace FILE.csv|FOLDER
 *     period --self [--seeds N] [--first SEED] [--only SHAPE|one|boards] [--blind]
 *            [--json FILE|-] [-v]
 *
 * Below a confidence of 0.7 a period is unknown.  --blind: the estimator is not told what
 * sensor it hears, as with recorded traces.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "follow.h"
#include "scenes.h"
#include "stats.h"
#include "tracefile.h"

/* ---- recorded traces ---- */

static void print_number(const char *key, bool known, double v)
{
    if (known)
        (void)printf("\"%s\":%.6g", key, v);
    else
        (void)printf("\"%s\":null", key);
}

static int trace_file(const char *path, struct job_phase *ret, uw_error *err)
{
    auto_(tracefile_fini) struct tracefile t = {0};
    int r = tracefile_read(path, &t, err);

    if (r < 0)
        return r;
    if (t.n == 0) {
        *ret = (struct job_phase){.why = PERIOD_FEW};
        return 0;
    }
    return follow(&(struct heard){t.items, t.n}, 1, NULL, ret, err);
}

/* error: the error that stopped reading of the file; NULL: none. */
static void print_follow(const struct job_phase *f, const char *error)
{
    bool known = f->why == PERIOD_FOUND;

    (void)printf("{");
    print_number("period_s", known, f->period_s);
    (void)printf(",\"confidence\":%.3g,", known ? f->confidence : 0);
    print_number("periods_needed", known && f->periods_needed > 0, f->periods_needed);
    (void)printf(",");
    print_number("rse", known, f->rse);
    (void)printf(",\"why\":");
    text_json(stdout, error ? error : why_word(f->why));
    (void)printf("}");
}

static int is_csv(const struct dirent *e)
{
    size_t n = strlen(e->d_name);

    return n > 4 && strcmp(e->d_name + n - 4, ".csv") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int trace_folder(const char *path, uw_error *err)
{
    struct dirent **names = NULL;
    int n = scandir(path, &names, is_csv, by_name), r = 0, known = 0;

    if (n < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    (void)printf("{");
    for (int i = 0; i < n; i++) {
        auto_(mem_free) char *file = NULL;
        struct job_phase f = {.why = PERIOD_FEW};
        uw_error why = {0};
        int one = asprintf(&file, "%s/%s", path, names[i]->d_name) < 0
                      ? fail(&why, -ENOMEM, "no memory")
                      : trace_file(file, &f, &why);
        (void)printf("%s\n", i ? "," : "");
        text_json(stdout, names[i]->d_name);
        (void)printf(":");
        print_follow(&f, one < 0 ? why.text : NULL);
        known += f.why == PERIOD_FOUND;
        if (one < 0 && r == 0)
            r = fail(err, one, "%s", why.text);
        free(names[i]);
    }
    free(names);
    (void)printf("\n}\n");
    (void)fprintf(stderr, "%d traces, %d with a period, %d unknown\n", n, known,
                  n - known);
    return r;
}

static int trace(const char *path, uw_error *err)
{
    struct stat st;
    struct job_phase f;

    if (stat(path, &st) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return trace_folder(path, err);
    int r = trace_file(path, &f, err);
    if (r == 0) {
        print_follow(&f, NULL);
        (void)printf("\n");
    }
    return r;
}

/* ---- simulated ones ---- */

struct options {
    const char *trace, *only, *json;
    bool self, verbose, blind;
    unsigned seeds, first; /* number of seeds and the first one */
};

static FILE *table; /* human-readable output */

static const char *const generations[] = {"kepler", "pascal", "volta",          "turing",
                                          "ga100",  "ampere", "hopper-instant", "hopper"};

/* A scene drawn from the seed, except its shape and generation. */
static struct scene draw(enum shape shape, const char *generation, double periods,
                         uint64_t seed)
{
    static const double rates[] = {10, 10, 10, 4, 50};
    struct rng g;
    rng_init(&g, seed * 7919 + (uint64_t)shape * 31 + 5);
    struct scene s = {.shape = shape, .generation = generation, .seed = seed};

    s.period_s = 0.3 * pow(200, rng_uniform(&g));
    if (shape == SHAPE_FAST)
        s.period_s = 0.03 + 0.14 * rng_uniform(&g);
    s.depth = 0.04 * pow(18, rng_uniform(&g));
    s.noise = rng_uniform(&g) < 0.3 ? 0 : 0.03 * rng_uniform(&g);
    s.wander = rng_uniform(&g) < 0.4 ? 0 : 0.02 * rng_uniform(&g);
    s.rate_hz = rates[rng_below(&g, 5)];
    s.jitter = 0.4 * rng_uniform(&g);
    s.whole_watts = rng_uniform(&g) < 0.3;
    s.length_s = (periods + rng_uniform(&g)) * s.period_s;
    if (shape == SHAPE_START)
        s.length_s += 2 * s.period_s + 3;
    if (shape >= SHAPES_KNOWN)
        s.length_s = fmax(s.length_s, 20 * pow(30, rng_uniform(&g)));
    return s;
}

enum { ERRORS = 4096, BANDS = 10, LENGTHS = 2 };
static const double lengths[LENGTHS] = {4, 20}; /* periods in a trace, plus one at most */

struct tally {
    unsigned n, right, unknown, wrong;
    double error[ERRORS], needed[ERRORS];
    unsigned n_error;
};

/* All sums of --self. */
struct tallies {
    struct tally shape[LENGTHS][SHAPES];
    struct tally
        generation[n_elements(generations)]; /* the longer traces with a period */
    struct {
        unsigned n, right;
    } band[BANDS]; /* answers by their confidence, including traces without a period */
    double cpu_s;
    unsigned asked;
};

static void tell(const struct scene *s, const struct scene_trace *tr, double error,
                 const struct job_phase *f)
{
    (void)fprintf(stderr,
                  "%-9s %-14s seed %3llu P %7.3f true %7.3f got %7.3f (%5.2f%% rse "
                  "%.2f%%) conf %.2f %s need %.1f | len %.0f depth %.2f noise %.3f "
                  "wander %.3f rate %g cpu/ask %.1f ms\n",
                  shape_name(s->shape), s->generation, (unsigned long long)s->seed,
                  s->period_s, tr->truth_s, f->period_s, error * 100, f->rse * 100,
                  f->confidence, why_word(f->why), f->periods_needed, s->length_s,
                  s->depth, s->noise, s->wander, s->rate_hz, 1e3 * f->cpu_s / f->asked);
}

static void count(struct tally *t, double error, const struct job_phase *f)
{
    t->n++;
    if (f->why != PERIOD_FOUND) {
        t->unknown++;
    } else if (error <= 0.02) {
        t->right++;
        if (t->n_error < ERRORS) {
            t->needed[t->n_error] = f->periods_needed;
            t->error[t->n_error++] = error;
        }
    } else {
        t->wrong++;
    }
}

static double error_of(const struct scene *s, const struct scene_trace *tr, double got_s)
{
    if (tr->other_s > 0)
        return fmin(fabs(got_s / s->period_s - 1), fabs(got_s / tr->other_s - 1));
    return tr->truth_s > 0 ? fabs(got_s / tr->truth_s - 1) : INFINITY;
}

static int play_one(const struct options *o, unsigned length, enum shape shape, size_t g,
                    unsigned seed, struct tallies *t, uw_error *err)
{
    struct scene s = draw(shape, generations[g], lengths[length], seed);
    struct scene_trace tr = {0};
    struct job_phase f = {0};
    int r = scene_play(&s, &tr, err);

    if (r == 0 && tr.n > 0)
        r = follow(&(struct heard){tr.items, tr.n}, 1, o->blind ? NULL : &tr.sensor, &f,
                   err);
    if (r < 0)
        return r;
    double error = error_of(&s, &tr, f.period_s);
    count(&t->shape[length][shape], error, &f);
    if (lengths[length] > 10 && shape < SHAPES_KNOWN)
        count(&t->generation[g], error, &f);
    if (f.why == PERIOD_FOUND) {
        int band = (int)(f.confidence * BANDS);
        band = band < BANDS ? band : BANDS - 1;
        t->band[band].n++;
        t->band[band].right += error <= 0.02;
    }
    t->cpu_s += f.cpu_s;
    t->asked += f.asked;
    if (o->verbose)
        tell(&s, &tr, error, &f);
    scene_trace_free(&tr);
    return 0;
}

static void print_tally(FILE *json, const char *name, struct tally *t)
{
    struct stats e = {0}, w = {0};
    double n = fmax(1, t->n), median = 0;

    if (t->n_error > 0) {
        e = stats_of(t->error, t->n_error);
        w = stats_of(t->needed, t->n_error);
        median = t->error[t->n_error / 2];
    }
    (void)fprintf(
        table, "%-14s %4u  %5.1f %6.1f %6.1f   %5.2f %5.2f %5.2f   %5.1f %5.1f\n", name,
        t->n, 100 * t->right / n, 100 * t->unknown / n, 100 * t->wrong / n, 100 * median,
        100 * e.p95, 100 * e.max, w.mean, w.p95);
    if (!json)
        return;
    (void)fprintf(json,
                  "{\"name\":\"%s\",\"n\":%u,\"right\":%.4g,\"unknown\":%.4g,"
                  "\"wrong\":%.4g,\"median_error\":%.4g,\"error\":",
                  name, t->n, t->right / n, t->unknown / n, t->wrong / n, median);
    stats_json(json, &e);
    (void)fprintf(json, ",\"periods_needed\":");
    stats_json(json, &w);
    (void)fprintf(json, "}");
}

static void comma(FILE *json, bool after_another)
{
    if (json && after_another)
        (void)fputc(',', json);
}

static void words(FILE *json, const char *text)
{
    if (json)
        (void)fputs(text, json);
}

static void print_shapes(FILE *json, struct tallies *t)
{
    for (unsigned l = 0; l < LENGTHS; l++) {
        (void)fprintf(
            table,
            "traces of %g to %g periods\n                  n  right unknown wrong "
            "%%  median  p95   max %%   needed p95\n",
            lengths[l], lengths[l] + 1);
        comma(json, l > 0);
        if (json)
            (void)fprintf(json, "{\"periods\":%g,\"shapes\":[", lengths[l]);
        for (enum shape k = 0; k < SHAPES; k++) {
            comma(json, k > 0);
            print_tally(json, shape_name(k), &t->shape[l][k]);
        }
        words(json, "]}");
    }
}

static void print_reliability(FILE *json, const struct tallies *t)
{
    (void)fprintf(table, "confidence      answers  right %%\n");
    for (int b = 0; b < BANDS; b++) {
        double share = t->band[b].n ? (double)t->band[b].right / t->band[b].n : 0;
        (void)fprintf(table, "%.1f to %.1f      %6u  %6.1f\n", b / (double)BANDS,
                      (b + 1) / (double)BANDS, t->band[b].n, 100 * share);
        comma(json, b > 0);
        if (json)
            (void)fprintf(json, "{\"from\":%.1f,\"n\":%u,\"right\":%.4g}",
                          b / (double)BANDS, t->band[b].n, share);
    }
}

static void print_tallies(FILE *json, struct tallies *t)
{
    double ms = 1e3 * t->cpu_s / fmax(1, t->asked);

    words(json, "\"traces\":[");
    print_shapes(json, t);
    words(json, "],\"generations\":[");
    (void)fprintf(table, "by sensor, the longer traces with a period\n");
    for (size_t g = 0; g < n_elements(generations); g++) {
        comma(json, g > 0);
        print_tally(json, generations[g], &t->generation[g]);
    }
    words(json, "],\"reliability\":[");
    print_reliability(json, t);
    (void)fprintf(table, "%.1f ms of a core a question\n", ms);
    if (json)
        (void)fprintf(json, "],\"question_ms\":%.3g", ms);
}

/* The relative slowdown from before to after (0.02: a step takes 2 % longer) and its
 * standard error.  False: one of them is unknown, or they are different units of work.
 */
static bool slower_by(const struct period_found *before, const struct period_found *after,
                      double *ret_change, double *ret_se)
{
    if (before->why != PERIOD_FOUND || after->why != PERIOD_FOUND)
        return false;
    double ratio = after->period_s / before->period_s;
    if (ratio < 0.67 || ratio > 1.5)
        return false;
    *ret_change = ratio - 1;
    *ret_se = ratio * hypot(before->rse, after->rse);
    return true;
}

/* ---- a slower job under a new cap ---- */

static int change_of(const struct scene *s, double *ret_change, double *ret_se,
                     uw_error *err)
{
    auto_(period_free) struct period *p = NULL;
    struct scene_trace tr = {0};
    struct period_found before, after;
    int r = scene_play(s, &tr, err);

    if (r == 0 && period_new(1, &p) < 0)
        r = fail(err, -ENOMEM, "no memory for a period estimator");
    if (r < 0) {
        scene_trace_free(&tr);
        return r;
    }
    uint64_t middle = ns_of_s(s->slower_at_s), settle = 2 * NS_PER_S;
    double least_s = s->period_s / 1.25, most_s = s->period_s / 0.8;
    for (size_t i = 0; i < tr.n; i++)
        period_feed(p, 0, &tr.items[i]);
    period_between(p, settle, middle, least_s, most_s, &before);
    period_between(p, middle + settle, ns_of_s(s->length_s), least_s, most_s, &after);
    scene_trace_free(&tr);
    return slower_by(&before, &after, ret_change, ret_se);
}

/* How often a change is detected: by 1 % or more, and by 2.33 standard errors. */
static int play_changes(const struct options *o, double slower, FILE *json, uw_error *err)
{
    static const enum shape shapes[] = {SHAPE_STEP, SHAPE_THREE, SHAPE_ACCUM4,
                                        SHAPE_PAIR};
    unsigned n = 0, known = 0, seen = 0, held = 0, n_error = 0;
    static double error[ERRORS];

    for (size_t g = 0; g < n_elements(generations); g++)
        for (size_t k = 0; k < n_elements(shapes) * o->seeds; k++) {
            double change, se;
            unsigned seed = (unsigned)(k * n_elements(generations) + g) + o->first;
            struct scene s =
                draw(shapes[k % n_elements(shapes)], generations[g], 20, seed);
            s.period_s = fmax(0.5, fmin(20, s.period_s));
            s.depth = fmax(s.depth, 0.1);
            s.wander = fmin(s.wander, 0.005);
            s.slower_at_s = fmax(30, 15 * s.period_s);
            s.length_s = 2 * s.slower_at_s + 2;
            s.slower = slower;
            int r = change_of(&s, &change, &se, err);
            if (r < 0)
                return r;
            n++;
            if (r == 0)
                continue;
            known++;
            seen += fabs(change) >= 0.01 && fabs(change) >= 2.33 * se;
            held += fabs(change - slower) <= 2 * se + 1e-4;
            if (n_error < ERRORS)
                error[n_error++] = fabs(change - slower);
        }
    struct stats e = {0};
    if (n_error > 0)
        e = stats_of(error, n_error);
    double of = fmax(1, known);
    (void)fprintf(table,
                  "%4.1f %% slower: n %u, known %.1f %%, of those seen %.1f %%, within "
                  "2 se %.1f %%, error median %.2f p95 %.2f %%\n",
                  100 * slower, n, 100.0 * known / n, 100 * seen / of, 100 * held / of,
                  100 * error[n_error / 2], 100 * e.p95);
    if (json)
        (void)fprintf(json,
                      "{\"slower\":%g,\"n\":%u,\"known\":%.4g,\"seen\":%.4g,"
                      "\"within_2se\":%.4g,\"median_error\":%.4g,\"error\":",
                      slower, n, (double)known / n, seen / of, held / of,
                      error[n_error / 2]);
    if (json) {
        stats_json(json, &e);
        (void)fputc('}', json);
    }
    return 0;
}

/* ---- several boards of a job, each with its own sensor ---- */

enum { TEAM_MOST = 8 };

/* One job of half a minute, read as the daemon does. apart: its boards are out of step.
 */
static int play_team(const struct options *o, struct scene s, unsigned boards, bool apart,
                     struct tally *ret, uw_error *err)
{
    struct scene_trace tr[TEAM_MOST] = {0};
    struct heard heard[TEAM_MOST];
    struct job_phase f = {0};
    struct rng g;
    int r = 0;

    rng_init(&g, s.seed * 31 + 7);
    for (unsigned b = 0; r == 0 && b < boards; b++) {
        s.board = b;
        s.late_s = apart ? s.period_s * rng_uniform(&g) : 0;
        r = scene_play(&s, &tr[b], err);
        heard[b] = (struct heard){tr[b].items, tr[b].n};
    }
    if (r == 0)
        r = follow(heard, boards, &tr[0].sensor, &f, err);
    if (r == 0) {
        double error = error_of(&s, &tr[0], f.period_s);
        count(ret, error, &f);
        if (o->verbose)
            tell(&s, &tr[0], error, &f);
    }
    for (unsigned b = 0; b < boards; b++)
        scene_trace_free(&tr[b]);
    return r;
}

/* Short steps on sensors with a period of 100 ms. */
static int play_teams(const struct options *o, unsigned boards, bool fast, bool apart,
                      struct tally *ret, uw_error *err)
{
    static const enum shape shapes[] = {SHAPE_STEP, SHAPE_THREE, SHAPE_ACCUM4,
                                        SHAPE_SINE};
    static const char *const slow[] = {"turing", "ga100", "ampere", "hopper-instant"};

    for (unsigned i = 0; i < o->seeds * 16; i++) {
        enum shape shape = fast ? SHAPE_FAST : shapes[i % n_elements(shapes)];
        unsigned seed = 5000 + o->first + i;
        struct scene s = draw(shape, slow[i / 4 % n_elements(slow)], 20, seed);
        struct rng g;
        rng_init(&g, seed);
        if (!fast)
            s.period_s = 0.3 * pow(5, rng_uniform(&g));
        s.rate_hz = 10;
        s.jitter = 0.8;
        s.held = true;
        s.length_s = 30;
        int r = play_team(o, s, boards, apart, ret, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int print_teams(const struct options *o, FILE *json, uw_error *err)
{
    static const unsigned boards[] = {1, 2, 4, 8};
    static struct tally t;
    bool again = false;
    int r = 0;

    (void)fprintf(table, "30 s of one job on several boards, sensors of 100 ms\n");
    for (unsigned kind = 0; kind < 4; kind++)
        for (size_t i = 0; r == 0 && i < n_elements(boards); i++) {
            char name[40];
            bool fast = kind & 1, apart = kind & 2;
            if (apart && boards[i] != 4 && (!fast || boards[i] == 1))
                continue;
            (void)snprintf(name, sizeof name, "%s%u%s", fast ? "fast " : "", boards[i],
                           apart ? " apart" : "");
            t = (struct tally){0};
            r = play_teams(o, boards[i], fast, apart, &t, err);
            comma(json, again);
            print_tally(json, name, &t);
            again = true;
        }
    return r;
}

static int play_all(const struct options *o, struct tallies *t, uw_error *err)
{
    for (unsigned l = 0; l < LENGTHS; l++)
        for (enum shape k = 0; k < SHAPES; k++) {
            if (o->only && strcmp(o->only, "one") != 0 &&
                strcmp(o->only, shape_name(k)) != 0)
                continue;
            for (unsigned i = 0; i < o->seeds * n_elements(generations); i++) {
                int r =
                    play_one(o, l, k, i % n_elements(generations), o->first + i, t, err);
                if (r < 0)
                    return r;
            }
        }
    return 0;
}

static int print_all(const struct options *o, FILE *json, uw_error *err)
{
    static const double slower[] = {0, 0.02, 0.05};
    static struct tallies t;
    size_t slower_n = n_elements(slower);
    int r = play_all(o, &t, err);

    if (r < 0)
        return r;
    if (json)
        (void)fprintf(json, "{\"simulated\":true,\"seeds\":%u,", o->seeds);
    print_tallies(json, &t);
    words(json, ",\"boards\":[");
    if (!o->only || strcmp(o->only, "boards") == 0)
        r = print_teams(o, json, err);
    if (o->only)
        slower_n = 0;
    words(json, "],\"changes\":[");
    for (size_t i = 0; r == 0 && i < slower_n; i++) {
        comma(json, i > 0);
        r = play_changes(o, slower[i], json, err);
    }
    words(json, "]}\n");
    return r;
}

static int self(const struct options *o, uw_error *err)
{
    FILE *json = NULL;

    if (o->json) {
        json = strcmp(o->json, "-") == 0 ? stdout : fopen(o->json, "we");
        if (!json)
            return fail(err, -errno, "%s: %s", o->json, strerror(errno));
    }
    table = json == stdout ? stderr : stdout;
    int r = print_all(o, json, err);
    if (json && json != stdout && fclose(json) != 0 && r == 0)
        r = fail(err, -errno, "%s: %s", o->json, strerror(errno));
    return r;
}

static int parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
        uint64_t n;
        if (strcmp(a, "--self") == 0)
            o->self = true;
        else if (strcmp(a, "-v") == 0)
            o->verbose = true;
        else if (strcmp(a, "--blind") == 0)
            o->blind = true;
        else if (!next)
            return -EINVAL;
        else if (strcmp(a, "--trace") == 0)
            o->trace = argv[++i];
        else if (strcmp(a, "--only") == 0)
            o->only = argv[++i];
        else if (strcmp(a, "--json") == 0)
            o->json = argv[++i];
        else if (strcmp(a, "--seeds") == 0 && parse_u64(next, &n, NULL) == 0 && n > 0 &&
                 ++i)
            o->seeds = (unsigned)n;
        else if (strcmp(a, "--first") == 0 && parse_u64(next, &n, NULL) == 0 && n > 0 &&
                 ++i)
            o->first = (unsigned)n;
        else
            return -EINVAL;
    }
    return o->self == !o->trace ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
    struct options o = {.seeds = 5, .first = 1};
    uw_error err = {0};

    if (parse(argc, argv, &o) < 0) {
        (void)fprintf(
            stderr, "usage: period --trace FILE.csv|FOLDER | --self [--seeds N] "
                    "[--first SEED] [--only SHAPE|one|boards] [--blind] [--json FILE|-] "
                    "[-v]\n");
        return 2;
    }
    int r = o.trace ? trace(o.trace, &err) : self(&o, &err);
    if (r < 0) {
        (void)fprintf(stderr, "period: %s\n", err.text);
        return 1;
    }
    return 0;
}
