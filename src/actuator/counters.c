#include "actuator/counters.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"

#define ZONE_HEAD "intel-rapl:"

bool counters_is_zone(const char *name)
{
    size_t head = strlen(ZONE_HEAD);

    return strncmp(name, ZONE_HEAD, head) == 0 && name[head] &&
           strlen(name) < COUNTERS_NAME &&
           strspn(name + head, "0123456789:") == strlen(name + head);
}

/* What the zone counts: a package or its memory, nothing that is part of them. */
static bool is_wanted(int dir, const char *zone)
{
    char path[COUNTERS_NAME + 16], name[32];

    (void)snprintf(path, sizeof path, "%.63s/name", zone);
    auto_(fd_close) int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof name - 1);
    name[n > 0 ? n : 0] = '\0';
    return strncmp(name, "package-", 8) == 0 || strcmp(name, "dram\n") == 0;
}

void counters_open(const char *root, struct counters *ret)
{
    char path[COUNTERS_NAME + 16];
    DIR *dir = opendir(root);

    *ret = (struct counters){.n = 0};
    for (const struct dirent *d = dir ? readdir(dir) : NULL; d && ret->n < COUNTERS_MAX;
         d = readdir(dir)) {
        if (!counters_is_zone(d->d_name) || !is_wanted(dirfd(dir), d->d_name))
            continue;
        (void)snprintf(path, sizeof path, "%.63s/energy_uj", d->d_name);
        int fd = openat(dirfd(dir), path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        (void)snprintf(ret->at[ret->n].zone, COUNTERS_NAME, "%.63s", d->d_name);
        ret->at[ret->n++].fd = fd;
    }
    if (dir)
        (void)closedir(dir);
}

void counters_close(struct counters *c)
{
    for (size_t i = 0; i < c->n; i++)
        (void)close(c->at[i].fd);
    c->n = 0;
}
