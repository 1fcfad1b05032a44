/* Requests to many servers at once (libcurl), a chain of requests to each: a server that
 * does not answer delays no other.  Part of the library httpc, for any process that sends
 * requests to many daemons; it knows nothing of their contents.
 *
 * Owns: connections, which it keeps between calls.  Touches: sockets, names (libc's
 * resolver, in threads of libcurl that may outlast the call and end by themselves).
 * Thread: the caller's, which http_many_run() blocks: a process with a loop calls it in a
 * loop_worker.  Bounds: opts; nothing is retried, and no redirect or proxy is followed.
 */
#ifndef IO_HTTP_MANY_H
#define IO_HTTP_MANY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "underwatt/error.h"

struct http_many;

enum { HTTP_MANY_RETRY_S = 3600 };

struct http_many_opts {
    const char *agent;   /* who asks: User-Agent */
    const char *ca;      /* PEM file of the certificates' CA; NULL: the system's */
    const char *token;   /* bearer token, over https alone; NULL: none */
    const char *what;    /* what answers, in errors; NULL: "daemon" */
    uint64_t timeout_ns; /* for each chain */
    uint64_t begin_ns;   /* chains that have not begun so long after the call's begin are
                            left out (-ETIME); 0: none */
    size_t at_once;      /* chains */
    size_t body_max;     /* of an answer */
};

struct http_sent {
    const char *name, *value;
};
struct http_got {
    const char *name;
    char *value; /* out: NULL: the answer has none; free() it */
};
struct http_ask {
    const char *method, *path;
    const char *json;  /* body; NULL: none */
    const char *basic; /* "user:password"; NULL: none */
    const struct http_sent *header;
    size_t n_headers; /* 0: the type of `json` alone */
    struct http_got *got;
    size_t n_got;
    bool keep;       /* the answer's body */
    unsigned status; /* out: 0: not answered */
    char *body;      /* out: with `keep`; free() it */
    size_t len;      /* … */
};

/* Requests to one server, in their order; after one that got no answer, and after a
 * status of 401, 403, 429 or 5xx, the others are left out: their status stays 0.
 */
struct http_chain {
    const char *socket; /* a unix socket's path; or NULL and … */
    const char *url;    /* … "https://node7:8443" */
    bool plain;         /* http:// is asked, too */
    struct http_ask *ask;
    size_t n;         /* 0: nothing is done, r stays */
    int r;            /* out: 0, or as of httpc_call(), or -ETIME */
    unsigned retry_s; /* out: Retry-After of the last answer, HTTP_MANY_RETRY_S at most */
    uw_error why;     /* out */
};

/* -ENOMEM */
int http_many_new(const struct http_many_opts *opts, struct http_many **ret,
                  uw_error *err);
void http_many_free(struct http_many *m);
DEFINE_AUTO(struct http_many *, http_many_free);
/* Blocks until each chain is over, begin_ns and timeout_ns at most where both are given:
 * the first of them begin first.  A url that is not
 * https is -EINVAL, unless the chain is plain.  From one thread at a time.
 */
void http_many_run(struct http_many *m, struct http_chain *chain, size_t n);
/* From any thread: ends the running call and later ones at once (-ECANCELED). */
void http_many_cancel(struct http_many *m);

#endif
