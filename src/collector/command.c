#include "collector/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "base/utf8.h"

enum { SAID_MAX = 160, CHUNK = 65536 };

/* The environment variables that Slurm's commands receive.  The others filter their
 * output or choose its form: SQUEUE_STATES, SQUEUE_FORMAT, SINFO_PARTITION,
 * SLURM_CLUSTERS, …
 */
static const char *const kept[] = {"PATH",
                                   "HOME",
                                   "TZ",
                                   "TMPDIR",
                                   "LD_LIBRARY_PATH",
                                   "SLURM_CONF",
                                   "SLURM_CONF_SERVER",
                                   "SLURM_JWT",
                                   "SLURM_SACK_KEY",
                                   "SLURM_SACK_JWKS",
                                   "SLURM_SACK_SOCKET"};
/* Times in seconds since 1970, lists of tasks in full. */
static const char *const set[] = {"SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0",
                                  "LC_ALL=C.UTF-8"};
enum { ENV = n_elements(kept) + n_elements(set) + 2 };

struct command {
    struct loop *loop;
    const char *name;
    struct loop_child *child;
    struct loop_fd *out_source;
    struct loop_timer *timer;
    int out_fd, said_fd;
    char *text;
    size_t len, cap, max;
    uint64_t deadline_ns;
    command_fn fn;
    void *user;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(fd_take(fd));
}

void command_free(struct command *c)
{
    if (!c)
        return;
    if (c->child)
        (void)loop_child_kill(c->child, SIGKILL);
    loop_child_free(c->child);
    loop_fd_free(c->out_source);
    loop_timer_free(c->timer);
    close_fd(&c->out_fd);
    close_fd(&c->said_fd);
    free(c->text);
    free(c);
}

/* Passes the result on; c may not be used after it. */
static void finish(struct command *c, int r, const uw_error *why)
{
    char *text = r == 0 ? take(c->text) : NULL;

    loop_fd_free(take(c->out_source));
    loop_timer_free(take(c->timer));
    if (r < 0 && c->child)
        (void)loop_child_kill(c->child, SIGKILL);
    loop_child_free(take(c->child));
    c->fn(r, text, text ? c->len : 0, why, c->user);
}

/* Reads the available output: 1: more may follow, 0: its end, -EFBIG, -ENOMEM. */
static int drain(struct command *c)
{
    for (;;) {
        int r = array_reserve((void **)&c->text, &c->cap, c->len + CHUNK + 1, 1,
                              c->max + CHUNK + 1);
        if (r < 0)
            return r == -E2BIG ? -EFBIG : r;
        c->text[c->len] = '\0';
        ssize_t n = read(c->out_fd, c->text + c->len, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 1 : 0;
        c->len += (size_t)n;
        c->text[c->len] = '\0';
        if (c->len > c->max)
            return -EFBIG;
        if (n == 0)
            return 0;
    }
}

static int too_much(struct command *c, int r)
{
    uw_error why = {""};

    (void)(r == -EFBIG
               ? fail(&why, r, "%s: it prints more than %zu MiB", c->name, c->max >> 20)
               : fail(&why, r, "%s: out of memory", c->name));
    finish(c, r, &why);
    return 0;
}

static int on_out(struct loop_fd *source, int fd, int events, void *user)
{
    struct command *c = user;
    (void)source;
    (void)fd;
    (void)events;

    int r = drain(c);
    if (r == 0)
        loop_fd_free(take(c->out_source));
    return r < 0 ? too_much(c, r) : 0;
}

/* The first line of its standard error. */
static void said(struct command *c, char ret[static SAID_MAX])
{
    ssize_t n = read(c->said_fd, ret, SAID_MAX - 1);

    ret[n > 0 ? n : 0] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    utf8_mend(ret);
}

static int on_exit_(struct loop_child *child, int status, void *user)
{
    struct command *c = user;
    char line[SAID_MAX];
    uw_error why = {""};

    loop_child_free(child);
    c->child = NULL;
    int r = drain(c);
    if (r < 0)
        return too_much(c, r);
    r = 0;
    said(c, line);
    if (WIFSIGNALED(status))
        r = fail(&why, -EPROTO, "%s: signal %d ended it", c->name, WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        r = fail(&why, -EPROTO, "%s: status %d: %s", c->name, WEXITSTATUS(status),
                 line[0] ? line : "no message");
    finish(c, r, &why);
    return 0;
}

static int on_late(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct command *c = user;
    uw_error why = {""};
    (void)timer;
    (void)now_ns;

    int r = fail(&why, -ETIMEDOUT, "%s: no end within %.3g s", c->name,
                 s_of_ns(c->deadline_ns));
    finish(c, r, &why);
    return 0;
}

/* of->env comes last. */
static void environment(const struct command_opts *of, const char *ret[static ENV])
{
    size_t n = 0;

    for (size_t i = 0; i < n_elements(kept); i++)
        for (char **e = environ; e && *e; e++)
            if (strncmp(*e, kept[i], strlen(kept[i])) == 0 &&
                (*e)[strlen(kept[i])] == '=') {
                ret[n++] = *e;
                break;
            }
    for (size_t i = 0; i < n_elements(set); i++)
        ret[n++] = set[i];
    ret[n++] = of->env;
    ret[n] = NULL;
}

static int start(struct command *c, const struct command_opts *of, const int pipes[4],
                 uw_error *err)
{
    const char *env[ENV];
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const struct loop_child_opts opts = {.argv = of->argv,
                                         .env = env,
                                         .env_alone = true,
                                         .stdin_fd = null,
                                         .stdout_fd = pipes[1],
                                         .stderr_fd = pipes[3],
                                         .own_group = true};
    int r = null < 0 ? fail(err, -errno, "/dev/null: %s", strerror(errno)) : 0;

    environment(of, env);
    if (r == 0)
        r = loop_child_new(c->loop, &opts, on_exit_, c, &c->child, err);
    close_fd(&null);
    if (r == 0)
        r = loop_fd_new(c->loop, c->out_fd, LOOP_READ, on_out, c, &c->out_source, err);
    if (r == 0)
        r = loop_timer_new(c->loop,
                           loop_now_ns(c->loop) +
                               ns_of_s(s_of_ns(c->deadline_ns) * loop_speed(c->loop)),
                           0, on_late, c, &c->timer, err);
    return r;
}

int command_new(struct loop *loop, const struct command_opts *opts, struct command **ret,
                uw_error *err)
{
    auto_(command_free) struct command *c = calloc(1, sizeof *c);
    int pipes[4] = {-1, -1, -1, -1};
    const char *name = opts->argv[0];

    if (!c)
        return fail(err, -ENOMEM, "out of memory");
    *c = (struct command){.loop = loop,
                          .name = name,
                          .out_fd = -1,
                          .said_fd = -1,
                          .max = opts->max,
                          .deadline_ns = opts->deadline_ns,
                          .fn = opts->fn,
                          .user = opts->user};
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return fail(err, -errno, "%s: %s", name, strerror(errno));
    c->out_fd = pipes[0];
    int r = pipe2(pipes + 2, O_CLOEXEC | O_NONBLOCK) < 0
                ? fail(err, -errno, "%s: %s", name, strerror(errno))
                : 0;
    c->said_fd = pipes[2];
    if (r == 0)
        r = start(c, opts, pipes, err);
    close_fd(&pipes[1]);
    close_fd(&pipes[3]);
    if (r == 0)
        *ret = take(c);
    return r;
}
