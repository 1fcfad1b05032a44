#include "io/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/utf8.h"

enum {
    HEAD = 256,    /* BINPRM_BUF_SIZE: what the kernel reads of a script */
    CHAIN_MAX = 5, /* interpreters of interpreters, as in the kernel */
};

enum needs { NEEDS_NOTHING, NEEDS_INTERPRETER, NEEDS_LOADER };

/* Of this machine. */
struct header {
    ElfW(Ehdr) elf;
};
struct segment {
    ElfW(Phdr) p;
};

/* "#!PATH ARG": false: not named, or not in full, which is left to execve(). */
static bool read_script(const char *head, char *ret)
{
    const char *begin = head + 2 + strspn(head + 2, " \t");
    size_t len = strcspn(begin, " \t\n");

    if (len == 0 || !begin[len])
        return false;
    memcpy(ret, begin, len);
    ret[len] = '\0';
    return true;
}

/* A program of another machine may have a handler in the kernel (binfmt_misc). */
static bool is_own_kind(const struct header *h)
{
    auto_(fd_close) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct header own;

    return fd >= 0 && read(fd, &own, sizeof own) == (ssize_t)sizeof own &&
           h->elf.e_machine == own.elf.e_machine &&
           memcmp(h->elf.e_ident, own.elf.e_ident, EI_VERSION) == 0 &&
           h->elf.e_phentsize == sizeof(struct segment);
}

static bool read_loader(int fd, const struct header *h, char *ret)
{
    struct segment s = {.p.p_type = PT_NULL};
    off_t at = (off_t)h->elf.e_phoff;

    for (unsigned i = 0; i < h->elf.e_phnum && s.p.p_type != PT_INTERP; i++) {
        if (pread(fd, &s, sizeof s, at) != (ssize_t)sizeof s)
            return false;
        at += (off_t)sizeof s;
    }
    return s.p.p_type == PT_INTERP && s.p.p_filesz > 1 && s.p.p_filesz <= PATH_MAX &&
           pread(fd, ret, s.p.p_filesz, (off_t)s.p.p_offset) == (ssize_t)s.p.p_filesz &&
           !ret[s.p.p_filesz - 1];
}

/* Another file that the kernel executes for this one: writes its path (PATH_MAX). */
static enum needs read_needs(const char *path, char *ret)
{
    union {
        char text[HEAD + 1];
        struct header header;
    } head = {{0}};

    auto_(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : pread(fd, head.text, HEAD, 0); /* it may be unreadable */
    if (n > 2 && memcmp(head.text, "#!", 2) == 0)
        return read_script(head.text, ret) ? NEEDS_INTERPRETER : NEEDS_NOTHING;
    if (n >= (ssize_t)sizeof head.header && memcmp(head.text, ELFMAG, SELFMAG) == 0 &&
        is_own_kind(&head.header) && read_loader(fd, &head.header, ret))
        return NEEDS_LOADER;
    return NEEDS_NOTHING;
}

static int check_one(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EACCES;
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

static int check_file(const char *path, uw_error *err)
{
    enum needs needs = NEEDS_NOTHING;
    char now[PATH_MAX], next[PATH_MAX];

    (void)snprintf(now, sizeof now, "%s", path);
    for (unsigned i = 0; i <= CHAIN_MAX; i++) {
        int r = check_one(now);
        if (r < 0 && needs == NEEDS_NOTHING)
            return fail(err, r, "%s", strerror(-r));
        if (r < 0) {
            utf8_mend(now); /* a script with the line ends of Windows */
            return fail(err, r, "its %s %.100s: %s",
                        needs == NEEDS_LOADER ? "loader" : "interpreter", now,
                        strerror(-r));
        }
        if (needs == NEEDS_LOADER)
            return 0;
        needs = read_needs(now, next);
        if (needs == NEEDS_NOTHING)
            return 0;
        memcpy(now, next, sizeof now);
    }
    return fail(err, -ELOOP, "interpreters of interpreters, %d at most", CHAIN_MAX);
}

/* Whether execvp() goes on to the next folder of PATH. */
static bool goes_on(int r)
{
    return r == -EACCES || r == -ENOENT || r == -ESTALE || r == -ENOTDIR ||
           r == -ENODEV || r == -ETIMEDOUT;
}

/* Searches PATH.  A file that was found, but cannot be executed, is named. */
static int search(const char *name, const char *folders, char *ret_path, size_t size,
                  uw_error *err)
{
    uw_error why;
    int worst = fail(err, -ENOENT, "no such program in PATH");

    for (const char *at = folders ? folders : "/bin:/usr/bin";; at++) {
        size_t len = strcspn(at, ":");
        int n = snprintf(ret_path, size, "%.*s%s%s", (int)len, at, len ? "/" : "", name);
        int r = n < 0 || (size_t)n >= size ? -ENOENT : check_file(ret_path, &why);
        if (r >= 0 || !goes_on(r))
            return r < 0 ? fail(err, r, "%s", why.text) : 0;
        if (r == -EACCES || (worst == -ENOENT && access(ret_path, F_OK) == 0))
            worst = fail(err, r, "%.100s: %s", ret_path, why.text);
        if (!*(at += len))
            break;
    }
    return worst;
}

int program_find(const char *name, const char *folders, char *ret_path, size_t size,
                 uw_error *err)
{
    uw_error why = {""};
    int r;

    if (*name && !strchr(name, '/'))
        r = search(name, folders, ret_path, size, &why);
    else if (snprintf(ret_path, size, "%s", name) >= (int)size)
        r = fail(&why, -ENAMETOOLONG, "%s", strerror(ENAMETOOLONG));
    else
        r = check_file(name, &why);
    return r < 0 ? fail(err, r, "%.100s: %s", name, why.text) : 0;
}

static bool is_elf(const char *path)
{
    auto_(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    char magic[SELFMAG];

    return fd >= 0 && read(fd, magic, SELFMAG) == SELFMAG &&
           memcmp(magic, ELFMAG, SELFMAG) == 0;
}

int program_exec(char *const *argv, const char *folders)
{
    char path[PATH_MAX];

    int r = program_find(argv[0], folders, path, sizeof path, NULL);
    if (r < 0)
        return r;
    (void)execv(path, argv);
    if (errno == ENOEXEC && !is_elf(path))
        (void)execvp(path, argv);
    return -errno;
}
