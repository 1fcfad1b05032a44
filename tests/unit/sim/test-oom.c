/* Each allocation of the simulated node fails once. */
#include "oom.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "sim/report.h"
#include "sim/world.h"
#include "virtual/virtual-loop.h"
#include "virtual/virtual-world.h"

static struct sim_machine machine;

static int world_op(void *user)
{
    auto_(sim_world_free) struct sim_world *w = NULL;
    struct sim_job job;
    uw_error err;
    unsigned id;

    (void)user;
    int r = sim_world_new(&machine, 1, 0, &w, &err);
    if (!r)
        r = sim_job_parse_text("--gpus 0,1 --steps 3", &job, &err);
    if (!r)
        r = sim_world_job_add(w, &job, 77, &id, &err);
    if (!r)
        sim_world_advance(w, 10 * NS_PER_S);
    return r;
}

static uint64_t now_of(void *user)
{
    return loop_now_ns(user);
}

static int on_end(struct loop_child *child, int status, void *user)
{
    (void)child;
    (void)status;
    loop_stop(user, 0);
    return 0;
}

static int play(struct loop *loop, struct virtual_world *w, uw_error *err)
{
    static const char *const argv[] = {"train", "--steps", "2", NULL};
    static const char *const env[] = {"UNDERWATT_PROGRESS=" VIRTUAL_PROGRESS, NULL};
    const struct loop_child_opts child_opts = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    const struct gpu_open_opts opts = {.clock = {now_of, loop}, .backend_user = w};
    struct loop_child *child = NULL;
    void *lib = NULL;

    int r = virtual_backend.open(&opts, &lib, err);
    if (r)
        return r;
    r = loop_child_new(loop, &child_opts, on_end, loop, &child, err);
    if (!r)
        r = virtual_backend.set_limit(virtual_backend.at(lib, 0), 200000, err);
    if (!r)
        r = loop_run(loop, err);
    loop_child_free(child);
    virtual_backend.close(lib);
    return r;
}

static int virtual_op(void *user)
{
    auto_(loop_free) struct loop *loop = NULL;
    struct virtual_world *w = NULL;
    uw_error err;

    (void)user;
    int r = loop_new_virtual(NS_PER_S, 0, &loop, &err);
    if (!r)
        r = virtual_world_new(loop, &machine, 1, &w, &err);
    if (!r)
        r = play(loop, w, &err);
    virtual_world_free(w); /* before its loop */
    return r;
}

static int report_op(void *user)
{
    struct uw_progress_page page = {.version = UW_PROGRESS_VERSION,
                                    .slots = UW_PROGRESS_SLOTS};
    auto_(report_close) struct report *report = NULL;
    uw_error err;

    (void)user;
    memcpy(page.magic, UW_PROGRESS_MAGIC, sizeof page.magic);
    int r = report_open_page(&page, 1, &report, &err);
    if (r == -ENOMEM && page.slot[0].pid != 0)
        return -EIO; /* a slot was taken by nobody */
    return r;
}

int main(void)
{
    uw_error err = {""};

    if (!ok(sim_machine_builtin("v100", 2, &machine, &err) == 0, "a machine %s",
            err.text))
        return done();
    oom_each("a world with a job", world_op, NULL);
    oom_each("a virtual node with a job", virtual_op, NULL);
    oom_each("a slot of the progress page", report_op, NULL);
    return done();
}
