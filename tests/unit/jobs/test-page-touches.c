/* Changes of phase that are needed at once: heard where the job touches its page, looked
 * for where it does not.  On the real clock; nothing here asks for speed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"
#include "io/touches.h"
#include "jobs/job-progress.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

static struct {
    struct loop *loop;
    struct loop_timer *timer;
    struct touches *touches;
    struct uw_progress_page *page;
    int fd, dup;
    struct job_progress *progress;
    uint32_t wanted;
    unsigned told;
} w;

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    (void)user;
    loop_stop(w.loop, 0);
    return 0;
}

static int on_steps(const struct steps *steps, uint64_t now_ns, void *user)
{
    (void)now_ns;
    (void)user;
    if (steps->phase == w.wanted)
        loop_stop(w.loop, 0);
    return 0;
}

/* Runs until the phase is seen, for `s` at most; whether it was. */
static bool is_seen(uint32_t phase, double s)
{
    w.wanted = phase;
    loop_timer_set(w.timer, loop_now_ns(w.loop) + ns_of_s(s), 0);
    (void)loop_run(w.loop, NULL);
    return job_progress_steps(w.progress)->phase == phase;
}

static bool open_page(void)
{
    struct uw_progress_page page = {
        .version = UW_PROGRESS_VERSION,
        .slots = UW_PROGRESS_SLOTS,
        .slot[0] = {.pid = (uint64_t)getpid(), .steps = 1, .phase = UW_PHASE_TRAIN}};
    struct job_progress_opts opts = {
        .loop = w.loop, .poll_ns = 3600 * NS_PER_S, .on_steps = on_steps};
    struct progress_page *file = NULL;

    memcpy(page.magic, UW_PROGRESS_MAGIC, sizeof page.magic);
    w.fd = memfd_create("page", MFD_CLOEXEC);
    if (w.fd < 0 || pwrite(w.fd, &page, sizeof page, 0) != (ssize_t)sizeof page)
        return false;
    w.page = mmap(NULL, sizeof page, PROT_READ | PROT_WRITE, MAP_SHARED, w.fd, 0);
    w.dup = fcntl(w.fd, F_DUPFD_CLOEXEC, 0);
    opts.touches = w.touches;
    return w.page != MAP_FAILED && progress_page_adopt(w.dup, &file, NULL) == 0 &&
           job_progress_new(&opts, file, &w.progress, NULL) == 0;
}

static void close_page(void)
{
    job_progress_free(take(w.progress));
    (void)munmap(w.page, sizeof *w.page);
    (void)close(w.fd);
}

static void tell(uint32_t phase)
{
    __atomic_store_n(&w.page->slot[0].phase, phase, __ATOMIC_RELEASE);
}

static void touch(void)
{
    (void)futimens(w.fd, NULL);
}

static void test_touched(void)
{
    if (!ok(open_page(), "a page that is looked at once an hour"))
        return;
    tell(UW_PHASE_VALIDATE);
    touch();
    ok(!is_seen(UW_PHASE_VALIDATE, 0.2), "nobody is in a hurry: not seen");
    job_progress_hurry(w.progress, true);
    tell(UW_PHASE_LOAD);
    ok(is_seen(UW_PHASE_LOAD, 30), "in a hurry: seen, though it was not touched");
    tell(UW_PHASE_TRAIN);
    touch();
    ok(is_seen(UW_PHASE_TRAIN, 30), "touched: seen");
    tell(UW_PHASE_VALIDATE);
    touch();
    ok(is_seen(UW_PHASE_VALIDATE, 30), "again");
    job_progress_hurry(w.progress, false);
    tell(UW_PHASE_TRAIN);
    touch();
    ok(!is_seen(UW_PHASE_TRAIN, 0.2), "no hurry any more");
    close_page();
}

/* A page whose touches are heard is not looked at besides. */
static void test_rests(void)
{
    bool heard = false;

    if (!open_page())
        return;
    job_progress_hurry(w.progress, true);
    for (uint32_t i = 0; i < 200 && !heard; i++) { /* until a touch came first */
        uint32_t phase = i % 2 ? UW_PHASE_TRAIN : UW_PHASE_LOAD;
        tell(phase);
        touch();
        (void)is_seen(phase, 30);
        tell(UW_PHASE_CHECKPOINT);
        heard = !is_seen(UW_PHASE_CHECKPOINT, 0.2);
    }
    ok(heard, "once a touch was heard, a page that is not touched is not looked at");
    touch();
    ok(is_seen(UW_PHASE_CHECKPOINT, 30), "… until it is touched");
    close_page();
}

static void on_storm(void *user)
{
    (void)user;
    w.told++;
    touch();
}

static void test_storm(void)
{
    struct touched *a = NULL, *b = NULL;

    w.fd = memfd_create("page", MFD_CLOEXEC);
    ok(touches_add(w.touches, w.fd, on_storm, NULL, &a) == 0, "a file");
    ok(touches_add(w.touches, w.fd, on_storm, NULL, &b) == -EEXIST, "once a file");
    touch();
    w.told = 0;
    w.wanted = UINT32_MAX;
    uint64_t from_ns = loop_now_ns(w.loop);
    loop_timer_set(w.timer, from_ns + ns_of_s(0.5), 0);
    (void)loop_run(w.loop, NULL);
    double s = s_between(from_ns, loop_now_ns(w.loop));
    ok(w.told > 0 && w.told <= 2 * s * 1e3 / TOUCHES_REST_MS + 2,
       "one that is touched all the time is heard every %d ms or so: %u times in %.2f s",
       TOUCHES_REST_MS, w.told, s);
    touches_remove(a);
    (void)close(w.fd);
}

static void test_virtual(void)
{
    struct loop *loop;
    struct touches *t = NULL;

    if (loop_new_virtual(ns_of_s(1), 0, &loop, NULL) < 0)
        return;
    ok(touches_new(loop, &t, NULL) == -ENOTSUP && !t, "not on a virtual loop");
    loop_free(loop);
}

int main(void)
{
    if (loop_new_real((struct loop_clock){0, 1}, &w.loop, NULL) < 0 ||
        loop_timer_new(w.loop, UINT64_MAX, 0, on_timer, NULL, &w.timer, NULL) < 0)
        return skip_all("no loop");
    if (touches_new(w.loop, &w.touches, NULL) < 0)
        return skip_all("no inotify");
    test_touched();
    test_rests();
    test_storm();
    test_virtual();
    touches_free(w.touches);
    loop_timer_free(w.timer);
    loop_free(w.loop);
    return done();
}
