#include "actuator/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "gpu/backends.h"

/* ---- capabilities ---- */

typedef struct _cap_struct *caps_ptr;

static void caps_free(caps_ptr caps)
{
    if (caps)
        (void)cap_free(caps);
}
DEFINE_AUTO(caps_ptr, caps_free);

/* The capability that the driver requires to set a limit, checked by the kernel's
 * capable().
 */
static const cap_value_t needed = CAP_SYS_ADMIN;

static bool has(caps_ptr caps, cap_value_t cap)
{
    cap_flag_value_t value = CAP_CLEAR;

    return cap_get_flag(caps, cap, CAP_PERMITTED, &value) == 0 && value == CAP_SET;
}

/* Requires CAP_SETPCAP; without it, no program that this process runs can raise them
 * either.
 */
static void drop_bounding_set(caps_ptr now)
{
    (void)cap_reset_ambient();
    if (!has(now, CAP_SETPCAP))
        return;
    for (cap_value_t cap = 0; CAP_IS_SUPPORTED(cap); cap++)
        if (cap != needed)
            (void)cap_drop_bound(cap);
}

int sandbox_drop_capabilities(uw_error *err)
{
    auto_(caps_free) caps_ptr now = cap_get_proc();
    auto_(caps_free) caps_ptr then = cap_init(); /* empty */

    if (!now || !then)
        return fail(err, -ENOMEM, "capabilities: %s", strerror(errno));
    if (cap_compare(now, then) == 0)
        return 0;
    drop_bounding_set(now);
    if (has(now, needed) && (cap_set_flag(then, CAP_PERMITTED, 1, &needed, CAP_SET) < 0 ||
                             cap_set_flag(then, CAP_EFFECTIVE, 1, &needed, CAP_SET) < 0))
        return fail(err, -errno, "capabilities: %s", strerror(errno));
    if (cap_set_proc(then) < 0)
        return fail(err, -errno, "capabilities cannot be given up: %s", strerror(errno));
    return 0;
}

/* ---- system calls ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

bool sandbox_has_filter(void)
{
    return !SANITIZED;
}

/* Allowed with any arguments.  Paths cannot be checked here: access to files is limited
 * by Landlock (sandbox-files.c), the unit (ProtectSystem, DevicePolicy) and the uid.
 */
static const char *const plain[] = {
    /* descriptors */
    "read",
    "readv",
    "pread64",
    "preadv",
    "write",
    "writev",
    "pwrite64",
    "close",
    "lseek",
    "fstat",
    "newfstatat",
    "stat",
    "lstat",
    "statx",
    "dup",
    "dup2",
    "dup3",
    /* files: boards, journal, /proc and /sys of the driver */
    "open",
    "openat",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
    "getdents64",
    "flock",
    "ftruncate",
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "getcwd",
    "fstatfs",
    "statfs",
    /* waiting: libuv, worker threads, the simulated driver */
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "eventfd2",
    "timerfd_create",
    "timerfd_settime",
    "timerfd_gettime",
    "pipe2",
    "futex",
    "futex_waitv",
    "nanosleep",
    "clock_nanosleep",
    "clock_gettime",
    "clock_getres",
    "gettimeofday",
    "time",
    "restart_syscall",
    "sched_yield",
    /* memory */
    "munmap",
    "mremap",
    "madvise",
    "brk",
    "mincore",
    "membarrier",
    /* threads and signals of our own */
    "set_robust_list",
    "get_robust_list",
    "rseq",
    "set_tid_address",
    "sched_getaffinity",
    "sched_getparam",
    "sched_getscheduler",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "getcpu",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "rt_sigtimedwait",
    "sigaltstack",
    "exit",
    "exit_group",
    /* who and where we are */
    "getpid",
    "getppid",
    "gettid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getresuid",
    "getresgid",
    "getgroups",
    "getrlimit",
    "uname",
    "sysinfo",
    "getrandom",
    "getrusage",
    "times",
    "capget",
    /* clients, at existing sockets */
    "accept4",
    "accept",
    "sendmsg", /* whom to cannot be looked into: docs/design/actuator.md, "What stays
                  open" */
    "recvfrom",
    "recvmsg",
    "shutdown",
    "getsockopt",
    "setsockopt",
    "getsockname",
    "getpeername",
};

/* ioctl()s without a board; the backends allow those of boards by their type. */
static const unsigned ioctls[] = {
    0x5401, /* TCGETS: isatty() */
    0x541b, /* FIONREAD */
    0x5421, /* FIONBIO */
    0x5450, /* FIONCLEX */
    0x5451, /* FIOCLEX */
};

struct rule {
    const char *call;
    unsigned n;
    struct scmp_arg_cmp arg[2];
};

typedef void *filter_ptr;

static void filter_free(filter_ptr filter)
{
    if (filter)
        seccomp_release(filter);
}
DEFINE_AUTO(filter_ptr, filter_free);

/* A call that does not exist on this architecture is no error. */
static int add(filter_ptr filter, uint32_t action, const struct rule *rule)
{
    int nr = seccomp_syscall_resolve_name(rule->call);

    if (nr == __NR_SCMP_ERROR)
        return 0;
    int r = seccomp_rule_add_array(filter, action, nr, rule->n, rule->arg);
    return r == -EDOM ? 0 : r;
}

static int add_plain(filter_ptr filter)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < n_elements(plain); i++)
        r = add(filter, SCMP_ACT_ALLOW, &(struct rule){.call = plain[i]});
    return r;
}

/* fcntl() by its command; F_SETFL is below. */
static const unsigned fcntls[] = {
    F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD,     F_SETFD,     F_GETFL,
    F_GETLK, F_SETLK,         F_OFD_GETLK, F_OFD_SETLK,
};

/* The client of a simulated driver connects to its world for each request. */
static int add_sockets(filter_ptr filter)
{
    const struct rule rules[] = {
        {"socket", 1, {SCMP_A0(SCMP_CMP_EQ, AF_UNIX)}},
        {"connect", 0, {{0}}},
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < n_elements(rules); i++)
        r = add(filter, SCMP_ACT_ALLOW, &rules[i]);
    return r;
}

/* Calls that are allowed in part. */
static int add_partial(filter_ptr filter)
{
    const uint64_t self = (uint64_t)getpid();
    /* clang-format off */
    const struct rule rules[] = {
        /* No memory becomes executable any more, neither data nor a file. */
        {"mmap", 1, {SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)}},
        {"mprotect", 1, {SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)}},
        /* Threads, but no processes. */
        {"clone", 1, {SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD)}},
        /* Only to the connected peer. */
        {"sendto", 1, {SCMP_A4(SCMP_CMP_EQ, 0)}},
        /* No signals through descriptors: neither an owner nor O_ASYNC can be set. */
        {"fcntl", 2, {SCMP_A1(SCMP_CMP_EQ, F_SETFL),
                      SCMP_A2(SCMP_CMP_MASKED_EQ, O_ASYNC, 0)}},
        {"tgkill", 1, {SCMP_A0(SCMP_CMP_EQ, self)}}, /* abort() */
        {"prctl", 1, {SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME)}},
        {"prctl", 1, {SCMP_A0(SCMP_CMP_EQ, PR_GET_NAME)}},
        /* Only from the real-time class down to the normal one: see io/realtime.h. */
        {"sched_setscheduler", 1, {SCMP_A1(SCMP_CMP_EQ, SCHED_OTHER)}},
        {"prlimit64", 1, {SCMP_A2(SCMP_CMP_EQ, 0)}}, /* reads, sets nothing */
    };
    /* clang-format on */
    int r = 0;

    for (size_t i = 0; r == 0 && i < n_elements(rules); i++)
        r = add(filter, SCMP_ACT_ALLOW, &rules[i]);
    for (size_t i = 0; r == 0 && i < n_elements(ioctls); i++)
        r = add(filter, SCMP_ACT_ALLOW,
                &(struct rule){"ioctl", 1, {SCMP_A1(SCMP_CMP_EQ, ioctls[i])}});
    for (size_t i = 0; r == 0 && i < n_elements(fcntls); i++)
        r = add(filter, SCMP_ACT_ALLOW,
                &(struct rule){"fcntl", 1, {SCMP_A1(SCMP_CMP_EQ, fcntls[i])}});
    return r;
}

static int add_boards(filter_ptr filter)
{
    int r = 0;

    for (size_t i = 0; gpu_backends[i]; i++) {
        const char *type = gpu_backends[i]->ioctl_types;
        for (; r == 0 && type && *type && gpu_backends[i]->may_cap; type++)
            r = add(filter, SCMP_ACT_ALLOW,
                    &(struct rule){"ioctl",
                                   1,
                                   {SCMP_A1(SCMP_CMP_MASKED_EQ, 0xff00,
                                            (uint64_t)(unsigned char)*type << 8)}});
    }
    return r;
}

int sandbox_filter(const struct sandbox_world *world, uw_error *err)
{
    if (SANITIZED)
        return 0;
    auto_(filter_free) filter_ptr filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter)
        return fail(err, -ENOSYS, "seccomp: no filter can be made");
    int r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1); /* audit log of the kernel */
    if (r == 0)
        r = add_plain(filter);
    if (r == 0)
        r = add_partial(filter);
    if (r == 0)
        r = add_boards(filter);
    if (r == 0 && world->simulated)
        r = add_sockets(filter);
    if (r == 0)
        r = add(filter, SCMP_ACT_ERRNO(ENOSYS), &(struct rule){.call = "clone3"});
    if (r == 0)
        r = seccomp_load(filter);
    return r < 0 ? fail(err, r, "seccomp: %s", strerror(-r)) : 0;
}
