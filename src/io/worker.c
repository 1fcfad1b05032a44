/* Workers: the queue, deadlines and results that both kinds of loop share.
 *
 * The queue lives in the loop's thread; the worker's own thread (real) holds one
 * call at a time.  A call that passes its deadline leaves the queue, and until it
 * returns everything else is refused with -EBUSY.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "io/workers.h"

static void start_next(struct loop_worker *worker)
{
    if (worker->runs || worker->hangs || worker->n == 0)
        return;
    worker->runs = true;
    loop_worker_ops(worker->loop)->start(worker);
}

static struct loop_work pop(struct loop_worker *worker)
{
    struct loop_work work = worker->queue[worker->head];

    worker->head = (worker->head + 1) % WORKER_QUEUE;
    worker->n--;
    return work;
}

/* Called after a callback; false if that freed the worker. */
static bool told(struct loop_worker *worker)
{
    worker->calling--;
    if (!worker->freed || worker->calling > 0)
        return !worker->freed;
    free(worker);
    return false;
}

/* Makes the callback; false if it freed the worker. */
static bool tell(struct loop_worker *worker, const struct loop_work *work, int r,
                 bool late)
{
    struct loop *loop = worker->loop;

    worker->calling++;
    if (!late)
        loop_took(loop, work->done(loop, work->work, r));
    else if (work->late)
        work->late(loop, work->work, r);
    return told(worker);
}

void loop_worker_part(struct loop_worker *worker, int r)
{
    const struct loop_work *work = &worker->queue[worker->head];

    worker->calling++;
    loop_took(worker->loop, work->part(worker->loop, work->work, r));
    (void)told(worker);
}

void loop_worker_returned(struct loop_worker *worker, int r)
{
    struct loop_work work;
    bool late = worker->hangs;

    if (late) {
        work = worker->hung;
        worker->hangs = false;
        loop_timer_disarm(&worker->refuse);
    } else {
        loop_timer_disarm(&worker->deadline);
        work = pop(worker);
        worker->runs = false;
    }
    if (tell(worker, &work, r, late))
        start_next(worker);
}

void loop_worker_timed_out(struct loop_worker *worker)
{
    worker->hung = pop(worker);
    worker->runs = false;
    worker->hangs = true;
    if (worker->n > 0)
        loop_timer_set(&worker->refuse, loop_now_ns(worker->loop), 0);
    (void)tell(worker, &worker->hung, -ETIMEDOUT, false);
}

static int on_refuse(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct loop_worker *worker = user;
    (void)timer, (void)now_ns;

    for (size_t n = worker->n; n > 0 && worker->hangs; n--) {
        struct loop_work work = pop(worker);
        if (!tell(worker, &work, -EBUSY, false))
            break;
    }
    return 0;
}

static int on_deadline(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct loop_worker *worker = user;
    (void)timer, (void)now_ns;

    loop_worker_ops(worker->loop)->deadline(worker);
    return 0;
}

static int on_begins(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct loop_worker *worker = user;
    (void)timer, (void)now_ns;

    loop_worker_ops(worker->loop)->start(worker);
    return 0;
}

static int on_returns(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct loop_worker *worker = user;
    (void)timer, (void)now_ns;

    loop_worker_returned(worker, worker->r);
    return 0;
}

static void fini_timers(struct loop_worker *worker)
{
    loop_timer_fini(&worker->deadline);
    loop_timer_fini(&worker->refuse);
    loop_timer_fini(&worker->begins);
    loop_timer_fini(&worker->returns);
}

static int worker_new(struct loop *loop, const char *name, bool shared,
                      struct loop_worker **ret, uw_error *err)
{
    struct loop_worker *worker = calloc(1, sizeof *worker);

    if (!worker)
        return fail(err, -ENOMEM, "worker %s: out of memory", name);
    worker->loop = loop;
    worker->shared = shared;
    (void)snprintf(worker->name, sizeof worker->name, "%.15s", name);
    int r = loop_timer_init(&worker->deadline, loop, on_deadline, worker);
    if (r >= 0)
        r = loop_timer_init(&worker->refuse, loop, on_refuse, worker);
    if (r >= 0)
        r = loop_timer_init(&worker->begins, loop, on_begins, worker);
    if (r >= 0)
        r = loop_timer_init(&worker->returns, loop, on_returns, worker);
    if (r < 0)
        (void)fail(err, r, "worker %s: out of memory", name);
    else
        r = loop_worker_ops(loop)->open(worker, err);
    if (r < 0) {
        fini_timers(worker);
        free(worker);
        return r;
    }
    loop_link_add(loop_workers(loop), &worker->link);
    *ret = worker;
    return 0;
}

int loop_worker_new(struct loop *loop, const char *name, struct loop_worker **ret,
                    uw_error *err)
{
    return worker_new(loop, name, false, ret, err);
}

int loop_worker_new_shared(struct loop *loop, const char *name, struct loop_worker **ret,
                           uw_error *err)
{
    return worker_new(loop, name, true, ret, err);
}

static struct loop_work *queued(struct loop_worker *worker, size_t i)
{
    return &worker->queue[(worker->head + i) % WORKER_QUEUE];
}

/* Calls that wait for their time come after those that do not. */
static void queue_add(struct loop_worker *worker, const struct loop_work *work)
{
    bool now = work->at_ns == 0;
    size_t i = worker->n++;

    if (now && worker->runs && queued(worker, 0)->at_ns > 0 &&
        loop_worker_ops(worker->loop)->withdraw(worker)) {
        loop_timer_disarm(&worker->deadline);
        worker->runs = false;
    }
    for (; now && i > worker->runs && queued(worker, i - 1)->at_ns > 0; i--)
        *queued(worker, i) = *queued(worker, i - 1);
    *queued(worker, i) = *work;
}

int loop_worker_submit(struct loop_worker *worker, const struct loop_work *work)
{
    if (worker->freed)
        return -ECANCELED;
    if (worker->n == WORKER_QUEUE)
        return -EAGAIN;
    queue_add(worker, work);
    if (worker->hangs && (worker->refuse.at == 0 || work->at_ns < worker->refuse.due_ns))
        loop_timer_set(&worker->refuse, work->at_ns, 0); /* not before its time */
    start_next(worker);
    return 0;
}

/* Takes queue[i], which has not been started. */
static struct loop_work take_queued(struct loop_worker *worker, size_t i)
{
    struct loop_work work = *queued(worker, i);

    for (; i + 1 < worker->n; i++)
        *queued(worker, i) = *queued(worker, i + 1);
    worker->n--;
    return work;
}

bool loop_worker_withdraw(struct loop_worker *worker, struct loop_work *ret)
{
    size_t i = worker->runs;

    while (i < worker->n && queued(worker, i)->at_ns == 0)
        i++;
    if (i < worker->n) {
        *ret = take_queued(worker, i);
        return true;
    }
    if (!worker->runs || queued(worker, 0)->at_ns == 0 ||
        !loop_worker_ops(worker->loop)->withdraw(worker))
        return false;
    loop_timer_disarm(&worker->deadline);
    *ret = pop(worker);
    worker->runs = false;
    start_next(worker);
    return true;
}

void loop_worker_hasten(struct loop_worker *worker)
{
    bool waits = worker->runs && queued(worker, 0)->at_ns > 0;

    for (size_t i = 0; i < worker->n; i++)
        queued(worker, i)->at_ns = 0;
    if (waits)
        loop_worker_ops(worker->loop)->hasten(worker);
}

bool loop_worker_hangs(const struct loop_worker *worker)
{
    return worker->hangs;
}

void loop_worker_free(struct loop_worker *worker)
{
    if (!worker || worker->freed)
        return;

    struct loop *loop = worker->loop;
    worker->freed = true;
    worker->calling++; /* tell() does not free the worker in this case */
    loop_link_remove(&worker->link);
    if (worker->runs) {
        int r = loop_worker_ops(loop)->finish(worker);
        struct loop_work work = pop(worker);
        worker->runs = false;
        (void)tell(worker, &work, r, false);
    }
    while (worker->n > 0) {
        struct loop_work work = pop(worker);
        (void)tell(worker, &work, -ECANCELED, false);
    }
    fini_timers(worker);
    loop_worker_ops(loop)->close(worker);
    if (--worker->calling == 0)
        free(worker);
}
