#include "slackplay.h"

#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "base/rng.h"
#include "base/units.h"

enum { ORDERS = 6, FIRST_STEP_W = 32 };

struct point {
    double time_s, energy_j, board_j[SLACK_BOARDS_MAX];
};

static struct point run(const struct slack_world *w, const uint32_t *cap_mw)
{
    struct point p = {0};

    p.time_s = w->run(w->of, cap_mw, p.board_j);
    for (size_t i = 0; i < w->n; i++)
        p.energy_j += p.board_j[i];
    return p;
}

/* ---- the product ---- */

static void trace(const struct slack_play *p, const struct slack_world *w,
                  const struct slack_step *step, const struct point *at, double first_s)
{
    if (!p->trace)
        return;
    (void)fprintf(p->trace, "%+.2f %%:", 100 * (at->time_s / first_s - 1));
    for (size_t i = 0; i < w->n; i++)
        (void)fprintf(p->trace, " %.0f(%.0f%%)", w_of_mw(step->cap_mw[i]),
                      100 * step->waits[i]);
    (void)fprintf(p->trace, "  did %d  %s\n", step->did, step->why);
}

int slack_play(const struct slack_world *w, const struct slack_play *p,
               struct slack_score *ret, uw_error *err)
{
    struct slack_range range[SLACK_BOARDS_MAX];
    struct slack_setup setup = {
        .board = range, .n = w->n, .allowance = p->allowance, .budget_mw = p->budget_mw};
    auto_(slack_free) struct slack *s = NULL;
    uint32_t shown[SLACK_BOARDS_MAX] = {0};
    struct slack_score sum = {.worst_time = 1};
    struct rng rng;

    rng_init(&rng, p->seed);
    for (size_t i = 0; i < w->n; i++)
        range[i] = (struct slack_range){w->least_mw[i], p->start_mw[i], w->most_mw[i]};
    int r = slack_new(&setup, &s, err);
    if (r < 0)
        return r;
    const struct point first = run(w, p->start_mw);
    struct point at = first;
    for (unsigned k = 0; k < p->windows; k++) {
        const struct slack_step *step = slack_step(s);
        struct slack_seen seen[SLACK_BOARDS_MAX];
        if (memcmp(shown, step->cap_mw, sizeof *shown * w->n) != 0) {
            at = run(w, step->cap_mw);
            memcpy(shown, step->cap_mw, sizeof *shown * w->n);
            trace(p, w, step, &at, first.time_s);
        }
        sum.time += at.time_s / first.time_s / p->windows;
        sum.energy += at.energy_j / first.energy_j / p->windows;
        if (step->kind == SLACK_HOLD)
            sum.worst_time = fmax(sum.worst_time, at.time_s / first.time_s);
        for (size_t i = 0; i < w->n; i++) {
            double err_p = 1 + p->noise * rng_normal(&rng);
            seen[i] = (struct slack_seen){
                .cap_w = w_of_mw(step->cap_mw[i]),
                .power_w = at.board_j[i] / at.time_s * err_p,
            };
        }
        struct slack_window win = {at.time_s * (1 + p->noise * rng_normal(&rng)),
                                   p->noise, seen};
        r = slack_on_window(s, &win, err);
        if (r < 0)
            return r;
    }
    while (slack_step(s)->reference && slack_step(s)->kind == SLACK_HOLD &&
           p->noise > 0) {
        struct slack_seen seen[SLACK_BOARDS_MAX];
        at = run(w, p->start_mw); /* ends with a visit: one more window */
        for (size_t i = 0; i < w->n; i++)
            seen[i] = (struct slack_seen){.cap_w = w_of_mw(p->start_mw[i]),
                                          .power_w = at.board_j[i] / at.time_s};
        struct slack_window win = {at.time_s, p->noise, seen};
        r = slack_on_window(s, &win, err);
        if (r < 0 || (slack_step(s)->reference && slack_step(s)->kind == SLACK_HOLD))
            break;
    }
    at = run(w, slack_step(s)->cap_mw);
    sum.held_time = at.time_s / first.time_s;
    sum.held_energy = at.energy_j / first.energy_j;
    slack_result(s, &sum.result);
    *ret = sum;
    return 0;
}

/* ---- a method that knows the truth ---- */

void slack_uniform(const struct slack_world *w, const struct slack_play *p,
                   struct slack_best *ret)
{
    const struct point first = run(w, p->start_mw);
    uint32_t cap[SLACK_BOARDS_MAX], top = 0, low = 0;

    *ret = (struct slack_best){1, 1, {0}};
    for (size_t i = 0; i < w->n; i++) {
        top = p->start_mw[i] > top ? p->start_mw[i] : top;
        low = w->least_mw[i] > low ? w->least_mw[i] : low;
    }
    for (uint32_t mw = top; mw >= low; mw -= MW_PER_W) {
        for (size_t i = 0; i < w->n; i++)
            cap[i] = mw < p->start_mw[i] ? mw : p->start_mw[i];
        struct point at = run(w, cap);
        if (at.time_s <= first.time_s * (1 + p->allowance) &&
            at.energy_j < ret->energy * first.energy_j) {
            ret->time = at.time_s / first.time_s;
            ret->energy = at.energy_j / first.energy_j;
            memcpy(ret->cap_mw, cap, sizeof cap);
        }
    }
}

/* One descent: the first `common` watts for all boards together, then each board alone.
 */
static void one_way(const struct slack_world *w, const struct slack_play *p,
                    double limit_s, struct rng *rng, struct point *ret, uint32_t *cap)
{
    size_t order[SLACK_BOARDS_MAX];

    memcpy(cap, p->start_mw, w->n * sizeof *cap);
    *ret = run(w, cap);
    for (uint32_t step = FIRST_STEP_W * MW_PER_W; step >= MW_PER_W; step /= 2)
        for (bool moved = true; moved;) {
            moved = false;
            for (size_t i = 0; i < w->n; i++) {
                size_t k = rng_below(rng, i + 1);
                order[i] = order[k];
                order[k] = i;
            }
            for (size_t o = 0; o < w->n; o++) {
                size_t i = order[o];
                if (cap[i] < w->least_mw[i] + step)
                    continue;
                cap[i] -= step;
                struct point at = run(w, cap);
                if (at.time_s <= limit_s && at.energy_j < ret->energy_j) {
                    *ret = at;
                    moved = true;
                } else {
                    cap[i] += step;
                }
            }
        }
}

void slack_oracle(const struct slack_world *w, const struct slack_play *p,
                  struct slack_best *ret)
{
    const struct point first = run(w, p->start_mw);
    double limit_s = first.time_s * (1 + p->allowance);
    uint32_t cap[SLACK_BOARDS_MAX];
    struct rng rng;

    rng_init(&rng, p->seed);
    *ret = (struct slack_best){1, 1, {0}};
    for (int k = 0; k < ORDERS; k++) {
        struct point at;
        one_way(w, p, limit_s, &rng, &at, cap);
        if (at.energy_j >= ret->energy * first.energy_j)
            continue;
        ret->time = at.time_s / first.time_s;
        ret->energy = at.energy_j / first.energy_j;
        memcpy(ret->cap_mw, cap, w->n * sizeof *cap);
    }
}
