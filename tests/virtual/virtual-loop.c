/* The virtual loop: time jumps to the next timer.  What happens elsewhere (a
 * signal, the end of a program, a worker's return) is a timer here.
 */
#include "virtual/virtual-loop.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/units.h"
#include "io/loop-inside.h"

/* Above any pid of the kernel: a real kill(2) by mistake hits no process. */
enum { FIRST_PID = 5000000 };

struct virtual_loop {
    struct loop loop;
    _Atomic uint64_t now_ns;
    uint64_t start_ns;
    int64_t start_utc_ns;
    bool spending; /* inside a loop_work_fn */
    uint64_t spent_ns;
    struct loop_virtual_programs programs;
    pid_t last_pid;
};

static struct virtual_loop *virtual_of(struct loop *loop)
{
    assert(loop_is_virtual(loop));
    return (struct virtual_loop *)(void *)loop;
}

/* ---- clock ---- */

static uint64_t virtual_now_ns(const struct loop *loop)
{
    const struct virtual_loop *v = (const struct virtual_loop *)(const void *)loop;

    return atomic_load(&v->now_ns) + (v->spending ? v->spent_ns : 0);
}

static int64_t virtual_utc_ns(const struct loop *loop)
{
    const struct virtual_loop *v = (const struct virtual_loop *)(const void *)loop;

    return v->start_utc_ns + (int64_t)(virtual_now_ns(loop) - v->start_ns);
}

void loop_shift_utc(struct loop *loop, int64_t by_ns)
{
    virtual_of(loop)->start_utc_ns += by_ns;
}

void loop_virtual_stand(struct loop *loop, uint64_t ns)
{
    atomic_fetch_add(&virtual_of(loop)->now_ns, ns);
}

static void sleep_ns(uint64_t ns)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ns / NS_PER_S);
    until.tv_nsec += (long)(ns % NS_PER_S);
    if (until.tv_nsec >= (long)NS_PER_S) {
        until.tv_nsec -= (long)NS_PER_S;
        until.tv_sec++;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

void loop_spend(struct loop *loop, uint64_t ns)
{
    if (!loop_is_virtual(loop)) {
        sleep_ns((uint64_t)((long double)ns / (long double)loop_speed(loop)));
        return;
    }
    struct virtual_loop *v = virtual_of(loop);
    if (v->spending)
        v->spent_ns = v->spent_ns + ns < ns ? LOOP_NEVER : v->spent_ns + ns;
}

/* ---- the loop ---- */

static int virtual_run(struct loop *loop, uw_error *err)
{
    struct virtual_loop *v = virtual_of(loop);
    (void)err;

    while (!loop->stopping && loop->heap.n_counting > 0) {
        struct loop_timer *timer = loop_timer_first(loop);
        uint64_t now = atomic_load(&v->now_ns);
        if (timer->due_ns > now) {
            now = timer->due_ns;
            atomic_store(&v->now_ns, now);
        }
        loop_timer_fire(timer, now);
    }
    return 0;
}

static void virtual_close(struct loop *loop)
{
    (void)loop;
}

static void virtual_rearm(struct loop *loop)
{
    (void)loop;
}

static int virtual_fd_open(struct loop_fd *source, uw_error *err)
{
    int fd = source->fd;

    free(source);
    return fail(err, -ENOTSUP, "descriptor %d: virtual time waits for none", fd);
}

static void virtual_fd_close(struct loop_fd *source)
{
    free(source);
}

/* ---- signals ---- */

static int on_raised(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct loop_signal *source = user;
    (void)timer, (void)now_ns;

    return source->fn(source, source->signo, source->user);
}

static int virtual_signal_open(struct loop_signal *source, uw_error *err)
{
    int signo = source->signo;
    int r = loop_timer_init(&source->raised, source->loop, on_raised, source);

    if (r < 0) {
        free(source);
        return fail(err, r, "signal %d: out of memory", signo);
    }
    return 0;
}

static void virtual_signal_close(struct loop_signal *source)
{
    loop_timer_fini(&source->raised);
    free(source);
}

void loop_virtual_raise(struct loop *loop, int signo)
{
    assert(loop_is_virtual(loop));
    for (struct loop_link *l = loop->signals.next; l != &loop->signals; l = l->next) {
        struct loop_signal *source = (struct loop_signal *)(void *)l;
        if (source->signo == signo && source->raised.at == 0)
            loop_timer_set(&source->raised, loop_now_ns(loop), 0);
    }
}

/* ---- programs ---- */

static void virtual_child_close(struct loop_child *child)
{
    loop_timer_fini(&child->ended_at);
    free(child);
}

static int on_ended(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct loop_child *child = user;
    (void)timer, (void)now_ns;

    child->ended = true;
    if (child->fn)
        return child->fn(child, child->status, child->user);
    loop_link_remove(&child->link);
    virtual_child_close(child);
    return 0;
}

static int virtual_child_open(struct loop_child *child,
                              const struct loop_child_opts *opts, uw_error *err)
{
    struct virtual_loop *v = virtual_of(child->loop);
    int r = loop_timer_init(&child->ended_at, child->loop, on_ended, child);

    child->pid = ++v->last_pid;
    if (r < 0)
        (void)fail(err, r, "%s: out of memory", opts->argv[0]);
    else if (!v->programs.start)
        r = fail(err, -ENOENT, "%s: this virtual world has no programs", opts->argv[0]);
    else
        r = v->programs.start(opts, child->pid, v->programs.user, err);
    if (r < 0) {
        loop_link_remove(&child->link);
        virtual_child_close(child);
    }
    return r;
}

static int virtual_child_kill(struct loop_child *child, int signo)
{
    const struct loop_virtual_programs *programs = &virtual_of(child->loop)->programs;

    if (child->ended_at.at > 0 || !programs->kill)
        return -ESRCH;
    return programs->kill(child->pid, signo, programs->user);
}

static void virtual_child_forget(struct loop_child *child)
{
    (void)child;
}

void loop_virtual_programs(struct loop *loop,
                           const struct loop_virtual_programs *programs)
{
    virtual_of(loop)->programs = programs ? *programs : (struct loop_virtual_programs){0};
}

void loop_virtual_exit(struct loop *loop, pid_t pid, int status)
{
    for (struct loop_link *l = loop->children.next; l != &loop->children; l = l->next) {
        struct loop_child *child = (struct loop_child *)(void *)l;
        if (child->pid != pid || child->ended || child->ended_at.at > 0)
            continue;
        child->status = status;
        loop_timer_set(&child->ended_at, loop_now_ns(loop), 0);
        return;
    }
}

/* ---- workers ---- */

static int virtual_worker_open(struct loop_worker *worker, uw_error *err)
{
    (void)worker, (void)err;
    return 0;
}

static void virtual_worker_start(struct loop_worker *worker)
{
    struct virtual_loop *v = virtual_of(worker->loop);
    const struct loop_work *work = &worker->queue[worker->head];
    uint64_t now = atomic_load(&v->now_ns);

    if (work->at_ns > now) {
        loop_timer_set(&worker->begins, work->at_ns, 0);
        return;
    }
    v->spending = true;
    v->spent_ns = 0;
    worker->r = work->fn(worker->loop, work->work);
    v->spending = false;

    uint64_t spent = v->spent_ns;
    worker->ends_ns = now + spent < now ? LOOP_NEVER : now + spent;
    worker->returns.weak = false;
    if (work->deadline_ns > 0 && spent > work->deadline_ns)
        loop_timer_set(&worker->deadline, now + work->deadline_ns, 0);
    else if (worker->ends_ns != LOOP_NEVER)
        loop_timer_set(&worker->returns, worker->ends_ns, 0);
}

static void virtual_worker_deadline(struct loop_worker *worker)
{
    worker->returns.weak = true; /* as with a hung thread, nobody waits for it */
    if (worker->ends_ns != LOOP_NEVER)
        loop_timer_set(&worker->returns, worker->ends_ns, 0);
    loop_worker_timed_out(worker);
}

static bool virtual_worker_withdraw(struct loop_worker *worker)
{
    bool waits = worker->begins.at > 0;

    loop_timer_disarm(&worker->begins);
    return waits;
}

static void virtual_worker_hasten(struct loop_worker *worker)
{
    if (worker->begins.at > 0)
        loop_timer_set(&worker->begins, 0, 0);
}

static int virtual_worker_finish(struct loop_worker *worker)
{
    if (worker->begins.at > 0)
        return -ECANCELED;
    return worker->returns.at > 0 ? worker->r : -ETIMEDOUT;
}

static void virtual_worker_close(struct loop_worker *worker)
{
    (void)worker;
}

static const struct worker_ops virtual_workers = {
    .open = virtual_worker_open,
    .start = virtual_worker_start,
    .withdraw = virtual_worker_withdraw,
    .hasten = virtual_worker_hasten,
    .deadline = virtual_worker_deadline,
    .finish = virtual_worker_finish,
    .close = virtual_worker_close,
};

static const struct loop_ops virtual_ops = {
    .is_virtual = true,
    .now_ns = virtual_now_ns,
    .utc_ns = virtual_utc_ns,
    .run = virtual_run,
    .close = virtual_close,
    .rearm = virtual_rearm,
    .fd_open = virtual_fd_open,
    .fd_close = virtual_fd_close,
    .signal_open = virtual_signal_open,
    .signal_close = virtual_signal_close,
    .child_open = virtual_child_open,
    .child_kill = virtual_child_kill,
    .child_forget = virtual_child_forget,
    .child_close = virtual_child_close,
    .workers = &virtual_workers,
};

int loop_new_virtual(uint64_t start_ns, int64_t start_utc_s, struct loop **ret,
                     uw_error *err)
{
    struct loop *loop = loop_alloc(&virtual_ops, sizeof(struct virtual_loop));

    if (!loop)
        return fail(err, -ENOMEM, "loop: out of memory");
    struct virtual_loop *v = virtual_of(loop);
    atomic_store(&v->now_ns, start_ns);
    v->start_ns = start_ns;
    v->start_utc_ns = start_utc_s * (int64_t)NS_PER_S;
    v->last_pid = FIRST_PID;
    *ret = loop;
    return 0;
}
