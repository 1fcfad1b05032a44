#include "fetcher/feed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "fetcher/cache.h"
#include "fetcher/round.h"
#include "signal/held.h"

/* A source. */
struct lane {
    struct feed *f;
    const struct signals_source *source;
    struct loop_timer *timer;
    struct loop_worker *worker;
    struct round round; /* used by the worker while `busy` */
    bool busy;
    struct held held;
    enum round_end said; /* last reported end; ROUND_ENDS: none yet */
    char error[sizeof(uw_error)];
    struct signal_asked asked;
    struct kept_file cache;
};

struct feed {
    struct loop *loop;
    const struct signals_config *config;
    struct lane *lane;
    size_t n;
    uint64_t rounds;
    bool ends;
};

static int64_t utc_s(const struct feed *f)
{
    return loop_utc_ns(f->loop) / (int64_t)NS_PER_S;
}

/* ---- the cache ---- */

static void read_cache(struct lane *l)
{
    auto_(mem_free) char *text = NULL;
    uw_error why = {""};
    size_t len = 0;

    int r = kept_file_read(&l->cache, &text, &len, &why);
    if (r == 0)
        r = held_read(&l->source->c, l->cache.path, text, len, &l->held, &why);
    if (r < 0 && r != -ENOENT)
        kept_file_say(&l->cache, "ignored", why.text);
}

static void write_cache(struct lane *l)
{
    uint64_t now_ns = loop_now_ns(l->f->loop);
    char *text = NULL;

    if (kept_file_due(&l->cache, now_ns) &&
        held_write(&l->source->c, &l->held, &text, NULL) == 0)
        kept_file_write(&l->cache, text, now_ns);
}

/* ---- rounds ---- */

static void say(struct lane *l)
{
    const struct round *w = &l->round;

    (void)snprintf(l->error, sizeof l->error, "%s",
                   w->end == ROUND_ANSWERS ? "" : w->why.text);
    if (w->end == l->said)
        return;
    l->said = w->end;
    log_event(w->end == ROUND_ANSWERS ? LOG_LEVEL_NOTICE : LOG_LEVEL_WARNING,
              LOG_EVENT_SIGNALS_SOURCE, "name=%s state=%s reason=%s", l->source->c.name,
              round_end_name(w->end), log_quote(l->error).text);
}

static int64_t next_utc_s(const struct lane *l)
{
    uint64_t now_ns = loop_now_ns(l->f->loop), due_ns = l->round.fetch.due_ns;

    return utc_s(l->f) + (int64_t)((due_ns > now_ns ? due_ns - now_ns : 0) / NS_PER_S);
}

/* The round is over: sets the time of the next one. */
static void count(struct lane *l, unsigned requests, int64_t now_s)
{
    const struct round *w = &l->round;

    l->asked.requests += requests;
    l->asked.failures += w->end > ROUND_EMPTY;
    if (w->end <= ROUND_EMPTY)
        l->asked.success_utc_s = now_s;
    l->asked.next_utc_s = next_utc_s(l);
}

static int on_round(struct loop *loop, void *work, int r)
{
    struct lane *l = work;
    struct round *w = &l->round;
    const int64_t now_s = utc_s(l->f);
    int64_t rest_s = w->state.rest_utc_s - now_s;
    (void)loop;

    l->busy = r == -ETIMEDOUT; /* only at the end */
    if (l->f->ends)
        return 0;
    if (r < 0) {
        w->end = ROUND_SILENT;
        (void)fail(&w->why, r, "%s: %s", l->source->c.name, strerror(-r));
    }
    bool got = w->values.n > 0;
    if (got && held_add(&l->held.values, &w->values) < 0)
        got = false;
    source_values_fini(&w->values);
    l->held.asked_utc_s = now_s;
    l->held.rest_utc_s = w->state.rest_utc_s;
    l->held.known_utc_s = w->state.known_utc_s;
    l->f->rounds++;
    say(l);
    if (got || rest_s > 0)
        write_cache(l);
    unsigned requests = w->fetch.asked;
    fetch_over(&w->fetch, &w->state, w->end <= ROUND_EMPTY,
               rest_s > 0 ? (uint64_t)rest_s * NS_PER_S : 0, loop_now_ns(l->f->loop));
    count(l, requests, now_s);
    loop_timer_set(l->timer, w->fetch.due_ns, 0);
    return 0;
}

static int run(struct loop *loop, void *work)
{
    struct lane *l = work;

    return round_run(loop, &l->round);
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct lane *l = user;
    const struct loop_work work = {.fn = run, .done = on_round, .work = l};
    (void)now_ns;

    l->busy = loop_worker_submit(l->worker, &work) == 0;
    if (!l->busy)
        loop_timer_set(timer, loop_now_ns(l->f->loop) + NS_PER_S, 0);
    return 0;
}

/* ---- views ---- */

void feed_each(const struct feed *f, judges_series_fn fn, void *arg)
{
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < f->lane[i].held.values.n; k++)
            fn(f->lane[i].source->c.name, f->lane[i].source,
               &f->lane[i].held.values.series[k], arg);
}

void feed_show(const struct feed *f, const struct judges *judges,
               const struct held_shown *shown, struct json_out *o)
{
    char name[SIGNAL_NAME];

    for (size_t i = 0; i < f->n; i++) {
        const struct lane *l = &f->lane[i];
        struct signal_facts facts = {.n_judged = 0};
        struct held_origin from = held_origin(l->source);
        if (shown->asked)
            facts.asked = l->asked;
        from.facts = &facts;
        from.since_utc_s = shown->since_utc_s;
        for (size_t k = 0; source_kind_gives(l->source->c.kind, k); k++) {
            if (!(l->source->c.provides >> k & 1))
                continue;
            (void)source_signal(&l->source->c, k, name);
            facts.n_judged = 0;
            judges_facts(judges, name, utc_s(f), &facts);
            if (!shown->signal || strcmp(shown->signal, name) == 0)
                held_show(o, &from, name, held_find(&l->held.values, name), utc_s(f),
                          l->error);
        }
    }
}

uint64_t feed_rounds(const struct feed *f)
{
    return f->rounds;
}

/* ---- life ---- */

static uint64_t rest_ns(const struct lane *l, int64_t now_s)
{
    int64_t rest_s = l->held.rest_utc_s - now_s;

    return rest_s > 0 && rest_s <= SOURCE_WAIT_MAX_S ? (uint64_t)rest_s * NS_PER_S : 0;
}

/* Files and the table are read again at once. */
static bool is_cached(const struct lane *l)
{
    return !l->source->c.file[0] &&
           strcmp(source_kind_type(l->source->c.kind), "static") != 0;
}

static int open_lane(struct feed *f, struct lane *l, size_t i, uw_error *err)
{
    const struct http_many_opts opts = {.agent = "underwatt-signals",
                                        .ca = f->config->source[i].ca,
                                        .what = "server",
                                        .timeout_ns = ROUND_REQUEST_S * NS_PER_S,
                                        .at_once = 1,
                                        .body_max = SOURCE_BODY_MAX};
    const int64_t now_s = utc_s(f);
    uint64_t seed = 0;

    l->f = f;
    l->source = &f->config->source[i];
    l->said = ROUND_ENDS;
    l->round.config = f->config;
    l->round.at = i;
    int r = loop_worker_new(f->loop, l->source->c.name, &l->worker, err);
    if (r < 0)
        return r;
    cache_file_init(&l->cache, is_cached(l) ? f->config->cache : NULL, l->source->c.name,
                    l->worker);
    read_cache(l);
    l->round.state.known_utc_s = l->held.known_utc_s;
    l->round.state.rest_utc_s = rest_ns(l, now_s) ? l->held.rest_utc_s : 0;
    if (l->round.state.rest_utc_s)
        (void)snprintf(l->error, sizeof l->error, "%s: waits, as its server asked",
                       l->source->c.name);
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        return fail(err, -errno, "no random numbers: %s", strerror(errno));
    fetch_begin(&l->round.fetch, l->source->every_ns, seed, loop_now_ns(f->loop),
                fetch_ago_ns(l->held.asked_utc_s, now_s), rest_ns(l, now_s));
    (void)snprintf(l->asked.by, sizeof l->asked.by, "%s", l->source->c.name);
    l->asked.next_utc_s = next_utc_s(l);
    r = http_many_new(&opts, &l->round.http, err);
    if (r == 0)
        r = loop_timer_new(f->loop, l->round.fetch.due_ns, 0, on_timer, l, &l->timer,
                           err);
    return r;
}

int feed_new(struct loop *loop, const struct signals_config *config, struct feed **ret,
             uw_error *err)
{
    auto_(feed_free) struct feed *f = calloc(1, sizeof *f);
    int r = 0;

    if (!f)
        return fail(err, -ENOMEM, "out of memory");
    f->loop = loop;
    f->config = config;
    f->lane = calloc(config->n, sizeof *f->lane);
    if (!f->lane)
        return fail(err, -ENOMEM, "out of memory");
    for (; r == 0 && f->n < config->n; f->n++)
        r = open_lane(f, &f->lane[f->n], f->n, err);
    if (r == 0)
        *ret = take(f);
    return r;
}

void feed_free(struct feed *f)
{
    if (!f)
        return;
    bool hangs = false;
    f->ends = true;
    for (size_t i = 0; i < f->n; i++) {
        struct lane *l = &f->lane[i];
        loop_timer_free(l->timer);
        l->cache.ends = true;
        if (l->round.http)
            http_many_cancel(l->round.http);
        loop_worker_free(l->worker);
        if (l->busy || l->cache.saving) { /* its thread hangs and still uses the lane */
            hangs = true;
            continue;
        }
        http_many_free(l->round.http);
        explicit_bzero(l->round.state.token, sizeof l->round.state.token);
        source_values_fini(&l->round.values);
        held_fini(&l->held);
    }
    if (hangs)
        return;
    free(f->lane);
    free(f);
}
