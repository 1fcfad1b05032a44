/* Locked down: what must go on works, what is not needed is refused. */
#include "actuator/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
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
#include <sys/un.h>
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

/* The journal's folder, a file in it, and one that is none of its business. */
static char dir[] = "/tmp/test-sandbox-XXXXXX";
static char path[sizeof dir + 8], secret[sizeof dir + 8], made[sizeof dir + 8];
static int file_fd, code_fd;
static struct sockaddr_un listening = {.sun_family = AF_UNIX},
                          abstract = {.sun_family = AF_UNIX};
static int dgram_fd, abstract_fd, stream_fd; /* made before */

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
TRY(try_link, symlinkat(path, AT_FDCWD, made))
TRY(try_memfd, syscall(SYS_memfd_create, "x", 0L))
TRY(try_setuid, setuid(0))
TRY(try_dumpable, prctl(PR_SET_DUMPABLE, 1))
TRY(try_tiocsti, ioctl(0, TIOCSTI, "x"))
TRY(try_wx, (intptr_t)mmap(NULL, 4096, PROT_WRITE | PROT_EXEC,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
TRY(try_uring, syscall(SYS_io_uring_setup, 1L, NULL))
TRY(try_realtime, sched_setscheduler(0, SCHED_RR, &(struct sched_param){1}))
TRY(try_clock, syscall(SYS_settimeofday, NULL, NULL))
TRY(try_setown, fcntl(file_fd, F_SETOWN, getppid()))
TRY(try_setown_ex, fcntl(file_fd, F_SETOWN_EX, &(struct f_owner_ex){F_OWNER_PID, 1}))
TRY(try_setsig, fcntl(file_fd, F_SETSIG, SIGKILL))
TRY(try_async, fcntl(stream_fd, F_SETFL, O_RDWR | O_ASYNC))
TRY(try_notify, fcntl(code_fd, F_NOTIFY, DN_MODIFY))
TRY(try_lease, fcntl(code_fd, F_SETLEASE, F_WRLCK))
TRY(try_fiosetown, ioctl(stream_fd, FIOSETOWN, &(int){1}))
TRY(try_siocspgrp, ioctl(stream_fd, SIOCSPGRP, &(int){1}))
TRY(try_fioasync, ioctl(stream_fd, FIOASYNC, &(int){1}))
TRY(try_map_x, (intptr_t)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, code_fd, 0))
TRY(try_connect, connect(stream_fd, (void *)&listening, sizeof listening))
TRY(try_sendto, sendto(dgram_fd, "x", 1, 0, (void *)&listening, sizeof listening))
TRY(try_socket, socket(AF_UNIX, SOCK_DGRAM, 0))
TRY(try_socketpair, socketpair(AF_UNIX, SOCK_DGRAM, 0, (int[2]){0}))

/* A page of a file that was written, made executable afterwards. */
static int try_mprotect_file(void)
{
    void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, code_fd, 0);

    return p == MAP_FAILED                                ? 1000
           : mprotect(p, 4096, PROT_READ | PROT_EXEC) < 0 ? errno
                                                          : 0;
}

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
    {"F_SETOWN, which sends signals", try_setown},
    {"F_SETOWN_EX", try_setown_ex},
    {"F_SETSIG", try_setsig},
    {"F_SETFL with O_ASYNC", try_async},
    {"F_NOTIFY", try_notify},
    {"F_SETLEASE", try_lease},
    {"FIOSETOWN", try_fiosetown},
    {"SIOCSPGRP", try_siocspgrp},
    {"FIOASYNC", try_fioasync},
    {"a file mapped to be run", try_map_x},
    {"a file's page made executable", try_mprotect_file},
    {"connect()", try_connect},
    {"sendto() with an address", try_sendto},
    {"another socket", try_socket},
    {"a pair of sockets", try_socketpair},
};

/* ---- files ---- */

static int open_try(const char *name, int flags)
{
    int fd = open(name, flags | O_CLOEXEC, 0600);
    int r = fd < 0 ? errno : 0;

    if (fd >= 0)
        (void)close(fd);
    return r;
}

static int try_memory(void)
{
    return open_try("/proc/self/mem", O_RDWR);
}
static int try_thread_memory(void)
{
    return open_try("/proc/thread-self/mem", O_WRONLY);
}
static int try_secret(void)
{
    return open_try(secret, O_RDONLY);
}
static int try_secret_write(void)
{
    return open_try(secret, O_WRONLY);
}
static int try_passwd(void)
{
    return open_try("/etc/passwd", O_RDONLY);
}
static int try_root_folder(void)
{
    return open_try("/", O_RDONLY | O_DIRECTORY);
}
static int try_new_file(void)
{
    char name[64];

    (void)snprintf(name, sizeof name, "%s-new", dir);
    int r = open_try(name, O_RDWR | O_CREAT);
    (void)unlink(name);
    return r;
}
static int try_take_out(void)
{
    char name[64];

    (void)snprintf(name, sizeof name, "%s-out", dir);
    int r = rename(path, name) < 0 ? errno : 0;
    if (r == 0)
        (void)rename(name, path);
    return r;
}
static int try_proc_write(void)
{
    return open_try("/proc/self/comm", O_WRONLY);
}
static int try_remove(void)
{
    int r = unlink(secret) < 0 ? errno : 0;

    if (r == 0)
        (void)open_try(secret, O_WRONLY | O_CREAT);
    return r;
}

/* Each goes through before, so that its refusal means something. */
static const struct {
    const char *name;
    int (*try)(void);
} files[] = {
    {"its own memory's file", try_memory},
    {"and by the thread's name", try_thread_memory},
    {"a file elsewhere", try_secret},
    {"writing to it", try_secret_write},
    {"removing it", try_remove},
    {"/etc/passwd", try_passwd},
    {"a list of the root folder", try_root_folder},
    {"a new file elsewhere", try_new_file},
    {"an entry taken out of the journal", try_take_out},
    {"writing in /proc", try_proc_write},
};

static void files_before(void)
{
    for (size_t i = 0; i < n_elements(files); i++) {
        int e = files[i].try();
        ok(e == 0, "%s goes through before: %s", files[i].name, strerror(e));
    }
}

static void files_after(unsigned version)
{
    for (size_t i = 0; i < n_elements(files); i++) {
        int e = files[i].try();
        ok(e == EACCES || e == EXDEV, "%s is refused: %s", files[i].name, strerror(e));
    }
    is_int(open_try("/proc/sys/kernel/random/boot_id", O_RDONLY), 0, "/proc is read");
    is_int(open_try("/sys/devices/system/cpu/online", O_RDONLY), 0, "so is /sys");
    is_int(open_try("/dev/null", O_RDWR), 0, "/dev/null is there");
    if (version < 6) {
        skip_one("an abstract socket is refused", "Landlock before version 6");
        return;
    }
    int e = connect(abstract_fd, (void *)&abstract, sizeof abstract) < 0 ? errno : 0;
    is_int(e, EPERM, "an abstract socket is refused: %s", strerror(e));
}

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
           fsync(fd) == 0 && rename(path, other) == 0 &&
           open_try(path, O_RDWR | O_CREAT | O_EXCL) == 0 && unlink(path) == 0 &&
           rename(other, path) == 0;
}

/* As a driver's thread may end: the C library looks for the unwinder then. */
static void *exit_main(void *arg)
{
    *(int *)arg = 1;
    pthread_exit(NULL);
}

static bool thread_exits(void)
{
    pthread_t thread;
    int ran = 0;

    return pthread_create(&thread, NULL, exit_main, &ran) == 0 &&
           pthread_join(thread, NULL) == 0 && ran == 1;
}

static bool flags_work(void)
{
    int flags = fcntl(stream_fd, F_GETFL);
    int copy = fcntl(stream_fd, F_DUPFD_CLOEXEC, 0);
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};

    bool good =
        flags >= 0 && copy >= 0 && fcntl(copy, F_SETFL, flags | O_NONBLOCK) == 0 &&
        fcntl(copy, F_SETFD, FD_CLOEXEC) == 0 && fcntl(copy, F_GETFD) == FD_CLOEXEC &&
        fcntl(code_fd, F_OFD_SETLK, &lock) == 0;
    (void)close(copy);
    return good;
}

static void in_child(pthread_t early, int *early_result)
{
    pthread_t thread;
    int result = 1000;

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
    ok(send(dgram_fd, "x", 1, 0) == 1, "a socket that was connected before");
    ok(thread_exits(), "pthread_exit()");
    ok(flags_work(), "flags, copies and locks of descriptors");
    ok(loop_works(), "the loop and its workers");
    ok(journal_works(), "what the journal does");
    ok(sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0}) == 0,
       "the way to the normal class");
    errno = 0;
    (void)ioctl(file_fd, 0xc0de4600u | 0x2a);
    ok(errno == ENOTTY, "an ioctl of the driver's goes through: %s", strerror(errno));
}

/* The client of a simulated driver connects anew, within its world and nowhere else. */
static void test_simulated(void)
{
    const struct sandbox_world world = {.journal = dir, .simulated = dir};
    int status = -1;
    unsigned version;

    pid_t pid = fork();
    if (pid == 0) {
        if (sandbox_files(&world, &version, NULL) < 0 || sandbox_filter(&world, NULL) < 0)
            _exit(1);
        int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
        _exit(connect(fd, (void *)&listening, sizeof listening) == 0 &&
                      try_sendto() == EPERM && try_inet() == EPERM && try_map_x() == EPERM
                  ? 0
                  : 2);
    }
    (void)waitpid(pid, &status, 0);
    ok(status == 0, "a simulated world's socket can be connected to: %d", status);
}

static void test_filter(void)
{
    const struct sandbox_world world = {.journal = dir};
    int result = 1000;
    pthread_t early;
    unsigned version = 0;
    uw_error err = {""};

    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (pipe2(gate, O_CLOEXEC) < 0 ||
        pthread_create(&early, NULL, early_main, &result) != 0) {
        ok(false, "a thread before the filter");
        return;
    }
    files_before();
    int r = sandbox_files(&world, &version, &err);
    ok(r == 0 || r == SANDBOX_E_NO_LANDLOCK, "files are given up: %d %s", r, err.text);
    if (r == 0)
        files_after(version);
    else
        skip_one("files are out of reach", "this kernel has no Landlock");
    is_int(sandbox_filter(&world, &err), 0, "the filter is loaded %s", err.text);
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

static bool bind_to(int type, struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    return fd >= 0 && bind(fd, (void *)address, sizeof *address) == 0;
}

/* All that is there before: files, sockets that listen, sockets to try it with. */
static bool prepare(void)
{
    if (!mkdtemp(dir))
        return false;
    (void)snprintf(path, sizeof path, "%s/entry", dir);
    (void)snprintf(secret, sizeof secret, "%s-other", dir);
    (void)snprintf(made, sizeof made, "%s-link", dir);
    (void)snprintf(listening.sun_path, sizeof listening.sun_path, "%s/socket", dir);
    (void)snprintf(abstract.sun_path + 1, sizeof abstract.sun_path - 1, "%s", dir);
    file_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    code_fd = open(path, O_RDONLY | O_CLOEXEC);
    dgram_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    abstract_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    stream_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return file_fd >= 0 && code_fd >= 0 && ftruncate(file_fd, 4096) == 0 &&
           open_try(secret, O_WRONLY | O_CREAT) == 0 && bind_to(SOCK_DGRAM, &listening) &&
           bind_to(SOCK_DGRAM, &abstract) &&
           connect(dgram_fd, (void *)&listening, sizeof listening) == 0;
}

int main(void)
{
    if (!sandbox_has_filter())
        return skip_all("no filter under a sanitizer");
    if (!prepare())
        return skip_all("no temporary files");
    pid_t pid = fork(); /* it cannot clean up behind itself */
    if (pid == 0) {
        test_simulated();
        test_capabilities();
        test_filter();
        return done();
    }
    int status = -1;
    (void)waitpid(pid, &status, 0);
    (void)unlink(path);
    (void)unlink(listening.sun_path);
    (void)unlink(secret);
    (void)rmdir(dir);
    return status == 0 ? 0 : 1;
}
