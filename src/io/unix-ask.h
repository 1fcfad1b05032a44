/* One request to an HTTP server on a unix socket, for a thread that may block: neither
 * the daemon nor a command that asks it needs an HTTP client with TLS.  Closes the
 * connection after the answer.
 */
#ifndef IO_UNIX_ASK_H
#define IO_UNIX_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/loop.h"
#include "underwatt/error.h"

enum { UNIX_ASK_TAG = 64, UNIX_ASK_TYPE = 64 };

struct unix_ask {
    const char *socket, *path;
    const char *method;      /* NULL: GET */
    const char *tag;         /* If-None-Match; NULL or "": none */
    const char *head;        /* more lines of the head, CR LF after each; NULL: none */
    const char *body;        /* NULL: none */
    uint64_t timeout_ns;     /* for all of it */
    size_t max;              /* bytes of the answer's body */
    bool patient;            /* waits while the server's queue is full */
    const int *cancel_fd;    /* its end is -ECANCELED once this is readable; NULL: none */
    const struct loop *loop; /* its clock; NULL: the kernel's */
};
struct unix_reply {
    unsigned status;
    char *body; /* NUL-terminated; free() it */
    size_t len;
    char tag[UNIX_ASK_TAG];   /* ETag; "": none */
    char type[UNIX_ASK_TYPE]; /* of the body, without parameters; "": none */
};
/* An answer of HTTP/1.x: text has a NUL behind its len bytes and becomes ret->body, as it
 * is freed.  -EPROTO: it is none, or cut short; nothing changed.
 */
int unix_reply_read(const char *name, char *text, size_t len, struct unix_reply *ret,
                    uw_error *err);
/* 0 whatever the status; -errno of the socket, -ETIMEDOUT, -EFBIG, -EPROTO (no answer of
 * HTTP/1.x, or cut short), -ECANCELED, -ENOMEM.
 */
int unix_ask(const struct unix_ask *ask, struct unix_reply *ret, uw_error *err);

#endif
