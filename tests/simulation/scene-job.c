#include "scene-job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/launches.h"

enum { ENV_MAX = 16 };

struct job {
    struct loop *loop;
    struct job_opts opts;
    struct loop_child *child;
    struct job_progress *page; /* NULL: none */
    char page_env[4200];       /* "UNDERWATT_PROGRESS=PATH" */
    bool running;
};

static int job_on_child(struct loop_child *child, int status, void *user)
{
    struct job *j = user;
    (void)child;

    j->running = false;
    int r = j->page ? job_progress_end(j->page) : 0;
    if (r < 0)
        return r;
    return j->opts.on_exit ? j->opts.on_exit(j, status, j->opts.user) : 0;
}

static int start_child(struct job *j, uw_error *err)
{
    const char *env[ENV_MAX + 3] = {NULL};
    size_t n = 0;

    for (; j->opts.env && j->opts.env[n]; n++) {
        if (n == ENV_MAX)
            return fail(err, -E2BIG, "more than %d variables for the job", ENV_MAX);
        env[n] = j->opts.env[n];
    }
    if (j->page) {
        env[n++] = j->page_env;
        env[n++] = j->opts.inject;
    }
    struct loop_child_opts child = {
        .argv = j->opts.argv,
        .env = env,
        .inherit = true,
        .stdin_fd = -1,
        .stdout_fd = -1,
        .stderr_fd = -1,
    };
    return loop_child_new(j->loop, &child, job_on_child, j, &j->child, err);
}

static int make_page(struct job *j, uw_error *err)
{
    struct job_progress_opts opts = {.loop = j->loop, .poll_ns = j->opts.poll_ns};
    struct progress_page *file;
    uw_error why = {""};

    (void)progress_clear(j->opts.runtime_dir);
    int r = progress_page_new(j->opts.runtime_dir, &file, err);
    if (r < 0)
        return r;
    if (j->opts.inject && launches_add(file, &why) < 0) {
        j->opts.inject = NULL; /* the page still works for steps that the job reports */
        if (j->opts.on_uncounted)
            j->opts.on_uncounted(why.text, j->opts.user);
    }
    (void)snprintf(j->page_env, sizeof j->page_env, "UNDERWATT_PROGRESS=%s",
                   progress_page_path(file));
    r = job_progress_new(&opts, file, &j->page, err);
    if (r < 0)
        progress_page_free(file);
    return r;
}

int job_start(struct loop *loop, const struct job_opts *opts, struct job **ret,
              uw_error *err)
{
    auto_(job_free) struct job *j = calloc(1, sizeof *j);

    if (!j)
        return fail(err, -ENOMEM, "out of memory");
    j->loop = loop;
    j->opts = *opts;
    int r = 0;
    if (opts->runtime_dir)
        r = make_page(j, err);
    if (r >= 0)
        r = start_child(j, err);
    if (r < 0)
        return r;
    j->running = true;
    *ret = take(j);
    return 0;
}

void job_free(struct job *j)
{
    if (!j)
        return;
    loop_child_free(j->child);
    job_progress_free(j->page);
    free(j);
}

pid_t job_pid(const struct job *j)
{
    return loop_child_pid(j->child);
}

int job_kill(struct job *j, int signo)
{
    return j->running ? loop_child_kill(j->child, signo) : -ESRCH;
}

const struct steps *job_steps(const struct job *j)
{
    static const struct steps none;
    return j->page ? job_progress_steps(j->page) : &none;
}
