/* Each process holds one lock for each board that it has open, on the byte that
 * sim_users_at() names.  The kernel releases the lock when the process ends.  Locks
 * belong to the open file: a forked child, which has the driver open as well, keeps them.
 */
#include "sim/nvml/users.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int users_fd = -1;
static uint64_t users_mask;

void users_begin(const struct sim_page *page)
{
    char path[SIM_PATH_MAX + 16];
    int none = -1;

    (void)snprintf(path, sizeof path, "%s/users", page->state_dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) /* no world: no writer reads the locks */
        return;
    if (!__atomic_compare_exchange_n(&users_fd, &none, fd, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        (void)close(fd); /* another thread was first */
}

void users_attach(unsigned board)
{
    struct flock lock = {.l_type = F_RDLCK,
                         .l_whence = SEEK_SET,
                         .l_start = (off_t)sim_users_at(board, (uint64_t)getpid()),
                         .l_len = 1};
    int fd = __atomic_load_n(&users_fd, __ATOMIC_ACQUIRE);

    if (users_has(board))
        return;
    if (fd >= 0)
        (void)fcntl(fd, F_OFD_SETLK, &lock);
    (void)__atomic_or_fetch(&users_mask, 1ull << board, __ATOMIC_ACQ_REL);
}

bool users_has(unsigned board)
{
    return __atomic_load_n(&users_mask, __ATOMIC_ACQUIRE) >> board & 1;
}

void users_end(void)
{
    int fd = __atomic_exchange_n(&users_fd, -1, __ATOMIC_ACQ_REL);

    __atomic_store_n(&users_mask, 0, __ATOMIC_RELEASE);
    if (fd >= 0)
        (void)close(fd);
}
