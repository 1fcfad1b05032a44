#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "gpu/counters.h"
#include "gpu/rapl/rapl.h"

#define ZONE_HEAD "intel-rapl:"

bool rapl_is_zone(const char *name)
{
    size_t head = strlen(ZONE_HEAD);

    return strncmp(name, ZONE_HEAD, head) == 0 && name[head] &&
           strlen(name) < GPU_COUNTER_NAME &&
           strspn(name + head, "0123456789:") == strlen(name + head);
}

/* Whether only root or the owner can have created this file. */
static bool is_ours(int fd, mode_t type, uid_t owner)
{
    struct stat st;

    return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type &&
           (st.st_uid == 0 || st.st_uid == owner) && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Whether the zone counts a package or its memory, not a part of a package. */
static bool is_wanted(int zone)
{
    char name[32];

    auto_(fd_close) int fd =
        openat(zone, "name", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof name - 1);
    name[n > 0 ? n : 0] = '\0';
    return strncmp(name, "package-", 8) == 0 || strcmp(name, "dram\n") == 0;
}

/* Opens the counter of a zone; -1: unwanted, not trusted or not readable. */
static int open_zone(int dir, const char *name, uid_t owner)
{
    auto_(fd_close) int zone = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (zone < 0 || !is_ours(zone, S_IFDIR, owner) || !is_wanted(zone))
        return -1;
    auto_(fd_close) int fd =
        openat(zone, "energy_uj", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 && is_ours(fd, S_IFREG, owner) ? fd_take(&fd) : -1;
}

void rapl_open_counters(const char *root, uid_t owner, struct gpu_counters *ret)
{
    DIR *dir = opendir(root ? root : RAPL_ROOT);

    for (const struct dirent *d = dir ? readdir(dir) : NULL;
         d && ret->n < GPU_COUNTERS_MAX; d = readdir(dir)) {
        if (!rapl_is_zone(d->d_name))
            continue;
        int fd = open_zone(dirfd(dir), d->d_name, owner);
        if (fd < 0)
            continue;
        (void)snprintf(ret->at[ret->n].name, GPU_COUNTER_NAME, "%.63s", d->d_name);
        ret->at[ret->n++].fd = fd;
    }
    if (dir)
        (void)closedir(dir);
}
