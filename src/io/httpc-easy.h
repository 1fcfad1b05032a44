/* What http-many.c sets on an easy handle of libcurl, and how it tells its end. */
#ifndef IO_HTTPC_EASY_H
#define IO_HTTPC_EASY_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "underwatt/error.h"

struct httpc_place {
    const char *socket, *url; /* one of them */
    const char *ca, *token;   /* NULL: none */
    const char *agent;
    const char *what;          /* what answers, in errors; NULL: "daemon" */
    bool plain;                /* http:// is asked, too */
    uint64_t timeout_ns;       /* as errors tell it */
    char why[CURL_ERROR_SIZE]; /* libcurl's words on the last transfer: stays while the
                                  handle does */
};

/* An answer's body: NUL-terminated once it has a byte. */
struct httpc_body {
    char *bytes; /* free() it */
    size_t len, cap, max;
    int r; /* -EFBIG, -ENOMEM: this ended the transfer */
};

/* Options of every request: no proxy, no signals, no redirects, one protocol. */
bool httpc_easy_set(CURL *e, struct httpc_place *place);
/* The next request; json: its body, or NULL.  -ENOMEM. */
int httpc_easy_ask(CURL *e, struct httpc_place *place, const char *method,
                   const char *path, const char *json, long timeout_ms);
/* The body goes there. */
bool httpc_easy_body(CURL *e, struct httpc_body *body);
/* 0, or the error of a transfer that ended with this code. */
int httpc_easy_end(CURL *e, const struct httpc_place *place,
                   const struct httpc_body *body, CURLcode code, uw_error *err);
const char *httpc_where(const struct httpc_place *place);

#endif
