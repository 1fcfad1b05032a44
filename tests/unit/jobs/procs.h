/* A node made up for tests: boards with processes and a table of processes, in virtual
 * time.
 */
#ifndef TESTS_NODE_PROCS_H
#define TESTS_NODE_PROCS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "board/boards.h"
#include "io/loop.h"
#include "io/proc.h"
#include "jobs/roster.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

enum { FAKES = 4, FAKE_PIDS = 256 };

struct gpu_dev {
    struct gpu_info info;
    struct gpu_proc proc[GPU_PROCS_MAX];
    size_t n;
    struct gpu_use use[GPU_PROCS_MAX];
    size_t n_use;
    int procs_fails, use_fails;
    unsigned procs_calls, use_calls;
};

struct fake_node {
    struct loop *loop;
    struct boards *boards;
    struct gpu_dev dev[FAKES];
    struct proc_facts pid[FAKE_PIDS];
    size_t n_pids;
    unsigned reads; /* of processes, by fake_read() */
    bool ready;
};

static struct fake_node fake;

static int fake_open(const struct gpu_open_opts *opts, void **ret, uw_error *err)
{
    (void)opts;
    (void)err;
    for (unsigned i = 0; i < FAKES; i++) {
        fake.dev[i].info = (struct gpu_info){.index = i, .name = "Fake"};
        (void)snprintf(fake.dev[i].info.uuid, sizeof fake.dev[i].info.uuid, "GPU-%u", i);
    }
    *ret = &fake;
    return 0;
}

static void fake_close(void *lib)
{
    (void)lib;
}

static size_t fake_count(const void *lib)
{
    (void)lib;
    return FAKES;
}

static struct gpu_dev *fake_at(void *lib, size_t i)
{
    (void)lib;
    return &fake.dev[i];
}

static const struct gpu_info *fake_info(const struct gpu_dev *dev)
{
    return &dev->info;
}

static int fake_sample(struct gpu_dev *dev, uint32_t want, struct gpu_sample *ret,
                       uw_error *err)
{
    (void)dev;
    (void)want;
    (void)err;
    *ret = (struct gpu_sample){.has = GPU_HAS_POWER, .power_w = 50};
    return 0;
}

static int fake_procs(struct gpu_dev *dev, struct gpu_proc *ret, size_t *ret_n,
                      uw_error *err)
{
    dev->procs_calls++;
    if (dev->procs_fails)
        return fail(err, dev->procs_fails, "no list");
    memcpy(ret, dev->proc, dev->n * sizeof *ret);
    *ret_n = dev->n;
    return 0;
}

static int fake_use(struct gpu_dev *dev, struct gpu_use *ret, size_t *ret_n,
                    uw_error *err)
{
    dev->use_calls++;
    if (dev->use_fails)
        return fail(err, dev->use_fails, "no use");
    memcpy(ret, dev->use, dev->n_use * sizeof *ret);
    *ret_n = dev->n_use;
    return 0;
}

static const struct gpu_backend fake_backend = {
    .name = "fake",
    .open = fake_open,
    .close = fake_close,
    .count = fake_count,
    .at = fake_at,
    .info = fake_info,
    .sample = fake_sample,
    .procs = fake_procs,
    .use = fake_use,
};

static int fake_ready(struct boards *set, int r, const uw_error *err, void *user)
{
    (void)set;
    (void)err;
    (void)user;
    fake.ready = r == 0;
    loop_stop(fake.loop, 0);
    return 0;
}

__attribute__((unused)) static int fake_read(pid_t pid, struct proc_facts *ret,
                                             void *user)
{
    (void)user;
    fake.reads++;
    for (size_t i = 0; i < fake.n_pids; i++)
        if (fake.pid[i].pid == pid) {
            *ret = fake.pid[i];
            return 0;
        }
    return -ESRCH;
}

/* A process; on no board yet. */
__attribute__((unused)) static struct proc_facts *fake_process(pid_t pid, pid_t ppid,
                                                               uid_t uid,
                                                               const char *cgroup)
{
    struct proc_facts *f = &fake.pid[fake.n_pids++];

    *f = (struct proc_facts){.pid = pid,
                             .ppid = ppid,
                             .session = pid,
                             .start = 1000 + (uint64_t)pid,
                             .uid = uid,
                             .comm = "python"};
    f->n_cgroup = (size_t)snprintf(f->cgroup, sizeof f->cgroup, "0::%s\n", cgroup);
    return f;
}

__attribute__((unused)) static void fake_exit(pid_t pid)
{
    for (size_t i = 0; i < fake.n_pids; i++)
        if (fake.pid[i].pid == pid) {
            fake.pid[i] = fake.pid[--fake.n_pids];
            break;
        }
    for (size_t b = 0; b < FAKES; b++)
        for (size_t i = fake.dev[b].n; i-- > 0;)
            if (fake.dev[b].proc[i].pid == pid)
                fake.dev[b].proc[i] = fake.dev[b].proc[--fake.dev[b].n];
}

__attribute__((unused)) static void fake_on(size_t board, pid_t pid, bool compute)
{
    struct gpu_dev *d = &fake.dev[board];

    d->proc[d->n++] = (struct gpu_proc){.pid = pid, .compute = compute};
}

static int fake_stop(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    loop_stop(user, 0);
    return 0;
}

/* Time passes. */
__attribute__((unused)) static void fake_wait(double s)
{
    struct loop_timer *timer = NULL;
    uw_error err;

    if (loop_timer_new(fake.loop, loop_now_ns(fake.loop) + (uint64_t)(s * 1e9), 0,
                       fake_stop, fake.loop, &timer, &err) == 0)
        (void)loop_run(fake.loop, &err);
    loop_timer_free(timer);
}

__attribute__((unused)) static bool fake_begin(bool real)
{
    uw_error err = {{0}};
    struct gpu_open_opts opts = {0};

    fake = (struct fake_node){0};
    int r = real ? loop_new_real((struct loop_clock){0, 1}, &fake.loop, &err)
                 : loop_new_virtual(1000000000, 1700000000, &fake.loop, &err);
    if (r == 0)
        r = boards_open(fake.loop, &fake_backend, &opts, fake_ready, NULL, &fake.boards,
                        &err);
    if (r == 0)
        r = loop_run(fake.loop, &err);
    return ok(r == 0 && fake.ready, "a node%s%s", err.text[0] ? ": " : "", err.text);
}

__attribute__((unused)) static void fake_end(void)
{
    boards_free(fake.boards);
    loop_free(fake.loop);
    fake.boards = NULL;
    fake.loop = NULL;
}

/* A roster of the made-up node, whose first job is number 70; real: with the processes of
 * this machine.
 */
__attribute__((unused)) static struct roster *fake_roster(bool real,
                                                          struct roster_opts opts)
{
    struct roster *r = NULL;
    uw_error err = {{0}};

    if (!fake_begin(real))
        return NULL;
    opts.loop = fake.loop;
    opts.boards = fake.boards;
    opts.first_id = 70;
    if (real)
        opts.read = NULL;
    ok(roster_new(&opts, &r, &err) == 0, "a roster");
    return r;
}

/* Counts a roster's events: its on_event. */
static struct {
    unsigned begun, changed, ended;
} fake_heard;

__attribute__((unused)) static void fake_hear(enum roster_event event,
                                              const struct job_entry *job, void *user)
{
    (void)job;
    (void)user;
    fake_heard.begun += event == ROSTER_BEGIN;
    fake_heard.changed += event == ROSTER_CHANGE;
    fake_heard.ended += event == ROSTER_END;
}

__attribute__((unused)) static void fake_roster_end(struct roster *r)
{
    roster_free(r);
    fake_end();
}

#endif
