/* The process of CMD, which waits at a gate until the node knows it, and the page of
 * CMD.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "cli/gate.h"
#include "cli/job-inside.h"
#include "io/file.h"
#include "io/launches.h"

void job_close_gate(struct remote *r)
{
    loop_fd_free(take(r->gate_source));
    if (r->gate >= 0)
        (void)close(r->gate);
    r->gate = -1;
}

/* End of file: CMD is executed.  An int: the errno of the failed execution. */
static int on_gate(struct loop_fd *source, int fd, int events, void *user)
{
    struct remote *r = user;
    int why = 0;
    (void)source;
    (void)events;

    ssize_t n = read(fd, &why, sizeof why);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n == (ssize_t)sizeof why)
        r->exec_errno = why;
    job_close_gate(r);
    return r->ended ? job_at_end(r) : 0;
}

static int on_child(struct loop_child *child, int status, void *user)
{
    struct remote *r = user;
    (void)child;

    r->status = status;
    r->ended = true;
    r->end_ns = loop_now_ns(r->loop);
    return r->gate < 0 ? job_at_end(r) : 0;
}

int job_child_start(struct remote *r, uw_error *err)
{
    auto_(mem_free) const char **argv = NULL;
    char page[4200], number[16];
    const char *env[3] = {NULL};
    size_t n = 0, n_env = 0;
    int pair[2];

    while (r->argv[n])
        n++;
    argv = calloc(n + 4, sizeof *argv);
    if (!argv)
        return fail(err, -ENOMEM, "out of memory");
    memcpy(argv + 3, r->argv, n * sizeof *argv);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return fail(err, -errno, "socketpair: %s", strerror(errno));
    auto_(fd_close) int theirs = pair[1];
    r->gate = pair[0];
    (void)snprintf(number, sizeof number, "%d", theirs);
    argv[0] = "/proc/self/exe";
    argv[1] = GATE_WORD;
    argv[2] = number;
    if (r->page)
        (void)snprintf(page, sizeof page, "UNDERWATT_PROGRESS=%s",
                       progress_page_path(r->page));
    if (r->page)
        env[n_env++] = page;
    if (r->page && r->j->inject.env[0])
        env[n_env++] = r->j->inject.env;
    struct loop_child_opts child = {
        .argv = argv,
        .env = env,
        .pass_fds = &theirs,
        .n_pass_fds = 1,
        .inherit = true,
        .stdin_fd = -1,
        .stdout_fd = -1,
        .stderr_fd = -1,
    };
    return loop_child_new(r->loop, &child, on_child, r, &r->child, err);
}

static bool in_memory(const char *dir)
{
    struct statfs fs;
    return statfs(dir, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

void job_page_make(struct remote *r)
{
    char dir[4096];
    uw_error err = {""}, why = {""};

    int got = file_runtime_path(r->j->env->runtime_dir, "underwatt", getuid(), dir,
                                sizeof dir, &err);
    if (got < 0 || file_private_dir(dir, getuid(), &err) < 0 || !in_memory(dir)) {
        (void)snprintf(dir, sizeof dir, "/dev/shm/underwatt-%u", (unsigned)getuid());
        got = file_own_dir(dir, sizeof dir, getuid(), &err);
        if (got == 1)
            r->own_dir = strdup(dir);
    }
    if (got >= 0) {
        (void)progress_clear(dir);
        got = progress_page_new(dir, &r->page, &err);
    }
    if (got >= 0 && r->j->inject.env[0] && launches_add(r->page, &why) < 0) {
        job_say(r, why.text);
        r->j->inject.env[0] = '\0'; /* steps that CMD reports still count */
    }
    if (got >= 0)
        r->page_fd = open(progress_page_path(r->page), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (r->page_fd >= 0) /* the daemon shares the lock: the page stays while it reads */
        (void)flock(r->page_fd, LOCK_SH | LOCK_NB);
    if (got < 0 || r->page_fd < 0) {
        job_say(r, err.text[0] ? err.text : "no progress page");
        progress_page_free(take(r->page));
    }
}

void job_page_free(struct remote *r)
{
    if (r->page_fd >= 0)
        (void)close(r->page_fd);
    job_progress_free(r->steps);
    progress_page_free(r->page);
    if (r->own_dir)
        (void)rmdir(r->own_dir);
    free(r->own_dir);
}

int job_child_go(struct remote *r, uw_error *err)
{
    r->begin_ns = loop_now_ns(r->loop);
    r->begin_utc_ns = loop_utc_ns(r->loop);
    int got = loop_fd_new(r->loop, r->gate, LOOP_READ, on_gate, r, &r->gate_source, err);
    if (got >= 0 && send(r->gate, "g", 1, MSG_NOSIGNAL) != 1 && !r->ended)
        got = fail(err, -errno, "the process of CMD has ended");
    return got;
}
