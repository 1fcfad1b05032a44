/* A page without told steps: those of the launches, on a virtual clock. */
#include "node/page.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/units.h"
#include "io/launches.h"
#include "tap.h"

static char dir[64] = "/tmp/uw-test-page.XXXXXX";

static struct world {
    struct loop *loop;
    struct progress_page *file;
    double end_s, tell_s; /* a slot of told steps from then on */
    unsigned looks;
    uint64_t steps; /* at the last look */
    uint64_t state; /* and, above it, CUPTI's version */
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

/* A process that launches 900 kernels and a graph in each half second, in its first half.
 */
static int on_work(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    double t = now_s(), part = fmod(t, 0.5) / 0.25;
    off_t slot = UW_LAUNCHES_AT + 256;
    (void)timer;
    (void)now_ns;
    (void)user;

    put(slot, (uint64_t)getpid());
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
    if (t >= w.end_s)
        loop_stop(w.loop, 0);
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

static struct page *play_as(uint64_t state, bool room, double end_s, double tell_s)
{
    struct page_opts opts = {.on_steps = on_steps};
    struct loop_timer *work;
    struct page *page = NULL;

    w = (struct world){.end_s = end_s, .tell_s = tell_s, .state = state};
    if (loop_new_virtual(ns_of_s(1000), 0, &w.loop, NULL) < 0 ||
        progress_page_new(dir, &w.file, NULL) < 0 ||
        (room && launches_add(w.file, NULL) < 0) ||
        loop_timer_new(w.loop, ns_of_s(1000), 10 * NS_PER_MS, on_work, NULL, &work,
                       NULL) < 0)
        return NULL;
    opts.loop = w.loop;
    if (page_new(&opts, w.file, &page, NULL) < 0 || loop_run(w.loop, NULL) < 0)
        return NULL;
    loop_timer_free(work);
    return page;
}

static struct page *play(bool room, double end_s, double tell_s)
{
    return play_as(UW_LAUNCHES_ALONE, room, end_s, tell_s);
}

static void over(struct page *page)
{
    page_free(page);
    loop_free(w.loop);
}

static void shown(void)
{
    struct page *page = play(true, 60, 0);
    char words[PAGE_LAUNCHES];

    if (!ok(page, "a page with room for launches"))
        return;
    page_launches(page, words);
    is_str(words, "901 launches a step, confidence 1.00", "its steps are found");
    is_near((double)w.steps, 110, 8, "half a second each, after some to learn");
    is_near(page_steps(page)->step_s, 0.5, 0.02, "… of that time");
    ok(steps_training(page_steps(page)) && page_alive(page),
       "training, by somebody alive");
    ok(page_end(page) == 0 && page_steps(page)->mark.steps == w.steps, "a last look");
    over(page);
}

static void told(void)
{
    struct page *page = play(true, 60, 30);
    char words[PAGE_LAUNCHES];

    if (!ok(page, "a page whose job tells steps after half a minute"))
        return;
    is_int(w.steps, 59, "what is told comes first");
    page_launches(page, words);
    is_str(words, "901 launches a step, confidence 1.00 (but steps are told)",
           "… said so");
    is_near(page_steps(page)->step_s, 1, 0.05, "… with its time");
    over(page);
}

static void without(void)
{
    struct page *page = play(false, 60, 0);
    char words[PAGE_LAUNCHES];

    if (!ok(page, "a page without room"))
        return;
    page_launches(page, words);
    is_str(words, "", "nothing is said of launches");
    ok(w.steps == 0 && !steps_known(page_steps(page)), "no steps");
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
         "no launches counted: no process of it has begun CUDA with our library"},
    };
    char words[PAGE_LAUNCHES];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct page *page = play_as(cases[i].state, true, 1, 0);
        if (!page)
            continue;
        page_launches(page, words);
        is_str(words, cases[i].words, "why nobody counts");
        over(page);
    }
}

int main(void)
{
    if (!mkdtemp(dir))
        return skip_all("no /tmp");
    shown();
    told();
    without();
    refused();
    (void)rmdir(dir);
    return done();
}
