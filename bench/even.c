/* Readings at even times, of a sensor that nothing is known of: fast loops, which look
 * like slow ones, shuffled readings, and true periods.  Simulated.
 *
 *     build/bench/even [--seeds N] [-v]
 *
 * N loops that look like periods of 0.5 to 20 s, or of 2.47 ms, read at 20 to 97 Hz with
 * 0 to 10 % of jitter, alone and with a counter that misses nothing and is renewed every
 * 100 ms; 5 N traces whose readings are put in random order; N periods of 0.5 to 20 s
 * with the counter, N read at two rates, and N read with more jitter.  Answered: sure to
 * 0.7.  Lost: right, but less sure.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "core/progress/period.h"

enum kind { LOOP, LOOP_COUNTER, SHUFFLED, COUNTER, TWO_RATES, JITTER, KINDS };
static const char *const names[KINDS] = {"fast loop",         "fast loop, counter",
                                         "shuffled",          "period, counter",
                                         "period, two rates", "period, jitter"};
enum { READINGS = 6000 };
#define TICK_S 0.1
#define SURE 0.7

struct trace {
    double period_s, duty, high_w, low_w, noise_w;
    struct activity a[READINGS];
    size_t n;
};

static double power_at(const struct trace *t, double at_s)
{
    double phase = at_s / t->period_s;

    return phase - floor(phase) < t->duty ? t->high_w : t->low_w;
}

/* Energy from 0; in the last, unfinished cycle the high level comes first. */
static double energy_at(const struct trace *t, double at_s)
{
    double cycles = floor(at_s / t->period_s), rest = at_s - cycles * t->period_s;
    double high = cycles * t->period_s * t->duty + fmin(rest, t->period_s * t->duty);

    return t->low_w * at_s + (t->high_w - t->low_w) * high;
}

/* jitter: relative to the time between two readings, full range. */
static void read_board(struct trace *t, double hz, double jitter, double other_hz,
                       bool counter, double length_s, struct rng *g)
{
    double due_s = 100;

    for (t->n = 0; t->n < READINGS && due_s < 100 + length_s; t->n++) {
        double rate = other_hz > 0 && due_s > 100 + length_s / 2 ? other_hz : hz;
        double at_s = due_s + jitter * (rng_uniform(g) - 0.5) / rate;
        t->a[t->n] = (struct activity){
            ns_of_s(at_s), power_at(t, at_s) + t->noise_w * rng_normal(g),
            NAN,           NAN,
            NAN,           counter ? energy_at(t, floor(at_s / TICK_S) * TICK_S) : NAN,
        };
        due_s += 1 / rate;
    }
}

static void shuffle(struct trace *t, struct rng *g)
{
    for (size_t i = t->n; i > 1; i--) {
        size_t j = rng_below(g, (uint32_t)i);
        double w = t->a[j].power_w;
        t->a[j].power_w = t->a[i - 1].power_w;
        t->a[i - 1].power_w = w;
    }
}

static void draw(struct trace *t, enum kind kind, struct rng *g)
{
    static const double rates[] = {20, 33, 50, 97};
    bool loop = kind == LOOP || kind == LOOP_COUNTER;
    double hz = rates[rng_below(g, 4)], jitter = 0.1 * rng_uniform(g), other_hz = 0;

    t->period_s = 0.5 * pow(40, rng_uniform(g));
    t->duty = 0.2 + 0.6 * rng_uniform(g);
    t->high_w = 200 + 300 * rng_uniform(g);
    t->low_w = t->high_w * (0.3 + 0.5 * rng_uniform(g));
    t->noise_w = 3 * rng_uniform(g);
    double length_s = fmin(fmax(20, 20 * t->period_s), READINGS / hz);
    if (loop) /* whole turns between readings, plus one in each apparent period */
        t->period_s = 1 / ((1 + (double)rng_below(g, 6)) * hz + 1 / t->period_s);
    if (kind == LOOP && rng_below(g, 4) == 0)
        t->period_s = 0.00247;
    if (kind == TWO_RATES)
        other_hz = hz / (1.2 + 0.5 * rng_uniform(g));
    if (kind == JITTER)
        jitter = 0.7 + 0.2 * rng_uniform(g);
    read_board(t, hz, jitter, other_hz, kind == LOOP_COUNTER || kind == COUNTER, length_s,
               g);
    if (kind == SHUFFLED)
        shuffle(t, g);
}

struct tally {
    unsigned n, answered, right, lost;
};

static int play(enum kind kind, uint64_t seed, bool verbose, struct tally *ret)
{
    auto_(mem_free) struct trace *t = calloc(1, sizeof *t);
    auto_(period_free) struct period *p = NULL;
    struct period_found f;
    struct rng g;

    if (!t || period_new(1, &p) < 0)
        return -ENOMEM;
    rng_init(&g, seed * KINDS + kind);
    draw(t, kind, &g);
    for (size_t i = 0; i < t->n; i++)
        period_feed(p, 0, &t->a[i]);
    period_find(p, &f);
    bool found = f.why == PERIOD_FOUND, sure = found && f.confidence >= SURE;
    bool right = found && fabs(f.period_s / t->period_s - 1) <= 0.02;
    ret->n++;
    ret->answered += sure;
    ret->right += sure && right;
    ret->lost += right && !sure;
    if (verbose)
        (void)printf("%-18s seed %3llu P %.5f s, %zu readings: %d %.4f s, sure to %.2f\n",
                     names[kind], (unsigned long long)seed, t->period_s, t->n, f.why,
                     f.period_s, f.confidence);
    return 0;
}

int main(int argc, char **argv)
{
    int64_t seeds = 200;
    bool verbose = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0) {
            verbose = true;
        } else if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc &&
                   parse_i64(argv[i + 1], &seeds, NULL) == 0) {
            i++;
        } else {
            (void)fprintf(stderr, "usage: even [--seeds N] [-v]\n");
            return 2;
        }
    }
    (void)printf(
        "trace                  n  answered  right   lost (right, but not sure)\n");
    for (enum kind k = 0; k < KINDS; k++) {
        struct tally t = {0};
        for (int64_t s = 1; s <= (k == SHUFFLED ? 5 : 1) * seeds; s++)
            if (play(k, (uint64_t)s, verbose, &t) < 0)
                return 1;
        (void)printf("%-18s %5u  %8u %6u %6u\n", names[k], t.n, t.answered, t.right,
                     t.lost);
        (void)fflush(stdout);
    }
    return 0;
}
