/* The cap that keeps a board under a temperature, on every simulated board: how far the
 * temperature goes above the limit, how often the cap changes once it has settled, what
 * an unknown temperature does.  The controller reads whole degrees, a second late.
 */
#include <math.h>
#include <stdlib.h>

#include "base/units.h"
#include "core/policy/heat.h"
#include "plant/plant.h"
#include "tap.h"

enum { LATE_S = 1 };

struct scene {
    const struct plant_board *board;
    const struct plant_workload *work;
    double limit_c, noise;
    double ambient_c[3];  /* in the first, the second and the third hour */
    double pause_s;       /* of every 10 min */
    double swing_k;       /* of the air, up and down in 20 min */
    uint32_t other_mw[3]; /* a lower claim of somebody else, in each hour; 0: none */
};

struct seen {
    double over_k[3];   /* in each hour, above the limit */
    unsigned writes[3]; /* in the last half of each hour */
    double end_c[3];    /* at its end */
    uint32_t end_mw[3], least_mw;
    bool was_short;
};

static void set_load(struct plant_gpu *gpu, const struct scene *s, double t_s, bool *runs)
{
    bool run = s->pause_s <= 0 || fmod(t_s, 600) < 600 - s->pause_s;
    struct plant_load load = run ? plant_load_train(s->work)
                                 : (struct plant_load){.activity = PLANT_HOLD,
                                                       .hold_w = s->board->idle_w * 1.5};

    if (run != *runs)
        plant_gpu_set_load(gpu, &load);
    *runs = run;
}

static void play(const struct scene *s, struct seen *ret)
{
    auto_(plant_gpu_free) struct plant_gpu *gpu = NULL;
    struct plant_gpu_opts opts = {
        .board = s->board, .seed = 7, .start_ns = NS_PER_S, .noise_sd = s->noise};
    struct heat heat = {0};
    int late[LATE_S + 1] = {0};
    bool runs = false;
    double power_w = 0;

    *ret = (struct seen){.over_k = {-99, -99, -99}, .least_mw = UINT32_MAX};
    if (plant_gpu_new(&opts, &gpu, NULL) < 0)
        abort();
    for (unsigned t = 0; t < 3 * 3600; t++) {
        unsigned hour = t / 3600;
        uint64_t now = NS_PER_S * (t + 1);
        struct plant_reading r;
        double was_j = plant_gpu_energy_j(gpu);
        uint32_t other_mw = s->other_mw[hour] ? s->other_mw[hour] : s->board->default_mw;
        if (t % 3600 == 0 || s->swing_k > 0)
            plant_gpu_set_ambient(gpu, s->ambient_c[hour] +
                                           s->swing_k * sin(t * 2 * M_PI / 1200));
        set_load(gpu, s, t, &runs);
        for (unsigned k = 1; k <= 4; k++) {
            plant_gpu_advance(gpu, now + k * NS_PER_S / 4);
            ret->over_k[hour] =
                fmax(ret->over_k[hour], plant_gpu_temp_c(gpu) - s->limit_c);
        }
        power_w = plant_gpu_energy_j(gpu) - was_j;
        plant_gpu_read(gpu, &r);
        for (size_t i = 0; i < LATE_S; i++)
            late[i] = late[i + 1];
        late[LATE_S] = r.temp_c;
        struct heat_now in = {.known = t > LATE_S,
                              .temp_c = late[0],
                              .limit_c = s->limit_c,
                              .power_w = power_w,
                              .slowed = r.reasons & PLANT_REASON_POWER_CAP,
                              .in_force_mw = plant_gpu_cap_mw(gpu),
                              .min_mw = s->board->min_mw,
                              .default_mw = s->board->default_mw,
                              .top_mw = other_mw,
                              .open_mw = s->board->default_mw};
        if (heat_step(&heat, &in, now) && t % 3600 >= 1800)
            ret->writes[hour]++;
        uint32_t cap_mw = heat.cap_mw && heat.cap_mw < other_mw ? heat.cap_mw : other_mw;
        plant_gpu_set_cap(gpu, cap_mw);
        ret->least_mw = cap_mw < ret->least_mw ? cap_mw : ret->least_mw;
        ret->was_short |= heat.state == LIMIT_SHORT;
        ret->end_c[hour] = plant_gpu_temp_c(gpu);
        ret->end_mw[hour] = cap_mw;
    }
}

/* ---- every board ---- */

/* The steady temperature at a cap. */
static double steady_c(const struct plant_board *b, const struct plant_workload *w,
                       double ambient_c, uint32_t mw)
{
    return ambient_c + b->resistance_kpw * plant_steady_step(b, w, mw).power_w;
}

static void tell(const struct scene *s, const char *what, const struct seen *v)
{
    for (unsigned h = 0; h < 3; h++)
        printf("# %s, %s %s: %.0f C, hour %u: %+.2f K at most, %u writes in its second "
               "half, ends at %.1f C, %.0f W\n",
               s->board->key, s->work->name, what, s->limit_c, h + 1, v->over_k[h],
               v->writes[h], v->end_c[h], w_of_mw(v->end_mw[h]));
}

/* A limit that binds before or after the air is 10 K warmer, and back. */
static void warmer(const struct plant_board *b, const struct plant_workload *w,
                   double noise, double pause_s)
{
    struct scene s = {.board = b,
                      .work = w,
                      .noise = noise,
                      .pause_s = pause_s,
                      .ambient_c = {b->ambient_c, b->ambient_c + 10, b->ambient_c}};
    double low_c = steady_c(b, w, b->ambient_c + 10, b->min_mw);
    double high_c = steady_c(b, w, b->ambient_c + 10, b->default_mw);
    struct seen v;

    s.limit_c = round(low_c + fmax(3, 0.4 * (high_c - low_c)));
    play(&s, &v);
    tell(&s, noise > 0 ? "noisy" : pause_s > 0 ? "with pauses" : "steady", &v);
    double most_k = fmax(v.over_k[0], fmax(v.over_k[1], v.over_k[2]));
    ok(most_k <= 2, "%s: %+.2f K at most", b->key, most_k);
    ok(v.writes[0] <= 6 && v.writes[1] <= 6 && v.writes[2] <= 6,
       "%s: writes in half an hour: %u, %u, %u", b->key, v.writes[0], v.writes[1],
       v.writes[2]);
    ok(high_c < s.limit_c || pause_s > 0 ||
           (v.end_c[1] >= s.limit_c - 3.5 && v.end_mw[1] < b->default_mw),
       "%s: no colder than it must be: %.1f C", b->key, v.end_c[1]);
    ok(!v.was_short, "%s: its minimum holds it", b->key);
}

static void swings(const struct plant_board *b, const struct plant_workload *w)
{
    double warm_c = b->ambient_c + 10;
    struct scene s = {
        .board = b, .work = w, .swing_k = 1, .ambient_c = {warm_c, warm_c, warm_c}};
    double low_c = steady_c(b, w, warm_c, b->min_mw);
    double high_c = steady_c(b, w, warm_c, b->default_mw);
    struct seen v;

    s.limit_c = round(low_c + fmax(3, 0.4 * (high_c - low_c)));
    play(&s, &v);
    tell(&s, "in air that swings by 1 K", &v);
    ok(high_c > s.limit_c + 5 && v.over_k[0] <= 2,
       "%s: a start that would go to %.1f C under %.0f C: %+.2f K at most", b->key,
       high_c, s.limit_c, v.over_k[0]);
    ok(v.over_k[1] <= 2 && v.over_k[2] <= 2 && v.writes[1] <= 6 && v.writes[2] <= 6,
       "%s: air up and down by 1 K: %u and %u writes in half an hour", b->key,
       v.writes[1], v.writes[2]);
}

static void not_held(const struct plant_board *b, const struct plant_workload *w)
{
    struct scene s = {.board = b,
                      .work = w,
                      .ambient_c = {b->ambient_c, b->ambient_c + 10, b->ambient_c}};
    struct seen v;

    s.limit_c = round(steady_c(b, w, b->ambient_c + 10, b->min_mw) - 4);
    play(&s, &v);
    tell(&s, "not held", &v);
    ok(v.was_short && v.least_mw == b->min_mw && v.end_mw[1] == b->min_mw &&
           v.writes[1] == 0,
       "%s: its minimum does not hold it: at it, and no more writes", b->key);
}

/* Another claim, lower than the cap by a part of it, comes for an hour and ends; in air
 * that has become 3 K warmer meanwhile, too.  The limit is such a part of the way from
 * the temperature at the minimum to that at the default limit.
 */
static void other_ends(const struct plant_board *b, const struct plant_workload *w,
                       double part)
{
    static const double lower[] = {0.01, 0.05, 0.12, 0.3};
    double warm_c = b->ambient_c + 10, most_k = -99;
    struct scene s = {.board = b, .work = w};
    double low_c = steady_c(b, w, warm_c, b->min_mw);
    double high_c = steady_c(b, w, warm_c, b->default_mw);
    struct seen v;

    s.limit_c = round(low_c + fmax(3, part * (high_c - low_c)));
    for (unsigned warmer_k = 0; warmer_k <= 3; warmer_k += 3) {
        for (unsigned h = 0; h < 3; h++)
            s.ambient_c[h] = warm_c + (h > 0 ? warmer_k : 0);
        s.other_mw[1] = 0;
        play(&s, &v);
        uint32_t cap_mw = v.end_mw[0];
        for (size_t i = 0; i < n_elements(lower); i++) {
            double mw = cap_mw * (1 - lower[i]);
            s.other_mw[1] = (uint32_t)fmax(mw, b->min_mw);
            play(&s, &v);
            tell(&s, "beside a lower claim that ends", &v);
            most_k = fmax(most_k, v.over_k[2]);
        }
    }
    ok(most_k <= 2, "%s, %s under %.0f C: another claim that ends: %+.2f K at most",
       b->key, w->name, s.limit_c, most_k);
}

static void every_board(void)
{
    size_t n = 0;
    const struct plant_board *boards = plant_boards(&n);

    for (size_t i = 0; i < n; i++) {
        const struct plant_board *b = &boards[i];
        for (size_t k = 0; plant_workload_at(b, k); k++)
            warmer(b, plant_workload_at(b, k), 0, 0);
        const struct plant_workload *w = plant_workload_find(b, "resnet50");
        other_ends(b, w, 0.2);
        other_ends(b, w, 0.4);
        other_ends(b, plant_workload_find(b, "resnet152"), 0.2);
        warmer(b, w, 0.02, 0);
        warmer(b, w, 0, 60);
        swings(b, w);
        not_held(b, w);
    }
}

/* ---- what is told ---- */

/* A V100 at this temperature and power. */
static struct heat_now at(int temp_c, double power_w)
{
    return (struct heat_now){.known = true,
                             .temp_c = temp_c,
                             .limit_c = 80,
                             .power_w = power_w,
                             .slowed = true,
                             .in_force_mw = 300000,
                             .min_mw = 150000,
                             .default_mw = 300000,
                             .top_mw = 300000,
                             .open_mw = 300000};
}

/* n seconds of the same; how often the cap changes. */
static unsigned steps(struct heat *h, const struct heat_now *now, unsigned n,
                      uint64_t *clock_s)
{
    unsigned changes = 0;

    while (n-- > 0)
        changes += heat_step(h, now, ++*clock_s * NS_PER_S);
    return changes;
}

static void unknown(void)
{
    struct heat h = {0};
    uint64_t s = 100;
    struct heat_now none = at(0, 0), hot = at(84, 290), cool = at(60, 180);

    none.known = false;
    ok(steps(&h, &none, 600, &s) == 0 && h.cap_mw == 0 && h.state == LIMIT_UNKNOWN,
       "a temperature that was never known: no cap");
    (void)steps(&h, &hot, 5, &s);
    uint32_t was = h.cap_mw;
    ok(h.state == LIMIT_ACTS && was > 150000 && was < 290000, "84 C: %u mW", was);
    ok(steps(&h, &none, HEAT_AGE_S - 1, &s) == 0 && h.cap_mw == was &&
           h.state == LIMIT_UNKNOWN,
       "then unknown: the last cap stays for %d s", HEAT_AGE_S);
    ok(steps(&h, &none, 60, &s) > 0 && h.cap_mw == 150000, "then the minimum");
    ok(steps(&h, &none, 7200, &s) == 0 && h.cap_mw == 150000, "it stays there");
    (void)steps(&h, &cool, HEAT_SETTLED_S - 1, &s);
    ok(h.cap_mw == 150000 && h.state == LIMIT_ACTS, "known again: not raised at once");
    (void)steps(&h, &cool, 100, &s);
    ok(h.cap_mw > 150000 && h.cap_mw <= 150000 + 150 * 1000, "and up by 1 W/s: %u mW",
       h.cap_mw);
}

static void blinks(void)
{
    struct heat h = {0};
    uint64_t s = 100;
    struct heat_now a = at(79, 250), b = at(78, 250);
    unsigned changes = 0;

    for (unsigned i = 0; i < 3600; i++)
        changes += steps(&h, i % 3 ? &a : &b, 1, &s);
    ok(changes == 0 && h.cap_mw == 0, "a degree up and down below the limit: nothing");
    a = at(80, 250);
    b = at(79, 250);
    for (unsigned i = 0; i < 600; i++)
        changes += steps(&h, i % 3 ? &a : &b, 1, &s);
    ok(changes > 0 && changes <= 1 + 600 / HEAT_SETTLED_S && h.cap_mw < 250000,
       "at the limit: one step down each %d s at most: %u to %u mW", HEAT_SETTLED_S,
       changes, h.cap_mw);
}

static void ends(void)
{
    struct heat h = {0};
    uint64_t s = 100;
    struct heat_now hot = at(84, 290), cool = at(50, 60);

    (void)steps(&h, &hot, 5, &s);
    cool.slowed = false;
    ok(steps(&h, &cool, HEAT_IDLE_S - 2, &s) == 0 && h.cap_mw,
       "a pause: the cap stays as it is");
    (void)steps(&h, &cool, 3, &s);
    ok(h.cap_mw == 0 && h.state == LIMIT_FREE, "after %d s it is let go", HEAT_IDLE_S);
}

/* A lower cap of others keeps the board cool, at 190 W. */
static void hidden(void)
{
    static const struct {
        int temp_c;
        double cap_w; /* 0: none; else the one before, or what is cool for sure */
    } cases[] = {{79, 259}, {70, 259}, {60, 259}, {57, 274}, {54, 293}, {53, 0}};

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct heat h = {0};
        uint64_t s = 100;
        struct heat_now hot = at(84, 290), other = at(cases[i].temp_c, 190);
        (void)steps(&h, &hot, 4, &s);
        other.top_mw = 200000;
        unsigned changes = steps(&h, &other, 500, &s);
        is_near(w_of_mw(h.cap_mw), cases[i].cap_w, 1, "%d C below a lower cap: %.0f W",
                cases[i].temp_c, w_of_mw(h.cap_mw));
        ok(changes <= 1, "… found at once: %u", changes);
    }
}

int main(void)
{
    unknown();
    blinks();
    ends();
    hidden();
    every_board();
    return done();
}
