/* Authenticates clients and limits their rates: the peer of a unix socket by its uid,
 * every other client by a bearer token.  Servers call auth_ask() before anything else.
 */
#ifndef API_RIGHTS_AUTH_H
#define API_RIGHTS_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/rights/token.h"
#include "base/auto.h"
#include "io/http.h"
#include "io/loop.h"
#include "node/node.h"

struct auth;

/* A user as the system's directory knows it; the lookup may block. */
struct auth_user {
    char name[64]; /* "" unknown */
    bool admin;    /* in the admin group, supplementary groups included */
};
typedef void (*auth_lookup_fn)(uid_t uid, const char *admin_group, struct auth_user *ret);

struct auth_opts {
    struct loop *loop;
    const char *admin_group; /* NULL or "": root alone */
    const char *tokens;      /* file of tokens; NULL: tokens are refused */
    double requests; /* a second, for each uid and token; 0: 100.  Root has no limit */
    auth_lookup_fn lookup; /* NULL: getpwuid_r() and getgrouplist() */
};
int auth_new(const struct auth_opts *opts, struct auth **ret, uw_error *err);
void auth_free(struct auth *a);
DEFINE_AUTO(struct auth *, auth_free);
/* Replaces group, rate and tokens (other members of opts are ignored) and clears the
 * cache of users.  On failure nothing changes.
 */
int auth_configure(struct auth *a, const struct auth_opts *opts, uw_error *err);

struct auth_who {
    struct node_who node; /* node.name points to name below */
    char name[96];        /* "user anna", "uid 4711", "token grid" */
    bool local;
};

/* Authenticates the sender of x and calls fn, at once or after a lookup of the user (2 s
 * at most, then the user counts as no member of the admin group).  256 users are cached
 * for 10 s.  An unknown or too frequent client is answered (401, or 429 with
 * Retry-After), and fn is not called; nor is fn called when the peer closes first.
 *
 * Local: the uid is SO_PEERCRED's; root and the admin group are admin, every user may
 * claim (node_claim() decides where).  A token on a local connection is ignored.
 * Remote: "Authorization: Bearer uwt_…" only; after ten failures a network
 * (http_network()) must wait, but a valid token from it is still served, so that no
 * other client can lock its owner out.
 */
typedef void (*auth_fn)(struct http_exchange *x, const struct auth_who *who, void *user);
void auth_ask(struct auth *a, struct http_exchange *x, auth_fn fn, void *user);

/* Of a listener that asks nobody who they are: a reader to whom no job is known as its
 * own.  Too many requests of one network are answered as above.
 */
void auth_anybody(struct auth *a, struct http_exchange *x, auth_fn fn, void *user);

#endif
