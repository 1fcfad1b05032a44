#include "daemon/token-command.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "api/rights/token.h"
#include "base/error.h"
#include "base/names.h"
#include "base/units.h"

bool token_wanted(const struct token_words *words)
{
    return words->make || words->revoke || words->list || words->scope || words->user ||
           words->job || words->ttl;
}

static int read_user(const char *text, uid_t *ret, uw_error *err)
{
    uint64_t number;

    if (parse_u64(text, &number, NULL) == 0 && number < UINT32_MAX) {
        *ret = (uid_t)number;
        return 0;
    }
    const struct passwd *pw = getpwnam(text);
    if (!pw)
        return fail(err, -EINVAL, "user '%.64s' does not exist", text);
    *ret = pw->pw_uid;
    return 0;
}

static int read_words(const struct token_words *words, struct token_ask *ask,
                      uw_error *err)
{
    uint64_t ttl_ns = 0;
    int r = 0;

    *ask = (struct token_ask){.name = words->make, .uid = (uid_t)-1};
    int scope = words->scope ? names_number(NAMES_TOKEN_SCOPE, words->scope) : -1;
    if (scope < 0)
        return fail(err, -EINVAL, "--token-scope is read, claim or admin");
    ask->scope = (enum token_scope)scope;
    if (words->user)
        r = read_user(words->user, &ask->uid, err);
    if (r == 0 && words->job) {
        r = parse_u64(words->job, &ask->job, err);
        if (r == 0 && ask->job == 0)
            r = fail(err, -EINVAL, "--token-job: 0 is not a job's id");
    }
    if (r == 0 && words->ttl) {
        r = parse_duration(words->ttl, &ttl_ns, err);
        if (r == 0 && ttl_ns < NS_PER_S)
            r = fail(err, -EINVAL, "--token-for '%.32s' is less than a second",
                     words->ttl);
    }
    ask->ttl_s = ttl_ns / NS_PER_S;
    return r;
}

static int make(const struct token_words *words, const char *path, int64_t now_s,
                uw_error *err)
{
    struct token_ask ask;
    char text[TOKEN_TEXT];

    int r = read_words(words, &ask, err);
    if (r == 0)
        r = token_new(path, &ask, now_s, text, err);
    if (r < 0)
        return r;
    (void)printf("%s\n", text);
    (void)fputs("underwattd: the token is shown only once: only its hash is stored\n",
                stderr);
    explicit_bzero(text, sizeof text);
    return fflush(stdout) == 0 ? 0
                               : fail(err, -EIO, "standard output: %s", strerror(errno));
}

int token_command(const struct token_words *words, const char *path, int64_t now_s,
                  uw_error *err)
{
    int asked = (words->make != NULL) + (words->revoke != NULL) + words->list;

    if (asked != 1)
        return fail(err, -EINVAL,
                    "give one of --token-new, --token-list and --token-revoke");
    if (!words->make && (words->scope || words->user || words->job || words->ttl))
        return fail(err, -EINVAL, "--token-scope, -user, -job and -for need --token-new");
    if (!*path)
        return fail(err, -EINVAL, "the configuration names no api.tcp.tokens");
    if (words->make)
        return make(words, path, now_s, err);
    return words->list ? token_list(path, now_s, stdout, err)
                       : token_revoke(path, words->revoke, err);
}
