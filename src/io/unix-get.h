/* One GET from a server on a unix socket, for a thread that may block: the daemon links
 * no HTTP client.  Closes the connection after the answer.
 */
#ifndef IO_UNIX_GET_H
#define IO_UNIX_GET_H

#include <stddef.h>
#include <stdint.h>

#include "io/loop.h"
#include "underwatt/error.h"

enum { UNIX_GET_TAG = 64 };

struct unix_get {
    const char *socket, *path;
    const char *tag;     /* If-None-Match; "": none */
    uint64_t timeout_ns; /* for all of it */
    size_t max;          /* bytes of the answer */
};
struct unix_got {
    unsigned status;
    char *body; /* NUL-terminated; free() it */
    size_t len;
    char tag[UNIX_GET_TAG]; /* ETag; "": none */
};
/* An answer of HTTP/1.x: text has a NUL behind its len bytes and becomes ret->body, as it
 * is freed.  -EPROTO: it is none, or cut short; nothing changed.
 */
int unix_got_read(const char *name, char *text, size_t len, struct unix_got *ret,
                  uw_error *err);
/* loop: its clock.  0 whatever the status; -errno of the socket, -ETIMEDOUT, -EFBIG,
 * -EPROTO (no answer of HTTP/1.x, or cut short), -ENOMEM.
 */
int unix_get(const struct loop *loop, const struct unix_get *ask, struct unix_got *ret,
             uw_error *err);

#endif
