/* Phases of a job from telemetry: of recorded traces, and how well they are found in
 * simulated ones whose phases are known.
 *
 *     phases --trace FILE.csv [--events FILE.csv]
 *     phases --self [--seeds N] [--first SEED] [--only PLOT] [--util-every SECONDS]
 *            [--json FILE|-] [-v]
 *     phases --self --only PLOT --seed N --dump FILE     one simulated trace, and
 * FILE.events
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/names.h"
#include "base/units.h"
#include "schedule.h"
#include "tracefile.h"
#include "watch.h"

struct options {
    const char *trace, *events, *only, *json, *dump;
    bool self, verbose;
    uint64_t seeds, seed, first; /* first: seed of the first trace */
    uint64_t util_s;             /* only utilisation is read with this period */
};

static void print_number(FILE *f, const char *key, bool known, double v)
{
    if (known)
        (void)fprintf(f, ",\"%s\":%.5g", key, v);
    else
        (void)fprintf(f, ",\"%s\":null", key);
}

static void print_sightings(const struct sightings *s, bool withdrawn)
{
    const char *comma = "";

    for (size_t i = 0; i < s->n; i++) {
        const struct phase_event *e = &s->items[i];
        if ((e->withdrawn_ns != 0) != withdrawn)
            continue;
        (void)printf("%s\n {\"t_s\":%.3f,\"kind\":\"%s\",\"fired_s\":%.3f", comma,
                     s_of_ns(e->onset_ns), names_word(NAMES_JOB_PHASE, e->kind),
                     s_of_ns(e->fired_ns));
        if (withdrawn)
            (void)printf(",\"withdrawn_s\":%.3f", s_of_ns(e->withdrawn_ns));
        (void)printf("}");
        comma = ",";
    }
}

/* Precision and similar figures; known: there were events to compare with. */
static void print_score(FILE *f, const struct score *s, bool known)
{
    print_number(f, "precision", known && s->seen > 0, (double)s->matched / s->seen);
    print_number(f, "recall", known && s->events > 0, (double)s->matched / s->events);
    print_number(f, "delay_s", known && s->matched > 0, s->delay_sum_s / s->matched);
    print_number(f, "false_per_hour", known && s->hours > 0,
                 (s->seen - s->matched) / s->hours);
    print_number(f, "in_time", known && s->events > 0, (double)s->in_time / s->events);
    print_number(f, "kind_agreement", known && s->matched > 0,
                 (double)s->kinds / s->matched);
    print_number(f, "withdrawn_per_hour", known && s->hours > 0, s->withdrawn / s->hours);
}

static int trace(const struct options *o, uw_error *err)
{
    auto_(tracefile_fini) struct tracefile t = {0};
    struct sightings seen = {0};
    struct truths truths = {0};
    struct score score = {0};
    int r = tracefile_read(o->trace, &t, err);

    if (r == 0 && o->events)
        r = truths_read(o->events, &truths, err);
    if (r == 0 && t.n > 0)
        r = watch_trace(t.items, t.n, &truths, &seen, err);
    if (r == 0) {
        if (t.n > 0)
            score_add(&score, &seen, &truths, s_of_ns(t.items[0].at_ns));
        (void)printf("{\"seen\":[");
        print_sightings(&seen, false);
        (void)printf("],\n\"withdrawn\":[");
        print_sightings(&seen, true);
        (void)printf("]");
        print_score(stdout, &score, o->events != NULL);
        (void)printf("}\n");
    }
    sightings_free(&seen);
    truths_free(&truths);
    return r;
}

static const char *const generations[] = {"kepler", "pascal", "volta",          "turing",
                                          "ga100",  "ampere", "hopper-instant", "hopper"};

static int dump(const struct schedule_trace *t, const char *path, uw_error *err)
{
    auto_(mem_free) char *name = NULL;
    FILE *f = fopen(path, "we"), *e = NULL;

    if (f && asprintf(&name, "%s.events", path) > 0)
        e = fopen(name, "we");
    if (!f || !e) {
        if (f)
            (void)fclose(f);
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    }
    (void)fprintf(f, "t_s,power_w,sm_util,mem_util\n");
    for (size_t i = 0; i < t->n; i++) {
        const struct activity *a = &t->items[i];
        (void)fprintf(f, "%.4f,%.2f", s_of_ns(a->at_ns), a->power_w);
        (void)(isnan(a->sm_util) ? fprintf(f, ",,\n")
                                 : fprintf(f, ",%.0f,%.0f\n", a->sm_util, a->mem_util));
    }
    (void)fprintf(e, "t_s,kind\n");
    for (size_t i = 0; i < t->truths.n; i++)
        (void)fprintf(e, "%.3f,%s\n", t->truths.items[i].t_s,
                      names_word(NAMES_JOB_PHASE, t->truths.items[i].kind));
    return fclose(f) | fclose(e) ? fail(err, -EIO, "%s: not written", path) : 0;
}

/* Utilisation is read at the lowest rate. */
static void thin_util(struct schedule_trace *t, double every_s)
{
    double next_s = 0;

    for (size_t i = 0; i < t->n; i++) {
        struct activity *a = &t->items[i];
        if (s_of_ns(a->at_ns) < next_s)
            a->sm_util = a->mem_util = NAN;
        else
            next_s = s_of_ns(a->at_ns) + every_s;
    }
}

static int one(const struct options *o, const struct schedule *s, struct score *all,
               uw_error *err)
{
    struct schedule_trace t = {0};
    struct sightings seen = {0};
    struct score own = {0};
    int r = schedule_play(s, &t, err);

    if (r == 0 && o->util_s > 0)
        thin_util(&t, (double)o->util_s);
    if (r == 0 && o->dump)
        r = dump(&t, o->dump, err);
    if (r == 0)
        r = watch_trace(t.items, t.n, &t.truths, &seen, err);
    if (r == 0) {
        double first = s_of_ns(t.items[0].at_ns);
        score_add(all, &seen, &t.truths, first);
        if (o->verbose) {
            score_add(&own, &seen, &t.truths, first);
            (void)fprintf(stderr,
                          "%-9s %-14s seed %3llu P %6.2f rate %4.1f noise %.3f high "
                          "%3.0f low %3.0f util %d: %u/%u "
                          "seen, %u false, %u withdrawn\n",
                          plot_name(s->plot), s->generation, (unsigned long long)s->seed,
                          s->period_s, s->rate_hz, s->noise, s->high_w, s->low_w,
                          s->has_util, own.matched, own.events, own.seen - own.matched,
                          own.withdrawn);
        }
    }
    sightings_free(&seen);
    schedule_trace_free(&t);
    return r;
}

static void print_row(FILE *f, const char *name, const struct score *s, const char *comma)
{
    (void)fprintf(f, "%s\n{\"plot\":\"%s\",\"events\":%u,\"hours\":%.3g", comma, name,
                  s->events, s->hours);
    print_score(f, s, true);
    (void)fprintf(f, ",\"kinds\":{");
    const char *next = "";
    for (int k = 0; k < PHASE_KINDS; k++) {
        if (s->of[k] == 0)
            continue;
        (void)fprintf(f, "%s\"%s\":{\"events\":%u", next,
                      names_word(NAMES_JOB_PHASE, (enum phase_kind)k), s->of[k]);
        print_number(f, "recall", true, (double)s->found[k] / s->of[k]);
        print_number(f, "delay_s", s->found[k] > 0, s->delay_s[k] / s->found[k]);
        print_number(f, "kind_agreement", s->found[k] > 0,
                     (double)s->named[k] / s->found[k]);
        (void)fprintf(f, "}");
        next = ",";
    }
    (void)fprintf(f, "},\"said\":{");
    next = "";
    for (int k = 0; k < PHASE_KINDS; k++) {
        if (s->said_s[k] <= 0)
            continue;
        (void)fprintf(f, "%s\"%s\":{\"hours\":%.4g", next,
                      names_word(NAMES_JOB_PHASE, (enum phase_kind)k),
                      s->said_s[k] / 3600);
        print_number(f, "right", true, s->right_s[k] / s->said_s[k]);
        (void)fprintf(f, "}");
        next = ",";
    }
    (void)fprintf(f, "}}");
}

static int self(const struct options *o, FILE *f, uw_error *err)
{
    const char *comma = "";

    (void)fprintf(f, "{\"seeds\":%llu,\"first\":%llu,\"rows\":[",
                  (unsigned long long)o->seeds, (unsigned long long)o->first);
    for (enum plot plot = 0; plot < PLOTS; plot++) {
        struct score score = {0};
        if (o->only && strcmp(o->only, plot_name(plot)) != 0)
            continue;
        for (uint64_t k = 0; k < o->seeds * n_elements(generations); k++) {
            struct schedule s = schedule_draw(
                plot, generations[k % n_elements(generations)], o->first + k);
            if (o->seed > 0 && s.seed != o->seed)
                continue;
            int r = one(o, &s, &score, err);
            if (r < 0)
                return r;
        }
        print_row(f, plot_name(plot), &score, comma);
        (void)fflush(f);
        comma = ",";
    }
    (void)fprintf(f, "\n]}\n");
    return 0;
}

/* False: no such option, or a missing value. */
static bool parse_number(const char *name, const char *value, struct options *o)
{
    const struct {
        const char *name;
        uint64_t *v, least;
    } numbers[] = {{"--seeds", &o->seeds, 1},
                   {"--first", &o->first, 1},
                   {"--seed", &o->seed, 1},
                   {"--util-every", &o->util_s, 0}};

    for (size_t i = 0; i < n_elements(numbers); i++)
        if (strcmp(name, numbers[i].name) == 0)
            return parse_u64(value, numbers[i].v, NULL) == 0 &&
                   *numbers[i].v >= numbers[i].least;
    return false;
}

static bool parse_word(const char *name, const char *value, struct options *o)
{
    const struct {
        const char *name, **v;
    } words[] = {{"--trace", &o->trace},
                 {"--events", &o->events},
                 {"--only", &o->only},
                 {"--json", &o->json},
                 {"--dump", &o->dump}};

    for (size_t i = 0; i < n_elements(words); i++)
        if (strcmp(name, words[i].name) == 0) {
            *words[i].v = value;
            return true;
        }
    return false;
}

static int parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(a, "--self") == 0)
            o->self = true;
        else if (strcmp(a, "-v") == 0)
            o->verbose = true;
        else if (next && (parse_word(a, next, o) || parse_number(a, next, o)))
            i++;
        else
            return -EINVAL;
    }
    bool fits = !o->events || o->trace;
    return fits && o->self == !o->trace && (!o->dump || (o->only && o->seed > 0))
               ? 0
               : -EINVAL;
}

int main(int argc, char **argv)
{
    struct options o = {.seeds = 2, .first = 1};
    uw_error err = {0};
    FILE *f = stdout;
    int r;

    if (parse(argc, argv, &o) < 0) {
        (void)fprintf(stderr,
                      "usage: phases --trace FILE.csv [--events FILE.csv] | --self "
                      "[--seeds N] [--first SEED] "
                      "[--util-every SECONDS] "
                      "[--only PLOT [--seed N [--dump FILE]]] [--json FILE|-] [-v]\n");
        return 2;
    }
    if (o.json && strcmp(o.json, "-") != 0 && !(f = fopen(o.json, "we"))) {
        (void)fprintf(stderr, "phases: %s: %s\n", o.json, strerror(errno));
        return 1;
    }
    r = o.trace ? trace(&o, &err) : self(&o, f, &err);
    if (f != stdout && fclose(f) != 0 && r == 0)
        r = fail(&err, -EIO, "%s: not written", o.json);
    if (r < 0) {
        (void)fprintf(stderr, "phases: %s\n", err.text);
        return 1;
    }
    return 0;
}
