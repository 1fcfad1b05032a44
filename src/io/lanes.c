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
/* Consecutive fast calls after which a slow worker shares the common lane again. */
enum { TRUSTED = 64 };

struct lane {
    struct loop *loop; /* its thread holds a reference */
    size_t members;    /* workers */
    pthread_t thread;
    int timer_fd;      /* its thread waits only for this: setting a time wakes no other */
    uint64_t armed_ns; /* the time set; LOOP_NEVER: none, or it has passed */
    struct call_list waiting; /* by start_ns, then by age */
    struct worker_call *runs;
    uint64_t began_ns; /* start of the call that runs, in the kernel's time */
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

static void post(struct worker_call *call, struct answer *answer, int r)
{
    struct answer_list *list = &loop_lanes(call->worker->loop)->answers;

    *answer = (struct answer){.call = call, .is_part = answer != &call->answer, .r = r};
    if (list->last)
        list->last->next = answer;
    else
        list->first = answer;
    list->last = answer;
}

/* Drops the results of `call` in list. */
static void forget(struct answer_list *list, const struct worker_call *call)
{
    struct answer_list kept = {NULL, NULL};

    for (struct answer *a = list->first; a; a = a->next) {
        if (a->call == call)
            continue;
        if (kept.last)
            kept.last->next = a;
        else
            kept.first = a;
        kept.last = a;
    }
    if (kept.last)
        kept.last->next = NULL;
    *list = kept;
}

static void forget_answers(struct loop *loop, const struct worker_call *call)
{
    forget(&loop_lanes(loop)->answers, call);
    forget(&loop_lanes(loop)->telling, call);
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

/* at_ns: LOOP_NEVER disarms it. */
static void set_timer(int fd, uint64_t at_ns)
{
    struct itimerspec when = {0};

    if (at_ns != LOOP_NEVER) {
        when.it_value.tv_sec = (time_t)(at_ns / NS_PER_S);
        when.it_value.tv_nsec = (long)(at_ns % NS_PER_S);
        if (at_ns == 0)
            when.it_value.tv_nsec = 1; /* 0 would disarm it */
    }
    (void)timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Under the lock: the time at which a call of the common lane that begins at start_ns,
 * or at once, should have returned.
 */
static uint64_t patience_end(const struct lanes *lanes, uint64_t start_ns)
{
    uint64_t now = loop_kernel_ns();

    return (start_ns > now ? start_ns : now) + lanes->patience_ns;
}

/* Under the lock, like the next one. */
static void set_patience(struct lanes *lanes, uint64_t until_ns)
{
    lanes->patient_until_ns = until_ns;
    set_timer(lanes->patience_fd, until_ns);
}

/* The lane's thread checks its calls again at start_ns. */
static void lane_arm(struct lane *lane, uint64_t start_ns)
{
    struct lanes *lanes = loop_lanes(lane->loop);
    bool sooner = start_ns < lane->armed_ns;

    if (sooner) {
        lane->armed_ns = start_ns;
        set_timer(lane->timer_fd, start_ns);
    }
    if (lane == lanes->common && !lane->runs &&
        (sooner || lanes->patient_until_ns == LOOP_NEVER))
        set_patience(lanes, patience_end(lanes, start_ns));
}

/* ---- in a lane's thread, under the lock ---- */

/* The call is over, and its worker is not freed. */
static void call_return(struct worker_call *call, int r)
{
    struct lanes *lanes = loop_lanes(call->worker->loop);

    call->r = r;
    call->state = CALL_RETURNED;
    post(call, &call->answer, r);
    lanes->news = true;
    if (lanes->awaited)
        (void)pthread_cond_signal(&lanes->answered);
}

/* at_ns: in the loop's time; 0: not again. */
static bool call_again(struct lane *lane, struct worker_call *call, int r, uint64_t at_ns)
{
    if (at_ns == 0 || call->once || lane->quit || call->n_parts == LOOP_RUNS - 1 ||
        lane != loop_lanes(lane->loop)->common)
        return false;
    post(call, &call->part[call->n_parts++], r);
    call->state = CALL_WAITING;
    call->start_ns = loop_kernel_at(lane->loop, at_ns);
    list_insert(&lane->waiting, call);
    return true;
}

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
    uint64_t again = work.again && r >= 0 ? work.again(loop, work.work) : 0;
    (void)pthread_mutex_lock(&loop_lanes(loop)->lock);
    lane->runs = NULL;
    if (!call->worker) {
        free(call);
        return;
    }
    call->took_ns = loop_kernel_ns() - lane->began_ns;
    if (!call_again(lane, call, r, again))
        call_return(call, r);
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
        if (lane->quit || lane_is_due(lane) || !loop_lanes(loop)->news)
            continue;
        loop_lanes(loop)->news = false;
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

static void set_common(struct loop *loop, struct lane *lane)
{
    struct lanes *lanes = loop_lanes(loop);

    (void)pthread_mutex_lock(&lanes->lock);
    lanes->common = lane;
    if (!lane)
        set_patience(lanes, LOOP_NEVER);
    (void)pthread_mutex_unlock(&lanes->lock);
}

static void lane_leave(struct lane *lane)
{
    struct loop *loop = lane->loop;

    if (--lane->members > 0)
        return;
    if (loop_lanes(loop)->common == lane)
        set_common(loop, NULL);
    lane_close(lane);
}

/* ---- the common lane ---- */

/* Converts kernel time to the loop's clock. */
static uint64_t after(const struct loop *loop, uint64_t ns)
{
    long double takes = (long double)ns * (long double)loop_speed(loop);

    return loop_now_ns(loop) + (takes < 9e18L ? (uint64_t)takes : (uint64_t)INT64_MAX);
}

static int common_join(struct loop_worker *worker)
{
    struct loop *loop = worker->loop;
    struct lane *lane = loop_lanes(loop)->common;
    int r = lane ? 0 : lane_new(loop, "shared", &lane);

    if (r < 0)
        return r;
    set_common(loop, lane);
    worker->lane = lane;
    lane->members++;
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

/* Moves the other workers of the former common lane. */
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

/* If a call still hangs in the common lane, leaves that lane to it and moves the other
 * workers to a new lane.  True: done; false: no call hangs, or no memory or no thread is
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
        loop_lanes(loop)->common = fresh;
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
    if (fresh->members == 0) {
        set_common(loop, NULL);
        lane_close(fresh);
    }
    if (old->members == 0)
        lane_close(old);
    return true;
}

/* Under the lock: the next time to check the common lane. */
static uint64_t next_patience(const struct lanes *lanes)
{
    const struct lane *lane = lanes->common;
    const struct worker_call *first = lane ? lane->waiting.first : NULL;

    if (lane && lane->runs)
        return lane->began_ns + lanes->patience_ns;
    return first ? patience_end(lanes, first->start_ns) : LOOP_NEVER;
}

/* The time for the call in the common lane is over, or another call has begun. */
void lanes_on_patience(struct loop *loop)
{
    struct lanes *lanes = loop_lanes(loop);
    uint64_t expired;

    (void)!read(lanes->patience_fd, &expired, sizeof expired);
    (void)pthread_mutex_lock(&lanes->lock);
    const struct lane *lane = lanes->common;
    const struct worker_call *call = lane ? lane->runs : NULL;
    bool hangs = call && loop_kernel_ns() - lane->began_ns >= lanes->patience_ns;
    (void)pthread_mutex_unlock(&lanes->lock);
    if (hangs)
        (void)common_split(loop, call);
    (void)pthread_mutex_lock(&lanes->lock);
    uint64_t next = next_patience(lanes);
    uint64_t least = loop_kernel_ns() + lanes->patience_ns; /* no thread is available */
    set_patience(lanes, hangs && next < least ? least : next);
    (void)pthread_mutex_unlock(&lanes->lock);
    lanes_look(loop); /* the results before that call */
}

/* Decides whether a worker that got a lane of its own after a slow call may share again.
 */
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

static void count_call(struct loop *loop, int by)
{
    loop_lanes(loop)->n_calls += (size_t)by;
    loop_wait_for_calls(loop, loop_lanes(loop)->n_calls > 0);
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
    count_call(loop, 1);
    (void)pthread_mutex_lock(&loop_lanes(loop)->lock);
    worker->call->work = *work;
    worker->call->once = work->at_ns == 0; /* others wait for it */
    worker->call->n_parts = 0;
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
    bool waits = call->state == CALL_WAITING, has_run = call->n_parts > 0;
    call->once = true;
    if (waits)
        list_remove(&worker->lane->waiting, call);
    if (waits && has_run) {
        call_return(call, 0);
        loop_lanes(loop)->news = false;
        loop_lanes(loop)->withdrew = true;
    } else if (waits)
        call->state = CALL_NONE;
    (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
    if (waits && !has_run)
        count_call(loop, -1);
    return waits && !has_run;
}

static void lane_worker_hasten(struct loop_worker *worker)
{
    if (lane_worker_withdraw(worker))
        lane_worker_start(worker);
}

void lanes_start(struct loop *loop)
{
    struct lanes *lanes = loop_lanes(loop);

    if (lanes->withdrew) /* one wake-up for all of them */
        (void)!write(lanes->returned_fd, &(uint64_t){1}, sizeof(uint64_t));
    lanes->withdrew = false;
    if (!lanes->common)
        return;
    (void)pthread_mutex_lock(&lanes->lock);
    if (lanes->common->waiting.first)
        lane_arm(lanes->common, lanes->common->waiting.first->start_ns);
    /* A thread that was awake may have begun a call by itself. */
    uint64_t next = next_patience(lanes);
    if (next < lanes->patient_until_ns)
        set_patience(lanes, next);
    (void)pthread_mutex_unlock(&lanes->lock);
}

/* Under the lock: the call has returned with its result; its worker is idle. */
static bool take_result(struct worker_call *call)
{
    struct loop *loop = call->worker->loop;

    if (call->state != CALL_RETURNED)
        return false;
    call->state = CALL_NONE;
    forget_answers(loop, call);
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

static void tell_first(struct loop *loop)
{
    struct answer *answer = loop_lanes(loop)->telling.first;
    struct loop_worker *worker = answer->call->worker;
    int r = answer->r;
    bool is_part = answer->is_part;

    (void)pthread_mutex_lock(&loop_lanes(loop)->lock);
    if (is_part) {
        loop_lanes(loop)->telling.first = answer->next;
        if (!answer->next)
            loop_lanes(loop)->telling.last = NULL;
    } else
        (void)take_result(answer->call);
    (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
    if (is_part)
        loop_worker_part(worker, r);
    else
        tell_returned(worker);
}

void lanes_look(struct loop *loop)
{

    /* Delivers all present results, but no later ones, so that other sources run. */
    (void)pthread_mutex_lock(&loop_lanes(loop)->lock);
    loop_lanes(loop)->telling = loop_lanes(loop)->answers;
    loop_lanes(loop)->answers = (struct answer_list){NULL, NULL};
    (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
    while (loop_lanes(loop)->telling.first) /* a callback may free any worker */
        tell_first(loop);
}

/* Under the lock: the remaining kernel time of the call; all of it before it begins. */
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
    if (!has && left == 0)
        forget_answers(loop, worker->call);
    (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
    if (has) { /* returned just before its deadline */
        tell_returned(worker);
        return;
    }
    if (left > 0) { /* the thread got the processor late */
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
    call->once = true;
    bool own = worker->lane != loop_lanes(loop)->common;
    if (call->state != CALL_WAITING || (own && call->start_ns == 0))
        await_call(worker);
    if (call->state == CALL_WAITING) {
        list_remove(&worker->lane->waiting, call);
        call->state = CALL_NONE;
        forget_answers(loop, call);
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
    forget_answers(loop, call); /* its worker is gone: no callback */
    if (hangs)
        call->worker = NULL;
    (void)pthread_mutex_unlock(&loop_lanes(loop)->lock);
    if (!hangs)
        free(call);
    if (hangs && worker->lane == loop_lanes(loop)->common && common_split(loop, call))
        return; /* common_split() left the lane to its thread */
    lane_leave(worker->lane);
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
    lanes->returned_fd = lanes->patience_fd = -1;
    lanes->patient_until_ns = LOOP_NEVER;
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
