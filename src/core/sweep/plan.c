#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "core/sweep/sweep.h"

static int outside(const char *what, const char *typed, uint32_t mw, uint32_t low_mw,
                   uint32_t high_mw, uw_error *err)
{
    char watts[WATTS_TEXT];

    return fail(err, -ERANGE, "%s: %s is outside %g W..%g W", what,
                watts_typed(typed, mw, watts), w_of_mw(low_mw), w_of_mw(high_mw));
}

static int check_range(const struct sweep_range *g, uint32_t from, uint32_t to,
                       uw_error *err)
{
    char watts[WATTS_TEXT];

    if (g->step_mw == 0)
        return fail(err, -ERANGE, "--step: 0 W is outside 0.001 W..%g W",
                    w_of_mw(g->max_mw - g->min_mw));
    if (from < g->min_mw || from > g->max_mw)
        return outside("--from", g->from_typed, from, g->min_mw, g->max_mw, err);
    if (to >= g->min_mw && to < from)
        return fail(err, -ERANGE, "--to: %s is below --from, %g W",
                    watts_typed(g->to_typed, to, watts), w_of_mw(from));
    if (to < from || to > g->max_mw)
        return outside("--to", g->to_typed, to, from, g->max_mw, err);
    if ((to - from) / g->step_mw >= SWEEP_CAPS_MAX - 1)
        return fail(err, -ERANGE,
                    "--step: %s makes more than %d caps between %g W and %g W",
                    watts_typed(g->step_typed, g->step_mw, watts), SWEEP_CAPS_MAX - 1,
                    w_of_mw(from), w_of_mw(to));
    return 0;
}

int sweep_grid(const struct sweep_range *g, uint32_t **ret, size_t *ret_n, uw_error *err)
{
    uint32_t from = g->from_mw ? g->from_mw : g->min_mw;
    uint32_t to = g->to_mw ? g->to_mw : g->max_mw;
    bool placed = false;
    size_t n = 0;

    int r = check_range(g, from, to, err);
    if (r < 0)
        return r;
    size_t steps = (to - from) / g->step_mw;
    uint32_t *caps = calloc(steps + 2, sizeof *caps);
    if (!caps)
        return fail(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i <= steps; i++) {
        uint32_t cap = from + (uint32_t)i * g->step_mw;
        if (!placed && cap >= g->default_mw) {
            placed = true;
            if (cap > g->default_mw)
                caps[n++] = g->default_mw;
        }
        caps[n++] = cap;
    }
    if (!placed)
        caps[n++] = g->default_mw;
    *ret = caps;
    *ret_n = n;
    return 0;
}

static void shuffle(uint32_t *v, size_t n, struct rng *g)
{
    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)rng_below(g, i);
        uint32_t held = v[i - 1];
        v[i - 1] = v[k];
        v[k] = held;
    }
}

/* One round: `others` in pieces of similar length, up to SWEEP_REF_EVERY, each after a
 * run at the reference.  Returns how many caps were written.
 */
static size_t round_of(const uint32_t *others, size_t n, uint32_t reference_mw,
                       uint32_t *ret)
{
    size_t pieces = (n + SWEEP_REF_EVERY - 1) / SWEEP_REF_EVERY, at = 0;

    if (pieces == 0)
        pieces = 1;
    for (size_t p = 0; p < pieces; p++) {
        ret[at++] = reference_mw;
        for (size_t i = n * p / pieces; i < n * (p + 1) / pieces; i++)
            ret[at++] = others[i];
    }
    return at;
}

int sweep_plan(const uint32_t *caps, size_t n, const struct sweep_order *order,
               uint32_t **ret, size_t *ret_n, uw_error *err)
{
    const uint32_t reference_mw = order->reference_mw;
    const unsigned runs = order->runs;
    struct rng g;
    size_t n_others = 0, at = 0;

    if (runs < 1 || runs > SWEEP_RUNS_MAX)
        return fail(err, -ERANGE, "--runs: %u is outside 1..%d", runs, SWEEP_RUNS_MAX);
    auto_(mem_free) uint32_t *others = calloc(n + 1, sizeof *others);
    uint32_t *plan = calloc(runs * (2 * n + 1) + 1, sizeof *plan);
    if (!others || !plan) {
        free(plan);
        return fail(err, -ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < n; i++)
        if (caps[i] != reference_mw)
            others[n_others++] = caps[i];
    rng_init(&g, order->seed);
    for (unsigned k = 0; k < runs; k++) {
        shuffle(others, n_others, &g);
        at += round_of(others, n_others, reference_mw, plan + at);
    }
    if (n_others > 0)
        plan[at++] = reference_mw;
    *ret = plan;
    *ret_n = at;
    return 0;
}
