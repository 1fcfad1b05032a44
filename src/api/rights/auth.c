/* Authentication.  A worker looks up users, as the directory service may hang. */
#include "api/rights/auth.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/rate.h"
#include "base/units.h"
#include "base/utf8.h"

enum { USERS_MAX = 256, GROUPS_MAX = 1024, NSS_BYTES = 64 * 1024, GROUP_NAME = 64 };
static const uint64_t KEEP_NS = 10 * NS_PER_S;
static const uint64_t LOOKUP_NS = 2 * NS_PER_S;
static const double REQUESTS = 100;
static const double BURSTS = 2; /* burst size, in seconds of requests */
static const struct rate FAILURES = {.per_s = 0.2, .burst = 10};

struct known {
    uid_t uid;
    struct auth_user user;
    uint64_t at_ns;
};

/* A request that waits for the lookup of its user. */
struct waiter {
    struct waiter *next;
    struct auth *auth;
    struct http_exchange *x;
    uid_t uid;
    auth_fn fn;
    void *user;
};

/* A call of the worker; outlives struct auth when the lookup hangs. */
struct lookup {
    struct auth *auth;
    auth_lookup_fn fn;
    uid_t uid;
    char group[GROUP_NAME];
    struct auth_user user;
};

struct auth {
    struct loop *loop;
    struct loop_worker *worker;
    auth_lookup_fn lookup;
    char group[GROUP_NAME];
    char *tokens_path;
    struct tokens tokens;
    struct stat tokens_stat;
    bool tokens_known;
    struct known known[USERS_MAX];
    size_t n_known;
    struct waiter *waiters;
    struct rates rates, failures;
    struct rates token_rates; /* separate: one bucket for every token */
};

/* ---- the system's directory ---- */

static bool in_group(const char *name, gid_t gid, gid_t wanted)
{
    gid_t *groups = calloc(GROUPS_MAX, sizeof *groups);
    int n = GROUPS_MAX;
    bool found = gid == wanted;

    if (groups && getgrouplist(name, gid, groups, &n) >= 0)
        for (int i = 0; i < n; i++)
            found |= groups[i] == wanted;
    free(groups);
    return found;
}

static void system_lookup(uid_t uid, const char *admin_group, struct auth_user *ret)
{
    char *buf = malloc(NSS_BYTES);
    struct passwd pw, *user = NULL;
    struct group gr, *group = NULL;

    *ret = (struct auth_user){.name = ""};
    if (buf && getpwuid_r(uid, &pw, buf, NSS_BYTES, &user) == 0 && user) {
        gid_t gid = user->pw_gid;
        (void)snprintf(ret->name, sizeof ret->name, "%s", user->pw_name);
        if (*admin_group && getgrnam_r(admin_group, &gr, buf, NSS_BYTES, &group) == 0 &&
            group)
            ret->admin = in_group(ret->name, gid, group->gr_gid);
        utf8_mend(ret->name); /* last: the lookups above need the unchanged name */
    }
    free(buf);
}

/* ---- construction ---- */

static void set_rates(struct auth *a, double requests)
{
    a->rates.rate.per_s = requests > 0 ? requests : REQUESTS;
    a->rates.rate.burst = a->rates.rate.per_s * BURSTS;
    a->token_rates.rate = a->rates.rate;
    a->failures.rate = FAILURES;
}

int auth_configure(struct auth *a, const struct auth_opts *opts, uw_error *err)
{
    const char *group = opts->admin_group ? opts->admin_group : "";
    auto_(mem_free) struct tokens *tokens = calloc(1, sizeof *tokens);
    char *path = opts->tokens ? strdup(opts->tokens) : NULL;
    int r = 0;

    if (!tokens || (opts->tokens && !path)) {
        free(path);
        return fail(err, -ENOMEM, "out of memory");
    }
    if (strlen(group) >= sizeof a->group)
        r = fail(err, -EINVAL, "'%.64s' is too long for a group", group);
    else if (path)
        r = tokens_load(path, tokens, err);
    if (r < 0) {
        free(path);
        return r;
    }
    free(a->tokens_path);
    a->tokens_path = path;
    a->tokens = *tokens;
    a->tokens_known = false;
    (void)snprintf(a->group, sizeof a->group, "%s", group);
    set_rates(a, opts->requests);
    a->n_known = 0;
    return 0;
}

int auth_new(const struct auth_opts *opts, struct auth **ret, uw_error *err)
{
    auto_(auth_free) struct auth *a = calloc(1, sizeof *a);

    if (!a)
        return fail(err, -ENOMEM, "out of memory");
    a->loop = opts->loop;
    a->lookup = opts->lookup ? opts->lookup : system_lookup;
    int r = auth_configure(a, opts, err);
    if (r == 0)
        r = loop_worker_new(a->loop, "users", &a->worker, err);
    if (r < 0)
        return r;
    *ret = take(a);
    return 0;
}

void auth_free(struct auth *a)
{
    if (!a)
        return;
    while (a->waiters) {
        struct waiter *w = a->waiters;
        a->waiters = w->next;
        http_on_gone(w->x, NULL, NULL);
        http_fail(w->x, 503, "the daemon is stopping");
        free(w);
    }
    loop_worker_free(a->worker);
    free(a->tokens_path);
    free(a);
}

/* ---- answers ---- */

static void too_often(struct http_exchange *x, uint64_t wait_ns)
{
    char seconds[24];
    struct http_field fields[] = {{"Retry-After", seconds}, {NULL, NULL}};

    (void)snprintf(seconds, sizeof seconds, "%" PRIu64,
                   (uint64_t)(wait_ns / NS_PER_S + 1));
    http_fail_fields(x, 429, fields, "too many requests");
}

static uint64_t key_of(const char *network)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *network != '\0'; network++)
        h = (h ^ (unsigned char)*network) * 0x100000001b3u;
    return h;
}

/* False: x has been answered with 429. */
static bool may_go_on(struct auth *a, struct http_exchange *x, struct rates *rates,
                      uint64_t key)
{
    uint64_t now = loop_now_ns(a->loop), wait;

    if (bucket_take(rates_bucket(rates, key, now), &rates->rate, now, &wait))
        return true;
    too_often(x, wait);
    return false;
}

/* ---- local users ---- */

static struct known *find_known(struct auth *a, uid_t uid)
{
    uint64_t now = loop_now_ns(a->loop);

    for (size_t i = 0; i < a->n_known; i++)
        if (a->known[i].uid == uid && now < a->known[i].at_ns + KEEP_NS)
            return &a->known[i];
    return NULL;
}

static void remember(struct auth *a, uid_t uid, const struct auth_user *user)
{
    size_t at = 0;

    for (size_t i = 0; i < a->n_known; i++) { /* the uid's slot, or the oldest */
        if (a->known[i].uid == uid) {
            at = i;
            break;
        }
        if (a->known[i].at_ns < a->known[at].at_ns)
            at = i;
    }
    if (a->n_known < USERS_MAX && !(a->n_known > 0 && a->known[at].uid == uid))
        at = a->n_known++;
    a->known[at] = (struct known){uid, *user, loop_now_ns(a->loop)};
}

static void tell_local(struct http_exchange *x, uid_t uid, const struct auth_user *user,
                       auth_fn fn, void *fn_user)
{
    struct auth_who who = {.local = true};

    if (*user->name)
        (void)snprintf(who.name, sizeof who.name, "user %s", user->name);
    else
        (void)snprintf(who.name, sizeof who.name, "uid %u", uid);
    who.node = (struct node_who){.uid = uid,
                                 .admin = uid == 0 || user->admin,
                                 .may_claim = true,
                                 .name = who.name};
    fn(x, &who, fn_user);
}

static void on_gone(struct http_exchange *x, void *user)
{
    struct waiter *w = user;
    struct waiter **at = &w->auth->waiters;
    (void)x;

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    free(w);
}

/* Continues the requests that wait for this uid; fn may answer and free x. */
static void tell_waiters(struct auth *a, uid_t uid, const struct auth_user *user)
{
    struct waiter **at = &a->waiters;

    while (*at) {
        struct waiter *w = *at;
        if (w->uid != uid) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        http_on_gone(w->x, NULL, NULL);
        tell_local(w->x, uid, user, w->fn, w->user);
        free(w);
    }
}

static int run_lookup(struct loop *loop, void *work)
{
    struct lookup *l = work;
    (void)loop;

    l->fn(l->uid, l->group, &l->user);
    return 0;
}

static int lookup_done(struct loop *loop, void *work, int r)
{
    struct lookup *l = work;
    struct auth_user user = {.name = ""};
    (void)loop;

    if (r == 0)
        user = l->user;
    if (r != -ECANCELED) {
        remember(l->auth, l->uid, &user);
        tell_waiters(l->auth, l->uid, &user);
    }
    if (r != -ETIMEDOUT)
        free(l);
    return 0;
}

static void lookup_late(struct loop *loop, void *work, int r)
{
    (void)loop, (void)r;
    free(work);
}

static int start_lookup(struct auth *a, uid_t uid)
{
    struct lookup *l = calloc(1, sizeof *l);

    if (!l)
        return -ENOMEM;
    l->auth = a;
    l->fn = a->lookup;
    l->uid = uid;
    memcpy(l->group, a->group, sizeof l->group);
    struct loop_work work = {.fn = run_lookup,
                             .done = lookup_done,
                             .late = lookup_late,
                             .work = l,
                             .deadline_ns = LOOKUP_NS};
    int r = loop_worker_submit(a->worker, &work);
    if (r < 0)
        free(l);
    return r;
}

static bool is_waited_for(const struct auth *a, uid_t uid)
{
    for (const struct waiter *w = a->waiters; w; w = w->next)
        if (w->uid == uid)
            return true;
    return false;
}

static void ask_local(struct auth *a, struct http_exchange *x, auth_fn fn, void *user)
{
    static const struct auth_user ROOT = {.name = "root", .admin = true},
                                  NOBODY = {.name = ""};
    uid_t uid = http_peer(x)->uid;

    if (uid == 0) {
        tell_local(x, uid, &ROOT, fn, user);
        return;
    }
    if (!may_go_on(a, x, &a->rates, uid))
        return;
    const struct known *known = find_known(a, uid);
    if (known) {
        tell_local(x, uid, &known->user, fn, user);
        return;
    }
    struct waiter *w = calloc(1, sizeof *w);
    if (!w || (!is_waited_for(a, uid) && start_lookup(a, uid) < 0)) {
        free(w);
        tell_local(x, uid, &NOBODY, fn, user);
        return;
    }
    *w = (struct waiter){a->waiters, a, x, uid, fn, user};
    a->waiters = w;
    http_on_gone(x, on_gone, w);
}

/* ---- tokens ---- */

/* Reads the file again if it has changed.  An unreadable file means no tokens. */
static void reload_tokens(struct auth *a)
{
    struct stat st = {0};
    bool there = stat(a->tokens_path, &st) == 0;

    if (a->tokens_known && st.st_ino == a->tokens_stat.st_ino &&
        st.st_size == a->tokens_stat.st_size &&
        st.st_mtim.tv_sec == a->tokens_stat.st_mtim.tv_sec &&
        st.st_mtim.tv_nsec == a->tokens_stat.st_mtim.tv_nsec &&
        st.st_mode == a->tokens_stat.st_mode)
        return;
    a->tokens_known = there;
    a->tokens_stat = st;
    if (tokens_load(a->tokens_path, &a->tokens, NULL) < 0)
        a->tokens.n = 0;
}

static void refuse(struct auth *a, struct http_exchange *x, const char *why)
{
    static const struct http_field CHALLENGE[] = {
        {"WWW-Authenticate", "Bearer realm=\"underwatt\""}, {NULL, NULL}};
    uint64_t now = loop_now_ns(a->loop), wait;
    struct bucket *b = rates_bucket(&a->failures, key_of(http_peer(x)->network), now);

    http_cause(x, why);
    if (bucket_take(b, &a->failures.rate, now, &wait))
        http_fail_fields(x, 401, CHALLENGE, "a valid token is required");
    else
        too_often(x, wait);
}

static void ask_remote(struct auth *a, struct http_exchange *x, auth_fn fn, void *user)
{
    static const char BEARER[] = "Bearer ";
    const char *header = http_header(x, "Authorization"), *why = "no token";
    const struct token *t = NULL;
    struct auth_who who = {.local = false};

    if (header && a->tokens_path && strncasecmp(header, BEARER, sizeof BEARER - 1) == 0) {
        reload_tokens(a);
        t = tokens_find(&a->tokens, header + sizeof BEARER - 1,
                        loop_utc_ns(a->loop) / (int64_t)NS_PER_S, &why);
    }
    if (!t) {
        refuse(a, x, why);
        return;
    }
    (void)snprintf(who.name, sizeof who.name, "token %s", t->name);
    if (!may_go_on(a, x, &a->token_rates, t->id))
        return;
    who.node = (struct node_who){.uid = t->uid,
                                 .admin = t->scope == TOKEN_ADMIN,
                                 .may_claim = t->scope != TOKEN_READ,
                                 .name = who.name,
                                 .only_job = t->job};
    fn(x, &who, user);
}

void auth_ask(struct auth *a, struct http_exchange *x, auth_fn fn, void *user)
{
    if (http_peer(x)->local)
        ask_local(a, x, fn, user);
    else
        ask_remote(a, x, fn, user);
}

void auth_anybody(struct auth *a, struct http_exchange *x, auth_fn fn, void *user)
{
    const struct http_peer *peer = http_peer(x);
    struct auth_who who = {.local = false};

    if (!may_go_on(a, x, &a->token_rates, key_of(peer->network)))
        return;
    (void)snprintf(who.name, sizeof who.name, "%s", peer->name);
    who.node = (struct node_who){
        .uid = (uid_t)-1, .name = who.name, .only_job = UINT64_MAX}; /* matches no job */
    fn(x, &who, user);
}
