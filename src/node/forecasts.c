#include "node/forecasts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "base/utf8.h"
#include "io/kept-file.h"
#include "policy/signal-history.h"
#include "signal/judge-list.h"

enum { LOOK_S = 10 };

/* The history of a signal without a series: the values of its sources, without values
 * set by hand.
 */
struct course {
    char signal[SIGNAL_NAME];
    struct signal_history history;
    bool used; /* seen in this round */
};

struct forecasts {
    struct loop *loop;
    struct signals *store;
    const struct signal_files *files;
    struct loop_timer *timer;
    struct loop_worker *worker;
    struct kept_file file;
    struct judge_list list;
    struct course course[SIGNAL_SOURCES_MAX];
    size_t n;
};

static int64_t utc_s(const struct forecasts *f)
{
    return loop_utc_ns(f->loop) / (int64_t)NS_PER_S;
}

static struct signal_view look(const struct forecasts *f, size_t signal)
{
    struct signal_view v;
    struct signal_time t = {loop_now_ns(f->loop), loop_utc_ns(f->loop)};

    signals_look(f->store, signal, t, &v);
    return v;
}

/* ---- series ---- */

/* Each point lasts until the next one, the last one until end_s.  *ret is to be freed.
 * -ENOMEM
 */
static int points_of(const struct policy_point *point, const bool *estimated, size_t n,
                     int64_t end_s, struct judge_point **ret)
{
    struct judge_point *to = calloc(n + 1, sizeof *to);

    if (!to)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        to[i] =
            (struct judge_point){point[i].utc_s, i + 1 < n ? point[i + 1].utc_s : end_s,
                                 point[i].v, estimated && estimated[i]};
    *ret = to;
    return 0;
}

/* NULL: there are too many. */
static struct course *course_of(struct forecasts *f, const char *signal)
{
    size_t i = 0;

    while (i < f->n && strcmp(f->course[i].signal, signal) != 0)
        i++;
    if (i == SIGNAL_SOURCES_MAX)
        return NULL;
    if (i == f->n) {
        f->course[f->n++] = (struct course){.used = false};
        (void)snprintf(f->course[i].signal, sizeof f->course[i].signal, "%s", signal);
    }
    return &f->course[i];
}

/* Adds the current value.  If there is a series instead, or the value is unknown, adds a
 * gap.
 */
static void remember(struct course *c, const struct signal_view *v, int64_t now_s)
{
    bool counts = !v->is_series && v->known && v->value && !v->by_hand && !v->estimated;

    c->used = true;
    signal_history_add(&c->history, now_s, counts ? v->value->number : (double)NAN);
}

/* Drops the courses of signals that are not judged any more: later these would have an
 * unnoticed gap.
 */
static void drop_unused(struct forecasts *f)
{
    size_t left = 0;

    for (size_t i = 0; i < f->n; i++) {
        struct course *c = &f->course[i];
        if (c->used) {
            c->used = false;
            f->course[left++] = *c;
        } else {
            signal_history_fini(&c->history);
        }
    }
    f->n = left;
}

/* The actual values: the signal's series, or its values as they were observed.  *ret is
 * to be freed.  -ENOENT: there is none in this unit; -ENOMEM.
 */
static int came_of(struct forecasts *f, const char *forecast, const char *unit,
                   struct judge_series *ret_came, struct judge_point **ret)
{
    char name[SIGNAL_NAME];
    int64_t now_s = utc_s(f);

    judge_list_foretold(forecast, name);
    int at = signals_find(f->store, name);
    struct course *c = at >= 0 ? course_of(f, name) : NULL;
    if (!c)
        return -ENOENT;
    struct signal_view v = look(f, (size_t)at);
    if (v.decl->type != POLICY_NUMBER || strcmp(v.decl->unit, unit) != 0)
        return -ENOENT;
    remember(c, &v, now_s);
    size_t n = v.is_series ? v.points : c->history.n;
    int r = v.is_series ? points_of(v.point, v.estimates, n, v.point_end_utc_s, ret)
                        : points_of(c->history.point, NULL, n, now_s + 1, ret);
    if (r < 0)
        return r;
    if (v.is_series && n > 0)
        (*ret)[n - 1].estimated = true; /* its end is not known yet */
    *ret_came = (struct judge_series){*ret, n};
    return 0;
}

/* ---- the verdict ---- */

static void say(const struct judge_forecast *forecast, int what,
                const struct signal_facts *facts)
{
    const char *name = forecast->signal;
    struct log_text source = log_quote(forecast->source);
    char worse[FACTS_WORSE];

    if (what == JUDGE_LIST_FULL)
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_FORECAST,
                  "name=%s source=%s state=not-judged limit=%d", name, source.text,
                  JUDGED_MAX);
    if (what != JUDGE_LIST_VERDICT)
        return;
    (void)facts_worse(facts, worse);
    log_event(worse[0] ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE, LOG_EVENT_FORECAST,
              "name=%s source=%s state=%s horizons=%s", name, source.text,
              worse[0] ? "worse" : "better", log_quote(worse).text);
}

static void judge(struct forecasts *f, size_t signal)
{
    struct signal_view v = look(f, signal);
    struct signal_facts facts = {.n_judged = 0};
    struct judge_forecast forecast = {.signal = v.decl->name, .unit = v.decl->unit};
    auto_(mem_free) struct judge_point *ahead = NULL, *came = NULL;
    char source[SIGNAL_SOURCE];

    if (!v.source[0]) /* no read of its file has ended yet */
        return;
    (void)snprintf(source, sizeof source, "%s", v.source);
    utf8_mend(source); /* a path may contain any bytes */
    forecast.source = source;
    if (came_of(f, v.decl->name, v.decl->unit, &forecast.came, &came) == -ENOMEM ||
        points_of(v.point, NULL, v.points, v.point_end_utc_s, &ahead) < 0)
        return;
    forecast.ahead = (struct judge_series){ahead, v.points};
    int what = judge_list_step(&f->list, &forecast, utc_s(f));
    judge_list_facts(&f->list, v.decl->name, utc_s(f), &facts);
    say(&forecast, what, &facts);
    signals_tell(f->store, signal, &facts);
}

/* ---- the file ---- */

static void say_file(const char *state, const char *why, void *user)
{
    (void)user;
    log_event(LOG_LEVEL_WARNING, LOG_EVENT_FORECASTS_FILE, "state=%s reason=%s", state,
              log_quote(why).text);
}

static void read_file(struct forecasts *f)
{
    auto_(mem_free) char *text = NULL;
    uw_error why = {""};
    size_t len = 0;
    int r = kept_file_read(&f->file, &text, &len, &why);

    if (r == 0)
        r = judge_list_read(&f->list, f->file.path, text, len, utc_s(f), &why);
    if (r < 0 && r != -ENOENT)
        kept_file_say(&f->file, "ignored", why.text);
}

static void write_file(struct forecasts *f)
{
    char *text = NULL;

    if (!f->list.changed || judge_list_write(&f->list, &text, NULL) < 0)
        return;
    f->list.changed = false;
    kept_file_write(&f->file, text, loop_now_ns(f->loop));
}

/* ---- life ---- */

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct forecasts *f = user;
    size_t signal;
    (void)timer;

    judge_list_begin(&f->list);
    for (size_t k = 0; f->files && signal_files_forecast(f->files, k, &signal); k++)
        judge(f, signal);
    drop_unused(f);
    if (kept_file_due(&f->file, now_ns))
        write_file(f);
    return 0;
}

void forecasts_use(struct forecasts *f, const struct signal_files *files)
{
    f->files = files;
}

int forecasts_new(struct loop *loop, struct signals *store, const char *folder,
                  struct forecasts **ret, uw_error *err)
{
    auto_(forecasts_free) struct forecasts *f = calloc(1, sizeof *f);

    if (!f)
        return fail(err, -ENOMEM, "out of memory");
    f->loop = loop;
    f->store = store;
    int r = loop_worker_new(loop, "forecasts", &f->worker, err);
    if (r < 0)
        return r;
    kept_file_init(&f->file, folder, "forecasts", f->worker, say_file, NULL);
    read_file(f);
    r = loop_timer_new(loop, loop_now_ns(loop) + LOOK_S * NS_PER_S, LOOK_S * NS_PER_S,
                       on_timer, f, &f->timer, err);
    if (r == 0)
        *ret = take(f);
    return r;
}

void forecasts_free(struct forecasts *f)
{
    if (!f)
        return;
    loop_timer_free(f->timer);
    f->file.ends = true;
    if (f->file.path[0] && !f->file.saving)
        write_file(f);
    loop_worker_free(f->worker);
    if (f->file.saving) /* its thread hangs and still uses the file */
        return;
    judge_list_fini(&f->list);
    for (size_t i = 0; i < f->n; i++)
        signal_history_fini(&f->course[i].history);
    free(f);
}
