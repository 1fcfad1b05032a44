#include "watch.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"

enum { MOST_EVENTS = 1000000 };

/* Copies all events of the detector, corrections included. */
static int take_events(const struct phases *p, struct sightings *s)
{
    uint64_t n = phases_events(p), from = n > PHASES_EVENTS ? n - PHASES_EVENTS : 0;

    for (uint64_t i = from; i < n; i++) {
        if (i >= s->n) {
            int r = array_grow(&s->items, &s->cap, s->n, MOST_EVENTS);
            if (r < 0)
                return r;
            s->n++;
        }
        s->items[i] = *phases_event(p, i);
    }
    return 0;
}

static enum phase_kind trains(enum phase_kind kind)
{
    return kind == PHASE_CHANGE ? PHASE_TRAIN : kind;
}

/* Books the time until sample i under what was said at its start. */
static void say(struct sightings *s, const struct activity *a, size_t i,
                enum phase_kind said, const struct truths *t, size_t *at)
{
    double now_s = s_of_ns(a[i].at_ns), dt = s_of_ns(a[i].at_ns - a[i - 1].at_ns);

    while (*at < t->n && t->items[*at].t_s <= now_s)
        ++*at;
    if (*at == 0)
        return;
    s->said_s[trains(said)] += dt;
    if (trains(said) == trains(t->items[*at - 1].kind))
        s->right_s[trains(said)] += dt;
}

int watch_trace(const struct activity *a, size_t n, const struct truths *t,
                struct sightings *ret, uw_error *err)
{
    auto_(phases_free) struct phases *p = NULL;
    struct sightings s = {0};
    size_t at = 0;
    int r = phases_new(&p);

    for (size_t i = 0; r == 0 && i < n; i++) {
        if (i > 0)
            say(&s, a, i, phases_now(p), t, &at);
        if (phases_feed(p, &a[i]))
            r = take_events(p, &s);
    }
    if (r < 0) {
        sightings_free(&s);
        return fail(err, r, "no memory for a trace of %zu samples", n);
    }
    double length = s_of_ns(a[n - 1].at_ns - a[0].at_ns);
    s.hours = length / 3600;
    s.tolerance_s = fmax(1, n > 1 ? 2 * length / (double)(n - 1) : 1);
    *ret = s;
    return 0;
}

void sightings_free(struct sightings *s)
{
    free(s->items);
    *s = (struct sightings){0};
}

void truths_free(struct truths *t)
{
    free(t->items);
    *t = (struct truths){0};
}

static enum phase_kind kind_of(const char *word)
{
    static const struct {
        const char *word;
        enum phase_kind kind;
    } words[] = {
        {"train", PHASE_TRAIN},
        {"training", PHASE_TRAIN},
        {"validate", PHASE_VALIDATE},
        {"validation", PHASE_VALIDATE},
        {"val", PHASE_VALIDATE},
        {"eval", PHASE_VALIDATE},
        {"evaluation", PHASE_VALIDATE},
        {"evaluate", PHASE_VALIDATE},
        {"load", PHASE_LOAD},
        {"loading", PHASE_LOAD},
        {"data", PHASE_LOAD},
        {"data_loading", PHASE_LOAD},
        {"data-loading", PHASE_LOAD},
        {"data loading", PHASE_LOAD},
        {"dataload", PHASE_LOAD},
        {"checkpoint", PHASE_CHECKPOINT},
        {"checkpointing", PHASE_CHECKPOINT},
        {"ckpt", PHASE_CHECKPOINT},
        {"save", PHASE_CHECKPOINT},
        {"idle", PHASE_IDLE},
        {"startup", PHASE_STARTUP},
        {"start-up", PHASE_STARTUP},
        {"start_up", PHASE_STARTUP},
        {"start", PHASE_STARTUP},
        {"init", PHASE_STARTUP},
        {"warmup", PHASE_STARTUP},
        {"change", PHASE_CHANGE},
        {"regime", PHASE_CHANGE},
        {"regime_change", PHASE_CHANGE},
        {"regime-change", PHASE_CHANGE},
        {"drift", PHASE_CHANGE},
        {"batch", PHASE_CHANGE},
        {"batch_size", PHASE_CHANGE},
        {"freeze", PHASE_CHANGE},
        {"thermal", PHASE_CHANGE},
        {"network", PHASE_CHANGE},
        {"slow_network", PHASE_CHANGE},
        {"shift", PHASE_CHANGE},
    };
    for (size_t i = 0; i < n_elements(words); i++)
        if (strcasecmp(word, words[i].word) == 0)
            return words[i].kind;
    return PHASE_UNKNOWN;
}

/* The relevant columns of a line; NULL if they are missing. */
static void split_line(char *line, int time_at, int kind_at, char **ret_time,
                       char **ret_kind)
{
    char *field;

    *ret_time = *ret_kind = NULL;
    for (int i = 0; (field = strsep(&line, ",")); i++) {
        if (i == time_at)
            *ret_time = field;
        if (i == kind_at)
            *ret_kind = field;
    }
}

static int read_header(char *line, int *ret_time, int *ret_kind, uw_error *err)
{
    char *field;

    *ret_time = *ret_kind = -1;
    for (int i = 0; (field = strsep(&line, ",")); i++) {
        if (strcmp(field, "t_s") == 0)
            *ret_time = i;
        if (strcmp(field, "kind") == 0)
            *ret_kind = i;
    }
    if (*ret_time < 0 || *ret_kind < 0)
        return fail(err, -EINVAL, "no column %s in the header",
                    *ret_time < 0 ? "t_s" : "kind");
    return 0;
}

static int add_truth(struct truths *t, char *line, int time_at, int kind_at,
                     uw_error *err)
{
    char *time, *kind;
    double v;

    split_line(line, time_at, kind_at, &time, &kind);
    if (!time || !kind)
        return fail(err, -EINVAL, "fewer fields than the header's");
    int r = parse_double(time, &v, err);
    if (r < 0)
        return fail_in(err, r, "t_s");
    if (!isfinite(v) || (t->n > 0 && v < t->items[t->n - 1].t_s))
        return fail(err, -EINVAL, "t_s %g lies before the row above or is no time", v);
    r = array_grow(&t->items, &t->cap, t->n, MOST_EVENTS);
    if (r < 0)
        return fail(err, r, "more than %d events or no memory", MOST_EVENTS);
    t->items[t->n++] = (struct truth){v, kind_of(kind)};
    return 0;
}

static int read_lines(FILE *f, struct truths *t, unsigned *no, uw_error *err)
{
    auto_(mem_free) char *line = NULL;
    size_t size = 0;
    ssize_t len;
    int time_at = -1, kind_at = -1, r = 0;

    while (r == 0 && (len = getline(&line, &size, f)) >= 0) {
        ++*no;
        while (len > 0 &&
               (line[len - 1] == '\n' || line[len - 1] == '\r' || line[len - 1] == ' '))
            line[--len] = '\0';
        if (len == 0 || line[0] == '#')
            continue;
        r = time_at < 0 ? read_header(line, &time_at, &kind_at, err)
                        : add_truth(t, line, time_at, kind_at, err);
    }
    if (r == 0 && time_at < 0)
        return fail(err, -EINVAL, "no header: t_s,kind");
    return r;
}

int truths_read(const char *path, struct truths *ret, uw_error *err)
{
    struct truths t = {0};
    unsigned no = 0;
    FILE *f = fopen(path, "re");

    if (!f)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    int r = read_lines(f, &t, &no, err);
    (void)fclose(f);
    if (r < 0) {
        truths_free(&t);
        return fail_in(err, r, "%s:%u", path, no);
    }
    *ret = t;
    return 0;
}

/* The nearest valid onset that no change has taken yet; -1: none. */
static long nearest(const struct sightings *seen, const bool *taken, double t_s)
{
    long best = -1;
    double least = seen->tolerance_s + 1e-6;

    for (size_t i = 0; i < seen->n; i++) {
        double off = fabs(s_of_ns(seen->items[i].onset_ns) - t_s);
        if (!taken[i] && !seen->items[i].withdrawn_ns && off <= least) {
            least = off;
            best = (long)i;
        }
    }
    return best;
}

void score_add(struct score *s, const struct sightings *seen, const struct truths *t,
               double first_s)
{
    auto_(mem_free) bool *taken = calloc(seen->n + 1, sizeof *taken);

    s->hours += seen->hours;
    for (int k = 0; k < PHASE_KINDS; k++) {
        s->said_s[k] += seen->said_s[k];
        s->right_s[k] += seen->right_s[k];
    }
    for (size_t i = 0; i < seen->n; i++)
        if (seen->items[i].withdrawn_ns)
            s->withdrawn++;
        else
            s->seen++;
    for (size_t i = 0; taken && i < t->n; i++) {
        const struct truth *e = &t->items[i];
        if (e->t_s <= first_s + 1e-9)
            continue;
        s->events++;
        s->of[e->kind]++;
        long k = nearest(seen, taken, e->t_s);
        if (k < 0)
            continue;
        double delay = s_of_ns(seen->items[k].fired_ns) - e->t_s;
        taken[k] = true;
        s->matched++;
        s->found[e->kind]++;
        s->delay_s[e->kind] += delay;
        s->delay_sum_s += delay;
        s->in_time += delay <= seen->tolerance_s + 1e-6;
        s->kinds += seen->items[k].kind == e->kind;
        s->named[e->kind] += seen->items[k].kind == e->kind;
    }
}
