#include "fetcher/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "io/http.h"
#include "io/secret.h"
#include "signal/followed.h"

enum { TAG = 24, LISTENER_UNIX = 1, LISTENER_TCP };
enum { LARGE = FOLLOWED_BODY_MAX / 2 };
enum { FILES_OWN = 512, FILES_LEAST = 600 }; /* descriptors that are not for nodes */

/* An answer for many clients: rendered again after each round, and each second, because
 * values begin and end with time.
 */
struct answer {
    struct http_text *text; /* NULL: none yet */
    size_t len;
    char tag[TAG];
    int64_t utc_s;
    uint64_t rounds;
};

struct serve {
    struct loop *loop;
    struct serve_opts opts;
    char *token;
    struct http_server *local, *remote; /* NULL: not served */
    struct answer whole, of_nodes;      /* all signals: over the socket, and over TCP */
    bool is_large;
};

/* ---- answers ---- */

/* The hash of the text (FNV-1a) is its version. */
static void tag_of(const char *text, char ret[TAG])
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    (void)snprintf(ret, TAG, "\"%016" PRIx64 "\"", h);
}

/* signal: only this one, or all (NULL).  A node gets what it needs: a short past, from a
 * whole hour on, so that the text does not change because of it, and no counts of
 * queries.
 */
static int make(const struct serve *s, const char *signal, bool local, struct answer *ret,
                uw_error *err)
{
    int64_t since_s = loop_utc_ns(s->loop) / (int64_t)NS_PER_S - NODE_PAST_S;
    const struct held_shown shown = {.signal = signal,
                                     .since_utc_s = local ? 0 : since_s - since_s % 3600,
                                     .asked = local};
    auto_(json_out_free) struct json_out *o = json_out_new();
    const struct follow *follow = s->opts.follow;
    auto_(mem_free) char *text = NULL;

    json_out_object(o, NULL);
    json_out_array(o, "signals");
    if (s->opts.feed)
        feed_show(s->opts.feed, s->opts.judges, &shown, o);
    if (follow)
        follow_show(follow, s->opts.judges, &shown, o);
    json_out_end(o);
    json_out_text(o, "error",
                  follow && follow_error(follow)[0] ? follow_error(follow) : NULL);
    json_out_end(o);
    int r = local ? json_out_string(o, &text, err) : json_out_joined(o, &text, err);
    if (r < 0)
        return r;
    ret->len = strlen(text);
    ret->text = http_text_new(text, ret->len);
    if (!ret->text)
        return fail(err, -ENOMEM, "out of memory");
    tag_of(text, ret->tag);
    return 0;
}

static uint64_t rounds(const struct serve *s)
{
    return (s->opts.feed ? feed_rounds(s->opts.feed) : 0) +
           (s->opts.follow ? follow_rounds(s->opts.follow) : 0);
}

/* Warns once that nodes will soon refuse the text. */
static void look_at_size(struct serve *s, size_t len)
{
    if (len > LARGE && !s->is_large)
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_SIGNALS_LARGE,
                  "bytes=%zu limit=%d: nodes do not take more than the limit", len,
                  FOLLOWED_BODY_MAX);
    s->is_large = len > LARGE;
}

/* All signals: many nodes get the same text. */
static int whole(struct serve *s, bool local, struct answer **ret, uw_error *err)
{
    struct answer *a = local ? &s->whole : &s->of_nodes;
    struct answer new = {.utc_s = loop_utc_ns(s->loop) / (int64_t)NS_PER_S,
                         .rounds = rounds(s)};

    *ret = a;
    if (a->text && a->utc_s == new.utc_s && a->rounds == new.rounds)
        return 0;
    int r = make(s, NULL, local, &new, err);
    if (r < 0)
        return r;
    if (!local)
        look_at_size(s, new.len);
    http_text_unref(a->text);
    *a = new;
    return 0;
}

static void reply(struct http_exchange *x, const struct answer *a)
{
    const struct http_field fields[] = {
        {"ETag", a->tag}, {"Cache-Control", "no-cache"}, {NULL, NULL}};
    const char *has = http_header(x, "If-None-Match");

    if (has && strcmp(has, a->tag) == 0)
        http_reply(x, 304, NULL, NULL, 0, fields);
    else
        http_reply_text(x, 200, "application/json", a->text, fields);
}

static void signals(struct serve *s, struct http_exchange *x)
{
    static const char *const keys[] = {"name", NULL};
    const char *name = http_query(x, "name");
    struct answer one = {.text = NULL}, *all = &one;
    bool local = http_peer(x)->local;
    uw_error err = {""};

    int r = http_query_only(x, keys, &err);
    if (r == 0)
        r = name ? make(s, name, local, &one, &err) : whole(s, local, &all, &err);
    if (r < 0)
        http_fail_r(x, r, &err);
    else
        reply(x, all);
    http_text_unref(one.text);
}

/* ---- clients ---- */

/* Takes the same time for any texts; only their lengths may show. */
static bool is_same(const char *given, const char *own)
{
    size_t n = strlen(given);
    unsigned differs = n != strlen(own);

    for (size_t i = 0; own[i]; i++)
        differs |= (unsigned char)own[i] ^ (unsigned char)given[n ? i % n : 0];
    return differs == 0;
}

static bool may_read(const struct serve *s, const struct http_exchange *x)
{
    static const char bearer[] = "Bearer ";
    const char *given = http_header(x, "Authorization");

    return http_peer(x)->local ||
           (given && strncasecmp(given, bearer, sizeof bearer - 1) == 0 &&
            is_same(given + sizeof bearer - 1, s->token));
}

static void on_request(struct http_exchange *x, void *user)
{
    static const struct http_field challenge[] = {{"WWW-Authenticate", "Bearer"},
                                                  {NULL, NULL}};
    struct serve *s = user;

    if (!may_read(s, x))
        http_fail_fields(x, 401, challenge, "this needs the site's token");
    else if (strcmp(http_path(x), "/v1/signals") != 0)
        http_fail(x, 404, "there is no such path: GET /v1/signals");
    else if (http_method(x) != HTTP_GET)
        http_fail(x, 405, "/v1/signals is read alone: GET");
    else
        signals(s, x);
}

static void on_refused(const char *line, void *user)
{
    (void)user;
    log_event(LOG_LEVEL_WARNING, LOG_EVENT_SIGNALS_REFUSED, "%s", line);
}

/* ---- the configuration ---- */

int serve_token(const char *path, char **ret, uw_error *err)
{
    char *token = NULL;
    int r = secret_read(path, "token", false, &token, err);

    if (r == 0 && strlen(token) < SERVE_TOKEN_MIN)
        r = fail(err, -EINVAL, "%s: the token has %zu characters: %d at least", path,
                 strlen(token), SERVE_TOKEN_MIN);
    if (r == 0)
        *ret = take(token);
    secret_free(token);
    return r;
}

int serve_check(struct loop *loop, const struct signals_config *config, char **ret_token,
                uw_error *err)
{
    auto_(http_server_free) struct http_server *s = NULL;
    const struct http_opts opts = {.loop = loop};
    const struct http_tls tls = {config->cert, config->key};

    if (!config->listen)
        return 0;
    int r = http_server_new(&opts, &s, err);
    if (r == 0)
        r = secret_check(config->key, "key", err);
    if (r == 0)
        r = http_check_tls(s, &tls, err);
    if (r == 0)
        r = serve_token(config->token, ret_token, err);
    return r < 0 ? fail_in(err, r, "%s: serve.tcp", config->name) : 0;
}

/* ---- life ---- */

static int open_local(struct serve *s, uw_error *err)
{
    const struct http_opts opts = {
        .loop = s->loop, .handler = on_request, .log = on_refused, .user = s};
    const struct http_unix at = {
        .path = s->opts.config->socket, .mode = 0666, .id = LISTENER_UNIX};
    int r = http_server_new(&opts, &s->local, err);

    return r < 0 ? r : http_listen_unix(s->local, &at, err);
}

/* Requests more descriptors than the usual 1,024, if permitted; returns the number of
 * connections that they allow in addition to those of the socket and the sources.
 */
static int count_connections(unsigned *ret, uw_error *err)
{
    const rlim_t all = SERVE_CONNECTIONS + FILES_OWN;
    struct rlimit files;

    *ret = SERVE_CONNECTIONS;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return fail(err, -errno, "getrlimit: %s", strerror(errno));
    if (files.rlim_cur < all) {
        struct rlimit more = files;
        more.rlim_cur = files.rlim_max < all ? files.rlim_max : all;
        if (setrlimit(RLIMIT_NOFILE, &more) == 0)
            files = more;
    }
    if (files.rlim_cur >= all)
        return 0;
    if (files.rlim_cur < FILES_LEAST)
        return fail(err, -EMFILE,
                    "serve.tcp: this process may have %" PRIu64
                    " files open: %d at least (LimitNOFILE, ulimit -n)",
                    (uint64_t)files.rlim_cur, FILES_LEAST);
    *ret = (unsigned)(files.rlim_cur - FILES_OWN);
    log_event(LOG_LEVEL_WARNING, LOG_EVENT_SIGNALS_FILES,
              "limit=%" PRIu64 " connections=%u: %" PRIu64 " files are enough for all",
              (uint64_t)files.rlim_cur, *ret, (uint64_t)all);
    return 0;
}

/* A request has no body.  The timeout is long, because a thousand handshakes at once
 * take time.
 */
static int open_remote(struct serve *s, uw_error *err)
{
    const struct signals_config *c = s->opts.config;
    unsigned connections = 0;
    int r = count_connections(&connections, err);
    const struct http_opts opts = {.loop = s->loop,
                                   .handler = on_request,
                                   .log = on_refused,
                                   .user = s,
                                   .limits = {.connections = connections,
                                              .body_bytes = 1,
                                              .request_ns = SERVE_REQUEST_S * NS_PER_S}};
    const struct http_tls tls = {c->cert, c->key};

    if (r == 0)
        r = http_server_new(&opts, &s->remote, err);
    if (r < 0)
        return r;
    r = http_listen_tls(s->remote, c->listen, &tls, LISTENER_TCP, err);
    return r < 0 ? fail_in(err, r, "serve.tcp") : 0;
}

int serve_new(struct loop *loop, const struct serve_opts *opts, struct serve **ret,
              uw_error *err)
{
    auto_(serve_free) struct serve *s = calloc(1, sizeof *s);
    int r = 0;

    if (!s)
        return fail(err, -ENOMEM, "out of memory");
    s->loop = loop;
    s->opts = *opts;
    s->token = opts->token ? strdup(opts->token) : NULL;
    s->opts.token = NULL;
    if (opts->token && !s->token)
        return fail(err, -ENOMEM, "out of memory");
    if (opts->config->socket)
        r = open_local(s, err);
    if (r == 0 && opts->config->listen)
        r = open_remote(s, err);
    if (r == 0)
        *ret = take(s);
    return r;
}

void serve_free(struct serve *s)
{
    if (!s)
        return;
    http_server_free(s->local);
    http_server_free(s->remote);
    http_text_unref(s->whole.text);
    http_text_unref(s->of_nodes.text);
    secret_free(s->token);
    free(s);
}

uint16_t serve_port(const struct serve *s)
{
    return s->remote ? http_port(s->remote, LISTENER_TCP) : 0;
}
