/* Cap, lock or both: what is kept, what never happens. */
#include "core/optimum/lock.h"

#include <errno.h>
#include <string.h>

#include "base/auto.h"
#include "base/rng.h"
#include "base/units.h"
#include "tap.h"
#include "virtual/vf.h"

enum { MOST_MW = 400000, MIN_MW = 100000 };

/* A compute-bound part and one that waits for memory; slow: the power controller tells
 * them apart, and a cap leaves the second at full clock, which a lock does not.
 */
static const struct plant_vf slow = {
    .ps_w = 80,
    .gap_s = 0.05,
    .gap_w = 96,
    .s = 1.1,
    .vmin = 0.65,
    .eta = 0.99,
    .sm_min_mhz = 210,
    .sm_max_mhz = 1410,
    .sm_step_mhz = 15,
    .part = {{280, 12, 0.57, 0.03}, {120, 40, 0.08, 0.32}},
    .n_parts = 2,
    .slow = true,
};

struct job {
    struct plant_vf vf;
    double noise; /* of a window … */
    double told;  /* … and what it claims; below 0: the truth */
    double drift; /* of time and energy, a window */
    double level; /* by now */
    double now_s;
    bool deaf;       /* locks are not obeyed */
    uint32_t cap_mw; /* in force whatever is asked for; 0: what is asked for */
    struct rng rng;
};

static struct plant_steady steady(const struct plant_vf *vf, uint32_t cap_mw,
                                  uint32_t mhz)
{
    return plant_vf_step(vf, w_of_mw(cap_mw), mhz);
}

static struct goal goal_of(const char *text)
{
    struct goal g = {0};

    (void)goal_parse(text, &g, NULL);
    return g;
}

/* Of the goal, 1 at the highest cap; INFINITY: over the bound. */
static double value(const struct plant_vf *vf, const struct goal *g, uint32_t cap_mw,
                    uint32_t mhz)
{
    struct plant_steady at = steady(vf, cap_mw, mhz), ref = steady(vf, MOST_MW, 0);
    struct goal_ref r = {ref.energy_j, ref.time_s, w_of_mw(MOST_MW)};

    return goal_relative(g, at.energy_j, at.time_s, &r);
}

/* The best cap there is, in whole watts. */
static uint32_t best_cap(const struct plant_vf *vf, const struct goal *g)
{
    uint32_t best = MOST_MW;

    for (uint32_t mw = MOST_MW; mw >= MIN_MW; mw -= 1000)
        if (value(vf, g, mw, 0) < value(vf, g, best, 0))
            best = mw;
    return best;
}

/* The best that a lock in its place or beside it comes to. */
static double best_lock(const struct plant_vf *vf, const struct goal *g, uint32_t held_mw)
{
    double best = INFINITY;

    for (unsigned i = 1; plant_vf_clock_at(vf, i); i++) {
        best = fmin(best, value(vf, g, MOST_MW, plant_vf_clock_at(vf, i)));
        best = fmin(best, value(vf, g, held_mw, plant_vf_clock_at(vf, i)));
    }
    return best;
}

static struct lock_setup setup_of(const struct plant_vf *vf, const struct goal *g,
                                  uint32_t held_mw)
{
    struct plant_steady ref = steady(vf, MOST_MW, 0), held = steady(vf, held_mw, 0);

    return (struct lock_setup){
        .goal = *g,
        .ref = {ref.energy_j, ref.time_s, w_of_mw(MOST_MW)},
        .held_time_s = held.time_s,
        .held_energy_j = held.energy_j,
        .held_mw = held_mw,
        .most_mw = MOST_MW,
        .min_mhz = vf->sm_min_mhz,
        .max_mhz = vf->sm_max_mhz,
        .step_mhz = vf->sm_step_mhz,
        .seen_mhz = held.x * vf->sm_max_mhz,
        .seen_ref_mhz = ref.x * vf->sm_max_mhz,
    };
}

static struct lock *lock_of(const struct lock_setup *setup)
{
    struct lock *l = NULL;
    uw_error err = {""};

    if (lock_new(setup, &l, &err) != 0)
        ok(false, "lock_new: %s", err.text);
    return l;
}

static double error_of(struct job *j)
{
    return j->noise > 0 ? j->noise * rng_normal(&j->rng) : 0;
}

static void window(struct lock *l, struct job *j)
{
    const struct lock_step *t = lock_step(l);
    uint32_t mhz = j->deaf ? 0 : t->clock_mhz;
    uint32_t cap_mw = j->cap_mw ? j->cap_mw : t->cap_mw;
    struct plant_steady at = steady(&j->vf, cap_mw, mhz);
    double told = j->told < 0 ? j->noise : j->told;

    j->level += j->drift;
    struct lock_window w = {
        .cap_mw = cap_mw,
        .seen_mhz = mhz ? mhz : j->vf.sm_max_mhz,
        .time_s = at.time_s * exp(j->level) * (1 + error_of(j)),
        .energy_j = at.energy_j * exp(j->level) * (1 + error_of(j)),
        .time_rse = told,
        .energy_rse = told,
        .start_s = j->now_s,
        .lasted_s = 10,
    };
    j->now_s += 12;
    (void)lock_on_window(l, &w, NULL);
}

/* Until it holds or is over, watched; the windows that took. */
struct watch {
    unsigned low, cap, mute, block, long_ones;
};

static unsigned run(struct lock *l, const struct lock_setup *o, struct job *j,
                    struct watch *watch)
{
    static const char pattern[] = "AbbAbbAbbAbbAbbAbbAbbAbbA";
    unsigned n = 0;

    while (lock_step(l)->kind == LOCK_MEASURE && n < 100) {
        const struct lock_step *t = lock_step(l);
        uint32_t floor_mhz =
            o->floor_mhz ? o->floor_mhz : (uint32_t)(LOCK_FLOOR * o->seen_ref_mhz);
        watch->low +=
            t->clock_mhz && (t->clock_mhz < o->min_mhz || t->clock_mhz < floor_mhz);
        watch->cap += t->cap_mw != o->held_mw && t->cap_mw != o->most_mw;
        watch->mute += strncmp(t->why, "clock: ", 7) != 0;
        watch->block +=
            n < sizeof pattern - 1 && (pattern[n] == 'b') != (t->clock_mhz > 0);
        window(l, j);
        n++;
    }
    watch->long_ones += n > LOCK_WINDOWS;
    return n;
}

static const char *const goals[] = {"energy",        "edp",          "eds:2", "cost:0.5",
                                    "slowdown:1.05", "slowdown:1.1", "time"};

static void exact(void)
{
    struct plant_vf fast = slow;
    struct watch watch = {0};

    fast.slow = false;
    for (size_t i = 0; i < n_elements(goals); i++)
        for (int quick = 0; quick < 2; quick++) {
            const struct plant_vf *vf = quick ? &fast : &slow;
            struct job j = {.vf = *vf};
            struct goal g = goal_of(goals[i]);
            struct lock_setup o = setup_of(vf, &g, best_cap(vf, &g));
            auto_(lock_free) struct lock *l = lock_of(&o);
            struct lock_result r;
            double cap = value(vf, &g, o.held_mw, 0),
                   there_is = best_lock(vf, &g, o.held_mw);
            unsigned n = run(l, &o, &j, &watch);
            lock_result(l, &r);
            double got = value(vf, &g, r.cap_mw, r.clock_mhz);
            const char *kind = quick ? "fast" : "slow";
            ok(got <= cap, "%s kernels, %s: %.4f with %.4f by the cap", kind, goals[i],
               got, cap);
            ok(r.kept || got >= cap, "… the cap alone where no lock is kept");
            ok(got <= fmin(cap, there_is) + 0.005 && n <= LOCK_WINDOWS,
               "… of %.4f that there is, in %u windows: %s", there_is, n,
               lock_step(l)->why);
            ok(fabs(r.value - got / cap) < 1e-9, "… and says so: %.4f", r.value);
            ok(!quick || !r.kept || got < cap * (1 - LOCK_MARGIN),
               "… a lock for no gain is not kept");
            if (!quick && g.kind != GOAL_TIME)
                ok(r.kept, "… a lock is");
        }
    struct goal bound = goal_of("slowdown:1.05");
    struct lock_setup o = setup_of(&slow, &bound, MOST_MW);
    auto_(lock_free) struct lock *l = lock_of(&o);
    struct job j = {.vf = slow};
    struct lock_result r;
    (void)run(l, &o, &j, &watch);
    lock_result(l, &r);
    is_near(value(&slow, &bound, r.cap_mw, r.clock_mhz),
            best_lock(&slow, &bound, MOST_MW), 0.005, "the original is held: %s",
            lock_step(l)->why);
    is_int(watch.low, 0, "no clock below the lowest");
    is_int(watch.cap, 0, "no cap but the held one and the reference");
    is_int(watch.mute, 0, "every step says why");
    is_int(watch.block, 0, "A b b A b b A");
    is_int(watch.long_ones, 0, "never more than %d windows", LOCK_WINDOWS);
}

/* A random plant whose cap is held, and its windows' noise. */
static struct plant_vf random_plant(struct rng *g, bool is_slow)
{
    struct plant_vf v = slow;
    double memory = 0.1 + 0.5 * rng_uniform(g), bound = 0.6 + 0.35 * rng_uniform(g);

    v.slow = is_slow;
    v.ps_w = 60 + 40 * rng_uniform(g);
    v.gap_s = 0.1 * rng_uniform(g);
    v.s = 0.9 + 0.5 * rng_uniform(g);
    v.vmin = 0.6 + 0.15 * rng_uniform(g);
    v.part[0] = (struct plant_vf_part){200 + 140 * rng_uniform(g), 12,
                                       0.95 * (1 - memory), 0.05 * (1 - memory)};
    v.part[1] =
        (struct plant_vf_part){60 + 100 * rng_uniform(g), 20 + 40 * rng_uniform(g),
                               (1 - bound) * memory, bound * memory};
    return v;
}

struct tally {
    unsigned n, kept, worse, broken;
    double worst, late;
};

static void count(struct tally *t, const struct lock *l, const struct job *j,
                  const struct goal *g, uint32_t held_mw)
{
    struct goal energy = {.kind = GOAL_ENERGY};
    const struct goal *free = g->kind == GOAL_SLOWDOWN ? &energy : g;
    struct lock_result r;

    lock_result(l, &r);
    double more =
        value(&j->vf, free, r.cap_mw, r.clock_mhz) / value(&j->vf, free, held_mw, 0) - 1;
    double late =
        steady(&j->vf, r.cap_mw, r.clock_mhz).time_s / steady(&j->vf, MOST_MW, 0).time_s;
    t->n++;
    t->kept += r.kept;
    t->worse += more > 0;
    t->worst = fmax(t->worst, more);
    if (g->kind != GOAL_SLOWDOWN)
        return;
    t->late = fmax(t->late, late / g->param - 1);
    t->broken += late > g->param * 1.002;
}

/* Jobs in a hold of the best cap there is. */
enum { SCENES = 600 };
static struct scene {
    struct plant_vf vf;
    struct goal goal;
    uint32_t held_mw;
    bool gain; /* a lock would gain something */
} scenes[SCENES];

static void make_scenes(void)
{
    struct rng rng;

    rng_init(&rng, 7);
    for (unsigned k = 0; k < SCENES; k++) {
        struct scene *s = &scenes[k];
        s->vf = random_plant(&rng, k % 2);
        s->goal = goal_of(goals[k / 2 % 6]);
        s->held_mw = best_cap(&s->vf, &s->goal);
        s->gain = best_lock(&s->vf, &s->goal, s->held_mw) <
                  value(&s->vf, &s->goal, s->held_mw, 0) * (1 - LOCK_MARGIN / 2);
    }
}

/* Where no lock gains anything hardly one is kept, and none anywhere that costs much; the
 * less so where windows claim smaller errors than they have (and show them).
 */
static void noisy(double noise, double told, double drift)
{
    struct tally none = {0}, some = {0};
    struct watch watch = {0};
    bool honest = told < 0;

    for (unsigned k = 0; k < SCENES; k++) {
        const struct scene *s = &scenes[k];
        struct job j = {.vf = s->vf, .noise = noise, .told = told, .drift = drift};
        struct lock_setup o = setup_of(&s->vf, &s->goal, s->held_mw);
        auto_(lock_free) struct lock *l = lock_of(&o);
        rng_init(&j.rng, k);
        (void)run(l, &o, &j, &watch);
        count(s->gain ? &some : &none, l, &j, &s->goal, s->held_mw);
    }
    double worst = fmax(some.worst, none.worst), late = fmax(some.late, none.late);
    ok(none.n > 100 && none.kept <= none.n / (honest ? 50 : 15),
       "noise %g %% (told %g %%), drift %g %%: %u of %u kept where none gains",
       100 * noise, 100 * (honest ? noise : told), 100 * drift, none.kept, none.n);
    ok(some.kept > some.n / 5 && some.worse <= some.n / 100,
       "… %u of the other %u, %u of them worse than the cap", some.kept, some.n,
       some.worse);
    ok(worst <= (honest ? 0.005 : 0.015), "… by %.2f %% at most", 100 * worst);
    ok(some.broken + none.broken <= (noise > 0 ? SCENES / (honest ? 100 : 50) : 0),
       "… the bound broken by more than 0.2 %%: %u times, %+.2f %% at most",
       some.broken + none.broken, 100 * late);
    ok(watch.low + watch.cap + watch.mute + watch.block + watch.long_ones == 0,
       "… and all of it within the rules");
}

/* One window at another cap is no harm. */
static void misses(void)
{
    struct goal g = goal_of("energy");
    struct lock_setup o = setup_of(&slow, &g, best_cap(&slow, &g));
    auto_(lock_free) struct lock *l = lock_of(&o);
    struct job j = {.vf = slow};

    for (unsigned i = 0; i < 400; i++) {
        bool measures = lock_step(l)->kind == LOCK_MEASURE;
        j.cap_mw = (measures && i == 5) || (!measures && i % 7 == 0) ? 150000 : 0;
        window(l, &j);
    }
    struct lock_result r;
    lock_result(l, &r);
    ok(r.kept && r.checks > 3, "misses now and then: %s", lock_step(l)->why);
}

static void ends(void)
{
    static const char *const what[] = {"deaf", "stall", "others"};
    struct goal g = goal_of("energy");
    struct lock_setup o = setup_of(&slow, &g, best_cap(&slow, &g));

    for (unsigned kind = 0; kind < 3; kind++)
        for (unsigned when = 1; when < 60; when += 7) {
            struct job j = {.vf = slow};
            auto_(lock_free) struct lock *l = lock_of(&o);
            for (unsigned i = 0; i < when; i++)
                window(l, &j);
            j.deaf = kind == 0;
            j.cap_mw = kind == 2 ? o.held_mw - 20000 : 0;
            if (kind == 1)
                lock_end(l, "the job stalled");
            for (unsigned i = 0; i < 5; i++)
                window(l, &j);
            const struct lock_step *t = lock_step(l);
            ok(t->over && t->cap_mw == o.held_mw && t->clock_mhz == 0 &&
                   t->kind == LOCK_HOLD,
               "%s after %u windows: %s", what[kind], when, t->why);
            j.deaf = false;
            j.cap_mw = 0;
            for (unsigned i = 0; i < 200; i++)
                window(l, &j);
            ok(lock_step(l)->over && lock_step(l)->clock_mhz == 0, "… for good");
        }
}

/* While it is better it is kept; once it is not it goes. */
static void holds(void)
{
    struct goal g = goal_of("slowdown:1.1");
    struct lock_setup o = setup_of(&slow, &g, best_cap(&slow, &g));
    struct watch watch = {0};
    struct job j = {.vf = slow, .noise = 0.003, .told = -1};
    auto_(lock_free) struct lock *l = lock_of(&o);
    struct lock_result r;
    unsigned alone = 0;

    rng_init(&j.rng, 3);
    (void)run(l, &o, &j, &watch);
    ok(lock_step(l)->clock_mhz > 0, "holds %s", lock_step(l)->why);
    for (unsigned i = 0; i < 3000; i++) {
        alone += lock_step(l)->check;
        window(l, &j);
    }
    lock_result(l, &r);
    ok(r.kept && !lock_step(l)->over, "… and still does 3000 windows later");
    ok(alone > 60 && alone <= 2 * (3000 / LOCK_CHECK_EVERY + 1),
       "… of which %u were of the cap alone", alone);
    ok(r.value < 1 && r.value_se < 0.003, "… which is %.4f of the cap's, +- %.4f",
       r.value, r.value_se);
    j.vf.part[1].tc_s = 0.3; /* what waited for memory now computes, at more power */
    j.vf.part[1].tm_s = 0.1;
    j.vf.part[1].d_w = 280;
    unsigned n = 0;
    while (!lock_step(l)->over && n++ < 2000)
        window(l, &j);
    ok(n <= 8 * LOCK_CHECK_EVERY, "a lock that does not pay any more is given up: %u, %s",
       n, lock_step(l)->why);
}

static void refuses(void)
{
    struct goal g = goal_of("energy");
    const struct lock_setup good = setup_of(&slow, &g, 250000);
    struct lock_setup bad[] = {good, good, good, good, good};
    static const int want[] = {-ERANGE, -ERANGE, -EINVAL, -EINVAL, -EINVAL};
    struct lock *l = NULL;
    uw_error err;

    bad[0].held_mw = 0;
    bad[1].held_mw = MOST_MW + 1000;
    bad[2].ref.time_s = 0;
    bad[3].held_time_rse = 1;
    bad[4].min_mhz = 2000;
    for (size_t i = 0; i < n_elements(bad); i++) {
        int r = lock_new(&bad[i], &l, &err);
        ok(r == want[i] && !l, "refused: %s", err.text);
    }
    static const char *const words[] = {"goal time", "clocks not known", "no clock seen",
                                        "floor at the top"};
    for (unsigned i = 0; i < 4; i++) {
        struct lock_setup o = good;
        o.goal = i == 0 ? goal_of("time") : g;
        o.min_mhz = i == 1 ? 0 : o.min_mhz;
        o.seen_mhz = i == 2 ? 0 : o.seen_mhz;
        o.floor_mhz = i == 3 ? o.max_mhz : 0;
        auto_(lock_free) struct lock *none = lock_of(&o);
        ok(lock_step(none)->over && lock_step(none)->cap_mw == 250000, "%s: %s", words[i],
           lock_step(none)->why);
    }

    auto_(lock_free) struct lock *m = lock_of(&good);
    struct lock_window w = {.cap_mw = 250000, .time_s = NAN, .energy_j = 1};
    is_int(lock_on_window(m, &w, &err), -EINVAL, "refused: %s", err.text);
    w.time_s = 1;
    is_int(lock_on_window(m, &w, &err), -EINVAL, "refused: %s", err.text);
    w.lasted_s = 10;
    w.time_rse = 2;
    is_int(lock_on_window(m, &w, &err), -EINVAL, "refused: %s", err.text);
    ok(lock_step(m)->kind == LOCK_MEASURE && lock_step(m)->clock_mhz == 0,
       "… and nothing has changed");
}

int main(void)
{
    exact();
    make_scenes();
    noisy(0, -1, 0);
    noisy(0, -1, 0.002);
    noisy(0.003, -1, 0);
    noisy(0.01, -1, 0.001);
    noisy(0.006, 0.003, 0);
    noisy(0.01, 0.003, 0);
    misses();
    ends();
    holds();
    refuses();
    return done();
}
