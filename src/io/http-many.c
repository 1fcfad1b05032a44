/* Many requests at once: one easy handle per chain, one multi handle for all. */
#include "io/http-many.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/error.h"
#include "base/units.h"
#include "io/httpc-easy.h"

struct http_many {
    CURLM *multi;
    struct curl_slist *headers;
    char *agent, *ca, *token;
    const char *what;
    uint64_t timeout_ns, begin_ns;
    size_t at_once, body_max;
    atomic_bool cancelled;
};

/* A chain under way. */
struct link {
    struct http_many *m;
    struct http_chain *chain; /* NULL: free */
    CURL *easy;
    size_t at; /* index of the request under way */
    struct httpc_place place;
    struct httpc_body body;
    struct curl_slist *headers; /* headers of the request, if any */
    double spent_s;             /* time spent by earlier requests of the chain */
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
    m->begin_ns = opts->begin_ns;
    m->at_once = opts->at_once;
    m->body_max = opts->body_max;
    m->what = opts->what;
    m->agent = strdup(opts->agent);
    m->ca = opts->ca ? strdup(opts->ca) : NULL;
    m->token = opts->token ? strdup(opts->token) : NULL;
    m->multi = curl_multi_init();
    m->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (!m->agent || (opts->ca && !m->ca) || (opts->token && !m->token) || !m->multi ||
        !m->headers)
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
    free(m->agent);
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

/* Options of the whole chain. */
static bool set_server(struct link *l)
{
    const struct http_many *m = l->m;
    CURL *e = l->easy;
    const struct http_chain *c = l->chain;

    l->place = (struct httpc_place){.socket = c->socket,
                                    .url = c->url,
                                    .ca = c->socket ? NULL : m->ca,
                                    .token = c->socket ? NULL : m->token,
                                    .agent = m->agent,
                                    .what = m->what,
                                    .plain = c->plain,
                                    .timeout_ns = m->timeout_ns};
    l->body.max = m->body_max;
    return httpc_easy_set(e, &l->place) && httpc_easy_body(e, &l->body) &&
           curl_easy_setopt(e, CURLOPT_PRIVATE, l) == CURLE_OK;
}

/* Overwrites the headers, because some are secret. */
static void free_headers(struct link *l)
{
    for (struct curl_slist *h = l->headers; h; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    curl_slist_free_all(l->headers);
    l->headers = NULL;
}

/* Options of one request. */
static bool set_request(struct link *l, const struct http_ask *ask)
{
    free_headers(l);
    for (size_t i = 0; i < ask->n_headers; i++) {
        char *line = NULL;
        if (asprintf(&line, "%s: %s", ask->header[i].name, ask->header[i].value) < 0)
            return false;
        struct curl_slist *longer = curl_slist_append(l->headers, line);
        explicit_bzero(line, strlen(line));
        free(line);
        if (!longer)
            return false;
        l->headers = longer;
    }
    return curl_easy_setopt(l->easy, CURLOPT_HTTPHEADER,
                            l->headers ? l->headers : l->m->headers) == CURLE_OK &&
           (!ask->basic ||
            (curl_easy_setopt(l->easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC) == CURLE_OK &&
             curl_easy_setopt(l->easy, CURLOPT_USERPWD, ask->basic) == CURLE_OK));
}

/* Begins the request l->at, within the time left to the chain. */
static int begin(struct link *l)
{
    const struct http_ask *ask = &l->chain->ask[l->at];
    double left_s = s_of_ns(l->m->timeout_ns) - l->spent_s;
    long ms = left_s < 0.001 ? 1 : (long)(left_s * 1e3);

    l->body.len = 0;
    if (l->body.bytes)
        l->body.bytes[0] = '\0';
    int r = set_request(l, ask) ? 0 : -ENOMEM;
    if (r == 0)
        r = httpc_easy_ask(l->easy, &l->place, ask->method, ask->path, ask->json, ms);
    return r == 0 && curl_multi_add_handle(l->m->multi, l->easy) != CURLM_OK ? -ENOMEM
                                                                             : r;
}

/* ---- chains ---- */

static void end(struct link *l)
{
    curl_easy_cleanup(l->easy);
    free_headers(l);
    free(l->body.bytes);
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

/* Whether the next requests of the chain would have the same result. */
static bool is_final(unsigned status)
{
    return status == 401 || status == 403 || status == 429 || status >= 500;
}

/* In seconds, or a date; 0: none. */
static unsigned retry_after(CURL *e)
{
    curl_off_t s = 0;

    (void)curl_easy_getinfo(e, CURLINFO_RETRY_AFTER, &s);
    if (s > HTTP_MANY_RETRY_S)
        s = HTTP_MANY_RETRY_S;
    return s > 0 ? (unsigned)s : 0;
}

/* A header that cannot be stored for lack of memory is left out. */
static void take_headers(CURL *e, struct http_ask *ask)
{
    for (size_t i = 0; i < ask->n_got; i++) {
        struct curl_header *h = NULL;
        if (curl_easy_header(e, ask->got[i].name, 0, CURLH_HEADER, -1, &h) == CURLHE_OK)
            ask->got[i].value = strdup(h->value);
    }
}

/* The request is over: begins the next one of its chain, or ends the chain. */
static void advance(struct link *l, CURLcode code)
{
    struct http_chain *c = l->chain;
    struct http_ask *ask = &c->ask[l->at];
    double took_s = 0;
    long status = 0;

    c->r = httpc_easy_end(l->easy, &l->place, &l->body, code, &c->why);
    (void)curl_easy_getinfo(l->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(l->easy, CURLINFO_TOTAL_TIME, &took_s);
    c->retry_s = retry_after(l->easy);
    (void)curl_multi_remove_handle(l->m->multi, l->easy);
    if (c->r < 0) {
        end(l);
        return;
    }
    l->spent_s += took_s;
    ask->status = status > 0 ? (unsigned)status : 0;
    take_headers(l->easy, ask);
    if (ask->keep) {
        ask->len = l->body.len;
        ask->body = take(l->body.bytes);
        l->body.cap = 0;
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

/* One call of http_many_run(). */
struct run {
    struct link *link;
    size_t n_links;
    struct http_chain *chain;
    size_t n, next;  /* index of the first chain that has not begun */
    uint64_t end_ns; /* after this time none begins */
};

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Ends the chains that have not begun. */
static void leave_out(struct run *run, int r, const char *why)
{
    for (; run->next < run->n; run->next++) {
        struct http_chain *c = &run->chain[run->next];
        if (c->n > 0)
            c->r = fail(&c->why, r, "%s", why);
    }
}

/* Assigns the next chains to free links.  Returns the number of chains under way. */
static size_t fill(struct run *run)
{
    size_t busy = 0;

    if (run->next < run->n && now_ns() >= run->end_ns)
        leave_out(run, -ETIME, "the others have taken all the time");
    for (size_t i = 0; i < run->n_links; i++) {
        while (!run->link[i].chain && run->next < run->n) {
            struct http_chain *c = &run->chain[run->next++];
            if (c->n > 0 && !c->socket && !c->plain &&
                strncasecmp(c->url, "https://", 8) != 0)
                c->r = fail(&c->why, -EINVAL, "%s: only https:// is asked", c->url);
            else if (c->n > 0)
                (void)start(&run->link[i], c);
        }
        busy += run->link[i].chain != NULL;
    }
    return busy;
}

/* Ends the chains under way, and those that have not begun. */
static void give_up(struct run *run, int r)
{
    for (size_t i = 0; i < run->n_links; i++) {
        struct link *l = &run->link[i];
        if (!l->chain)
            continue;
        l->chain->r = fail(&l->chain->why, r, "%s", strerror(-r));
        (void)curl_multi_remove_handle(l->m->multi, l->easy);
        end(l);
    }
    leave_out(run, r, strerror(-r));
}

void http_many_run(struct http_many *m, struct http_chain *chain, size_t n)
{
    struct run run = {.chain = chain, .n = n, .n_links = n < m->at_once ? n : m->at_once};
    int running, r = 0;

    run.end_ns = m->begin_ns ? now_ns() + m->begin_ns : UINT64_MAX;
    run.link = calloc(run.n_links + 1, sizeof *run.link);
    if (!run.link) {
        run.n_links = 0;
        r = -ENOMEM;
    }
    for (size_t i = 0; i < run.n_links; i++)
        run.link[i].m = m;
    while (r == 0 && fill(&run) > 0) {
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
        give_up(&run, r);
    free(run.link);
}
