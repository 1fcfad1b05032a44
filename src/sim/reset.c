#include "sim/reset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"

enum { NAMED_MAX = 6 };

struct users {
    uint64_t pid[SIM_PROCS_MAX];
    size_t n;
};

static void add(struct users *u, uint64_t pid)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->pid[i] == pid)
            return;
    if (u->n < n_elements(u->pid))
        u->pid[u->n++] = pid;
}

struct range {
    uint64_t from, end;
};

/* Each lock in the board's range encodes its process in its offset.  The kernel reports
 * any one lock of a range, so the parts before and after it are queried next.
 */
static int ask_ranges(int fd, struct range first, struct users *ret)
{
    struct range todo[2 * SIM_PROCS_MAX] = {first};
    size_t n = 1;

    while (n > 0 && n < n_elements(todo) && ret->n < n_elements(ret->pid)) {
        struct range r = todo[--n];
        struct flock lock = {.l_type = F_WRLCK,
                             .l_whence = SEEK_SET,
                             .l_start = (off_t)r.from,
                             .l_len = (off_t)(r.end - r.from)};
        if (r.from >= r.end)
            continue;
        if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
            return -errno;
        if (lock.l_type == F_UNLCK)
            continue;
        add(ret, (uint64_t)lock.l_start & UINT32_MAX);
        todo[n++] = (struct range){r.from, (uint64_t)lock.l_start};
        todo[n++] = (struct range){(uint64_t)lock.l_start + 1, r.end};
    }
    return 0;
}

static int ask_locks(const char *state_dir, size_t board, struct users *ret,
                     uw_error *err)
{
    char path[SIM_PATH_MAX + 16];

    (void)snprintf(path, sizeof path, "%s/users", state_dir);
    auto_(fd_close) int fd = open(path, O_RDWR | O_CLOEXEC);
    int r = fd < 0 ? -errno
                   : ask_ranges(fd,
                                (struct range){sim_users_at(board, 0),
                                               sim_users_at(board + 1, 0)},
                                ret);
    return r < 0 ? fail(err, r, "%s: %s", path, strerror(-r)) : 0;
}

static void ask_jobs(const struct sim_world *world, size_t board, struct users *ret)
{
    struct sim_procs procs;

    sim_world_procs(world, board, 0, &procs);
    for (size_t i = 0; i < procs.n; i++)
        add(ret, procs.proc[i].pid);
}

static void name_of(uint64_t pid, char *ret, size_t size)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%llu/comm", (unsigned long long)pid);
    auto_(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);
    ret[n > 0 ? n : 0] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
}

static void name_users(const struct users *u, char *ret, size_t size)
{
    size_t at = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < u->n && i < NAMED_MAX && at < size; i++) {
        char name[24];
        name_of(u->pid[i], name, sizeof name);
        int n = snprintf(ret + at, size - at, "%s%llu (%s)", i ? ", " : "",
                         (unsigned long long)u->pid[i], name[0] ? name : "?");
        at += n > 0 ? (size_t)n : 0;
    }
    if (u->n > NAMED_MAX && at < size)
        (void)snprintf(ret + at, size - at, " and %zu more", u->n - NAMED_MAX);
}

enum sim_result reset_board(struct sim_world *world, const char *state_dir, size_t board,
                            uw_error *err)
{
    struct users users = {.n = 0};
    char text[160];

    if (board >= sim_world_n_boards(world)) {
        (void)sim_world_no_board(world, board, err);
        return SIM_INVALID;
    }
    if (ask_locks(state_dir, board, &users, err) < 0)
        return SIM_UNKNOWN;
    ask_jobs(world, board, &users);
    if (users.n) {
        name_users(&users, text, sizeof text);
        return (enum sim_result)fail(err, SIM_IN_USE, "board %zu is in use by %s", board,
                                     text);
    }
    sim_world_reset(world, board);
    return SIM_OK;
}
