/* How the library calls the daemon: each call opens a connection to the daemon's unix
 * socket and sends one HTTP request.  No connection is open between calls, so that a
 * forked child shares none.
 * docs/decisions/0005 says why this is not libcurl.
 */
#ifndef LIB_DOOR_H
#define LIB_DOOR_H

#include <stddef.h>
#include <stdint.h>

#include "io/json.h"
#include "underwatt/error.h"

enum { DOOR_ANSWER_MAX = 4 << 20 };

struct door {
    const char *socket;
    uint64_t timeout_ns; /* for a whole call */
};

/* body: freed; NULL: none.  *ret (may be NULL) is NULL where the answer is empty.
 * -ECONNREFUSED (no daemon answers, or no such socket), -EACCES, -ETIMEDOUT,
 * -EFBIG, -EPROTO, -ENOMEM; a status above 299: see answer_refused().
 */
int door_ask(const struct door *door, const char *method, const char *path,
             struct json_out *body, struct json **ret, uw_error *err);

struct door_answer {
    unsigned status;
    const char *body; /* in the text */
    size_t len;
};
/* Parses a whole HTTP/1.x answer, read until the server closed the connection.  -EPROTO:
 * the text is not an answer, or was cut short; *err says which.
 */
int door_parse(const char *text, size_t len, struct door_answer *ret, uw_error *err);

#endif
