/* Workers of both kinds of loop, by one table: see test-loop.c. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/units.h"
#include "io/loop.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

#define MS(n) ((uint64_t)(n)*NS_PER_MS)

struct rig {
    struct loop *loop;
    struct loop_worker *worker, *other;
    char log[512];
    struct job *job[80];
    int n_done, n_busy;
};

struct job {
    struct rig *rig;
    char name;
    uint64_t takes_ns;
    int r;
    atomic_int ran; /* fn may still set it while a job that timed out is kept */
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

static int work(struct loop *loop, void *user)
{
    struct job *job = user;

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
    (void)loop;

    note(job->rig, "%c=%s", job->name, result(r));
    return 0;
}

static void on_late(struct loop *loop, void *user, int r)
{
    struct job *job = user;
    (void)loop;

    note(job->rig, "late-%c=%d", job->name, r);
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

static int submit(struct rig *rig, char name, uint64_t takes_ns, int r,
                  uint64_t deadline_ns)
{
    struct loop_work w = {.fn = work,
                          .done = on_done,
                          .late = on_late,
                          .work = job_new(rig, name, takes_ns, r),
                          .deadline_ns = deadline_ns};
    return loop_worker_submit(rig->worker, &w);
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

static int on_tick(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct rig *rig = user;
    (void)timer, (void)now_ns;

    note(rig, "%s", loop_worker_hangs(rig->worker) ? "hangs" : "well");
    return 0;
}

static void tick(struct rig *rig, uint64_t in_ns)
{
    struct loop_timer *timer;

    (void)loop_timer_new(rig->loop, loop_now_ns(rig->loop) + in_ns, 0, on_tick, rig,
                         &timer, NULL);
}

static int on_submit(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct rig *rig = user;
    (void)timer, (void)now_ns;

    (void)submit(rig, 'x', 0, 4, 0);
    return 0;
}

static void submit_in(struct rig *rig, uint64_t in_ns)
{
    struct loop_timer *timer;

    (void)loop_timer_new(rig->loop, loop_now_ns(rig->loop) + in_ns, 0, on_submit, rig,
                         &timer, NULL);
}

/* Times out at 10, returns at 250 ms; what waits behind it is refused. */
static void deadline(struct rig *rig)
{
    (void)submit(rig, 'a', MS(450), 1, MS(10));
    (void)submit(rig, 'b', 0, 2, MS(10));
    submit_in(rig, MS(60)); /* refused at once */
    tick(rig, MS(250));
    submit_in(rig, MS(700)); /* it has recovered */
    tick(rig, MS(850));
    (void)loop_run(rig->loop, NULL);
}

/* The loop does not wait for a call that has timed out. */
static void hang_is_left(struct rig *rig)
{
    (void)submit(rig, 'a', MS(300), 1, MS(5));
    note(rig, "run=%d", loop_run(rig->loop, NULL));
    note(rig, "%s", loop_worker_hangs(rig->worker) ? "hangs" : "well");
}

static void others_go_on(struct rig *rig)
{
    struct loop_worker *first = rig->worker;

    (void)submit(rig, 'a', MS(600), 1, MS(200));
    rig->worker = rig->other;
    (void)submit(rig, 'b', MS(1), 2, MS(1000));
    (void)submit(rig, 'c', MS(1), 3, MS(1000));
    (void)loop_run(rig->loop, NULL);
    note(rig, "%s", loop_worker_hangs(rig->worker) ? "hangs" : "well");
    rig->worker = first;
}

static void queue_full(struct rig *rig)
{
    int took = 0, full = 0;

    for (int i = 0; i < 70; i++) {
        int r = submit(rig, 'a', i == 0 ? MS(20) : 0, 0, 0);
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
    (void)submit(rig, 'a', MS(400), 1, MS(10));
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
    (void)submit(rig, 'a', MS(400), 1, MS(5));
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
    return took >= MS(3) && took < MS(1000) ? 1 : (job->r = -1);
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

static const struct {
    const char *name, *want;
    void (*run)(struct rig *rig);
} cases[] = {
    {"calls come back in order", "queued a=1 b=2 c=3 run=0", in_order},
    {"done fails", "fails", done_fails},
    {"deadline, refusals, late, recovery",
     "a=timeout b=busy x=busy hangs late-a=1 x=4 well", deadline},
    {"nobody waits for a hung call", "a=timeout run=0 hangs", hang_is_left},
    {"a hang delays no other worker", "b=2 c=3 a=timeout well", others_go_on},
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
    cases[i].run(rig);
    loop_free(rig->loop);
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
    tick(&rig, MS(100000));
    (void)loop_run(rig.loop, NULL);
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
