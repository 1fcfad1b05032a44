#include "io/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"

_Static_assert(sizeof(struct uw_progress_page) == UW_PROGRESS_BYTES, "the page's layout");
_Static_assert(sizeof(struct uw_progress_slot) == 64, "a slot's layout");

enum { READS = 4, NAMES = 8 };

struct progress_page {
    char *path;
    int fd;
    bool adopted; /* no path, and removed by its owner */
    dev_t dev;
    ino_t ino;
    struct {
        uint64_t pid, steps;
    } last[UW_PROGRESS_SLOTS];
};

static int write_page(int fd)
{
    struct uw_progress_page page = {.version = UW_PROGRESS_VERSION,
                                    .slots = UW_PROGRESS_SLOTS};

    memcpy(page.magic, UW_PROGRESS_MAGIC, sizeof page.magic);
    ssize_t n = pwrite(fd, &page, sizeof page, 0);
    if (n < 0)
        return -errno;
    return n == (ssize_t)sizeof page ? 0 : -ENOSPC;
}

/* 0: the page is created and locked; -EAGAIN: another process took it for an abandoned
 * page (progress_clear()) before it was locked.
 */
static int make_file(struct progress_page *page)
{
    struct stat st;

    page->fd = mkostemp(page->path, O_CLOEXEC); /* 0600, O_EXCL */
    if (page->fd < 0)
        return -errno;
    bool taken = flock(page->fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (fstat(page->fd, &st) < 0)
        return -errno;
    page->dev = st.st_dev;
    page->ino = st.st_ino;
    return taken || st.st_nlink == 0 ? -EAGAIN : 0;
}

static int try_new(const char *dir, struct progress_page **ret, uw_error *err)
{
    auto_(progress_page_free) struct progress_page *page = calloc(1, sizeof *page);

    if (!page)
        return fail(err, -ENOMEM, "progress page: out of memory");
    page->fd = -1;
    if (asprintf(&page->path, "%s/" PROGRESS_PREFIX "XXXXXX", dir) < 0) {
        page->path = NULL;
        return fail(err, -ENOMEM, "progress page: out of memory");
    }
    int r = make_file(page);
    if (r < 0)
        return fail(err, r, "progress page in %s: %s", dir, strerror(-r));
    r = write_page(page->fd);
    if (r < 0)
        return fail(err, r, "%s: %s", page->path, strerror(-r));
    *ret = take(page);
    return 0;
}

int progress_page_new(const char *dir, struct progress_page **ret, uw_error *err)
{
    int r = -EAGAIN;

    for (int i = 0; i < NAMES && r == -EAGAIN; i++)
        r = try_new(dir, ret, err);
    return r;
}

int progress_page_adopt(int fd, struct progress_page **ret, uw_error *err)
{
    struct stat st;
    struct statfs fs;

    if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
        return fail(err, -errno, "progress page: %s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return fail(err, -EINVAL, "progress page: not a regular file");
    if (fs.f_type != TMPFS_MAGIC)
        return fail(err, -EINVAL,
                    "progress page: it must lie in memory (a memfd, or a file in "
                    "/dev/shm or /run)");
    struct progress_page *page = calloc(1, sizeof *page);
    if (!page)
        return fail(err, -ENOMEM, "progress page: out of memory");
    page->fd = fd;
    page->adopted = true;
    *ret = page;
    return 0;
}

void progress_page_disown(struct progress_page *page)
{
    free(page->path);
    free(page);
}

void progress_page_free(struct progress_page *page)
{
    struct stat st;

    if (!page)
        return;
    if (page->fd >= 0) {
        if (!page->adopted && lstat(page->path, &st) == 0 && st.st_dev == page->dev &&
            st.st_ino == page->ino)
            (void)unlink(page->path);
        (void)close(page->fd);
    }
    free(page->path);
    free(page);
}

const char *progress_page_path(const struct progress_page *page)
{
    return page->adopted ? "" : page->path;
}

int progress_page_fd(const struct progress_page *page)
{
    return page->fd;
}

/* Reads the part of the page that the file has, the rest zeroed; the length or -errno. */
static ssize_t read_once(int fd, struct uw_progress_page *ret)
{
    ssize_t n;

    memset(ret, 0, sizeof *ret);
    do {
        n = pread(fd, ret, sizeof *ret, 0);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/* Reads until two reads are equal, so that no slot is half old and half new. */
static ssize_t read_settled(int fd, struct uw_progress_page *ret, uint64_t *ret_torn)
{
    struct uw_progress_page other;
    ssize_t n = read_once(fd, ret);

    *ret_torn = 0;
    for (int i = 1; i < READS && n >= 0; i++) {
        ssize_t m = read_once(fd, &other);
        uint64_t torn = 0;
        if (m < 0)
            return m;
        for (unsigned s = 0; s < UW_PROGRESS_SLOTS; s++)
            if (memcmp(&ret->slot[s], &other.slot[s], sizeof ret->slot[s]) != 0)
                torn |= 1ull << s;
        *ret = other;
        *ret_torn = torn;
        if (torn == 0 && m == n)
            break;
        n = m;
    }
    return n;
}

bool progress_alive(uint64_t pid)
{
    if (pid == 0 || pid > INT_MAX)
        return false;
    return kill((pid_t)pid, 0) == 0 || errno == EPERM;
}

static void look_at_slot(struct progress_page *page, const struct uw_progress_slot *slot,
                         uint64_t now_ns, struct progress_seen *seen)
{
    seen->alive = progress_alive(slot->pid);
    seen->pid = slot->pid;
    seen->steps = slot->steps;
    seen->last_step_ns = slot->last_step_ns;
    seen->phase = slot->phase;
    if (slot->pid == page->last[seen->index].pid &&
        slot->steps < page->last[seen->index].steps)
        seen->flaws |= PROGRESS_BACK;
    if (slot->last_step_ns > now_ns)
        seen->flaws |= PROGRESS_FUTURE;
    if (slot->phase > UW_PHASE_STARTUP) {
        seen->flaws |= PROGRESS_PHASE;
        seen->phase = UW_PHASE_UNKNOWN;
    }
    page->last[seen->index].pid = slot->pid;
    page->last[seen->index].steps = slot->steps;
}

int progress_page_read(struct progress_page *page, uint64_t now_ns,
                       struct progress_read *ret, uw_error *err)
{
    struct uw_progress_page raw;
    uint64_t torn = 0;
    ssize_t n = read_settled(page->fd, &raw, &torn);

    if (n < 0)
        return fail(err, (int)n, "progress page %s: %s", progress_page_path(page),
                    strerror((int)-n));
    ret->flaws = n < (ssize_t)sizeof raw ? PROGRESS_SHORT : 0;
    ret->n = 0;
    if (n < (ssize_t)offsetof(struct uw_progress_page, slot))
        return 0;
    if (memcmp(raw.magic, UW_PROGRESS_MAGIC, sizeof raw.magic) != 0 ||
        raw.version != UW_PROGRESS_VERSION || raw.slots != UW_PROGRESS_SLOTS) {
        ret->flaws |= PROGRESS_MAGIC;
        return 0;
    }
    for (unsigned i = 0; i < UW_PROGRESS_SLOTS; i++) {
        size_t end =
            offsetof(struct uw_progress_page, slot) + (i + 1) * sizeof raw.slot[0];
        if (end > (size_t)n || raw.slot[i].pid == 0)
            continue;
        struct progress_seen *seen = &ret->slot[ret->n++];
        *seen = (struct progress_seen){.index = i};
        if (torn & (1ull << i))
            seen->flaws |= PROGRESS_TORN;
        look_at_slot(page, &raw.slot[i], now_ns, seen);
        ret->flaws |= seen->flaws;
    }
    return 0;
}

uint64_t progress_page_phases(const struct progress_page *page)
{
    struct uw_progress_page raw;
    uint64_t mark = 1;

    if (read_once(page->fd, &raw) < 0)
        return 0;
    for (unsigned i = 0; i < UW_PROGRESS_SLOTS; i++)
        if (raw.slot[i].pid)
            mark = (mark ^ raw.slot[i].pid ^ ((uint64_t)raw.slot[i].phase << 40)) *
                   0x100000001b3;
    return mark ? mark : 1;
}
