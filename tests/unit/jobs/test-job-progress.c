/* A page without told steps: those of the launches, on a virtual clock. */
#include "jobs/job-progress.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "io/launches.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

static char dir[64] = "/tmp/uw-test-page.XXXXXX";

static struct world {
    struct loop *loop;
    struct progress_page *file;
    double end_s, tell_s; /* a slot of told steps from then on */
    unsigned looks;
    uint64_t steps; /* at the last look */
    uint64_t state; /* and, above it, CUPTI's version */
    pid_t pid;      /* whose launches these are */
    double dies_s;  /* it does so then; 0: never */
    bool lies;      /* two more slots: its pid's again, and a dead process' */
    struct launches_budget *budget;
} w;

static void put(off_t at, uint64_t value)
{
    if (pwrite(progress_page_fd(w.file), &value, sizeof value, at) != sizeof value)
        printf("# not written\n");
}

static double now_s(void)
{
    return s_of_ns(loop_now_ns(w.loop)) - 1000;
}

static void kill_it(void)
{
    if (w.pid == getpid())
        return;
    (void)kill(w.pid, SIGKILL);
    (void)waitpid(w.pid, NULL, 0);
    w.pid = getpid();
}

/* Numbers that never come again, with rests between. */
static void put_lies(off_t slot, double t)
{
    double n = floor(10 * t);

    for (unsigned i = 1; i <= 2; i++) {
        put(slot + 256 * i, i == 1 ? (uint64_t)w.pid : 999999999);
        put(slot + 256 * i + 8, 70 + i);
        put(slot + 256 * i + 64, (uint64_t)(100 * n * n));
    }
}

/* A process that launches 900 kernels and a graph in each half second, in its first half.
 */
static int on_work(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    double t = now_s(), part = fmod(t, 0.5) / 0.25;
    off_t slot = UW_LAUNCHES_AT + 256;
    (void)timer;
    (void)now_ns;
    (void)user;

    if (t >= w.end_s)
        loop_stop(w.loop, 0);
    if (w.dies_s > 0 && t >= w.dies_s) {
        kill_it();
        return 0;
    }
    put(slot, (uint64_t)w.pid);
    put(slot + 8, 77);
    put(slot + 16, w.state);
    put(slot + 24, 39);
    put(slot + 64 + 8 * 3, (uint64_t)(900 * (floor(t / 0.5) + fmin(part, 1))));
    put(slot + 192, (uint64_t)floor(t / 0.5));
    if (w.tell_s > 0 && t >= w.tell_s) {
        put(64, (uint64_t)getpid());
        put(64 + 8, (uint64_t)floor(t));
        put(64 + 16, loop_now_ns(w.loop));
    }
    if (w.lies)
        put_lies(slot, t);
    return 0;
}

static int on_steps(const struct steps *steps, uint64_t now_ns, void *user)
{
    (void)now_ns;
    (void)user;
    w.looks++;
    w.steps = steps->mark.steps;
    return 0;
}

static struct job_progress *play_world(const struct world *world, bool room)
{
    struct job_progress_opts opts = {.on_steps = on_steps, .budget = world->budget};
    struct loop_timer *work;
    struct job_progress *page = NULL;

    w = *world;
    if (w.pid == 0)
        w.pid = getpid();
    if (loop_new_virtual(ns_of_s(1000), 0, &w.loop, NULL) < 0 ||
        progress_page_new(dir, &w.file, NULL) < 0 ||
        (room && launches_add(w.file, NULL) < 0) ||
        loop_timer_new(w.loop, ns_of_s(1000), 10 * NS_PER_MS, on_work, NULL, &work,
                       NULL) < 0)
        return NULL;
    opts.loop = w.loop;
    if (job_progress_new(&opts, w.file, &page, NULL) < 0 || loop_run(w.loop, NULL) < 0)
        return NULL;
    loop_timer_free(work);
    return page;
}

static struct job_progress *play_as(uint64_t state, bool room, double end_s,
                                    double tell_s)
{
    const struct world world = {.end_s = end_s, .tell_s = tell_s, .state = state};

    return play_world(&world, room);
}

static struct job_progress *play(bool room, double end_s, double tell_s)
{
    return play_as(UW_LAUNCHES_ALONE, room, end_s, tell_s);
}

static void over(struct job_progress *page)
{
    job_progress_free(page);
    loop_free(w.loop);
}

static void shown(void)
{
    struct job_progress *page = play(true, 60, 0);
    char words[JOB_PROGRESS_LAUNCHES], path[128];

    if (!ok(page, "a page with room for launches"))
        return;
    job_progress_launches(page, words);
    is_str(words, "901 launches a step, confidence 1.00", "its steps are found");
    is_near((double)w.steps, 110, 8, "half a second each, after some to learn");
    is_near(job_progress_steps(page)->step_s, 0.5, 0.02, "… of that time");
    ok(steps_training(job_progress_steps(page)) && job_progress_alive(page),
       "training, by somebody alive");
    (void)snprintf(path, sizeof path, "%s", progress_page_path(w.file));
    ok(job_progress_end(page) == 0 && job_progress_steps(page)->mark.steps == w.steps,
       "a last look");
    ok(path[0] && access(path, F_OK) < 0, "… and it lets go of it");
    over(page);
}

static void told(void)
{
    struct job_progress *page = play(true, 60, 30);
    char words[JOB_PROGRESS_LAUNCHES];

    if (!ok(page, "a page whose job tells steps after half a minute"))
        return;
    is_int(w.steps, 59, "what is told comes first");
    job_progress_launches(page, words);
    is_str(words,
           "901 launches a step, confidence 1.00 (not used: the job reports steps)",
           "… said so");
    is_near(job_progress_steps(page)->step_s, 1, 0.05, "… with its time");
    over(page);
}

static void without(void)
{
    struct job_progress *page = play(false, 60, 0);
    char words[JOB_PROGRESS_LAUNCHES];

    if (!ok(page, "a page without room"))
        return;
    job_progress_launches(page, words);
    is_str(words, "", "nothing is said of launches");
    ok(w.steps == 0 && !steps_known(job_progress_steps(page)), "no steps");
    is_near(w.looks, 599, 1, "looked at ten times a second");
    over(page);
}

/* Why nobody counts. */
static void refused(void)
{
    static const struct {
        uint64_t state;
        const char *words;
    } cases[] = {
        {UW_LAUNCHES_ABSENT, "no launches counted: no CUPTI was found"},
        {UW_LAUNCHES_ASIDE,
         "no launches counted: CUPTI answers 39 (has a profiler taken it?)"},
        {UW_LAUNCHES_BEGUN,
         "no launches counted: no process has started CUDA with Underwatt's library"},
    };
    char words[JOB_PROGRESS_LAUNCHES];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job_progress *page = play_as(cases[i].state, true, 1, 0);
        if (!page)
            continue;
        job_progress_launches(page, words);
        is_str(words, cases[i].words, "why nobody counts");
        over(page);
    }
}

/* Slots that are nobody's, or somebody's again, are not looked into. */
static void lies(void)
{
    struct launches_budget budget;
    const struct world world = {
        .end_s = 60, .state = UW_LAUNCHES_ALONE, .lies = true, .budget = &budget};

    launches_budget_job(&budget, NULL);
    struct job_progress *page = play_world(&world, true);
    char words[JOB_PROGRESS_LAUNCHES];
    if (!ok(page, "a slot of the dead and a second one of the same process"))
        return;
    job_progress_launches(page, words);
    is_str(words, "901 launches a step, confidence 1.00", "the first one's steps");
    is_int((intmax_t)budget.taken, 1, "… were all that was looked for");
    over(page);
}

/* What a process did before it died counts at the last look. */
static void dies(void)
{
    pid_t child = fork();
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    const struct world world = {
        .end_s = 60, .state = UW_LAUNCHES_ALONE, .pid = child, .dies_s = 30};
    struct job_progress *page = child > 0 ? play_world(&world, true) : NULL;
    if (!ok(page, "a process that dies"))
        return;
    ok(!job_progress_alive(page), "nobody is alive");
    (void)job_progress_end(page);
    ok(steps_known(job_progress_steps(page)), "its steps are known at the end");
    is_near((double)job_progress_steps(page)->mark.steps, 50, 8, "… as many as it did");
    over(page);
}

int main(void)
{
    if (!mkdtemp(dir))
        return skip_all("no /tmp");
    shown();
    told();
    without();
    refused();
    lies();
    dies();
    (void)rmdir(dir);
    return done();
}
