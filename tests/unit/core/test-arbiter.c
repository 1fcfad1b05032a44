/* The arbiter in tables, then by properties over random claims.
 *
 * Usage: test-core-arbiter [SEED [SETS]]
 */
#include "core/cap/arbiter.h"

#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "base/units.h"
#include "tap.h"

#define S(x) ((uint64_t)((x)*1e9))
#define W(x) ((uint32_t)(x)*MW_PER_W)

enum {
    SOFT = CLAIM_SOFT,
    NAMED = CLAIM_NAMED,
    HARD = CLAIM_HARD,
    AT_ONCE = 9,
    RAISES = 10
};

struct want {
    int kind;
    uint32_t w;
    uint64_t made_s;
};

static struct claim claim_of(uint64_t id, const struct want *want)
{
    return (struct claim){
        .id = id,
        .kind = want->kind == AT_ONCE  ? CLAIM_SOFT
                : want->kind == RAISES ? CLAIM_NAMED
                                       : (enum claim_kind)want->kind,
        .way.own = want->kind == AT_ONCE,
        .raises = want->kind == RAISES,
        .mw = W(want->w),
        .made_ns = want->made_s * NS_PER_S,
        .until_ns = CLAIM_FOREVER,
    };
}

/* Bounds: original 300 W, minimum 100 W. */
/* clang-format off */
static const struct {
    const char *name;
    uint32_t floor_w;
    struct want claim[4];
    uint32_t target_w;
    enum cap_by by;
    uint64_t id;
    uint32_t most_w;
    bool at_once;
} cases[] = {
    {"nobody", 150, {{0}}, 300, CAP_BY_ORIGINAL, 0, 300, true},
    {"named", 150, {{NAMED, 200, 0}}, 200, CAP_BY_CLAIM, 1, 300, false},
    {"named under the soft floor", 150, {{NAMED, 120, 0}}, 120, CAP_BY_CLAIM, 1, 300, false},
    {"named under the minimum", 150, {{NAMED, 80, 0}}, 100, CAP_BY_MINIMUM, 1, 300, false},
    {"named at the original", 150, {{NAMED, 300, 0}}, 300, CAP_BY_ORIGINAL, 0, 300, true},
    {"named above the original", 150, {{NAMED, 400, 0}}, 300, CAP_BY_ORIGINAL, 0, 300, true},
    {"soft", 150, {{SOFT, 200, 0}}, 200, CAP_BY_CLAIM, 1, 300, false},
    {"soft at the floor", 150, {{SOFT, 150, 0}}, 150, CAP_BY_CLAIM, 1, 300, false},
    {"soft under the floor", 150, {{SOFT, 120, 0}}, 150, CAP_BY_FLOOR, 1, 300, false},
    {"soft, floor unknown", 0, {{SOFT, 120, 0}}, 120, CAP_BY_CLAIM, 1, 300, false},
    {"soft, floor under the minimum", 60, {{SOFT, 50, 0}}, 100, CAP_BY_MINIMUM, 1, 300, false},
    {"soft, floor above the original", 350, {{SOFT, 200, 0}}, 300, CAP_BY_ORIGINAL, 0, 300, true},
    {"the lowest of soft ones", 150, {{SOFT, 250, 0}, {SOFT, 180, 0}, {SOFT, 200, 0}}, 180, CAP_BY_CLAIM, 2, 300, false},
    {"soft ones under the floor: the lowest", 150, {{SOFT, 140, 0}, {SOFT, 110, 0}, {SOFT, 120, 0}}, 150, CAP_BY_FLOOR, 2, 300, false},
    {"named above what soft gets", 150, {{SOFT, 120, 0}, {NAMED, 160, 0}}, 150, CAP_BY_FLOOR, 1, 300, false},
    {"named under what soft gets", 150, {{SOFT, 120, 0}, {NAMED, 140, 0}}, 140, CAP_BY_CLAIM, 2, 300, false},
    {"named at the floor explains, not the floor", 150, {{SOFT, 120, 0}, {NAMED, 150, 0}}, 150, CAP_BY_CLAIM, 2, 300, false},
    {"hard", 150, {{HARD, 200, 0}}, 200, CAP_BY_CLAIM, 1, 200, true},
    {"hard under the soft floor", 150, {{HARD, 120, 0}}, 120, CAP_BY_CLAIM, 1, 120, true},
    {"hard under the minimum", 150, {{HARD, 50, 0}}, 100, CAP_BY_MINIMUM, 1, 100, true},
    {"hard above the original", 150, {{HARD, 400, 0}}, 300, CAP_BY_ORIGINAL, 0, 300, true},
    {"hard above named", 150, {{HARD, 250, 0}, {NAMED, 200, 0}}, 200, CAP_BY_CLAIM, 2, 250, false},
    {"hard under named", 150, {{NAMED, 250, 0}, {HARD, 200, 0}}, 200, CAP_BY_CLAIM, 2, 200, true},
    {"two hard ones", 150, {{HARD, 250, 0}, {HARD, 220, 0}}, 220, CAP_BY_CLAIM, 2, 220, true},
    {"equal: the harder", 150, {{SOFT, 200, 0}, {NAMED, 200, 0}, {HARD, 200, 0}}, 200, CAP_BY_CLAIM, 3, 200, true},
    {"equal: the older", 150, {{NAMED, 200, 7}, {NAMED, 200, 5}, {NAMED, 200, 6}}, 200, CAP_BY_CLAIM, 2, 300, false},
    {"equal, equally old: the first", 150, {{NAMED, 200, 5}, {NAMED, 200, 5}}, 200, CAP_BY_CLAIM, 1, 300, false},
    {"at once", 150, {{AT_ONCE, 200, 0}}, 200, CAP_BY_CLAIM, 1, 300, true},
    {"at once under the floor", 150, {{AT_ONCE, 120, 0}}, 150, CAP_BY_FLOOR, 1, 300, true},
    {"at once above named", 150, {{AT_ONCE, 250, 0}, {NAMED, 200, 0}}, 200, CAP_BY_CLAIM, 2, 300, false},
    {"raises", 150, {{RAISES, 350, 0}}, 350, CAP_BY_CLAIM, 1, 350, true},
    {"raises, under the original", 150, {{RAISES, 250, 0}}, 250, CAP_BY_CLAIM, 1, 300, false},
    {"raises, and a lower claim", 150, {{RAISES, 350, 0}, {NAMED, 200, 0}}, 200, CAP_BY_CLAIM, 2, 350, false},
    {"raises, and a hard claim", 150, {{RAISES, 350, 0}, {HARD, 280, 0}}, 280, CAP_BY_CLAIM, 2, 280, true},
    {"raises, and one above the original that does not", 150, {{RAISES, 350, 0}, {NAMED, 320, 0}}, 320, CAP_BY_CLAIM, 2, 350, false},
    {"raises, and one above it", 150, {{RAISES, 350, 0}, {NAMED, 400, 0}}, 350, CAP_BY_CLAIM, 1, 350, true},
    {"two raise: the lower", 150, {{RAISES, 350, 0}, {RAISES, 330, 0}}, 330, CAP_BY_CLAIM, 2, 350, false},
};
/* clang-format on */

static void test_table(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct claims c = {.n = 0};
        struct cap_bounds bounds = {W(300), W(100), W(cases[i].floor_w), 0};
        struct cap_verdict v;
        for (size_t k = 0; k < 4 && cases[i].claim[k].kind; k++) {
            struct claim claim = claim_of(k + 1, &cases[i].claim[k]);
            (void)claims_put(&c, &claim, NULL);
        }
        cap_decide(&c, &bounds, &v);
        ok(v.target_mw == W(cases[i].target_w) && v.by == cases[i].by &&
               v.claim == cases[i].id && v.most_mw == W(cases[i].most_w) &&
               v.at_once == cases[i].at_once,
           "%s: %u mW by %d, claim %u, at most %u mW, at once %d", cases[i].name,
           v.target_mw, v.by, (unsigned)v.claim, v.most_mw, v.at_once);
    }

    struct claims none = {.n = 0};
    struct cap_verdict v;
    cap_decide(&none, &(struct cap_bounds){W(90), W(100), 0, 0}, &v);
    ok(v.target_mw == W(100) && v.by == CAP_BY_ORIGINAL,
       "an original under the minimum counts as the minimum");
}

/* Limits end at 200 W, the original is 300 W. */
static void test_gap(void)
{
    /* clang-format off */
    static const struct {
        const char *name;
        struct want claim[4];
        uint32_t floor_w, target_w;
        enum cap_by by;
        uint64_t id;
        uint32_t most_w;
    } gap[] = {
        {"soft above the end", {{SOFT, 250, 0}}, 0, 300, CAP_BY_ORIGINAL, 0, 300},
        {"named above the end", {{NAMED, 201, 0}}, 0, 300, CAP_BY_ORIGINAL, 0, 300},
        {"hard above the end", {{HARD, 250, 0}}, 0, 200, CAP_BY_CLAIM, 1, 200},
        {"at the end", {{NAMED, 200, 0}}, 0, 200, CAP_BY_CLAIM, 1, 300},
        {"under it", {{NAMED, 180, 0}, {SOFT, 250, 0}}, 0, 180, CAP_BY_CLAIM, 1, 300},
        {"a floor above it", {{SOFT, 180, 0}}, 240, 300, CAP_BY_ORIGINAL, 0, 300},
        {"hard at the original", {{HARD, 300, 0}}, 0, 300, CAP_BY_ORIGINAL, 0, 300},
        {"hard above it, named under", {{HARD, 250, 0}, {NAMED, 150, 0}}, 0, 150, CAP_BY_CLAIM, 2, 200},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof gap / sizeof *gap; i++) {
        struct claims c = {.n = 0};
        struct cap_bounds bounds = {W(300), W(100), W(gap[i].floor_w), W(200)};
        struct cap_verdict v;
        for (size_t k = 0; k < 4 && gap[i].claim[k].kind; k++) {
            struct claim claim = claim_of(k + 1, &gap[i].claim[k]);
            (void)claims_put(&c, &claim, NULL);
        }
        cap_decide(&c, &bounds, &v);
        ok(v.target_mw == W(gap[i].target_w) && v.by == gap[i].by &&
               v.claim == gap[i].id && v.most_mw == W(gap[i].most_w),
           "limits end under the original: %s: %u mW by %d, claim %u, at most %u mW",
           gap[i].name, v.target_mw, v.by, (unsigned)v.claim, v.most_mw);
    }
    const struct cap_bounds bounds = {W(300), W(100), 0, W(200)};
    ok(cap_settable(&bounds, W(250), true) == W(200) &&
           cap_settable(&bounds, W(250), false) == W(300) &&
           cap_settable(&bounds, W(200), true) == W(200) &&
           cap_settable(&bounds, W(300), true) == W(300),
       "the nearest that may be set");
}

/* ---- the ramp under claims ---- */

struct board {
    struct claims claims;
    struct ramp ramp;
    struct cap_bounds bounds;
    struct cap_class cls;
    uint32_t peak_mw;
};

static struct board board_at_300(void)
{
    struct board b = {.bounds = {W(300), W(100), W(150), 0}, .cls = CAP_CLASS_DEFAULT};

    ramp_init(&b.ramp, W(300), 1000, 0);
    return b;
}

static void put(struct board *b, uint64_t id, int kind, uint32_t w)
{
    struct claim claim = claim_of(id, &(struct want){kind, w, id});

    (void)claims_put(&b->claims, &claim, NULL);
}

static uint32_t walk(struct board *b, double s)
{
    struct cap_verdict v;

    cap_decide(&b->claims, &b->bounds, &v);
    return cap_walk(&b->ramp, &v, &b->cls, W(300), b->peak_mw, S(s));
}

/* At second s the cap is w watts. */
static void is_at(struct board *b, double s, uint32_t w, const char *name)
{
    is_int(walk(b, s), W(w), "%s", name);
}

static void test_walk(void)
{
    struct board b = board_at_300();

    is_at(&b, 0, 300, "no claim: the original");
    put(&b, 1, NAMED, 200);
    is_at(&b, 10, 300, "named: gradual from here");
    is_at(&b, 20, 285, "0.5 % of 300 W a second");
    put(&b, 2, AT_ONCE, 270);
    is_at(&b, 20, 270, "a claim at once");
    is_at(&b, 30, 255, "… and the way on goes on from there");
    put(&b, 3, HARD, 230);
    is_at(&b, 30, 230, "a hard claim on the way: at once");
    is_at(&b, 40, 215, "… and the way on goes on");
    (void)claims_drop(&b.claims, 3);
    is_at(&b, 40, 215, "the hard claim goes: nothing to give back");
    (void)claims_drop(&b.claims, 1);
    is_at(&b, 40, 270, "the named one goes: up at once to the search's");
    put(&b, 3, HARD, 260);
    (void)claims_drop(&b.claims, 2);
    is_at(&b, 40, 260, "up at once, never past a hard claim");
    (void)claims_drop(&b.claims, 3);
    is_at(&b, 40, 300, "all gone: the original");
}

static void test_first(void)
{
    struct board b = board_at_300();

    b.peak_mw = W(200);
    put(&b, 1, NAMED, 120);
    is_at(&b, 0, 180, "0.90 of the observed peak at once");
    is_at(&b, 60, 180, "a stay there");
    put(&b, 2, HARD, 170);
    is_at(&b, 60, 170, "that a hard claim does not wait for");
    is_at(&b, 70, 170, "… and that it does not end");
    b.peak_mw = W(150);
    is_at(&b, 70, 170, "another peak on the way changes nothing");
    ramp_checked(&b.ramp, S(70));
    is_at(&b, 80, 155, "the job goes on: down");
    put(&b, 1, NAMED, 110);
    is_at(&b, 90, 140, "a lower target on the way: no second stay");

    b = board_at_300();
    put(&b, 1, NAMED, 120);
    (void)walk(&b, 0);
    is_at(&b, 10, 285, "peak unknown: gradual from the original");
    b.peak_mw = W(200);
    is_at(&b, 10, 180, "it becomes known: to the first cap at once");
    is_at(&b, 20, 180, "… and a stay");
    put(&b, 1, NAMED, 130);
    is_at(&b, 30, 180, "which another target");
    is_at(&b, 40, 180, "… does not end");

    b = board_at_300();
    b.cls.rate = 0;
    put(&b, 1, NAMED, 200);
    is_at(&b, 0, 200, "a class without a ramp: at once");
    b = board_at_300();
    b.cls.rate = 0.01;
    put(&b, 1, NAMED, 200);
    (void)walk(&b, 0);
    is_at(&b, 10, 270, "a class with a ramp twice as fast");
}

/* Claims that change all the time (a rule's) must not hold the ramp up. */
static void test_restless(void)
{
    struct board b = board_at_300();

    (void)walk(&b, 0);
    for (int i = 0; i <= 200; i++) {
        put(&b, 1, SOFT, i % 2 ? 160 : 161);
        (void)walk(&b, 0.1 * i);
    }
    is_near(b.ramp.at_mw, W(270), 1000, "20 s of changing claims: %u mW, 30 W down",
            b.ramp.at_mw);
}

static void test_next(void)
{
    struct board b = board_at_300();
    uint64_t at = 0;
    unsigned n = 0;

    (void)walk(&b, 0);
    ok(ramp_next_ns(&b.ramp) == UINT64_MAX, "nothing on its way: no time to wake up");
    put(&b, 1, NAMED, 270);
    (void)walk(&b, 0);
    uint32_t last = b.ramp.at_mw;
    bool lower = true;
    while ((at = ramp_next_ns(&b.ramp)) != UINT64_MAX && n < 1000) {
        uint32_t mw = ramp_at(&b.ramp, at);
        lower &= mw < last;
        last = mw;
        n++;
    }
    ok(lower && last == W(270), "each time it names, the cap is lower");
    is_int(n, 30, "as many as there are grains");
    is_near(s_of_ns(b.ramp.at_ns), 20, 0.001, "in the ramp's time");
    b = board_at_300();
    b.peak_mw = W(300);
    put(&b, 1, NAMED, 200);
    (void)walk(&b, 0);
    ok(ramp_next_ns(&b.ramp) == UINT64_MAX, "a stay has no end of its own");
}

/* ---- properties ---- */

static struct claim random_claim(struct rng *g, uint64_t id)
{
    /* Few levels, so that ties, floor and bounds are met often. */
    struct claim c = {.id = id,
                      .kind = CLAIM_SOFT + (enum claim_kind)rng_below(g, 3),
                      .mw = W(60 + 10 * rng_below(g, 30)) + (rng_below(g, 4) ? 0 : 1),
                      .made_ns = rng_below(g, 4),
                      .until_ns = rng_below(g, 3) ? CLAIM_FOREVER : 5 + rng_below(g, 20)};

    c.way.own = c.kind == CLAIM_SOFT && rng_below(g, 3) == 0;
    c.raises = c.kind == CLAIM_NAMED && rng_below(g, 4) == 0;
    return c;
}

static void random_set(struct rng *g, struct claims *ret)
{
    size_t n = rng_below(g, 10);

    ret->n = 0;
    for (size_t i = 0; i < n; i++) {
        struct claim c = random_claim(g, i + 1);
        (void)claims_put(ret, &c, NULL);
    }
}

static struct cap_bounds random_bounds(struct rng *g)
{
    struct cap_bounds b = {.original_mw = W(200 + 10 * rng_below(g, 15)),
                           .min_mw = W(80 + 10 * rng_below(g, 8))};

    b.floor_mw = rng_below(g, 4) ? W(50 + 10 * rng_below(g, 35)) : 0;
    if (rng_below(g, 3) == 0)
        b.max_mw = b.min_mw + W(10 * rng_below(g, 20));
    return b;
}

/* Between the upper end and the original nothing can be had. */
static bool in_gap(const struct cap_bounds *b, uint64_t mw)
{
    return b->max_mw && mw > b->max_mw && mw < b->original_mw;
}

/* The two formulas, word for word. */
struct formula {
    uint64_t soft, named, hard, wanted, target;
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The original, or what a claim puts in its place. */
static uint64_t top_of(const struct claims *c, const struct cap_bounds *b)
{
    uint64_t mw = b->original_mw;

    for (size_t i = 0; i < c->n; i++)
        if (c->claim[i].raises && (!b->max_mw || c->claim[i].mw <= b->max_mw))
            mw = most(mw, c->claim[i].mw);
    return mw;
}

static struct formula formula_of(const struct claims *c, const struct cap_bounds *b)
{
    struct formula f = {UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, 0};

    for (size_t i = 0; i < c->n; i++) {
        const struct claim *claim = &c->claim[i];
        uint64_t *of = claim->kind == CLAIM_SOFT    ? &f.soft
                       : claim->kind == CLAIM_NAMED ? &f.named
                                                    : &f.hard;
        *of = least(*of, claim->mw);
    }
    f.soft = most(f.soft, b->floor_mw);
    f.soft = in_gap(b, f.soft) ? b->original_mw : f.soft;
    f.named = in_gap(b, f.named) ? b->original_mw : f.named;
    f.hard = in_gap(b, f.hard) ? b->max_mw : f.hard;
    f.wanted = least(f.named, f.soft);
    f.target = most(least(least(f.wanted, f.hard), top_of(c, b)), b->min_mw);
    return f;
}

static bool is_explained(const struct claims *c, const struct cap_bounds *b,
                         const struct cap_verdict *v)
{
    const struct claim *claim = claims_find(c, v->claim);

    switch (v->by) {
    case CAP_BY_ORIGINAL:
        return v->target_mw == b->original_mw && v->claim == 0;
    case CAP_BY_CLAIM:
        return claim &&
               (v->target_mw < b->original_mw || top_of(c, b) > b->original_mw) &&
               (claim->mw == v->target_mw ||
                (claim->kind == CLAIM_HARD && in_gap(b, claim->mw) &&
                 v->target_mw == b->max_mw));
    case CAP_BY_FLOOR:
        return claim && claim->kind == CLAIM_SOFT && claim->mw < b->floor_mw &&
               v->target_mw == b->floor_mw && v->target_mw <= top_of(c, b);
    case CAP_BY_MINIMUM:
        return claim && claim->mw < b->min_mw && v->target_mw == b->min_mw &&
               (claim->kind != CLAIM_SOFT || b->floor_mw < b->min_mw);
    case CAP_BY_HOLDER: /* no verdict */
        break;
    }
    return false;
}

enum { N_PROPERTIES = 10 };
static const char *const property[N_PROPERTIES] = {
    "is the two formulas' value",
    "is explained by one claim or bound",
    "is within minimum and original, or what raises it",
    "is not under the floor by soft claims alone",
    "does not rise when a claim is lowered",
    "does not rise when a claim is added that does not raise",
    "is what it was once the added claim is over",
    "obeys hard claims from the first tick, whatever the ramp was doing",
    "is on its ramp between target and what holds at once",
    "is nothing that may not be set",
};

static struct ramp random_ramp(struct rng *g, const struct cap_bounds *b)
{
    struct ramp r;
    uint32_t span = (b->original_mw - b->min_mw) / 1000 + 1;

    ramp_init(&r, b->min_mw + 1000 * (uint32_t)rng_below(g, span), 1000, 0);
    if (rng_below(g, 3)) {
        ramp_to(&r, b->min_mw + 1000 * (uint32_t)rng_below(g, span),
                rng_below(g, 2) ? b->min_mw + 1000 * (uint32_t)rng_below(g, span) : 0,
                100 + 5000 * rng_uniform(g), rng_below(g, 5) == 0, 0);
        if (rng_below(g, 2))
            ramp_checked(&r, 0);
        (void)ramp_at(&r, rng_below(g, S(20)));
    }
    return r;
}

static bool obeys_hard(struct rng *g, const struct claims *c, const struct cap_bounds *b,
                       const struct cap_verdict *v, bool *between)
{
    struct ramp r = random_ramp(g, b);
    struct cap_class cls = {0.85 + 0.15 * rng_uniform(g), 0.5, 0.01 * rng_uniform(g)};
    uint32_t peak_mw = rng_below(g, 2) ? W(100 + rng_below(g, 200)) : 0;
    uint64_t most_mw = most(least(formula_of(c, b).hard, top_of(c, b)), b->min_mw);
    uint64_t now = r.at_ns;
    bool good = v->most_mw == most_mw;

    for (int i = 0; i < 3; i++) {
        uint32_t mw = cap_walk(&r, v, &cls, W(300), peak_mw, now);
        good &= mw <= most_mw && mw >= b->min_mw;
        *between &= mw >= v->target_mw && mw <= v->at_once_mw &&
                    (!v->at_once || mw == v->target_mw);
        now += rng_below(g, S(30));
        if (rng_below(g, 3) == 0)
            ramp_checked(&r, now);
    }
    return good;
}

static void check_set(struct rng *g, bool good[N_PROPERTIES])
{
    struct cap_bounds b = random_bounds(g);
    struct claims c, other;
    struct cap_verdict v, w;

    memset(good, 1, N_PROPERTIES * sizeof *good);
    random_set(g, &c);
    cap_decide(&c, &b, &v);
    struct formula f = formula_of(&c, &b);
    good[0] = v.target_mw == f.target;
    good[1] = is_explained(&c, &b, &v);
    good[2] = v.target_mw >= b.min_mw && v.target_mw <= top_of(&c, &b);
    good[3] = f.named != UINT64_MAX || f.hard != UINT64_MAX ||
              v.target_mw >= least(b.floor_mw, b.original_mw);
    if (c.n) {
        other = c;
        struct claim *claim = &other.claim[rng_below(g, other.n)];
        claim->mw -= (uint32_t)rng_below(g, claim->mw);
        cap_decide(&other, &b, &w);
        /* One that raises counts as soon as it is within max_mw. */
        good[4] =
            claim->raises || (w.target_mw <= v.target_mw && w.most_mw <= v.most_mw &&
                              w.at_once_mw <= v.at_once_mw);
    }
    other = c;
    struct claim added = random_claim(g, 77);
    added.until_ns = 3;
    (void)claims_put(&other, &added, NULL);
    cap_decide(&other, &b, &w);
    good[5] = added.raises || (w.target_mw <= v.target_mw && w.most_mw <= v.most_mw &&
                               w.at_once_mw <= v.at_once_mw);
    (void)claims_expire(&other, 3, NULL, NULL);
    cap_decide(&other, &b, &w);
    good[6] = w.target_mw == v.target_mw && w.by == v.by && w.claim == v.claim &&
              w.most_mw == v.most_mw && w.at_once_mw == v.at_once_mw &&
              w.at_once == v.at_once;
    good[7] = obeys_hard(g, &c, &b, &v, &good[8]);
    good[9] = !in_gap(&b, v.target_mw) && !in_gap(&b, v.most_mw);
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
        ok(bad[k] == 0, "seed %llu, %lu sets: the cap %s (%lu do not)",
           (unsigned long long)seed, sets, property[k], bad[k]);
}

int main(int argc, char **argv)
{
    uint64_t seed = (uint64_t)time(NULL), sets = 150000;

    if ((argc > 1 && parse_u64(argv[1], &seed, NULL)) ||
        (argc > 2 && parse_u64(argv[2], &sets, NULL)))
        return 2;
    test_table();
    test_gap();
    test_walk();
    test_first();
    test_restless();
    test_next();
    test_properties(seed, sets);
    return done();
}
