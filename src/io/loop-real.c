/* The real loop: libuv, one timerfd for all timers, pidfds for children. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "io/loop-inside.h"
#include "io/spawn.h"

/* ---- clock ---- */

static uint64_t read_clock(clockid_t id)
{
    struct timespec t = {0};

    (void)clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t loop_kernel_ns(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

static uint64_t simulated_ns(const struct loop_clock *clock, uint64_t kernel_ns)
{
    if (clock->speed == 1)
        return kernel_ns;
    long double since = (long double)kernel_ns - (long double)clock->t0_ns;
    long double t = (long double)clock->t0_ns + since * (long double)clock->speed;
    return t > 0 ? (uint64_t)t : 0;
}

static uint64_t real_now_ns(const struct loop *loop)
{
    return simulated_ns(&loop->clock, loop_kernel_ns());
}

uint64_t loop_at_ns(const struct loop *loop, uint64_t boot_ns)
{
    return simulated_ns(&loop->clock, boot_ns);
}

static int64_t real_utc_ns(const struct loop *loop)
{
    uint64_t kernel = loop_kernel_ns();
    uint64_t ahead = simulated_ns(&loop->clock, kernel) - kernel; /* wraps below 0 */

    return (int64_t)(read_clock(CLOCK_REALTIME) + ahead);
}

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

uint64_t loop_kernel_at(const struct loop *loop, uint64_t at_ns)
{
    return kernel_time(&loop->clock, at_ns);
}

static void real_rearm(struct loop *loop)
{
    if (loop->heap.n_counting > 0)
        uv_ref((uv_handle_t *)&loop->timer_poll);
    else
        uv_unref((uv_handle_t *)&loop->timer_poll);
}

/* Runs once before the loop waits, however often the timers have changed. */
static void arm(struct loop *loop)
{
    uint64_t due = timer_heap_wake_ns(&loop->heap);
    struct itimerspec when = {0};

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

static void real_on_timer(uv_poll_t *poll, int status, int events)
{
    struct loop *loop = poll->data;
    uint64_t expired;
    (void)status, (void)events;

    (void)!read(loop->timer_fd, &expired, sizeof expired);
    loop->armed_ns = LOOP_NEVER;
}

/* Fires the timers that are due now, whatever has woken the loop, but none that is armed
 * in between, so that descriptors and signals are served.
 */
static void real_after_wait(uv_check_t *check)
{
    struct loop *loop = check->data;
    struct loop_timer *timer;

    lanes_look(loop);
    uint64_t end = loop->heap.next_seq;
    while (!loop->stopping && (timer = loop_timer_first(loop)) && timer->seq < end) {
        uint64_t now = loop_now_ns(loop);
        if (timer->due_ns > now)
            break;
        loop_timer_fire(timer, now);
    }
}

static void real_before_wait(uv_prepare_t *prepare)
{
    struct loop *loop = prepare->data;

    lanes_start(loop);
    arm(loop);
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

    lanes_look(source->loop); /* results of boards come first */
    if (source->loop->stopping || uv_is_closing((uv_handle_t *)poll))
        return; /* reported again when the loop runs again */
    if (status < 0)
        got = source->events; /* the next read or write returns the error */
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
    if (child->pid > 0) { /* runs already: without a pidfd, its end would go unnoticed */
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

/* ---- the loop ---- */

static int real_run(struct loop *loop, uw_error *err)
{
    (void)err;
    while (!loop->stopping && uv_loop_alive(&loop->uv))
        (void)uv_run(&loop->uv, UV_RUN_ONCE);
    return 0;
}

void loop_wait_for_calls(struct loop *loop, bool wait)
{
    if (wait)
        uv_ref((uv_handle_t *)&loop->returned_poll);
    else
        uv_unref((uv_handle_t *)&loop->returned_poll);
}

static void on_returned(uv_poll_t *poll, int status, int events)
{
    struct loop *loop = poll->data;
    uint64_t n;
    (void)status, (void)events;

    (void)!read(loop->lanes.returned_fd, &n, sizeof n);
    lanes_look(loop);
}

static void on_patience(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    lanes_on_patience(poll->data);
}

/* Watches a descriptor of the loop itself, which alone does not keep loop_run() waiting.
 */
static int watch(struct loop *loop, uv_poll_t *poll, int fd, uv_poll_cb fn)
{
    poll->data = loop;
    int r = uv_poll_init(&loop->uv, poll, fd);
    if (r < 0)
        return r;
    uv_unref((uv_handle_t *)poll);
    return uv_poll_start(poll, UV_READABLE, fn);
}

static void close_handle(uv_handle_t *handle, void *user)
{
    (void)user;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void real_close(struct loop *loop)
{
    uv_walk(&loop->uv, close_handle, NULL);
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT); /* the close callbacks */
    (void)uv_loop_close(&loop->uv);
    if (loop->timer_fd >= 0)
        (void)close(loop->timer_fd);
    if (loop->lanes.returned_fd >= 0)
        (void)close(loop->lanes.returned_fd);
    if (loop->lanes.patience_fd >= 0)
        (void)close(loop->lanes.patience_fd);
}

/* Opens the descriptors and handles of a real loop; real_close() undoes the steps done
 * so far.
 */
static int real_open(struct loop *loop)
{
    loop->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    int r = loop->timer_fd < 0 ? -errno : 0;
    if (r >= 0)
        loop->lanes.returned_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (r >= 0 && loop->lanes.returned_fd < 0)
        r = -errno;
    if (r >= 0)
        loop->lanes.patience_fd =
            timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (r >= 0 && loop->lanes.patience_fd < 0)
        r = -errno;
    if (r >= 0)
        r = watch(loop, &loop->timer_poll, loop->timer_fd, real_on_timer);
    if (r >= 0)
        r = watch(loop, &loop->returned_poll, loop->lanes.returned_fd, on_returned);
    if (r >= 0)
        r = watch(loop, &loop->patience_poll, loop->lanes.patience_fd, on_patience);
    if (r < 0)
        return r;
    loop->before_wait.data = loop->after_wait.data = loop;
    (void)uv_check_init(&loop->uv, &loop->after_wait); /* these four cannot fail */
    (void)uv_check_start(&loop->after_wait, real_after_wait);
    uv_unref((uv_handle_t *)&loop->after_wait);
    (void)uv_prepare_init(&loop->uv, &loop->before_wait);
    (void)uv_prepare_start(&loop->before_wait, real_before_wait);
    uv_unref((uv_handle_t *)&loop->before_wait);
    return 0;
}

static const struct loop_ops real_ops = {
    .now_ns = real_now_ns,
    .utc_ns = real_utc_ns,
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
    .workers = &lane_ops,
};

int loop_new_real(struct loop_clock clock, struct loop **ret, uw_error *err)
{
    struct loop *loop = loop_alloc(&real_ops, sizeof(struct loop));

    if (!loop)
        return fail(err, -ENOMEM, "loop: out of memory");
    loop->clock = clock;
    loop->armed_ns = LOOP_NEVER;
    loop->timer_fd = -1;
    int r = uv_loop_init(&loop->uv);
    if (r >= 0) {
        r = real_open(loop);
        if (r < 0)
            real_close(loop);
    }
    if (r < 0) {
        loop_unref(loop);
        return fail(err, r, "loop: %s", strerror(-r));
    }
    *ret = loop;
    return 0;
}
