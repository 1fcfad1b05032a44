/* One table of cases, run on the real and on the virtual loop: what happened is
 * written into a line that must be the same on both.
 */
#include "io/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"
#include "io/timers.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

#define MS(n) ((uint64_t)(n)*NS_PER_MS)

struct rig {
    struct loop *loop;
    uint64_t began_ns;
    char log[512];
    struct loop_timer *timer[4];
    struct loop_child *child;
    struct loop_worker *worker;
    int count;
};

__attribute__((format(printf, 2, 3))) static void note(struct rig *rig,
                                                       const char *format, ...)
{
    size_t n = strlen(rig->log);
    va_list args;

    if (n > 0 && n + 1 < sizeof rig->log)
        rig->log[n++] = ' ';
    va_start(args, format);
    (void)vsnprintf(rig->log + n, sizeof rig->log - n, format, args);
    va_end(args);
}

/* ---- timers ---- */

static int on_note(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct rig *rig = user;
    (void)now_ns;

    for (int i = 0; i < 4; i++)
        if (rig->timer[i] == timer)
            note(rig, "%c", 'a' + i);
    return 0;
}

static void add(struct rig *rig, int i, uint64_t in_ns, uint64_t period_ns,
                loop_timer_fn fn)
{
    int r = loop_timer_new(rig->loop, rig->began_ns + in_ns, period_ns, fn, rig,
                           &rig->timer[i], NULL);
    if (r < 0)
        note(rig, "timer %d", r);
}

static void timers_order(struct rig *rig)
{
    add(rig, 0, MS(9), 0, on_note);
    add(rig, 1, MS(3), 0, on_note);
    add(rig, 2, MS(9), 0, on_note); /* as due as a, armed after it */
    add(rig, 3, 0, 0, on_note);
    (void)loop_run(rig->loop, NULL);
}

static void timers_past(struct rig *rig)
{
    struct loop_timer *never;

    (void)loop_timer_new(rig->loop, 0, 0, on_note, rig, &rig->timer[0], NULL);
    (void)loop_timer_new(rig->loop, rig->began_ns + MS(1000000), 0, on_note, rig, &never,
                         NULL);
    loop_timer_free(never);
    (void)loop_run(rig->loop, NULL);
}

static int on_period(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct rig *rig = user;
    unsigned n = (unsigned)rig->count + 1;

    note(rig, "%s", now_ns >= rig->began_ns + MS(2) * n ? "on" : "early");
    if (++rig->count == 4)
        loop_timer_free(timer);
    return 0;
}

static void timers_period(struct rig *rig)
{
    add(rig, 0, MS(2), MS(2), on_period);
    (void)loop_run(rig->loop, NULL);
}

/* Armed 10.5 periods in the past: fires once, then at the eleventh. */
static int on_missed(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct rig *rig = user;
    uint64_t first = rig->began_ns - MS(105), grid = first + MS(110);

    if (++rig->count == 1) {
        note(rig, "late");
        return 0;
    }
    bool good = loop_is_virtual(rig->loop) ? now_ns == grid : now_ns >= grid;
    note(rig, "%s", good ? "grid" : "off");
    loop_timer_free(timer);
    return 0;
}

static void timers_missed(struct rig *rig)
{
    (void)loop_timer_new(rig->loop, rig->began_ns - MS(105), MS(10), on_missed, rig,
                         &rig->timer[0], NULL);
    (void)loop_run(rig->loop, NULL);
}

static int on_free_all(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct rig *rig = user;
    (void)timer, (void)now_ns;

    note(rig, "free");
    for (int i = 0; i < 4; i++)
        loop_timer_free(rig->timer[i]);
    return 0;
}

static void timers_free(struct rig *rig)
{
    add(rig, 0, MS(2), MS(1), on_free_all);
    add(rig, 1, MS(2), 0, on_note);
    add(rig, 2, MS(3), 0, on_note);
    add(rig, 3, MS(3), MS(1), on_note);
    (void)loop_run(rig->loop, NULL);
}

static int on_again(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct rig *rig = user;

    note(rig, "again");
    if (++rig->count < 3)
        loop_timer_set(timer, now_ns, 0); /* at once, but others come first */
    return 0;
}

static void timers_set(struct rig *rig)
{
    add(rig, 0, 0, 0, on_again);
    add(rig, 1, 0, 0, on_note);
    add(rig, 2, MS(2), 0, on_note);
    loop_timer_set(rig->timer[2], rig->began_ns, 0); /* moved forward, armed last */
    (void)loop_run(rig->loop, NULL);
}

static int on_fail(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer, (void)now_ns, (void)user;
    return -EPROTO;
}

static int on_stop(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct rig *rig = user;
    (void)timer, (void)now_ns;

    loop_stop(rig->loop, 7);
    loop_stop(rig->loop, 8); /* the first one counts */
    return 0;
}

static void run_results(struct rig *rig)
{
    uw_error err = {""};

    add(rig, 0, MS(1), 0, on_fail);
    add(rig, 1, MS(2), 0, on_stop);
    add(rig, 2, MS(3), 0, on_note);
    note(rig, "%s", loop_run(rig->loop, &err) == -EPROTO ? "fails" : "?");
    note(rig, "%s", err.text[0] ? "says" : "mute");
    note(rig, "%d", loop_run(rig->loop, NULL));
    note(rig, "%d", loop_run(rig->loop, NULL));
    loop_stop(rig->loop, 5); /* before it runs */
    note(rig, "%d", loop_run(rig->loop, NULL));
    note(rig, "%d", loop_run(rig->loop, NULL));
}

static int on_nested(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct rig *rig = user;
    (void)timer, (void)now_ns;

    note(rig, "%s", loop_run(rig->loop, NULL) == -EBUSY ? "busy" : "?");
    return 0;
}

static void run_nested(struct rig *rig)
{
    add(rig, 0, 0, 0, on_nested);
    (void)loop_run(rig->loop, NULL);
}

static int on_count(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct rig *rig = user;
    (void)timer;

    rig->count += now_ns >= (uint64_t)rig->count; /* due times rise */
    return 0;
}

static void timers_many(struct rig *rig)
{
    struct loop_timer *t;

    for (uint64_t i = 0; i < 2000; i++)
        (void)loop_timer_new(rig->loop, rig->began_ns + (i * 7919) % 2000, 0, on_count,
                             rig, &t, NULL);
    (void)loop_run(rig->loop, NULL);
    note(rig, "%d", rig->count);
}

/* ---- signals ---- */

static int on_signal(struct loop_signal *source, int signo, void *user)
{
    struct rig *rig = user;

    note(rig, "%s", signo == SIGUSR1 ? "usr1" : "usr2");
    loop_signal_free(source);
    loop_timer_set(rig->timer[1], loop_now_ns(rig->loop), 0);
    return 0;
}

static int on_raise(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct rig *rig = user;
    (void)timer, (void)now_ns;

    if (!loop_is_virtual(rig->loop))
        (void)kill(getpid(), SIGUSR1);
    else
        loop_virtual_raise(rig->loop, SIGUSR1);
    return 0;
}

static void signals(struct rig *rig)
{
    struct loop_signal *one, *two;

    (void)loop_signal_new(rig->loop, SIGUSR1, on_signal, rig, &one, NULL);
    (void)loop_signal_new(rig->loop, SIGUSR2, on_signal, rig, &two, NULL);
    note(rig, "%d", loop_run(rig->loop, NULL)); /* signals alone: nothing to wait for */
    add(rig, 0, MS(1), 0, on_raise);
    add(rig, 1, MS(1000000), 0, on_note); /* keeps the loop until the signal comes */
    (void)loop_run(rig->loop, NULL);
}

/* ---- children ---- */

static int on_child(struct loop_child *child, int status, void *user)
{
    struct rig *rig = user;

    if (WIFSIGNALED(status))
        note(rig, "signal %d", WTERMSIG(status));
    else
        note(rig, "exit %d", WEXITSTATUS(status));
    note(rig, "%s", loop_child_kill(child, SIGTERM) == -ESRCH ? "gone" : "there");
    loop_child_free(child);
    return 0;
}

static int start(struct rig *rig, const struct loop_child_opts *opts)
{
    uw_error err = {""};
    int r = loop_child_new(rig->loop, opts, on_child, rig, &rig->child, &err);

    if (r < 0)
        note(rig, "%s%s",
             r == -ENOENT   ? "ENOENT"
             : r == -EISDIR ? "EISDIR"
                            : "?",
             strstr(err.text, opts->argv[0]) ? "" : " unnamed");
    return r;
}

static void run_sh(struct rig *rig, const char *script, bool own_group)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    const char *env[] = {"UW_TEST=5", "HOME=/", NULL};
    struct loop_child_opts opts = {.argv = argv,
                                   .env = env,
                                   .stdin_fd = -1,
                                   .stdout_fd = -1,
                                   .stderr_fd = -1,
                                   .own_group = own_group};
    (void)start(rig, &opts);
}

static void child_exit(struct rig *rig)
{
    run_sh(rig, "exit 3", false);
    (void)loop_run(rig->loop, NULL);
}

static void child_env(struct rig *rig)
{
    run_sh(rig, "exit $UW_TEST", false);
    (void)loop_run(rig->loop, NULL);
}

static void child_signal(struct rig *rig)
{
    run_sh(rig, "kill -9 $$", false);
    (void)loop_run(rig->loop, NULL);
}

static int on_kill(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct rig *rig = user;
    (void)timer, (void)now_ns;

    note(rig, "%d", loop_child_kill(rig->child, SIGTERM));
    return 0;
}

static void child_kill(struct rig *rig)
{
    run_sh(rig, "exec sleep 100", false);
    add(rig, 0, MS(5), 0, on_kill);
    (void)loop_run(rig->loop, NULL);
}

/* The grandchild that holds the pipe dies with the group. */
static void child_kill_group(struct rig *rig)
{
    run_sh(rig, "sleep 100 & wait", true);
    add(rig, 0, MS(20), 0, on_kill);
    (void)loop_run(rig->loop, NULL);
}

static void child_missing(struct rig *rig)
{
    const char *none[] = {"no-such-program-here", NULL};
    const char *folder[] = {"/", NULL};
    struct loop_child_opts opts = {
        .argv = none, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};

    (void)start(rig, &opts);
    opts.argv = folder;
    (void)start(rig, &opts);
    note(rig, "%d", loop_run(rig->loop, NULL));
}

static void child_forgotten(struct rig *rig)
{
    run_sh(rig, "exit 3", false);
    loop_child_free(rig->child);
    add(rig, 0, MS(20), 0, on_note);
    (void)loop_run(rig->loop, NULL);
}

/* The programs of the virtual world: what `sh -c` above would do. */
static int program_start(const struct loop_child_opts *opts, pid_t pid, void *user,
                         uw_error *err)
{
    struct rig *rig = user;
    const char *script = opts->argv[0];

    if (strcmp(script, "sh") != 0) {
        int r = strcmp(script, "/") == 0 ? -EISDIR : -ENOENT;
        if (err)
            (void)snprintf(err->text, sizeof err->text, "%s: not here", script);
        return r;
    }
    script = opts->argv[2];
    if (strcmp(script, "exit 3") == 0)
        loop_virtual_exit(rig->loop, pid, 3 << 8);
    else if (strcmp(script, "exit $UW_TEST") == 0)
        loop_virtual_exit(rig->loop, pid, (opts->env[0][8] - '0') << 8);
    else if (strcmp(script, "kill -9 $$") == 0)
        loop_virtual_exit(rig->loop, pid, SIGKILL);
    return 0;
}

static int program_kill(pid_t pid, int signo, void *user)
{
    struct rig *rig = user;

    loop_virtual_exit(rig->loop, pid, signo);
    return 0;
}

/* ---- the table ---- */

static const struct {
    const char *name;
    void (*run)(struct rig *rig);
    const char *want;
} cases[] = {
    {"timers fire in order of time, then of arming", timers_order, "d b a c"},
    {"a time in the past is now; a freed timer is none", timers_past, "a"},
    {"periods", timers_period, "on on on on"},
    {"missed periods are skipped, the grid stays", timers_missed, "late grid"},
    {"timers freed in a callback, its own too", timers_free, "free"},
    {"timers set in a callback and moved", timers_set, "again b c again again"},
    {"results of loop_run", run_results, "fails says 7 c 0 5 0"},
    {"loop_run inside a callback is refused", run_nested, "busy"},
    {"2000 timers", timers_many, "2000"},
    {"signals", signals, "0 usr1 b"},
    {"a child's exit status", child_exit, "exit 3 gone"},
    {"a child's environment", child_env, "exit 5 gone"},
    {"a child's death by a signal", child_signal, "signal 9 gone"},
    {"a signal to a child", child_kill, "0 signal 15 gone"},
    {"a signal to a child's group", child_kill_group, "0 signal 15 gone"},
    {"a program that is not there, one that is none", child_missing, "ENOENT EISDIR 0"},
    {"a forgotten child", child_forgotten, "a"},
};

static void run_case(size_t i, bool is_virtual)
{
    struct rig rig = {0};
    struct loop_virtual_programs programs = {program_start, program_kill, &rig};
    struct loop_clock clock = {0, 1};
    int r = is_virtual ? loop_new_virtual(MS(1000), 0, &rig.loop, NULL)
                       : loop_new_real(clock, &rig.loop, NULL);
    char name[128];

    (void)snprintf(name, sizeof name, "%s: %s", is_virtual ? "virtual" : "real",
                   cases[i].name);
    if (!ok(r == 0, "%s: a loop", name))
        return;
    if (is_virtual)
        loop_virtual_programs(rig.loop, &programs);
    rig.began_ns = loop_now_ns(rig.loop);
    cases[i].run(&rig);
    is_str(rig.log, cases[i].want, name);
    loop_free(rig.loop);
}

/* ---- what differs ---- */

static void clocks(void)
{
    /* clang-format off */
    static const struct { const char *text; int r; struct loop_clock want; } table[] = {
        {NULL, 0, {0, 1}}, {"", 0, {0, 1}}, {"5:2.5", 0, {5, 2.5}}, {"0:1", 0, {0, 1}},
        {"5", -EINVAL, {7, 7}}, {":2", -EINVAL, {7, 7}}, {"5:", -EINVAL, {7, 7}},
        {"5:0", -ERANGE, {7, 7}}, {"5:-1", -ERANGE, {7, 7}}, {"5:1e9", -ERANGE, {7, 7}},
        {"-5:1", -EINVAL, {7, 7}}, {"5:x", -EINVAL, {7, 7}}, {"5:nan", -EINVAL, {7, 7}},
        {"99999999999999999999:1", -ERANGE, {7, 7}},
        {"000000000000000000000000000000000000000000001:1", -EINVAL, {7, 7}},
    };
    /* clang-format on */
    for (size_t i = 0; i < n_elements(table); i++) {
        struct loop_clock got = {7, 7};
        uw_error err = {""};
        int r = loop_clock_parse(table[i].text, &got, &err);
        ok(r == table[i].r && got.t0_ns == table[i].want.t0_ns &&
               got.speed == table[i].want.speed && (r == 0 || err.text[0]),
           "clock '%s': %d", table[i].text ? table[i].text : "NULL", r);
    }
}

static int on_take_time(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    *(uint64_t *)user = now_ns;
    return 0;
}

static void sped_up(void)
{
    auto_(loop_free) struct loop *plain = NULL;
    auto_(loop_free) struct loop *fast = NULL;
    struct loop_timer *timer;
    uint64_t fired = 0;

    (void)loop_new_real((struct loop_clock){0, 1}, &plain, NULL);
    uint64_t t0 = loop_now_ns(plain);
    (void)loop_new_real((struct loop_clock){t0, 10000}, &fast, NULL);
    uint64_t began = loop_now_ns(fast);
    int64_t utc = loop_utc_ns(fast);
    ok(began >= t0 && loop_speed(fast) == 10000 && !loop_is_virtual(fast),
       "a fast clock");
    (void)loop_timer_new(fast, t0 + MS(200000), 0, on_take_time, &fired, &timer, NULL);
    ok(loop_run(fast, NULL) == 0, "runs");
    uint64_t took = loop_now_ns(plain) - t0, ran = loop_now_ns(fast) - t0;
    ok(fired >= t0 + MS(200000), "not early: %ju ns after", (uintmax_t)(fired - t0));
    ok(took >= MS(20) && took < MS(200000), "200 s at speed 10000 took %ju ns",
       (uintmax_t)took);
    ok(ran >= took * 9000, "the clock ran %ju ns", (uintmax_t)ran);
    ok(loop_utc_ns(fast) - utc >= (int64_t)(MS(200000) - (began - t0)),
       "UTC runs as fast");
}

/* Late by less than a tick of 10 ms in the middle of 20 wake-ups: the timers are
 * finer than milliseconds when half of them come within one.
 */
static void fine(void)
{
    auto_(loop_free) struct loop *loop = NULL;
    int n = 0;

    (void)loop_new_real((struct loop_clock){0, 1}, &loop, NULL);
    for (int i = 0; i < 20; i++) {
        struct loop_timer *timer;
        uint64_t at = loop_now_ns(loop) + 300 * NS_PER_US, fired = 0;
        (void)loop_timer_new(loop, at, 0, on_take_time, &fired, &timer, NULL);
        (void)loop_run(loop, NULL);
        n += fired >= at;
        loop_timer_free(timer);
    }
    is_int(n, 20, "timers of 0.3 ms are never early");
}

static void virtual_clock(void)
{
    auto_(loop_free) struct loop *loop = NULL;
    struct loop_timer *timer;
    struct loop_fd *source;
    uint64_t fired = 0;
    const uint64_t year = 365ull * 86400 * NS_PER_S;

    (void)loop_new_virtual(5, 1700000000, &loop, NULL);
    ok(loop_now_ns(loop) == 5 && loop_is_virtual(loop) && loop_speed(loop) == 1,
       "virtual");
    ok(loop_utc_ns(loop) == 1700000000ll * (int64_t)NS_PER_S, "its UTC");
    (void)loop_timer_new(loop, 5 + year, 0, on_take_time, &fired, &timer, NULL);
    ok(loop_run(loop, NULL) == 0 && fired == 5 + year && loop_now_ns(loop) == 5 + year,
       "a year passes");
    ok(loop_utc_ns(loop) == (1700000000ll + 365 * 86400) * (int64_t)NS_PER_S, "UTC too");
    uw_error err = {""};
    ok(loop_fd_new(loop, 0, LOOP_READ, NULL, NULL, &source, &err) == -ENOTSUP &&
           err.text[0],
       "no descriptors in virtual time");
}

static int on_readable(struct loop_fd *source, int fd, int events, void *user)
{
    struct rig *rig = user;
    char c = '?';

    ssize_t n = read(fd, &c, 1);
    note(rig, "%s%zd%c", events & LOOP_READ ? "r" : "", n, c);
    if (++rig->count == 2) /* "x", then the end */
        loop_fd_free(source);
    return 0;
}

static int on_writable(struct loop_fd *source, int fd, int events, void *user)
{
    struct rig *rig = user;

    note(rig, "%s%zd", events & LOOP_WRITE ? "w" : "", write(fd, "x", 1));
    loop_fd_free(source);
    (void)close(fd);
    return 0;
}

static void descriptors(void)
{
    struct rig rig = {0};
    struct loop_fd *reads, *writes;
    int fd[2];

    if (!ok(pipe(fd) == 0 &&
                loop_new_real((struct loop_clock){0, 1}, &rig.loop, NULL) == 0,
            "a pipe and a loop"))
        return;
    (void)loop_fd_new(rig.loop, fd[0], LOOP_READ, on_readable, &rig, &reads, NULL);
    (void)loop_fd_new(rig.loop, fd[1], LOOP_WRITE, on_writable, &rig, &writes, NULL);
    ok(loop_run(rig.loop, NULL) == 0, "ends when no descriptor is left");
    is_str(rig.log, "w1 r1x r0?", "a pipe is written, read, closed");
    uw_error err = {""};
    ok(loop_fd_new(rig.loop, 9999, LOOP_READ, on_readable, &rig, &reads, &err) < 0 &&
           strstr(err.text, "9999"),
       "a descriptor that is none: %s", err.text);
    (void)close(fd[0]);
    loop_free(rig.loop);
}

/* stdout into one pipe, another handed down under its number, in its own group. */
static void child_descriptors(void)
{
    struct rig rig = {0};
    char script[128], got[64] = "", own[16] = "";
    int out[2], pass[2];

    if (!ok(pipe(out) == 0 && pipe2(pass, O_CLOEXEC) == 0 &&
                loop_new_real((struct loop_clock){0, 1}, &rig.loop, NULL) == 0,
            "pipes and a loop"))
        return;
    (void)snprintf(script, sizeof script,
                   "echo out; echo passed >&%d; test $(cut -d' ' -f5 /proc/$$/stat) = $$",
                   pass[1]);
    const char *argv[] = {"sh", "-c", script, NULL};
    struct loop_child_opts opts = {.argv = argv,
                                   .pass_fds = &pass[1],
                                   .n_pass_fds = 1,
                                   .stdin_fd = -1,
                                   .stdout_fd = out[1],
                                   .stderr_fd = -1,
                                   .own_group = true};
    (void)start(&rig, &opts);
    (void)loop_run(rig.loop, NULL);
    is_str(rig.log, "exit 0 gone", "a child in a group of its own");
    ok(read(out[0], got, sizeof got - 1) == 4 && strcmp(got, "out\n") == 0, "its stdout");
    ok(read(pass[0], own, sizeof own - 1) == 7, "its passed descriptor");
    for (int i = 0; i < 2; i++) {
        (void)close(out[i]);
        (void)close(pass[i]);
    }
    loop_free(rig.loop);
}

/* A library's descriptor, without close-on-exec: the program does not get it.  What our
 * caller gave us goes on where that is asked for.
 */
static void child_leaks(void)
{
    struct rig rig = {0};
    char script[128];
    int ours, theirs = open("/dev/null", O_RDONLY);

    for (int fd = 3; fd < 64; fd++) /* the harness's own */
        if (fd != theirs)
            (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    loop_child_keep_inherited();
    ours = open("/dev/null", O_RDONLY);
    if (!ok(theirs > 2 && ours > 2 &&
                loop_new_real((struct loop_clock){0, 1}, &rig.loop, NULL) == 0,
            "descriptors and a loop"))
        return;
    (void)snprintf(script, sizeof script,
                   "test -e /dev/fd/%d && exit 1; test -e /dev/fd/%d", ours, theirs);
    const char *argv[] = {"sh", "-c", script, NULL};
    struct loop_child_opts opts = {
        .argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .inherit = true};
    (void)start(&rig, &opts);
    (void)loop_run(rig.loop, NULL);
    is_str(rig.log, "exit 0 gone", "the caller's goes on, ours does not");
    rig.log[0] = '\0';
    (void)snprintf(script, sizeof script, "! test -e /dev/fd/%d", theirs);
    opts.inherit = false;
    (void)start(&rig, &opts);
    (void)loop_run(rig.loop, NULL);
    is_str(rig.log, "exit 0 gone", "and the caller's only where it is asked for");
    (void)close(ours);
    (void)close(theirs);
    loop_free(rig.loop);
}

/* What a caller like nohup ignores stays ignored; SIGPIPE does not. */
static void child_signals(void)
{
    struct rig rig = {0};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, hup, pipes;

    (void)sigaction(SIGHUP, &ignore, &hup);
    (void)sigaction(SIGPIPE, &ignore, &pipes);
    if (!ok(loop_new_real((struct loop_clock){0, 1}, &rig.loop, NULL) == 0, "a loop"))
        return;
    run_sh(&rig, "kill -HUP $$; kill -PIPE $$; exit 1", false);
    (void)loop_run(rig.loop, NULL);
    is_str(rig.log, "signal 13 gone", "SIGHUP stays ignored, SIGPIPE is not");
    loop_free(rig.loop);
    (void)sigaction(SIGHUP, &hup, NULL);
    (void)sigaction(SIGPIPE, &pipes, NULL);
}

/* The heap's answer is the least due time plus slack of all timers, whatever their order.
 */
static void joined(void)
{
    enum { N = 200 };
    struct rig rig = {0};
    struct loop_timer *timer[N] = {NULL};
    uint64_t x = 7, wrong = 0;

    if (!ok(loop_new_virtual(MS(1), 0, &rig.loop, NULL) == 0, "a virtual loop"))
        return;
    ok(timer_heap_wake_ns(loop_heap(rig.loop)) == LOOP_NEVER, "no timer: never");
    for (size_t i = 0; i < N; i++) {
        uint64_t least = LOOP_NEVER;
        x = x * 6364136223846793005u + 1442695040888963407u;
        (void)loop_timer_new(rig.loop, MS(x >> 40 & 1023), 0, on_note, &rig, &timer[i],
                             NULL);
        loop_timer_slack(timer[i], x >> 60 ? MS(x >> 52 & 511) : LOOP_NEVER);
        for (size_t k = 0; k <= i; k++) {
            uint64_t slack = timer[k]->slack_ns, due = timer[k]->due_ns;
            if (slack != LOOP_NEVER && due + slack < least)
                least = due + slack;
        }
        wrong += timer_heap_wake_ns(loop_heap(rig.loop)) != least;
    }
    ok(wrong == 0, "the loop wakes up at the least due time plus slack");
    loop_free(rig.loop);
}

static int on_last(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct rig *rig = user;

    (void)on_note(timer, now_ns, user);
    loop_stop(rig->loop, 0);
    return 0;
}

/* With slack: fired with the wake-up of another timer, and alone once the slack is over.
 */
static void slack(void)
{
    struct rig rig = {0};

    if (!ok(loop_new_real((struct loop_clock){0, 1}, &rig.loop, NULL) == 0, "a loop"))
        return;
    rig.began_ns = loop_now_ns(rig.loop);
    add(&rig, 0, MS(1), 0, on_last);
    add(&rig, 1, MS(40), 0, on_note);
    loop_timer_slack(rig.timer[0], MS(1000000));
    (void)loop_run(rig.loop, NULL);
    ok(loop_now_ns(rig.loop) >= rig.began_ns + MS(40), "it joins the other one");
    loop_free(rig.loop);
}

int main(void)
{
    for (size_t i = 0; i < n_elements(cases); i++) {
        run_case(i, true);
        run_case(i, false);
    }
    clocks();
    sped_up();
    fine();
    virtual_clock();
    descriptors();
    child_descriptors();
    child_leaks();
    child_signals();
    joined();
    slack();
    return done();
}
