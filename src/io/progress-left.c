/* Removes pages whose creators were killed. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "io/file.h"
#include "io/progress.h"

enum { ENVIRONMENT_MAX = 8 << 20, RANDOM_LETTERS = 6 };

static bool is_page_name(const char *name)
{
    size_t n = strlen(PROGRESS_PREFIX);

    if (strncmp(name, PROGRESS_PREFIX, n) != 0 || strlen(name + n) != RANDOM_LETTERS)
        return false;
    for (const char *c = name + n; *c; c++)
        if (!isalnum((unsigned char)*c))
            return false;
    return true;
}

/* Whether a process of a slot still runs.  A reused pid keeps the page longer, which is
 * harmless.
 */
static bool has_writers(int fd)
{
    struct uw_progress_page page = {.version = 0};

    if (pread(fd, &page, sizeof page, 0) < 0)
        return true;
    for (size_t i = 0; i < UW_PROGRESS_SLOTS; i++)
        if (progress_alive(page.slot[i].pid))
            return true;
    return false;
}

/* Whether the environment entry names that page, in any spelling of the folder. */
static bool names_page(const char *entry, const char *name)
{
    static const char variable[] = "UNDERWATT_PROGRESS=";
    const char *slash = strrchr(entry, '/');

    return slash && strncmp(entry, variable, sizeof variable - 1) == 0 &&
           strcmp(slash + 1, name) == 0;
}

static bool is_told(const char *pid, const char *name)
{
    auto_(mem_free) char *text = NULL;
    char path[sizeof "/proc//environ" + NAME_MAX];
    size_t len = 0;

    (void)snprintf(path, sizeof path, "/proc/%s/environ", pid);
    int r = file_read(path, ENVIRONMENT_MAX, &text, &len, NULL);
    if (r < 0)
        return r == -EFBIG || r == -ENOMEM; /* the environment cannot be read: assume that
                                               it names the page */
    for (const char *entry = text; entry < text + len; entry += strlen(entry) + 1)
        if (names_page(entry, name))
            return true;
    return false;
}

static bool anybody_is_told_now(const char *name)
{
    auto_(dir_close) DIR *dir = opendir("/proc");
    const struct dirent *e;

    if (!dir)
        return true;
    while ((e = readdir(dir)))
        if (isdigit((unsigned char)e->d_name[0]) && is_told(e->d_name, name))
            return true;
    return false;
}

/* Read twice: during execve() a process has no environment for a moment, and a new
 * process may appear behind the current position in /proc.
 */
static bool anybody_is_told(const char *name)
{
    for (int i = 0; i < 2; i++)
        if (anybody_is_told_now(name))
            return true;
    return false;
}

/* Whether the path still leads to the file that was checked. */
static bool is_there(int dir, const char *name, const struct stat *was)
{
    struct stat st;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_dev == was->st_dev && st.st_ino == was->st_ino;
}

/* Holds the lock until the file is removed: a creator that gets it (progress_page_new())
 * notices that.
 */
static bool clear_page(int dir, const char *name)
{
    auto_(fd_close) int fd =
        openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        flock(fd, LOCK_EX | LOCK_NB) < 0 || has_writers(fd) || anybody_is_told(name))
        return false;
    return is_there(dir, name, &st) && unlinkat(dir, name, 0) == 0;
}

unsigned progress_clear(const char *path)
{
    auto_(dir_close) DIR *dir = opendir(path);
    const struct dirent *e;
    unsigned n = 0;

    if (!dir)
        return 0;
    while ((e = readdir(dir)))
        if (is_page_name(e->d_name))
            n += clear_page(dirfd(dir), e->d_name);
    return n;
}
