/* Samples every board through node/boards for a while and prints what came, a line
 * a call: "BOARD ASKED_MS TOOK_MS RESULT", kernel time since the start, which "ready
 * BOARDS START_NS" tells.  For tests that let a board hang or fail meanwhile.  Started
 * as: board-watch LIBRARY SECONDS
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "board/boards.h"
#include "gpu/nvml/nvml.h"

enum { PERIOD_MS = 20 };

struct watched {
    bool waiting;
    uint64_t asked_ns;
};

static struct loop *loop;
static struct boards *set;
static struct watched watched[BOARDS_MAX];
static uint64_t start_ns, end_ns;

static double ms(uint64_t ns)
{
    return (double)ns * 1e-6;
}

static int on_sample(struct board *b, int r, const struct gpu_sample *sample,
                     const uw_error *err, void *user)
{
    struct watched *w = user;
    uint64_t now = loop_now_ns(loop);
    (void)sample;
    (void)err;

    printf("%zu %.1f %.1f %d\n", board_view(b)->at, ms(w->asked_ns - start_ns),
           ms(now - w->asked_ns), r);
    w->waiting = false;
    return 0;
}

static int on_tick(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)user;
    if (now_ns >= end_ns)
        loop_stop(loop, 0);
    for (size_t i = 0; i < boards_count(set); i++) {
        if (watched[i].waiting)
            continue;
        watched[i].waiting = true;
        watched[i].asked_ns = now_ns;
        if (board_sample(boards_at(set, i), GPU_HAS_POWER | GPU_HAS_ENERGY, on_sample,
                         &watched[i]) < 0)
            watched[i].waiting = false;
    }
    return 0;
}

static int on_ready(struct boards *boards, int r, const uw_error *err, void *user)
{
    struct loop_timer *timer = NULL;
    const double *seconds = user;

    if (r != 0) {
        fprintf(stderr, "%s\n", err ? err->text : "no boards");
        return r < 0 ? r : -1;
    }
    set = boards;
    start_ns = loop_now_ns(loop);
    end_ns = start_ns + ns_of_s(*seconds);
    printf("ready %zu %" PRIu64 "\n", boards_count(set), start_ns);
    (void)fflush(stdout);
    return loop_timer_new(loop, start_ns, PERIOD_MS * NS_PER_MS, on_tick, NULL, &timer,
                          NULL);
}

static uint64_t clock_of(void *user)
{
    return loop_now_ns(user);
}

int main(int argc, char **argv)
{
    const struct loop_clock real = {0, 1};
    struct boards *boards = NULL;
    double seconds = 0;
    uw_error err = {{0}};

    if (argc != 3 || parse_double(argv[2], &seconds, &err) < 0)
        return 2;
    int r = loop_new_real(real, &loop, &err);
    struct gpu_open_opts opts = {.source = argv[1], .clock = {clock_of, loop}};
    if (r == 0)
        r = boards_open(loop, &nvml_backend, &opts, on_ready, &seconds, &boards, &err);
    if (r == 0)
        r = loop_run(loop, &err);
    if (r < 0)
        fprintf(stderr, "board-watch: %d %s\n", r, err.text);
    boards_free(boards);
    loop_free(loop);
    return r < 0;
}
