/* Who is asking, and whether too often: the peer of a unix socket by its uid, everybody
 * else by a bearer token.  The doors call auth_ask() before anything else.
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

/* What the system knows of a user; may block (the directory service). */
struct auth_user {
    char name[64]; /* "" unknown */
    bool admin;    /* in the admin group, supplementary groups included */
};
typedef void (*auth_lookup_fn)(uid_t uid, const char *admin_group, struct auth_user *ret);

struct auth_opts {
    struct loop *loop;
    const char *admin_group; /* NULL or "": root alone */
    const char *tokens;      /* file of tokens; NULL: none are taken */
    double requests; /* a second, of each uid and token; 0: 100.  Root has no bound */
    auth_lookup_fn lookup; /* NULL: the system's (getpwuid_r, getgrouplist) */
};
int auth_new(const struct auth_opts *opts, struct auth **ret, uw_error *err);
void auth_free(struct auth *a);
DEFINE_AUTO(struct auth *, auth_free);
/* Group, rate and tokens' file anew (the rest of opts is not looked at); what is
 * remembered of users is forgotten.  On failure all is as it was.
 */
int auth_configure(struct auth *a, const struct auth_opts *opts, uw_error *err);

struct auth_who {
    struct node_who node; /* its name is name below */
    char name[96];        /* "user anna", "uid 4711", "token grid" */
    bool local;
};

/* Who sent x: fn at once, or as soon as the system has said it (2 s at most, then the
 * user is nobody's member; users are remembered for 10 s, 256 at most).  Where it is
 * nobody known, or somebody who asks too often, x is answered (401, 429 with
 * Retry-After) and fn is not called; nor is it when the peer goes before.
 *
 * Local: uid as SO_PEERCRED has it; root and the admin group are admin, everybody may
 * claim (node_claim() decides where).  A token that comes over a local connection is not
 * looked at.  Remote: "Authorization: Bearer uwt_…" and nothing else; a network
 * (http_network()) that fails at it ten times in a row is told to wait (one that has a
 * valid token is served all the same: nobody can keep it out).
 */
typedef void (*auth_fn)(struct http_exchange *x, const struct auth_who *who, void *user);
void auth_ask(struct auth *a, struct http_exchange *x, auth_fn fn, void *user);

#endif
