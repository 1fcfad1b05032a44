#include "core/optimum/change.h"

#include "base/auto.h"
#include "base/rng.h"
#include "tap.h"

enum { TRIALS = 1000 };

/* ---- noise ---- */

static double student(struct rng *g, int freedom)
{
    double z = rng_normal(g), sum = 0;

    for (int i = 0; i < freedom; i++) {
        double v = rng_normal(g);
        sum += v * v;
    }
    return z / sqrt(sum / freedom);
}

static double normal(struct rng *g)
{
    return rng_normal(g);
}

static double student_2(struct rng *g)
{
    return student(g, 2);
}

static double student_3(struct rng *g)
{
    return student(g, 3);
}

static double contaminated(struct rng *g)
{
    double z = rng_normal(g);

    return rng_uniform(g) < 0.1 ? 10 * z : z;
}

struct world {
    struct rng rng;
    double (*noise)(struct rng *g);
    double time, energy, scale;
    double rse; /* as the windows state it */
};

static int feed(struct change *c, struct world *w)
{
    return change_on_window(c, w->time * exp(w->scale * w->noise(&w->rng)),
                            w->energy * exp(w->scale * w->noise(&w->rng)), w->rse,
                            w->rse);
}

/* ---- constant jobs ---- */

static unsigned jobs_changed(struct world *w, unsigned jobs, unsigned windows)
{
    unsigned n = 0;

    for (unsigned k = 0; k < jobs; k++) {
        struct change c;
        bool any = false;
        change_init(&c, 0);
        for (unsigned i = 0; i < windows; i++)
            any |= feed(&c, w) != CHANGE_NONE;
        n += any;
    }
    return n;
}

/* Jobs of 1,000 s in windows of 10 s.  Most comparisons with few older windows are at
 * the begin; the state after it is that of long runs.
 */
static void test_constant_jobs(void)
{
    static const struct {
        const char *what;
        double (*noise)(struct rng *g);
    } kinds[] = {{"normal", normal},
                 {"Student's t, 2 degrees of freedom", student_2},
                 {"Student's t, 3 degrees of freedom", student_3},
                 {"one in ten windows 10 times as far off", contaminated}};
    static const double scales[] = {0.003, 0.01, 0.02, 0.04, 0.08};

    for (size_t k = 0; k < n_elements(kinds); k++) {
        unsigned n = 0, jobs = 0;
        for (size_t i = 0; i < n_elements(scales); i++) {
            struct world w = {.time = 0.36,
                              .energy = 76,
                              .noise = kinds[k].noise,
                              .scale = scales[i],
                              .rse = 0.003};
            rng_init(&w.rng, 21 + i);
            n += jobs_changed(&w, 500, 100);
            jobs += 500;
        }
        ok(n <= jobs / 250, "noise of up to 8 %%, %s, 0.3 %% stated: %u of %u jobs",
           kinds[k].what, n, jobs);
    }
}

/* ---- noise with memory ---- */

/* Windows of 10 s with noise of 1 % that has a memory of 60 s: an AR(1) process. */
struct wander {
    struct rng rng;
    double at;
};

static struct wander wander_of(uint64_t seed)
{
    struct wander w = {.at = 0};

    rng_init(&w.rng, seed);
    w.at = 0.01 * rng_normal(&w.rng);
    return w;
}

static double wander_on(struct wander *w)
{
    double sum = 0, stays = exp(-1 / 60.0);

    for (int s = 0; s < 10; s++) {
        w->at = stays * w->at + 0.01 * sqrt(1 - stays * stays) * rng_normal(&w->rng);
        sum += w->at;
    }
    return exp(sum / 10);
}

static void test_memory(void)
{
    enum { JOBS = 60, WINDOWS_8H = 2880, BEFORE = 60, WITHIN = 18 };
    unsigned constant = 0, seen = 0;

    for (uint64_t k = 0; k < JOBS; k++) {
        struct wander time = wander_of(1000 + k), energy = wander_of(9000 + k);
        struct change c;
        int what = 0;
        change_init(&c, 0);
        for (int i = 0; i < WINDOWS_8H; i++)
            what |=
                change_on_window(&c, wander_on(&time), wander_on(&energy), 3e-3, 3e-3);
        constant += what != CHANGE_NONE;
    }
    ok(constant <= JOBS / 6, "noise of 1 %% with a memory of 60 s: %u of %u jobs of 8 h",
       constant, (unsigned)JOBS);
    for (uint64_t k = 0; k < JOBS; k++) {
        struct wander time = wander_of(51000 + k), energy = wander_of(59000 + k);
        struct change c;
        int what = 0;
        change_init(&c, 0);
        for (int i = 0; i < BEFORE; i++)
            (void)change_on_window(&c, wander_on(&time), wander_on(&energy), 3e-3, 3e-3);
        for (int i = 0; i < WITHIN; i++)
            what |= change_on_window(&c, 1.05 * wander_on(&time), wander_on(&energy),
                                     3e-3, 3e-3);
        seen += (what & CHANGE_TIME) != 0;
    }
    ok(seen >= JOBS * 9 / 10, "… time +5 %%: %u of %u within %d windows", seen,
       (unsigned)JOBS, WITHIN);
}

/* Energies of a window as a busy machine measured them, in percent off the truth. */
static void test_few_far_off(void)
{
    static const double off[] = {-0.3, -0.4, 0.5, -0.2, -1.2, -13.4, 5,  -8.4, 0.3, 0.1,
                                 2,    -0.8, 6.1, 6.3,  4,    0.2,   -7, -5.1, 0.4, -0.3};
    struct change c;
    int what = 0;

    change_init(&c, 0);
    for (int i = 0; i < 400; i++)
        what |= change_on_window(
            &c, 0.3425, 84.7 * (1 + off[(size_t)i % n_elements(off)] / 100), 1e-5, 0.005);
    is_int(what, CHANGE_NONE, "energies that are often 5 to 13 %% off are no change");
}

static void test_calm(void)
{
    struct change c;
    int what = 0;
    change_init(&c, 0);
    for (int i = 0; i < 200; i++)
        what |= change_on_window(&c, i % 9 == 8 ? 1.4 : 1, i % 9 == 8 ? 80 : 100, 0, 0);
    is_int(what, CHANGE_NONE, "single odd windows are no change");

    change_init(&c, 0);
    for (int i = 0; i < 200; i++)
        what |= change_on_window(&c, i < 100 ? 1 : 1.02, 100, 0, 0);
    is_int(what, CHANGE_NONE, "2 %% is no change");

    change_init(&c, 0);
    for (int i = 0; i < 200; i++)
        what |= change_on_window(&c, i < 100 ? 1 : 1.1, 100, 0.5, 0);
    is_int(what, CHANGE_NONE, "10 %% in windows of 50 %% is none");

    change_init(&c, 0);
    for (int i = 0; i < 6; i++)
        what |= change_on_window(&c, i < 3 ? 1 : 2, 100, 0, 0);
    is_int(what, CHANGE_NONE, "nothing is noticed before there is a baseline");
    what |= change_on_window(&c, NAN, 100, 0, 0) | change_on_window(&c, 0, 100, 0, 0) |
            change_on_window(&c, 1, -1, 0, 0) | change_on_window(&c, 1, INFINITY, 0, 0) |
            change_on_window(&c, 1, 100, NAN, 0) | change_on_window(&c, 1, 100, 0, -1);
    is_int(what, CHANGE_NONE, "windows without sense are ignored");
    is_int(c.n, 6, "… and not kept");
}

/* ---- changes ---- */

/* Share of jobs whose change by these factors is noticed within `most` windows, after
 * five minutes at one level.
 */
static double noticed(struct world w, double time, double energy, int what, int most)
{
    int n = 0;

    rng_init(&w.rng, 12);
    for (int k = 0; k < TRIALS; k++) {
        struct change c;
        int got = 0;
        bool early = false;
        change_init(&c, 0);
        w.time = 0.4;
        w.energy = 90;
        for (int i = 0; i < 30; i++)
            early |= feed(&c, &w) != CHANGE_NONE;
        w.time *= time;
        w.energy *= energy;
        for (int i = 0; i < most && !got; i++)
            got = feed(&c, &w);
        n += (got & what) != 0 && !early;
    }
    return (double)n / TRIALS;
}

static void test_rates(void)
{
    static const struct {
        double scale, least;
        int within;
    } rows[] = {{0, 1, 3},        {0.002, 0.99, 3},  {0.003, 0.99, 3},
                {0.005, 0.99, 6}, {0.0075, 0.95, 6}, {0.0125, 0.95, 12}};

    for (size_t i = 0; i < n_elements(rows); i++) {
        struct world w = {.noise = normal, .scale = rows[i].scale, .rse = rows[i].scale};
        int most = rows[i].within;
        double up = noticed(w, 1.05, 1, CHANGE_TIME, most);
        double down = noticed(w, 1, 0.95, CHANGE_ENERGY, most);
        ok(up >= rows[i].least, "noise %g: time +5 %%: %.3f within %d windows", w.scale,
           up, most);
        ok(down >= rows[i].least, "noise %g: energy -5 %%: %.3f within %d windows",
           w.scale, down, most);
    }
    struct world w = {.noise = student_2, .scale = 0.02, .rse = 0.003};
    double far = noticed(w, 1.3, 1, CHANGE_TIME, 6);
    double near = noticed(w, 1.1, 1, CHANGE_TIME, 24);
    ok(far >= 0.95, "heavy tails of 2 %%: time +30 %%: %.3f within 6 windows", far);
    ok(near >= 0.95, "… +10 %%: %.3f within 24 windows", near);
    w = (struct world){.noise = normal, .scale = 0.03, .rse = 0.03};
    near = noticed(w, 1.1, 1, CHANGE_TIME, 24);
    ok(near >= 0.95, "windows of 3 %%: time +10 %%: %.3f within 24 windows", near);
}

static void test_three_percent(void)
{
    struct change c;
    int at = 0;

    change_init(&c, 0);
    for (int i = 0; i < 600 && !at; i++)
        at = change_on_window(&c, i < 500 ? 1 : 1.0302, 100, 0.001, 0.001) ? i : 0;
    is_int(at, 501, "3 %% in exact windows is told after two");

    change_init(&c, 0);
    at = 0;
    for (int i = 0; i < 600 && !at; i++) /* 1 % in 100 windows */
        at = change_on_window(&c, exp(1e-4 * i), 100, 0.001, 0.001) ? i : 0;
    ok(at > 300 && at < 400, "a slow drift past 3 %% is told, at window %d", at);
}

static void test_again(void)
{
    struct change c;
    int n = 0, first = 0, both = 0;
    change_init(&c, 0.2);
    for (int i = 0; i < 60; i++) {
        double level = i < 20 ? 1 : i < 40 ? 1.25 : 0.9;
        int what = change_on_window(&c, level, 100 * level, 0, 0);
        if (what && !first)
            first = i;
        n += what != 0;
        both += what == (CHANGE_TIME | CHANGE_ENERGY);
    }
    is_int(n, 2, "each of two changes is told once");
    is_int(both, 2, "in time and in energy");
    is_int(first, 21, "after two windows");
}

int main(void)
{
    test_constant_jobs();
    test_memory();
    test_few_far_off();
    test_calm();
    test_rates();
    test_three_percent();
    test_again();
    return done();
}
