/* Ideal boards of a model on a virtual clock, and time that passes there. */
#ifndef TESTS_WORLD_H
#define TESTS_WORLD_H

#include <errno.h>
#include <string.h>

#include "base/units.h"
#include "board/boards.h"
#include "virtual/virtual-loop.h"
#include "virtual/virtual-world.h"

struct world {
    struct loop *loop;
    struct virtual_world *sim;
    struct boards *boards;
    bool ready;
};

static int world_on_ready(struct boards *set, int r, const uw_error *err, void *user)
{
    struct world *w = user;
    (void)set;
    (void)err;

    w->ready = r == 0;
    loop_stop(w->loop, 0);
    return 0;
}

static int world_on_stop(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    loop_stop(user, 0);
    return 0;
}

static inline void world_wait_s(struct world *w, double s)
{
    struct loop_timer *timer = NULL;
    uw_error err;

    if (loop_timer_new(w->loop, loop_now_ns(w->loop) + ns_of_s(s), 0, world_on_stop,
                       w->loop, &timer, &err) == 0)
        (void)loop_run(w->loop, &err);
    loop_timer_free(timer);
}

static uint64_t world_clock(void *user)
{
    return loop_now_ns(user);
}

/* The world's boards, opened (again) and ready. */
static inline int world_open_boards(struct world *w, uw_error *err)
{
    struct gpu_open_opts gpu = {.clock = {world_clock, w->loop}, .backend_user = w->sim};

    w->ready = false;
    int r =
        boards_open(w->loop, &virtual_backend, &gpu, world_on_ready, w, &w->boards, err);
    if (r == 0)
        r = loop_run(w->loop, err);
    return r == 0 && !w->ready ? -EIO : r;
}

/* n boards without gains of their own (nothing that a meter could mend), not yet open. */
static inline int world_new(struct world *w, const char *model, unsigned n, uint64_t seed,
                            uw_error *err)
{
    struct sim_machine machine;

    *w = (struct world){0};
    int r = loop_new_virtual(1000000000, 1700000003, &w->loop, err);
    if (r == 0)
        r = sim_machine_builtin(model, n, &machine, err);
    for (unsigned i = 0; i < n && r == 0; i++)
        machine.board[i].ideal = true;
    if (r == 0)
        r = virtual_world_new(w->loop, &machine, seed, &w->sim, err);
    return r;
}

static inline void world_close(struct world *w)
{
    boards_free(w->boards);
    virtual_world_free(w->sim);
    loop_free(w->loop);
    *w = (struct world){0};
}

#endif
