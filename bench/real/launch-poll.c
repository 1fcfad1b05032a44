/* What it costs to look at a job's launches every POLL_MS, as underwattd does
 * (page_on_launch_poll() in jobs/job-progress.c), and whether its steps are found so.
 *
 *     launch-poll PAGE POLL_MS SECONDS
 *
 * PAGE is a progress page with counts of launches (underwatt/launches.h) in memory
 * (tmpfs), which is read and nothing else.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "core/progress/launches.h"
#include "core/progress/rate.h"
#include "io/launches.h"
#include "io/loop.h"

struct poller {
    struct loop *loop;
    struct progress_page *page;
    struct launches *launches;
    struct rate *rate;
    struct launches_budget budget;
    struct step_slot first, last;
    uint64_t until_ns, polls;
    bool known;
};

static uint64_t sum(const uint64_t *v, size_t n)
{
    uint64_t total = 0;

    for (size_t i = 0; i < n; i++)
        total += v[i];
    return total;
}

static int on_poll(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct poller *p = user;
    struct launch_count count[UW_LAUNCHES_SLOTS];
    struct rate_process rate[UW_LAUNCHES_SLOTS];
    struct step_slot slots[LAUNCHES_PROCESSES];
    struct launches_read read;
    size_t n = 0;
    (void)timer;

    if (launches_read(p->page, &read) != 0)
        read.n = 0;
    for (size_t i = 0; i < read.n; i++) {
        const struct launches_seen *seen = &read.slot[i];
        if (!seen->alive)
            continue;
        rate[n] = (struct rate_process){.pid = seen->pid, .since_ns = seen->since_ns};
        for (size_t k = 0; k < UW_LAUNCHES_STREAMS; k++)
            rate[n].kind[k % RATE_STREAMS] += seen->kernels[k];
        rate[n].kind[RATE_STREAMS] = sum(seen->graphs, UW_LAUNCHES_GRAPHS);
        count[n++] =
            (struct launch_count){.pid = seen->pid,
                                  .since_ns = seen->since_ns,
                                  .launches = sum(seen->kernels, UW_LAUNCHES_STREAMS) +
                                              sum(seen->graphs, UW_LAUNCHES_GRAPHS),
                                  .live = true};
    }
    rate_feed(p->rate, rate, n, now_ns);
    launches_feed(p->launches, count, n, now_ns, &p->budget);
    if (launches_slots(p->launches, slots) > 0) {
        if (!p->known)
            p->first = slots[0];
        p->known = true;
        p->last = slots[0];
    }
    p->polls++;
    if (now_ns >= p->until_ns)
        loop_stop(p->loop, 0);
    return 0;
}

static double cpu_s(void)
{
    struct rusage u;

    if (getrusage(RUSAGE_SELF, &u) < 0)
        return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void tell(const struct poller *p, uint64_t poll_ms, double seconds, double cpu)
{
    struct launches_found found;
    uint64_t steps = p->last.steps - p->first.steps;
    double s = s_between(p->first.last_step_ns, p->last.last_step_ns);

    launches_state(p->launches, &found);
    (void)printf("{\"poll_ms\": %llu, \"seconds\": %.2f, \"polls\": %llu, "
                 "\"cpu_percent\": %.3f, \"cpu_us_a_poll\": %.2f, ",
                 (unsigned long long)poll_ms, seconds, (unsigned long long)p->polls,
                 100 * cpu / seconds, p->polls > 0 ? 1e6 * cpu / (double)p->polls : 0.0);
    (void)printf("\"known\": %s, \"why\": %d, \"launches\": %llu, \"steps\": %llu, "
                 "\"step_ms\": %.3f}\n",
                 p->known ? "true" : "false", (int)found.why,
                 (unsigned long long)found.launches, (unsigned long long)steps,
                 steps > 0 ? 1e3 * s / (double)steps : 0.0);
}

static int run(int fd, uint64_t poll_ms, uint64_t seconds, uw_error *err)
{
    auto_(loop_free) struct loop *loop = NULL;
    struct loop_timer *timer = NULL; /* the loop's */
    auto_(progress_page_free) struct progress_page *page = NULL;
    auto_(launches_free) struct launches *launches = NULL;
    auto_(rate_free) struct rate *rate = NULL;
    struct poller p = {0};
    int r = progress_page_adopt(fd, &page, err);

    if (r < 0)
        return r;
    r = loop_new_real((struct loop_clock){.speed = 1}, &loop, err);
    if (r < 0)
        return r;
    r = launches_new(&launches);
    if (r == 0)
        r = rate_new(&rate);
    if (r < 0)
        return fail(err, r, "out of memory");
    launches_budget_job(&p.budget, NULL);
    p.loop = loop;
    p.page = page;
    p.launches = launches;
    p.rate = rate;
    uint64_t begin = loop_now_ns(loop), period = poll_ms * NS_PER_MS;
    p.until_ns = begin + seconds * NS_PER_S;
    r = loop_timer_new(loop, begin + period, period, on_poll, &p, &timer, err);
    if (r < 0)
        return r;
    double cpu = cpu_s();
    r = loop_run(loop, err);
    if (r < 0)
        return r;
    tell(&p, poll_ms, s_between(begin, loop_now_ns(loop)), cpu_s() - cpu);
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t poll_ms = 0, seconds = 0;
    uw_error err = {{0}};

    if (argc != 4 || parse_u64(argv[2], &poll_ms, &err) < 0 ||
        parse_u64(argv[3], &seconds, &err) < 0 || poll_ms < 1 || seconds < 1 ||
        seconds > 3600 || poll_ms > 1000) {
        (void)fprintf(stderr, "launch-poll PAGE POLL_MS SECONDS: %s\n", err.text);
        return 2;
    }
    int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        perror(argv[1]);
        return 1;
    }
    if (run(fd, poll_ms, seconds, &err) < 0) {
        (void)fprintf(stderr, "launch-poll: %s: %s\n", argv[1], err.text);
        return 1;
    }
    return 0;
}
