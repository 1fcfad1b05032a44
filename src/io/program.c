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

enum needs { NEEDS_NOTHING, NEEDS_INTERPRETER, NEEDS_LOADER, IS_DAMAGED };

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

/* False: not ELF, or unreadable. */
static bool read_header(const char *path, struct header *ret)
{
    auto_(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    return fd >= 0 && pread(fd, ret, sizeof *ret, 0) == (ssize_t)sizeof *ret &&
           memcmp(ret->elf.e_ident, ELFMAG, SELFMAG) == 0;
}

static bool is_same_kind(const struct header *a, const struct header *b)
{
    return a->elf.e_machine == b->elf.e_machine &&
           memcmp(a->elf.e_ident, b->elf.e_ident, EI_VERSION) == 0;
}

/* A program of another machine may have a handler in the kernel (binfmt_misc). */
static bool is_own_kind(const struct header *h)
{
    struct header own;

    return read_header("/proc/self/exe", &own) && is_same_kind(h, &own);
}

/* Whether the kernel executes a file with this header: an object file it does not. */
static bool is_program(const struct header *h)
{
    return (h->elf.e_type == ET_EXEC || h->elf.e_type == ET_DYN) && h->elf.e_phnum > 0 &&
           h->elf.e_phentsize == sizeof(struct segment);
}

/* Finds the loader that the program headers name. */
static enum needs read_loader(int fd, const struct header *h, char *ret)
{
    off_t at = (off_t)h->elf.e_phoff;
    bool found = false;

    for (unsigned i = 0; i < h->elf.e_phnum; i++, at += (off_t)sizeof(struct segment)) {
        struct segment s;
        ssize_t n = pread(fd, &s, sizeof s, at);
        if (n >= 0 && n < (ssize_t)sizeof s)
            return IS_DAMAGED; /* behind the end of the file */
        if (n < 0)
            return NEEDS_NOTHING;
        if (s.p.p_type != PT_INTERP || found)
            continue;
        found = true;
        if (s.p.p_filesz < 2 || s.p.p_filesz > PATH_MAX ||
            pread(fd, ret, s.p.p_filesz, (off_t)s.p.p_offset) != (ssize_t)s.p.p_filesz ||
            ret[s.p.p_filesz - 1])
            return NEEDS_NOTHING;
    }
    return found ? NEEDS_LOADER : NEEDS_NOTHING;
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
    if (n < SELFMAG || memcmp(head.text, ELFMAG, SELFMAG) != 0)
        return NEEDS_NOTHING;
    if (n < (ssize_t)sizeof head.header)
        return IS_DAMAGED;
    if (!is_own_kind(&head.header))
        return NEEDS_NOTHING;
    return is_program(&head.header) ? read_loader(fd, &head.header, ret) : IS_DAMAGED;
}

static int check_one(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (!S_ISREG(st.st_mode))
        return -EACCES;
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

/* Names the file at `path` unless it is the program itself. */
static int refuse(enum needs needs, char *path, int r, uw_error *err)
{
    if (needs == NEEDS_NOTHING)
        return fail(err, r, "%s", strerror(-r));
    utf8_mend(path); /* a script with the line ends of Windows */
    return fail(err, r, "its %s %.100s: %s",
                needs == NEEDS_LOADER ? "loader" : "interpreter", path, strerror(-r));
}

static int check_file(const char *path, uw_error *err)
{
    enum needs needs = NEEDS_NOTHING, then;
    char now[PATH_MAX], next[PATH_MAX];

    (void)snprintf(now, sizeof now, "%s", path);
    for (unsigned i = 0; i <= CHAIN_MAX; i++) {
        int r = check_one(now);
        if (r < 0)
            return refuse(needs, now, r, err);
        then = read_needs(now, next);
        if (then == IS_DAMAGED)
            return refuse(needs, now, -ENOEXEC, err);
        if (then == NEEDS_LOADER && (r = check_one(next)) < 0)
            return refuse(then, next, r, err);
        if (then != NEEDS_INTERPRETER)
            return 0; /* the kernel does not count a loader */
        needs = then;
        memcpy(now, next, sizeof now);
    }
    return fail(err, -ELOOP, "interpreters of interpreters, %d at most", CHAIN_MAX);
}

/* Whether execvp() goes on to the next folder of PATH. */
static bool goes_on(int r)
{
    return r == -EACCES || r == -EISDIR || r == -ENOENT || r == -ESTALE ||
           r == -ENOTDIR || r == -ENODEV || r == -ETIMEDOUT;
}

/* Searches PATH.  A file that was found, but cannot be executed, is named. */
static int search(const char *name, const char *folders, char *ret_path, size_t size,
                  uw_error *err)
{
    uw_error why = {""};
    int worst = fail(err, -ENOENT, "no such program in PATH");

    for (const char *at = folders ? folders : "/bin:/usr/bin";; at++) {
        size_t len = strcspn(at, ":");
        int n = snprintf(ret_path, size, "%.*s%s%s", (int)len, at, len ? "/" : "", name);
        bool whole = n >= 0 && (size_t)n < size; /* else a path too long for execve() */
        int r = whole ? check_file(ret_path, &why) : -ENOENT;
        if (r >= 0 || !goes_on(r))
            return r < 0 ? fail(err, r, "%s", why.text) : 0;
        if (whole && (r == -EACCES || (worst == -ENOENT && access(ret_path, F_OK) == 0)))
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
    return r < 0 ? fail(err, r, "%.100s: %s", *name ? name : "''", why.text) : 0;
}

enum { MACHINE_TEXT = 48 };

/* "aarch64", "arm 32-bit", "ppc64 big-endian".  e_machine has the file's byte order. */
static const char *machine_text(const struct header *h, char ret[MACHINE_TEXT])
{
    static const struct {
        unsigned machine;
        const char *name;
    } known[] = {
        {EM_386, "i386"},    {EM_X86_64, "x86_64"}, {EM_ARM, "arm"},
        {EM_PPC64, "ppc64"}, {EM_RISCV, "riscv"},   {EM_AARCH64, "aarch64"},
    };
    const unsigned char *at = (const unsigned char *)&h->elf.e_machine;
    bool big = h->elf.e_ident[EI_DATA] == ELFDATA2MSB;
    unsigned machine = big ? at[0] * 256u + at[1] : at[1] * 256u + at[0];
    char name[24];

    (void)snprintf(name, sizeof name, "machine type %u", machine);
    for (size_t i = 0; i < n_elements(known); i++)
        if (known[i].machine == machine)
            (void)snprintf(name, sizeof name, "%s", known[i].name);
    (void)snprintf(ret, MACHINE_TEXT, "%s%s%s", name,
                   h->elf.e_ident[EI_CLASS] == ELFCLASS32 ? " 32-bit" : "",
                   big ? " big-endian" : "");
    return ret;
}

int program_fail(const char *name, const char *path, int r, uw_error *err)
{
    char theirs[MACHINE_TEXT], ours[MACHINE_TEXT];
    struct header h, own;

    /* -ENOENT: the kernel executes its kind, but the loader is not there */
    if ((r == -ENOEXEC || r == -ENOENT) && read_header(path, &h) &&
        read_header("/proc/self/exe", &own) && !is_same_kind(&h, &own))
        return fail(err, r, "%.100s: %s: it is a program for %s, this machine is %s",
                    name, r == -ENOENT ? "its loader is missing" : strerror(-r),
                    machine_text(&h, theirs), machine_text(&own, ours));
    return fail(err, r, "%.100s: %s", name, strerror(-r));
}

static bool is_elf(const char *path)
{
    auto_(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    char magic[SELFMAG];

    return fd >= 0 && read(fd, magic, SELFMAG) == SELFMAG &&
           memcmp(magic, ELFMAG, SELFMAG) == 0;
}

int program_exec(const char *path, char *const *argv, char *const *env)
{
    (void)execve(path, argv, env);
    if (errno == ENOEXEC && !is_elf(path))
        (void)execvpe(path, argv, env);
    return -errno;
}
