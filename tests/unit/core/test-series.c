/* Energy at any time of a series, against the exact integral of boards that switch
 * between two powers at random: at its ends, at its points, within a tick and within a
 * gap.  Its lowest and highest power, against a look at each point, in rings that grow,
 * wrap and have their newest point replaced.
 *
 * Usage: test-series [SEED [BOARDS]]
 */
#include <stdlib.h>

#include "base/rng.h"
#include "base/units.h"
#include "core/meter/state.h"
#include "tap.h"

enum { POINTS_MOST = 400, LOOKS = 400 };
#define KEEP_S 1e9 /* no point leaves the ring */
#define EXACT_J 1e-6

/* A board that switches once a tick at most, or once a gap. */
struct board {
    double lo, hi, tick, first;
    size_t n; /* points */
    double at[POINTS_MOST], e[POINTS_MOST];
    double change[POINTS_MOST +
                  1]; /* in [at[i], at[i + 1]]; before it w[i], behind it w[i + 1] */
    double w[POINTS_MOST + 1];
};

/* Exact. */
static double energy(const struct board *b, double t)
{
    size_t i = 0;

    while (i + 2 < b->n && t >= b->at[i + 1])
        i++;
    double until = fmin(t, b->change[i]), rest = fmax(t - b->change[i], 0);
    return b->e[i] + (until - b->at[i]) * b->w[i] + rest * b->w[i + 1];
}

static void board_init(struct board *b, struct rng *g, struct series *s)
{
    b->lo = 20 + 100 * rng_uniform(g);
    b->hi = b->lo + 300 * rng_uniform(g);
    b->tick = 0.02 + 0.1 * rng_uniform(g);
    b->first = 1000 * rng_uniform(g);
    b->n = 2 + rng_below(g, POINTS_MOST - 2);
    bool steady = rng_below(g, 8) == 0;
    bool gaps = rng_below(g, 3) == 0;
    double t = b->first, e = 1e6 * rng_uniform(g);
    b->w[0] = rng_below(g, 2) ? b->lo : b->hi;
    for (size_t i = 0; i < b->n; i++) {
        double len = b->tick * (gaps && rng_below(g, 50) == 0 ? 40 : 1);
        b->at[i] = t;
        b->e[i] = e;
        series_add(s, (struct point){.t = t, .e = e});
        bool changes = !steady && rng_below(g, 4) == 0;
        b->w[i + 1] = !changes ? b->w[i] : b->w[i] > b->lo ? b->lo : b->hi;
        b->change[i] = t + len * rng_uniform(g);
        e += (b->change[i] - t) * b->w[i] + (t + len - b->change[i]) * b->w[i + 1];
        t += len;
        if (i + 2 >= POINTS_MOST)
            b->n = i + 1;
    }
}

struct sums {
    unsigned long looks, sure, outside,
        beyond; /* beyond: energies outside of the tick's */
};

/* Places all over a board's series, its first and its last point among them. */
static void look_within(const struct board *b, const struct series *s, struct sums *ret)
{
    struct levels may = {b->lo, b->hi};
    double from = b->at[0], to = b->at[b->n - 1], j = 0, sd = 0;

    for (int k = 0; k <= LOOKS; k++) {
        double t = k == LOOKS ? to : fmin(from + (to - from) * k / LOOKS, to);
        double want = energy(b, t);
        ret->looks++;
        if (!series_energy(s, t, &may, &j, &sd)) {
            ret->outside++;
            continue;
        }
        ret->sure += fabs(j - want) <= 2 * sd + EXACT_J;
    }
}

/* Points whose energy is not the one that was added, or is not sure. */
static unsigned long points_wrong(const struct board *b, const struct series *s)
{
    struct levels may = {b->lo, b->hi};
    unsigned long n = 0;
    double j = 0, sd = 0;

    for (size_t i = 0; i < b->n; i++)
        n += !series_energy(s, b->at[i], &may, &j, &sd) || fabs(j - b->e[i]) > EXACT_J ||
             sd > EXACT_J;
    return n;
}

/* Windows that begin before the first or end after the last point, however little, are
 * not known, nor is anything of a series of fewer than two; nothing is written then.
 */
static bool ends_are_refused(const struct board *b, const struct series *s)
{
    struct levels may = {b->lo, b->hi};
    double j = 7, sd = 7, first = b->at[0], last = b->at[b->n - 1];

    return !series_energy(s, nextafter(first, -HUGE_VAL), &may, &j, &sd) &&
           !series_energy(s, nextafter(last, HUGE_VAL), &may, &j, &sd) &&
           !series_energy(s, -HUGE_VAL, &may, &j, &sd) &&
           !series_energy(s, HUGE_VAL, &may, &j, &sd) && j == 7 && sd == 7;
}

static void test_few(void)
{
    const struct levels may = {0, 300};
    struct series s = {0};
    double j = 7, sd = 7;

    if (!ok(series_init(&s, KEEP_S), "a series"))
        return;
    ok(!series_energy(&s, 0, &may, &j, &sd), "without a point nothing is known");
    series_add(&s, (struct point){.t = 5, .e = 100});
    ok(!series_energy(&s, 5, &may, &j, &sd) && j == 7 && sd == 7, "nor with one");
    series_add(&s, (struct point){.t = 5, .e = 90});
    ok(!series_energy(&s, 5, &may, &j, &sd), "nor with a second one of the same time");
    series_add(&s, (struct point){.t = 6, .e = 290});
    ok(series_energy(&s, 5, &may, &j, &sd) && j == 90 && sd == 0, "the first of two");
    ok(series_energy(&s, 6, &may, &j, &sd) && j == 290 && sd == 0, "the last");
    ok(series_energy(&s, 5.5, &may, &j, &sd) && j == 190, "steady between them");
    free(s.p);
}

/* The lowest and the highest power between points within [a, b], point by point. */
static void range(const struct series *s, double a, double b, double *ret_lo,
                  double *ret_hi)
{
    double lo = HUGE_VAL, hi = 0;

    for (size_t i = 1; i < s->at.n; i++) {
        const struct point *p = series_at(s, i - 1), *q = series_at(s, i);
        bool within = q->t > a && p->t <= b;
        double w = (q->e - p->e) / fmax(q->t - p->t, 1e-9);
        lo = within ? fmin(lo, w) : lo;
        hi = within ? fmax(hi, w) : hi;
    }
    *ret_lo = hi > 0 ? lo : 0;
    *ret_hi = hi;
}

/* Of a ring that keeps keep_s of points every 0.1 s: looks whose answer is wrong. */
static unsigned long ranges_wrong(struct rng *g, double keep_s, size_t points,
                                  size_t *ret_room)
{
    unsigned long n = 0;
    struct series s = {0};
    struct point p = {.t = 3};

    if (!series_init(&s, keep_s))
        return 1;
    for (size_t i = 0; i < points; i++) {
        double from = rng_uniform(g) < 0.2 ? -HUGE_VAL : p.t - keep_s * rng_uniform(g);
        double to = rng_uniform(g) < 0.2 ? HUGE_VAL : from + keep_s * rng_uniform(g);
        double lo, hi, want_lo, want_hi;
        p.t += rng_below(g, 20) ? 0.1 : 0; /* else it replaces the newest */
        p.e += rng_below(g, 300) ? 10 + rng_uniform(g) : 40 * rng_uniform(g);
        series_add(&s, p);
        series_range(&s, from, to, &lo, &hi);
        range(&s, from, to, &want_lo, &want_hi);
        n += lo != want_lo || hi != want_hi;
    }
    *ret_room = s.at.room;
    free(s.p);
    return n;
}

static void test_ranges(struct rng *g)
{
    static const struct {
        double keep_s;
        size_t points, room;
    } rings[] = {{5, 1000, 128}, {30, 3000, 512}, {KEEP_S, 6000, POINTS}};
    size_t room = 0;

    for (size_t i = 0; i < n_elements(rings); i++) {
        is_int((long)ranges_wrong(g, rings[i].keep_s, rings[i].points, &room), 0,
               "%zu points, a ring of %zu: the lowest and the highest power",
               rings[i].points, rings[i].room);
        is_int((long)room, (long)rings[i].room, "the ring's size");
    }
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, boards = 300; /* the same in every run; others by hand */
    unsigned long wrong = 0, ends = 0;
    struct sums all = {0};
    struct rng g;

    if ((argc > 1 && parse_u64(argv[1], &seed, NULL)) ||
        (argc > 2 && parse_u64(argv[2], &boards, NULL)))
        return 2;
    test_few();
    rng_init(&g, seed);
    for (uint64_t k = 0; k < boards; k++) {
        static struct board b;
        struct series s = {0};
        if (!series_init(&s, KEEP_S))
            return 1;
        board_init(&b, &g, &s);
        ends += !ends_are_refused(&b, &s);
        wrong += points_wrong(&b, &s);
        look_within(&b, &s, &all);
        free(s.p);
    }
    printf("# seed %ju: %lu places, %lu of them within two standard deviations\n",
           (uintmax_t)seed, all.looks, all.sure);
    is_int((long)ends, 0, "beyond the first and the last point nothing is known");
    is_int((long)wrong, 0, "at each point, the first and the last, the energy is exact");
    is_int((long)all.outside, 0, "all between them is known");
    ok(all.sure > all.looks - all.looks / 100, "and as sure as it says");
    test_ranges(&g);
    return done();
}
