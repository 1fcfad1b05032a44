/* Each allocation of io/ failed once. */
#include "oom.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/auto.h"
#include "io/file.h"
#include "io/json.h"
#include "io/loop.h"
#include "io/progress.h"
#include "io/yaml.h"
#include "virtual/virtual-loop.h"

static char dir[64] = "/tmp/uw-test-oom.XXXXXX";
static char file[128];

static int op_file(void *user)
{
    auto_(mem_free) char *text = NULL;
    static char data[9000];
    uw_error err;
    (void)user;

    memset(data, 'x', sizeof data);
    int r = file_write(file, data, sizeof data, 0600, &err);
    return r < 0 ? r : file_read(file, sizeof data, &text, NULL, &err);
}

static int op_make_dirs(void *user)
{
    (void)user;
    return file_make_dirs(dir, 0700, NULL);
}

static int op_yaml(void *user)
{
    static const char text[] = "a: 1\nb: [1, 2, {c: d}, [], x, y, z, u, v]\nc: \"x\"\n";
    auto_(yaml_free) struct yaml *doc = NULL;
    uw_error err;
    (void)user;

    return yaml_read("f", text, sizeof text - 1, &doc, &err);
}

static int op_yaml_refused(void *user)
{
    static const char text[] = "a: [1, {b: 2}]\nc: 3\na: &x 2\n";
    auto_(yaml_free) struct yaml *doc = NULL;
    (void)user;

    int r = yaml_read("f", text, sizeof text - 1, &doc, NULL);
    return r == -EINVAL ? 0 : r;
}

static int op_json_out(void *user)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    auto_(mem_free) char *text = NULL;
    uw_error err;
    (void)user;

    json_out_object(o, NULL);
    json_out_array(o, "points");
    for (int i = 0; i < 100; i++)
        json_out_double(o, NULL, i);
    json_out_end(o);
    json_out_end(o);
    int r = json_out_string(o, &text, &err);
    return r < 0 ? r : json_out_write(o, file, &err);
}

static int op_json_line(void *user)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    FILE *null = user;

    json_out_text(o, NULL, "x");
    return json_out_line(o, null, NULL);
}

static int op_json(void *user)
{
    static const char text[] = "{\"a\": [1, 2.5, {\"b\": \"c\"}], \"d\": null}";
    auto_(json_free) struct json *doc = NULL;
    uw_error err;
    (void)user;

    int r = json_read("f", text, sizeof text - 1, &doc, &err);
    if (r == -EINVAL &&
        !doc) /* jansson takes a token it could not store for a wrong one */
        r = -ENOMEM;
    return r;
}

static int op_progress(void *user)
{
    auto_(progress_page_free) struct progress_page *page = NULL;
    uw_error err;
    (void)user;

    return progress_page_new(dir, &page, &err);
}

/* ---- the loop ---- */

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer, (void)now_ns, (void)user;
    return 0;
}

static int on_signal(struct loop_signal *source, int signo, void *user)
{
    (void)source, (void)signo, (void)user;
    return 0;
}

static int on_child(struct loop_child *child, int status, void *user)
{
    (void)status, (void)user;
    loop_child_free(child);
    return 0;
}

static int on_fd(struct loop_fd *source, int fd, int events, void *user)
{
    (void)fd, (void)events, (void)user;
    loop_fd_free(source);
    return 0;
}

static int work(struct loop *loop, void *user)
{
    (void)loop, (void)user;
    return 0;
}

static int on_done(struct loop *loop, void *user, int r)
{
    (void)loop, (void)user;
    return r;
}

static int program_start(const struct loop_child_opts *opts, pid_t pid, void *user,
                         uw_error *err)
{
    (void)opts, (void)err;
    loop_virtual_exit(user, pid, 0);
    return 0;
}

static int fill(struct loop *loop)
{
    static const char *const argv[] = {"true", NULL}, *const env[] = {"A=b", NULL};
    struct loop_child_opts opts = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    struct loop_work w = {.fn = work, .done = on_done};
    struct loop_timer *timer;
    struct loop_signal *source;
    struct loop_worker *worker;
    struct loop_child *child;
    uw_error err;
    int r = 0;

    for (int i = 0; i < 9 && r >= 0; i++)
        r = loop_timer_new(loop, 0, 0, on_timer, NULL, &timer, &err);
    if (r >= 0)
        r = loop_signal_new(loop, SIGUSR1, on_signal, NULL, &source, &err);
    if (r >= 0)
        r = loop_child_new(loop, &opts, on_child, NULL, &child, &err);
    if (r >= 0)
        r = loop_worker_new(loop, "w", &worker, &err);
    if (r >= 0)
        r = loop_worker_submit(worker, &w);
    return r < 0 ? r : loop_run(loop, &err);
}

static int op_virtual(void *user)
{
    auto_(loop_free) struct loop *loop = NULL;
    struct loop_virtual_programs programs = {.start = program_start};
    uw_error err;
    int r = loop_new_virtual(0, 0, &loop, &err);
    (void)user;

    if (r < 0)
        return r;
    programs.user = loop;
    loop_virtual_programs(loop, &programs);
    return fill(loop);
}

static int op_real(void *user)
{
    auto_(loop_free) struct loop *loop = NULL;
    struct loop_fd *source;
    uw_error err;
    int r = loop_new_real((struct loop_clock){0, 1}, &loop, &err);
    int *pipes = user;

    if (r >= 0)
        r = loop_fd_new(loop, pipes[1], LOOP_WRITE, on_fd, NULL, &source, &err);
    return r < 0 ? r : fill(loop);
}

int main(void)
{
    int pipes[2];
    FILE *null = fopen("/dev/null", "w");

    if (!ok(null && mkdtemp(dir) && pipe(pipes) == 0, "a folder and a pipe"))
        return done();
    (void)snprintf(file, sizeof file, "%s/file", dir);
    json_set_alloc_funcs(oom_malloc, oom_free);
    oom_each("file_write, file_read", op_file, NULL);
    oom_each("file_make_dirs", op_make_dirs, NULL);
    oom_each("yaml_read", op_yaml, NULL);
    oom_each("yaml_read that refuses", op_yaml_refused, NULL);
    oom_each("json_out_write", op_json_out, NULL);
    oom_each("json_out_line", op_json_line, null);
    oom_each("json_read", op_json, NULL);
    oom_each("progress_page_new", op_progress, NULL);
    oom_each("a virtual loop", op_virtual, NULL);
    oom_each("a real loop", op_real, pipes);
    (void)unlink(file);
    ok(rmdir(dir) == 0, "no file is left behind");
    (void)fclose(null);
    return done();
}
