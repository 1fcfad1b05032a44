/* Tokens for TCP: 256 random bits, of which the file keeps the SHA-256 alone.
 *
 *     uwt_1a2b3c4d_0123…cdef      "uwt_", the id (8 hex digits), "_", 64 hex digits
 *
 * The file is the daemon's (mode 0600): "underwatt-tokens 1", then a line a token:
 *     ID NAME SCOPE UID JOB CREATED EXPIRES SHA256      UID, JOB: "-" none; s since 1970
 */
#ifndef API_RIGHTS_TOKEN_H
#define API_RIGHTS_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/names.h"
#include "underwatt/error.h"

enum token_scope { TOKEN_SCOPES(NAME_ENUM) };

enum {
    TOKENS_MAX = 256,
    TOKEN_NAME = 33,
    TOKEN_TEXT = 4 + 8 + 1 + 64 + 1, /* with its NUL */
    TOKEN_HASH = 32,
};

struct token {
    uint32_t id;
    char name[TOKEN_NAME]; /* [A-Za-z0-9._-]{1,32}, unique */
    enum token_scope scope;
    uid_t uid;               /* CLAIM: whose jobs; (uid_t)-1: none */
    uint64_t job;            /* CLAIM: this one alone; 0: all of uid's */
    int64_t made_s, until_s; /* UTC; until: the first second in which it is nothing */
    unsigned char hash[TOKEN_HASH];
};
struct tokens {
    struct token token[TOKENS_MAX];
    size_t n;
};

/* -EINVAL with NAME:LINE, -E2BIG; *ret is changed on success alone. */
int tokens_read(const char *name, const char *text, size_t len, struct tokens *ret,
                uw_error *err);
/* A file that is not there holds none.  -EPERM: others may read or write it. */
int tokens_load(const char *path, struct tokens *ret, uw_error *err);
int tokens_save(const char *path, const struct tokens *tokens, uw_error *err);

/* The token that this text is, or NULL: no such, forged, or over at now_s; *ret_why
 * (may be NULL) says which, for the log alone.  Compares in constant time.
 */
const struct token *tokens_find(const struct tokens *tokens, const char *text,
                                int64_t now_s, const char **ret_why);

/* ---- for `underwattd --token-…`: change the file, under a lock beside it and as the
 * owner of its folder where root asks; a running daemon sees it at the next request
 * that bears a token.  They may block ---- */

struct token_ask {
    const char *name;
    enum token_scope scope;
    uid_t uid;
    uint64_t job;
    uint64_t ttl_s; /* 1 s … 10 years; 0: 90 days */
};
/* Writes the token, once and for all, into text.  -EEXIST (the name is taken), -EINVAL,
 * -E2BIG: nothing has changed.
 */
int token_new(const char *path, const struct token_ask *ask, int64_t now_s,
              char text[TOKEN_TEXT], uw_error *err);
int token_list(const char *path, int64_t now_s, FILE *out, uw_error *err);
int token_revoke(const char *path, const char *name_or_id, uw_error *err); /* -ENOENT */

#endif
