#include "io/httpc-easy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"

/* Close-on-exec: children must not inherit the socket. */
static curl_socket_t on_socket(void *user, curlsocktype purpose, struct curl_sockaddr *at)
{
    (void)user;
    (void)purpose;
    return socket(at->family, at->socktype | SOCK_CLOEXEC, at->protocol);
}

/* A place's own authority replaces those of the system: both the file and the folder. */
static bool set_where(CURL *e, const struct httpc_place *place)
{
    bool good = true;

    if (place->socket)
        good = curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, place->socket) == CURLE_OK;
    if (place->ca)
        good = good && curl_easy_setopt(e, CURLOPT_CAINFO, place->ca) == CURLE_OK &&
               curl_easy_setopt(e, CURLOPT_CAPATH, NULL) == CURLE_OK;
    if (place->token)
        good = good &&
               curl_easy_setopt(e, CURLOPT_HTTPAUTH, CURLAUTH_BEARER) == CURLE_OK &&
               curl_easy_setopt(e, CURLOPT_XOAUTH2_BEARER, place->token) == CURLE_OK;
    return good;
}

/* CURLOPT_QUICK_EXIT: a name lookup that is still under way at a transfer's end is left
 * to its thread, which frees everything when the name server answers or libc gives up.
 * Otherwise libcurl waits for that thread.
 */
bool httpc_easy_set(CURL *e, struct httpc_place *place)
{
    const char *protocols = place->socket  ? "http"
                            : place->plain ? "http,https"
                                           : "https";

    return curl_easy_setopt(e, CURLOPT_ERRORBUFFER, place->why) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_NOPROXY, "*") == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, protocols) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) ==
               CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_socket) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_USERAGENT, place->agent) == CURLE_OK &&
           set_where(e, place);
}

int httpc_easy_ask(CURL *e, struct httpc_place *place, const char *method,
                   const char *path, const char *json, long timeout_ms)
{
    const char *base = place->socket ? "http://localhost" : place->url;
    size_t n = strlen(base);
    auto_(mem_free) char *url = NULL;

    place->why[0] = '\0';

    while (n > 0 && base[n - 1] == '/')
        n--;
    if (asprintf(&url, "%.*s%s", (int)n, base, path) < 0) {
        url = NULL;
        return -ENOMEM;
    }
    bool good =
        curl_easy_setopt(e, CURLOPT_URL, url) == CURLE_OK &&
        curl_easy_setopt(e, CURLOPT_HTTPGET, 1L) == CURLE_OK &&
        (!json || curl_easy_setopt(e, CURLOPT_COPYPOSTFIELDS, json) == CURLE_OK) &&
        curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK &&
        curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, timeout_ms) == CURLE_OK &&
        curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms) == CURLE_OK;
    return good ? 0 : -ENOMEM;
}

static size_t on_body(char *data, size_t size, size_t n, void *user)
{
    struct httpc_body *b = user;
    void *items = b->bytes;

    n *= size;
    if (n > b->max - b->len)
        b->r = -EFBIG;
    else
        b->r = array_reserve(&items, &b->cap, b->len + n + 1, 1, b->max + 1);
    b->bytes = items;
    if (b->r < 0)
        return CURL_WRITEFUNC_ERROR;
    memcpy(b->bytes + b->len, data, n);
    b->len += n;
    b->bytes[b->len] = '\0';
    return n;
}

bool httpc_easy_body(CURL *e, struct httpc_body *body)
{
    return curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
           curl_easy_setopt(e, CURLOPT_WRITEDATA, body) == CURLE_OK;
}

const char *httpc_where(const struct httpc_place *place)
{
    return place->socket ? place->socket : place->url;
}

/* Turns a failed connection into a message for the command's user. */
static int no_connection(CURL *e, const struct httpc_place *place, CURLcode code,
                         uw_error *err)
{
    long number = 0;

    (void)curl_easy_getinfo(e, CURLINFO_OS_ERRNO, &number);
    int r = number > 0 ? -(int)number : -ECONNREFUSED;
    if (r == -EACCES)
        return fail(err, r, "%s: this user may not use the daemon's socket",
                    httpc_where(place));
    return fail(err, r, "no %s answers at %s: %s", place->what ? place->what : "daemon",
                httpc_where(place),
                number > 0 ? strerror((int)number) : curl_easy_strerror(code));
}

/* The time was over before an address of the server was known. */
static bool is_nameless(CURL *e, const struct httpc_place *place)
{
    const char *address = NULL;
    curl_off_t lookup_us = 0;

    (void)curl_easy_getinfo(e, CURLINFO_PRIMARY_IP, &address);
    (void)curl_easy_getinfo(e, CURLINFO_NAMELOOKUP_TIME_T, &lookup_us);
    return place->url && lookup_us == 0 && !(address && address[0]);
}

int httpc_easy_end(CURL *e, const struct httpc_place *place,
                   const struct httpc_body *body, CURLcode code, uw_error *err)
{
    const char *where = httpc_where(place);

    switch (code) {
    case CURLE_OK:
        return 0;
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
        return no_connection(e, place, code, err);
    case CURLE_WRITE_ERROR:
        if (body->r == -EFBIG)
            return fail(err, -EFBIG, "%s: the answer is larger than %zu bytes", where,
                        body->max);
        return body->r < 0
                   ? fail(err, body->r, "%s: %s", where, strerror(-body->r))
                   : fail(err, -EPROTO, "%s: %s", where, curl_easy_strerror(code));
    case CURLE_OPERATION_TIMEDOUT:
        return fail(err, -ETIMEDOUT, "%s: no %s within %.3g s", where,
                    is_nameless(e, place) ? "address of this name" : "answer",
                    s_of_ns(place->timeout_ns));
    case CURLE_OUT_OF_MEMORY:
        return fail(err, -ENOMEM, "out of memory");
    default:
        return fail(err, -EPROTO, "%s: %s", where,
                    place->why[0] ? place->why : curl_easy_strerror(code));
    }
}
