#include "core/optimum/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../bench/noise.h"
#include "base/rng.h"
#include "tap.h"

enum { STEPS = 10, WINDOWS_MAX = 48, RUNS = 1200 };
#define TRUE_LOG 0.03 /* of side B over side A */
#define WHITE 0.003   /* scatter of a step besides the noise that remembers */
/* Standard errors of a nominal 1 % bound: where windows are few (outlook.c takes 2.8
 * there), and where there are more, as in outlook.c.
 */
#define SURE_FEW 2.65
#define SURE 2.45
enum { FEW = 8 };

/* A job whose noise has a memory (0: none, sd is then of a window), its windows of 10
 * steps of 1 s interleaved A B B A, or all of A first; down_s more pass before each B
 * after an A.
 */
struct job {
    double memory_s, sd, down_s;
    bool apart;
};

static bool side_of(const struct job *j, size_t i, size_t n)
{
    return j->apart ? 2 * i >= n : i % 4 == 1 || i % 4 == 2;
}

static double gap_s(const struct job *j, size_t i, size_t n)
{
    bool down = i > 0 && side_of(j, i, n) && !side_of(j, i - 1, n);

    return 2 + (down ? j->down_s : 0);
}

static struct noise noise_of(const struct job *j, struct rng *rng)
{
    return (struct noise){.sd = j->memory_s > 0 ? j->sd : j->sd * sqrt(STEPS),
                          .memory_s = j->memory_s > 0 ? j->memory_s : 0.001,
                          .rng = rng};
}

static void make(const struct job *j, struct rng *rng, struct compare_window *w, size_t n)
{
    struct noise noise = noise_of(j, rng);
    double now_s = 0;

    for (size_t i = 0; i < n; i++) {
        double sum = 0, sum2 = 0;
        noise_pass(&noise, gap_s(j, i, n));
        now_s += gap_s(j, i, n);
        for (int k = 0; k < STEPS; k++) {
            noise_pass(&noise, 1);
            double v = noise.log_t + WHITE * rng_normal(rng);
            sum += v;
            sum2 += v * v;
        }
        bool b = side_of(j, i, n);
        double mean = sum / STEPS, var = (sum2 - sum * mean) / (STEPS - 1);
        w[i] = (struct compare_window){.side = b,
                                       .start_s = now_s,
                                       .lasted_s = STEPS,
                                       .log_v = 5 + b * TRUE_LOG + mean,
                                       .rse = sqrt(fmax(var, 0) / STEPS),
                                       .parts = STEPS};
        now_s += STEPS;
    }
}

/* ---- the oracle: least squares with the true covariances, worked out densely ---- */

static double cov_of_steps(const struct job *j, double apart_s)
{
    if (j->memory_s > 0)
        return j->sd * j->sd * exp(-apart_s / j->memory_s);
    return apart_s < 0.5 ? STEPS * j->sd * j->sd : 0;
}

static void covariances(const struct job *j, double *c, size_t n)
{
    double start_s[WINDOWS_MAX], now_s = 0;

    for (size_t i = 0; i < n; i++) {
        start_s[i] = now_s + gap_s(j, i, n);
        now_s = start_s[i] + STEPS;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            double sum = i == k ? WHITE * WHITE * STEPS : 0;
            for (int a = 0; a < STEPS; a++)
                for (int b = 0; b < STEPS; b++)
                    sum += cov_of_steps(j, fabs(start_s[i] + a - start_s[k] - b));
            c[i * n + k] = sum / (STEPS * STEPS);
        }
}

/* In place: c to its Cholesky factor L. */
static void cholesky(double *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k <= i; k++) {
            double v = c[i * n + k];
            for (size_t m = 0; m < k; m++)
                v -= c[i * n + m] * c[k * n + m];
            c[i * n + k] = i == k ? sqrt(v) : v / c[k * n + k];
        }
}

/* The standard error of log(B / A) for one who knows the noise. */
static double oracle_se(const struct job *j, size_t n)
{
    static double c[WINDOWS_MAX * WINDOWS_MAX];
    double x[2][WINDOWS_MAX], m[3] = {0};

    covariances(j, c, n);
    cholesky(c, n);
    for (size_t i = 0; i < n; i++)
        for (int s = 0; s < 2; s++) {
            double v = side_of(j, i, n) == s;
            for (size_t k = 0; k < i; k++)
                v -= c[i * n + k] * x[s][k];
            x[s][i] = v / c[i * n + i];
        }
    for (size_t i = 0; i < n; i++) {
        m[0] += x[0][i] * x[0][i];
        m[1] += x[0][i] * x[1][i];
        m[2] += x[1][i] * x[1][i];
    }
    return sqrt((m[0] + m[2] + 2 * m[1]) / (m[0] * m[2] - m[1] * m[1]));
}

/* ---- cases ---- */

struct ratio {
    double log_ratio, most; /* B / A, expected and its bound */
};

static struct ratio compare(const struct compare_window *w, size_t n, unsigned a,
                            unsigned b)
{
    static struct compare_levels l;

    compare_levels(w, n, &l);
    double var = l.cov[a][a] + l.cov[b][b] - 2 * l.cov[a][b];
    struct ratio r = {.log_ratio = l.level[b] - l.level[a]};
    r.most = r.log_ratio + (n <= FEW ? SURE_FEW : SURE) * sqrt(var);
    return r;
}

static void play(const struct job *j, unsigned pairs, double factor)
{
    struct compare_window w[WINDOWS_MAX];
    struct rng rng;
    unsigned missed = 0;
    double width = 0, off2 = 0, se = oracle_se(j, 2 * pairs);

    rng_init(&rng, 1 + pairs);
    for (int i = 0; i < RUNS; i++) {
        make(j, &rng, w, 2 * pairs);
        struct ratio r = compare(w, 2 * pairs, 0, 1);
        missed += r.most < TRUE_LOG;
        width += (r.most - r.log_ratio) / RUNS;
        off2 += (r.log_ratio - TRUE_LOG) * (r.log_ratio - TRUE_LOG) / RUNS;
    }
    double wide = width / (2.326 * se), share = (double)missed / RUNS;
    ok(share <= 0.025,
       "memory %g s, %g %%, way down %g s, %u + %u windows%s: %.2f %% missed",
       j->memory_s, 100 * j->sd, j->down_s, pairs, pairs, j->apart ? " apart" : "",
       100 * share);
    ok(wide <= factor && wide > 0.9, "… width %.2f of the oracle's", wide);
    ok(sqrt(off2) <= 1.5 * se, "… error %.2f of the oracle's", sqrt(off2) / se);
}

static void test_noise(void)
{
    static const double memories_s[] = {0, 5, 60, 300}, sds[] = {0.003, 0.01};
    static const struct {
        unsigned pairs;
        double factor;
    } sizes[] = {{3, 1.8}, {4, 1.5}, {8, 1.3}, {24, 1.2}};

    for (unsigned i = 0; i < 32; i++) {
        struct job j = {.memory_s = memories_s[i / 2 % 4], .sd = sds[i % 2]};
        play(&j, sizes[i / 8].pairs, sizes[i / 8].factor);
    }
    for (unsigned i = 0; i < 3; i++) {
        struct job down = {.memory_s = memories_s[1 + i], .sd = 0.01, .down_s = 35};
        struct job apart = {.memory_s = memories_s[1 + i], .sd = 0.01, .apart = true};
        play(&down, 6, 1.4);
        play(&apart, 4, 1.8);
    }
}

/* Windows without noise: known once sides were repeated, not before. */
static void test_exact(void)
{
    struct compare_window w[6];

    for (unsigned i = 0; i < 6; i++) {
        unsigned side = i % 4 == 1 || i % 4 == 2;
        w[i] = (struct compare_window){side, 12.0 * i, 10, 5 + side * TRUE_LOG, 0, 0};
    }
    struct ratio two = compare(w, 2, 0, 1), all = compare(w, 6, 0, 1);
    is_near(two.log_ratio, TRUE_LOG, 1e-9, "two windows: the ratio");
    ok(two.most > TRUE_LOG + 0.01 && two.most < TRUE_LOG + 1, "… not known well: %.4f",
       two.most - two.log_ratio);
    is_near(all.log_ratio, TRUE_LOG, 1e-9, "six windows: the ratio");
    ok(all.most > TRUE_LOG && all.most < TRUE_LOG + 0.002, "… known well: %.5f",
       all.most - all.log_ratio);
    struct ratio turned = compare(w, 6, 1, 0);
    is_near(turned.log_ratio, -TRUE_LOG, 1e-9, "exchanged: negated");
    is_near(turned.most - turned.log_ratio, all.most - all.log_ratio, 1e-9, "… as wide");
}

/* The scatter within windows says how much the process can be, where nothing repeats. */
static void test_within(void)
{
    struct compare_window w[2] = {{0, 0, 10, 5, 0.0003, 0},
                                  {1, 12, 10, 5 + TRUE_LOG, 0.0003, 0}};
    double unknown = compare(w, 2, 0, 1).most - TRUE_LOG;

    w[0].parts = w[1].parts = 10;
    double quiet = compare(w, 2, 0, 1).most - TRUE_LOG;
    w[0].rse = w[1].rse = 0.03;
    double uneven = compare(w, 2, 0, 1).most - TRUE_LOG;
    ok(quiet < unknown / 3, "even windows narrow the bound: %.2f -> %.2f %%",
       100 * unknown, 100 * quiet);
    ok(uneven > unknown, "uneven ones do not: %.2f %%", 100 * uneven);
}

/* Windows of a third side tell about the noise, not about the ratio itself. */
static void test_third(void)
{
    struct job j = {.memory_s = 60, .sd = 0.01};
    struct compare_window w[WINDOWS_MAX];
    struct rng rng;
    double alone = 0, beside = 0;

    rng_init(&rng, 3);
    for (int i = 0; i < 200; i++) {
        make(&j, &rng, w, 24);
        alone += compare(w, 4, 0, 1).most - TRUE_LOG;
        for (size_t k = 4; k < 24; k++)
            w[k].side += 7;
        beside += compare(w, 24, 0, 1).most - TRUE_LOG;
    }
    ok(beside < 0.9 * alone && beside > 0, "others narrow the bound: %.2f -> %.2f %%",
       alone / 2, beside / 2);
}

/* A longer window is better against white noise alone: slow noise changes meanwhile. */
static void test_again(void)
{
    struct job white = {.sd = 0.01}, slow = {.memory_s = 300, .sd = 0.01};
    struct compare_window w[WINDOWS_MAX];
    struct compare_levels of_white, of_slow;
    struct rng rng;

    rng_init(&rng, 7);
    make(&white, &rng, w, 24);
    compare_levels(w, 24, &of_white);
    make(&slow, &rng, w, 24);
    compare_levels(w, 24, &of_slow);
    ok(of_white.again_var[2] < 0.5 * of_white.again_var[0],
       "white noise: windows 4 times as long: variance x %.2f",
       of_white.again_var[2] / of_white.again_var[0]);
    ok(of_slow.again_var[2] > 2 * of_slow.again_var[0], "slow noise: x %.2f",
       of_slow.again_var[2] / of_slow.again_var[0]);
}

int main(void)
{
    test_again();
    test_noise();
    test_exact();
    test_within();
    test_third();
    return done();
}
