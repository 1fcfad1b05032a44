/* `underwattd --token-new`, `--token-list`, `--token-revoke`: changes to the file. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/rights/token-inside.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/names.h"
#include "base/units.h"

enum { DAY_S = 24 * 3600, TTL_DAYS = 90, TTL_YEARS = 10 };

/* A change of the file; root acts as the folder's owner (as_other). */
struct change {
    struct tokens *tokens;
    int lock;
    bool as_other;
};

/* As root, a link that the folder's owner placed there would be followed. */
static int become_owner(const char *folder, struct change *c, uw_error *err)
{
    struct stat st;

    if (stat(folder, &st) < 0)
        return fail(err, -errno, "%s: %s", folder, strerror(errno));
    if (geteuid() != 0 || st.st_uid == 0)
        return 0;
    if (setegid(st.st_gid) < 0)
        return fail(err, -errno, "setegid: %s", strerror(errno));
    if (seteuid(st.st_uid) < 0) {
        int r = -errno;
        (void)!setegid(getgid());
        return fail(err, r, "seteuid: %s", strerror(-r));
    }
    c->as_other = true;
    return 0;
}

static void change_end(struct change *c)
{
    if (c->lock >= 0)
        (void)close(c->lock);
    if (c->as_other) {
        (void)!seteuid(getuid());
        (void)!setegid(getgid());
    }
    free(c->tokens);
}
static void change_end_p(struct change *c)
{
    change_end(c);
}

static int change_begin(const char *path, struct change *c, uw_error *err)
{
    auto_(mem_free) char *copy = strdup(path);
    auto_(mem_free) char *lock = NULL;

    c->tokens = calloc(1, sizeof *c->tokens);
    if (!copy || !c->tokens || asprintf(&lock, "%s.lock", path) < 0) {
        lock = NULL;
        return fail(err, -ENOMEM, "out of memory");
    }
    int r = become_owner(dirname(copy), c, err);
    if (r < 0)
        return r;
    c->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (c->lock < 0 || flock(c->lock, LOCK_EX) < 0)
        return fail(err, -errno, "%s: %s", lock, strerror(errno));
    return tokens_load(path, c->tokens, err);
}

static const struct token *by_name(const struct tokens *t, const char *name)
{
    char id[12];

    for (size_t i = 0; i < t->n; i++) {
        (void)snprintf(id, sizeof id, "%08" PRIx32, t->token[i].id);
        if (strcmp(t->token[i].name, name) == 0 || strcmp(id, name) == 0)
            return &t->token[i];
    }
    return NULL;
}

/* Expired tokens make room for new ones. */
static void drop_expired(struct tokens *t, int64_t now_s)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++)
        if (t->token[i].until_s > now_s)
            t->token[n++] = t->token[i];
    t->n = n;
}

static int check(const struct token_ask *ask, uw_error *err)
{
    const uint64_t longest = (uint64_t)DAY_S * 365 * TTL_YEARS;

    if (!token_name_good(ask->name))
        return fail(err, -EINVAL,
                    "'%.64s' is not a token name: %d letters, digits, . _ -", ask->name,
                    TOKEN_NAME - 1);
    if (ask->scope < TOKEN_READ || ask->scope > TOKEN_ADMIN)
        return fail(err, -EINVAL, "a token's scope is read, claim or admin");
    if ((ask->scope == TOKEN_CLAIM) != (ask->uid != (uid_t)-1))
        return fail(err, -EINVAL,
                    "a token of scope claim needs a user, other tokens take none");
    if (ask->job > 0 && ask->scope != TOKEN_CLAIM)
        return fail(err, -EINVAL, "only a token of scope claim takes a job");
    if (ask->ttl_s > longest)
        return fail(err, -EINVAL, "%" PRIu64 " s is longer than %d years", ask->ttl_s,
                    TTL_YEARS);
    return 0;
}

static int fresh_id(const struct tokens *t, uint32_t *ret)
{
    char name[12];

    for (int i = 0; i < 100; i++) {
        if (getentropy(ret, sizeof *ret) < 0)
            return -EIO;
        (void)snprintf(name, sizeof name, "%08" PRIx32, *ret);
        if (!by_name(t, name))
            return 0;
    }
    return -EIO;
}

int token_new(const char *path, const struct token_ask *ask, int64_t now_s,
              char text[TOKEN_TEXT], uw_error *err)
{
    auto_(change_end) struct change c = {.lock = -1};
    char made[TOKEN_TEXT];
    struct token t = {.scope = ask->scope, .uid = ask->uid, .job = ask->job};

    int r = check(ask, err);
    if (r == 0)
        r = change_begin(path, &c, err);
    if (r < 0 || !c.tokens)
        return r;
    drop_expired(c.tokens, now_s);
    if (by_name(c.tokens, ask->name))
        return fail(err, -EEXIST, "a token '%s' exists already", ask->name);
    if (c.tokens->n == TOKENS_MAX)
        return fail(err, -E2BIG, "%d tokens exist already", TOKENS_MAX);
    (void)snprintf(t.name, sizeof t.name, "%s", ask->name);
    t.made_s = now_s;
    t.until_s = now_s + (int64_t)(ask->ttl_s ? ask->ttl_s : (uint64_t)TTL_DAYS * DAY_S);
    r = fresh_id(c.tokens, &t.id);
    if (r == 0)
        r = token_make(t.id, made, t.hash);
    if (r < 0)
        return fail(err, r, "cannot get random bytes");
    c.tokens->token[c.tokens->n++] = t;
    r = tokens_save(path, c.tokens, err);
    if (r == 0)
        memcpy(text, made, TOKEN_TEXT);
    explicit_bzero(made, sizeof made);
    return r;
}

static void day(int64_t s, char ret[24])
{
    time_t at = (time_t)s;
    struct tm tm;

    if (!gmtime_r(&at, &tm) || strftime(ret, 24, "%Y-%m-%d %H:%M", &tm) == 0)
        (void)snprintf(ret, 24, "?");
}

int token_list(const char *path, int64_t now_s, FILE *out, uw_error *err)
{
    auto_(change_end) struct change c = {.lock = -1};

    int r = change_begin(path, &c, err);
    if (r < 0 || !c.tokens)
        return r;
    (void)fprintf(out, "%-8s  %-*s  %-5s  %10s  %6s  %-16s  %s\n", "id", TOKEN_NAME - 1,
                  "name", "scope", "uid", "job", "made (UTC)", "until");
    for (size_t i = 0; i < c.tokens->n; i++) {
        const struct token *t = &c.tokens->token[i];
        char made[24], until[24], uid[16] = "-", job[24] = "-";
        day(t->made_s, made);
        day(t->until_s, until);
        if (t->uid != (uid_t)-1)
            (void)snprintf(uid, sizeof uid, "%u", t->uid);
        if (t->job > 0)
            (void)snprintf(job, sizeof job, "%" PRIu64, t->job);
        (void)fprintf(out, "%08" PRIx32 "  %-*s  %-5s  %10s  %6s  %-16s  %s%s\n", t->id,
                      TOKEN_NAME - 1, t->name, names_word(NAMES_TOKEN_SCOPE, t->scope),
                      uid, job, made, until, t->until_s <= now_s ? " (expired)" : "");
    }
    return fflush(out) == 0 ? 0 : fail(err, -errno, "%s", strerror(errno));
}

int token_revoke(const char *path, const char *name_or_id, uw_error *err)
{
    auto_(change_end) struct change c = {.lock = -1};

    int r = change_begin(path, &c, err);
    if (r < 0 || !c.tokens)
        return r;
    const struct token *found = by_name(c.tokens, name_or_id);
    if (!found)
        return fail(err, -ENOENT, "there is no token '%.64s'", name_or_id);
    size_t i = (size_t)(found - c.tokens->token);
    c.tokens->token[i] = c.tokens->token[--c.tokens->n];
    return tokens_save(path, c.tokens, err);
}
