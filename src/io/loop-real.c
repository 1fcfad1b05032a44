/* The real loop: libuv, one timerfd for all timers, pidfds for children. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "io/loop-inside.h"

/* How long loop_worker_free() waits for a call that may still return. */
static const uint64_t FINISH_NS = 2 * NS_PER_S;

/* ---- timers ---- */

/* The kernel's time at which the loop's clock shows at_ns, rounded up. */
static uint64_t kernel_time(const struct loop_clock *clock, uint64_t at_ns)
{
    if (clock->speed == 1)
        return at_ns;
    long double since = (long double)at_ns - (long double)clock->t0_ns;
    long double t = (long double)clock->t0_ns + since / (long double)clock->speed + 1.0L;
    if (t < 0)
        return 0;
    return t < 9e18L ? (uint64_t)t : (uint64_t)INT64_MAX;
}

static void real_rearm(struct loop *loop)
{
    struct loop_timer *first = loop_timer_first(loop);
    uint64_t due = first ? first->due_ns : LOOP_NEVER;
    struct itimerspec when = {0};

    if (loop->firing)
        return; /* once, after the last of them */
    if (loop->n_counting > 0)
        uv_ref((uv_handle_t *)&loop->timer_poll);
    else
        uv_unref((uv_handle_t *)&loop->timer_poll);
    if (due == loop->armed_ns)
        return;
    loop->armed_ns = due;
    if (due != LOOP_NEVER) {
        uint64_t kernel = kernel_time(&loop->clock, due);
        when.it_value.tv_sec = (time_t)(kernel / NS_PER_S);
        when.it_value.tv_nsec = (long)(kernel % NS_PER_S);
        if (kernel == 0)
            when.it_value.tv_nsec = 1; /* 0 would disarm it */
    }
    (void)timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Fire what is due now, but nothing that is armed meanwhile: descriptors and
 * signals get their turn.
 */
static void real_on_timer(uv_poll_t *poll, int status, int events)
{
    struct loop *loop = poll->data;
    uint64_t expired, end = loop->next_seq;
    struct loop_timer *timer;
    (void)status, (void)events;

    (void)!read(loop->timer_fd, &expired, sizeof expired);
    loop->armed_ns = LOOP_NEVER;
    loop->firing = true;
    while (!loop->stopping && (timer = loop_timer_first(loop)) && timer->seq < end) {
        uint64_t now = loop_now_ns(loop);
        if (timer->due_ns > now)
            break;
        loop_timer_fire(timer, now);
    }
    loop->firing = false;
    real_rearm(loop);
}

/* ---- descriptors ---- */

static void free_fd(uv_handle_t *handle)
{
    free(handle->data);
}

static void real_on_fd(uv_poll_t *poll, int status, int events)
{
    struct loop_fd *source = poll->data;
    int got =
        (events & UV_READABLE ? LOOP_READ : 0) | (events & UV_WRITABLE ? LOOP_WRITE : 0);

    if (source->loop->stopping)
        return; /* told again when the loop runs again */
    if (status < 0)
        got = source->events; /* the read or write will say what it is */
    loop_took(source->loop, source->fn(source, source->fd, got, source->user));
}

static int real_fd_open(struct loop_fd *source, uw_error *err)
{
    int want = (source->events & LOOP_READ ? UV_READABLE : 0) |
               (source->events & LOOP_WRITE ? UV_WRITABLE : 0);
    int fd = source->fd;
    int r = uv_poll_init(&source->loop->uv, &source->poll, fd);

    if (r < 0) {
        free(source);
        return fail(err, r, "descriptor %d cannot be waited for: %s", fd, strerror(-r));
    }
    source->poll.data = source;
    r = uv_poll_start(&source->poll, want, real_on_fd);
    if (r < 0) {
        uv_close((uv_handle_t *)&source->poll, free_fd);
        return fail(err, r, "descriptor %d cannot be waited for: %s", fd, strerror(-r));
    }
    return 0;
}

static void real_fd_close(struct loop_fd *source)
{
    uv_close((uv_handle_t *)&source->poll, free_fd);
}

/* ---- signals ---- */

static void real_on_signal(uv_signal_t *handle, int signo)
{
    struct loop_signal *source = handle->data;

    loop_took(source->loop, source->fn(source, signo, source->user));
}

static int real_signal_open(struct loop_signal *source, uw_error *err)
{
    int signo = source->signo;
    int r = uv_signal_init(&source->loop->uv, &source->signal);

    if (r < 0) {
        free(source);
        return fail(err, r, "signal %d: %s", signo, strerror(-r));
    }
    source->signal.data = source;
    r = uv_signal_start(&source->signal, real_on_signal, signo);
    if (r < 0) {
        uv_close((uv_handle_t *)&source->signal, free_fd);
        return fail(err, r, "signal %d: %s", signo, strerror(-r));
    }
    uv_unref((uv_handle_t *)&source->signal);
    return 0;
}

static void real_signal_close(struct loop_signal *source)
{
    uv_close((uv_handle_t *)&source->signal, free_fd);
}

/* ---- children ---- */

static void free_child(uv_handle_t *handle)
{
    struct loop_child *child = handle->data;

    (void)close(child->pidfd);
    free(child);
}

static void real_child_close(struct loop_child *child)
{
    uv_close((uv_handle_t *)&child->poll, free_child);
}

static void real_on_child(uv_poll_t *poll, int status, int events)
{
    struct loop_child *child = poll->data;
    int how = 0;
    (void)status, (void)events;

    if (child->fn && child->loop->stopping)
        return;
    pid_t got = waitpid(child->pid, &how, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR))
        return;
    (void)uv_poll_stop(poll);
    child->ended = true;
    if (!child->fn) {
        loop_link_remove(&child->link);
        real_child_close(child);
        return;
    }
    loop_took(child->loop, child->fn(child, how, child->user));
}

static int real_child_open(struct loop_child *child, const struct loop_child_opts *opts,
                           uw_error *err)
{
    int r = loop_child_spawn(opts, &child->pid, err);
    if (r < 0)
        goto failed;

    child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    if (child->pidfd < 0) {
        r = fail(err, -errno, "%s: pidfd_open: %s", opts->argv[0], strerror(errno));
        goto failed;
    }
    r = uv_poll_init(&child->loop->uv, &child->poll, child->pidfd);
    if (r < 0) {
        r = fail(err, r, "%s: %s", opts->argv[0], strerror(-r));
        goto failed;
    }
    child->poll.data = child;
    (void)uv_poll_start(&child->poll, UV_READABLE, real_on_child);
    return 0;

failed:
    if (child->pid > 0) { /* it runs already: nobody would ever know its end */
        (void)kill(child->pid, SIGKILL);
        (void)waitpid(child->pid, NULL, 0);
    }
    if (child->pidfd >= 0)
        (void)close(child->pidfd);
    loop_link_remove(&child->link);
    free(child);
    return r;
}

static int real_child_kill(struct loop_child *child, int signo)
{
    /* Not reaped yet, so the number is still this child's. */
    return kill(child->own_group ? -child->pid : child->pid, signo) < 0 ? -errno : 0;
}

static void real_child_forget(struct loop_child *child)
{
    uv_unref((uv_handle_t *)&child->poll);
}

/* ---- workers ---- */

static void call_free(struct worker_call *call)
{
    loop_unref(call->loop);
    (void)pthread_cond_destroy(&call->wake);
    (void)pthread_mutex_destroy(&call->lock);
    free(call);
}

static void *worker_main(void *user)
{
    struct worker_call *call = user;

    (void)pthread_mutex_lock(&call->lock);
    for (;;) {
        while (call->state != CALL_WAITING && !call->quit)
            (void)pthread_cond_wait(&call->wake, &call->lock);
        if (call->quit)
            break;
        call->state = CALL_RUNS;
        struct loop_work work = call->work;
        (void)pthread_mutex_unlock(&call->lock);
        int r = work.fn(call->loop, work.work);
        (void)pthread_mutex_lock(&call->lock);
        call->r = r;
        call->state = CALL_RETURNED;
        (void)pthread_cond_broadcast(&call->wake);
        if (!call->quit)
            (void)uv_async_send(&call->loop->returned);
    }
    bool last = --call->refs == 0;
    (void)pthread_mutex_unlock(&call->lock);
    if (last)
        call_free(call);
    return NULL;
}

/* All signals stay with the loop's thread. */
static int start_thread(struct loop_worker *worker)
{
    sigset_t all, old;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(&worker->thread, NULL, worker_main, worker->call);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r == 0)
        (void)pthread_setname_np(worker->thread, worker->name);
    return -r;
}

static int real_worker_open(struct loop_worker *worker, uw_error *err)
{
    struct worker_call *call = calloc(1, sizeof *call);
    pthread_condattr_t attr;

    if (!call)
        return fail(err, -ENOMEM, "worker %s: out of memory", worker->name);
    (void)pthread_mutex_init(&call->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&call->wake, &attr);
    (void)pthread_condattr_destroy(&attr);
    call->loop = worker->loop;
    atomic_fetch_add(&worker->loop->refs, 1);
    call->refs = 2;
    worker->call = call;
    int r = start_thread(worker);
    if (r < 0) {
        worker->call = NULL;
        call_free(call);
        return fail(err, r, "worker %s: %s", worker->name, strerror(-r));
    }
    return 0;
}

static void count_call(struct loop *loop, int by)
{
    loop->n_calls += (size_t)by;
    if (loop->n_calls > 0)
        uv_ref((uv_handle_t *)&loop->returned);
    else
        uv_unref((uv_handle_t *)&loop->returned);
}

static void real_worker_start(struct loop_worker *worker)
{
    struct loop *loop = worker->loop;
    const struct loop_work *work = &worker->queue[worker->head];
    struct worker_call *call = worker->call;

    if (work->deadline_ns > 0) {
        long double takes =
            (long double)work->deadline_ns * (long double)loop->clock.speed;
        uint64_t now = loop_now_ns(loop);
        uint64_t ns = takes < 9e18L ? (uint64_t)takes : (uint64_t)INT64_MAX;
        loop_timer_set(&worker->deadline, now + ns, 0);
    }
    count_call(loop, 1);
    (void)pthread_mutex_lock(&call->lock);
    call->work = *work;
    call->state = CALL_WAITING;
    (void)pthread_cond_broadcast(&call->wake);
    (void)pthread_mutex_unlock(&call->lock);
}

/* The call's result if it has one by now; the worker is idle again then. */
static bool take_result(struct worker_call *call, int *ret_r)
{
    (void)pthread_mutex_lock(&call->lock);
    bool has = call->state == CALL_RETURNED;
    if (has) {
        *ret_r = call->r;
        call->state = CALL_NONE;
    }
    (void)pthread_mutex_unlock(&call->lock);
    return has;
}

/* True when there was news; a callback may then have freed any worker. */
static bool look_at_worker(struct loop_worker *worker)
{
    int r;

    if (!take_result(worker->call, &r))
        return false;
    if (!worker->hangs)
        count_call(worker->loop, -1);
    loop_worker_returned(worker, r);
    return true;
}

static void real_on_returned(uv_async_t *async)
{
    struct loop *loop = async->data;
    struct loop_link *link = loop->workers.next;

    while (link != &loop->workers) {
        struct loop_worker *worker = (struct loop_worker *)(void *)link;
        struct loop_link *next = link->next;
        link = look_at_worker(worker) ? loop->workers.next : next;
    }
}

static void real_worker_deadline(struct loop_worker *worker)
{
    if (look_at_worker(worker)) /* in the nick of time */
        return;
    count_call(worker->loop, -1);
    loop_worker_timed_out(worker);
}

/* Waits for the running call, for what its deadline leaves and FINISH_NS at most. */
static int real_worker_finish(struct loop_worker *worker)
{
    struct worker_call *call = worker->call;
    uint64_t left = FINISH_NS;
    struct timespec until = {0};

    if (worker->deadline.at > 0) {
        double s = s_between(loop_now_ns(worker->loop), worker->deadline.due_ns) /
                   worker->loop->clock.speed;
        left = ns_of_s(s) < left ? ns_of_s(s) : left;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    left += (uint64_t)until.tv_nsec;
    until.tv_sec += (time_t)(left / NS_PER_S);
    until.tv_nsec = (long)(left % NS_PER_S);

    (void)pthread_mutex_lock(&call->lock);
    while (call->state != CALL_RETURNED &&
           pthread_cond_timedwait(&call->wake, &call->lock, &until) != ETIMEDOUT)
        ;
    int r = call->state == CALL_RETURNED ? call->r : -ETIMEDOUT;
    (void)pthread_mutex_unlock(&call->lock);
    count_call(worker->loop, -1);
    return r;
}

static void real_worker_close(struct loop_worker *worker)
{
    struct worker_call *call = worker->call;

    if (!call)
        return;
    (void)pthread_mutex_lock(&call->lock);
    call->quit = true;
    bool hangs = call->state == CALL_RUNS;
    (void)pthread_cond_broadcast(&call->wake);
    (void)pthread_mutex_unlock(&call->lock);
    if (hangs)
        (void)pthread_detach(worker->thread);
    else
        (void)pthread_join(worker->thread, NULL);

    (void)pthread_mutex_lock(&call->lock);
    bool last = --call->refs == 0;
    (void)pthread_mutex_unlock(&call->lock);
    if (last)
        call_free(call);
}

/* ---- the loop ---- */

static int real_run(struct loop *loop, uw_error *err)
{
    (void)err;
    while (!loop->stopping && uv_loop_alive(&loop->uv))
        (void)uv_run(&loop->uv, UV_RUN_ONCE);
    return 0;
}

static void real_close(struct loop *loop)
{
    uv_close((uv_handle_t *)&loop->timer_poll, NULL);
    uv_close((uv_handle_t *)&loop->returned, NULL);
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT); /* the close callbacks */
    (void)uv_loop_close(&loop->uv);
    (void)close(loop->timer_fd);
}

const struct loop_ops loop_real_ops = {
    .run = real_run,
    .close = real_close,
    .rearm = real_rearm,
    .fd_open = real_fd_open,
    .fd_close = real_fd_close,
    .signal_open = real_signal_open,
    .signal_close = real_signal_close,
    .child_open = real_child_open,
    .child_kill = real_child_kill,
    .child_forget = real_child_forget,
    .child_close = real_child_close,
    .worker_open = real_worker_open,
    .worker_start = real_worker_start,
    .worker_deadline = real_worker_deadline,
    .worker_finish = real_worker_finish,
    .worker_close = real_worker_close,
};

/* The descriptors and handles that every real loop has. */
static int real_open(struct loop *loop)
{
    int r = uv_loop_init(&loop->uv);
    if (r < 0)
        return r;

    loop->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (loop->timer_fd < 0) {
        r = -errno;
        (void)uv_loop_close(&loop->uv);
        return r;
    }
    loop->timer_poll.data = loop->returned.data = loop;
    r = uv_async_init(&loop->uv, &loop->returned, real_on_returned);
    if (r < 0) {
        (void)close(loop->timer_fd);
        (void)uv_loop_close(&loop->uv);
        return r;
    }
    r = uv_poll_init(&loop->uv, &loop->timer_poll, loop->timer_fd);
    if (r >= 0)
        r = uv_poll_start(&loop->timer_poll, UV_READABLE, real_on_timer);
    if (r < 0) {
        uv_close((uv_handle_t *)&loop->returned, NULL);
        (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
        (void)close(loop->timer_fd);
        (void)uv_loop_close(&loop->uv);
        return r;
    }
    uv_unref((uv_handle_t *)&loop->timer_poll);
    uv_unref((uv_handle_t *)&loop->returned);
    return 0;
}

int loop_new_real(struct loop_clock clock, struct loop **ret, uw_error *err)
{
    struct loop *loop = loop_alloc(&loop_real_ops);

    if (!loop)
        return fail(err, -ENOMEM, "loop: out of memory");
    loop->clock = clock;
    loop->armed_ns = LOOP_NEVER;
    int r = real_open(loop);
    if (r < 0) {
        loop_unref(loop);
        return fail(err, r, "loop: %s", strerror(-r));
    }
    *ret = loop;
    return 0;
}
