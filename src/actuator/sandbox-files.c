/* Restricts access to files: Landlock.  A filter of system calls cannot check paths, so
 * Landlock keeps the root process from /etc/shadow and from the file of its own memory
 * (/proc/self/mem, which writes past the protection of pages).
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "actuator/sandbox.h"
#include "base/auto.h"
#include "base/error.h"
#include "gpu/backends.h"

/* The kernel's interface, as documented: the headers of a build machine may be older
 * than the running kernel.
 */
struct ruleset {
    uint64_t files; /* handled_access_fs */
    uint64_t net;   /* version 4 */
    uint64_t scope; /* version 6 */
};

enum {
    TRUNCATE = 1 << 14,  /* version 3 */
    IOCTL_DEV = 1 << 15, /* version 5 */
    SCOPE_SOCKETS = 1 << 0,
    SCOPE_SIGNALS = 1 << 1,
};

enum {
    READ = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
    /* Devices and existing files. */
    USE = READ | LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE | IOCTL_DEV,
    KEEP = READ | LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE |
           LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG,
    OF_FILES = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
               LANDLOCK_ACCESS_FS_READ_FILE | TRUNCATE | IOCTL_DEV,
};

/* Paths that drivers and the C library read; backends add those of their boards. */
static const struct {
    const char *pattern;
    unsigned rights;
} places[] = {
    {"/proc", READ},    {"/sys", READ},         {"/dev/null", USE},
    {"/dev/zero", USE}, {"/dev/urandom", READ},
};

/* Rights that this version of the interface knows. */
static uint64_t known_rights(unsigned version)
{
    const unsigned bits = version >= 5 ? 16 : version >= 3 ? 15 : version == 2 ? 14 : 13;
    return (UINT64_C(1) << bits) - 1;
}

static int allow(int ruleset, uint64_t known, const char *path, uint64_t rights,
                 uw_error *err)
{
    auto_(fd_close) int fd = open(path, O_PATH | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        rights &= OF_FILES;
    const struct landlock_path_beneath_attr rule = {.allowed_access = rights & known,
                                                    .parent_fd = fd};
    if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        return fail(err, -errno, "Landlock: %s: %s", path, strerror(errno));
    return 0;
}

static int allow_pattern(int ruleset, uint64_t known, const char *pattern,
                         uint64_t rights, uw_error *err)
{
    glob_t found = {0};
    int r = glob(pattern, GLOB_NOSORT, NULL, &found) == GLOB_NOSPACE
                ? fail(err, -ENOMEM, "out of memory")
                : 0;

    for (size_t i = 0; r == 0 && i < found.gl_pathc; i++) {
        r = allow(ruleset, known, found.gl_pathv[i], rights, err);
        if (r == -ENOENT) /* removed in between, or a dangling link */
            r = 0;
    }
    globfree(&found);
    return r;
}

/* Allows the boards of backends that may cap.  A pattern without a match is no error. */
static int allow_boards(int ruleset, uint64_t known, uw_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && gpu_backends[i]; i++) {
        const char *const *path = gpu_backends[i]->devices;
        for (; r == 0 && path && *path && gpu_backends[i]->may_cap; path++)
            r = allow_pattern(ruleset, known, *path, USE, err);
    }
    return r;
}

static int allow_world(int ruleset, uint64_t known, const struct sandbox_world *world,
                       uw_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < n_elements(places); i++)
        r = allow_pattern(ruleset, known, places[i].pattern, places[i].rights, err);
    if (r == 0)
        r = allow_boards(ruleset, known, err);
    if (r == 0)
        r = allow(ruleset, known, world->journal, KEEP, err);
    if (r == 0 && world->simulated)
        r = allow(ruleset, known, world->simulated, KEEP, err);
    return r;
}

/* The interface's version; 0: there is none. */
static unsigned landlock_version(void)
{
    long v =
        syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return v > 0 ? (unsigned)v : 0;
}

/* Loads the library that the C library loads at the first pthread_exit(), so that it
 * need not be loaded later.  Without the library, no code is built to use it.
 */
static void load_early(void)
{
    (void)dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

int sandbox_files(const struct sandbox_world *world, unsigned *ret_version, uw_error *err)
{
    const unsigned version = sandbox_has_filter() ? landlock_version() : 0;
    const uint64_t known = known_rights(version);
    const struct ruleset wanted = {
        .files = known, .scope = version >= 6 ? SCOPE_SOCKETS | SCOPE_SIGNALS : 0};

    load_early();
    *ret_version = 0;
    if (!sandbox_has_filter())
        return 0;
    if (version == 0)
        return SANDBOX_E_NO_LANDLOCK;
    /* The kernel accepts unknown fields at the end if they are 0. */
    auto_(fd_close) int ruleset =
        (int)syscall(SYS_landlock_create_ruleset, &wanted, sizeof wanted, 0);
    if (ruleset < 0)
        return fail(err, -errno, "Landlock: %s", strerror(errno));
    int r = allow_world(ruleset, known, world, err);
    if (r < 0)
        return r;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        return fail(err, -errno, "Landlock: %s", strerror(errno));
    *ret_version = version;
    return 0;
}
