/* What sampling costs: driver calls a board and second, this process' CPU and memory, at
 * each rate, with the daemon's roster beside it.  One JSON object a line.  Started in a
 * world (simulated or real) as: sampling LIBRARY rest|job|search|listen|all SECONDS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/units.h"
#include "board/sampler.h"
#include "gpu/nvml/nvml.h"
#include "jobs/roster.h"

enum { SETTLE_S = 12 }; /* time for the check of counters */
#define HISTORY_S 180.0

static struct {
    struct loop *loop;
    struct boards *set;
    struct sampler *sampler[BOARDS_MAX];
    bool heard; /* … as for a job that reports no steps */
    struct sampler_ear ear[BOARDS_MAX];
    struct roster *roster;
    enum sampler_rate rate;
    const char *name;
    double seconds;
    uint64_t calls, at_ns;
    double cpu_s;
    long switches;
} b;

static uint64_t clock_of(void *user)
{
    return loop_now_ns(user);
}

static double cpu_now(long *ret_switches)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    *ret_switches = u.ru_nvcsw + u.ru_nivcsw;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static long pss_kib(void)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "re");
    char line[200];
    long kib = -1;

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "Pss:", 4) == 0)
            (void)sscanf(line + 4, "%ld", &kib);
    if (f)
        (void)fclose(f);
    return kib;
}

static uint64_t calls_now(void)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < boards_count(b.set); i++)
        sum += board_calls(boards_at(b.set, i));
    return sum;
}

static int on_end(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct meter_state state;
    size_t n = boards_count(b.set), used = 0;
    double s = s_between(b.at_ns, now_ns);
    long switches;
    double cpu = cpu_now(&switches) - b.cpu_s;
    (void)timer;
    (void)user;

    for (size_t i = 0; i < n; i++) {
        meter_state(sampler_meter(b.sampler[i], 0), &state);
        used += state.counter_used;
    }
    printf("{\"rate\": \"%s\", \"boards\": %zu, \"counters_used\": %zu, "
           "\"calls_per_board_s\": %.3f, \"cpu_percent\": %.3f, "
           "\"switches_per_s\": %.1f, \"pss_kib\": %ld}\n",
           b.name, n, used, (double)(calls_now() - b.calls) / s / (double)n,
           100 * cpu / s, (double)(switches - b.switches) / s, pss_kib());
    loop_stop(b.loop, 0);
    return 0;
}

static int on_begin(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct loop_timer *end = NULL;
    (void)timer;
    (void)user;

    b.calls = calls_now();
    b.at_ns = now_ns;
    b.cpu_s = cpu_now(&b.switches);
    return loop_timer_new(b.loop, now_ns + ns_of_s(b.seconds), 0, on_end, NULL, &end,
                          NULL);
}

static void on_event(enum roster_event event, const struct job_entry *job, void *user)
{
    (void)event;
    (void)job;
    (void)user;
}

static void on_heard(size_t board, const struct gpu_sample *s, void *user)
{
    (void)board;
    (void)s;
    (void)user;
}

static int on_ready(struct boards *boards, int r, const uw_error *err, void *user)
{
    struct roster_opts roster = {.loop = b.loop, .boards = boards, .on_event = on_event};
    struct loop_timer *timer = NULL;
    uw_error text = {{0}};
    (void)user;

    if (r != 0) {
        (void)fprintf(stderr, "%s\n", err ? err->text : "no boards");
        return r < 0 ? r : -1;
    }
    b.set = boards;
    for (size_t i = 0; i < boards_count(boards) && r == 0; i++) {
        struct board *board = boards_at(boards, i);
        struct sampler_opts opts = {
            .period_ns = 100 * NS_PER_MS, .seed = i, .history_s = HISTORY_S};
        r = sampler_new(b.loop, &board, 1, &opts, &b.sampler[i], &text);
        if (r == 0)
            sampler_rate(b.sampler[i], 0, b.rate, false);
        if (r == 0 && b.heard)
            sampler_hear(b.sampler[i], 0, &b.ear[i]);
    }
    if (r == 0)
        r = roster_new(&roster, &b.roster, &text);
    if (r == 0)
        r = loop_timer_new(b.loop, loop_now_ns(b.loop) + SETTLE_S * NS_PER_S, 0, on_begin,
                           NULL, &timer, &text);
    if (r < 0)
        (void)fprintf(stderr, "sampling: %s\n", text.text);
    return r;
}

int main(int argc, char **argv)
{
    static const char *const rates[] = {"all", "rest", "job", "search", "listen"};
    struct boards *boards = NULL;
    uw_error err = {{0}};
    size_t rate = 0;

    while (argc == 4 && rate < n_elements(rates) && strcmp(argv[2], rates[rate]) != 0)
        rate++;
    if (argc != 4 || rate == n_elements(rates) ||
        parse_double(argv[3], &b.seconds, &err) < 0) {
        (void)fprintf(stderr,
                      "usage: sampling LIBRARY rest|job|search|listen|all SECONDS\n");
        return 2;
    }
    b.heard = strcmp(rates[rate], "listen") == 0;
    for (size_t i = 0; b.heard && i < BOARDS_MAX; i++)
        b.ear[i] = (struct sampler_ear){.fn = on_heard, .listens = true};
    b.rate = b.heard ? SAMPLER_SEARCH : (enum sampler_rate)rate;
    b.name = rates[rate];
    int r = loop_new_real((struct loop_clock){0, 1}, &b.loop, &err);
    struct gpu_open_opts opts = {.source = argv[1], .clock = {clock_of, b.loop}};
    if (r == 0)
        r = boards_open(b.loop, &nvml_backend, &opts, on_ready, NULL, &boards, &err);
    if (r == 0)
        r = loop_run(b.loop, &err);
    if (r < 0)
        (void)fprintf(stderr, "sampling: %d %s\n", r, err.text);
    roster_free(b.roster);
    for (size_t i = 0; i < BOARDS_MAX; i++)
        sampler_free(b.sampler[i]);
    boards_free(boards);
    loop_free(b.loop);
    return r < 0;
}
