#include "cli/energy-check.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/units.h"

/* In real time; multiplied by the speed of the loop. */
enum { PERIOD_MS = 20, LENGTH_MS = 2500 };

struct board_check { /* state of one board */
    struct check *check;
    struct doctor_energy *ret;
    bool waiting; /* a call is pending */
    bool has_before;
    struct gpu_sample before;
    double power_j; /* since the first change of the counter */
    uint64_t first_ns;
    uint64_t first_mj;
};

struct check {
    struct survey *s;
    struct board_check *board;
    uint64_t end_ns;
    size_t pending;
    bool over;
};

static double power_of(const struct gpu_sample *s)
{
    return s->has & GPU_HAS_INSTANT ? s->instant_w : s->power_w;
}

/* The counter has changed between the previous reading and this one. */
static void on_change(struct board_check *l, const struct gpu_sample *now)
{
    if (l->ret->changes++ == 0) {
        l->first_ns = now->energy_at_ns;
        l->first_mj = now->energy_mj;
        l->power_j = 0;
        return;
    }
    l->ret->counter_j = (double)(int64_t)(now->energy_mj - l->first_mj) * 1e-3;
    l->ret->power_j = l->power_j;
    l->ret->time_s = s_between(l->first_ns, now->energy_at_ns);
}

static int on_sample(struct board *b, int r, const struct gpu_sample *now,
                     const uw_error *err, void *user)
{
    struct board_check *l = user;
    struct check *c = l->check;
    (void)b;
    (void)err;

    l->waiting = false;
    c->pending--;
    if (r == 0 && now->has & GPU_HAS_ENERGY && now->has & GPU_HAS_POWER) {
        if (l->has_before) {
            double dt = s_between(l->before.energy_at_ns, now->energy_at_ns);
            l->power_j += 0.5 * (power_of(&l->before) + power_of(now)) * dt;
            if (l->ret->changes == 0)
                l->ret->time_s += dt;
            if (now->energy_mj != l->before.energy_mj)
                on_change(l, now);
        }
        l->ret->answered = true;
        l->before = *now;
        l->has_before = true;
    }
    if (c->over && c->pending == 0)
        loop_stop(c->s->loop, 0);
    return 0;
}

static int on_tick(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct check *c = user;

    if (now_ns >= c->end_ns) {
        c->over = true;
        loop_timer_set(timer, UINT64_MAX, 0);
        if (c->pending == 0)
            loop_stop(c->s->loop, 0);
        return 0;
    }
    for (size_t i = 0; i < c->s->n; i++) {
        struct board_check *l = &c->board[i];
        const struct survey_board *b = &c->s->board[i];
        if (l->waiting || !b->answers || !(b->info.abilities & GPU_CAN_ENERGY))
            continue;
        if (board_sample(boards_at(c->s->set, i),
                         GPU_HAS_ENERGY | GPU_HAS_POWER | GPU_HAS_INSTANT, on_sample,
                         l) == 0) {
            l->waiting = true;
            c->pending++;
        }
    }
    return 0;
}

int energy_check(struct survey *s, struct doctor_energy *ret, uw_error *err)
{
    auto_(mem_free) struct board_check *board = calloc(s->n ? s->n : 1, sizeof *board);
    struct check c = {.s = s, .board = board};
    struct loop_timer *timer = NULL;
    const double speed = loop_speed(s->loop);
    const uint64_t now = loop_now_ns(s->loop);

    if (!board)
        return fail(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < s->n; i++)
        board[i] = (struct board_check){.check = &c, .ret = &ret[i]};
    c.end_ns = now + ns_of_s(LENGTH_MS * 1e-3 * speed);
    int r = loop_timer_new(s->loop, now, ns_of_s(PERIOD_MS * 1e-3 * speed), on_tick, &c,
                           &timer, err);
    if (r < 0)
        return r;
    r = loop_run(s->loop, err);
    loop_timer_free(timer);
    return r;
}
