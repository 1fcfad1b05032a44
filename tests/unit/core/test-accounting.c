/* PUE and embodied emissions: what is read and refused, and the shares of a board. */
#include "core/carbon/accounting.h"

#include <errno.h>

#include "base/auto.h"
#include "tap.h"

static struct accounting a;

static void pue(void)
{
    static const struct {
        const char *text;
        int r;
        const char *say;
    } cases[] = {
        {"1.25", 0, ""},
        {"1", 0, ""},
        {"0.9", -ERANGE, "'0.9' is outside 1..10"},
        {"11", -ERANGE, "'11' is outside 1..10"},
        {"nan", -EINVAL, "'nan' is not a number"},
        {"", -EINVAL, "'' is not a number"},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        uw_error err = {""};
        is_int(accounting_pue(&a, cases[i].text, &err), cases[i].r, "'%s'",
               cases[i].text);
        is_str(err.text, cases[i].say, "what is said of it");
    }
    is_near(a.pue, 1, 0, "the last good one stands");
}

static void boards(void)
{
    static const struct {
        const char *text;
        int r;
        const char *say;
    } cases[] = {
        {"NVIDIA H100=12.3 vendor, 2024", 0, ""},
        {"NVIDIA H100=1 again", -EEXIST, "NVIDIA H100 is there twice"},
        {"V100=0 x=y", 0, ""},
        {"A100=12.3", -EINVAL, "'A100=12.3' is not of the form 'BOARD=12.3 ORIGIN'"},
        {"A100", -EINVAL, "'A100' is not of the form 'BOARD=12.3 ORIGIN'"},
        {"=1 a", -EINVAL, "'=1 a' is not of the form 'BOARD=12.3 ORIGIN'"},
        {"A100=-1 a", -ERANGE, "A100: -1 g an hour is outside 0..10000"},
        {"A100=x a", -EINVAL, "A100: 'x' is not a number"},
        {"A100=1 ", -EINVAL, "A100: the origin '' is no plain text of 1 to 63 bytes"},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        uw_error err = {""};
        is_int(accounting_embodied_text(&a, cases[i].text, &err), cases[i].r, "'%s'",
               cases[i].text);
        is_str(err.text, cases[i].say, "what is said of it");
    }
    is_int(a.n_embodied, 2, "two boards");
    const struct embodied *e = accounting_board(&a, "NVIDIA H100");
    ok(e && e->g_hour == 12.3, "a board's figure");
    is_str(e ? e->origin : "", "vendor, 2024", "and its origin");
    ok(!accounting_board(&a, "NVIDIA"), "a part of a name is none");
}

static void copies(void)
{
    struct market_contract c = {.from_ms = 1, .to_ms = 2, .amount = 3, .origin = "GO"};
    struct accounting from = a;

    auto_(accounting_free) struct accounting *without = accounting_copy(&from);
    from.contract = &c;
    from.n_contracts = 1;
    auto_(accounting_free) struct accounting *with = accounting_copy(&from);
    if (!ok(without && with, "two copies"))
        return;
    c.amount = 4;
    ok(without->n_embodied == a.n_embodied && !without->contract, "without contracts");
    ok(with->n_contracts == 1 && with->contract->amount == 3 &&
           strcmp(with->contract->origin, "GO") == 0,
       "with contracts of its own");
}

static void many(void)
{
    char model[32];
    uw_error err = {""};
    int r = 0;

    for (int i = 0; r == 0; i++) {
        (void)snprintf(model, sizeof model, "B%d", i);
        r = accounting_embodied(&a, model, 1, "x", &err);
    }
    is_int(r, -E2BIG, "%s", err.text);
    is_int(a.n_embodied, EMBODIED_MODELS, "as many as fit");
    accounting_fini(&a);
    ok(a.n_embodied == 0 && a.pue == 0, "nothing is left");
}

static void shares(void)
{
    static const struct {
        const char *name;
        struct embodied_hour h;
        bool other;
        int64_t ms;
        double want;
    } cases[] = {
        {"one job", {3600, 3600, 0, 3600}, false, 3600, 3600},
        {"a job and idle time", {3600, 3600, 0, 3600}, false, 900, 900},
        {"two jobs that share it", {7200, 3600, 0, 3600}, false, 3600, 1800},
        {"two that share half of it", {3600, 1800, 1800, 3600}, false, 1800, 900},
        {"nobody's other half", {3600, 1800, 1800, 3600}, true, 1800, 1800},
        {"two that have a half each", {3600, 3600, 1800, 3600}, false, 1800, 1800},
        {"nobody's energy beside one of them", {3600, 3600, 1800, 3600}, true, 1800, 0},
        {"nobody's energy beside a job", {3600, 3600, 3600, 3600}, true, 3600, 0},
        {"the job beside it", {3600, 3600, 3600, 3600}, false, 3600, 3600},
        {"nobody's energy before a job", {1200, 1200, 2400, 3600}, true, 2400, 2400},
        {"the job after it", {1200, 1200, 2400, 3600}, false, 1200, 1200},
        {"nobody's energy alone", {0, 0, 3600, 3600}, true, 3600, 3600},
        {"rows of less time than the board's", {1800, 1800, 0, 3600}, false, 1800, 3600},
        {"more time in use than the board's", {3600, 3600, 60, 1800}, false, 3600, 1800},
        {"no meter", {3600, 3600, 0, 0}, false, 3600, 3600},
        {"no rows", {0, 0, 0, 3600}, false, 0, 0},
    };

    for (size_t i = 0; i < n_elements(cases); i++)
        is_near(embodied_ms(&cases[i].h, cases[i].other, cases[i].ms), cases[i].want,
                1e-9, "%s: %g ms", cases[i].name, cases[i].want);
}

static void used(void)
{
    static const struct {
        const char *name;
        struct embodied_hour h;
        int64_t longest, want;
    } cases[] = {
        {"one job", {.held_ms = 3600, .board_ms = 3600}, 3600, 3600},
        {"two that share it", {.held_ms = 7200, .board_ms = 3600}, 3600, 3600},
        {"two that share half of it", {3600, 0, 1800, 3600}, 1800, 1800},
        {"two one after the other, then nobody", {2400, 0, 1200, 3600}, 1200, 2400},
        {"nobody's energy beside a job", {3600, 0, 3600, 3600}, 3600, 3600},
        {"nobody's energy alone", {0, 0, 3600, 3600}, 0, 0},
        {"no meter", {3600, 0, 0, 0}, 3600, 3600},
    };

    for (size_t i = 0; i < n_elements(cases); i++)
        is_int(embodied_used_ms(&cases[i].h, cases[i].longest), cases[i].want, "%s",
               cases[i].name);
}

int main(void)
{
    pue();
    boards();
    copies();
    many();
    shares();
    used();
    return done();
}
