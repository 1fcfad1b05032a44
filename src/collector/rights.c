#include "collector/rights.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* The value of a line "Key   = value"; NULL: there is none. */
static const char *value_of(const char *text, const char *key)
{
    size_t n = strlen(key);

    for (const char *line = text; *line;
         line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, key, n) != 0)
            continue;
        const char *at = line + n + strspn(line + n, " ");
        if (*at == '=')
            return at + 1 + strspn(at + 1, " ");
    }
    return NULL;
}

/* "slurm(64030)" */
static bool is_user(const char *value, uid_t uid)
{
    const char *at = value ? memchr(value, '(', strcspn(value, "\n")) : NULL;
    char want[16];

    (void)snprintf(want, sizeof want, "(%u)", (unsigned)uid);
    return at && strncmp(at, want, strlen(want)) == 0;
}

int rights_check(const char *text, uid_t uid, uw_error *err)
{
    static const char *const words[] = {"jobs", "nodes", "partitions", "all"};
    const char *value = value_of(text, "PrivateData");

    if (uid == 0 || is_user(value_of(text, "SlurmUser"), uid))
        return 0;
    if (!value)
        return fail(err, -EPROTO, "scontrol show config: there is no PrivateData");
    for (const char *p = value; *p && *p != '\n'; p += *p == ',') {
        size_t len = strcspn(p, ", \n");
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strlen(words[i]) == len && memcmp(words[i], p, len) == 0)
                return fail(err, -EACCES,
                            "PrivateData=%s hides other users' jobs from uid %u: make "
                            "this user an operator of Slurm and set 'sees_all: true'",
                            words[i], (unsigned)uid);
        p += len;
        if (*p == ' ')
            p++;
    }
    return 0;
}
