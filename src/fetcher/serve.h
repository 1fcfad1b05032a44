/* GET /v1/signals on a unix socket: what the sources have given.
 *
 * Owns: the server and its socket.  Touches: nothing else.  Thread: the loop's.
 * Explained in docs/signals.md#the-process.
 */
#ifndef FETCHER_SERVE_H
#define FETCHER_SERVE_H

#include "base/auto.h"
#include "fetcher/feed.h"
#include "io/loop.h"
#include "underwatt/error.h"

struct serve;

/* feed: borrowed.  As http_listen_unix(). */
int serve_new(struct loop *loop, const struct feed *feed, const char *socket,
              struct serve **ret, uw_error *err);
void serve_free(struct serve *s);
DEFINE_AUTO(struct serve *, serve_free);

#endif
