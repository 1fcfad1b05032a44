#include "play.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "core/optimum/gap-probe.h"
#include "core/optimum/search.h"
#include "noise.h"

enum { GOLDEN_STEPS = 25, SCAN_STEP_W = 25, CAPS_MAX = 256, LOOK_TRIES = 8 };
#define WINDOW_S 10.0
#define STEP_S 1.0 /* step of the job if its noise has a memory */
#define HOUR_S 3600.0
#define SETTLE_S 2.0     /* at each cap before a window */
#define PEAK 1.1         /* simulated 99th percentile of power over its mean */
#define NEAR_TOP 1.02    /* of the demand: first cap of the methods that know it */
#define CLIMB_STEP 0.10  /* of the demand: first step of the hill climb … */
#define CLIMB_LEAST 0.02 /* … and its least step */

struct world {
    const struct record *rec;
    const struct play *p;
    struct rng rng;
    struct noise noise;         /* sd 0: no memory */
    double now_s, start_s;      /* of the last window */
    uint32_t seen_mw[CAPS_MAX]; /* distinct measured caps */
    unsigned caps, windows;
    unsigned lengths;                   /* … and as many of ordinary length */
    unsigned caps_first, windows_first; /* … until the first hold */
    double first_s;                     /* … and its time */
    double spent; /* sum of the goal's true values at the caps of the windows */
};

static struct goal_ref ref_of(const struct record *rec)
{
    return (struct goal_ref){rec->reference.energy_j, rec->reference.time_s, rec->max_w};
}

static double worth(const struct record *rec, const struct goal *g, double cap_w)
{
    struct curve_value v = curve_at(rec->curve, cap_w);
    struct goal_ref ref = ref_of(rec);
    return goal_relative(g, v.energy_j, v.time_s, &ref);
}

/* The same where a bound does not count: the goal's value at this cap. */
static double unbounded(const struct record *rec, const struct goal *g, double cap_w)
{
    struct goal energy = {.kind = GOAL_ENERGY};
    return worth(rec, g->kind == GOAL_SLOWDOWN ? &energy : g, cap_w);
}

double play_oracle_w(const struct record *rec, const struct goal *goal, double from_w)
{
    double best = rec->max_w, least = worth(rec, goal, rec->max_w);
    long top = (long)floor(rec->max_w), bottom = (long)ceil(from_w);
    for (long w = top; w >= bottom; w--) {
        double c = (double)w;
        double v = worth(rec, goal, c);
        if (v < least) {
            least = v;
            best = c;
        }
    }
    return best;
}

static void world_begin(struct world *w, uint64_t seed)
{
    const struct play *p = w->p;

    rng_init(&w->rng, seed);
    if (p->memory_s > 0)
        w->noise = (struct noise){.sd = p->noise,
                                  .memory_s = p->memory_s,
                                  .correlation = p->correlation,
                                  .rng = &w->rng};
}

static void pass(struct world *w, double seconds)
{
    w->now_s += seconds;
    if (w->noise.sd > 0)
        noise_pass(&w->noise, seconds);
}

/* Result of a window: the curve's values with noise, and the stated errors. */
struct seen {
    struct curve_value v;
    double time_rse, energy_rse;
};

static struct seen seen(struct world *w, uint32_t cap_mw, unsigned length)
{
    double noise = w->p->noise / sqrt(length);
    w->start_s = w->now_s;
    w->now_s += length * WINDOW_S;
    struct seen s = {curve_at(w->rec->curve, w_of_mw(cap_mw)), noise, noise};

    if (w->noise.sd > 0) {
        unsigned steps = (unsigned)(length * WINDOW_S / STEP_S);
        struct noise_window n = noise_window(&w->noise, steps, STEP_S);
        s.v.time_s *= exp(n.log_t);
        s.v.energy_j *= exp(n.log_e);
        s.time_rse = n.time_rse;
        s.energy_rse = n.energy_rse;
    } else {
        s.v.time_s *= fmax(0.05, 1 + noise * rng_normal(&w->rng));
        s.v.energy_j *= fmax(0.05, 1 + noise * rng_normal(&w->rng));
    }
    s.v.power_w = s.v.energy_j / s.v.time_s;
    return s;
}

static bool measured(const struct world *w, uint32_t cap_mw)
{
    for (unsigned i = 0; i < w->caps; i++)
        if (w->seen_mw[i] == cap_mw)
            return true;
    return false;
}

/* One window of the search. */
static struct seen measure(struct world *w, uint32_t cap_mw, unsigned length)
{
    pass(w, SETTLE_S);
    struct seen s = seen(w, cap_mw, length);

    w->windows++;
    w->lengths += length;
    w->spent += length * unbounded(w->rec, &w->p->goal, w_of_mw(cap_mw));
    if (!measured(w, cap_mw) && w->caps < CAPS_MAX)
        w->seen_mw[w->caps++] = cap_mw;
    return s;
}

/* Checks on every step that the search keeps its rules. */
static int check_step(const struct world *w, const struct search_step *t,
                      const struct search_setup *setup, double demand_w, double peak_w,
                      uw_error *err)
{
    bool known = w->p->goal.kind == GOAL_SLOWDOWN && measured(w, t->cap_mw);
    double floor_mw = fmin(SEARCH_FLOOR * demand_w * MW_PER_W, setup->original_mw);
    if (t->cap_mw < setup->min_mw || t->cap_mw > setup->original_mw)
        return fail(err, -EPROTO, "cap %" PRIu32 " mW is outside the range", t->cap_mw);
    if (t->cap_mw < floor_mw - 1)
        return fail(err, -EPROTO, "cap %" PRIu32 " mW is below the floor %.0f", t->cap_mw,
                    floor_mw);
    if (!known && t->first_mw < fmin(0.85 * peak_w * MW_PER_W, setup->original_mw) - 1)
        return fail(err, -EPROTO, "first cap %" PRIu32 " mW is below 0.85 of the peak",
                    t->first_mw);
    if (t->ramp_mw_s > SEARCH_RAMP * setup->default_mw * 1.000001)
        return fail(err, -EPROTO, "ramp %g mW/s is too steep", t->ramp_mw_s);
    return 0;
}

static void trace(const struct world *w, const struct search_step *t,
                  const struct curve_value *v)
{
    const struct curve_value *r = &w->rec->reference;
    if (w->p->trace)
        (void)fprintf(w->p->trace, "%s: %g W x %u time %.4f energy %.4f: %s\n",
                      w->rec->name, w_of_mw(t->cap_mw), t->length, v->time_s / r->time_s,
                      v->energy_j / r->energy_j, t->why);
}

static struct search_setup setup_of(const struct record *rec, const struct play *p)
{
    uint32_t max_mw = mw_of_w(rec->max_w);
    return (struct search_setup){
        .goal = p->goal,
        .min_mw = mw_of_w(rec->min_w),
        .max_mw = max_mw,
        .default_mw = max_mw,
        .original_mw = max_mw,
        .prior = p->prior,
    };
}

static enum binding told(const struct world *w, uint32_t cap_mw)
{
    bool seen = w->p->binding != BINDING_UNKNOWN && record_binds(w->rec, w_of_mw(cap_mw));

    return seen ? BINDING_SEEN : w->p->binding;
}

static struct search_window window_of(const struct world *w, double peak_w,
                                      uint32_t cap_mw, unsigned length,
                                      const struct seen *s)
{
    return (struct search_window){
        .cap_mw = cap_mw,
        .time_s = s->v.time_s,
        .energy_j = s->v.energy_j,
        .time_rse = s->time_rse,
        .energy_rse = s->energy_rse,
        .peak_w = peak_w,
        .length = length,
        .binding = told(w, cap_mw),
        .start_s = w->start_s,
        .lasted_s = length * WINDOW_S,
        .parts = w->noise.sd > 0 ? (unsigned)(length * WINDOW_S / STEP_S) : 0,
    };
}

/* Gives s the measurements of an earlier run of the job at p->earlier. */
static int remember(const struct play *p, struct search *s, uw_error *err)
{
    struct world w = {.rec = p->earlier, .p = p};
    struct search_setup setup = setup_of(p->earlier, p);
    auto_(search_free) struct search *old = NULL;
    int r = search_new(&setup, &old, err);

    world_begin(&w, p->seed + 0x5eed);
    while (r == 0 && search_step(old)->kind == SEARCH_MEASURE) {
        uint32_t cap_mw = search_step(old)->cap_mw;
        unsigned length = search_step(old)->length;
        struct seen v = measure(&w, cap_mw, length);
        struct search_window win =
            window_of(&w, p->earlier->reference.power_w, cap_mw, length, &v);
        r = search_on_window(old, &win, err);
        if (r == 0)
            r = search_on_earlier(s, &win, p->earlier->reference.power_w, err);
    }
    return r;
}

/* A search in progress, and the values its steps are checked against. */
struct game {
    struct search *search;
    struct search_setup setup;
    double demand_w, peak_w, pow_sum;
    unsigned refs;
};

/* The first cap of a ramp is reached at once. */
static double way_down_s(const struct search_step *t, uint32_t from_mw)
{
    bool ramp = t->cap_mw < from_mw && t->first_mw > t->cap_mw;

    return ramp ? (from_mw - t->cap_mw) / t->ramp_mw_s : 0;
}

/* Steps the search until it holds; *ret_s: the time that took, ramps included. */
static int until_held(struct world *w, struct game *g, double *ret_s, uw_error *err)
{
    struct search *s = g->search;
    unsigned most = w->windows + SEARCH_WINDOWS_MAX;

    while (search_step(s)->kind == SEARCH_MEASURE) {
        const struct search_step *t = search_step(s);
        int r = check_step(w, t, &g->setup, g->demand_w * 0.97, g->peak_w, err);
        if (r < 0)
            return r;
        struct seen v = measure(w, t->cap_mw, t->length);
        trace(w, t, &v.v);
        if (t->cap_mw == g->setup.max_mw) {
            g->pow_sum += v.v.power_w;
            g->demand_w = g->pow_sum / ++g->refs;
            g->peak_w = w->p->headroom > 0
                            ? 0 /* unknown: recordings only have mean powers */
                            : fmin(PEAK * w->rec->reference.power_w, w->rec->max_w);
        }
        struct search_window win = window_of(w, g->peak_w, t->cap_mw, t->length, &v);
        uint32_t was_mw = t->cap_mw;
        r = search_on_window(s, &win, err);
        if (r < 0)
            return r;
        t = search_step(s);
        double down_s = way_down_s(t, was_mw);
        pass(w, down_s);
        *ret_s += win.length * WINDOW_S + SETTLE_S + down_s;
        if (w->windows > most)
            return fail(err, -EPROTO, "the search does not end");
    }
    return check_step(w, search_step(s), &g->setup, g->demand_w * 0.97, g->peak_w, err);
}

/* Whether the search looks now.  Under a bound each refusal costs a whole proposal, so
 * this tries as seldom as the daemon does (for the other goals: at each window).
 */
static bool look(const struct world *w, struct search *s, unsigned windows, double worse)
{
    bool bounded = w->p->goal.kind == GOAL_SLOWDOWN;

    return worse > 0 && (!bounded || windows % LOOK_TRIES == 0) &&
           search_probe_gap(s, worse);
}

/* The rest of an hour: holds the found cap and looks as the daemon does. */
static int hold(struct world *w, struct game *g, double now_s, uw_error *err)
{
    struct gap_probes looks = {.most = w->p->looks};
    struct search *s = g->search;
    unsigned windows = 0; /* of this hold */
    int r = 0;

    while (r >= 0 && now_s < HOUR_S && looks.n < looks.most) {
        const struct search_step *t = search_step(s);
        uint32_t held_mw = t->cap_mw;
        double worse = gap_probes_allow(&looks, now_s, WINDOW_S + SETTLE_S);
        if (look(w, s, windows, worse)) {
            double took_s = way_down_s(t, held_mw);
            unsigned before = w->lengths;
            pass(w, took_s);
            r = until_held(w, g, &took_s, err);
            gap_probes_made(&looks, took_s, w->lengths - before);
            now_s += took_s;
            windows = 0;
            continue;
        }
        struct seen v = seen(w, held_mw, 1);
        struct search_window win = window_of(w, g->peak_w, held_mw, 1, &v);
        r = search_on_window(s, &win, err);
        now_s += WINDOW_S;
        windows++;
    }
    return r;
}

static int play_search(struct world *w, double *ret_cap_w, uw_error *err)
{
    auto_(search_free) struct search *s = NULL;
    struct game g = {.setup = setup_of(w->rec, w->p)};
    double now_s = 0;
    int r = search_new(&g.setup, &s, err);

    g.search = s;
    if (r == 0 && w->p->earlier)
        r = remember(w->p, s, err);
    if (r >= 0)
        r = until_held(w, &g, &now_s, err);
    w->caps_first = w->caps;
    w->windows_first = w->windows;
    w->first_s = now_s;
    if (r >= 0)
        r = hold(w, &g, now_s, err);
    if (r < 0)
        return r;
    *ret_cap_w = w_of_mw(search_step(s)->cap_mw);
    struct curve_value kept = curve_at(w->rec->curve, *ret_cap_w);
    trace(w, search_step(s), &kept);
    return 0;
}

/* ---- other methods: as many windows as they ask for, measured like the search's ---- */

/* Measurements of another method: the reference first, and the best cap so far, which is
 * kept.
 */
struct peer {
    struct goal_ref ref;
    double demand_w, least, best_w;
};

static double try_cap(struct world *w, struct peer *p, double cap_w)
{
    struct curve_value v = measure(w, mw_of_w(cap_w), 1).v;
    if (w->windows == 1) {
        p->ref = (struct goal_ref){v.energy_j, v.time_s, w->rec->max_w};
        p->demand_w = v.power_w;
        p->least = INFINITY;
    }
    double x = goal_relative(&w->p->goal, v.energy_j, v.time_s, &p->ref);
    if (x < p->least) {
        p->least = x;
        p->best_w = cap_w;
    }
    return x;
}

/* The default of Zeus' optimizer. */
static void play_scan(struct world *w, double *ret_cap_w)
{
    struct peer p = {.best_w = w->rec->max_w};
    int n = (int)floor((w->rec->max_w - w->rec->min_w) / SCAN_STEP_W + 1e-9);
    for (int i = 0; i <= n; i++)
        (void)try_cap(w, &p, w->rec->max_w - i * SCAN_STEP_W);
    *ret_cap_w = p.best_w;
}

/* On a plateau, where caps have no effect, the better caps are lower; if both sides
 * break the bound, the search goes up.
 */
static bool upper_goes(const double y[2])
{
    return y[0] < y[1] || (y[0] <= y[1] && !isinf(y[0]));
}

static void golden(struct world *w, struct peer *p, double a, double b)
{
    static const double gold = 0.6180339887498949;
    double tol = fmax((b - a) / GOLDEN_STEPS, 1); /* caps are whole watts */
    double x[2] = {round(b - gold * (b - a)), round(a + gold * (b - a))};
    double y[2] = {try_cap(w, p, x[0]), try_cap(w, p, x[1])};

    while (b - a > tol) {
        int drop = upper_goes(y) ? 1 : 0, keep = 1 - drop;
        if (drop)
            b = x[1];
        else
            a = x[0];
        if (b - a <= tol)
            break;
        x[drop] = x[keep];
        y[drop] = y[keep];
        x[keep] = round(keep ? a + gold * (b - a) : b - gold * (b - a));
        y[keep] = try_cap(w, p, x[keep]);
    }
}

static void play_golden(struct world *w, double *ret_cap_w)
{
    struct peer p = {.best_w = w->rec->max_w};
    double a = w->rec->min_w, b = w->rec->max_w;

    (void)try_cap(w, &p, b);
    if (w->p->method == METHOD_GOLDEN_NEAR) { /* only caps that the search may choose */
        a = fmax(a, SEARCH_FLOOR * p.demand_w);
        b = fmax(a, fmin(b, NEAR_TOP * p.demand_w));
    }
    golden(w, &p, a, b);
    *ret_cap_w = p.best_w;
}

/* Down from the demand as long as the value is no worse, up as long as it is better;
 * turns with half the step otherwise.
 */
static void play_climb(struct world *w, double *ret_cap_w)
{
    struct peer p = {.best_w = w->rec->max_w};
    (void)try_cap(w, &p, w->rec->max_w);
    double step = CLIMB_STEP * p.demand_w, least = CLIMB_LEAST * p.demand_w;
    double lo = fmax(w->rec->min_w, SEARCH_FLOOR * p.demand_w);
    double at = fmin(fmax(round(NEAR_TOP * p.demand_w), lo), w->rec->max_w);
    double value = try_cap(w, &p, at);

    for (int side = -1; step >= least;) {
        double to = fmin(fmax(round(at + side * step), lo), w->rec->max_w);
        double v = to == at ? INFINITY : try_cap(w, &p, to);
        if (v < value || (side < 0 && v <= value && !isinf(v))) {
            at = to;
            value = v;
        } else {
            side = -side;
            step /= 2;
        }
    }
    *ret_cap_w = p.best_w;
}

static struct score score_of(const struct record *rec, const struct goal *g, double cap_w)
{
    struct curve_value v = curve_at(rec->curve, cap_w);
    double oracle_w = play_oracle_w(rec, g, rec->min_w);
    double floor_w = fmax(rec->min_w, SEARCH_FLOOR * rec->reference.power_w);
    double allowed_w = play_oracle_w(rec, g, fmin(floor_w, rec->max_w));
    struct curve_value o = curve_at(rec->curve, oracle_w);
    struct score s = {
        .cap_w = cap_w,
        .slowdown = v.time_s / rec->reference.time_s,
        .saving = 1 - v.energy_j / rec->reference.energy_j,
        .oracle_saving = 1 - o.energy_j / rec->reference.energy_j,
    };
    s.broken = g->kind == GOAL_SLOWDOWN && s.slowdown > g->param;
    s.excess = s.broken ? s.slowdown / g->param - 1 : 0;
    s.regret = s.broken ? s.excess : worth(rec, g, cap_w) / worth(rec, g, oracle_w) - 1;
    s.regret_allowed =
        s.broken ? s.excess : worth(rec, g, cap_w) / worth(rec, g, allowed_w) - 1;
    s.regret_allowed = fmax(s.regret_allowed, 0); /* the floor follows a noisy demand */
    return s;
}

/* A separate seed for each curve and seed, independent of the rest of the file. */
static uint64_t seed_of(const char *name, uint64_t seed)
{
    uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3ull;
    return h + seed * 0x9e3779b97f4a7c15ull;
}

int play(const struct record *recorded, const struct play *p, struct score *ret,
         uw_error *err)
{
    struct record wide = *recorded;
    const struct record *rec = &wide;
    struct world w = {.rec = rec, .p = p};

    wide.max_w = fmax(wide.max_w, ceil(p->headroom * wide.reference.power_w));
    double cap_w = rec->max_w;
    int r = 0;

    world_begin(&w, seed_of(rec->name, p->seed));
    switch (p->method) {
    case METHOD_STATIC:
        cap_w = fmax(round(p->share * rec->max_w), rec->min_w);
        break;
    case METHOD_SCAN:
        play_scan(&w, &cap_w);
        break;
    case METHOD_CLIMB:
        play_climb(&w, &cap_w);
        break;
    case METHOD_GOLDEN:
    case METHOD_GOLDEN_NEAR:
        play_golden(&w, &cap_w);
        break;
    case METHOD_SEARCH:
    default:
        r = play_search(&w, &cap_w, err);
        break;
    }
    if (r < 0)
        return fail_in(err, r, "%s", rec->name);
    *ret = score_of(rec, &p->goal, cap_w);
    ret->cost =
        (w.spent / unbounded(rec, &p->goal, cap_w) - w.lengths) * WINDOW_S / HOUR_S;
    ret->caps = w.caps;
    ret->windows = w.windows;
    ret->first_s = w.first_s;
    ret->caps_first = w.caps_first;
    ret->windows_first = w.windows_first;
    return 0;
}
