#include "core/optimum/wander.h"

#include <math.h>

#include "base/rng.h"
#include "tap.h"

#define CLAIM 0.002

static void feed(struct wander *w, double at_s, double log_t, double log_e)
{
    struct pair_window window = {true, at_s, log_t, log_e, CLAIM * CLAIM, CLAIM * CLAIM};
    wander_on_window(w, &window);
}

/* Windows that err what they claim, every 10 s. */
static void as_claimed(void)
{
    struct wander w = {0};
    struct rng g;

    is_near(wander_over(&w, 100).e, 0, 0, "nothing is known of nothing");
    rng_init(&g, 3);
    for (unsigned i = 0; i < 4000; i++)
        feed(&w, 10 * i, CLAIM * rng_normal(&g), CLAIM * rng_normal(&g));
    ok(wander_over(&w, 20).t < CLAIM * CLAIM && wander_over(&w, 300).e < CLAIM * CLAIM,
       "windows that err as they claim wander little: %.2g, %.2g", wander_over(&w, 20).t,
       wander_over(&w, 300).e);
    is_int(w.lag[0].n, 1999, "each difference once");
}

/* Energy goes up and down within a minute, time does not. */
static void slow_noise(void)
{
    struct wander w = {0};
    struct rng g;
    double e = 0, keeps = exp(-10.0 / 60);

    rng_init(&g, 4);
    for (unsigned i = 0; i < 20000; i++) {
        e = keeps * e + 0.01 * sqrt(1 - keeps * keeps) * rng_normal(&g);
        feed(&w, 10 * i, 0, e);
    }
    is_near(wander_over(&w, 600).e, 2e-4, 3e-5, "twice its variance after a while");
    is_near(wander_over(&w, 20).e, 2e-4 * (1 - exp(-20.0 / 60)), 2e-5, "less over 20 s");
    is_near(wander_over(&w, 600).t, 0, 1e-12, "time as it is");
}

static void beyond(void)
{
    struct wander w = {0};

    for (unsigned i = 0; i <= 12; i++)
        feed(&w, 10 * i, 0, 0.01 * i);
    struct wander_vars seen = wander_over(&w, 40), far = wander_over(&w, 600);
    ok(seen.e > 0.9 * 0.0016 && seen.n == 3, "a drift over 40 s: %.2g", seen.e);
    is_near(far.e / seen.e, 10, 0.1, "what was never seen grows with the time");
    struct wander before = w;
    wander_break(&w);
    feed(&w, 150, 0, 0.5);
    feed(&w, 175, 0, 0.5);
    ok(wander_over(&w, 30).e < 0.0005 && before.lag[0].n + 1 == w.lag[0].n,
       "another cap: no difference across");
    feed(&w, 100000, 0, 0.9);
    is_int(w.lag[0].n, before.lag[0].n + 1, "nor across a long pause");
}

int main(void)
{
    as_claimed();
    slow_noise();
    beyond();
    return done();
}
