#include "core/optimum/search-state.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "core/optimum/gap-probe.h"
#include "core/optimum/propose.h"

enum {
    DEFAULT_WINDOWS = 24,
    MISSES_MAX = 2,   /* windows in a row at another cap before that cap is accepted */
    CHECK_STEPS = 2,  /* units of work at the first cap before the ramp starts */
    SETTLE_STEPS = 1, /* warm-up steps after a change of cap */
    LOOK_LEAST = 8,   /* windows of a hold before a look uses them */
    NOW_WINDOWS = 16, /* in the averages of struct drift */
};
#define STALL_STEP 0.05     /* of the demand: least distance above a cap that stalled */
#define REFERENCE_RISE 0.05 /* of the highest cap allowed, for a new reference */
#define BOUND_EVIDENCE 6.0  /* log evidence an earlier run needs to support a bound */
#define STEADY 0.001 /* largest change of log time in a hold, if the noise is unknown */

/* ---- caps ---- */

static uint32_t down_to_grain(const struct search *s, double mw)
{
    return (uint32_t)(floor(mw / s->setup.grain_mw + 1e-9)) * s->setup.grain_mw;
}

uint32_t search_up_to_grain(const struct search *s, double mw)
{
    return (uint32_t)(ceil(mw / s->setup.grain_mw - 1e-9)) * s->setup.grain_mw;
}

struct level *search_level(const struct search *s, uint32_t mw)
{
    return levels_near(s->levels, s->n_levels, w_of_mw(mw),
                       w_of_mw(s->setup.grain_mw) / 2);
}

uint32_t search_effective(const struct search *s, uint32_t mw)
{
    return s->unbound_mw && mw > s->unbound_mw ? s->unbound_mw : mw;
}

uint32_t search_highest(const struct search *s)
{
    uint32_t hi = s->setup.original_mw;
    if (s->hard_mw != SEARCH_NO_LIMIT && s->hard_mw < hi)
        hi = down_to_grain(s, s->hard_mw);
    return hi > s->setup.min_mw ? hi : s->setup.min_mw;
}

static double demand_mw(const struct search *s)
{
    const struct level *r = &s->levels[s->reference];
    return exp(r->log_e - r->log_t) * MW_PER_W;
}

uint32_t search_lowest(const struct search *s)
{
    double lo = s->setup.min_mw;
    if (s->has_reference)
        lo = fmax(lo, s->setup.floor * demand_mw(s));
    if (s->stall_mw) {
        double d = s->has_reference ? STALL_STEP * demand_mw(s) : 0;
        lo = fmax(lo, s->stall_mw + fmax(d, s->setup.grain_mw));
    }
    uint32_t lo_mw = search_up_to_grain(s, lo),
             hi_mw = search_effective(s, search_highest(s));
    return lo_mw < hi_mw ? lo_mw : hi_mw;
}

/* ---- steps ---- */

/* Under a bound a cap that this run has measured is reached at once: a slow way down lets
 * the noise change between the windows that are compared.
 */
static bool known_cap(const struct search *s, uint32_t cap_mw)
{
    return s->setup.goal.kind == GOAL_SLOWDOWN && search_level(s, cap_mw);
}

void search_go(struct search *s, enum search_kind kind, uint32_t cap_mw,
               const char *format, ...)
{
    struct search_step *t = &s->step;
    double peak_w = s->peak_w;
    va_list args;

    if (peak_w <= 0 && s->has_reference)
        peak_w = demand_mw(s) / MW_PER_W;
    uint32_t first = search_up_to_grain(s, SEARCH_FIRST * peak_w * MW_PER_W);
    if (known_cap(s, cap_mw))
        first = cap_mw;
    *t = (struct search_step){
        .kind = kind,
        .cap_mw = cap_mw,
        .first_mw = first > cap_mw ? first : cap_mw,
        .ramp_mw_s = s->setup.ramp * s->setup.default_mw,
        .check_steps = CHECK_STEPS,
        .settle_s = SEARCH_SETTLE_S,
        .settle_steps = SETTLE_STEPS,
        .length = 1,
    };
    va_start(args, format);
    (void)vsnprintf(t->why, sizeof t->why, format, args);
    va_end(args);
    s->holding = kind == SEARCH_HOLD;
    s->waits = false;
    s->drift.n = 0;
    if (s->holding)
        s->held.mw = 0;
}

static void go_reference(struct search *s)
{
    uint32_t hi = search_highest(s);
    if (hi < s->setup.original_mw)
        search_go(s, SEARCH_MEASURE, hi,
                  "reference: the highest cap allowed (original %g W)",
                  w_of_mw(s->setup.original_mw));
    else
        search_go(s, SEARCH_MEASURE, hi, "reference: the original cap");
}

/* Levels of an earlier run may belong to another job.  They may choose the next cap, but
 * the search ends on them only after this run's levels have confirmed them, with more
 * evidence under a bound.  If this run's levels contradict them, they are discarded.
 */
static void propose_doubting(struct search *s, struct scene *scene, struct proposal *ret)
{
    propose(scene, &s->outlook, ret);
    bool verified = s->outlook.model.verified,
         denied = verified && !s->outlook.model.agrees;
    bool bounded = s->setup.goal.kind == GOAL_SLOWDOWN;
    bool enough = verified && (!bounded || s->outlook.model.evidence > BOUND_EVIDENCE);

    if (!s->earlier || (!denied && (enough || !ret->hold)))
        return;
    scene->n = levels_fresh(s->levels, s->n_levels, s->scratch, &scene->reference);
    if (denied) {
        memcpy(s->levels, s->scratch, scene->n * sizeof *s->scratch);
        s->n_levels = scene->n;
        s->reference = scene->reference;
        s->earlier = false;
        s->denied = true;
    }
    scene->levels = s->scratch;
    scene->earlier = false;
    propose(scene, &s->outlook, ret);
}

bool search_noise_known(const struct search *s)
{
    return s->setup.goal.kind == GOAL_SLOWDOWN && window_log_tells(&s->log);
}

static struct scene scene_now(const struct search *s)
{
    return (struct scene){
        .prior = s->setup.prior,
        .goal = s->setup.goal,
        .pmax_w = w_of_mw(s->setup.max_mw),
        .peak_w = s->peak_w,
        .lo_w = w_of_mw(search_lowest(s)),
        .hi_w = w_of_mw(search_effective(s, search_highest(s))),
        .grain_w = w_of_mw(s->setup.grain_mw),
        .levels = s->levels,
        .n = s->n_levels,
        .reference = s->reference,
        .earlier = s->earlier,
        .again = s->held.mw > 0,
        .windows_left = s->spent < s->windows_max && s->misses < MISSES_MAX
                            ? s->windows_max - s->spent
                            : 0,
        .noise = search_noise_known(s) ? &s->noise : NULL,
    };
}

/* The goal's value at the nearest cap of the last outlook. */
static double value_near(const struct search *s, double cap_w)
{
    return s->outlook.value[outlook_nearest(&s->outlook, cap_w)];
}

/* Whether the bound allows this cap, according to the last outlook. */
static bool allowed_near(const struct search *s, double cap_w)
{
    return outlook_allows(&s->outlook, outlook_nearest(&s->outlook, cap_w));
}

/* The best allowed cap measured in this run; NULL: none. */
static const struct level *best_level(const struct search *s)
{
    double at_w = s->outlook.cap_w[outlook_best_measured(&s->outlook)];

    return allowed_near(s, at_w) ? search_level(s, mw_of_w(at_w)) : NULL;
}

static void keep(struct proposal *p, double cap_w, double log_t, double log_e)
{
    p->cap_w = p->best_w = cap_w;
    p->log_t = log_t;
    p->log_e = log_e;
}

/* After a look, leave the held cap only for a measured cap and a gain of LOOK_GAIN: one
 * more window changes the model's curve by more than its optimum is worth.
 */
static void keep_or_verify(const struct search *s, const struct scene *scene,
                           struct proposal *p)
{
    double held_w = w_of_mw(search_effective(s, s->held.mw));
    const struct level *best = best_level(s);

    if (!s->held.mw || !p->hold || !best || held_w < scene->lo_w || held_w > scene->hi_w)
        return;
    if (scene->windows_left == 0)
        keep(p, best->cap_w, best->log_t, best->log_e);
    if (allowed_near(s, held_w) &&
        value_near(s, held_w) <= value_near(s, p->cap_w) * (1 + LOOK_GAIN)) {
        keep(p, held_w, s->held.log_t, s->held.log_e);
        (void)snprintf(p->why, sizeof p->why, "no better cap was found");
        return;
    }
    if (search_level(s, mw_of_w(p->cap_w)))
        return;
    p->hold = false;
    (void)snprintf(p->why, sizeof p->why,
                   "model expects a better cap here, to be verified");
}

void search_go_next(struct search *s)
{
    struct proposal p;

    if (!s->has_reference) {
        go_reference(s);
        return;
    }
    if (search_noise_known(s))
        window_log_levels(&s->log, s->levels, s->n_levels, s->reference, &s->noise);
    struct scene scene = scene_now(s);
    propose_doubting(s, &scene, &p);
    keep_or_verify(s, &scene, &p);
    s->best.mw = mw_of_w(p.best_w);
    uint32_t cap_mw = mw_of_w(p.cap_w);
    if (p.hold && s->unbound_mw &&
        cap_mw + s->setup.grain_mw / 2 >=
            s->unbound_mw) /* without effect: the original is as good */
        cap_mw = s->best.mw = search_highest(s);
    s->best.log_t = p.log_t;
    s->best.log_e = p.log_e;
    s->best.var = s->outlook.var[outlook_nearest(&s->outlook, p.best_w)];
    assert(p.cap_w >= scene.lo_w - 1e-6 && p.cap_w <= scene.hi_w + 1e-6);
    char untried[SEARCH_UNTRIED_MAX] = "";
    if (p.hold)
        search_untried(s, untried);
    search_go(s, p.hold ? SEARCH_HOLD : SEARCH_MEASURE, cap_mw, "%s%s", p.why, untried);
    if (!p.hold)
        s->step.length = p.length;
}

/* ---- construction ---- */

static int check_setup(const struct search_setup *p, uw_error *err)
{
    if (p->min_mw == 0 || p->min_mw > p->max_mw)
        return fail(err, -EINVAL, "board range %" PRIu32 "..%" PRIu32 " mW is empty",
                    p->min_mw, p->max_mw);
    if (p->original_mw < p->min_mw || p->original_mw > p->max_mw)
        return fail(err, -ERANGE,
                    "original cap %" PRIu32 " mW is outside %" PRIu32 "..%" PRIu32,
                    p->original_mw, p->min_mw, p->max_mw);
    if (p->default_mw == 0)
        return fail(err, -EINVAL, "default limit 0 mW is not positive");
    if (!(p->floor >= 0 && p->floor <= 1))
        return fail(err, -ERANGE, "soft floor %g is outside 0..1", p->floor);
    if (!(p->ramp >= 0 && p->ramp <= 1))
        return fail(err, -ERANGE, "ramp %g per second is outside 0..1", p->ramp);
    if (p->max_windows > SEARCH_WINDOWS_MAX)
        return fail(err, -ERANGE, "%u windows exceed the limit of %d", p->max_windows,
                    SEARCH_WINDOWS_MAX);
    return 0;
}

int search_new(const struct search_setup *setup, struct search **ret, uw_error *err)
{
    int r = check_setup(setup, err);
    if (r < 0)
        return r;
    struct search *s = calloc(1, sizeof *s);
    if (!s)
        return fail(err, -ENOMEM, "no memory for a search");

    s->setup = *setup;
    s->hard_mw = setup->hard_mw;
    if (s->setup.grain_mw == 0)
        s->setup.grain_mw = MW_PER_W;
    if (s->setup.gpus == 0)
        s->setup.gpus = 1;
    if (!(s->setup.floor > 0))
        s->setup.floor = SEARCH_FLOOR;
    if (!(s->setup.ramp > 0))
        s->setup.ramp = SEARCH_RAMP;
    if (s->setup.max_windows == 0)
        s->setup.max_windows = DEFAULT_WINDOWS;
    s->windows_max = s->setup.max_windows;
    search_go_next(s);
    *ret = s;
    return 0;
}

void search_free(struct search *s)
{
    free(s);
}

const struct search_step *search_step(const struct search *s)
{
    return &s->step;
}

/* ---- windows ---- */

static bool good(double v)
{
    return isfinite(v) && v > 0;
}

/* The level of this cap, created if missing; NULL: LEVELS_MAX levels of this run. */
static struct level *level_at(struct search *s, uint32_t cap_mw)
{
    struct level *l = search_level(s, search_effective(s, cap_mw));

    if (l)
        return l;
    for (size_t i = 0; i < s->n_levels && s->n_levels == LEVELS_MAX && !l; i++)
        if (s->levels[i].stale)
            l = &s->levels[i]; /* replace a stale level */
    if (!l && s->n_levels == LEVELS_MAX)
        return NULL;
    if (!l)
        l = &s->levels[s->n_levels++];
    *l = (struct level){.cap_w = w_of_mw(search_effective(s, cap_mw))};
    return l;
}

static void level_add(struct level *l, const struct search_window *w, unsigned gpus,
                      const struct drift *drift)
{
    struct level seen = {.log_t = log(w->time_s) - drift->offset_t,
                         .log_e = log(w->energy_j / gpus) - drift->offset_e,
                         .var_t = fmax(w->time_rse * w->time_rse, EXACT_VAR),
                         .var_e = fmax(w->energy_rse * w->energy_rse, EXACT_VAR),
                         .windows = w->length && !w->known ? w->length : 1};

    level_join(l, &seen);
}

static void log_add(struct search *s, const struct search_window *w)
{
    struct log_window l = {.cap_mw = search_effective(s, w->cap_mw),
                           .log_p = log(w->energy_j / w->time_s / s->setup.gpus),
                           .power_rse = w->energy_rse,
                           .t = {.start_s = w->start_s,
                                 .lasted_s = w->lasted_s,
                                 .log_v = log(w->time_s),
                                 .rse = w->time_rse,
                                 .parts = w->parts}};

    window_log_add(&s->log, &l);
}

static int check_window(const struct search_window *w, uw_error *err)
{
    if (!good(w->time_s) || !good(w->energy_j) || w->cap_mw == 0)
        return fail(err, -EINVAL, "window at %" PRIu32 " mW: %g s, %g J: not positive",
                    w->cap_mw, w->time_s, w->energy_j);
    if (!(w->time_rse >= 0 && w->time_rse < 1 && w->energy_rse >= 0 && w->energy_rse < 1))
        return fail(err, -EINVAL, "window at %" PRIu32 " mW: errors %g, %g: not in 0..1",
                    w->cap_mw, w->time_rse, w->energy_rse);
    return 0;
}

static void drift_add(struct drift *d, const struct search_window *w, unsigned gpus)
{
    double part = ++d->n < NOW_WINDOWS ? 1.0 / d->n : 1.0 / NOW_WINDOWS;

    d->log_t += part * (log(w->time_s) - d->log_t);
    d->log_e += part * (log(w->energy_j / gpus) - d->log_e);
}

/* Whether the reference was measured under a limit so far below cap_mw, which is allowed
 * now, that it does not stand for the job without the limit.
 */
static bool above_reference(const struct search *s, uint32_t cap_mw, double rise)
{
    return s->has_reference && !s->unbound_mw &&
           cap_mw > s->reference_mw * (1 + rise) + s->setup.grain_mw;
}

/* The search continues from its levels with another reference. */
static void reopen(struct search *s)
{
    s->rises = false;
    s->held.mw = s->dear_mw = s->waits_mw = 0;
    s->windows_max = s->spent + s->setup.max_windows;
}

/* Takes the window for the reference if there is none yet or it is above the present one.
 * True: an earlier reference was measured under a limit, and the search goes on.
 */
static bool take_reference(struct search *s, const struct level *l,
                           const struct search_window *w, bool hit)
{
    bool first = !s->has_reference && (hit || w->known || s->misses >= MISSES_MAX);
    bool anew = s->rises || above_reference(s, w->cap_mw, REFERENCE_RISE);

    if (!first && !above_reference(s, w->cap_mw, 0))
        return false;
    s->has_reference = true;
    s->reference = (size_t)(l - s->levels);
    s->reference_mw = w->cap_mw;
    s->misses = 0;
    if (anew)
        reopen(s);
    return anew;
}

/* A window whose cap had no effect counts as one of the reference.  It counts towards
 * the limit of windows unless the job lost nothing in it.
 */
static void take_effect(struct search *s, const struct search_window *w)
{
    enum effect effect = search_effect(s, w);

    s->again_mw = effect == EFFECT_AGAIN ? w->cap_mw : 0;
    if (effect == EFFECT_NONE) {
        s->n_levels = levels_move_reference(s->levels, s->n_levels, &s->reference,
                                            w_of_mw(w->cap_mw));
        s->unbound_mw = w->cap_mw;
    }
    s->windows++;
    if (!s->waits && (effect == EFFECT_ANY || s->windows > s->setup.max_windows))
        s->spent += w->length ? w->length : 1;
}

int search_on_window(struct search *s, const struct search_window *w, uw_error *err)
{
    int r = check_window(w, err);
    if (r < 0)
        return r;

    take_effect(s, w);
    struct level *l = level_at(s, w->cap_mw);
    uint32_t asked = s->step.cap_mw;
    uint32_t off = w->cap_mw > asked ? w->cap_mw - asked : asked - w->cap_mw;
    bool hit = off <= s->setup.grain_mw;

    s->waited = s->waits ? s->waited + s->holding : 0;
    if (l && l->windows == 0)
        s->dear_mw = 0; /* the model knows more now */
    if (l) {
        level_add(l, w, s->setup.gpus, &s->drift);
        log_add(s, w);
    } else {
        s->spent = s->windows_max; /* no level is free: end the search */
    }
    if (s->holding && hit)
        drift_add(&s->drift, w, s->setup.gpus);
    if (!s->holding)
        s->misses = hit || w->known ? 0 : s->misses + 1;
    bool anew = l && take_reference(s, l, w, hit);
    if (s->has_reference && l == &s->levels[s->reference] && good(w->peak_w))
        s->peak_w = fmax(s->peak_w, w->peak_w);
    if (s->again_mw && hit && s->spent < s->windows_max)
        search_go(s, SEARCH_MEASURE, asked, "again: no effect of this cap is seen");
    else if (!s->holding || w->known || anew)
        search_go_next(s);
    return 0;
}

int search_on_earlier(struct search *s, const struct search_window *w, double demand_w,
                      uw_error *err)
{
    int r = check_window(w, err);
    if (r < 0)
        return r;
    if (!good(demand_w))
        return fail(err, -EINVAL, "demand %g W is not positive", demand_w);
    if (s->windows > 0 || s->has_reference)
        return fail(err, -EINVAL, "this run already has %u windows", s->windows);

    struct level *l = NULL;
    for (size_t i = 0; i < s->n_levels && !l; i++)
        if (fabs(s->levels[i].cap_w * MW_PER_W - w->cap_mw) < 0.5 * s->setup.grain_mw)
            l = &s->levels[i];
    if (!l && s->n_levels == SEARCH_EARLIER_MAX)
        return 0;
    if (!l) {
        l = &s->levels[s->n_levels++];
        *l = (struct level){.cap_w = w_of_mw(w->cap_mw), .stale = true};
        s->earlier = true;
    }
    l->demand_w = demand_w;
    level_add(l, w, s->setup.gpus, &(struct drift){0});
    return 0;
}

/* ---- stalls, limits, changes ---- */

/* The job stalls at caps that seemed to have no effect: no cap is known to have none. */
static void reference_back(struct search *s)
{
    s->levels[s->reference].cap_w = w_of_mw(s->reference_mw);
    s->unbound_mw = 0;
}

void search_on_stall(struct search *s, uint32_t cap_mw)
{
    if (cap_mw > s->stall_mw)
        s->stall_mw = cap_mw;
    if (s->unbound_mw && s->stall_mw >= s->unbound_mw)
        reference_back(s);
    /* The lowest measured cap that is still allowed: the job runs there. */
    uint32_t hi = search_highest(s), up = hi;
    for (size_t i = 0; i < s->n_levels; i++) {
        uint32_t mw = mw_of_w(s->levels[i].cap_w);
        if (!s->levels[i].stale && mw >= search_lowest(s) && mw < up)
            up = mw;
    }
    bool over = s->spent >= s->windows_max;
    if (over)
        s->best.mw = up; /* lifting a hard limit does not restore the former best cap */
    search_go(s, over ? SEARCH_HOLD : SEARCH_MEASURE, up,
              "no progress at %g W: cap raised", w_of_mw(cap_mw));
}

/* Resets the state of the regime; the levels stay. */
static void regime_anew(struct search *s)
{
    s->has_reference = s->rises = s->earlier = false;
    s->unbound_mw = s->again_mw = s->dear_mw = s->waits_mw = 0;
    s->peak_w = 0;
    s->windows = s->spent = s->misses = s->waited = 0;
    s->windows_max = s->setup.max_windows;
    s->held.mw = 0;
    s->drift = (struct drift){0};
    s->log = (struct window_log){0};
}

/* Marks the levels of this regime stale and drops older stale ones. */
static void levels_to_old(struct search *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_levels && s->has_reference; i++) {
        struct level l = s->levels[i];
        if (l.stale)
            continue;
        l.stale = true;
        l.demand_w = demand_mw(s) / MW_PER_W;
        s->scratch[n++] = l;
    }
    memcpy(s->levels, s->scratch, n * sizeof *s->scratch);
    s->n_levels = n;
}

/* The reference is not measured again after all. */
static void keep_reference(struct search *s)
{
    s->has_reference |= s->rises;
    s->rises = false;
}

/* Whether the reference, which was measured under a limit, is to be measured again at the
 * highest cap allowed now.
 */
static bool reference_rises(struct search *s)
{
    keep_reference(s);
    if (!above_reference(s, search_highest(s), REFERENCE_RISE))
        return false;
    if (s->n_levels == LEVELS_MAX && !search_level(s, search_highest(s))) {
        levels_to_old(s);
        regime_anew(s);
    } else {
        s->has_reference = false;
        s->rises = true;
        s->misses = 0;
    }
    return true;
}

void search_on_hard_limit(struct search *s, uint32_t mw)
{
    uint32_t before = s->step.cap_mw, was_hi = search_highest(s);

    s->hard_mw = mw;
    bool rises = reference_rises(s);
    bool lifted = s->best.mw == was_hi && search_highest(s) > was_hi;
    if (s->holding && !s->waits && !lifted && !rises) {
        uint32_t hi = search_highest(s), keep = s->best.mw < hi ? s->best.mw : hi;
        if (keep != before)
            search_go(s, SEARCH_HOLD, keep,
                      keep < s->best.mw ? "the highest cap allowed"
                                        : "the best cap, allowed again");
    } else {
        search_go_next(s);
    }
    s->step.urgent = mw != SEARCH_NO_LIMIT && before > search_highest(s);
}

static void keep_past(struct search *s)
{
    struct past_regime r = {
        .peak_w = s->peak_w,
        .reference_mw = s->reference_mw,
        .unbound_mw = s->unbound_mw,
        .best = s->best,
        .reference = s->reference,
    };

    if (!s->has_reference || !s->holding || s->waits)
        return;
    r.n = levels_fresh(s->levels, s->n_levels, r.levels, &r.reference);
    past_keep(&s->past, &r);
}

/* Saves the current regime and looks for an earlier one that fits `now`.  True: it is
 * restored, and its best cap held.
 */
static bool come_back(struct search *s, const struct level *now)
{
    const struct prior *prior = s->setup.prior ? s->setup.prior : &prior_recorded;
    struct past_regime was;
    bool known = past_take(&s->past, prior, now, &s->outlook.model, &was);

    keep_past(s);
    if (!known || (s->stall_mw && was.best.mw <= s->stall_mw))
        return false;
    regime_anew(s);
    memcpy(s->levels, was.levels, was.n * sizeof *was.levels);
    s->n_levels = was.n;
    s->log.untimed = true; /* the windows of that regime are not kept */
    s->reference = was.reference;
    s->reference_mw = was.reference_mw;
    s->unbound_mw = was.unbound_mw;
    if (s->unbound_mw && s->stall_mw >= s->unbound_mw)
        reference_back(s);
    s->has_reference = true;
    s->peak_w = was.peak_w;
    s->best = was.best;
    s->spent = s->windows_max;
    uint32_t hi = search_highest(s);
    search_go(s, SEARCH_HOLD, was.best.mw < hi ? was.best.mw : hi, "%s",
              "the job is back in an earlier regime: the best cap of that regime");
    return true;
}

void search_on_change(struct search *s, const struct search_window *now)
{
    keep_reference(s);
    struct level here = {0};
    bool valid = now && check_window(now, NULL) == 0;

    if (valid) {
        here.cap_w = w_of_mw(now->cap_mw);
        level_add(&here, now, s->setup.gpus, &(struct drift){0});
        if (come_back(s, &here))
            return;
    } else {
        s->past.n = 0;
    }
    levels_to_old(s);
    regime_anew(s);
    struct level *l = valid ? level_at(s, now->cap_mw) : NULL;
    if (l) {
        here.cap_w = l->cap_w;
        *l = here;
        log_add(s, now);
        s->windows = 1;
        s->spent = here.windows;
    }
    search_go_next(s);
}

size_t search_known(const struct search *s, struct search_window *ret, size_t most)
{
    size_t n = 0;

    for (int pass = 0; pass < 2 && s->has_reference; pass++)
        for (size_t i = 0; i < s->n_levels; i++) {
            const struct level *l = &s->levels[i];
            if (l->stale || (i == s->reference) != (pass == 0) || n == most)
                continue;
            ret[n++] = (struct search_window){
                .cap_mw = i == s->reference ? s->reference_mw : mw_of_w(l->cap_w),
                .time_s = exp(l->log_t),
                .energy_j = exp(l->log_e) * s->setup.gpus,
                .time_rse = sqrt(l->var_t),
                .energy_rse = sqrt(l->var_e),
                .length = l->windows,
            };
        }
    return n;
}

/* Holds cap_mw until a change. */
static void hold(struct search *s, uint32_t cap_mw, const char *why)
{
    uint32_t hi = search_highest(s), keep = cap_mw < hi ? cap_mw : hi;

    s->spent = s->windows_max;
    s->best.mw = cap_mw;
    const struct level *l = search_level(s, search_effective(s, cap_mw));
    if (l) {
        s->best.log_t = l->log_t;
        s->best.log_e = l->log_e;
    }
    search_go(s, SEARCH_HOLD, keep, "%s", why);
}

void search_on_found(struct search *s, uint32_t cap_mw)
{
    if (cap_mw)
        hold(s, cap_mw, "found by an earlier search");
}

void search_end_look(struct search *s)
{
    if (s->held.mw)
        hold(s, s->held.mw, s->held_why);
}

/* ---- looks ---- */

/* The middle of the widest gap in which the expected value of the goal is worse than the
 * best by at most the fraction `most`, and the time exceeds the bound by at most as
 * much; 0: none.
 */
static double look_at_w(struct search *s, double most)
{
    const struct outlook *o = &s->outlook;
    struct scene scene = scene_now(s);
    double hi_w = scene.hi_w, wide_w = INFINITY, at_w;
    bool made = false;

    if (s->peak_w > 0) /* caps above the peak have no effect */
        hi_w = fmax(scene.lo_w, fmin(hi_w, s->peak_w));
    while ((at_w = gap_probe_w(s->levels, (unsigned)s->n_levels, scene.lo_w, hi_w,
                               scene.grain_w, &wide_w)) > 0) {
        if (!made)
            outlook_make(&s->outlook, &scene);
        made = true;
        size_t at = outlook_nearest(o, at_w);
        if (o->value[at] <= o->value[o->best] * (1 + most) &&
            o->excess[at] <= o->log_bound + log1p(most))
            return at_w;
    }
    return 0;
}

/* Corrects further windows for the drift of the hold: the difference of its last windows
 * from all of them.
 */
static void take_drift_out(struct search *s)
{
    const struct level *held = search_level(s, search_effective(s, s->step.cap_mw));

    if (held && s->drift.n >= LOOK_LEAST) {
        s->drift.offset_t = s->drift.log_t - held->log_t;
        s->drift.offset_e = s->drift.log_e - held->log_e;
    }
}

static void look_begin(struct search *s)
{
    s->misses = 0;
    s->dear_mw = 0; /* the hold has saved time */
    s->windows_max = s->spent + SEARCH_PROBE_WINDOWS;
    s->held = s->best;
    s->held.mw = s->step.cap_mw;
    memcpy(s->held_why, s->step.why, sizeof s->held_why);
}

/* Under a bound, uncertainty keeps the cap above the best allowed one, and the windows of
 * a hold reduce it at no cost.  Takes the next step if another window or another held cap
 * is worth its price; else restores the state and returns false.
 */
static bool propose_again(struct search *s)
{
    struct search_step step = s->step;
    struct drift drift = s->drift;
    unsigned windows_max = s->windows_max, misses = s->misses;
    struct choice best = s->best;

    look_begin(s);
    search_go_next(s);
    if (!s->holding || s->step.cap_mw != step.cap_mw)
        return true;
    s->step = step;
    s->drift = drift;
    s->windows_max = windows_max;
    s->misses = misses;
    s->best = best;
    return false;
}

/* Under a bound: whether the windows of the hold can be compared with the reference.  If
 * the noise is known, it limits the comparison.
 */
static bool steady(const struct search *s)
{
    return s->drift.n >= LOOK_LEAST &&
           (search_noise_known(s) || fabs(s->drift.log_t - s->best.log_t) <= STEADY);
}

bool search_probe_gap(struct search *s, double most)
{
    bool bounded = s->setup.goal.kind == GOAL_SLOWDOWN;
    size_t n = 0;

    if (!s->holding || s->waits || !s->has_reference || s->setup.goal.kind == GOAL_TIME ||
        (bounded && !steady(s)))
        return false;
    if (bounded && propose_again(s))
        return true;
    for (size_t i = 0; i < s->n_levels; i++)
        n += !s->levels[i].stale;
    double at_w = n < LEVELS_MAX ? look_at_w(s, most) : 0;
    if (!(at_w > 0))
        return false;
    if (!bounded) /* a bounded hold is steady: the correction would only add noise */
        take_drift_out(s);
    look_begin(s);
    search_go(s, SEARCH_MEASURE, mw_of_w(at_w),
              "tests the widest gap between measured caps");
    return true;
}

void search_result(const struct search *s, struct search_result *ret)
{
    *ret = (struct search_result){.has_reference = s->has_reference,
                                  .peak_w = s->peak_w,
                                  .windows = s->windows,
                                  .memory = s->denied    ? SEARCH_MEMORY_DENIED
                                            : s->earlier ? SEARCH_MEMORY_KEPT
                                                         : SEARCH_MEMORY_NONE};
    for (size_t i = 0; i < s->n_levels; i++)
        ret->caps += !s->levels[i].stale;
    if (!s->has_reference)
        return;
    const struct level *r = &s->levels[s->reference];
    ret->reference_mw = s->reference_mw;
    ret->demand_w = demand_mw(s) / MW_PER_W;
    ret->floor_mw = search_lowest(s);
    ret->ref_time_s = exp(r->log_t);
    ret->ref_energy_j = exp(r->log_e) * s->setup.gpus;
    ret->best_mw = s->best.mw;
    ret->best_time_s = exp(s->best.log_t);
    ret->best_energy_j = exp(s->best.log_e) * s->setup.gpus;
    if (s->setup.goal.kind == GOAL_SLOWDOWN)
        ret->best_time_rse = sqrt(s->best.var);
    ret->measured = search_level(s, search_effective(s, s->best.mw));
}
