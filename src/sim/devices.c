#include "sim/devices.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t sim_devices(const struct sim_page *page)
{
    uint64_t may = UINT64_MAX;
    char path[SIM_PATH_MAX + 48];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/dev", page->state_dir);
    if (lstat(path, &st) != 0)
        return may;
    for (unsigned i = 0; i < page->n_boards; i++) {
        (void)snprintf(path, sizeof path, "%s/dev/nvidia%llu", page->state_dir,
                       (unsigned long long)page->board[i].identity.minor);
        /* The kernel checks the process's control group, too. */
        if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) != 0)
            may &= ~(1ull << i);
    }
    return may;
}

unsigned sim_devices_count(const struct sim_page *page, uint64_t may)
{
    return sim_devices_place(may, page->n_boards);
}

unsigned sim_devices_at(const struct sim_page *page, uint64_t may, unsigned place)
{
    for (unsigned i = 0; i < page->n_boards; i++)
        if ((may >> i & 1) && place-- == 0)
            return i;
    return SIM_BOARDS_MAX;
}

unsigned sim_devices_place(uint64_t may, unsigned board)
{
    unsigned n = 0;

    for (unsigned i = 0; i < board && i < SIM_BOARDS_MAX; i++)
        n += may >> i & 1;
    return n;
}
