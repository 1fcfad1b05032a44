/* Under the filter: what must go on works, what is not needed is refused. */
#include "actuator/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "io/loop.h"
#include "tap.h"

/* Each try returns 0 (went through) or errno. */
#define TRY(name, call)                      \
    static int name(void)                    \
    {                                        \
        errno = 0;                           \
        return (long)(call) < 0 ? errno : 0; \
    }

static char path[] = "/tmp/test-sandbox-XXXXXX";
static int file_fd;

TRY(try_execve, execve("/bin/true", (char *[]){NULL}, NULL))
TRY(try_inet, socket(AF_INET, SOCK_STREAM, 0))
TRY(try_inet6, socket(AF_INET6, SOCK_DGRAM, 0))
TRY(try_netlink, socket(AF_NETLINK, SOCK_RAW, 0))
TRY(try_packet, socket(AF_PACKET, SOCK_RAW, 0))
TRY(try_fork, syscall(SYS_clone, 17L, 0L, 0L, 0L, 0L))
TRY(try_vfork, syscall(SYS_clone, (long)(CLONE_VM | CLONE_VFORK | 17), 0L, 0L, 0L, 0L))
TRY(try_newuser, unshare(CLONE_NEWUSER))
TRY(try_ptrace, ptrace(PTRACE_TRACEME, 0, NULL, NULL))
TRY(try_kill, kill(getppid(), 0))
TRY(try_tgkill, syscall(SYS_tgkill, (long)getppid(), (long)getppid(), 0L))
TRY(try_mount, syscall(SYS_mount, "none", "/mnt", "tmpfs", 0L, NULL))
TRY(try_bpf, syscall(SYS_bpf, 0L, NULL, 0L))
TRY(try_module, syscall(SYS_finit_module, -1L, "", 0L))
TRY(try_keyctl, syscall(SYS_keyctl, 0L, 0L, 0L))
TRY(try_chmod, fchmod(file_fd, 0777))
TRY(try_chown, fchown(file_fd, 0, 0))
TRY(try_link, symlinkat(path, AT_FDCWD, "/tmp/test-sandbox-link"))
TRY(try_memfd, syscall(SYS_memfd_create, "x", 0L))
TRY(try_setuid, setuid(0))
TRY(try_dumpable, prctl(PR_SET_DUMPABLE, 1))
TRY(try_tiocsti, ioctl(0, TIOCSTI, "x"))
TRY(try_wx, (intptr_t)mmap(NULL, 4096, PROT_WRITE | PROT_EXEC,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
TRY(try_uring, syscall(SYS_io_uring_setup, 1L, NULL))
TRY(try_realtime, sched_setscheduler(0, SCHED_RR, &(struct sched_param){1}))
TRY(try_clock, syscall(SYS_settimeofday, NULL, NULL))

static int try_mprotect_x(void)
{
    void *p =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED                                ? 1000
           : mprotect(p, 4096, PROT_READ | PROT_EXEC) < 0 ? errno
                                                          : 0;
}

static const struct {
    const char *name;
    int (*try)(void);
} forbidden[] = {
    {"a program", try_execve},
    {"IPv4", try_inet},
    {"IPv6", try_inet6},
    {"netlink", try_netlink},
    {"packets", try_packet},
    {"fork", try_fork},
    {"vfork", try_vfork},
    {"a user namespace", try_newuser},
    {"ptrace", try_ptrace},
    {"a signal to another", try_kill},
    {"tgkill of another", try_tgkill},
    {"mount", try_mount},
    {"bpf", try_bpf},
    {"a module", try_module},
    {"keys", try_keyctl},
    {"chmod", try_chmod},
    {"chown", try_chown},
    {"a link", try_link},
    {"memfd", try_memfd},
    {"setuid", try_setuid},
    {"prctl", try_dumpable},
    {"TIOCSTI", try_tiocsti},
    {"memory to write and run", try_wx},
    {"memory made executable", try_mprotect_x},
    {"io_uring", try_uring},
    {"a real-time class", try_realtime},
    {"the clock", try_clock},
};

static void *thread_main(void *arg)
{
    *(int *)arg = try_inet();
    return NULL;
}

/* A thread that was there before the filter, and waits for it. */
static int gate[2];

static void *early_main(void *arg)
{
    char byte;

    (void)!read(gate[0], &byte, 1);
    return thread_main(arg);
}

static int on_worker(struct loop *loop, void *work)
{
    (void)loop;
    *(int *)work += 1;
    return 0;
}

static int on_worker_done(struct loop *loop, void *work, int r)
{
    *(int *)work += r == 0;
    loop_stop(loop, 0);
    return 0;
}

/* The loop with a worker, made under the filter. */
static bool loop_works(void)
{
    struct loop *loop = NULL;
    struct loop_worker *worker = NULL;
    int steps = 0;
    struct loop_work work = {.fn = on_worker,
                             .done = on_worker_done,
                             .work = &steps,
                             .deadline_ns = 5000000000};

    bool good = loop_new_real((struct loop_clock){.speed = 1}, &loop, NULL) == 0 &&
                loop_worker_new(loop, "test", &worker, NULL) == 0 &&
                loop_worker_submit(worker, &work) == 0 && loop_run(loop, NULL) == 0;
    loop_free(loop);
    return good && steps == 2;
}

static bool journal_works(void)
{
    char other[sizeof path + 4];
    auto_(fd_close) int fd = open(path, O_RDWR | O_CLOEXEC);

    (void)snprintf(other, sizeof other, "%s.new", path);
    return fd >= 0 && pwrite(fd, "x", 1, 0) == 1 && ftruncate(fd, 1) == 0 &&
           fsync(fd) == 0 && rename(path, other) == 0 && rename(other, path) == 0;
}

static void in_child(pthread_t early, int *early_result)
{
    pthread_t thread;
    int result = 1000, pair[2];

    for (size_t i = 0; i < n_elements(forbidden); i++) {
        int e = forbidden[i].try();
        ok(e == EPERM, "%s is refused: %s", forbidden[i].name, strerror(e));
    }
    ok(syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS, "clone3 is not there");
    ok(pthread_create(&thread, NULL, thread_main, &result) == 0 &&
           pthread_join(thread, NULL) == 0,
       "a thread can be had");
    is_int(result, EPERM, "the filter is its, too");
    (void)!write(gate[1], "x", 1);
    (void)pthread_join(early, NULL);
    is_int(*early_result, EPERM, "and that of one that was there before");
    ok(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0 && send(pair[0], "x", 1, 0) == 1,
       "sockets of this machine");
    ok(loop_works(), "the loop and its workers");
    ok(journal_works(), "what the journal does");
    ok(sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0}) == 0,
       "the way to the normal class");
    errno = 0;
    (void)ioctl(file_fd, 0xc0de4600u | 0x2a);
    ok(errno == ENOTTY, "an ioctl of the driver's goes through: %s", strerror(errno));
}

static void test_filter(void)
{
    int result = 1000;
    pthread_t early;
    uw_error err = {""};

    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (pipe2(gate, O_CLOEXEC) < 0 ||
        pthread_create(&early, NULL, early_main, &result) != 0) {
        ok(false, "a thread before the filter");
        return;
    }
    is_int(sandbox_filter(&err), 0, "the filter is loaded %s", err.text);
    in_child(early, &result);
}

static void test_capabilities(void)
{
    uw_error err = {""};
    char text[4096], want[64];
    FILE *status;
    size_t n = 0;

    is_int(sandbox_drop_capabilities(&err), 0, "capabilities are given up %s", err.text);
    is_int(sandbox_drop_capabilities(&err), 0, "and again %s", err.text);
    status = fopen("/proc/self/status", "re");
    if (status)
        n = fread(text, 1, sizeof text - 1, status);
    text[n] = '\0';
    if (status)
        (void)fclose(status);
    static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapAmb"};
    for (size_t i = 0; i < n_elements(sets); i++) {
        (void)snprintf(want, sizeof want, "%s:\t0000000000%c00000\n", sets[i], '0');
        bool none = strstr(text, want) != NULL;
        (void)snprintf(want, sizeof want, "%s:\t0000000000%c00000\n", sets[i], '2');
        bool admin = strstr(text, want) != NULL;
        ok(i == 1 || i == 2 ? none || admin : none, "%s has CAP_SYS_ADMIN at most",
           sets[i]);
    }
}

int main(void)
{
    if (!sandbox_has_filter())
        return skip_all("no filter under a sanitizer");
    file_fd = mkstemp(path);
    if (file_fd < 0)
        return skip_all("no temporary file");
    test_capabilities();
    test_filter();
    (void)unlink(path);
    return done();
}
