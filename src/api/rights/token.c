/* Tokens: their file and their verification. */
#include "api/rights/token-inside.h"

#include <errno.h>
#include <inttypes.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/names.h"
#include "base/units.h"
#include "io/file.h"

static const char HEAD[] = "underwatt-tokens 1";
static const char PREFIX[] = "uwt_";
enum { FILE_MAX = 128 * 1024, FIELDS = 8, ID_AT = 4, SECRET_AT = 13, SECRET = 64 };

/* ---- hexadecimal, lower case ---- */

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_hex(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (digit(text[i]) < 0)
            return false;
    return true;
}

static void from_hex(const char *text, unsigned char *ret, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ret[i] = (unsigned char)(digit(text[2 * i]) * 16 + digit(text[2 * i + 1]));
}

static void to_hex(const unsigned char *bytes, size_t n, char *ret)
{
    static const char DIGITS[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        ret[2 * i] = DIGITS[bytes[i] >> 4];
        ret[2 * i + 1] = DIGITS[bytes[i] & 15];
    }
    ret[2 * n] = '\0';
}

static uint32_t id_of(const char *hex)
{
    unsigned char b[4];

    from_hex(hex, b, 4);
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* ---- the file ---- */

bool token_name_good(const char *name)
{
    size_t n = strlen(name);

    if (n == 0 || n >= TOKEN_NAME)
        return false;
    for (; *name != '\0'; name++)
        if (!((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
              (*name >= '0' && *name <= '9') || strchr("._-", *name)))
            return false;
    return true;
}

static bool read_scope(const char *text, enum token_scope *ret)
{
    int scope = names_number(NAMES_TOKEN_SCOPE, text);

    if (scope >= 0)
        *ret = (enum token_scope)scope;
    return scope >= 0;
}

static bool read_owner(const char *uid, const char *job, struct token *t)
{
    uint64_t number = 0;
    bool claim = t->scope == TOKEN_CLAIM;

    t->uid = (uid_t)-1;
    t->job = 0;
    if (strcmp(uid, "-") != 0) {
        if (!claim || parse_u64(uid, &number, NULL) < 0 || number >= UINT32_MAX)
            return false;
        t->uid = (uid_t)number;
    } else if (claim) {
        return false;
    }
    if (strcmp(job, "-") == 0)
        return true;
    return claim && parse_u64(job, &t->job, NULL) == 0 && t->job > 0;
}

static bool read_line(char *line, struct token *ret)
{
    struct token t = {0};
    char *field[FIELDS];
    size_t n = 0;

    for (char *word; (word = strsep(&line, " ")) != NULL;) {
        if (n == FIELDS)
            return false;
        field[n++] = word;
    }
    if (n != FIELDS || strlen(field[0]) != 8 || !is_hex(field[0], 8) ||
        !token_name_good(field[1]) || !read_scope(field[2], &t.scope) ||
        !read_owner(field[3], field[4], &t) || parse_i64(field[5], &t.made_s, NULL) < 0 ||
        parse_i64(field[6], &t.until_s, NULL) < 0 || strlen(field[7]) != SECRET ||
        !is_hex(field[7], SECRET))
        return false;
    t.id = id_of(field[0]);
    (void)snprintf(t.name, sizeof t.name, "%s", field[1]);
    from_hex(field[7], t.hash, TOKEN_HASH);
    *ret = t;
    return true;
}

static const struct token *same_name_or_id(const struct tokens *tokens,
                                           const struct token *t)
{
    for (size_t i = 0; i < tokens->n; i++)
        if (tokens->token[i].id == t->id || strcmp(tokens->token[i].name, t->name) == 0)
            return &tokens->token[i];
    return NULL;
}

static int read_lines(const char *name, char *text, struct tokens *t, uw_error *err)
{
    unsigned no = 0;

    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        no++;
        if (no == 1) {
            if (strcmp(line, HEAD) != 0)
                return fail(err, -EINVAL, "%s:1: is not '%s'", name, HEAD);
            continue;
        }
        if (*line == '\0' && !text)
            break;
        if (t->n == TOKENS_MAX)
            return fail(err, -E2BIG, "%s:%u: more than %d tokens", name, no, TOKENS_MAX);
        struct token one;
        if (!read_line(line, &one))
            return fail(err, -EINVAL, "%s:%u: is not a token", name, no);
        if (same_name_or_id(t, &one))
            return fail(err, -EINVAL, "%s:%u: name or id is not unique", name, no);
        t->token[t->n++] = one;
    }
    return 0;
}

int tokens_read(const char *name, const char *text, size_t len, struct tokens *ret,
                uw_error *err)
{
    auto_(mem_free) char *copy = malloc(len + 1);
    auto_(mem_free) struct tokens *t = calloc(1, sizeof *t);

    if (!copy || !t)
        return fail(err, -ENOMEM, "out of memory");
    if (memchr(text, '\0', len))
        return fail(err, -EINVAL, "%s: holds a NUL byte", name);
    memcpy(copy, text, len);
    copy[len] = '\0';
    int r = read_lines(name, copy, t, err);
    if (r == 0)
        *ret = *t;
    return r;
}

int tokens_load(const char *path, struct tokens *ret, uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    struct stat st;
    size_t len;

    if (lstat(path, &st) < 0) {
        if (errno != ENOENT)
            return fail(err, -errno, "%s: %s", path, strerror(errno));
        ret->n = 0;
        return 0;
    }
    if (!S_ISREG(st.st_mode) || (st.st_mode & 0077) != 0)
        return fail(err, -EPERM, "%s: is not a file for its owner alone (mode 0600)",
                    path);
    int r = file_read(path, FILE_MAX, &text, &len, err);
    return r < 0 ? r : tokens_read(path, text, len, ret, err);
}

static int append(char *text, size_t size, size_t *at, const struct token *t)
{
    char hash[SECRET + 1], uid[16] = "-", job[24] = "-";

    to_hex(t->hash, TOKEN_HASH, hash);
    if (t->uid != (uid_t)-1)
        (void)snprintf(uid, sizeof uid, "%u", t->uid);
    if (t->job > 0)
        (void)snprintf(job, sizeof job, "%" PRIu64, t->job);
    int n = snprintf(text + *at, size - *at,
                     "%08" PRIx32 " %s %s %s %s %" PRId64 " %" PRId64 " %s\n", t->id,
                     t->name, names_word(NAMES_TOKEN_SCOPE, t->scope), uid, job,
                     t->made_s, t->until_s, hash);
    if (n < 0 || (size_t)n >= size - *at)
        return -EFBIG;
    *at += (size_t)n;
    return 0;
}

int tokens_save(const char *path, const struct tokens *tokens, uw_error *err)
{
    auto_(mem_free) char *text = malloc(FILE_MAX);
    int r = 0;

    if (!text)
        return fail(err, -ENOMEM, "out of memory");
    size_t at = (size_t)snprintf(text, FILE_MAX, "%s\n", HEAD);
    for (size_t i = 0; r == 0 && i < tokens->n; i++)
        r = append(text, FILE_MAX, &at, &tokens->token[i]);
    if (r < 0)
        return fail(err, r, "%s: too many tokens", path);
    return file_write(path, text, at, 0600, err);
}

/* ---- verification ---- */

static void hash_of(const char *text, unsigned char ret[TOKEN_HASH])
{
    struct sha256_ctx hash;

    sha256_init(&hash);
    sha256_update(&hash, strlen(text), (const uint8_t *)text);
    sha256_digest(&hash, TOKEN_HASH, ret);
}

const struct token *tokens_find(const struct tokens *tokens, const char *text,
                                int64_t now_s, const char **ret_why)
{
    const struct token *found = NULL;
    const char *why = "no such token";
    unsigned char hash[TOKEN_HASH];

    if (strlen(text) != TOKEN_TEXT - 1 || strncmp(text, PREFIX, ID_AT) != 0 ||
        text[SECRET_AT - 1] != '_' || !is_hex(text + ID_AT, 8) ||
        !is_hex(text + SECRET_AT, SECRET)) {
        why = "not of a token's form";
    } else {
        hash_of(text, hash);
        uint32_t id = id_of(text + ID_AT);
        for (size_t i = 0; i < tokens->n; i++) {
            const struct token *t = &tokens->token[i];
            if (t->id != id)
                continue;
            if (!memeql_sec(t->hash, hash, TOKEN_HASH))
                why = "forged";
            else if (now_s >= t->until_s)
                why = "expired";
            else
                found = t;
        }
    }
    if (ret_why)
        *ret_why = found ? NULL : why;
    return found;
}

int token_make(uint32_t id, char text[TOKEN_TEXT], unsigned char hash[TOKEN_HASH])
{
    unsigned char secret[SECRET / 2];

    if (getentropy(secret, sizeof secret) < 0)
        return -EIO;
    (void)snprintf(text, TOKEN_TEXT, "%s%08" PRIx32 "_", PREFIX, id);
    to_hex(secret, sizeof secret, text + SECRET_AT);
    explicit_bzero(secret, sizeof secret);
    hash_of(text, hash);
    return 0;
}
