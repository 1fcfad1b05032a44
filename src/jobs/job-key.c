#include "jobs/job-key.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

/* Includes the terminating NUL, so that {"ab", "c"} and {"a", "bc"} differ. */
static void add(struct sha256_ctx *hash, const char *text)
{
    sha256_update(hash, strlen(text) + 1, (const uint8_t *)text);
}

static void finish(struct sha256_ctx *hash, char *ret)
{
    uint8_t digest[SHA256_DIGEST_SIZE];

    sha256_digest(hash, sizeof digest, digest);
    for (size_t i = 0; i < (JOB_KEY_TEXT - 1) / 2; i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

void job_key_command(const char *const *argv, const char *dir,
                     char ret[static JOB_KEY_TEXT])
{
    struct sha256_ctx hash;

    sha256_init(&hash);
    add(&hash, dir);
    for (; *argv; argv++)
        add(&hash, *argv);
    finish(&hash, ret);
}

/* The label with the smallest key greater than `after`; NULL: none. */
static const struct label *next_label(const struct label *label, size_t n,
                                      const char *after)
{
    const struct label *next = NULL;

    for (size_t i = 0; i < n; i++)
        if (strcmp(label[i].key, after) > 0 &&
            (!next || strcmp(label[i].key, next->key) < 0))
            next = &label[i];
    return next;
}

static const struct label *said_same(const struct label *label, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(label[i].key, JOB_KEY_LABEL) == 0 && label[i].value[0])
            return &label[i];
    return NULL;
}

static void add_label(struct sha256_ctx *hash, const struct label *l)
{
    add(hash, l->key);
    add(hash, l->value);
}

void job_key(const char *command, const struct label *label, size_t n,
             char ret[static JOB_KEY_TEXT])
{
    const struct label *said = said_same(label, n);
    struct sha256_ctx hash;

    ret[0] = '\0';
    if (!said && (!command || !command[0]))
        return;
    sha256_init(&hash);
    if (said) {
        add_label(&hash, said);
    } else {
        add(&hash, command);
        for (const struct label *l = next_label(label, n, ""); l;
             l = next_label(label, n, l->key))
            add_label(&hash, l);
    }
    finish(&hash, ret);
}
