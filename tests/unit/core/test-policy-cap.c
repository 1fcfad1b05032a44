/* What rules ask of a board, and which one wins. */
#include "core/policy/cap.h"

#include <errno.h>

#include "base/auto.h"
#include "base/rng.h"
#include "base/units.h"
#include "tap.h"

#define W(w) ((uint32_t)(w)*MW_PER_W)

static const struct policy_preset presets[] = {
    {"aggressive", 0.7}, {"balanced", 0.85}, {"minimal", 0.95}, {"overnight", 0.6}};

static void test_texts(void)
{
    /* clang-format off */
    static const struct {
        const char *text, *shown, *error;
    } cases[] = {
        {"250 W", "250 W", NULL}, {"0.25 kW", "250 W", NULL}, {"75 %", "75 %", NULL}, {"75%", "75 %", NULL},
        {"85 % of demand", "85 % of demand", NULL}, {"-25 %", "-25 %", NULL}, {"- 25%", "-25 %", NULL},
        {"-100 W", "-100 W", NULL}, {"overnight", "overnight (60 %)", NULL}, {"aggressive", "aggressive (70 %)", NULL},
        {"agressive", NULL, "'agressive' is no cap (250 W, 75 %, 85 % of demand, -25 %, -100 W, or a preset): did you mean 'aggressive'?"},
        {"", NULL, "'' is no cap (250 W, 75 %, 85 % of demand, -25 %, -100 W, or a preset)"},
        {"120 %", NULL, "'120 %' must be above 0 % and at most 100 %"},
        {"0 %", NULL, "'0 %' must be above 0 % and at most 100 %"},
        {"-100 %", NULL, "'-100 %' leaves nothing"},
        {"0 W", NULL, "'0 W': a cap is more than 0 W"},
        {"-0 W", NULL, "'0 W': a cap is more than 0 W"},
        {"250", NULL, "'250' has no unit: write '250 W', or a percentage such as '85 %'"},
        {"-25", NULL, "'25' has no unit: write '25 W', or a percentage such as '85 %'"},
        {"+5 %", NULL, "'+5 %' is no cap (250 W, 75 %, 85 % of demand, -25 %, -100 W, or a preset)"},
        {"x % of demand", NULL, "'x % ' is no share: write '70 %'"},
        {"120 % of demand", NULL, "'120 % ' must be above 0 % and at most 100 %"},
    };
    /* clang-format on */
    char shown[POLICY_CAP_TEXT];
    uw_error err;

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct policy_cap cap = {.mw = 77};
        err.text[0] = '\0';
        int r = policy_cap_read(cases[i].text, presets, n_elements(presets), &cap, &err);
        if (cases[i].error) {
            ok(r < 0 && cap.mw == 77, "refused, nothing changed: '%s'", cases[i].text);
            is_str(err.text, cases[i].error, "… and says why");
        } else {
            is_str(r == 0 ? policy_cap_text(&cap, shown) : err.text, cases[i].shown,
                   cases[i].text);
        }
    }
    ok(policy_presets[0].share == 0.7 && policy_presets[1].share == 0.85 &&
           policy_presets[2].share == 0.95,
       "the presets that are built in");
}

static void test_presets(void)
{
    struct policy_preset many[40], found = {"x", 7};
    char names[40][8];
    uw_error err;

    ok(policy_preset_find(presets, n_elements(presets), "minimal", &found, NULL) == 0 &&
           strcmp(found.name, "minimal") == 0 && found.share == 0.95,
       "a preset by its name");
    ok(policy_preset_find(presets, n_elements(presets), "ovrnight", &found, &err) ==
               -EINVAL &&
           found.share == 0.95,
       "none of that name: nothing changed");
    is_str(err.text,
           "'ovrnight' is no preset: did you mean 'overnight'? (known: aggressive, "
           "balanced, minimal, overnight)",
           "the nearest one, and all");
    for (int i = 0; i < 40; i++) {
        (void)snprintf(names[i], sizeof names[i], "p%d", i);
        many[i] = (struct policy_preset){names[i], 1};
    }
    (void)policy_preset_find(many, 40, "x", &found, &err);
    ok(strncmp(err.text, "'x' is no preset (known: p0, p1, ", 33) == 0 &&
           strcmp(err.text + strlen(err.text) - 6, ", ...)") == 0,
       "a long list is cut: %s", err.text);
}

static void test_ramps(void)
{
    struct policy_ramp ramp = {.rate = 7};
    uw_error err;

    ok(policy_ramp_read("2 %/s", &ramp, NULL) == 0 && ramp.pace == POLICY_AT_RATE &&
           ramp.rate == 0.02,
       "a rate");
    ok(policy_ramp_read("at once", &ramp, NULL) == 0 && ramp.pace == POLICY_AT_ONCE,
       "at once");
    ok(policy_ramp_read("class", &ramp, NULL) == 0 && ramp.pace == POLICY_AS_CLASS,
       "the class's");
    ok(policy_ramp_read("2 %", &ramp, &err) == -EINVAL && ramp.pace == POLICY_AS_CLASS,
       "no rate: nothing changed");
    is_str(err.text, "'2 %' is no ramp (class, at once, 2 %/s)", "… and says why");
    ok(policy_ramp_read("x/s", &ramp, &err) == -EINVAL, "no share a second");
}

enum { MOST = 4 };
static const struct policy_board board = {
    .original_mw = W(700), .default_mw = W(700), .min_mw = W(200), .demand_mw = W(600)};
#define LESS(percent)                                            \
    {                                                            \
        .measure = POLICY_LESS_SHARE, .share = (percent) / 100.0 \
    }
#define OF_DEFAULT(percent)                                      \
    {                                                            \
        .measure = POLICY_OF_DEFAULT, .share = (percent) / 100.0 \
    }
#define OF_DEMAND(percent)                                      \
    {                                                           \
        .measure = POLICY_OF_DEMAND, .share = (percent) / 100.0 \
    }
#define WATTS(w)                            \
    {                                       \
        .measure = POLICY_WATTS, .mw = W(w) \
    }
#define LESS_WATTS(w)                            \
    {                                            \
        .measure = POLICY_LESS_WATTS, .mw = W(w) \
    }

static const struct {
    const char *name;
    struct policy_board board; /* where it differs: */
    struct policy_asks asks[MOST];
    size_t n;
    uint32_t base_w;
    int soft, hard;
    uint32_t soft_w, hard_w;
    bool floored;
} cases[] = {
    /* clang-format off */
    {"no rule", {0}, {{0}}, 0, 700, -1, -1, 0, 0, false},
    {"watts", {0}, {{.cap = WATTS(250)}}, 1, 250, 0, -1, 250, 0, false},
    {"of the default limit", {.default_mw = W(400)}, {{.cap = OF_DEFAULT(75)}}, 1, 300, 0, -1, 300, 0, false},
    {"of demand", {0}, {{.cap = OF_DEMAND(85)}}, 1, 510, 0, -1, 510, 0, false},
    {"-25 % of the original", {0}, {{.cap = LESS(25)}}, 1, 700, 0, -1, 525, 0, false},
    {"two relative ones do not multiply", {0}, {{.cap = LESS(25)}, {.cap = LESS(20)}}, 2, 700, 0, -1, 525, 0, false},
    {"-25 % and -100 W", {0}, {{.cap = LESS(25)}, {.cap = LESS_WATTS(100)}}, 2, 700, 0, -1, 525, 0, false},
    {"-100 W and -25 %: the same", {0}, {{.cap = LESS_WATTS(100)}, {.cap = LESS(25)}}, 2, 700, 1, -1, 525, 0, false},
    {"of an absolute rule", {0}, {{.cap = LESS(25)}, {.cap = WATTS(400)}}, 2, 400, 0, -1, 300, 0, false},
    {"of the lowest absolute rule", {0}, {{.cap = WATTS(500)}, {.cap = LESS_WATTS(50)}, {.cap = OF_DEFAULT(60)}}, 3, 420, 1, -1, 370, 0, false},
    {"of a named or hard claim", {.lowest_mw = W(600)}, {{.cap = LESS(25)}}, 1, 600, 0, -1, 450, 0, false},
    {"of the search's hold", {.hold_mw = W(500)}, {{.cap = LESS(20)}}, 1, 500, 0, -1, 400, 0, false},
    {"of the observed peak", {.peak_mw = W(640)}, {{.cap = LESS(25)}}, 1, 640, 0, -1, 480, 0, false},
    {"no lower than the board's minimum", {0}, {{.cap = LESS_WATTS(650)}}, 1, 700, 0, -1, 200, 0, false},
    {"more watts less than there are", {0}, {{.cap = LESS_WATTS(900)}}, 1, 700, 0, -1, 200, 0, false},
    {"no higher than the board's maximum", {.max_mw = W(400)}, {{.cap = WATTS(450)}}, 1, 400, 0, -1, 400, 0, false},
    {"no lower than its own floor", {0}, {{.cap = LESS(50), .floor = 0.7}}, 1, 700, 0, -1, 420, 0, true},
    {"no lower than the class's floor", {.floor = 0.8}, {{.cap = OF_DEMAND(60)}}, 1, 480, 0, -1, 480, 0, true},
    {"the higher floor of both", {.floor = 0.8}, {{.cap = OF_DEMAND(60), .floor = 0.9}}, 1, 540, 0, -1, 540, 0, true},
    {"a hard rule goes under the class's floor", {.floor = 0.8}, {{.cap = WATTS(250), .hard = true}}, 1, 250, -1, 0, 0, 250, false},
    {"… and not under its own", {.floor = 0.8}, {{.cap = WATTS(250), .hard = true, .floor = 0.5}}, 1, 300, -1, 0, 0, 300, true},
    {"one soft and one hard claim", {0}, {{.cap = WATTS(500)}, {.cap = WATTS(400), .hard = true}, {.cap = WATTS(450)}, {.cap = WATTS(420), .hard = true}}, 4, 400, 2, 1, 450, 400, false},
    {"of two that ask for the same the first", {0}, {{.cap = WATTS(400)}, {.cap = WATTS(400)}}, 2, 400, 0, -1, 400, 0, false},
    {"the lower one wins although a floor raised it", {.floor = 0.5}, {{.cap = WATTS(350)}, {.cap = WATTS(250)}}, 2, 300, 1, -1, 300, 0, true},
    /* clang-format on */
};

static struct policy_board board_of(const struct policy_board *other)
{
    struct policy_board b = board;

    b.lowest_mw = other->lowest_mw;
    b.hold_mw = other->hold_mw;
    b.peak_mw = other->peak_mw;
    b.floor = other->floor;
    b.max_mw = other->max_mw;
    b.default_mw = other->default_mw ? other->default_mw : b.default_mw;
    return b;
}

static void test_claims(void)
{
    for (size_t i = 0; i < n_elements(cases); i++) {
        struct policy_board b = board_of(&cases[i].board);
        struct policy_claims c;
        policy_claims_of(&b, cases[i].asks, cases[i].n, NULL, &c);
        ok(c.soft.asks == cases[i].soft && c.hard.asks == cases[i].hard, "%s: who wins",
           cases[i].name);
        is_int(c.base_mw, W(cases[i].base_w), "… from which base");
        ok(c.soft.mw == W(cases[i].soft_w) && c.hard.mw == W(cases[i].hard_w) &&
               (c.soft.floored || c.hard.floored) == cases[i].floored,
           "… with %u and %u mW", c.soft.mw, c.hard.mw);
    }
}

static void test_unknown(void)
{
    static const struct policy_asks asks[] = {
        {.cap = OF_DEMAND(50)}, {.cap = OF_DEFAULT(50)}, {.cap = LESS(10)}};
    const struct policy_board b = {.original_mw = W(300), .min_mw = W(100)};
    struct policy_claims c;
    uint32_t each[3];

    policy_claims_of(&b, asks, 3, each, &c);
    ok(each[0] == 0 && each[1] == 0 && each[2] == W(270) && c.soft.asks == 2,
       "a part of what is unknown is no claim");
}

static void test_ways(void)
{
    struct policy_board b = board;
    struct policy_asks asks = {.cap = WATTS(400)};
    struct policy_claims c;

    policy_claims_of(&b, &asks, 1, NULL, &c);
    ok(!c.soft.way.own, "as the daemon's class");
    b.ramp = (struct policy_ramp){POLICY_AT_RATE, 0.01};
    policy_claims_of(&b, &asks, 1, NULL, &c);
    ok(c.soft.way.own && fabs(c.soft.way.rate_mw_s - 7000) < 1e-6,
       "as the policy's class");
    asks.ramp = (struct policy_ramp){POLICY_AT_RATE, 0.02};
    policy_claims_of(&b, &asks, 1, NULL, &c);
    ok(fabs(c.soft.way.rate_mw_s - 14000) < 1e-6, "the rule's own ramp before that");
    asks.phase = true;
    b.ran_mw = W(401);
    policy_claims_of(&b, &asks, 1, NULL, &c);
    ok(c.soft.way.rate_mw_s > 0 && c.soft.way.first_mw == W(401),
       "a cap under which the phase has not run: at once to where it has, then "
       "gradually");
    asks.ramp.pace = POLICY_AS_CLASS;
    b.ramp.pace = POLICY_AS_CLASS;
    b.class_rate = 0.005;
    policy_claims_of(&b, &asks, 1, NULL, &c);
    ok(c.soft.way.own && fabs(c.soft.way.rate_mw_s - 3500) < 1e-6 &&
           c.soft.way.first_mw == W(401),
       "… at the rate of the daemon's class");
    b.ran_mw = W(400);
    policy_claims_of(&b, &asks, 1, NULL, &c);
    ok(c.soft.way.own && c.soft.way.rate_mw_s == 0, "at once to one under which it has");
    asks.phase = false;
    asks.ramp.pace = POLICY_AT_ONCE;
    policy_claims_of(&b, &asks, 1, NULL, &c);
    ok(c.soft.way.own && c.soft.way.rate_mw_s == 0, "at once where the rule says so");
}

static struct policy_asks random_asks(struct rng *g, bool relative)
{
    struct policy_asks asks = {.hard = rng_below(g, 4) == 0};

    asks.cap.measure = (enum policy_measure)(
        relative ? POLICY_LESS_SHARE + rng_below(g, 2) : rng_below(g, 5));
    asks.cap.share = 0.01 * (double)(1 + rng_below(g, 99));
    asks.cap.mw = W(1 + rng_below(g, 700));
    return asks;
}

static uint32_t lowest(const struct policy_claims *c)
{
    if (c->soft.asks < 0 || (c->hard.asks >= 0 && c->hard.mw < c->soft.mw))
        return c->hard.mw;
    return c->soft.mw;
}

/* Each alone. */
static uint32_t lowest_of(const struct policy_board *at, const struct policy_asks *asks,
                          size_t n)
{
    uint32_t mw = UINT32_MAX;

    for (size_t i = 0; i < n; i++) {
        struct policy_claims c;
        policy_claims_of(at, &asks[i], 1, NULL, &c);
        mw = lowest(&c) < mw ? lowest(&c) : mw;
    }
    return mw;
}

/* The order of rules says nothing; relative ones come to what the one that asks for most
 * comes to alone.
 */
static void test_random(void)
{
    unsigned differ = 0, multiplied = 0;
    struct rng g;

    rng_init(&g, 5);
    for (int k = 0; k < 20000; k++) {
        struct policy_asks asks[6], turned[6];
        struct policy_claims a, b;
        struct policy_board at = board;
        bool relative = rng_below(&g, 2);
        at.floor = rng_below(&g, 2) ? 0 : 0.5;
        at.hold_mw = rng_below(&g, 2) ? 0 : W(300 + rng_below(&g, 400));
        for (size_t i = 0; i < 6; i++)
            turned[5 - i] = asks[i] = random_asks(&g, relative);
        policy_claims_of(&at, asks, 6, NULL, &a);
        policy_claims_of(&at, turned, 6, NULL, &b);
        differ +=
            a.soft.mw != b.soft.mw || a.hard.mw != b.hard.mw || a.base_mw != b.base_mw;
        if (relative)
            multiplied += lowest_of(&at, asks, 6) != lowest(&a);
    }
    is_int(differ, 0, "the order of rules says nothing");
    is_int(multiplied, 0, "rules that ask for less than the base do not multiply");
}

int main(void)
{
    test_texts();
    test_presets();
    test_ramps();
    test_claims();
    test_unknown();
    test_ways();
    test_random();
    return done();
}
