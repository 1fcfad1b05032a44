/* The bound on a node's rise: boards without a job, starts, pauses, lower claims of
 * others, what is unknown; over random lives the caps never grow faster than the rate.
 */
#include <math.h>

#include "base/rng.h"
#include "base/units.h"
#include "core/policy/rise.h"
#include "tap.h"

enum { N = 4 };
#define RATE_W_S 40.0

struct scene {
    struct rise rise;
    struct rise_now now[N];
    uint64_t s;
};

/* H100-class boards that idle. */
static void begin(struct scene *s)
{
    *s = (struct scene){.s = 100};
    for (size_t i = 0; i < N; i++)
        s->now[i] = (struct rise_now){.known = true,
                                      .power_w = 70,
                                      .min_mw = 200000,
                                      .default_mw = 700000,
                                      .original_mw = 700000,
                                      .top_mw = 700000};
}

static uint32_t allowed_mw(const struct scene *s, size_t i)
{
    uint32_t cap = s->rise.board[i].cap_mw, top = s->now[i].top_mw;

    return cap && cap < top ? cap : top;
}

/* Boards with a job draw all that they may, others idle. */
static void draw(struct scene *s)
{
    for (size_t i = 0; i < N; i++)
        s->now[i].power_w = s->now[i].has_job ? 0.98 * w_of_mw(allowed_mw(s, i)) : 70;
}

static void step(struct scene *s, unsigned seconds, bool draws)
{
    while (seconds-- > 0) {
        if (draws)
            draw(s);
        rise_step(&s->rise, RATE_W_S, s->now, N, ++s->s * NS_PER_S);
    }
}

static double sum_w(const struct scene *s)
{
    double sum = 0;

    for (size_t i = 0; i < N; i++)
        sum += w_of_mw(allowed_mw(s, i));
    return sum;
}

static void starts(void)
{
    struct scene s;

    begin(&s);
    step(&s, 1, true);
    ok(s.rise.board[0].cap_mw == 200000 && s.rise.board[0].state == LIMIT_NO_JOB,
       "idle when the limit begins: the minimum");
    s.now[0].power_w = 190;
    step(&s, 3, false);
    ok(s.rise.board[0].cap_mw == 200000 && s.rise.board[0].state == LIMIT_NO_JOB,
       "whoever draws there without a job");
    step(&s, 1, true);
    ok(fabs(s.rise.first_w - N * 130) < 1e-6, "the first step: %.0f W", s.rise.first_w);
    s.now[0].has_job = s.now[1].has_job = true;
    step(&s, 3, false);
    ok(s.rise.board[0].cap_mw == 200000 && s.rise.board[0].state == LIMIT_PAUSED,
       "a job that does not draw: still");
    double before_w = sum_w(&s), steps_w = 2 * (200 - 70);
    step(&s, 6, true);
    ok(sum_w(&s) <= before_w && s.rise.board[0].state == LIMIT_RISES,
       "it draws: the step up is charged first: %.0f W", sum_w(&s) - before_w);
    step(&s, 14, true);
    double grown_w = sum_w(&s) - before_w;
    ok(grown_w > 0.8 * (20 * RATE_W_S - steps_w) &&
           grown_w <= 20 * RATE_W_S - steps_w + 40,
       "then by the rate: %.0f W in 20 s", grown_w);
    ok(s.rise.board[0].cap_mw == s.rise.board[1].cap_mw, "in equal parts");
    step(&s, 60, true);
    ok(s.rise.board[0].cap_mw == 0 && s.rise.board[0].state == LIMIT_FREE, "all the way");
    s.now[0].has_job = false;
    s.now[0].power_w = 70;
    step(&s, 1, false);
    ok(fabs(s.rise.fall_w - (0.98 * 700 - 70)) < 1, "a fall is measured: %.0f W",
       s.rise.fall_w);
    step(&s, RISE_PAUSE_S - 1, true);
    ok(s.rise.board[0].cap_mw == 0, "without a job for less than %d s: no cap",
       RISE_PAUSE_S);
    step(&s, 1, true);
    ok(s.rise.board[0].cap_mw == 200000 && s.rise.board[0].state == LIMIT_NO_JOB,
       "then the minimum");
}

static void running(void)
{
    struct scene s;

    begin(&s);
    for (size_t i = 0; i < N; i++)
        s.now[i].has_job = true;
    s.now[3].known = false;
    step(&s, 120, true);
    ok(s.rise.board[0].cap_mw == 0 && s.rise.board[0].state == LIMIT_FREE,
       "a node that runs when the limit begins: no cap");
    ok(s.rise.board[3].cap_mw == 0 && s.rise.board[3].state == LIMIT_UNKNOWN,
       "an unknown power changes nothing");
    for (unsigned i = 0; i < 5; i++) { /* a checkpoint */
        for (size_t k = 0; k < N; k++)
            s.now[k].power_w = 100;
        step(&s, RISE_PAUSE_S - 1, false);
        step(&s, 20, true);
    }
    ok(s.rise.board[0].cap_mw == 0, "pauses of less than %d s: no cap", RISE_PAUSE_S);
    s.now[0].power_w = s.now[1].power_w = 300;
    step(&s, 120, false);
    ok(s.rise.board[0].cap_mw == 0, "300 of 700 W is no pause");
    s.now[0].power_w = 100;
    s.now[1].power_w = 230;
    step(&s, RISE_PAUSE_S + 1, false);
    ok(s.rise.board[0].cap_mw == 200000 && s.rise.board[0].state == LIMIT_PAUSED &&
           s.rise.board[1].cap_mw == 288000,
       "a pause: as low as it draws: %u and %u mW", s.rise.board[0].cap_mw,
       s.rise.board[1].cap_mw);
    s.now[0].power_w = 150;
    s.now[1].power_w = 235;
    step(&s, 300, false);
    ok(s.rise.board[0].cap_mw == 200000 && s.rise.board[1].cap_mw == 288000,
       "a little more is still one");
    step(&s, 1, true);
    ok(s.rise.board[0].state == LIMIT_RISES && s.rise.board[1].state == LIMIT_RISES,
       "its end is seen");
}

/* The power that a board reads in a pause, where it is held at `held_mw`. */
static void pause_at(struct scene *s, double power_w, uint32_t held_mw)
{
    begin(s);
    for (size_t i = 0; i < N; i++)
        s->now[i].has_job = true;
    step(s, 20, true);
    s->now[0].power_w = s->now[1].power_w = s->now[2].power_w = s->now[3].power_w = 262;
    step(s, 1, false); /* it has a part of the fall */
    for (size_t i = 0; i < N; i++)
        s->now[i].power_w = power_w;
    step(s, 20, false);
    ok(s->rise.board[0].low && s->rise.board[0].cap_mw == held_mw,
       "a pause at %.0f W: held at %u mW", power_w, s->rise.board[0].cap_mw);
}

static void noise(void)
{
    struct scene s;

    pause_at(&s, 175, 219000);
    double credit_w = s.rise.credit_w;
    s.now[0].power_w = 200;
    step(&s, 1, false);
    ok(!s.rise.board[0].low && s.rise.board[0].cap_mw == 219000,
       "one high reading: its cap stays");
    s.now[0].power_w = 175;
    step(&s, RISE_PAUSE_S, false);
    ok(s.rise.board[0].low && s.rise.board[0].cap_mw == 219000 &&
           fabs(s.rise.credit_w - credit_w) < 0.1,
       "and it is held again");
    for (size_t i = 0; i < N; i++)
        s.now[i].power_w = 230;
    step(&s, 1, false);
    ok(fabs(s.rise.credit_w - (RATE_W_S - N * (219 - 175))) < 1,
       "the end is charged from what it drew last: %.0f W", s.rise.credit_w);
    pause_at(&s, 175, 219000);
    s.now[0].power_w = 100;
    step(&s, 10, false);
    ok(s.rise.board[0].cap_mw == 200000, "it draws less: its cap follows, to %u mW",
       s.rise.board[0].cap_mw);
}

/* A job that loads its data draws more than a board without one, and is let go. */
static void load(void)
{
    struct scene s;

    begin(&s);
    step(&s, 1, true);
    for (size_t i = 0; i < N; i++) {
        s.now[i].has_job = true;
        s.now[i].power_w = 190;
    }
    step(&s, 60, false);
    double most_w = 0;
    for (size_t i = 0; i < N; i++)
        most_w = fmax(most_w, w_of_mw(allowed_mw(&s, i)));
    ok(most_w <= 1.25 * 190, "190 W under 200 W: no cap above %.0f W", most_w);
    ok(s.rise.first_w <= N * 0.25 * 190, "the step up is told: %.0f W", s.rise.first_w);
}

/* Half of the time it draws all that it may, and its mean is far below. */
static void halves(void)
{
    struct scene s;

    for (int tells = 0; tells < 2; tells++) {
        begin(&s);
        step(&s, 1, true);
        for (unsigned t = 0; t < 120; t++) {
            for (size_t i = 0; i < N; i++) {
                s.now[i].has_job = true;
                s.now[i].power_w = (70 + w_of_mw(allowed_mw(&s, i))) / 2;
                s.now[i].slowed = tells && t % 2;
            }
            step(&s, 1, false);
        }
        ok((s.rise.board[0].cap_mw == 0) == tells,
           tells ? "a board that its cap slows half of the time goes up: %u mW"
                 : "without the driver's word it looks like a pause: %u mW",
           s.rise.board[0].cap_mw);
    }
}

static void others(void)
{
    struct scene s;

    begin(&s);
    for (size_t i = 0; i < N; i++)
        s.now[i].has_job = true;
    step(&s, 20, true);
    s.now[0].top_mw = 400000;
    step(&s, RISE_PAUSE_S, true);
    ok(s.rise.board[0].cap_mw == 0, "a lower claim of others, for a moment: no cap");
    step(&s, 2, true);
    ok(s.rise.board[0].cap_mw == 407000 && s.rise.board[0].state == LIMIT_BEHIND,
       "then a little above it: %u mW", s.rise.board[0].cap_mw);
    s.now[0].top_mw = 396000;
    step(&s, 60, true);
    ok(s.rise.board[0].cap_mw == 407000, "a little less changes nothing");
    s.now[0].top_mw = 700000;
    step(&s, 2, true);
    ok(allowed_mw(&s, 0) <= 407000 + 3 * RATE_W_S * 1000, "its end is no step: %u mW",
       allowed_mw(&s, 0));
    step(&s, 12, true);
    ok(s.rise.board[0].cap_mw == 0, "and it is let go");
}

/* No step raises what the boards may draw by more than the rate, but for boards that
 * leave the minimum, whose step is charged, and claims of others, whose end is not.
 */
static void random_lives(void)
{
    unsigned worse = 0, low = 0, below = 0;
    struct rng rng;

    rng_init(&rng, 15);
    for (unsigned life = 0; life < 200; life++) {
        struct scene s;
        begin(&s);
        step(&s, 12, true);
        for (unsigned t = 1; t <= 400; t++) {
            for (size_t i = 0; i < N; i++) {
                if (rng_below(&rng, 50) == 0)
                    s.now[i].has_job = !s.now[i].has_job;
                s.now[i].known = rng_below(&rng, 20) > 0;
            }
            draw(&s);
            for (size_t i = 0; i < N; i++)
                if (s.now[i].has_job && rng_below(&rng, 10) == 0)
                    s.now[i].power_w = 90;
            double was_w = sum_w(&s);
            rise_step(&s.rise, RATE_W_S, s.now, N, ++s.s * NS_PER_S);
            worse += sum_w(&s) - was_w > RATE_W_S + N * 7 + 1;
            for (size_t i = 0; i < N; i++) {
                low += s.rise.board[i].low;
                below += s.rise.board[i].cap_mw && s.rise.board[i].cap_mw < 200000;
            }
        }
    }
    ok(worse == 0 && below == 0 && low > 1000,
       "never faster than the rate, never below the minimum; %u board seconds low", low);
}

int main(void)
{
    starts();
    running();
    noise();
    load();
    halves();
    others();
    random_lives();
    return done();
}
