/* Contracts over energy that was used: tables, and sums over random rows. */
#include "core/carbon/market.h"

#include <errno.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/rng.h"
#include "tap.h"

#define H INT64_C(3600000)
#define KWH INT64_C(3600000000000)

DEFINE_AUTO(struct market *, market_free);

struct use {
    int64_t from_ms, to_ms, uj;
};

static struct market *made(const struct market_contract *c, size_t n,
                           const struct use *use, size_t n_use)
{
    struct market *m = NULL;

    is_int(market_new(c, n, &m), 0, "%zu contracts", n);
    for (size_t i = 0; i < n_use; i++)
        market_use(m, use[i].from_ms, use[i].to_ms, use[i].uj);
    market_settle(m);
    return m;
}

static void part(const struct market *m, struct use u, double kwh, double g,
                 const char *name)
{
    struct market_part p = market_part(m, u.from_ms, u.to_ms, u.uj);

    is_near(p.covered_uj / (double)KWH, kwh, 1e-9, "%s: %g kWh covered", name, kwh);
    is_near(p.mg / 1e3, g, 1e-6, "%s: %g g", name, g);
}

/* 10 kWh in each of two hours. */
static const struct use hours[] = {{0, H, 10 * KWH}, {H, 2 * H, 10 * KWH}};
#define MADE(c) made(c, n_elements(c), hours, n_elements(hours))

static void one(void)
{
    const struct market_contract less[] = {{0, 2 * H, MARKET_ENERGY, 5, 20, ""}},
                                 more[] = {{0, 2 * H, MARKET_ENERGY, 50, 20, ""}},
                                 share[] = {{0, H, MARKET_SHARE, 0.3, 20, ""}},
                                 none[] = {{0, 2 * H, MARKET_ENERGY, 0, 20, ""}},
                                 left[] = {{0, 2 * H, MARKET_RESIDUAL, 0, 500, ""}};
    auto_(market_free) struct market *a = MADE(less), *b = MADE(more), *c = MADE(share),
                                     *d = MADE(none), *e = MADE(left);

    part(a, hours[0], 2.5, 50, "5 of 20 kWh, the first half of them");
    part(a, (struct use){0, 2 * H, 20 * KWH}, 5, 100, "all of them");
    part(a, (struct use){H / 2, H / 2, KWH}, 0.25, 5, "a row of no length");
    part(b, (struct use){0, 2 * H, 20 * KWH}, 20, 400, "never more than was used");
    part(c, (struct use){0, 2 * H, 20 * KWH}, 3, 60, "a share of the first hour alone");
    part(d, hours[0], 0, 0, "0 kWh cover nothing");
    part(e, hours[1], 10, 5000, "a residual factor covers the rest");
    part(e, (struct use){3 * H, 4 * H, KWH}, 0, 0, "nothing after its end");
    part(e, (struct use){-H, H, 2 * KWH}, 1, 500, "half of a row from before its begin");
}

static void several(void)
{
    const struct market_contract both[] = {{0, 2 * H, MARKET_RESIDUAL, 0, 500, ""},
                                           {0, H, MARKET_SHARE, 0.5, 0, ""},
                                           {0, 2 * H, MARKET_ENERGY, 6, 10, ""}},
                                 two[] = {{0, H, MARKET_SHARE, 0.7, 0, ""},
                                          {0, H, MARKET_SHARE, 0.7, 100, ""}},
                                 twice[] = {{0, H, MARKET_RESIDUAL, 0, 500, ""},
                                            {0, H, MARKET_RESIDUAL, 0, 900, ""}};
    auto_(market_free) struct market *a = MADE(both), *b = MADE(two), *c = MADE(twice);

    /* 5 of the first hour by the share; 6 kWh on the 15 that are left: 2 and 4. */
    part(a, hours[0], 10, 2 * 10 + 3 * 500, "share, energy, then the residual factor");
    part(a, hours[1], 10, 4 * 10 + 6 * 500, "the second hour");
    part(b, hours[0], 10, 300, "shares of over 100 %: the second has what is left");
    part(b, hours[1], 0, 0, "and of the second hour nothing");
    part(c, hours[0], 10, 5000, "of two residual factors the first one");
}

static void edges(void)
{
    static struct market_contract many[MARKET_CONTRACTS + 1];
    const struct market_contract month[] = {{0, 720 * H, MARKET_ENERGY, 5, 20, ""}};
    auto_(market_free) struct market *none = made(NULL, 0, hours, 2),
                                     *idle = made(month, 1, NULL, 0);
    struct market *canary = none;

    part(none, hours[0], 0, 0, "no contract");
    part(idle, hours[0], 0, 0, "energy that nobody told of is not covered");
    is_int(market_new(many, n_elements(many), &canary), -E2BIG, "too many are refused");
    ok(canary == none, "and nothing is made");
    market_free(NULL);
}

enum { CONTRACTS = 30, ROWS = 500, SPAN_H = 100 };

/* What is covered is neither more than was used nor more than the contracts have. */
static void walk(uint64_t seed, int *bad)
{
    struct market_contract c[CONTRACTS];
    struct use use[ROWS];
    struct rng g;
    double most = 0, used = 0, covered = 0, mg = 0;

    rng_init(&g, seed);
    for (size_t i = 0; i < CONTRACTS; i++) {
        int64_t from = (int64_t)rng_below(&g, (SPAN_H - 1) * 60) * 60000;
        int64_t to = from + (int64_t)(1 + rng_below(&g, 1200)) * 60000;
        c[i] = (struct market_contract){
            from, to, MARKET_ENERGY, (double)rng_below(&g, 100), 7, ""};
        most += c[i].amount;
    }
    for (size_t i = 0; i < ROWS; i++) {
        int64_t from = (int64_t)rng_below(&g, SPAN_H * 3600) * 1000;
        use[i] = (struct use){from, from + (int64_t)rng_below(&g, 7200) * 1000,
                              (int64_t)rng_below(&g, (uint64_t)KWH)};
        used += (double)use[i].uj;
    }
    auto_(market_free) struct market *m = made(c, CONTRACTS, use, ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        struct market_part p = market_part(m, use[i].from_ms, use[i].to_ms, use[i].uj);
        *bad += p.covered_uj < 0 || p.covered_uj > (double)use[i].uj * (1 + 1e-9);
        covered += p.covered_uj;
        mg += p.mg;
    }
    *bad += covered > used * (1 + 1e-9) || covered > most * (double)KWH * (1 + 1e-9);
    *bad += fabs(mg - covered / (double)KWH * 7e3) > 1e-6 * mg;
    *bad += !(covered > 0);
}

static void sums(void)
{
    int bad = 0;

    for (uint64_t seed = 1; seed <= 50; seed++)
        walk(seed, &bad);
    is_int(bad, 0, "random contracts cover no more than there is");
}

int main(void)
{
    one();
    several();
    edges();
    sums();
    return done();
}
