#include "fetcher/judges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "fetcher/cache.h"
#include "signal/held.h"
#include "signal/judged.h"

enum { LOOK_S = 10 };
/* No source has a name that begins with a dot. */
#define FILE_NAME ".judged"

struct judges {
    struct loop *loop;
    judges_each_fn each;
    void *user;
    struct loop_timer *timer;
    struct loop_worker *worker;
    struct cache_file cache;
    bool changed; /* since the file was written */
    bool is_full; /* as was said */
    bool lacks;   /* a forecast found no place in this round */
    struct judged *list[JUDGED_MAX];
    size_t n;
    struct judge_point ahead[SIGNAL_POINTS], came[SIGNAL_POINTS];
};

static int64_t utc_s(const struct judges *j)
{
    return loop_utc_ns(j->loop) / (int64_t)NS_PER_S;
}

/* ---- what is held ---- */

static struct judge_series points_of(const struct signals_source *limits,
                                     const struct source_series *s,
                                     struct judge_point to[SIGNAL_POINTS])
{
    size_t n = s->n < SIGNAL_POINTS ? s->n : SIGNAL_POINTS;

    for (size_t i = 0; i < n; i++) {
        const struct source_point *p = &s->point[i];
        to[i] = (struct judge_point){p->from_utc_s, held_end(limits, s, p), p->v,
                                     p->estimated};
    }
    return (struct judge_series){to, n};
}

/* The signal that a forecast foretells. */
struct wanted {
    struct judges *judges;
    char signal[SIGNAL_NAME];
    const char *unit;
    struct judge_series found;
};

static void look_for(const char *source, const struct signals_source *limits,
                     const struct source_series *series, void *arg)
{
    struct wanted *w = arg;
    (void)source;

    if (strcmp(series->signal, w->signal) == 0 && strcmp(series->unit, w->unit) == 0)
        w->found = points_of(limits, series, w->judges->came);
}

/* Forecasts that exist no more take no place for ever. */
static void drop_over(struct judges *j)
{
    size_t left = 0;

    for (size_t i = 0; i < j->n; i++)
        if (judge_is_over(&j->list[i]->judge, utc_s(j)))
            free(j->list[i]);
        else
            j->list[left++] = j->list[i];
    j->n = left;
}

static struct judged *judged_new(struct judges *j, const char *source, const char *signal)
{
    struct judged *d = NULL;

    if (j->n == JUDGED_MAX)
        drop_over(j);
    if (j->n < JUDGED_MAX)
        d = calloc(1, sizeof *d);
    if (d)
        j->list[j->n++] = d;
    else if (!j->is_full)
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_SIGNALS_FORECAST,
                  "name=%s source=%s state=not-judged limit=%d: others have the places",
                  signal, source, JUDGED_MAX);
    j->lacks |= !d;
    j->is_full = !d;
    return d;
}

/* The forecast's judge; of another source or unit than before it begins anew.  NULL:
 * there are too many.
 */
static struct judged *judged_of(struct judges *j, const char *source,
                                const struct source_series *s)
{
    struct judged *d = NULL;

    for (size_t i = 0; i < j->n && !d; i++)
        if (strcmp(j->list[i]->signal, s->signal) == 0)
            d = j->list[i];
    if (!d)
        d = judged_new(j, source, s->signal);
    if (!d ||
        (d->signal[0] && strcmp(d->source, source) == 0 && strcmp(d->unit, s->unit) == 0))
        return d;
    *d = (struct judged){.signal = ""};
    (void)snprintf(d->signal, sizeof d->signal, "%s", s->signal);
    (void)snprintf(d->source, sizeof d->source, "%s", source);
    (void)snprintf(d->unit, sizeof d->unit, "%s", s->unit);
    return d;
}

/* ---- the verdict ---- */

static void say(const struct judged *d, int64_t now_s)
{
    struct signal_facts f = {.n_judged = 0};
    char worse[FACTS_WORSE];

    facts_judge(&f, &d->judge, now_s);
    (void)facts_worse(&f, worse);
    log_event(worse[0] ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE, LOG_EVENT_SIGNALS_FORECAST,
              "name=%s source=%s state=%s horizons=%s", d->signal, d->source,
              worse[0] ? "worse" : "better", log_quote(worse).text);
}

static void judge(const char *source, const struct signals_source *limits,
                  const struct source_series *series, void *arg)
{
    struct judges *j = arg;
    int64_t now_s = utc_s(j);

    if (!signal_is_forecast(series->signal))
        return;
    struct wanted w = {.judges = j, .unit = series->unit};
    struct judged *d = judged_of(j, source, series);
    if (!d)
        return;
    (void)snprintf(w.signal, sizeof w.signal, "%.*s",
                   (int)(strrchr(series->signal, '.') - series->signal), series->signal);
    j->each(look_for, &w, j->user);
    const struct judge_series ahead = points_of(limits, series, j->ahead);
    size_t waits = d->judge.n;
    uint64_t seen = d->judge.seen;
    judge_step(&d->judge, series->issued_utc_s, now_s, &ahead, &w.found);
    j->changed |= d->judge.n != waits || d->judge.seen != seen;
    if (judge_verdict(&d->judge, now_s)) {
        j->changed = true;
        say(d, now_s);
    }
}

/* ---- the cache ---- */

static void read_cache(struct judges *j)
{
    auto_(mem_free) char *text = NULL;
    uw_error why = {""};
    size_t len = 0;
    int r = cache_file_read(&j->cache, &text, &len, &why);

    if (r == 0)
        r = judged_read(j->cache.path, text, len, j->list, &j->n, &why);
    if (r < 0 && r != -ENOENT)
        cache_file_say(&j->cache, "ignored", why.text);
    drop_over(j);
}

static void write_cache(struct judges *j)
{
    uint64_t now_ns = loop_now_ns(j->loop);
    char *text = NULL;

    if (!j->changed || !cache_file_due(&j->cache, now_ns) ||
        judged_write((const struct judged *const *)j->list, j->n, &text, NULL) < 0)
        return;
    j->changed = false;
    cache_file_write(&j->cache, text, now_ns);
}

/* ---- life ---- */

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct judges *j = user;
    (void)timer;
    (void)now_ns;

    j->lacks = false;
    j->each(judge, j, j->user);
    j->is_full &= j->lacks;
    write_cache(j);
    return 0;
}

void judges_facts(const struct judges *j, const char *signal, int64_t now_s,
                  struct signal_facts *f)
{
    for (size_t i = 0; j && i < j->n; i++)
        if (strcmp(j->list[i]->signal, signal) == 0)
            facts_judge(f, &j->list[i]->judge, now_s);
}

int judges_new(struct loop *loop, const char *folder, judges_each_fn each, void *user,
               struct judges **ret, uw_error *err)
{
    auto_(judges_free) struct judges *j = calloc(1, sizeof *j);

    if (!j)
        return fail(err, -ENOMEM, "out of memory");
    j->loop = loop;
    j->each = each;
    j->user = user;
    int r = loop_worker_new(loop, "judged", &j->worker, err);
    if (r < 0)
        return r;
    cache_file_init(&j->cache, folder, FILE_NAME, j->worker);
    read_cache(j);
    r = loop_timer_new(loop, loop_now_ns(loop) + LOOK_S * NS_PER_S, LOOK_S * NS_PER_S,
                       on_timer, j, &j->timer, err);
    if (r == 0)
        *ret = take(j);
    return r;
}

void judges_free(struct judges *j)
{
    if (!j)
        return;
    loop_timer_free(j->timer);
    j->cache.ends = true;
    loop_worker_free(j->worker);
    if (j->cache.saving) /* its thread hangs, and has all of it */
        return;
    for (size_t i = 0; i < j->n; i++)
        free(j->list[i]);
    free(j);
}
