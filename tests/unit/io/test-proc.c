/* What /proc tells: real processes, made-up trees, and text that no kernel writes. */
#include "io/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

static const struct {
    const char *name, *text;
    int r;
    long pid, ppid, session;
    unsigned long long start;
    const char *comm;
} stats[] = {
    /* clang-format off */
    {"plain", "42 (python) S 7 42 40 34816 42 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 1 2\n", 0, 42, 7, 40, 123456, "python"},
    {"a name that looks like more", "42 (a) S 1 (b) R 7 42 40 0 0 0 1 2 3 4 5 6 7 8 20 0 1 0 123456", 0, 42, 7, 40, 123456, "a) S 1 (b"},
    {"an empty name", "42 () R 7 42 40 0 0 0 1 2 3 4 5 6 7 8 20 0 1 0 9", 0, 42, 7, 40, 9, ""},
    {"nothing", "", -EINVAL, 0, 0, 0, 0, ""},
    {"no name", "42 S 7 42 40", -EINVAL, 0, 0, 0, 0, ""},
    {"cut short", "42 (python) S 7 42 40 34816 42", -EINVAL, 0, 0, 0, 0, ""},
    {"cut within the name", "42 (pyth", -EINVAL, 0, 0, 0, 0, ""},
    {"a pid that none is", "99999999999 (x) S 7 42 40 0 0 0 1 2 3 4 5 6 7 8 20 0 1 0 9", -EINVAL, 0, 0, 0, 0, ""},
    {"a start beyond 64 bits", "42 (x) S 7 42 40 0 0 0 1 2 3 4 5 6 7 8 20 0 1 0 99999999999999999999", -EINVAL, 0, 0, 0, 0, ""},
    {"a letter for the start", "42 (x) S 7 42 40 0 0 0 1 2 3 4 5 6 7 8 20 0 1 0 x", -EINVAL, 0, 0, 0, 0, ""},
    /* clang-format on */
};

static const struct {
    const char *name, *text;
    int r;
    unsigned uid;
} statuses[] = {
    {"plain", "Name:\tpython\nUid:\t1000\t0\t0\t0\nGid:\t1\n", 0, 1000},
    {"a name that looks like a line", "Name:\tUid:\t0\nUid:\t1000\t0\t0\t0\n", 0, 1000},
    {"the largest", "Uid:\t4294967295\t1\t1\t1\n", 0, 4294967295u},
    {"too large", "Uid:\t4294967296\t1\t1\t1\n", -EINVAL, 0},
    {"no number", "Uid:\troot\n", -EINVAL, 0},
    {"a number and more", "Uid:\t10x\n", -EINVAL, 0},
    {"none", "Name:\tx\n", -EINVAL, 0},
    {"cut", "Uid:\t10", -EINVAL, 0},
    {"empty", "", -EINVAL, 0},
};

static void tables(void)
{
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++) {
        struct proc_facts f = {.pid = -1, .uid = 77};
        int r = proc_parse_stat(stats[i].text, strlen(stats[i].text), &f);
        is_int(r, stats[i].r, "stat: %s", stats[i].name);
        is_int(f.pid, r < 0 ? -1 : stats[i].pid, "  pid");
        is_int(f.ppid, stats[i].ppid, "  ppid");
        is_int(f.session, stats[i].session, "  session");
        is_int((long long)f.start, (long long)stats[i].start, "  start");
        is_str(f.comm, stats[i].comm, "  name");
        is_int(f.uid, 77, "  the rest is left alone");
    }
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        uid_t uid = 5;
        int r = proc_parse_status(statuses[i].text, strlen(statuses[i].text), &uid);
        is_int(r, statuses[i].r, "status: %s", statuses[i].name);
        is_int(uid, r < 0 ? 5 : statuses[i].uid, "  its uid");
    }
}

static void put(const char *dir, const char *name, const char *text, size_t n)
{
    char path[300];

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, n) != (ssize_t)n)
        ok(false, "%s is written", path);
    if (fd >= 0)
        (void)close(fd);
}

static void tree(void)
{
    static const char stat[] =
        "42 (py\ncu\u200brse) S 7 42 40 0 0 0 1 2 3 4 5 6 7 8 20 0 1 0 99 0\n";
    static const char status[] = "Name:\tx\nUid:\t1000\t1000\t1000\t1000\n";
    char root[] = "/tmp/uw-proc-XXXXXX", dir[64], big[PROC_CGROUP + 900];
    struct proc_facts f = {.pid = -1};

    if (!mkdtemp(root)) {
        ok(false, "a folder");
        return;
    }
    is_int(proc_read(root, 42, &f), -ESRCH, "tree: no such process");
    (void)snprintf(dir, sizeof dir, "%s/42", root);
    (void)mkdir(dir, 0700);
    is_int(proc_read(root, 42, &f), -ESRCH, "tree: its files are gone");
    put(dir, "stat", stat, sizeof stat - 1);
    is_int(proc_read(root, 42, &f), -ESRCH, "tree: no status");
    put(dir, "status", status, sizeof status - 1);
    is_int(f.pid, -1, "tree: nothing was written");
    is_int(proc_read(root, 42, &f), 0, "tree: without cgroups");
    is_int((long)f.n_cgroup, 0, "  none there");
    is_int(f.uid, 1000, "  its user");
    is_str(f.comm, "py?cu?rse", "  its name, nothing in it that is not seen");
    memset(big, 'a', sizeof big);
    memcpy(big, "0::/x\n", 6);
    put(dir, "cgroup", big, sizeof big);
    is_int(proc_read(root, 42, &f), 0, "tree: a cgroup too long");
    is_int((long)f.n_cgroup, 6, "  is cut at a line's end");
    static const char
        title[] = "slurmstepd: [7.0]",
        stepd[] = "42 (slurmstepd) S 7 42 40 0 0 0 1 2 3 4 5 6 7 8 20 0 1 0 99 0\n";
    char cmdline[80];
    (void)snprintf(cmdline, sizeof cmdline, "%s/cmdline", dir);
    put(dir, "stat", stepd, sizeof stepd - 1);
    is_int(mkfifo(cmdline, 0600), 0, "tree: a read of the command line would wait");
    is_int(proc_read(root, 42, &f), 0, "tree: it is not read, not even of slurmstepd");
    is_str(f.title, "", "  no title");
    proc_read_title(root, &f);
    is_str(f.title, "", "  nor is it waited for");
    (void)unlink(cmdline);
    put(dir, "cmdline", title, sizeof title);
    proc_read_title(root, &f);
    is_str(f.title, title, "  its title");
    f.start++;
    proc_read_title(root, &f);
    is_str(f.title, "", "  which is not that of an earlier process with its pid");
    (void)rename(dir, root); /* not empty: fails, and is fine */
    char other[64];
    (void)snprintf(other, sizeof other, "%s/43", root);
    (void)rename(dir, other);
    is_int(proc_read(root, 43, &f), -ESRCH, "tree: another's stat is not its own");
    is_int(proc_read(root, 0, &f), -EINVAL, "tree: pid 0");
    put(other, "stat", "junk", 4);
    is_int(proc_read(root, 43, &f), -EINVAL, "tree: junk");
    char link[80];
    (void)snprintf(link, sizeof link, "%s/stat", other);
    (void)unlink(link);
    is_int(symlink("/etc/passwd", link), 0, "tree: a link");
    is_int(proc_read(root, 43, &f), -ELOOP, "tree: a link is not followed");
    static const char *const names[] = {"stat", "status", "cgroup", "cmdline"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(link, sizeof link, "%s/%s", other, names[i]);
        (void)unlink(link);
    }
    (void)rmdir(other);
    (void)rmdir(root);
}

static void real(void)
{
    struct proc_facts f = {0}, g = {0};
    int pipes[2];

    is_int(proc_read("/proc", getpid(), &f), 0, "real: ourselves");
    is_int(f.pid, getpid(), "  pid");
    is_int(f.ppid, getppid(), "  parent");
    is_int(f.session, getsid(0), "  session");
    is_int(f.uid, getuid(), "  user");
    ok(f.start > 0, "  start");
    ok(strncmp(f.comm, "test-io-proc", 12) == 0, "  name");

    if (pipe(pipes) < 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        char c;
        (void)close(pipes[1]);
        (void)!read(pipes[0], &c, 1);
        _exit(0);
    }
    (void)close(pipes[0]);
    is_int(proc_read("/proc", child, &g), 0, "real: a child");
    int fd = proc_open_pidfd("/proc", child, g.start, getuid(), &f);
    ok(fd >= 0, "real: a pidfd of it");
    is_int(proc_open_pidfd("/proc", child, g.start + 1, getuid(), &f), -ESRCH,
           "real: another that had this pid");
    is_int(proc_open_pidfd("/proc", child, 0, getuid() + 1, &f), -EPERM,
           "real: somebody else's");
    struct pollfd p = {.fd = fd, .events = POLLIN};
    is_int(poll(&p, 1, 0), 0, "real: it lives");
    (void)close(pipes[1]);
    is_int(poll(&p, 1, 5000), 1, "real: it has ended");
    is_int(proc_open_pidfd("/proc", child, 0, getuid(), &f), -ESRCH,
           "real: ended, not reaped yet");
    (void)waitpid(child, NULL, 0);
    is_int(proc_read("/proc", child, &g), -ESRCH, "real: gone");
    is_int(proc_open_pidfd("/proc", child, 0, getuid(), &f), -ESRCH, "real: no pidfd");
    if (fd >= 0)
        (void)close(fd);
}

/* Calls of read() so far; 0: this kernel does not count them. */
static unsigned long reads(void)
{
    char text[512] = "";

    int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    (void)!read(fd, text, sizeof text - 1);
    (void)close(fd);
    const char *at = strstr(text, "syscr: ");
    return at ? strtoul(at + 7, NULL, 10) : 0;
}

/* Each look at a board reads the files of its processes. */
static void cost(void)
{
    struct proc_facts f;
    unsigned long before = reads();

    (void)proc_read("/proc", getpid(), &f);
    unsigned long after = reads();
    ok(after - before <= 4, "a process is read by three reads: %lu", after - before - 1);
}

int main(void)
{
    tables();
    tree();
    real();
    cost();
    return done();
}
