#include "jobs/job-key.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <string.h>

enum { DIGEST = 32 };

/* Includes the terminating NUL, so that {"ab", "c"} and {"a", "bc"} differ. */
static int add(gnutls_hash_hd_t hash, const char *text)
{
    return gnutls_hash(hash, text, strlen(text) + 1);
}

static void finish(gnutls_hash_hd_t hash, int r, char *ret)
{
    unsigned char digest[DIGEST];

    gnutls_hash_deinit(hash, digest);
    ret[0] = '\0';
    for (size_t i = 0; i < (JOB_KEY_TEXT - 1) / 2 && r >= 0; i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

void job_key_command(const char *const *argv, const char *dir,
                     char ret[static JOB_KEY_TEXT])
{
    gnutls_hash_hd_t hash;

    ret[0] = '\0';
    if (gnutls_hash_init(&hash, GNUTLS_DIG_SHA256) < 0)
        return;
    int r = add(hash, dir);
    for (; *argv && r >= 0; argv++)
        r = add(hash, *argv);
    finish(hash, r, ret);
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

static int add_label(gnutls_hash_hd_t hash, const struct label *l)
{
    int r = add(hash, l->key);
    return r < 0 ? r : add(hash, l->value);
}

void job_key(const char *command, const struct label *label, size_t n,
             char ret[static JOB_KEY_TEXT])
{
    const struct label *said = said_same(label, n);
    gnutls_hash_hd_t hash;
    int r = 0;

    ret[0] = '\0';
    if ((!said && (!command || !command[0])) ||
        gnutls_hash_init(&hash, GNUTLS_DIG_SHA256) < 0)
        return;
    if (said) {
        r = add_label(hash, said);
    } else {
        r = add(hash, command);
        for (const struct label *l = next_label(label, n, ""); l && r >= 0;
             l = next_label(label, n, l->key))
            r = add_label(hash, l);
    }
    finish(hash, r, ret);
}
