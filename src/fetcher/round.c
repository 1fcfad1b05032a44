#include "fetcher/round.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "io/file.h"
#include "io/secret.h"
#include "signal/held.h"

const char *round_end_name(enum round_end end)
{
    static const char *const names[ROUND_ENDS] = {
        [ROUND_ANSWERS] = "answers", [ROUND_EMPTY] = "no-data",
        [ROUND_REFUSED] = "refused", [ROUND_WAIT] = "wait",
        [ROUND_BAD] = "bad",         [ROUND_SILENT] = "silent"};

    return names[end];
}

/* The headers of an answer that the sources read. */
static const char *const wanted[] = {"Age", "Date", "ETag", "Last-Modified",
                                     "Retry-After"};

/* An answer with its texts. */
struct carried {
    struct source_header header[n_elements(wanted)];
    struct http_got got[n_elements(wanted)];
    char *body;
    struct source_answer answer;
};

static void carried_fini(struct carried *c)
{
    for (size_t i = 0; i < n_elements(wanted); i++)
        free(c->got[i].value);
    free(c->body);
}

static int64_t utc_s(const struct loop *loop)
{
    return loop_utc_ns(loop) / (int64_t)NS_PER_S;
}

/* ---- requests ---- */

static int read_file(const char *path, struct carried *ret, uw_error *err)
{
    struct stat st;
    int r = file_read_owned(path, SOURCE_BODY_MAX, ROUND_FILE_MS, &ret->body,
                            &ret->answer.len, &st, err);

    if (r < 0)
        return r;
    ret->answer.status = 200;
    ret->answer.modified_utc_s = st.st_mtim.tv_sec;
    return 0;
}

/* The start of the path: the end of the host. */
static size_t host_end(const char *url)
{
    const char *host = strstr(url, "://");

    host = host ? host + 3 : url;
    return (size_t)(host - url) + strcspn(host, "/?#");
}

/* Path and query, including a secret that belongs there.  NULL: out of memory. */
static char *path_of(const struct source_request *q, const char *secret)
{
    const char *path = q->url + host_end(q->url);
    char *text = NULL;
    int n = q->secret_query && secret
                ? asprintf(&text, "%s%c%s=%s", path, strchr(path, '?') ? '&' : '?',
                           q->secret_query, secret)
                : asprintf(&text, "%s", path);

    return n < 0 ? NULL : text;
}

static int ask(struct round *w, const struct source_request *q, const char *secret,
               struct carried *ret, uw_error *err)
{
    struct http_sent sent[SOURCE_HEADERS + 1] = {{"Accept", "*/*"}};
    char url[SOURCE_URL];
    char *path = path_of(q, secret);
    struct http_ask one = {.method = "GET",
                           .path = path,
                           .basic = q->basic,
                           .header = sent,
                           .n_headers = 1 + q->n_headers,
                           .got = ret->got,
                           .n_got = n_elements(wanted),
                           .keep = true};
    struct http_chain chain = {.url = url, .ask = &one, .n = 1};

    if (!path)
        return fail(err, -ENOMEM, "out of memory");
    (void)snprintf(url, sizeof url, "%.*s", (int)host_end(q->url), q->url);
    /* source_check() decides which sources may be queried without TLS */
    chain.plain = strncmp(url, "http://", 7) == 0;
    for (size_t i = 0; i < q->n_headers; i++)
        sent[i + 1] = (struct http_sent){q->header[i].name, q->header[i].value};
    http_many_run(w->http, &chain, 1);
    explicit_bzero(path, strlen(path));
    free(path);
    ret->body = one.body;
    ret->answer.len = one.len;
    ret->answer.status = one.status;
    if (chain.r < 0)
        return fail(err, chain.r, "%s", chain.why.text);
    return 0;
}

static int carry(struct round *w, const struct source_request *q, const char *secret,
                 struct carried *ret, uw_error *err)
{
    for (size_t i = 0; i < n_elements(wanted); i++)
        ret->got[i].name = wanted[i];
    if (q->way == SOURCE_FILE)
        return read_file(q->url, ret, err);
    if (q->way == SOURCE_HTTP)
        return ask(w, q, secret, ret, err);
    ret->answer.status = 200;
    return 0;
}

/* ---- the round ---- */

static enum round_end end_of(enum source_outcome outcome)
{
    switch (outcome) {
    case SOURCE_REFUSED:
        return ROUND_REFUSED;
    case SOURCE_WAIT:
        return ROUND_WAIT;
    case SOURCE_BAD:
        return ROUND_BAD;
    case SOURCE_NO_DATA:
        return ROUND_EMPTY;
    default:
        return ROUND_ANSWERS;
    }
}

static void note(struct round *w, enum round_end end, const uw_error *why)
{
    if (end <= w->end)
        return;
    w->end = end;
    w->why = *why;
}

/* Stores the answer; 0 or -ENOMEM. */
static int take_answer(struct round *w, const char *secret, struct carried *c,
                       struct loop *loop, uw_error *err)
{
    const struct source_config *source = &w->config->source[w->at].c;
    struct source_values values = {.n = 0};
    enum source_outcome outcome = SOURCE_BAD;
    size_t n = 0;

    for (size_t i = 0; i < n_elements(wanted); i++)
        if (c->got[i].value)
            c->header[n++] = (struct source_header){c->got[i].name, c->got[i].value};
    c->answer.header = c->header;
    c->answer.n_headers = n;
    c->answer.body = c->body;
    c->answer.utc_s = utc_s(loop);
    int r = source_take(source, secret, &w->state, &c->answer, &outcome, &values, err);
    if (r == 0 && outcome == SOURCE_VALUES)
        r = held_add(&w->values, &values);
    else if (r == 0)
        note(w, end_of(outcome), err);
    source_values_fini(&values);
    return r;
}

/* Makes one request; false: the round is over. */
static bool step(struct round *w, const char *secret, struct loop *loop)
{
    const struct source_config *source = &w->config->source[w->at].c;
    struct source_request *q = calloc(1, sizeof *q);
    struct carried c = {.body = NULL};
    uw_error err = {""}, why = {""};
    int r = q ? fetch_next(&w->fetch, source, secret, &w->state, utc_s(loop), q, &err)
              : -ENOMEM;
    bool asked = r == 0;

    if (r == SOURCE_E_REST) {
        (void)fail(&why, r, "%s: waits, as its server asks", source->name);
        note(w, ROUND_WAIT, &why);
    }
    if (r == 0)
        r = carry(w, q, secret, &c, &err);
    if (r == 0)
        r = take_answer(w, secret, &c, loop, &err);
    if (r < 0) {
        bool hidden = secret && strstr(err.text, secret);
        (void)fail(&why, r, "%s: %s", source->name,
                   hidden || !err.text[0] ? strerror(-r) : err.text);
        note(w, ROUND_SILENT, &why);
    }
    carried_fini(&c);
    if (q)
        explicit_bzero(q, sizeof *q);
    free(q);
    return asked && r == 0;
}

int round_run(struct loop *loop, void *work)
{
    struct round *w = work;
    char *secret = NULL;

    w->end = ROUND_ANSWERS;
    w->why = (uw_error){""};
    if (source_needs_secret(&w->config->source[w->at].c) &&
        signals_config_secret(w->config, w->at, &secret, &w->why) < 0) {
        w->end = ROUND_SILENT;
        return 0;
    }
    while (step(w, secret, loop))
        ;
    secret_free(secret);
    return 0;
}
