/* Statuses of the daemon's HTTP interface as results, for all clients. */
#ifndef IO_ANSWER_H
#define IO_ANSWER_H

#include <stddef.h>

#include "io/json.h"
#include "underwatt/error.h"

/* Parse a daemon's answer.  Characters that a terminal must not print become '?'. */
int answer_read(const char *body, size_t len, struct json **ret, uw_error *err);

/* A status above 299 as a failure with the server's own text, where body has one: 400
 * -EINVAL, 401 -EACCES, 403 -EPERM, 404 -ENOENT, 409 -EBUSY, 413 -EFBIG, 422 -ENOTSUP,
 * 429 and 503 -EAGAIN, 504 -ETIMEDOUT, else -EIO.
 */
int answer_refused(unsigned status, const char *body, size_t len, uw_error *err);

#endif
