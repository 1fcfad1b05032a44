#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "io/lanes.h"

/* How long loop_worker_free() waits for a call that may still return. */
static const uint64_t FINISH_NS = 2 * NS_PER_S;
/* Calls in a row that make a slow worker one of the common lane again. */
enum { TRUSTED = 64 };

struct lane {
    struct loop *loop; /* its thread holds a reference */
    size_t members;    /* workers */
    pthread_t thread;
    int timer_fd; /* its thread waits for this alone, so that a time set wakes nobody */
    uint64_t armed_ns; /* time that it is set to; LOOP_NEVER: none, or it has passed */
    struct call_list waiting; /* by start_ns, then by age */
    struct worker_call *runs;
    uint64_t began_ns; /* … the kernel's time */
    bool quit;
    bool left; /* left to a call that hangs: the thread frees the lane */
};

static void list_add(struct call_list *list, struct worker_call *call)
{
    call->next = NULL;
    if (list->last)
        list->last->next = call;
    else
        list->first = call;
    list->last = call;
}

/* In the order of start_ns. */
static void list_insert(struct call_list *list, struct worker_call *call)
{
    struct worker_call **at = &list->first;

    if (!list->last || list->last->start_ns <= call->start_ns) {
        list_add(list, call);
        return;
    }
    while ((*at)->start_ns <= call->start_ns)
        at = &(*at)->next;
    call->next = *at;
    *at = call;
}

static void list_remove(struct call_list *list, struct worker_call *call)
{
    struct worker_call *before = NULL;

    for (struct worker_call *c = list->first; c != call; c = c->next)
        before = c;
    if (before)
        before->next = call->next;
    else
        list->first = call->next;
    if (list->last == call)
        list->last = before;
}

/* Under the lock: the lane's thread looks at its calls again at start_ns. */
static void lane_arm(struct lane *lane, uint64_t start_ns)
{
    struct itimerspec when = {0};

    if (start_ns >= lane->armed_ns)
        return;
    lane->armed_ns = start_ns;
    when.it_value.tv_sec = (time_t)(start_ns / NS_PER_S);
    when.it_value.tv_nsec = (long)(start_ns % NS_PER_S);
    if (start_ns == 0)
        when.it_value.tv_nsec = 1; /* 0 would disarm it */
    (void)timerfd_settime(lane->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* ---- in a lane's thread, under the lock ---- */

static void lane_call(struct lane *lane)
{
    struct loop *loop = lane->loop;
    struct worker_call *call = lane->waiting.first;
    struct loop_work work = call->work;

    list_remove(&lane->waiting, call);
    call->state = CALL_RUNS;
    lane->runs = call;
    lane->began_ns = loop_kernel_ns();
    (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
    int r = work.fn(loop, work.work);
    (void)pthread_mutex_lock(&loop_lanes(loop)->lock);
    lane->runs = NULL;
    if (!call->worker) {
        free(call);
        return;
    }
    call->r = r;
    call->took_ns = loop_kernel_ns() - lane->began_ns;
    call->state = CALL_RETURNED;
    list_add(&loop_lanes(loop)->answers, call);
    if (loop_lanes(loop)->awaited)
        (void)pthread_cond_signal(&loop_lanes(loop)->answered);
}

static void lane_free(struct lane *lane)
{
    (void)close(lane->timer_fd);
    free(lane);
}

static bool lane_is_due(const struct lane *lane)
{
    const struct worker_call *first = lane->waiting.first;

    return first && (first->start_ns == 0 || first->start_ns <= loop_kernel_ns());
}

static void lane_wait(struct lane *lane)
{
    pthread_mutex_t *lock = &loop_lanes(lane->loop)->lock;
    uint64_t expired;

    if (lane->waiting.first)
        lane_arm(lane, lane->waiting.first->start_ns);
    (void)pthread_mutex_unlock(lock);
    ssize_t n = read(lane->timer_fd, &expired, sizeof expired);
    (void)pthread_mutex_lock(lock);
    if (n > 0)
        lane->armed_ns = LOOP_NEVER;
}

static void *lane_main(void *user)
{
    struct lane *lane = user;
    struct loop *loop = lane->loop;

    (void)pthread_mutex_lock(&loop_lanes(loop)->lock);
    while (!lane->quit) {
        if (!lane_is_due(lane)) {
            lane_wait(lane);
            continue;
        }
        lane_call(lane);
        if (lane->quit || lane_is_due(lane))
            continue;
        /* Closing an idle lane waits for this thread, so the loop still exists. */
        (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
        (void)!write(loop_lanes(loop)->returned_fd, &(uint64_t){1}, sizeof(uint64_t));
        (void)pthread_mutex_lock(&loop_lanes(loop)->lock);
    }
    bool left = lane->left;
    (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
    if (left)
        lane_free(lane);
    loop_unref(loop);
    return NULL;
}

/* ---- lanes, in the loop's thread ---- */

/* All signals stay with the loop's thread. */
static int start_thread(struct lane *lane, const char *name)
{
    sigset_t all, old;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    loop_ref(lane->loop);
    int r = pthread_create(&lane->thread, NULL, lane_main, lane);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r == 0)
        (void)pthread_setname_np(lane->thread, name);
    else
        loop_unref(lane->loop);
    return -r;
}

static int lane_new(struct loop *loop, const char *name, struct lane **ret)
{
    struct lane *lane = calloc(1, sizeof *lane);

    if (!lane)
        return -ENOMEM;
    lane->loop = loop;
    lane->armed_ns = LOOP_NEVER;
    lane->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    int r = lane->timer_fd < 0 ? -errno : start_thread(lane, name);
    if (r < 0) {
        lane_free(lane);
        return r;
    }
    *ret = lane;
    return 0;
}

/* Close a lane; waits for its thread unless a call hangs in it. */
static void lane_close(struct lane *lane)
{
    struct loop *loop = lane->loop;

    (void)pthread_mutex_lock(&loop_lanes(loop)->lock);
    lane->quit = true;
    bool left = lane->left = lane->runs;
    if (left)
        (void)pthread_detach(lane->thread);
    lane_arm(lane, 0);
    (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
    if (left)
        return;
    (void)pthread_join(lane->thread, NULL);
    lane_free(lane);
}

static void lane_leave(struct lane *lane)
{
    struct loop *loop = lane->loop;

    if (--lane->members > 0)
        return;
    if (loop_lanes(loop)->common == lane) {
        loop_lanes(loop)->common = NULL;
        loop_timer_disarm(&loop_lanes(loop)->patience);
    }
    lane_close(lane);
}

/* ---- the common lane ---- */

static int on_patience(struct loop_timer *timer, uint64_t now_ns, void *user);
static uint64_t patience_end(struct loop *loop);

/* Converts kernel time to the loop's clock. */
static uint64_t after(const struct loop *loop, uint64_t ns)
{
    long double takes = (long double)ns * (long double)loop_speed(loop);

    return loop_now_ns(loop) + (takes < 9e18L ? (uint64_t)takes : (uint64_t)INT64_MAX);
}

static int common_join(struct loop_worker *worker)
{
    struct loop *loop = worker->loop;
    int r = loop_lanes(loop)->patience.loop
                ? 0
                : loop_timer_init(&loop_lanes(loop)->patience, loop, on_patience, loop);

    if (r >= 0 && !loop_lanes(loop)->common)
        r = lane_new(loop, "shared", &loop_lanes(loop)->common);
    if (r < 0)
        return r;
    worker->lane = loop_lanes(loop)->common;
    worker->lane->members++;
    return 0;
}

static void own_lane(struct lane *lane, struct worker_call *call)
{
    struct loop *loop = lane->loop;
    struct loop_worker *worker = call->worker;
    uint64_t deadline = call->work.deadline_ns;
    uint64_t took = loop_kernel_ns() - lane->began_ns;

    lane->members = 1;
    worker->in_time = 0;
    if (deadline > 0)
        loop_timer_set(&worker->deadline,
                       after(loop, took < deadline ? deadline - took : 0), 0);
}

/* The other workers of a lane that was the common one until now. */
static void go_over(struct lane *old, struct lane *fresh, const struct loop_worker *but)
{
    struct loop *loop = old->loop;

    const struct loop_link *all = loop_workers(loop);
    for (struct loop_link *l = all->next; l != all; l = l->next) {
        struct loop_worker *worker = (struct loop_worker *)(void *)l;
        if (worker->lane != old || worker == but)
            continue;
        worker->lane = fresh;
        fresh->members++;
    }
}

/* If a call still hangs in the common lane, leave that lane to it and move the other
 * workers to a new lane. True: done; false: no call hangs, or no memory or no thread is
 * available.
 */
static bool common_split(struct loop *loop, const struct worker_call *hung)
{
    struct lane *old = loop_lanes(loop)->common, *fresh;

    if (lane_new(loop, "shared", &fresh) < 0)
        return false;
    (void)pthread_mutex_lock(&loop_lanes(loop)->lock);
    struct worker_call *call = old->runs;
    bool hangs = call && call == hung;
    if (hangs) {
        fresh->waiting = old->waiting;
        old->waiting = (struct call_list){NULL, NULL};
        go_over(old, fresh, call->worker);
        if (call->worker)
            own_lane(old, call);
        else
            old->members = 0;
        if (fresh->waiting.first)
            lane_arm(fresh, fresh->waiting.first->start_ns);
    }
    (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
    if (!hangs) {
        lane_close(fresh);
        return false;
    }
    loop_lanes(loop)->common = fresh;
    if (fresh->members == 0) {
        loop_lanes(loop)->common = NULL;
        lane_close(fresh);
    }
    if (old->members == 0)
        lane_close(old);
    return true;
}

/* The patience for the call in the common lane is over, or another call has begun. */
static int on_patience(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct loop *loop = user;
    uint64_t left = loop_lanes(loop)->patience_ns;
    (void)now_ns;

    if (!loop_lanes(loop)->common)
        return 0;
    (void)pthread_mutex_lock(&loop_lanes(loop)->lock);
    const struct lane *lane = loop_lanes(loop)->common;
    const struct worker_call *call = lane->runs;
    uint64_t took = call ? loop_kernel_ns() - lane->began_ns : 0;
    uint64_t end = patience_end(loop);
    (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
    if (!call) {
        if (end != LOOP_NEVER)
            loop_timer_set(timer, end, 0);
        return 0;
    }
    if (took >= loop_lanes(loop)->patience_ns)
        (void)common_split(loop, call);
    else
        left -= took;
    loop_timer_set(timer, after(loop, left), 0);
    lanes_look(loop); /* what was done before that call */
    return 0;
}

/* A worker with a lane of its own after a slow call: may it share again? */
static void lane_trust(struct loop_worker *worker)
{
    struct lane *own = worker->lane;

    worker->in_time = worker->call->took_ns < loop_lanes(worker->loop)->patience_ns
                          ? worker->in_time + 1
                          : 0;
    if (worker->in_time < TRUSTED || common_join(worker) < 0)
        return;
    lane_leave(own);
}

/* ---- workers ---- */

static int own_join(struct loop_worker *worker)
{
    int r = lane_new(worker->loop, worker->name, &worker->lane);

    if (r >= 0)
        worker->lane->members = 1;
    return r;
}

static int lane_worker_open(struct loop_worker *worker, uw_error *err)
{
    struct worker_call *call = calloc(1, sizeof *call);

    if (!call)
        return fail(err, -ENOMEM, "worker %s: out of memory", worker->name);
    int r = worker->shared ? common_join(worker) : own_join(worker);
    if (r < 0) {
        free(call);
        return fail(err, r, "worker %s: %s", worker->name, strerror(-r));
    }
    call->worker = worker;
    worker->call = call;
    return 0;
}

/* The patience ends at end_ns or, where it ends before that, as it did. */
static void be_patient(struct loop *loop, uint64_t end_ns)
{
    struct loop_timer *timer = &loop_lanes(loop)->patience;

    if (timer->at == 0 || end_ns < timer->due_ns)
        loop_timer_set(timer, end_ns, 0);
}

static void count_call(struct loop *loop, int by)
{
    loop_lanes(loop)->n_calls += (size_t)by;
    loop_wait_for_calls(loop, loop_lanes(loop)->n_calls > 0);
}

/* Under the lock: when the earliest call of the common lane should have returned. */
static uint64_t patience_end(struct loop *loop)
{
    const struct lane *common = loop_lanes(loop)->common;
    const struct worker_call *first = common->runs ? common->runs : common->waiting.first;
    uint64_t at = first ? first->work.at_ns : LOOP_NEVER;
    uint64_t end = after(loop, loop_lanes(loop)->patience_ns), now = loop_now_ns(loop);

    return !first ? LOOP_NEVER : at > now ? at + (end - now) : end;
}

static void lane_worker_start(struct loop_worker *worker)
{
    struct loop *loop = worker->loop;
    const struct loop_work *work = &worker->queue[worker->head];
    struct lane *lane = worker->lane;
    bool shares = lane == loop_lanes(loop)->common;
    uint64_t now = loop_now_ns(loop), wait = work->at_ns > now ? work->at_ns - now : 0;

    assert(!shares || work->deadline_ns == 0 || work->deadline_ns >= LOOP_PATIENCE_NS);
    if (!shares && work->deadline_ns > 0)
        loop_timer_set(&worker->deadline, after(loop, work->deadline_ns) + wait, 0);
    if (shares)
        be_patient(loop, after(loop, loop_lanes(loop)->patience_ns) + wait);
    count_call(loop, 1);
    (void)pthread_mutex_lock(&loop_lanes(loop)->lock);
    worker->call->work = *work;
    worker->call->told = false;
    worker->call->state = CALL_WAITING;
    worker->call->start_ns = wait > 0 ? loop_kernel_at(loop, work->at_ns) : 0;
    list_insert(&lane->waiting, worker->call);
    if (!shares)
        lane_arm(lane, worker->call->start_ns);
    (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
}

static bool lane_worker_withdraw(struct loop_worker *worker)
{
    struct loop *loop = worker->loop;
    struct worker_call *call = worker->call;

    (void)pthread_mutex_lock(&loop_lanes(loop)->lock);
    bool waits = call->state == CALL_WAITING;
    if (waits) {
        list_remove(&worker->lane->waiting, call);
        call->state = CALL_NONE;
    }
    (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
    if (waits)
        count_call(loop, -1);
    return waits;
}

static void lane_worker_hasten(struct loop_worker *worker)
{
    if (lane_worker_withdraw(worker))
        lane_worker_start(worker);
}

void lanes_start(struct loop *loop)
{
    struct lane *common = loop_lanes(loop)->common;

    if (!common)
        return;
    (void)pthread_mutex_lock(&loop_lanes(loop)->lock);
    if (common->waiting.first)
        lane_arm(common, common->waiting.first->start_ns);
    (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
}

/* The call has returned with its result; its worker is idle. */
static bool take_result(struct worker_call *call)
{
    struct loop *loop = call->worker->loop;

    if (call->state != CALL_RETURNED)
        return false;
    call->state = CALL_NONE;
    list_remove(call->told ? &loop_lanes(loop)->telling : &loop_lanes(loop)->answers,
                call);
    return true;
}

static void tell_returned(struct loop_worker *worker)
{
    if (!worker->hangs)
        count_call(worker->loop, -1);
    if (worker->shared && worker->lane != loop_lanes(worker->loop)->common)
        lane_trust(worker);
    loop_worker_returned(worker, worker->call->r);
}

void lanes_look(struct loop *loop)
{
    struct call_list *telling = &loop_lanes(loop)->telling;

    /* Deliver all returned calls, but none that return meanwhile, so that other sources
     * run.
     */
    (void)pthread_mutex_lock(&loop_lanes(loop)->lock);
    for (struct worker_call *c = loop_lanes(loop)->answers.first; c; c = c->next)
        c->told = true;
    *telling = loop_lanes(loop)->answers;
    loop_lanes(loop)->answers = (struct call_list){NULL, NULL};
    const struct lane *common = loop_lanes(loop)->common;
    bool idle = common && !common->runs;
    uint64_t end = idle ? patience_end(loop) : LOOP_NEVER;
    (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
    if (idle && end != LOOP_NEVER)
        loop_timer_set(&loop_lanes(loop)->patience, end, 0);
    else if (idle)
        loop_timer_disarm(&loop_lanes(loop)->patience);
    while (telling->first) { /* a callback may free any worker */
        struct loop_worker *worker = telling->first->worker;
        (void)take_result(telling->first);
        tell_returned(worker);
    }
}

/* Under the lock: kernel time that the call still has; all of it before it begins. */
static uint64_t call_left(const struct loop_worker *worker)
{
    const struct worker_call *call = worker->call;
    uint64_t deadline = call->work.deadline_ns, took = 0;

    if (call->state == CALL_RUNS)
        took = loop_kernel_ns() - worker->lane->began_ns;
    return took < deadline ? deadline - took : 0;
}

static void lane_worker_deadline(struct loop_worker *worker)
{
    struct loop *loop = worker->loop;

    (void)pthread_mutex_lock(&loop_lanes(loop)->lock);
    bool has = take_result(worker->call);
    uint64_t left = has ? 0 : call_left(worker);
    (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
    if (has) { /* returned just before its deadline */
        tell_returned(worker);
        return;
    }
    if (left > 0) { /* the thread got its processor late */
        loop_timer_set(&worker->deadline, after(loop, left), 0);
        return;
    }
    count_call(loop, -1);
    loop_worker_timed_out(worker);
}

static struct timespec monotonic_in(uint64_t left_ns)
{
    struct timespec until = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    left_ns += (uint64_t)until.tv_nsec;
    until.tv_sec += (time_t)(left_ns / NS_PER_S);
    until.tv_nsec = (long)(left_ns % NS_PER_S);
    return until;
}

/* Under the lock: waits until the call returns or passes its deadline, FINISH_NS at most.
 */
static void await_call(const struct loop_worker *worker)
{
    struct lanes *lanes = loop_lanes(worker->loop);
    const struct worker_call *call = worker->call;
    uint64_t end = loop_kernel_ns() + FINISH_NS;

    lanes->awaited = true;
    while (call->state != CALL_RETURNED) {
        uint64_t now = loop_kernel_ns(), left = now < end ? end - now : 0;
        uint64_t own = call->work.deadline_ns > 0 ? call_left(worker) : left;
        struct timespec until = monotonic_in(own < left ? own : left);
        if (own == 0 || left == 0)
            break;
        (void)pthread_cond_timedwait(&lanes->answered, &lanes->lock, &until);
    }
    lanes->awaited = false;
}

static int lane_worker_finish(struct loop_worker *worker)
{
    struct loop *loop = worker->loop;
    struct worker_call *call = worker->call;
    int r = -ETIMEDOUT;

    (void)pthread_mutex_lock(&loop_lanes(loop)->lock);
    bool own = worker->lane != loop_lanes(loop)->common;
    if (call->state != CALL_WAITING || (own && call->start_ns == 0))
        await_call(worker);
    if (call->state == CALL_WAITING) {
        list_remove(&worker->lane->waiting, call);
        call->state = CALL_NONE;
        r = -ECANCELED;
    } else if (take_result(call)) {
        r = call->r;
    }
    (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
    count_call(loop, -1);
    return r;
}

static void lane_worker_close(struct loop_worker *worker)
{
    struct loop *loop = worker->loop;
    struct worker_call *call = worker->call;

    if (!call)
        return;
    (void)pthread_mutex_lock(&loop_lanes(loop)->lock);
    bool hangs = call->state == CALL_RUNS;
    if (hangs)
        call->worker = NULL;
    else
        (void)take_result(
            call); /* it returned late and its worker is gone: no callback */
    (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
    if (!hangs)
        free(call);
    if (hangs && worker->lane == loop_lanes(loop)->common && common_split(loop, call))
        return; /* common_split() left the lane to its thread */
    lane_leave(worker->lane);
}

void lanes_fini(struct loop *loop)
{
    loop_timer_fini(&loop_lanes(loop)->patience);
}

const struct worker_ops lane_ops = {
    .open = lane_worker_open,
    .start = lane_worker_start,
    .withdraw = lane_worker_withdraw,
    .hasten = lane_worker_hasten,
    .deadline = lane_worker_deadline,
    .finish = lane_worker_finish,
    .close = lane_worker_close,
};

void lanes_init(struct lanes *lanes)
{
    pthread_condattr_t attr;

    lanes->patience_ns = LOOP_PATIENCE_NS;
    lanes->returned_fd = -1;
    (void)pthread_mutex_init(&lanes->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&lanes->answered, &attr);
    (void)pthread_condattr_destroy(&attr);
}

void lanes_destroy(struct lanes *lanes)
{
    (void)pthread_cond_destroy(&lanes->answered);
    (void)pthread_mutex_destroy(&lanes->lock);
}
