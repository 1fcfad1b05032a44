#include "actuator/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"

static int check_owned(const struct stat *st, mode_t type, const char *what,
                       uw_error *err)
{
    if ((st->st_mode & S_IFMT) != type || (type == S_IFREG && st->st_nlink != 1))
        return fail(err, -EPERM, "%s is not a plain %s: refused", what,
                    type == S_IFDIR ? "directory" : "file");
    if (st->st_uid != geteuid() || (st->st_mode & (S_IWGRP | S_IWOTH)))
        return fail(err, -EPERM, "%s belongs to uid %u, mode %04o: refused", what,
                    st->st_uid, st->st_mode & 07777u);
    return 0;
}

static int read_boot_id(char *ret, size_t size, uw_error *err)
{
    auto_(fd_close) int fd =
        open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);

    if (n <= 0)
        return fail(err, -EIO, "the kernel's boot id cannot be read");
    ret[n] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    return 0;
}

int journal_open(const char *dir, struct journal *ret, uw_error *err)
{
    struct journal j;
    struct stat st;

    if (snprintf(j.dir, sizeof j.dir, "%s", dir) >= (int)sizeof j.dir)
        return fail(err, -ENAMETOOLONG, "%s: too long a path", dir);
    int r = read_boot_id(j.boot, sizeof j.boot, err);
    if (r < 0)
        return r;
    if (mkdir(dir, 0700) == 0)
        (void)chmod(dir, 0711); /* its socket may belong to another uid */
    else if (errno != EEXIST)
        return fail(err, -errno, "%s: %s", dir, strerror(errno));
    auto_(fd_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return fail(err, -errno, "%s: %s", dir, strerror(errno));
    r = check_owned(&st, S_IFDIR, dir, err);
    if (r < 0)
        return r;
    j.dir_fd = fd_take(&fd);
    *ret = j;
    return 0;
}

void journal_close(struct journal *journal)
{
    if (journal->dir_fd >= 0)
        (void)close(journal->dir_fd);
    journal->dir_fd = -1;
}

struct file_name {
    char text[112];
};

static struct file_name name_of(const char *uuid, const char *suffix)
{
    struct file_name name;

    (void)snprintf(name.text, sizeof name.text, "%s%s", uuid, suffix);
    return name;
}

/* Opens a file of this actuator; -ENOENT, or a refusal. */
static int open_ours(const struct journal *j, const char *name, int flags, int *ret_fd,
                     uw_error *err)
{
    struct stat st;
    auto_(fd_close) int fd =
        openat(j->dir_fd, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);

    if (fd < 0 && errno == ELOOP)
        return fail(err, -EPERM, "%s/%s is a symbolic link: refused", j->dir, name);
    if (fd < 0 && (errno == ENXIO || errno == EISDIR)) /* a socket, a folder */
        return fail(err, -EPERM, "%s/%s is not a plain file: refused", j->dir, name);
    if (fd < 0 || fstat(fd, &st) < 0)
        return fail(err, -errno, "%s/%s: %s", j->dir, name, strerror(errno));
    int r = check_owned(&st, S_IFREG, name, err);
    if (r < 0)
        return fail_in(err, r, "%s", j->dir);
    *ret_fd = fd_take(&fd);
    return 0;
}

void journal_lock_name(int lock_fd, pid_t client)
{
    (void)holder_name(
        lock_fd,
        client); /* on a full disk the client's name is lost, but restoring works */
}

void journal_unlock(int lock_fd)
{
    int r = ftruncate(lock_fd, 0);

    (void)r; /* a stale name is ignored once the lock is free */
    (void)close(lock_fd);
}

int journal_lock(const struct journal *journal, const char *uuid, pid_t client,
                 int *ret_fd, struct holder *ret_holder, uw_error *err)
{
    struct file_name name = name_of(uuid, ".lock");
    char who[128];
    auto_(fd_close) int fd = -1;

    int r = open_ours(journal, name.text, O_RDWR | O_CREAT, &fd, err);
    if (r < 0)
        return r;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return fail(err, -errno, "%s: flock: %s", name.text, strerror(errno));
        holder_of(fd, ret_holder);
        return fail(err, JOURNAL_TAKEN, "%s: held by %s", uuid,
                    holder_text(ret_holder, who, sizeof who));
    }
    journal_lock_name(fd, client);
    *ret_fd = fd_take(&fd);
    return 0;
}

int journal_look(const struct journal *journal, const char *uuid,
                 struct holder *ret_holder, uw_error *err)
{
    struct file_name name = name_of(uuid, ".lock");
    auto_(fd_close) int fd = -1;

    int r = open_ours(journal, name.text, O_RDWR, &fd, err);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    if (flock(fd, LOCK_SH | LOCK_NB) == 0)
        return 0; /* closing the file releases the lock */
    if (errno != EWOULDBLOCK)
        return fail(err, -errno, "%s: flock: %s", name.text, strerror(errno));
    holder_of(fd, ret_holder);
    return JOURNAL_TAKEN;
}

void journal_clean_mark(char *mark)
{
    for (char *p = mark; *p; p++)
        if (*p <= ' ' || *p > '~')
            *p = '_';
}

#define JOURNAL_HEAD "underwatt-cap 1"

void journal_format(const struct cap_entry *entry, char ret[JOURNAL_BYTES])
{
    int n = snprintf(ret, JOURNAL_BYTES,
                     JOURNAL_HEAD "\nuuid %s\nboot %s\ndriver %s\noriginal_mw %" PRIu32
                                  "\nintended_mw %" PRIu32 "\nreadback_mw %" PRIu32
                                  "\nclocks %u\n",
                     entry->uuid, entry->boot, entry->driver, entry->original_mw,
                     entry->intended_mw, entry->readback_mw, (unsigned)entry->clocks);
    size_t used = n < 0 ? 0 : (size_t)n;

    memset(ret + used, ' ', JOURNAL_BYTES - used);
    ret[JOURNAL_BYTES - 1] = '\n';
}

/* Reads "key value\n" at *at: returns the value, or NULL if the line differs. */
static char *next_value(char **at, const char *key)
{
    size_t len = strlen(key);
    char *line = strsep(at, "\n");

    if (!line || !*at || strncmp(line, key, len) != 0 || line[len] != ' ')
        return NULL;
    return line + len + 1;
}

static bool take_text(char **at, const char *key, char *ret, size_t size)
{
    const char *value = next_value(at, key);
    size_t len = value ? strlen(value) : size;

    if (len >= size)
        return false;
    memcpy(ret, value, len + 1);
    return true;
}

static bool take_number(char **at, const char *key, uint32_t *ret)
{
    const char *value = next_value(at, key);
    uint64_t n;

    if (!value || parse_u64(value, &n, NULL) < 0 || n > UINT32_MAX)
        return false;
    *ret = (uint32_t)n;
    return true;
}

int journal_parse(const char *text, size_t size, struct cap_entry *ret, uw_error *err)
{
    struct cap_entry e = {0};
    uint32_t clocks = 0;
    char copy[JOURNAL_BYTES + 1];
    char *at = copy;

    if (size != JOURNAL_BYTES || memchr(text, '\0', size))
        return fail(err, -EBADMSG, "not an entry of the journal: %zu bytes", size);
    memcpy(copy, text, size);
    copy[size] = '\0';
    const char *head = strsep(&at, "\n");
    if (!at || strcmp(head, JOURNAL_HEAD) != 0 ||
        !take_text(&at, "uuid", e.uuid, sizeof e.uuid) ||
        !take_text(&at, "boot", e.boot, sizeof e.boot) ||
        !take_text(&at, "driver", e.driver, sizeof e.driver) ||
        !take_number(&at, "original_mw", &e.original_mw) ||
        !take_number(&at, "intended_mw", &e.intended_mw) ||
        !take_number(&at, "readback_mw", &e.readback_mw) ||
        !take_number(&at, "clocks", &clocks))
        return fail(err, -EBADMSG, "not an entry of the journal");
    if (!core_is_uuid(e.uuid) || !e.boot[0] || !e.original_mw || clocks > 1)
        return fail(err, -EBADMSG, "an entry of the journal with impossible values");
    e.clocks = clocks == 1;
    *ret = e;
    return 0;
}

static int write_whole(int fd, const struct cap_entry *entry, uw_error *err)
{
    char text[JOURNAL_BYTES];

    journal_format(entry, text);
    ssize_t n = pwrite(fd, text, sizeof text, 0);
    if (n != (ssize_t)sizeof text)
        return fail(err, n < 0 ? -errno : -EIO, "journal of %s: %s", entry->uuid,
                    n < 0 ? strerror(errno) : "written in part");
    return 0;
}

int journal_write(const struct journal *journal, const struct cap_entry *entry,
                  uw_error *err)
{
    struct file_name made = name_of(entry->uuid, ".new");
    struct file_name name = name_of(entry->uuid, ".cap");
    auto_(fd_close) int fd = -1;

    if (unlinkat(journal->dir_fd, made.text, 0) < 0 && errno != ENOENT)
        return fail(err, -errno, "%s/%s: %s", journal->dir, made.text, strerror(errno));
    int r = open_ours(journal, made.text, O_RDWR | O_CREAT | O_EXCL, &fd, err);
    if (r == 0)
        r = write_whole(fd, entry, err);
    if (r < 0)
        return r;
    if (fsync(fd) < 0 ||
        renameat(journal->dir_fd, made.text, journal->dir_fd, name.text) < 0 ||
        fsync(journal->dir_fd) < 0)
        return fail(err, -errno, "%s/%s: %s", journal->dir, name.text, strerror(errno));
    return 0;
}

int journal_note(const struct journal *journal, const struct cap_entry *entry,
                 uw_error *err)
{
    struct file_name name = name_of(entry->uuid, ".cap");
    auto_(fd_close) int fd = -1;

    int r = open_ours(journal, name.text, O_RDWR, &fd, err);
    return r < 0 ? r : write_whole(fd, entry, err);
}

static int read_entry(const struct journal *journal, const char *uuid, const char *suffix,
                      struct cap_entry *ret, uw_error *err)
{
    struct file_name name = name_of(uuid, suffix);
    char text[JOURNAL_BYTES + 1];
    struct cap_entry entry;
    auto_(fd_close) int fd = -1;

    int r = open_ours(journal, name.text, O_RDONLY, &fd, err);
    if (r == -ENOENT)
        return JOURNAL_NONE;
    if (r < 0)
        return r;
    ssize_t n = read(fd, text, sizeof text);
    if (n < 0)
        return fail(err, -errno, "%s/%s: %s", journal->dir, name.text, strerror(errno));
    r = journal_parse(text, (size_t)n, &entry, err);
    if (r == 0 && strcmp(entry.uuid, uuid) != 0)
        r = fail(err, -EBADMSG, "the entry names board %s", entry.uuid);
    if (r < 0)
        return fail_in(err, r, "%s/%s", journal->dir, name.text);
    *ret = entry;
    return 0;
}

int journal_read(const struct journal *journal, const char *uuid, struct cap_entry *ret,
                 uw_error *err)
{
    return read_entry(journal, uuid, ".cap", ret, err);
}

/* Sets an entry aside as damaged.  A newer damaged entry replaces an older one; a board
 * with one is not held.
 */
static int set_aside(const struct journal *journal, const char *uuid, uw_error *err)
{
    struct file_name from = name_of(uuid, ".cap"), to = name_of(uuid, JOURNAL_DAMAGED);

    if (renameat(journal->dir_fd, from.text, journal->dir_fd, to.text) < 0 ||
        fsync(journal->dir_fd) < 0)
        return fail_in(err, -errno, "the damaged entry cannot be moved aside: %s",
                       strerror(errno));
    return 0;
}

int journal_take(const struct journal *journal, const char *uuid, struct cap_entry *ret,
                 uw_error *err)
{
    struct cap_entry entry;
    uw_error why = {""};

    int r = read_entry(journal, uuid, ".cap", &entry, err);
    if (r == -EBADMSG || r == -EPERM)
        r = set_aside(journal, uuid, err);
    if (r < 0)
        return r;
    int aside = read_entry(journal, uuid, JOURNAL_DAMAGED, &(struct cap_entry){0}, &why);
    if (aside != JOURNAL_NONE)
        return fail(err, -EBADMSG, "%s: damaged entry, kept aside: %s", uuid,
                    why.text[0] ? why.text : name_of(uuid, JOURNAL_DAMAGED).text);
    if (r == 0)
        *ret = entry;
    return r;
}

int journal_remove(const struct journal *journal, const char *uuid, uw_error *err)
{
    struct file_name name = name_of(uuid, ".cap");

    if (unlinkat(journal->dir_fd, name.text, 0) < 0 && errno != ENOENT)
        return fail(err, -errno, "%s/%s: %s", journal->dir, name.text, strerror(errno));
    return 0;
}

/* The board of an entry's name, also of a damaged one. */
static bool uuid_of(const char *name, char *ret, size_t size)
{
    static const char *const suffixes[] = {".cap", JOURNAL_DAMAGED};
    size_t len = strcspn(name, ".");

    for (size_t i = 0; i < n_elements(suffixes); i++)
        if (strcmp(name + len, suffixes[i]) == 0 && len < size) {
            (void)snprintf(ret, size, "%.*s", (int)len, name);
            return core_is_uuid(ret);
        }
    return false;
}

static bool is_listed(char (*uuids)[96], size_t n, const char *uuid)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(uuids[i], uuid) == 0)
            return true;
    return false;
}

int journal_list(const struct journal *journal, char (*ret)[96], size_t max,
                 size_t *ret_n, uw_error *err)
{
    int fd = openat(journal->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    size_t n = 0;

    if (!dir) {
        int r = fail(err, -errno, "%s: %s", journal->dir, strerror(errno));
        fd_close_p(&fd);
        return r;
    }
    for (const struct dirent *d = readdir(dir); d && n < max; d = readdir(dir)) {
        char uuid[96];
        if (uuid_of(d->d_name, uuid, sizeof uuid) && !is_listed(ret, n, uuid))
            memcpy(ret[n++], uuid, sizeof uuid);
    }
    (void)closedir(dir);
    *ret_n = n;
    return 0;
}
