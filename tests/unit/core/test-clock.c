/* Claims on the clock: the arbiter's own table in MHz, and beside claims on watts.
 *
 * Usage: test-core-clock [SEED [SETS]]
 */
#include "core/cap/clock.h"

#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "base/units.h"
#include "tap.h"

static const struct clock_bounds a100 = {
    .max_mhz = 1410, .min_mhz = 210, .floor_mhz = 705};

struct want {
    int kind;
    uint32_t mhz, w;
    bool at_once;
};

static void put(struct claims *c, uint64_t id, const struct want *want)
{
    struct claim claim = {.id = id,
                          .kind = (enum claim_kind)want->kind,
                          .mhz = want->mhz,
                          .mw = want->w * MW_PER_W,
                          .way.own = want->at_once,
                          .made_ns = id,
                          .until_ns = CLAIM_FOREVER};
    (void)claims_put(c, &claim, NULL);
}

/* clang-format off */
static const struct {
    const char *name;
    struct want claim[3];
    uint32_t target;
    enum cap_by by;
    uint64_t id;
    uint32_t most;
    bool at_once;
} cases[] = {
    {"nobody", {{0}}, 1410, CAP_BY_ORIGINAL, 0, 1410, true},
    {"named", {{CLAIM_NAMED, 1200, 0, false}}, 1200, CAP_BY_CLAIM, 1, 1410, false},
    {"named under the floor", {{CLAIM_NAMED, 600, 0, false}}, 600, CAP_BY_CLAIM, 1, 1410, false},
    {"named under the lowest", {{CLAIM_NAMED, 100, 0, false}}, 210, CAP_BY_MINIMUM, 1, 1410, false},
    {"named at the highest", {{CLAIM_NAMED, 1410, 0, false}}, 1410, CAP_BY_ORIGINAL, 0, 1410, true},
    {"soft", {{CLAIM_SOFT, 1000, 0, false}}, 1000, CAP_BY_CLAIM, 1, 1410, false},
    {"soft under the floor", {{CLAIM_SOFT, 500, 0, false}}, 705, CAP_BY_FLOOR, 1, 1410, false},
    {"hard under the floor", {{CLAIM_HARD, 500, 0, false}}, 500, CAP_BY_CLAIM, 1, 500, true},
    {"hard above named", {{CLAIM_HARD, 1300, 0, false}, {CLAIM_NAMED, 900, 0, false}}, 900, CAP_BY_CLAIM, 2, 1300, false},
    {"at once", {{CLAIM_SOFT, 1000, 0, true}}, 1000, CAP_BY_CLAIM, 1, 1410, true},
    {"a claim on watts", {{CLAIM_HARD, 0, 200, false}}, 1410, CAP_BY_ORIGINAL, 0, 1410, true},
    {"watts and clock", {{CLAIM_HARD, 0, 200, false}, {CLAIM_NAMED, 1200, 0, false}}, 1200, CAP_BY_CLAIM, 2, 1410, false},
};
/* clang-format on */

static void test_table(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct claims c = {.n = 0};
        struct clock_verdict v;
        for (size_t k = 0; k < 3 && cases[i].claim[k].kind; k++)
            put(&c, k + 1, &cases[i].claim[k]);
        clock_decide(&c, &a100, &v);
        ok(v.target_mhz == cases[i].target && v.by == cases[i].by &&
               v.claim == cases[i].id && v.most_mhz == cases[i].most &&
               v.at_once == cases[i].at_once,
           "%s: %u MHz by %d, claim %u, at most %u MHz, at once %d", cases[i].name,
           v.target_mhz, v.by, (unsigned)v.claim, v.most_mhz, v.at_once);
    }
}

static void test_claim(void)
{
    struct claims c = {.n = 0};
    struct claim claim = {.id = 1, .kind = CLAIM_NAMED, .until_ns = CLAIM_FOREVER};
    uw_error err = {""};

    ok(claims_put(&c, &claim, &err) < 0 && c.n == 0, "neither: %s", err.text);
    claim.mw = 200000;
    claim.mhz = 1200;
    ok(claims_put(&c, &claim, &err) < 0 && c.n == 0, "both: %s", err.text);
}

static void test_walk(void)
{
    struct cap_class cls = CAP_CLASS_DEFAULT;
    struct claims c = {.n = 0};
    struct clock_verdict v;
    struct ramp ramp;

    ramp_init(&ramp, a100.max_mhz, 15, 0);
    put(&c, 1, &(struct want){CLAIM_NAMED, 1005, 0, false});
    clock_decide(&c, &a100, &v);
    is_int((int)clock_walk(&ramp, &v, &cls, a100.max_mhz, 0), 1269,
           "to 0.90 of the highest at once");
    is_int((int)clock_walk(&ramp, &v, &cls, a100.max_mhz, 20 * NS_PER_S), 1269, "a stay");
    ramp_checked(&ramp, 20 * NS_PER_S);
    uint32_t at = clock_walk(&ramp, &v, &cls, a100.max_mhz, 40 * NS_PER_S);
    ok(at <= 1269 - 120 && at >= 1269 - 150, "then 7 MHz a second: %u", at);
    put(&c, 2, &(struct want){CLAIM_HARD, 900, 0, false});
    clock_decide(&c, &a100, &v);
    is_int((int)clock_walk(&ramp, &v, &cls, a100.max_mhz, 40 * NS_PER_S), 900,
           "a hard one at once");
    (void)claims_drop(&c, 2);
    (void)claims_drop(&c, 1);
    clock_decide(&c, &a100, &v);
    is_int((int)clock_walk(&ramp, &v, &cls, a100.max_mhz, 40 * NS_PER_S), 1410,
           "up at once");
}

static void test_obeyed(void)
{
    ok(clock_is_obeyed(1200, 1200) && clock_is_obeyed(1200, 800), "at it, under it");
    ok(clock_is_obeyed(1200, 1215) && clock_is_obeyed(1200, 1230), "snapped upwards");
    ok(!clock_is_obeyed(1200, 1245) && !clock_is_obeyed(900, 1410), "above it");
    ok(clock_is_obeyed(2000, 2040) && !clock_is_obeyed(2000, 2055), "2 %% of high ones");
}

/* ---- random sets of both kinds ---- */

static void random_set(struct rng *g, struct claims *ret)
{
    size_t n = rng_below(g, 12);

    ret->n = 0;
    for (size_t i = 0; i < n; i++) {
        bool clock = rng_below(g, 2);
        struct want want = {.kind = CLAIM_SOFT + (int)rng_below(g, 3),
                            .mhz = clock ? 150 + 15 * (uint32_t)rng_below(g, 90) : 0,
                            .w = clock ? 0 : 60 + 10 * (uint32_t)rng_below(g, 30)};
        want.at_once = want.kind == CLAIM_SOFT && rng_below(g, 3) == 0;
        put(ret, i + 1, &want);
    }
}

/* The claims of one kind alone. */
static struct claims only(const struct claims *c, bool clock)
{
    struct claims ret = {.n = 0};

    for (size_t i = 0; i < c->n; i++)
        if ((c->claim[i].mhz > 0) == clock)
            ret.claim[ret.n++] = c->claim[i];
    return ret;
}

/* The formulas, word for word. */
static uint32_t formula(const struct claims *c, const struct clock_bounds *b)
{
    uint32_t of[4] = {0, UINT32_MAX, UINT32_MAX, UINT32_MAX};

    for (size_t i = 0; i < c->n; i++)
        if (c->claim[i].mhz && c->claim[i].mhz < of[c->claim[i].kind])
            of[c->claim[i].kind] = c->claim[i].mhz;
    uint32_t soft = of[CLAIM_SOFT] > b->floor_mhz ? of[CLAIM_SOFT] : b->floor_mhz;
    uint32_t wanted = of[CLAIM_NAMED] < soft ? of[CLAIM_NAMED] : soft;
    if (of[CLAIM_SOFT] == UINT32_MAX)
        wanted = of[CLAIM_NAMED];
    uint32_t target = wanted < of[CLAIM_HARD] ? wanted : of[CLAIM_HARD];
    target = target < b->max_mhz ? target : b->max_mhz;
    return target > b->min_mhz ? target : b->min_mhz;
}

static bool is_explained(const struct claims *c, const struct clock_bounds *b,
                         const struct clock_verdict *v)
{
    const struct claim *claim = claims_find(c, v->claim);

    switch (v->by) {
    case CAP_BY_ORIGINAL:
        return v->target_mhz == b->max_mhz && v->claim == 0;
    case CAP_BY_CLAIM:
        return claim && claim->mhz == v->target_mhz;
    case CAP_BY_FLOOR:
        return claim && claim->kind == CLAIM_SOFT && claim->mhz < b->floor_mhz &&
               v->target_mhz == b->floor_mhz;
    case CAP_BY_MINIMUM:
        return claim && claim->mhz && claim->mhz < b->min_mhz &&
               v->target_mhz == b->min_mhz;
    case CAP_BY_HOLDER: /* no verdict */
        break;
    }
    return false;
}

enum { N_PROPERTIES = 7 };
static const char *const property[N_PROPERTIES] = {
    "is the two formulas' value",
    "is explained by one claim or bound",
    "does not rise when a claim is lowered",
    "is what it was once an added claim is over",
    "is not moved by claims on watts",
    "obeys hard claims from the first tick, whatever the ramp was doing",
    "does not move the cap",
};

static bool is_same(const struct clock_verdict *a, const struct clock_verdict *b)
{
    return a->target_mhz == b->target_mhz && a->by == b->by && a->claim == b->claim &&
           a->most_mhz == b->most_mhz && a->at_once_mhz == b->at_once_mhz &&
           a->at_once == b->at_once && a->way.own == b->way.own;
}

static void check_set(struct rng *g, bool good[N_PROPERTIES])
{
    struct clock_bounds b = {.max_mhz = 1410, .min_mhz = 210};
    const struct cap_bounds caps = {300000, 100000, 150000, 0};
    struct cap_class cls = {0.85 + 0.15 * rng_uniform(g), 0.5, 0.01 * rng_uniform(g)};
    struct claims c, other;
    struct clock_verdict v, w;
    struct cap_verdict both, alone;
    struct ramp ramp;

    b.floor_mhz = rng_below(g, 4) ? 150 + 15 * (uint32_t)rng_below(g, 90) : 0;
    random_set(g, &c);
    clock_decide(&c, &b, &v);
    good[0] = v.target_mhz == formula(&c, &b);
    good[1] = is_explained(&c, &b, &v);
    other = c;
    for (size_t i = 0; i < other.n; i++)
        if (other.claim[i].mhz && rng_below(g, 2))
            other.claim[i].mhz -= (uint32_t)rng_below(g, other.claim[i].mhz);
    clock_decide(&other, &b, &w);
    good[2] = w.target_mhz <= v.target_mhz && w.most_mhz <= v.most_mhz;
    other = c;
    put(&other, 77,
        &(struct want){CLAIM_HARD, 150 + (uint32_t)rng_below(g, 1300), 0, false});
    other.claim[other.n - 1].until_ns = 99;
    (void)claims_expire(&other, 99, NULL, NULL);
    clock_decide(&other, &b, &w);
    good[3] = is_same(&w, &v);
    other = only(&c, true);
    clock_decide(&other, &b, &w);
    good[4] = w.target_mhz == v.target_mhz && w.by == v.by && w.claim == v.claim;
    ramp_init(&ramp, 210 + 15 * (uint32_t)rng_below(g, 81), 15, 0);
    uint32_t at = clock_walk(&ramp, &v, &cls, b.max_mhz, rng_below(g, 30 * NS_PER_S));
    good[5] = at <= v.most_mhz && at >= b.min_mhz && (!v.at_once || at == v.target_mhz);
    other = only(&c, false);
    cap_decide(&c, &caps, &both);
    cap_decide(&other, &caps, &alone);
    good[6] = both.target_mw == alone.target_mw && both.by == alone.by &&
              both.claim == alone.claim && both.most_mw == alone.most_mw;
}

static void test_properties(uint64_t seed, unsigned long sets)
{
    unsigned long bad[N_PROPERTIES] = {0};
    struct rng g;

    rng_init(&g, seed);
    for (unsigned long i = 0; i < sets; i++) {
        bool good[N_PROPERTIES];
        check_set(&g, good);
        for (int k = 0; k < N_PROPERTIES; k++)
            bad[k] += !good[k];
    }
    for (int k = 0; k < N_PROPERTIES; k++)
        ok(bad[k] == 0, "seed %llu, %lu sets: the clock %s (%lu do not)",
           (unsigned long long)seed, sets, property[k], bad[k]);
}

int main(int argc, char **argv)
{
    uint64_t seed = (uint64_t)time(NULL), sets = 50000;

    if ((argc > 1 && parse_u64(argv[1], &seed, NULL)) ||
        (argc > 2 && parse_u64(argv[2], &sets, NULL)))
        return 2;
    test_table();
    test_claim();
    test_walk();
    test_obeyed();
    test_properties(seed, sets);
    return done();
}
