#include "core/optimum/propose.h"

#include <math.h>
#include <stdio.h>

#include "core/optimum/outlook.h"

/* In brackets, of each number here: a row of bench/constants that gets worse with half or
 * twice of it, and the figure.
 *
 * The least expected gain, as a fraction of the goal's value, that pays for a window, and
 * the additional one that pays for a new cap: measuring for less costs the job more than
 * it gains.  For EDP both are multiplied by EDP_SCALE, as it is a product.
 * [new_cap: recorded: caps; mixed: recorded, eds:2: max regret; bounded_noisy: recorded,
 * 1 % noise, slowdown:1.02: caps.  window: recorded, 1 % noise: windows; bounded:
 * generated, slowdown:1.02: cost]
 */
#define WINDOW 0.0001 /* of the free goals */
static const struct price {
    double new_cap, window;
} price_energy = {0.005, WINDOW}, price_edp = {0.0045, WINDOW},
  price_mixed = {0.0065, WINDOW}, /* sums of energy and time: flatter minima */
    price_bounded = {0.004, 0.0003}, price_bounded_noisy = {0.006, 0.0002};
#define EDP_SCALE 2 /* [recorded, edp: caps] */
/* Share of a one-hour job in one window of 10 s.  Under a noisy bound the price of a
 * window includes its excess value, since many are taken at the expensive reference.
 * [recorded, 1 % noise, slowdown:1.02: windows]
 */
#define DEAR (10.0 / 3600)
/* Fraction of the demand: distance at which a missing neighbour of the best cap is
 * measured.  A measured cap up to twice as far counts as a neighbour, but not one behind
 * a cliff: then only as far.  [recorded, energy: max regret]
 */
#define STEP 0.10
#define CLIFF 0.35 /* log time above the best's [recorded, energy: caps] */
/* A gap above a cliff is probed if its upper end is at least WIDE times its lower end,
 * unless the model's value there is worse than the best by more than CLIFF_HOPE.
 */
#define WIDE 1.5        /* [recorded, energy: windows] */
#define CLIFF_HOPE 0.20 /* [recorded, edp: caps] */
#define FLAT 0.003 /* log time and energy: a smaller change counts as none [no row] */
/* Of the demand: largest distance of a held cap from a measured one [recorded, energy:
 * caps] */
#define NEAR 0.08
/* When no window pays, a gap between measured caps is probed if it is wider than `wide`
 * (fraction of the demand) and the model's value there is worse than the best by at most
 * `hope`, or `low_hope` for the gap down to the lowest allowed cap.  The width of the
 * latter is multiplied by LOW_WEIGHT: its lower end is not measured.  [even: recorded:
 * edp: caps, eds:1.5: mean regret, cost; uneven: recorded: energy: caps, eds:1.5: mean
 * regret, 1 % noise, 1 h, eds:2: windows; bounded: recorded, slowdown:1.02: caps, no row
 * for hope, 1 % noise, slowdown:1.1: caps]
 */
static const struct gaps {
    double wide, hope, low_hope;
} gaps_even = {0.29, 0.03, 0.12}, /* most curves */
    gaps_uneven = {0.14, 0.10, 0.20}, gaps_bounded = {0.20, -0.02, 0.10};
#define LOW_WEIGHT 1.5 /* [recorded, eds:2: caps] */
/* Where in that gap to probe, as a fraction of the way down [recorded, eds:1.5: cost] */
#define LOW_AT 0.75
/* Roughness above which a curve is uneven; most recorded curves have less.  Roughness of
 * power has a lower weight: power jumps for more reasons than time does.
 */
#define UNEVEN 0.022    /* [recorded, energy: caps] */
#define ROUGH_POWER 0.4 /* [recorded, edp: caps] */
/* With fewer levels, roughness is that of the prior [recorded, eds:1.5: mean regret]. */
enum { UNEVEN_LEVELS = 3 };
/* With exact windows, the cap expected to reach the bound is measured if it is better
 * than the best measured cap by this fraction of the reference's value: like regula
 * falsi, which needs EXPECTED_LEVELS levels; with fewer, only if no other window pays.
 * In a look, the gain need only be LOOK_GAIN of the best measured cap's value.
 * [EXPECTED_LEVELS: recorded, slowdown:1.02: max regret]
 */
#define EXPECTED 0.005 /* [recorded, slowdown:1.02: caps] */
enum { EXPECTED_LEVELS = 3 };
/* Under a noisy bound, with at most so many windows left, only the gain of caps that will
 * have been measured counts: else the last window might leave no cap that may be held.
 * [recorded, 1 % noise, slowdown:1.02: windows]
 */
enum { LAST_WINDOWS = 6 };

struct pick {
    size_t at;
    unsigned windows;
    double net, gain;
};

/* A bound with noise that the slack does not cover. */
static bool noisy_bound(const struct outlook *o)
{
    return !isinf(o->shape.bound) && !o->quiet;
}

static bool exact_bound(const struct outlook *o)
{
    return !isinf(o->shape.bound) && o->quiet;
}

static const struct price *price_of(const struct outlook *o)
{
    if (!isinf(o->shape.bound))
        return noisy_bound(o) ? &price_bounded_noisy : &price_bounded;
    if (o->shape.product)
        return &price_edp;
    return o->shape.wt > 0 ? &price_mixed : &price_energy;
}

/* A new cap has a price of its own so that the search holds soon.  A look under a bound
 * has none: it is short, and the held cap may be left for the rest of the job.
 */
static double new_cap_price(const struct outlook *o, size_t c)
{
    bool looks = !isinf(o->shape.bound) && o->again;

    return o->measured[c] || looks ? 0 : price_of(o)->new_cap;
}

static double scale_of(const struct outlook *o)
{
    return o->shape.product ? EDP_SCALE : 1;
}

/* The part of a window's price at cap c that is due to the worse value there. */
static double dearness(const struct outlook *o, size_t c)
{
    return noisy_bound(o) ? DEAR * fmax(o->value[c] / o->value[o->best] - 1, 0) : 0;
}

static struct pick best_pick(const struct outlook *o, unsigned left, bool measured)
{
    static const unsigned batch[] = {1, 2, PROPOSE_LENGTH_MAX};
    const struct price *price = price_of(o);
    double scale = scale_of(o) * o->value[o->best];
    struct pick p = {0};
    bool noisy = o->var_t[0] > EXACT || o->var_e > EXACT;

    for (size_t c = 0; c < o->n; c++)
        for (size_t k = 0; k < (noisy ? 3 : 1); k++) {
            if (o->measured[c] && !noisy)
                continue;
            if (batch[k] > left && noisy_bound(o))
                continue;
            double gain = outlook_gain(o, c, batch[k], measured);
            double window = price->window + dearness(o, c);
            double net = gain - scale * (new_cap_price(o, c) + batch[k] * window);
            if (net > p.net)
                p = (struct pick){c, batch[k], net, gain};
        }
    return p;
}

static bool near_measured(const struct outlook *o, double cap_w)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->measured[i] && fabs(o->cap_w[i] - cap_w) <= NEAR * o->model.demand_w)
            return true;
    return false;
}

/* Time and energy equal the reference's: the cap has no effect there. */
static bool flat(const struct outlook *o, const struct level *l)
{
    return fabs(l->log_t - o->model.ref_t) < FLAT &&
           fabs(l->log_e - o->model.ref_e) < FLAT;
}

/* The level is far slower than the best cap: a minimum may lie between the two. */
static bool steep(const struct outlook *o, const struct level *l, size_t best)
{
    return !l->stale && l->log_t - o->model.ref_t - o->spot[best].mean_t > CLIFF;
}

/* The best cap needs a measured neighbour on this side (+1 above, -1 below) with a
 * different time or energy, unless the allowed range ends there.  Returns the neighbour
 * to measure, or 0.
 */
static double missing_side(const struct outlook *o, size_t best, int side)
{
    double best_w = o->cap_w[best];
    double step = STEP * o->model.demand_w;
    double room = side < 0 ? best_w - o->lo_w : o->hi_w - best_w, from = 0;

    if (room < 0.5 * step || !isinf(o->shape.bound))
        return 0;
    for (size_t i = 0; i < o->model.n; i++) { /* includes stale levels */
        const struct level *l = &o->model.levels[i];
        double away = side * (l->cap_w - best_w);
        if (away < 0.25 * step || (l->stale && !o->model.agrees))
            continue;
        if (side < 0 && !l->stale && flat(o, l))
            from = fmax(from, away);
        else if (away <= (steep(o, l, best) ? step : 2 * step))
            return 0;
    }
    if (from > room - 0.5 * step)
        return 0;
    double to = best_w + side * fmax(2 * from, step);
    const struct level *all = o->model.levels;
    const struct level *there = levels_near(all, o->model.n, to, 0.25 * step);
    if (there) /* measured, but not a neighbour: half way, or none if measured too */
        to = 0.5 * (there->cap_w + best_w);
    if (there && levels_near(all, o->model.n, to, 0.25 * step))
        return 0;
    return fmin(fmax(round(to / o->grain_w) * o->grain_w, o->lo_w), o->hi_w);
}

/* The geometric mean of the highest steep level below the best cap and the next level
 * above it, if that gap is wide; else 0.  The model assumes smooth curves and
 * underestimates minima next to a cliff; no recorded curve has one where the model
 * expects a far worse value.
 */
static double behind_cliff(const struct outlook *o, size_t best)
{
    double cliff = 0, above = HUGE_VAL;

    for (size_t i = 0; i < o->model.n; i++) {
        const struct level *l = &o->model.levels[i];
        if (l->cap_w < o->cap_w[best] && steep(o, l, best))
            cliff = fmax(cliff, l->cap_w);
    }
    for (size_t i = 0; i < o->model.n; i++) {
        const struct level *l = &o->model.levels[i];
        if (!l->stale && l->cap_w > cliff)
            above = fmin(above, l->cap_w);
    }
    if (cliff <= 0 || !isinf(o->shape.bound) || above < WIDE * cliff)
        return 0;
    double to = fmin(fmax(round(sqrt(cliff * above) / o->grain_w) * o->grain_w, o->lo_w),
                     o->hi_w);
    double most = o->value[best] * (1 + scale_of(o) * CLIFF_HOPE);
    return o->value[outlook_nearest(o, to)] > most ? 0 : to;
}

/* A cap inside the widest gap between measured caps, down to the lowest allowed cap,
 * that may contain a better value (struct gaps).  0: none.
 */
static double widest_gap(const struct outlook *o, size_t best, const struct gaps *g)
{
    double widest = g->wide * o->model.demand_w, at = 0, below_w = o->lo_w;
    bool lowest = true;

    for (size_t i = 0; i < o->n; i++) {
        if (!o->measured[i])
            continue;
        double gap = o->cap_w[i] - below_w, wide = lowest ? LOW_WEIGHT * gap : gap;
        double mid = o->cap_w[i] - (lowest ? LOW_AT : 0.5) * gap;
        double v = o->value[outlook_nearest(o, mid)];
        double hope = 1 + scale_of(o) * (lowest ? g->low_hope : g->hope);
        if (lowest)
            v = fmin(v, o->value[i]);
        if (wide > widest && v < o->value[best] * hope) {
            widest = wide;
            at = mid;
        }
        below_w = o->cap_w[i];
        lowest = false;
    }
    return at > 0 ? fmin(fmax(round(at / o->grain_w) * o->grain_w, o->lo_w), o->hi_w) : 0;
}

/* Model criticism: the levels do not lie on a smooth curve. */
static bool uneven(const struct outlook *o)
{
    return o->model.n >= UNEVEN_LEVELS &&
           hypot(o->model.rough_t, ROUGH_POWER * o->model.rough_p) > UNEVEN;
}

/* There are stale levels, and those of this regime agree with them. */
static bool old_agrees(const struct outlook *o)
{
    bool old = false;
    for (size_t i = 0; i < o->model.n; i++)
        old |= o->model.levels[i].stale;
    return old && o->model.agrees;
}

/* A probe of the widest gap, for curves with two minima or a dip.  0: none. */
static double look(const struct outlook *o, size_t best, const char **ret_why)
{
    bool odd = uneven(o), bounded = !isinf(o->shape.bound);

    if (!odd && (bounded || old_agrees(o)))
        return 0;
    double at = widest_gap(o, best,
                           bounded ? &gaps_bounded
                           : odd   ? &gaps_uneven
                                   : &gaps_even);
    if (at > 0)
        *ret_why = odd ? "uneven curve: probes the widest gap between measured caps"
                       : "probes the widest gap between measured caps";
    return at;
}

/* When the model expects no gain from a window: checks that the best cap is a measured
 * local minimum.  The cap to measure for that, or 0.
 */
static double climb(const struct outlook *o, size_t best, double best_w,
                    const char **ret_why)
{
    double below = missing_side(o, best, -1), above = missing_side(o, best, 1);

    if (!exact_bound(o) && !near_measured(o, best_w)) {
        *ret_why = "model expects the best cap here, to be verified";
        return best_w;
    }
    if (below > 0) {
        *ret_why = "neighbour below the best cap";
        return below;
    }
    if (above > 0) {
        *ret_why = "neighbour above the best cap";
        return above;
    }
    double behind = behind_cliff(o, best);
    if (behind > 0) {
        *ret_why = "between a cliff and the best cap: a wide gap";
        return behind;
    }
    return look(o, best, ret_why);
}

/* Under a bound only a measured cap may be held. */
static void keep_measured(const struct outlook *o, struct proposal *ret)
{
    size_t best = outlook_best_measured(o);
    ret->best_w = o->cap_w[best];
    ret->log_t = o->spot[best].mean_t + o->model.ref_t;
    ret->log_e = o->spot[best].mean_e + o->model.ref_e;
}

/* The window with the highest net gain; net 0: none pays.  Under a noisy bound, if none
 * pays for the best of all caps, the best for the measured caps, which may be held.
 */
static struct pick worth_measuring(const struct outlook *o, unsigned left)
{
    struct pick p = best_pick(o, left, noisy_bound(o) && left <= LAST_WINDOWS);

    if (noisy_bound(o) && !(p.net > 0))
        p = best_pick(o, left, true);
    return p;
}

/* Whether to measure the expected best cap next (EXPECTED). */
static bool expected_next(const struct outlook *o, size_t expected, const struct pick *p)
{
    double had = o->value[outlook_best_measured(o)], gain = had - o->value[expected];
    double least = o->again ? LOOK_GAIN * had : EXPECTED;

    return exact_bound(o) && !o->measured[expected] && gain > least &&
           (o->model.n >= EXPECTED_LEVELS || !(p->net > 0));
}

/* Whether the window with the highest net gain is next.  Another window at a measured
 * cap waits until the best cap has a neighbour below: it only tells which of the caps
 * above the unmeasured ones is the best.
 */
static bool is_next(const struct outlook *o, const struct pick *p, size_t best)
{
    return p->net > 0 && !(o->measured[p->at] && missing_side(o, best, -1) > 0);
}

void propose(const struct scene *s, struct outlook *o, struct proposal *ret)
{
    outlook_make(o, s);
    size_t best = o->best, expected = outlook_expected(o);
    struct pick p = worth_measuring(o, s->windows_left);
    const char *why = "model expects no better cap";

    *ret = (struct proposal){.hold = true, .length = 1};
    if (s->windows_left == 0 && !o->measured[best])
        best = outlook_best_measured(o);
    ret->best_w = outlook_refined(o, best, &ret->log_t, &ret->log_e);
    if (s->windows_left == 0) {
        why = "all windows are used";
    } else if (expected_next(o, expected, &p)) {
        ret->hold = false;
        ret->cap_w = o->cap_w[expected];
        why = "model expects the time bound here";
    } else if (is_next(o, &p, best)) {
        ret->hold = false;
        ret->cap_w = o->cap_w[p.at];
        if (o->measured[p.at] && noisy_bound(o))
            ret->length = p.windows;
        (void)snprintf(ret->why, sizeof ret->why, "%smodel expects %.2g %% lower %s",
                       o->measured[p.at] ? "another window, " : "",
                       100 * p.gain / o->value[best], goal_noun(s->goal.kind));
        return;
    } else {
        double to = climb(o, best, ret->best_w, &why);
        ret->hold = !(to > 0);
        ret->cap_w = to;
    }
    if (ret->hold && !isinf(o->shape.bound))
        keep_measured(o, ret);
    if (ret->hold)
        ret->cap_w = ret->best_w;
    (void)snprintf(ret->why, sizeof ret->why, "%s", why);
}
