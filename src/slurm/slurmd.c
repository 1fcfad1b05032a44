#include "slurm/slurmd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"

/* Files' times may be late by a tick of the kernel's clock. */
#define TICK_NS (20 * NS_PER_MS)

enum {
    PARENTS_MAX = 8,
    /* Without files of its own (configless) slurmd writes them when it starts. */
    OWN_COPY_S = 120,
};

struct process {
    char name[20];
    int parent;
    uint64_t began; /* clock ticks since boot */
};

static bool read_process(int pid, struct process *ret)
{
    char path[40], text[512];

    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    auto_(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *name = strchr(text, '('), *end = strrchr(text, ')');
    if (!name || !end || end < name)
        return false;
    (void)snprintf(ret->name, sizeof ret->name, "%.*s", (int)(end - name - 1), name + 1);
    return sscanf(end + 1,
                  " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                  "%*d %*d %" SCNu64,
                  &ret->parent, &ret->began) == 2;
}

static uint64_t ns_of(struct timespec t)
{
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* In the clock of files' times.  If slurmd has forked, its topmost process counts. */
static int slurmd_began(uint64_t *ret_ns, uw_error *err)
{
    struct timespec real = {0}, boot = {0};
    struct process p = {0};
    uint64_t ticks = 0;
    long hz = sysconf(_SC_CLK_TCK);
    bool found = false;

    p.parent = getppid();
    for (int i = 0; i < PARENTS_MAX && p.parent > 0 && read_process(p.parent, &p); i++) {
        bool is = strcmp(p.name, "slurmd") == 0;
        if (found && !is)
            break;
        if (is)
            ticks = p.began;
        found |= is;
    }
    if (!found || hz <= 0)
        return fail(err, -ESRCH, "no slurmd is among the prolog's parents");
    /* In this order, a delay between them makes slurmd older. */
    (void)clock_gettime(CLOCK_REALTIME, &real);
    (void)clock_gettime(CLOCK_BOOTTIME, &boot);
    *ret_ns = ns_of(real) - ns_of(boot) + ticks * (NS_PER_S / (uint64_t)hz);
    return 0;
}

/* The time when the file, or the file that its name refers to, changed. */
static int changed(const char *path, uint64_t *ret_ns)
{
    struct stat file, name;

    if (stat(path, &file) < 0 || lstat(path, &name) < 0)
        return -errno;
    const struct timespec times[] = {file.st_mtim, file.st_ctim, name.st_ctim};
    *ret_ns = 0;
    for (size_t i = 0; i < n_elements(times); i++)
        if (ns_of(times[i]) > *ret_ns)
            *ret_ns = ns_of(times[i]);
    return 0;
}

int slurmd_has_read(const char *path, uw_error *err)
{
    char real[PATH_MAX];
    uint64_t began = 0, then = 0;
    int r = changed(path, &then);

    if (r < 0 || !realpath(path, real))
        return fail(err, r < 0 ? r : -errno, "%s: %s", path,
                    strerrordesc_np(r < 0 ? -r : errno));
    r = slurmd_began(&began, err);
    if (r < 0)
        return r;
    if (strstr(real, "/conf-cache/"))
        began += OWN_COPY_S * NS_PER_S;
    if (then + TICK_NS >= began)
        return fail(err, -ESTALE,
                    "%s was changed after slurmd started: sudo systemctl restart slurmd",
                    path);
    return 0;
}
