#include "fetcher/follow.h"

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
#include "io/http-many.h"
#include "io/secret.h"
#include "signal/fetch.h"
#include "signal/followed.h"
#include "signal/kind.h"

enum { BEARER = SECRET_MAX + 16 };

/* The headers of an answer that are read. */
enum { GOT_AGE, GOT_DATE, GOT_TAG, GOTS };

/* A request and its result, in the worker's thread. */
struct asked {
    const struct signals_follow *site;
    struct http_many *http;
    char tag[SOURCE_TAG]; /* tag of the held answer; "": none */
    /* results: */
    enum round_end end;
    uw_error why;
    bool same;             /* unchanged since the last answer */
    struct followed taken; /* if the site answers with changed values */
    char seen_tag[SOURCE_TAG];
    int64_t rest_s; /* requested by the site */
};

struct follow {
    struct loop *loop;
    const struct signals_config *config;
    struct loop_timer *timer;
    struct loop_worker *worker;
    struct asked asked; /* used by the worker while `busy` */
    bool busy, ends;
    struct fetch fetch;
    struct source_state state; /* state of `fetch` only */
    struct followed held;
    enum round_end said; /* last reported end; ROUND_ENDS: none yet */
    char error[sizeof(uw_error)];
    uint64_t rounds;
    struct signal_asked counts;
    struct kept_file cache;
};

/* ---- in the worker's thread ---- */

static int end_with(struct asked *a, enum round_end end, const char *why)
{
    a->end = end;
    return fail(&a->why, 0, SIGNALS_FOLLOW ": %s", why);
}

/* The site's times are not used if its clock is wrong. */
static bool is_in_time(struct asked *a, const struct http_got *got, int64_t utc_s)
{
    struct source_header header[2];
    struct source_answer answer = {.header = header, .utc_s = utc_s};
    int64_t now_utc_s = 0;
    uw_error why = {""};

    if (got[GOT_AGE].value)
        header[answer.n_headers++] = (struct source_header){"Age", got[GOT_AGE].value};
    if (got[GOT_DATE].value)
        header[answer.n_headers++] = (struct source_header){"Date", got[GOT_DATE].value};
    if (answer_clock(&answer, &now_utc_s, &why) == 0)
        return true;
    (void)end_with(a, ROUND_BAD, why.text);
    return false;
}

static int take_values(struct asked *a, const struct http_ask *ask)
{
    const char *tag = ask->got[GOT_TAG].value;
    uw_error why = {""};
    int r = followed_read(a->site->url, ask->body ? ask->body : "", ask->len, &a->taken,
                          &why);

    if (r < 0)
        return end_with(a, ROUND_BAD, why.text);
    (void)snprintf(a->seen_tag, sizeof a->seen_tag, "%s",
                   tag && strlen(tag) < sizeof a->seen_tag ? tag : "");
    return 0;
}

static int take_answer(struct asked *a, const struct http_ask *ask, unsigned retry_s,
                       int64_t utc_s)
{
    char why[80];

    if (ask->status == 401 || ask->status == 403) {
        (void)snprintf(why, sizeof why, "the token is refused (status %u)", ask->status);
        return end_with(a, ROUND_REFUSED, why);
    }
    if (ask->status == 429 || ask->status >= 500) {
        a->rest_s = retry_s;
        (void)snprintf(why, sizeof why, "the site fails (status %u)", ask->status);
        return end_with(a, ROUND_WAIT, why);
    }
    if (ask->status != 200 && ask->status != 304) {
        (void)snprintf(why, sizeof why, "status %u", ask->status);
        return end_with(a, ROUND_BAD, why);
    }
    if (!is_in_time(a, ask->got, utc_s))
        return 0;
    a->same = ask->status == 304;
    return a->same ? 0 : take_values(a, ask);
}

/* Sends one request, on a connection of its own: a site has more nodes than connections.
 */
static void ask_site(struct asked *a, const char *bearer, int64_t utc_s)
{
    struct http_got got[GOTS] = {[GOT_AGE] = {"Age", NULL},
                                 [GOT_DATE] = {"Date", NULL},
                                 [GOT_TAG] = {"ETag", NULL}};
    const struct http_sent sent[] = {{"Accept", "application/json"},
                                     {"Connection", "close"},
                                     {"Authorization", bearer},
                                     {"If-None-Match", a->tag}};
    struct http_ask ask = {.method = "GET",
                           .path = "/v1/signals",
                           .header = sent,
                           .n_headers = n_elements(sent) - !a->tag[0],
                           .got = got,
                           .n_got = n_elements(got),
                           .keep = true};
    struct http_chain chain = {.url = a->site->url, .ask = &ask, .n = 1};

    http_many_run(a->http, &chain, 1);
    if (chain.r < 0)
        (void)end_with(a, ROUND_SILENT, chain.why.text);
    else
        (void)take_answer(a, &ask, chain.retry_s, utc_s);
    for (size_t i = 0; i < n_elements(got); i++)
        free(got[i].value);
    free(ask.body);
}

static int run(struct loop *loop, void *work)
{
    struct asked *a = work;
    char *token = NULL, bearer[BEARER];
    uw_error why = {""};

    a->end = ROUND_ANSWERS;
    a->why = (uw_error){""};
    a->same = false;
    a->rest_s = 0;
    if (secret_read(a->site->token, "token", false, &token, &why) < 0)
        return end_with(a, ROUND_SILENT, why.text);
    (void)snprintf(bearer, sizeof bearer, "Bearer %s", token);
    secret_free(token);
    ask_site(a, bearer, loop_utc_ns(loop) / (int64_t)NS_PER_S);
    explicit_bzero(bearer, sizeof bearer);
    return 0;
}

/* ---- the cache ---- */

static void read_cache(struct follow *f)
{
    auto_(mem_free) char *text = NULL;
    uw_error why = {""};
    size_t len = 0;

    int r = kept_file_read(&f->cache, &text, &len, &why);
    if (r == 0)
        r = followed_load(f->config->follow.url, f->cache.path, text, len, &f->held,
                          &why);
    if (r < 0 && r != -ENOENT)
        kept_file_say(&f->cache, "ignored", why.text);
}

static void write_cache(struct follow *f)
{
    uint64_t now_ns = loop_now_ns(f->loop);
    char *text = NULL;

    if (kept_file_due(&f->cache, now_ns) &&
        followed_write(f->config->follow.url, &f->held, &text, NULL) == 0)
        kept_file_write(&f->cache, text, now_ns);
}

/* ---- rounds ---- */

static int64_t utc_s(const struct follow *f)
{
    return loop_utc_ns(f->loop) / (int64_t)NS_PER_S;
}

static void say(struct follow *f)
{
    const struct asked *a = &f->asked;

    (void)snprintf(f->error, sizeof f->error, "%s",
                   a->end == ROUND_ANSWERS ? "" : a->why.text);
    if (a->end == f->said)
        return;
    f->said = a->end;
    log_event(a->end == ROUND_ANSWERS ? LOG_LEVEL_NOTICE : LOG_LEVEL_WARNING,
              LOG_EVENT_SIGNALS_SOURCE, "name=" SIGNALS_FOLLOW " state=%s reason=%s",
              round_end_name(a->end), log_quote(f->error).text);
}

static int64_t next_utc_s(const struct follow *f)
{
    uint64_t now_ns = loop_now_ns(f->loop), due_ns = f->fetch.due_ns;

    return utc_s(f) + (int64_t)((due_ns > now_ns ? due_ns - now_ns : 0) / NS_PER_S);
}

/* The round is over: sets the time of the next one. */
static void count(struct follow *f)
{
    f->counts.requests++;
    f->counts.failures += f->asked.end != ROUND_ANSWERS;
    if (f->asked.end == ROUND_ANSWERS)
        f->counts.success_utc_s = utc_s(f);
    f->counts.next_utc_s = next_utc_s(f);
}

static int on_round(struct loop *loop, void *work, int r)
{
    struct asked *a = work;
    struct follow *f = (struct follow *)((char *)a - offsetof(struct follow, asked));
    (void)loop;

    f->busy = r == -ETIMEDOUT; /* only at the end */
    if (f->ends)
        return 0;
    if (r < 0)
        (void)end_with(a, ROUND_SILENT, strerror(-r));
    if (a->end == ROUND_ANSWERS && !a->same) {
        followed_take(&f->held, &a->taken);
        memcpy(a->tag, a->seen_tag, sizeof a->tag);
    }
    f->held.asked_utc_s = utc_s(f);
    f->rounds++;
    say(f);
    if (a->end == ROUND_ANSWERS)
        write_cache(f);
    fetch_over(&f->fetch, &f->state, a->end == ROUND_ANSWERS,
               (uint64_t)a->rest_s * NS_PER_S, loop_now_ns(f->loop));
    count(f);
    loop_timer_set(f->timer, f->fetch.due_ns, 0);
    return 0;
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct follow *f = user;
    const struct loop_work work = {.fn = run, .done = on_round, .work = &f->asked};
    (void)now_ns;

    f->busy = loop_worker_submit(f->worker, &work) == 0;
    if (!f->busy)
        loop_timer_set(timer, loop_now_ns(f->loop) + NS_PER_S, 0);
    return 0;
}

/* ---- views ---- */

const char *follow_error(const struct follow *f)
{
    return f->error;
}

uint64_t follow_rounds(const struct follow *f)
{
    return f->rounds;
}

void follow_each(const struct follow *f, judges_series_fn fn, void *arg)
{
    for (size_t i = 0; i < f->held.n; i++) {
        const struct followed_signal *s = &f->held.signal[i];
        if (!signals_config_gives(f->config, s->series.signal))
            fn(s->source, followed_limits(), &s->series, arg);
    }
}

void follow_show(const struct follow *f, const struct judges *judges,
                 const struct held_shown *shown, struct json_out *o)
{
    struct signal_facts facts = {.n_judged = 0};

    if (shown->asked)
        facts.asked = f->counts;
    for (size_t i = 0; i < f->held.n; i++) {
        const struct followed_signal *s = &f->held.signal[i];
        const char *name = s->series.signal;
        if ((shown->signal && strcmp(shown->signal, name) != 0) ||
            signals_config_gives(f->config, name))
            continue;
        facts.n_judged = 0;
        judges_facts(judges, name, utc_s(f), &facts);
        followed_show(o, f->config->follow.url, s, shown->since_utc_s, utc_s(f), f->error,
                      &facts);
    }
}

/* ---- life ---- */

static int open_follow(struct follow *f, uw_error *err)
{
    const struct signals_follow *site = &f->config->follow;
    const struct http_many_opts opts = {.agent = "underwatt-signals",
                                        .ca = site->ca,
                                        .what = "site",
                                        .timeout_ns = FOLLOW_REQUEST_S * NS_PER_S,
                                        .at_once = 1,
                                        .body_max = FOLLOWED_BODY_MAX};
    uint64_t seed = 0;

    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        return fail(err, -errno, "no random numbers: %s", strerror(errno));
    int r = loop_worker_new(f->loop, SIGNALS_FOLLOW, &f->worker, err);
    if (r < 0)
        return r;
    cache_file_init(&f->cache, f->config->cache, SIGNALS_FOLLOW, f->worker);
    read_cache(f);
    fetch_begin(&f->fetch, site->every_ns, seed, loop_now_ns(f->loop),
                fetch_ago_ns(f->held.asked_utc_s, utc_s(f)), 0);
    (void)snprintf(f->counts.by, sizeof f->counts.by, SIGNALS_FOLLOW);
    f->counts.next_utc_s = next_utc_s(f);
    r = http_many_new(&opts, &f->asked.http, err);
    return r < 0
               ? r
               : loop_timer_new(f->loop, f->fetch.due_ns, 0, on_timer, f, &f->timer, err);
}

int follow_new(struct loop *loop, const struct signals_config *config,
               struct follow **ret, uw_error *err)
{
    auto_(follow_free) struct follow *f = calloc(1, sizeof *f);

    if (!f)
        return fail(err, -ENOMEM, "out of memory");
    f->loop = loop;
    f->config = config;
    f->said = ROUND_ENDS;
    f->asked.site = &config->follow;
    int r = open_follow(f, err);
    if (r == 0)
        *ret = take(f);
    return r;
}

void follow_free(struct follow *f)
{
    if (!f)
        return;
    f->ends = true;
    f->cache.ends = true;
    loop_timer_free(f->timer);
    if (f->asked.http)
        http_many_cancel(f->asked.http);
    loop_worker_free(f->worker);
    if (f->busy || f->cache.saving) /* its thread hangs and still uses the data */
        return;
    http_many_free(f->asked.http);
    followed_fini(&f->asked.taken);
    followed_fini(&f->held);
    free(f);
}
