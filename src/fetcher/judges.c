#include "fetcher/judges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "fetcher/cache.h"
#include "signal/held.h"
#include "signal/judge-list.h"

enum { LOOK_S = 10 };
/* No source may have a name that begins with a dot. */
#define FILE_NAME ".judged"

struct judges {
    struct loop *loop;
    judges_each_fn each;
    void *user;
    struct loop_timer *timer;
    struct loop_worker *worker;
    struct kept_file cache;
    struct judge_list list;
    struct judge_point ahead[SIGNAL_POINTS], came[SIGNAL_POINTS];
};

static int64_t utc_s(const struct judges *j)
{
    return loop_utc_ns(j->loop) / (int64_t)NS_PER_S;
}

/* ---- held values ---- */

/* A last value without an end lasts until the next one: before that it judges nothing. */
static struct judge_series points_of(const struct signals_source *limits,
                                     const struct source_series *s,
                                     struct judge_point to[SIGNAL_POINTS])
{
    size_t n = s->n < SIGNAL_POINTS ? s->n : SIGNAL_POINTS;

    for (size_t i = 0; i < n; i++) {
        const struct source_point *p = &s->point[i];
        bool ends = i + 1 < n || p->to_utc_s > p->from_utc_s;
        to[i] = (struct judge_point){p->from_utc_s, held_end(limits, s, p), p->v,
                                     p->estimated || !ends};
    }
    return (struct judge_series){to, n};
}

/* The signal that a forecast predicts. */
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

/* ---- the verdict ---- */

static void say_full(const struct judge_forecast *forecast)
{
    log_event(LOG_LEVEL_WARNING, LOG_EVENT_SIGNALS_FORECAST,
              "name=%s source=%s state=not-judged limit=%d: others have the places",
              forecast->signal, forecast->source, JUDGED_MAX);
}

static void say_verdict(const struct judges *j, const struct judge_forecast *forecast)
{
    struct signal_facts f = {.n_judged = 0};
    char worse[FACTS_WORSE];

    judge_list_facts(&j->list, forecast->signal, utc_s(j), &f);
    (void)facts_worse(&f, worse);
    log_event(worse[0] ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE, LOG_EVENT_SIGNALS_FORECAST,
              "name=%s source=%s state=%s horizons=%s", forecast->signal,
              forecast->source, worse[0] ? "worse" : "better", log_quote(worse).text);
}

static void judge(const char *source, const struct signals_source *limits,
                  const struct source_series *series, void *arg)
{
    struct judges *j = arg;

    if (!signal_is_forecast(series->signal))
        return;
    struct wanted w = {.judges = j, .unit = series->unit};
    judge_list_foretold(series->signal, w.signal);
    j->each(look_for, &w, j->user);
    const struct judge_forecast forecast = {.signal = series->signal,
                                            .source = source,
                                            .unit = series->unit,
                                            .issued_utc_s = series->issued_utc_s,
                                            .ahead = points_of(limits, series, j->ahead),
                                            .came = w.found};
    switch (judge_list_step(&j->list, &forecast, utc_s(j))) {
    case JUDGE_LIST_VERDICT:
        say_verdict(j, &forecast);
        break;
    case JUDGE_LIST_FULL:
        say_full(&forecast);
        break;
    default:
        break;
    }
}

/* ---- the cache ---- */

static void read_cache(struct judges *j)
{
    auto_(mem_free) char *text = NULL;
    uw_error why = {""};
    size_t len = 0;
    int r = kept_file_read(&j->cache, &text, &len, &why);

    if (r == 0)
        r = judge_list_read(&j->list, j->cache.path, text, len, utc_s(j), &why);
    if (r < 0 && r != -ENOENT)
        kept_file_say(&j->cache, "ignored", why.text);
}

static void write_cache(struct judges *j)
{
    uint64_t now_ns = loop_now_ns(j->loop);
    char *text = NULL;

    if (!j->list.changed || !kept_file_due(&j->cache, now_ns) ||
        judge_list_write(&j->list, &text, NULL) < 0)
        return;
    j->list.changed = false;
    kept_file_write(&j->cache, text, now_ns);
}

/* ---- life ---- */

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct judges *j = user;
    (void)timer;
    (void)now_ns;

    judge_list_begin(&j->list);
    j->each(judge, j, j->user);
    write_cache(j);
    return 0;
}

void judges_facts(const struct judges *j, const char *signal, int64_t now_s,
                  struct signal_facts *f)
{
    if (j)
        judge_list_facts(&j->list, signal, now_s, f);
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
    if (j->cache.saving) /* its thread hangs and still uses the data */
        return;
    judge_list_fini(&j->list);
    free(j);
}
