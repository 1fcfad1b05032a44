#include "collector/hosts.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void hosts_fini(struct hosts *h)
{
    for (size_t i = 0; i < h->n; i++) {
        free(h->of[i].list);
        free(h->of[i].names);
    }
    h->n = 0;
}

const char *hosts_find(const struct hosts *h, const char *list, bool *ret_plain)
{
    *ret_plain = !strchr(list, '[');
    if (*ret_plain)
        return list;
    for (size_t i = 0; i < h->n; i++)
        if (strcmp(h->of[i].list, list) == 0)
            return h->of[i].names;
    return NULL;
}

int hosts_add(struct hosts *h, const char *list, const char *names)
{
    char *a = strdup(list), *b = strdup(names);

    if (!a || !b) {
        free(a);
        free(b);
        return -ENOMEM;
    }
    if (h->n == HOSTS_LISTS)
        hosts_fini(h);
    h->of[h->n].list = a;
    h->of[h->n++].names = b;
    return 0;
}

bool hosts_is_name(const char *name, size_t len)
{
    if (len == 0 || len > 63 || !isalnum((unsigned char)name[0]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
            return false;
    return true;
}

void hosts_each(const char *names, char between,
                void (*fn)(const char *name, size_t len, void *user), void *user)
{
    const char end[] = {between, '\0'};

    for (const char *p = names; *p; p += *p == between) {
        size_t len = strcspn(p, end);
        if (hosts_is_name(p, len))
            fn(p, len, user);
        p += len;
    }
}
