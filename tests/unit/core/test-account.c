/* Grams and money of an interval: tables, and sums over random rows. */
#include "core/carbon/account.h"

#include "base/rng.h"
#include "tap.h"

#define S UINT64_C(1000000000)

static int64_t factor(enum account_signal which, double v)
{
    int64_t ret = 0;

    ok(account_factor(which, v, &ret), "%g is a factor", v);
    return ret;
}

static struct account_amount of(const struct account_step *step, size_t n,
                                uint64_t begin_s, uint64_t end_s, int64_t uj)
{
    struct account_amount a;
    int64_t rest = 0;

    account_interval(step, n, begin_s * S, end_s * S, uj, &rest, &a);
    return a;
}

static void table(void)
{
    const struct account_step step[] = {
        {10 * S, true, factor(ACCOUNT_CO2, 300), 1},
        {20 * S, false, 0, 2},
        {25 * S, true, factor(ACCOUNT_CO2, -40), 3},
    };
    struct account_amount a = of(step, 3, 10, 20, INT64_C(1000000000));

    is_int(a.amount, 83, "1 kJ at 300 g/kWh: 83.3 mg");
    ok(a.covered_uj == 1000000000 && a.source == 1, "all of it is covered");
    a = of(step, 3, 0, 10, 1000000000);
    ok(!a.known && a.amount == 0 && a.covered_uj == 0, "before the first step: unknown");
    a = of(step, 3, 20, 25, 1000000000);
    ok(!a.known && a.amount == 0 && a.covered_uj == 0, "in a gap: unknown");
    a = of(step, 3, 15, 23, INT64_C(8000000000));
    is_int(a.covered_uj, 5000000000, "five of eight seconds are covered");
    is_int(a.amount, 416, "by 300 g/kWh");
    a = of(step, 3, 18, 29, INT64_C(11000000000));
    is_int(a.covered_uj, 6000000000, "two and four of eleven seconds");
    is_int(a.amount, 122, "2 kJ at 300, 4 kJ at -40 g/kWh: 122.2 mg");
    is_int(a.source, 3, "the source is the one of most time");
    a = of(step, 3, 30, 40, INT64_C(3600000000000));
    is_int(a.amount, -40000, "a negative intensity is a value");
    a = of(step, 3, 30, 40, 3600);
    is_int(a.amount, -1, "rounded down");
    a = of(step, 3, 12, 12, INT64_C(3600000000000));
    is_int(a.amount, 300000, "an interval of no length has its moment's factor");
    a = of(step, 3, 22, 22, INT64_C(3600000000000));
    ok(!a.known, "or none");
    a = of(NULL, 0, 0, 10, 1000);
    ok(!a.known && a.covered_uj == 0, "no steps: unknown");
}

static void units(void)
{
    struct account_step step = {0, true, factor(ACCOUNT_COST, 0.05), 0};
    int64_t f = 0;

    is_int(of(&step, 1, 0, 10, INT64_C(1000000000)).amount, 13,
           "10 s at 100 W for 0.05 EUR/kWh: 13.9 millionths");
    step.factor = factor(ACCOUNT_COST, -0.5);
    is_int(of(&step, 1, 0, 10, INT64_C(3600000000000)).amount, -500000,
           "a negative price is a value");
    step.factor = factor(ACCOUNT_MARGINAL, 0);
    struct account_amount a = of(&step, 1, 0, 10, 1000);
    ok(a.known && a.amount == 0 && a.covered_uj == 1000, "0 g/kWh is known");
    ok(!account_factor(ACCOUNT_CO2, (double)NAN, &f), "NaN is none");
    ok(!account_factor(ACCOUNT_CO2, 1.1e9, &f), "nor is 1.1e9 g/kWh");
    ok(!account_factor(ACCOUNT_COST, (double)INFINITY, &f), "nor is infinity");
    ok(account_factor(ACCOUNT_CO2, -1e9, &f), "-1e9 g/kWh is");
    step.factor = f;
    is_int(of(&step, 1, 0, 1, INT64_C(1000000000000000000)).amount,
           INT64_C(-277777777777777778), "the most of both does not overflow");
}

enum { STEPS = 20, ROWS = 2000 };

/* The integral in mg and the covered energy, by long doubles. */
static long double integral(const struct account_step *step, uint64_t begin, uint64_t end,
                            int64_t uj, long double *covered_uj)
{
    long double mg = 0;

    for (size_t i = 0; i < STEPS; i++) {
        uint64_t next = i + 1 < STEPS ? step[i + 1].from_ns : UINT64_MAX;
        uint64_t a = step[i].from_ns > begin ? step[i].from_ns : begin;
        uint64_t z = next < end ? next : end;
        if (!step[i].known || a >= z)
            continue;
        long double part = (long double)uj * (z - a) / (end - begin);
        *covered_uj += part;
        mg += part * (long double)step[i].factor / 3.6e15L;
    }
    return mg;
}

/* Rows of one account, often of little energy, over steps that come anywhere. */
static void walk(uint64_t seed, int *bad)
{
    struct account_step step[STEPS];
    struct rng g;
    int64_t rest = 0, amount = 0, covered = 0, energy = 0;
    long double want = 0, want_uj = 0;
    uint64_t at = 0;

    rng_init(&g, seed);
    for (size_t i = 0; i < STEPS; i++) {
        at += rng_below(&g, 2000 * S);
        step[i] = (struct account_step){at, rng_below(&g, 4) > 0, 0, i};
        (void)account_factor(ACCOUNT_CO2, rng_normal(&g) * 300, &step[i].factor);
    }
    at = 0;
    for (int k = 0; k < ROWS; k++) {
        uint64_t end = at + 1 + rng_below(&g, 20 * S);
        int64_t uj = (int64_t)rng_below(&g, k % 3 ? 20000000 : 7000000000);
        struct account_amount a;
        account_interval(step, STEPS, at, end, uj, &rest, &a);
        want += integral(step, at, end, uj, &want_uj);
        *bad += a.covered_uj < 0 || a.covered_uj > uj || rest < 0 ||
                (!a.known && (a.amount != 0 || a.covered_uj != 0));
        amount += a.amount;
        covered += a.covered_uj;
        energy += uj;
        at = end;
    }
    *bad += fabsl((long double)amount - want) > 1.01L;
    *bad += fabsl((long double)covered - want_uj) > 40 || covered > energy;
}

static void sums(void)
{
    int bad = 0;

    for (uint64_t seed = 1; seed <= 200; seed++)
        walk(seed, &bad);
    is_int(bad, 0, "sums of %d rows are the integral, to a milligram", ROWS);
}

/* Known throughout: not a microjoule is left out, however the steps cut the rows. */
static void whole(void)
{
    struct account_step step[STEPS];
    struct rng g;
    int bad = 0;

    rng_init(&g, 7);
    for (size_t i = 0; i < STEPS; i++)
        step[i] = (struct account_step){i * 700000001, true, (int64_t)i, i};
    for (int k = 0; k < 10000; k++) {
        uint64_t begin = rng_below(&g, 14 * S);
        int64_t uj = (int64_t)rng_below(&g, 1000000007), rest = 0;
        struct account_amount a;
        account_interval(step, STEPS, begin, begin + rng_below(&g, 10 * S), uj, &rest,
                         &a);
        bad += !a.known || a.covered_uj != uj;
    }
    is_int(bad, 0, "what is known throughout is covered to the microjoule");
}

int main(void)
{
    table();
    units();
    sums();
    whole();
    return done();
}
