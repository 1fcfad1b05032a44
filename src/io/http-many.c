/* Many requests at once: one easy handle a chain, one multi handle for all. */
#include "io/http-many.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/error.h"
#include "base/units.h"

struct http_many {
    CURLM *multi;
    struct curl_slist *headers;
    char *ca, *token;
    uint64_t timeout_ns;
    size_t at_once, body_max;
    atomic_bool cancelled;
};

/* A chain under way. */
struct link {
    struct http_many *m;
    struct http_chain *chain; /* NULL: free */
    CURL *easy;
    size_t at; /* the request under way */
    char *body;
    size_t len, cap;
    double spent_s; /* by earlier requests of the chain */
    bool too_large;
};

int http_many_new(const struct http_many_opts *opts, struct http_many **ret,
                  uw_error *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return fail(err, -ENOMEM, "libcurl does not start");
    struct http_many *plain = calloc(1, sizeof *plain);
    if (!plain) {
        curl_global_cleanup();
        return fail(err, -ENOMEM, "out of memory");
    }
    auto_(http_many_free) struct http_many *m = plain;
    m->timeout_ns = opts->timeout_ns;
    m->at_once = opts->at_once;
    m->body_max = opts->body_max;
    m->ca = opts->ca ? strdup(opts->ca) : NULL;
    m->token = opts->token ? strdup(opts->token) : NULL;
    m->multi = curl_multi_init();
    m->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if ((opts->ca && !m->ca) || (opts->token && !m->token) || !m->multi || !m->headers)
        return fail(err, -ENOMEM, "out of memory");
    (void)curl_multi_setopt(m->multi, CURLMOPT_MAXCONNECTS, (long)m->at_once);
    *ret = take(m);
    return 0;
}

void http_many_free(struct http_many *m)
{
    if (!m)
        return;
    curl_multi_cleanup(m->multi);
    curl_slist_free_all(m->headers);
    free(m->ca);
    if (m->token)
        explicit_bzero(m->token, strlen(m->token));
    free(m->token);
    free(m);
    curl_global_cleanup();
}

void http_many_cancel(struct http_many *m)
{
    atomic_store(&m->cancelled, true);
    (void)curl_multi_wakeup(m->multi);
}

/* ---- one request ---- */

static size_t on_body(char *data, size_t size, size_t n, void *user)
{
    struct link *l = user;
    void *items = l->body;

    n *= size;
    l->too_large = n > l->m->body_max - l->len;
    if (l->too_large ||
        array_reserve(&items, &l->cap, l->len + n + 1, 1, l->m->body_max + 1) < 0)
        return CURL_WRITEFUNC_ERROR;
    l->body = items;
    memcpy(l->body + l->len, data, n);
    l->len += n;
    l->body[l->len] = '\0';
    return n;
}

/* Close-on-exec: children must not inherit the socket. */
static curl_socket_t on_socket(void *user, curlsocktype purpose, struct curl_sockaddr *at)
{
    (void)user;
    (void)purpose;
    return socket(at->family, at->socktype | SOCK_CLOEXEC, at->protocol);
}

/* Options of the whole chain: no proxy, no signals, no redirects, one protocol. */
static bool set_server(struct link *l)
{
    const struct http_many *m = l->m;
    CURL *e = l->easy;
    const struct http_chain *c = l->chain;
    bool good =
        curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
        curl_easy_setopt(e, CURLOPT_NOPROXY, "*") == CURLE_OK &&
        curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, c->socket ? "http" : "https") ==
            CURLE_OK &&
        curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) ==
            CURLE_OK &&
        curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_socket) == CURLE_OK &&
        curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
        curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L) == CURLE_OK &&
        curl_easy_setopt(e, CURLOPT_USERAGENT, "underwatt-slurm-collector") == CURLE_OK &&
        curl_easy_setopt(e, CURLOPT_HTTPHEADER, m->headers) == CURLE_OK &&
        curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
        curl_easy_setopt(e, CURLOPT_WRITEDATA, l) == CURLE_OK &&
        curl_easy_setopt(e, CURLOPT_PRIVATE, l) == CURLE_OK;

    if (good && c->socket)
        return curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, c->socket) == CURLE_OK;
    if (good && m->ca)
        good = curl_easy_setopt(e, CURLOPT_CAINFO, m->ca) == CURLE_OK;
    if (good && m->token)
        good = curl_easy_setopt(e, CURLOPT_HTTPAUTH, CURLAUTH_BEARER) == CURLE_OK &&
               curl_easy_setopt(e, CURLOPT_XOAUTH2_BEARER, m->token) == CURLE_OK;
    return good;
}

static const char *where(const struct http_chain *c)
{
    return c->socket ? c->socket : c->url;
}

/* The request l->at, within what the chain has left of its time. */
static int begin(struct link *l)
{
    struct http_chain *c = l->chain;
    struct http_ask *ask = &c->ask[l->at];
    const char *base = c->socket ? "http://localhost" : c->url;
    double left_s = s_of_ns(l->m->timeout_ns) - l->spent_s;
    long ms = left_s < 0.001 ? 1 : (long)(left_s * 1e3);
    auto_(mem_free) char *url = NULL;
    size_t n = strlen(base);
    CURL *e = l->easy;

    while (n > 0 && base[n - 1] == '/')
        n--;
    if (asprintf(&url, "%.*s%s", (int)n, base, ask->path) < 0) {
        url = NULL;
        return -ENOMEM;
    }
    l->len = 0;
    if (l->body)
        l->body[0] = '\0';
    bool good = curl_easy_setopt(e, CURLOPT_URL, url) == CURLE_OK &&
                curl_easy_setopt(e, CURLOPT_HTTPGET, 1L) == CURLE_OK &&
                (!ask->json ||
                 curl_easy_setopt(e, CURLOPT_COPYPOSTFIELDS, ask->json) == CURLE_OK) &&
                curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, ask->method) == CURLE_OK &&
                curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, ms) == CURLE_OK &&
                curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, ms) == CURLE_OK &&
                curl_multi_add_handle(l->m->multi, e) == CURLM_OK;
    return good ? 0 : -ENOMEM;
}

/* ---- chains ---- */

static void end(struct link *l)
{
    curl_easy_cleanup(l->easy);
    free(l->body);
    *l = (struct link){.m = l->m};
}

static int start(struct link *l, struct http_chain *chain)
{
    l->chain = chain;
    l->easy = curl_easy_init();
    if (l->easy && set_server(l) && begin(l) == 0)
        return 0;
    chain->r = fail(&chain->why, -ENOMEM, "out of memory");
    end(l);
    return -ENOMEM;
}

static int outcome(struct link *l, CURLcode code)
{
    struct http_chain *c = l->chain;
    long number = 0;

    switch (code) {
    case CURLE_OK:
        return 0;
    case CURLE_COULDNT_CONNECT:
        (void)curl_easy_getinfo(l->easy, CURLINFO_OS_ERRNO, &number);
        return fail(&c->why, number > 0 ? -(int)number : -ECONNREFUSED,
                    "no daemon answers at %s: %s", where(c),
                    number > 0 ? strerror((int)number) : curl_easy_strerror(code));
    case CURLE_OPERATION_TIMEDOUT:
        return fail(&c->why, -ETIMEDOUT, "%s: no answer within %.3g s", where(c),
                    s_of_ns(l->m->timeout_ns));
    case CURLE_WRITE_ERROR:
        return l->too_large
                   ? fail(&c->why, -EFBIG, "%s: the answer is larger than %zu bytes",
                          where(c), l->m->body_max)
                   : fail(&c->why, -ENOMEM, "%s: out of memory", where(c));
    case CURLE_OUT_OF_MEMORY:
        return fail(&c->why, -ENOMEM, "out of memory");
    default:
        return fail(&c->why, -EPROTO, "%s: %s", where(c), curl_easy_strerror(code));
    }
}

/* The next requests of the chain would come to no more. */
static bool is_final(unsigned status)
{
    return status == 401 || status == 403 || status == 429 || status >= 500;
}

/* The request is over: the next one of its chain, or its end. */
static void advance(struct link *l, CURLcode code)
{
    struct http_chain *c = l->chain;
    struct http_ask *ask = &c->ask[l->at];
    double took_s = 0;
    long status = 0;

    c->r = outcome(l, code);
    (void)curl_easy_getinfo(l->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(l->easy, CURLINFO_TOTAL_TIME, &took_s);
    (void)curl_multi_remove_handle(l->m->multi, l->easy);
    if (c->r < 0) {
        end(l);
        return;
    }
    l->spent_s += took_s;
    ask->status = status > 0 ? (unsigned)status : 0;
    if (ask->keep) {
        ask->body = take(l->body);
        l->cap = 0;
    }
    if (++l->at == c->n || is_final(ask->status)) {
        end(l);
        return;
    }
    if (begin(l) < 0) {
        c->r = fail(&c->why, -ENOMEM, "out of memory");
        end(l);
    }
}

static void on_done(struct http_many *m)
{
    int left;

    for (CURLMsg *msg = curl_multi_info_read(m->multi, &left); msg;
         msg = curl_multi_info_read(m->multi, &left)) {
        struct link *l = NULL;
        CURLcode code = msg->data.result;
        if (msg->msg == CURLMSG_DONE &&
            curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&l) ==
                CURLE_OK)
            advance(l, code);
    }
}

/* Gives free links the next chains.  Returns how many are under way. */
static size_t fill(struct link *link, size_t n_links, struct http_chain *chain, size_t n,
                   size_t *next)
{
    size_t busy = 0;

    for (size_t i = 0; i < n_links; i++) {
        while (!link[i].chain && *next < n) {
            struct http_chain *c = &chain[(*next)++];
            if (c->n > 0 && !c->socket && strncasecmp(c->url, "https://", 8) != 0)
                c->r = fail(&c->why, -EINVAL, "%s: only https:// is asked", c->url);
            else if (c->n > 0)
                (void)start(&link[i], c);
        }
        busy += link[i].chain != NULL;
    }
    return busy;
}

/* What is under way, and what has not begun. */
static void give_up(struct link *link, size_t n_links, struct http_chain *chain, size_t n,
                    size_t next, int r)
{
    for (size_t i = 0; i < n_links; i++) {
        if (!link[i].chain)
            continue;
        link[i].chain->r = fail(&link[i].chain->why, r, "%s", strerror(-r));
        (void)curl_multi_remove_handle(link[i].m->multi, link[i].easy);
        end(&link[i]);
    }
    for (size_t i = next; i < n; i++)
        chain[i].r = fail(&chain[i].why, r, "%s", strerror(-r));
}

void http_many_run(struct http_many *m, struct http_chain *chain, size_t n)
{
    size_t n_links = n < m->at_once ? n : m->at_once, next = 0;
    struct link *link = calloc(n_links + 1, sizeof *link);
    int running, r = link ? 0 : -ENOMEM;

    for (size_t i = 0; link && i < n_links; i++)
        link[i].m = m;
    while (r == 0 && fill(link, n_links, chain, n, &next) > 0) {
        if (atomic_load(&m->cancelled))
            r = -ECANCELED;
        else if (curl_multi_perform(m->multi, &running) != CURLM_OK)
            r = -ENOMEM;
        else
            on_done(m);
        if (r == 0 && running > 0 &&
            curl_multi_poll(m->multi, NULL, 0, 200, NULL) != CURLM_OK)
            r = -ENOMEM;
    }
    if (r < 0)
        give_up(link, link ? n_links : 0, chain, n, next, r);
    free(link);
}
