/* Workers that share a thread: who hangs there keeps it, and delays nobody else.
 * What a call waits for here is another's answer, never a time.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"
#include "io/loop-inside.h"
#include "tap.h"

enum { WORKERS = 4, CALLS = 200 };
#define LONG_NS (1000 * NS_PER_S) /* nothing here takes that long, on any machine */

struct rig;

struct job {
    struct rig *rig;
    char name;
    bool blocks; /* until the gate is open */
    bool begun;  /* under the lock */
    pthread_t thread;
    unsigned runs, run; /* how often, and which one of them */
    unsigned blocks_in; /* … run; 0: none */
    uint64_t at_ns;     /* of the first run; the others follow a millisecond apart */
    void (*then)(struct rig *rig, struct job *job); /* in done */
};

struct rig {
    struct loop *loop;
    struct loop_worker *worker[WORKERS];
    char log[256];
    struct job job[CALLS];
    size_t n_jobs;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;      /* under the lock */
    atomic_int ran; /* calls that have returned */
    int ran_first;  /* … when the first of them was told */
};

static void gate(struct rig *rig, bool open)
{
    (void)pthread_mutex_lock(&rig->lock);
    rig->open = open;
    (void)pthread_cond_broadcast(&rig->changed);
    (void)pthread_mutex_unlock(&rig->lock);
}

static int work(struct loop *loop, void *user)
{
    struct job *job = user;
    struct rig *rig = job->rig;
    (void)loop;

    job->thread = pthread_self();
    (void)pthread_mutex_lock(&rig->lock);
    job->run++;
    job->blocks |= job->run == job->blocks_in;
    job->begun = true;
    (void)pthread_cond_broadcast(&rig->changed);
    while (job->blocks && !rig->open)
        (void)pthread_cond_wait(&rig->changed, &rig->lock);
    (void)pthread_mutex_unlock(&rig->lock);
    atomic_fetch_add(&rig->ran, 1);
    return 1;
}

static void note(struct rig *rig, const struct job *job, const char *what)
{
    size_t n = strlen(rig->log);

    (void)snprintf(rig->log + n, sizeof rig->log - n, "%s%s%c", n > 0 ? " " : "", what,
                   job->name);
}

static int on_done(struct loop *loop, void *user, int r)
{
    struct job *job = user;
    struct rig *rig = job->rig;
    (void)loop;

    if (rig->ran_first == 0)
        rig->ran_first = atomic_load(&rig->ran);
    note(rig, job,
         r == 1            ? ""
         : r == 0          ? "end-"
         : r == -ETIMEDOUT ? "timeout-"
         : r == -EBUSY     ? "busy-"
         : r == -ECANCELED ? "cancel-"
                           : "?");
    if (job->then)
        job->then(rig, job);
    return 0;
}

static void on_late(struct loop *loop, void *user, int r)
{
    struct job *job = user;
    (void)r;

    note(job->rig, job, "late-");
    loop_stop(loop, 0);
}

static int on_part(struct loop *loop, void *user, int r)
{
    struct job *job = user;
    (void)loop;

    note(job->rig, job, r == 1 ? "part-" : "?");
    return 0;
}

/* From the second run on the thread is not waited for for long. */
static uint64_t next_run(struct loop *loop, void *user)
{
    const struct job *job = user;

    if (job->blocks_in > 0) {
        (void)pthread_mutex_lock(&loop->lanes.lock);
        loop->lanes.patience_ns = NS_PER_MS;
        (void)pthread_mutex_unlock(&loop->lanes.lock);
        return loop_now_ns(loop) + 50 * NS_PER_MS;
    }
    return job->run < job->runs ? job->at_ns + job->run * NS_PER_MS : 0;
}

static struct job *submit_runs(struct rig *rig, size_t worker, char name, unsigned runs,
                               unsigned in_ms)
{
    struct job *job = &rig->job[rig->n_jobs++];

    *job = (struct job){.rig = rig,
                        .name = name,
                        .runs = runs,
                        .at_ns = loop_now_ns(rig->loop) + in_ms * NS_PER_MS};
    struct loop_work w = {.fn = work,
                          .done = on_done,
                          .work = job,
                          .at_ns = job->at_ns,
                          .again = next_run,
                          .part = on_part};
    if (loop_worker_submit(rig->worker[worker], &w) < 0)
        note(rig, job, "refused-");
    return job;
}

static struct job *submit(struct rig *rig, size_t worker, char name, uint64_t deadline_ns)
{
    struct job *job = &rig->job[rig->n_jobs++];

    *job = (struct job){.rig = rig, .name = name};
    struct loop_work w = {.fn = work,
                          .done = on_done,
                          .late = on_late,
                          .work = job,
                          .deadline_ns = deadline_ns};
    if (loop_worker_submit(rig->worker[worker], &w) < 0)
        note(rig, job, "refused-");
    return job;
}

static void opens(struct rig *rig, struct job *job)
{
    (void)job;
    gate(rig, true);
}

static void run(struct rig *rig)
{
    (void)loop_run(rig->loop, NULL);
}

static void together(struct rig *rig)
{
    rig->loop->lanes.patience_ns = LONG_NS;
    struct job *first = submit(rig, 0, 'a', 0);
    (void)submit(rig, 1, 'b', 0);
    struct job *last = submit(rig, 2, 'c', 0);
    run(rig);
    ok(rig->ran_first == 3, "all have returned when the first is told");
    ok(pthread_equal(first->thread, last->thread), "one thread made all calls");
}

static void hangs(struct rig *rig)
{
    struct job *a = submit(rig, 0, 'a', 0);
    a->blocks = true;
    struct job *c = submit(rig, 2, 'c', 0);
    c->then = opens; /* would never come if it waited for a */
    run(rig);
    ok(!pthread_equal(a->thread, c->thread), "the others have another thread");
}

static void all_hang(struct rig *rig)
{
    for (size_t i = 0; i + 1 < WORKERS; i++)
        submit(rig, i, (char)('a' + i), 0)->blocks = true;
    submit(rig, WORKERS - 1, 'z', 0)->then = opens;
    run(rig);
    rig->log[1] = '\0'; /* which of the others comes next is open */
}

static void again(struct rig *rig, struct job *job)
{
    if (rig->n_jobs == CALLS)
        return;
    struct job *next = submit(rig, 0, job->name, 0);
    next->then = again;
}

/* With a patience that nothing exhausts, one that hung is back in the end. */
static void is_trusted(struct rig *rig)
{
    hangs(rig);
    rig->loop->lanes.patience_ns = LONG_NS;
    rig->log[0] = '\0';
    submit(rig, 0, 'a', 0)->then = again;
    run(rig);
    rig->n_jobs = 0;
    rig->log[0] = '\0';
    const struct job *a = submit(rig, 0, 'a', 0), *b = submit(rig, 1, 'b', 0);
    run(rig);
    ok(pthread_equal(a->thread, b->thread), "it shares the thread again");
}

static void y_opens(struct rig *rig, struct job *job)
{
    (void)job;
    submit(rig, 1, 'y', 0)->then = opens;
}

static void x_is_refused(struct rig *rig, struct job *job)
{
    (void)job;
    submit(rig, 0, 'x', 0)->then = y_opens;
}

static void stops(struct rig *rig, struct job *job)
{
    (void)job;
    loop_stop(rig->loop, 0);
}

static int never(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer, (void)now_ns, (void)user;
    return -ETIME;
}

static void deadline(struct rig *rig)
{
    struct loop_timer *timer; /* the loop does not wait for a call that is late */
    struct job *a = submit(rig, 0, 'a', LOOP_PATIENCE_NS);

    a->blocks = true;
    a->then = x_is_refused;
    (void)loop_timer_new(rig->loop, loop_now_ns(rig->loop) + LONG_NS, 0, never, NULL,
                         &timer, NULL);
    run(rig); /* until a is late */
    submit(rig, 0, 'b', 0)->then = stops;
    run(rig);
}

static void frees_b(struct rig *rig, struct job *job)
{
    (void)job;
    loop_worker_free(rig->worker[1]);
}

static void freed_while_told(struct rig *rig)
{
    rig->loop->lanes.patience_ns = LONG_NS;
    submit(rig, 0, 'a', 0)->then = frees_b;
    (void)submit(rig, 1, 'b', 0);
    (void)submit(rig, 2, 'c', 0);
    run(rig);
}

static void freed_before(struct rig *rig)
{
    (void)submit(rig, 0, 'a', 0);
    (void)submit(rig, 1, 'b', 0);
    loop_worker_free(rig->worker[0]);
    run(rig);
}

static void wait_for(struct rig *rig, const struct job *job)
{
    (void)pthread_mutex_lock(&rig->lock);
    while (!job->begun)
        (void)pthread_cond_wait(&rig->changed, &rig->lock);
    (void)pthread_mutex_unlock(&rig->lock);
}

/* Freed while its call hangs in the common thread, and that before anybody noticed. */
static void freed_in_a_hang(struct rig *rig)
{
    rig->loop->lanes.patience_ns = LONG_NS;
    struct job *b = submit(rig, 1, 'b', 0);
    b->then = stops;
    run(rig);
    struct job *a = submit(rig, 0, 'a', LOOP_PATIENCE_NS);
    a->blocks = true;
    submit(rig, 1, 'c', 0);
    lanes_start(rig->loop);
    wait_for(rig, a);
    loop_worker_free(rig->worker[0]);
    run(rig);
}

/* The thread was awake when the call came, and began it before the loop could wake it. */
static void begun_by_itself(struct rig *rig)
{
    struct lanes *lanes = &rig->loop->lanes;
    struct job *a = submit(rig, 0, 'a', 0);

    a->blocks = true;
    lanes->patience_ns = LONG_NS;
    lanes_start(rig->loop);
    wait_for(rig, a);
    (void)pthread_mutex_lock(&lanes->lock);
    lanes->patience_ns = NS_PER_MS;
    lanes->patient_until_ns = LOOP_NEVER;
    (void)pthread_mutex_unlock(&lanes->lock);
    submit(rig, 2, 'c', 0)->then = opens; /* would never come if it waited for a */
    run(rig);
}

static void loop_freed(struct rig *rig)
{
    submit(rig, 0, 'a', LOOP_PATIENCE_NS)->blocks = true;
    run(rig);
    (void)submit(rig, 1, 'b', 0);
    loop_free(rig->loop);
    rig->loop = NULL;
}

static void several_runs(struct rig *rig)
{
    rig->loop->lanes.patience_ns = LONG_NS;
    (void)submit_runs(rig, 0, 'a', 3, 5);
    (void)submit_runs(rig, 1, 'b', 3, 5);
    run(rig);
    ok(atomic_load(&rig->ran) == 6, "each ran three times");
}

/* Nothing but a result wakes the loop: it hears of the first run with the last. */
static int on_part_counts(struct loop *loop, void *user, int r)
{
    struct job *job = user;

    if (job->rig->ran_first == 0)
        job->rig->ran_first = atomic_load(&job->rig->ran);
    return on_part(loop, user, r);
}

static void told_at_the_end(struct rig *rig)
{
    struct job *a = &rig->job[rig->n_jobs++];

    rig->loop->lanes.patience_ns = LONG_NS;
    *a = (struct job){.rig = rig, .name = 'a', .runs = 3};
    a->at_ns = loop_now_ns(rig->loop);
    struct loop_work w = {.fn = work,
                          .done = on_done,
                          .work = a,
                          .at_ns = a->at_ns + 1,
                          .again = next_run,
                          .part = on_part_counts};
    (void)loop_worker_submit(rig->worker[0], &w);
    run(rig);
    ok(rig->ran_first == 3, "the loop has not woken up before");
}

static void takes_back_a(struct rig *rig, struct job *job)
{
    struct loop_work back;
    (void)job;

    ok(!loop_worker_withdraw(rig->worker[0], &back), "what has run is not taken back");
}

/* The runs of a have a pause that nothing here outlasts. */
static struct job *pause_in_a(struct rig *rig)
{
    struct job *a = submit_runs(rig, 0, 'a', 3, 5);

    rig->loop->lanes.patience_ns = LONG_NS;
    a->at_ns += LONG_NS;
    return submit_runs(rig, 1, 'b', 1, 5);
}

static void ends_early(struct rig *rig)
{
    pause_in_a(rig)->then = takes_back_a;
    run(rig);
}

/* The eventfd counts what was written to it. */
static void hastens_both(struct rig *rig, struct job *job)
{
    uint64_t n = 0;
    (void)job;

    (void)submit(rig, 0, 'c', 0);
    (void)submit(rig, 2, 'd', 0);
    lanes_start(rig->loop);
    ok(read(rig->loop->lanes.returned_fd, &n, sizeof n) == sizeof n && n == 1,
       "the loop wakes up once for two");
    (void)!write(rig->loop->lanes.returned_fd, &n, sizeof n);
}

/* Two calls that have run, and whose next runs are taken back at once. */
static void end_together(struct rig *rig)
{
    struct job *a = submit_runs(rig, 0, 'a', 3, 5), *e = submit_runs(rig, 2, 'e', 3, 5);

    rig->loop->lanes.patience_ns = LONG_NS;
    a->at_ns += LONG_NS;
    e->at_ns += LONG_NS;
    submit_runs(rig, 1, 'b', 1, 5)->then = hastens_both;
    run(rig);
}

static void submit_c_behind_a(struct rig *rig, struct job *job)
{
    (void)job;
    (void)submit(rig, 0, 'c', 0);
}

static void ends_for_another(struct rig *rig)
{
    pause_in_a(rig)->then = submit_c_behind_a;
    run(rig);
}

static void hangs_later(struct rig *rig)
{
    rig->loop->lanes.patience_ns = LONG_NS;
    submit_runs(rig, 0, 'a', 3, 5)->blocks_in = 2;
    struct job *b = submit_runs(rig, 1, 'b', 1, 1000);
    b->then = opens; /* would never come if it waited for a */
    run(rig);
}

static void freed_between(struct rig *rig, struct job *job)
{
    (void)job;
    loop_worker_free(rig->worker[0]);
}

static void freed_between_runs(struct rig *rig)
{
    pause_in_a(rig)->then = freed_between;
    run(rig);
}

static const struct {
    const char *name, *want;
    void (*run)(struct rig *rig);
} cases[] = {
    {"told together, in order", "a b c", together},
    {"a call that hangs delays nobody", "c a", hangs},
    {"all but one hang", "z", all_hang},
    {"who behaves shares again", "a b", is_trusted},
    {"deadline, refusal, recovery", "timeout-a busy-x y late-a b", deadline},
    {"freed with an answer not yet told", "a b c", freed_while_told},
    {"freed before its call began", "cancel-a b", freed_before},
    {"begun before the loop waits", "c a", begun_by_itself},
    {"freed while it hangs", "b timeout-a c", freed_in_a_hang},
    {"several runs, in order of time", "part-a part-b part-a part-b a b", several_runs},
    {"told with the last run", "part-a part-a a", told_at_the_end},
    {"taken back between two runs", "part-a b end-a", ends_early},
    {"another call ends the runs", "part-a b end-a c", ends_for_another},
    {"two runs end together", "part-a part-e b end-a end-e c d", end_together},
    {"a later run that hangs delays nobody", "part-a b a", hangs_later},
    {"freed between two runs", "part-a b cancel-a", freed_between_runs},
    {"the loop is freed while one hangs", "timeout-a cancel-b", loop_freed},
};

static void run_case(size_t i)
{
    /* What hangs for good uses its rig for good: everything stays reachable. */
    static struct rig *kept[n_elements(cases)];
    struct rig *rig = kept[i] = calloc(1, sizeof *rig);
    int r = -ENOMEM;

    if (rig)
        r = loop_new_real((struct loop_clock){0, 1}, &rig->loop, NULL);
    for (size_t k = 0; k < WORKERS && r == 0; k++)
        r = loop_worker_new_shared(rig->loop, "test", &rig->worker[k], NULL);
    if (!ok(r == 0, "%s: a loop and its workers", cases[i].name) || !rig)
        return;
    rig->loop->lanes.patience_ns = NS_PER_MS;
    (void)pthread_mutex_init(&rig->lock, NULL);
    (void)pthread_cond_init(&rig->changed, NULL);
    cases[i].run(rig);
    gate(rig, true);
    loop_free(rig->loop);
    is_str(rig->log, cases[i].want, cases[i].name);
}

int main(void)
{
    for (size_t i = 0; i < n_elements(cases); i++)
        run_case(i);
    return done();
}
