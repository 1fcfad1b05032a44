#include "io/loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "io/loop-inside.h"

static const double SPEED_MAX = 1e6;

int loop_clock_parse(const char *text, struct loop_clock *ret, uw_error *err)
{
    struct loop_clock clock = {0, 1};
    char t0[32];

    if (!text || !*text) {
        *ret = clock;
        return 0;
    }
    const char *colon = strchr(text, ':');
    if (!colon || (size_t)(colon - text) >= sizeof t0)
        return fail(err, -EINVAL, "'%s' is not a clock: T0_NS:SPEED is required", text);
    memcpy(t0, text, (size_t)(colon - text));
    t0[colon - text] = '\0';

    int r = parse_u64(t0, &clock.t0_ns, err);
    if (r >= 0)
        r = parse_double(colon + 1, &clock.speed, err);
    if (r < 0)
        return fail_in(err, r, "clock '%s'", text);
    if (!(clock.speed > 0 && clock.speed <= SPEED_MAX))
        return fail(err, -ERANGE, "clock '%s': the speed is outside 0..%g (0 excluded)",
                    text, SPEED_MAX);
    *ret = clock;
    return 0;
}

uint64_t loop_now_ns(const struct loop *loop)
{
    return loop->ops->now_ns(loop);
}

int64_t loop_utc_ns(const struct loop *loop)
{
    return loop->ops->utc_ns(loop);
}

double loop_speed(const struct loop *loop)
{
    return loop->clock.speed;
}

bool loop_is_virtual(const struct loop *loop)
{
    return loop->ops->is_virtual;
}

bool loop_waited(uint64_t *until_ns, uint64_t now_ns, uint64_t wait_ns)
{
    if (now_ns < *until_ns)
        return false;
    if (now_ns - *until_ns < wait_ns / 2)
        return true;
    *until_ns = now_ns + wait_ns;
    return false;
}

void loop_took(struct loop *loop, int r)
{
    if (r < 0)
        loop_stop(loop, r);
}

void loop_stop(struct loop *loop, int result)
{
    if (loop->stopping)
        return;
    loop->stopping = true;
    loop->result = result;
}

int loop_run(struct loop *loop, uw_error *err)
{
    if (loop->running)
        return fail(err, -EBUSY, "the loop runs already");
    loop->running = true;
    int r = loop->ops->run(loop, err);
    loop->running = false;
    if (r >= 0 && loop->stopping)
        r = loop->result;
    else if (r < 0)
        return r;
    loop->stopping = false;
    loop->result = 0;
    return r < 0 ? fail(err, r, "%s", strerror(-r)) : r;
}

struct loop *loop_alloc(const struct loop_ops *ops, size_t size)
{
    struct loop *loop = calloc(1, size);

    if (!loop)
        return NULL;
    loop->ops = ops;
    atomic_init(&loop->refs, 1);
    loop->clock.speed = 1;
    loop_link_init(&loop->heap.all);
    loop_link_init(&loop->fds);
    loop_link_init(&loop->signals);
    loop_link_init(&loop->children);
    loop_link_init(&loop->workers);
    lanes_init(&loop->lanes);
    return loop;
}

/* ---- for timers, workers and lanes ---- */

struct timer_heap *loop_heap(struct loop *loop)
{
    return &loop->heap;
}

void loop_rearm(struct loop *loop)
{
    loop->ops->rearm(loop);
}

const struct worker_ops *loop_worker_ops(const struct loop *loop)
{
    return loop->ops->workers;
}

struct loop_link *loop_workers(struct loop *loop)
{
    return &loop->workers;
}

struct lanes *loop_lanes(struct loop *loop)
{
    return &loop->lanes;
}

void loop_ref(struct loop *loop)
{
    atomic_fetch_add(&loop->refs, 1);
}

void loop_unref(struct loop *loop)
{
    if (atomic_fetch_sub(&loop->refs, 1) > 1)
        return;
    lanes_destroy(&loop->lanes);
    free(loop->heap.timer);
    free(loop);
}

/* The struct that contains a ring's next link; link is the first member of each. */
static void *first_of(struct loop_link *head)
{
    return head->next == head ? NULL : (void *)head->next;
}

void loop_free(struct loop *loop)
{
    void *source;

    if (!loop)
        return;
    while ((source = first_of(&loop->workers)))
        loop_worker_free(source);
    while ((source = first_of(&loop->heap.all)))
        loop_timer_free(source);
    while ((source = first_of(&loop->fds)))
        loop_fd_free(source);
    while ((source = first_of(&loop->signals)))
        loop_signal_free(source);
    while ((source = first_of(&loop->children))) {
        struct loop_child *child = source;
        loop_link_remove(&child->link);
        loop->ops->child_close(child);
    }
    loop->ops->close(loop);
    loop_unref(loop);
}

/* ---- descriptors, signals, children: the part that both kinds share ---- */

int loop_fd_new(struct loop *loop, int fd, int events, loop_fd_fn fn, void *user,
                struct loop_fd **ret, uw_error *err)
{
    struct loop_fd *source = calloc(1, sizeof *source);

    if (!source)
        return fail(err, -ENOMEM, "descriptor %d: out of memory", fd);
    source->loop = loop;
    source->fn = fn;
    source->user = user;
    source->fd = fd;
    source->events = events;
    int r = loop->ops->fd_open(source, err);
    if (r < 0)
        return r;
    loop_link_add(&loop->fds, &source->link);
    *ret = source;
    return 0;
}

void loop_fd_free(struct loop_fd *source)
{
    if (!source)
        return;
    loop_link_remove(&source->link);
    source->loop->ops->fd_close(source);
}

int loop_signal_new(struct loop *loop, int signo, loop_signal_fn fn, void *user,
                    struct loop_signal **ret, uw_error *err)
{
    struct loop_signal *source = calloc(1, sizeof *source);

    if (!source)
        return fail(err, -ENOMEM, "signal %d: out of memory", signo);
    source->loop = loop;
    source->fn = fn;
    source->user = user;
    source->signo = signo;
    int r = loop->ops->signal_open(source, err);
    if (r < 0)
        return r;
    loop_link_add(&loop->signals, &source->link);
    *ret = source;
    return 0;
}

void loop_signal_free(struct loop_signal *source)
{
    if (!source)
        return;
    loop_link_remove(&source->link);
    source->loop->ops->signal_close(source);
}

int loop_child_new(struct loop *loop, const struct loop_child_opts *opts,
                   loop_child_fn fn, void *user, struct loop_child **ret, uw_error *err)
{
    if (!opts->argv || !opts->argv[0])
        return fail(err, -EINVAL, "no program is named");

    struct loop_child *child = calloc(1, sizeof *child);
    if (!child)
        return fail(err, -ENOMEM, "%s: out of memory", opts->argv[0]);
    child->loop = loop;
    child->fn = fn;
    child->user = user;
    child->pidfd = -1;
    child->own_group = opts->own_group;
    loop_link_add(&loop->children, &child->link);
    int r = loop->ops->child_open(child, opts, err);
    if (r < 0)
        return r;
    *ret = child;
    return 0;
}

pid_t loop_child_pid(const struct loop_child *child)
{
    return child->pid;
}

int loop_child_kill(struct loop_child *child, int signo)
{
    if (child->ended)
        return -ESRCH;
    return child->loop->ops->child_kill(child, signo);
}

void loop_child_free(struct loop_child *child)
{
    if (!child)
        return;
    child->fn = NULL;
    if (!child->ended) {
        /* Still known to the loop, which reaps it. */
        child->loop->ops->child_forget(child);
        return;
    }
    loop_link_remove(&child->link);
    child->loop->ops->child_close(child);
}
