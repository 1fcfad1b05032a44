/* HTTP client of the commands, for unix sockets.  A call blocks: a command with a loop
 * makes it in a loop_worker.
 */
#ifndef IO_HTTPC_H
#define IO_HTTPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "io/json.h"
#include "underwatt/error.h"

struct httpc;

struct httpc_opts {
    const char *socket;  /* its path */
    const char *what;    /* what answers, in errors: a literal; NULL: "daemon" */
    uint64_t timeout_ns; /* for a whole call; 0: 10 s */
    size_t body_max;     /* 0: 4 MiB */
};
/* -ENOMEM, -EMFILE. */
int httpc_new(const struct httpc_opts *opts, struct httpc **ret, uw_error *err);
void httpc_free(struct httpc *c);
DEFINE_AUTO(struct httpc *, httpc_free);

struct httpc_reply {
    unsigned status;
    char type[64]; /* of the body, without parameters; "" none */
    char *body;    /* a NUL follows its len bytes; never NULL after success */
    size_t len;
};
void httpc_reply_fini(struct httpc_reply *reply);
static inline void httpc_reply_fini_p(struct httpc_reply *p)
{
    httpc_reply_fini(p);
}

/* Makes one request; json: its body, or NULL.  0 whatever the status.  -ENOENT,
 * -ECONNREFUSED (no daemon answers at PATH), -EACCES (no right to use the socket),
 * -ETIMEDOUT, -EFBIG (more than body_max), -EPROTO (not HTTP), -ECANCELED, -ENOMEM.
 */
int httpc_call(struct httpc *c, const char *method, const char *path, const char *json,
               struct httpc_reply *ret, uw_error *err);

/* The same with JSON in and out.  body: freed; NULL: none.  *ret (may be NULL) is NULL
 * for an empty answer.  A status above 299 is a failure: see answer_refused().
 */
int httpc_ask(struct httpc *c, const char *method, const char *path,
              struct json_out *body, struct json **ret, uw_error *err);

/* From any thread: ends the running call and all later ones at once. */
void httpc_cancel(struct httpc *c);

#endif
