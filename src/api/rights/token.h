/* Tokens for TCP: 256 random bits, the file holds only their SHA-256.
 *
 *     uwt_1a2b3c4d_0123…cdef      "uwt_", the id (8 hex digits), "_", 64 hex digits
 *
 * The file is the daemon's (mode 0600): "underwatt-tokens 1", then one line for each
 * token: ID NAME SCOPE UID JOB CREATED EXPIRES SHA256      UID, JOB: "-" none; s since
 * 1970
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
    TOKEN_TEXT = 4 + 8 + 1 + 64 + 1, /* with NUL */
    TOKEN_HASH = 32,
};

struct token {
    uint32_t id;
    char name[TOKEN_NAME]; /* [A-Za-z0-9._-]{1,32}, unique */
    enum token_scope scope;
    uid_t uid;               /* CLAIM: owner of the jobs; (uid_t)-1: none */
    uint64_t job;            /* CLAIM: only this job; 0: all of uid's */
    int64_t made_s, until_s; /* UTC; until_s: first second in which it is invalid */
    unsigned char hash[TOKEN_HASH];
};
struct tokens {
    struct token token[TOKENS_MAX];
    size_t n;
};

/* Parses a token file.  -EINVAL with NAME:LINE, -E2BIG; *ret changes on success only. */
int tokens_read(const char *name, const char *text, size_t len, struct tokens *ret,
                uw_error *err);
/* A missing file holds no tokens.  -EPERM: other users may read or write the file. */
int tokens_load(const char *path, struct tokens *ret, uw_error *err);
int tokens_save(const char *path, const struct tokens *tokens, uw_error *err);

/* The token with this text, or NULL: unknown, forged, or expired at now_s; *ret_why (may
 * be NULL) gives the reason, for the log only.  Compares in constant time.
 */
const struct token *tokens_find(const struct tokens *tokens, const char *text,
                                int64_t now_s, const char **ret_why);

/* ---- for `underwattd --token-…`: change the file under a lock file beside it; root acts
 * as the owner of the folder.  A running daemon reads the change at the next request that
 * has a token.  May block ---- */

struct token_ask {
    const char *name;
    enum token_scope scope;
    uid_t uid;
    uint64_t job;
    uint64_t ttl_s; /* 1 s … 10 years; 0: 90 days */
};
/* Adds a token and writes its text to text; the text cannot be had again.  -EEXIST (the
 * name is taken), -EINVAL, -E2BIG: nothing has changed.
 */
int token_new(const char *path, const struct token_ask *ask, int64_t now_s,
              char text[TOKEN_TEXT], uw_error *err);
int token_list(const char *path, int64_t now_s, FILE *out, uw_error *err);
int token_revoke(const char *path, const char *name_or_id, uw_error *err); /* -ENOENT */

#endif
