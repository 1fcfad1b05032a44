/* The iteration period from telemetry: of recorded traces, and how good it is on
 * simulated ones whose period is known.
 *
 *     period --trace FILE.csv|FOLDER
 *     period --self [--seeds N] [--only SHAPE] [--json FILE|-] [-v]
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

static int trace_file(const char *path, struct follow *ret, uw_error *err)
{
    auto_(tracefile_fini) struct tracefile t = {0};
    int r = tracefile_read(path, &t, err);

    if (r < 0)
        return r;
    if (t.n == 0) {
        *ret = (struct follow){.why = PERIOD_FEW};
        return 0;
    }
    return follow(t.items, t.n, ret, err);
}

/* error: what the file could not be read for; NULL: it was. */
static void print_follow(const struct follow *f, const char *error)
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
        struct follow f = {.why = PERIOD_FEW};
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
    struct follow f;

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
    const char *trace, *only, *json, *generation, *dump;
    bool self, verbose;
    unsigned seeds;
    double periods; /* length of the traces */
};

static const char *const generations[] = {"kepler", "pascal", "volta",          "turing",
                                          "ga100",  "ampere", "hopper-instant", "hopper"};

/* A scene drawn from the seed: everything but the shape and the generation. */
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

struct tally {
    unsigned n, right, unknown, wrong;
    double error[4096], needed[4096];
    unsigned n_error;
};

static void count(struct tally *t, const struct scene *s, const struct scene_trace *tr,
                  const struct follow *f, bool verbose)
{
    double error = tr->truth_s > 0 ? fabs(f->period_s / tr->truth_s - 1) : INFINITY;

    if (tr->other_s > 0)
        error = fmin(fabs(f->period_s / s->period_s - 1),
                     fabs(f->period_s / tr->other_s - 1));
    t->n++;
    if (f->why != PERIOD_FOUND) {
        t->unknown++;
    } else if (error <= 0.02) {
        t->right++;
        if (t->n_error < 4096) {
            t->needed[t->n_error] = f->periods_needed;
            t->error[t->n_error++] = error;
        }
    } else {
        t->wrong++;
    }
    if (verbose)
        (void)fprintf(stderr,
                      "%-9s %-14s seed %3llu P %7.3f true %7.3f got %7.3f (%5.2f%% rse "
                      "%.2f%%) conf %.2f %s need %.1f | len %.0f depth %.2f noise %.3f "
                      "wander %.3f rate %g cpu/ask %.1f ms\n",
                      shape_name(s->shape), s->generation, (unsigned long long)s->seed,
                      s->period_s, tr->truth_s, f->period_s, error * 100, f->rse * 100,
                      f->confidence, why_word(f->why), f->periods_needed, s->length_s,
                      s->depth, s->noise, s->wander, s->rate_hz,
                      1e3 * f->cpu_s / f->asked);
}

static int self(const struct options *o, uw_error *err)
{
    static struct tally t;

    for (enum shape shape = 0; shape < SHAPES; shape++) {
        if (o->only && strcmp(o->only, shape_name(shape)) != 0)
            continue;
        t = (struct tally){0};
        for (size_t g = 0; g < n_elements(generations); g++) {
            if (o->generation && strcmp(o->generation, generations[g]) != 0)
                continue;
            for (unsigned k = 0; k < o->seeds; k++) {
                struct scene s = draw(shape, generations[g], o->periods,
                                      k * n_elements(generations) + g + 1);
                struct scene_trace tr = {0};
                struct follow f = {0};
                int r = scene_play(&s, &tr, err);
                if (r == 0 && tr.n > 0)
                    r = follow(tr.items, tr.n, &f, err);
                if (r < 0)
                    return r;
                count(&t, &s, &tr, &f, o->verbose);
                scene_trace_free(&tr);
            }
        }
        struct stats e = {0}, w = {0};
        if (t.n_error > 0) {
            e = stats_of(t.error, t.n_error);
            w = stats_of(t.needed, t.n_error);
        }
        (void)printf("%-9s n %4u right %5.1f %% unknown %5.1f %% wrong %5.1f %%  error "
                     "mean %.2f p95 %.2f max %.2f %%  needed mean %.1f p95 %.1f\n",
                     shape_name(shape), t.n, 100.0 * t.right / t.n,
                     100.0 * t.unknown / t.n, 100.0 * t.wrong / t.n, 100 * e.mean,
                     100 * e.p95, 100 * e.max, w.mean, w.p95);
        (void)fflush(stdout);
    }
    return 0;
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
        else if (!next)
            return -EINVAL;
        else if (strcmp(a, "--trace") == 0)
            o->trace = argv[++i];
        else if (strcmp(a, "--only") == 0)
            o->only = argv[++i];
        else if (strcmp(a, "--generation") == 0)
            o->generation = argv[++i];
        else if (strcmp(a, "--json") == 0)
            o->json = argv[++i];
        else if (strcmp(a, "--seeds") == 0 && parse_u64(next, &n, NULL) == 0 && n > 0 &&
                 ++i)
            o->seeds = (unsigned)n;
        else if (strcmp(a, "--periods") == 0 &&
                 parse_double(next, &o->periods, NULL) == 0 && ++i)
            continue;
        else
            return -EINVAL;
    }
    return o->self == !o->trace ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
    struct options o = {.seeds = 5, .periods = 20};
    uw_error err = {0};

    if (parse(argc, argv, &o) < 0) {
        (void)fprintf(stderr,
                      "usage: period --trace FILE.csv|FOLDER | --self [--seeds N] "
                      "[--only SHAPE] [--json FILE|-] [-v]\n");
        return 2;
    }
    int r = o.trace ? trace(o.trace, &err) : self(&o, &err);
    if (r < 0) {
        (void)fprintf(stderr, "period: %s\n", err.text);
        return 1;
    }
    return 0;
}
