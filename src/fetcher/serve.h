/* GET /v1/signals: what the sources, or the site's instance, have given; on a unix socket
 * for this machine, on TCP with TLS and a token for the site's nodes.
 *
 * Owns: a server for each of the two, so that nodes take no connection from this machine;
 * the last answer.  Touches: the files of the certificate and its key, once.  Thread: the
 * loop's.
 * Explained in docs/signals.md#one-fetch-for-a-site.
 */
#ifndef FETCHER_SERVE_H
#define FETCHER_SERVE_H

#include "base/auto.h"
#include "fetcher/feed.h"
#include "fetcher/follow.h"
#include "io/loop.h"
#include "underwatt/error.h"

/* Of nodes, at once; a node has one for the time of a request. */
enum { SERVE_CONNECTIONS = 2016, SERVE_REQUEST_S = 60, SERVE_TOKEN_MIN = 32 };

struct serve;

struct serve_opts {
    const struct signals_config *config;
    const char *token; /* of serve.tcp */
    /* NULL: none */
    const struct feed *feed;
    const struct follow *follow;
    const struct judges *judges;
};
/* The site's token, of nodes, too: as secret_read(); -EINVAL: it is short. */
int serve_token(const char *path, char **ret, uw_error *err);
/* Whether serve.tcp can be served: its certificate and key, and its token, which is read:
 * secret_free() it.  -errno with one line; without serve.tcp nothing is done.
 */
int serve_check(struct loop *loop, const struct signals_config *config, char **ret_token,
                uw_error *err);

/* opts: what it points to must outlive *ret, but the token.  As http_listen_unix() and
 * http_listen_tls().
 */
int serve_new(struct loop *loop, const struct serve_opts *opts, struct serve **ret,
              uw_error *err);
void serve_free(struct serve *s);
DEFINE_AUTO(struct serve *, serve_free);
/* Of TCP; 0: none. */
uint16_t serve_port(const struct serve *s);

#endif
