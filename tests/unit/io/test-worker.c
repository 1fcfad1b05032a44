/* Workers of both kinds of loop, by one table: see test-loop.c.  What follows on a call
 * that hangs follows on what was told of it, never on a time: any machine may be slow.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/units.h"
#include "io/loop.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

#define MS(n) ((uint64_t)(n)*NS_PER_MS)
#define LONG_NS (1000 * NS_PER_S) /* nothing here takes that long, on any machine */
/* In virtual time a call that hangs takes so long; the real one waits for the gate. */
#define HANG_NS MS(400)

struct job;

struct rig {
    struct loop *loop;
    struct loop_worker *worker, *other;
    char log[512];
    struct job *job[80];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;  /* the gate; under the lock */
    int behind; /* real calls that hang; under the lock */
    cpu_set_t cpu;
    atomic_bool begun;
};

struct job {
    struct rig *rig;
    char name;
    uint64_t takes_ns; /* HANG_NS: it hangs */
    int r;
    atomic_int ran; /* fn may still set it while a job that timed out is kept */
    void (*then)(struct rig *rig); /* once it is told */
};

__attribute__((format(printf, 2, 3))) static void note(struct rig *rig,
                                                       const char *format, ...)
{
    size_t n = strlen(rig->log);
    va_list args;

    if (n > 0 && n + 1 < sizeof rig->log)
        rig->log[n++] = ' ';
    va_start(args, format);
    (void)vsnprintf(rig->log + n, sizeof rig->log - n, format, args);
    va_end(args);
}

/* Lets what hangs return, and waits until it has. */
static void open_gate(struct rig *rig)
{
    (void)pthread_mutex_lock(&rig->lock);
    rig->open = true;
    (void)pthread_cond_broadcast(&rig->changed);
    while (rig->behind > 0)
        (void)pthread_cond_wait(&rig->changed, &rig->lock);
    (void)pthread_mutex_unlock(&rig->lock);
}

static void wait_at_gate(struct rig *rig)
{
    (void)pthread_mutex_lock(&rig->lock);
    while (!rig->open)
        (void)pthread_cond_wait(&rig->changed, &rig->lock);
    (void)pthread_mutex_unlock(&rig->lock);
}

static void passes_gate(struct rig *rig)
{
    (void)pthread_mutex_lock(&rig->lock);
    rig->behind--;
    (void)pthread_cond_broadcast(&rig->changed);
    (void)pthread_mutex_unlock(&rig->lock);
}

static int work(struct loop *loop, void *user)
{
    struct job *job = user;
    struct rig *rig = job->rig;

    if (job->takes_ns == HANG_NS && !loop_is_virtual(loop)) {
        wait_at_gate(rig);
        (void)loop_now_ns(loop); /* after loop_free(), too */
        atomic_fetch_add(&job->ran, 1);
        passes_gate(rig);
        return job->r;
    }
    loop_spend(loop, job->takes_ns);
    atomic_fetch_add(&job->ran, 1);
    return job->r;
}

static const char *result(int r)
{
    static char number[16];

    (void)snprintf(number, sizeof number, "%d", r);
    return r == -ETIMEDOUT   ? "timeout"
           : r == -EBUSY     ? "busy"
           : r == -ECANCELED ? "cancel"
                             : number;
}

static int on_done(struct loop *loop, void *user, int r)
{
    struct job *job = user;

    note(job->rig, "%c=%s", job->name, result(r));
    if (r == -ECANCELED && job->takes_ns == HANG_NS && !loop_is_virtual(loop))
        passes_gate(job->rig); /* its thread had no processor for 2 s */
    if (job->then)
        job->then(job->rig);
    return 0;
}

static struct job *submit(struct rig *rig, char name, uint64_t takes_ns, int r,
                          uint64_t deadline_ns);

static void says_how(struct rig *rig)
{
    note(rig, "%s", loop_worker_hangs(rig->worker) ? "hangs" : "well");
    loop_stop(rig->loop, 0);
}

/* The worker has recovered: it takes another call. */
static void on_late(struct loop *loop, void *user, int r)
{
    struct job *job = user;
    (void)loop;

    note(job->rig, "late-%c=%d", job->name, r);
    submit(job->rig, 'y', 0, 4, 0)->then = says_how;
}

static struct job *job_new(struct rig *rig, char name, uint64_t takes_ns, int r)
{
    struct job *job = calloc(1, sizeof *job);

    if (!job)
        return NULL;
    job->rig = rig;
    job->name = name;
    job->takes_ns = takes_ns;
    job->r = r;
    for (size_t i = 0; i < 80; i++)
        if (!rig->job[i]) {
            rig->job[i] = job;
            break;
        }
    return job;
}

static int try_submit(struct rig *rig, struct job *job, uint64_t deadline_ns)
{
    struct loop_work w = {.fn = work,
                          .done = on_done,
                          .late = on_late,
                          .work = job,
                          .deadline_ns = deadline_ns};

    if (job->takes_ns == HANG_NS && !loop_is_virtual(rig->loop)) {
        (void)pthread_mutex_lock(&rig->lock);
        rig->behind++;
        (void)pthread_mutex_unlock(&rig->lock);
    }
    return loop_worker_submit(rig->worker, &w);
}

static struct job *submit(struct rig *rig, char name, uint64_t takes_ns, int r,
                          uint64_t deadline_ns)
{
    struct job *job = job_new(rig, name, takes_ns, r);

    if (try_submit(rig, job, deadline_ns) < 0)
        note(rig, "refused-%c", name);
    return job;
}

static void in_order(struct rig *rig)
{
    (void)submit(rig, 'a', MS(2), 1, 0);
    (void)submit(rig, 'b', 0, 2, MS(1000));
    (void)submit(rig, 'c', 0, 3, 0);
    note(rig, "queued");
    note(rig, "run=%d", loop_run(rig->loop, NULL));
}

static int on_done_fails(struct loop *loop, void *user, int r)
{
    (void)loop, (void)user, (void)r;
    return -EPROTO;
}

static void done_fails(struct rig *rig)
{
    struct loop_work w = {
        .fn = work, .done = on_done_fails, .work = job_new(rig, 'a', 0, 0)};

    (void)loop_worker_submit(rig->worker, &w);
    note(rig, "%s", loop_run(rig->loop, NULL) == -EPROTO ? "fails" : "?");
}

static int too_late(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer, (void)now_ns, (void)user;
    return -ETIME;
}

/* The loop does not wait for a call that is late: this keeps it. */
static void run_on(struct rig *rig)
{
    struct loop_timer *timer;

    (void)loop_timer_new(rig->loop, loop_now_ns(rig->loop) + LONG_NS, 0, too_late, rig,
                         &timer, NULL);
    (void)loop_run(rig->loop, NULL);
}

static void says_hangs(struct rig *rig)
{
    note(rig, "%s", loop_worker_hangs(rig->worker) ? "hangs" : "well");
    open_gate(rig);
}

static void submit_x(struct rig *rig)
{
    submit(rig, 'x', 0, 3, 0)->then = says_hangs;
}

/* It times out; what waits behind it is refused, and what comes then; it returns. */
static void deadline(struct rig *rig)
{
    (void)submit(rig, 'a', HANG_NS, 1, MS(10));
    submit(rig, 'b', 0, 2, MS(10))->then = submit_x;
    run_on(rig);
}

/* The loop does not wait for a call that has timed out. */
static void hang_is_left(struct rig *rig)
{
    (void)submit(rig, 'a', HANG_NS, 1, MS(5));
    note(rig, "run=%d", loop_run(rig->loop, NULL));
    note(rig, "%s", loop_worker_hangs(rig->worker) ? "hangs" : "well");
}

/* The second worker has its calls done while the first one hangs. */
static void submit_c(struct rig *rig)
{
    submit(rig, 'c', 0, 3, LONG_NS)->then = says_how;
}

static void submit_b(struct rig *rig)
{
    rig->worker = rig->other;
    submit(rig, 'b', MS(1), 2, LONG_NS)->then = submit_c;
}

static void others_go_on(struct rig *rig)
{
    struct loop_worker *first = rig->worker;

    submit(rig, 'a', HANG_NS, 1, MS(5))->then = submit_b;
    run_on(rig);
    note(rig, "%s", loop_worker_hangs(first) ? "hangs" : "well");
    rig->worker = first;
}

static void queue_full(struct rig *rig)
{
    int took = 0, full = 0;

    for (int i = 0; i < 70; i++) {
        struct job *job = job_new(rig, 'a', i == 0 ? MS(20) : 0, 0);
        int r = try_submit(rig, job, 0);
        took += r == 0;
        full += r == -EAGAIN;
    }
    note(rig, "%d %d", took, full);
    (void)loop_run(rig->loop, NULL);
    int ran = 0;
    for (size_t i = 0; i < 80 && rig->job[i]; i++)
        ran += atomic_load(&rig->job[i]->ran);
    rig->log[4] = '\0'; /* what each was told is the same */
    note(rig, "ran %d", ran);
}

static void cancel_at_free(struct rig *rig)
{
    (void)submit(rig, 'a', MS(20), 1, 0);
    (void)submit(rig, 'b', 0, 2, 0);
    loop_worker_free(rig->worker);
    note(rig, "freed");
    (void)loop_run(rig->loop, NULL);
}

static void timeout_at_free(struct rig *rig)
{
    (void)submit(rig, 'a', HANG_NS, 1, MS(10));
    (void)submit(rig, 'b', 0, 2, 0);
    loop_worker_free(rig->worker);
    note(rig, "freed");
}

static int on_done_frees(struct loop *loop, void *user, int r)
{
    struct job *job = user;
    (void)loop;

    note(job->rig, "%c=%s", job->name, result(r));
    loop_worker_free(job->rig->worker);
    struct loop_work w = {.fn = work, .done = on_done, .work = job};
    note(job->rig, "%s",
         loop_worker_submit(job->rig->worker, &w) == -ECANCELED ? "closed" : "?");
    return 0;
}

static void free_in_done(struct rig *rig)
{
    struct loop_work w = {
        .fn = work, .done = on_done_frees, .work = job_new(rig, 'a', 0, 5)};

    (void)loop_worker_submit(rig->worker, &w);
    (void)submit(rig, 'b', 0, 2, 0);
    (void)loop_run(rig->loop, NULL);
}

static int on_done_again(struct loop *loop, void *user, int r)
{
    struct job *job = user;
    (void)loop;

    note(job->rig, "%d", r);
    if (++job->r < 4) {
        struct loop_work w = {.fn = work, .done = on_done_again, .work = job};
        (void)loop_worker_submit(job->rig->worker, &w);
    }
    return 0;
}

static void submit_in_done(struct rig *rig)
{
    struct loop_work w = {
        .fn = work, .done = on_done_again, .work = job_new(rig, 'a', 0, 0)};

    (void)loop_worker_submit(rig->worker, &w);
    (void)loop_run(rig->loop, NULL);
}

/* loop_free() answers what is queued; a hung call may use the loop's clock after. */
static void loop_free_with_hang(struct rig *rig)
{
    (void)submit(rig, 'a', HANG_NS, 1, MS(5));
    (void)loop_run(rig->loop, NULL);
    (void)submit(rig, 'b', 0, 2, 0);
    loop_free(rig->loop);
    rig->loop = NULL;
}

static int work_clock(struct loop *loop, void *user)
{
    struct job *job = user;
    uint64_t began = loop_now_ns(loop);

    loop_spend(loop, MS(3));
    uint64_t took = loop_now_ns(loop) - began;
    bool good = loop_is_virtual(loop) ? took == MS(3) : took >= MS(3);
    return good ? 1 : (job->r = -1);
}

static void spend_shows(struct rig *rig)
{
    uint64_t began = loop_now_ns(rig->loop);
    struct loop_work w = {
        .fn = work_clock, .done = on_done, .work = job_new(rig, 'a', 0, 0)};

    (void)loop_worker_submit(rig->worker, &w);
    (void)loop_run(rig->loop, NULL);
    note(rig, "%s", loop_now_ns(rig->loop) - began >= MS(3) ? "later" : "?");
}

static int on_withdrawn(struct loop *loop, void *user, int r)
{
    (void)loop, (void)r;
    note(user, "told");
    return 0;
}

static int stop_now(struct loop *loop, void *user, int r)
{
    note(user, "%d", r);
    loop_stop(loop, 0);
    return 0;
}

static int nothing(struct loop *loop, void *user)
{
    (void)loop, (void)user;
    return 6;
}

/* A call waits for its time, others come first; it is hastened and taken back.
 */
static void in_time(struct rig *rig)
{
    uint64_t began = loop_now_ns(rig->loop);
    struct loop_work back,
        w = {.fn = nothing, .done = stop_now, .work = rig, .at_ns = began + MS(20)};

    (void)loop_worker_submit(rig->worker, &w);
    (void)loop_run(rig->loop, NULL);
    note(rig, loop_now_ns(rig->loop) >= began + MS(20) ? "in-time" : "early");
    w.at_ns = began + MS(10000000);
    (void)loop_worker_submit(rig->worker, &w);
    (void)loop_worker_submit(
        rig->worker, &(struct loop_work){.fn = nothing, .done = stop_now, .work = rig});
    (void)loop_run(rig->loop, NULL);
    note(rig, loop_now_ns(rig->loop) < began + MS(10000000) ? "first" : "late");
    loop_worker_hasten(rig->worker);
    (void)loop_run(rig->loop, NULL);
    note(rig, loop_now_ns(rig->loop) < began + MS(10000000) ? "hastened" : "late");
    w.done = on_withdrawn;
    (void)loop_worker_submit(rig->worker, &w);
    bool first = loop_worker_withdraw(rig->worker, &back);
    note(rig, "%d %d", first && back.work == rig,
         loop_worker_withdraw(rig->worker, &back));
    (void)submit(rig, 'a', MS(2), 1, 0);
    (void)loop_worker_submit(rig->worker, &w);
    note(rig, "%d", loop_worker_withdraw(rig->worker, &back));
    note(rig, "run=%d", loop_run(rig->loop, NULL));
}

static int on_this_cpu(struct loop *loop, void *user)
{
    struct rig *rig = user;
    (void)loop;

    return -pthread_setaffinity_np(pthread_self(), sizeof rig->cpu, &rig->cpu);
}

static int begin(struct loop *loop, void *user)
{
    struct rig *rig = user;
    (void)loop;

    atomic_store(&rig->begun, true);
    return 0;
}

static int on_begun(struct loop *loop, void *user, int r)
{
    struct rig *rig = user;

    note(rig, "%s", r == 0 || atomic_load(&rig->begun) ? "begun" : result(r));
    loop_stop(loop, 0);
    return 0;
}

/* Computes longer than the call's deadline, before which the call cannot begin. */
static int submit_and_compute(struct loop *loop, void *user, int r)
{
    struct rig *rig = user;
    uint64_t began = loop_now_ns(loop);
    struct loop_work w = {
        .fn = begin, .done = on_begun, .work = rig, .deadline_ns = MS(20)};
    (void)r;

    (void)loop_worker_submit(rig->worker, &w);
    while (!loop_is_virtual(loop) && loop_now_ns(loop) < began + MS(30))
        ;
    return 0;
}

/* The thread of the worker shares a processor with the loop's, which has it first where
 * this process may set real-time priorities.
 */
static void late_start(struct rig *rig)
{
    struct loop_work w = {.done = submit_and_compute, .work = rig};
    pthread_t self = pthread_self();
    cpu_set_t all;

    (void)pthread_getaffinity_np(self, sizeof all, &all);
    CPU_ZERO(&rig->cpu);
    CPU_SET((size_t)sched_getcpu(), &rig->cpu);
    (void)pthread_setaffinity_np(self, sizeof rig->cpu, &rig->cpu);
    (void)pthread_setschedparam(self, SCHED_FIFO, &(struct sched_param){1});
    w.fn = loop_is_virtual(rig->loop) ? nothing : on_this_cpu;
    (void)loop_worker_submit(rig->worker, &w);
    (void)loop_run(rig->loop, NULL);
    (void)pthread_setschedparam(self, SCHED_OTHER, &(struct sched_param){0});
    (void)pthread_setaffinity_np(self, sizeof all, &all);
}

static const struct {
    const char *name, *want;
    void (*run)(struct rig *rig);
} cases[] = {
    {"calls come back in order", "queued a=1 b=2 c=3 run=0", in_order},
    {"calls in time", "6 in-time 6 first 6 hastened 1 0 1 a=1 run=0", in_time},
    {"done fails", "fails", done_fails},
    {"deadline, refusals, late, recovery",
     "a=timeout b=busy x=busy hangs late-a=1 y=4 well", deadline},
    {"a deadline counts from the call's start", "begun", late_start},
    {"nobody waits for a hung call", "a=timeout run=0 hangs", hang_is_left},
    {"a hang delays no other worker", "a=timeout b=2 c=3 well hangs", others_go_on},
    {"the queue has a bound", "64 6 ran 64", queue_full},
    {"freed: the running call is awaited, the rest cancelled", "a=1 b=cancel freed",
     cancel_at_free},
    {"freed: a call that hangs is left", "a=timeout b=cancel freed", timeout_at_free},
    {"freed in its own callback", "a=5 b=cancel closed", free_in_done},
    {"submitted in a callback", "0 1 2 3", submit_in_done},
    {"loop_free with a hung call", "a=timeout b=cancel", loop_free_with_hang},
    {"loop_spend shows in the clock", "a=1 later", spend_shows},
};

static void run_case(size_t i, bool is_virtual)
{
    /* A call that hangs keeps its job for good: so everything stays reachable. */
    static struct rig *kept[2 * n_elements(cases)];
    struct rig *rig = kept[2 * i + is_virtual] = calloc(1, sizeof *rig);
    char name[128];
    int r = -ENOMEM;

    (void)snprintf(name, sizeof name, "%s: %s", is_virtual ? "virtual" : "real",
                   cases[i].name);
    if (rig)
        r = is_virtual ? loop_new_virtual(MS(1000), 0, &rig->loop, NULL)
                       : loop_new_real((struct loop_clock){0, 1}, &rig->loop, NULL);
    if (r == 0)
        r = loop_worker_new(rig->loop, "test", &rig->worker, NULL);
    if (r == 0)
        r = loop_worker_new(rig->loop, "other-worker-with-a-long-name", &rig->other,
                            NULL);
    if (!ok(r == 0, "%s: a loop and two workers", name))
        return;
    (void)pthread_mutex_init(&rig->lock, NULL);
    (void)pthread_cond_init(&rig->changed, NULL);
    cases[i].run(rig);
    loop_free(rig->loop);
    open_gate(rig);
    is_str(rig->log, cases[i].want, name);
}

/* Virtual only: a call that never returns. */
static void never(void)
{
    struct rig rig = {0};

    (void)loop_new_virtual(0, 0, &rig.loop, NULL);
    if (!ok(loop_worker_new(rig.loop, "never", &rig.worker, NULL) == 0, "a worker"))
        return;
    (void)submit(&rig, 'a', UINT64_MAX, 1, MS(10));
    note(&rig, "run=%d", loop_run(rig.loop, NULL));
    ok(loop_now_ns(rig.loop) == MS(10), "time stops at the deadline");
    run_on(&rig);
    note(&rig, "%s", loop_worker_hangs(rig.worker) ? "hangs" : "well");
    loop_free(rig.loop);
    is_str(rig.log, "a=timeout run=0 hangs", "a virtual call that never returns");
    free(rig.job[0]);
}

int main(void)
{
    for (size_t i = 0; i < n_elements(cases); i++) {
        run_case(i, true);
        run_case(i, false);
    }
    never();
    return done();
}
