/* What `underwatt cap`, and a sweep beside the daemon, make of the daemon's answers. */
#include "cli/cap-read.h"

#include <errno.h>

#include "tap.h"

static struct json *doc_of(const char *text)
{
    struct json *doc = NULL;
    uw_error err = {""};

    if (json_read("answer", text, strlen(text), &doc, &err) < 0)
        printf("# %s\n", err.text);
    return doc;
}

#define LIMITS                                                                      \
    "\"limits\": {\"default_mw\": 300000, \"min_mw\": 100000, \"max_mw\": 350000, " \
    "\"original_mw\": 280000}"
#define BOARD "{\"gpu\": 3, \"uuid\": \"GPU-a\", \"can_cap\": true, " LIMITS "}"

static void targets(void)
{
    /* clang-format off */
    static const struct {
        const char *name, *board;
        struct cap_arg cap;
        int r;
        uint32_t mw; /* else the error's text */
        const char *text;
    } cases[] = {
        {"watts", BOARD, {.mw = 210000}, 0, 210000, NULL},
        {"percent, of the default limit", BOARD, {.percent = 70}, 0, 210000, NULL},
        {"the lowest", BOARD, {.mw = 100000}, 0, 100000, NULL},
        {"the highest", BOARD, {.mw = 350000}, 0, 350000, NULL},
        {"under the lowest", BOARD, {.mw = 99999}, -ERANGE, 0, "GPU 3: 99.999 W is outside 100..350 W"},
        {"as it was typed", BOARD, {.mw = 99000, .typed = "0.099kW"}, -ERANGE, 0, "GPU 3: '0.099kW' (99 W) is outside 100..350 W"},
        {"above the highest", BOARD, {.mw = 350001}, -ERANGE, 0, "GPU 3: 350.001 W is outside 100..350 W"},
        {"percent beyond the range", BOARD, {.percent = 20}, -ERANGE, 0, "GPU 3: 60 W is outside 100..350 W"},
        {"cannot be capped", "{\"gpu\": 3, \"can_cap\": false, " LIMITS "}", {.mw = 210000}, -ENOTSUP, 0, "GPU 3 takes no power limit"},
        {"no limits known", "{\"gpu\": 3, \"can_cap\": true, \"limits\": {\"default_mw\": 300000, \"min_mw\": null, \"max_mw\": null}}", {.mw = 210000}, -ENOTSUP, 0, "GPU 3 takes no power limit"},
        {"no default known", "{\"gpu\": 3, \"can_cap\": true, \"limits\": {\"min_mw\": 100000, \"max_mw\": 350000}}", {.percent = 70}, -ENOTSUP, 0, "GPU 3 takes no power limit"},
        {"no board at all", "[]", {.mw = 210000}, -ENOTSUP, 0, "GPU 0 takes no power limit"},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        auto_(json_free) struct json *doc = doc_of(cases[i].board);
        struct cap_target t = {.index = 77, .uuid = "canary"};
        uw_error err = {""};
        int r = cap_read_target(json_root(doc), &cases[i].cap, &t, &err);
        is_int(r, cases[i].r, "target: %s", cases[i].name);
        if (cases[i].r < 0) {
            is_str(err.text, cases[i].text, cases[i].name);
            ok(t.index == 77 && strcmp(t.uuid, "canary") == 0, "%s: nothing is written",
               cases[i].name);
            continue;
        }
        is_int(t.cap_mw, cases[i].mw, "%s: its cap", cases[i].name);
        ok(t.index == 3 && strcmp(t.uuid, "GPU-a") == 0 && t.original_mw == 280000 &&
               t.default_mw == 300000 && !t.claim && !t.reached,
           "%s: the rest of it", cases[i].name);
    }
}

/* A cap of 170 W on board 1, which is job 7's, too. */
static void lowers(void)
{
    /* clang-format off */
    static const struct {
        const char *name, *claims;
        uint32_t enforced_mw;
        const char *line;
    } cases[] = {
        {"another job", "[{\"gpu\": 0, \"job\": 2, \"cap_mw\": 225000}, {\"gpu\": 1, \"job\": 3, \"cap_mw\": 225000}]", 225000, "GPU 1 is of job 3: its limit goes from 225 W to 170 W"},
        {"no claim", "[]", 300000, ""},
        {"its own claim", "[{\"gpu\": 1, \"job\": 7, \"cap_mw\": 225000}]", 225000, ""},
        {"a person's claim", "[{\"gpu\": 1, \"job\": null, \"cap_mw\": 225000}]", 225000, ""},
        {"a lower claim", "[{\"gpu\": 1, \"job\": 3, \"cap_mw\": 160000}]", 160000, ""},
        {"a lower claim beside it", "[{\"gpu\": 1, \"job\": 3, \"cap_mw\": 225000}, {\"gpu\": 1, \"job\": null, \"cap_mw\": 160000}]", 160000, ""},
        {"a lock", "[{\"gpu\": 1, \"job\": 3, \"cap_mw\": null, \"clock_mhz\": 1200}]", 300000, ""},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char board[80], line[160] = "";
        (void)snprintf(board, sizeof board,
                       "{\"gpu\": 1, \"limits\": {\"enforced_mw\": %u}}",
                       cases[i].enforced_mw);
        auto_(json_free) struct json *gpu = doc_of(board);
        auto_(json_free) struct json *claims = doc_of(cases[i].claims);
        bool lowered = cap_read_lowers(json_root(gpu), json_root(claims), 170000, 7, line,
                                       sizeof line);
        ok(lowered == (cases[i].line[0] != '\0') && strcmp(line, cases[i].line) == 0,
           "lowers: %s: %s", cases[i].name, line);
    }
}

/* Of a claim of 210 W. */
static void boards(void)
{
    /* clang-format off */
    static const struct {
        const char *name, *board;
        bool was, may, reached, lost; /* was: reached before */
        const char *line;
    } cases[] = {
        {"in force", "{\"cap\": {\"state\": \"held\", \"ramp_mw\": 210000}, \"limits\": {\"enforced_mw\": 210000}}", false, true, true, false, ""},
        {"lower than asked for", "{\"cap\": {\"state\": \"held\", \"ramp_mw\": 150000}, \"limits\": {\"enforced_mw\": 150000}}", false, true, true, false, ""},
        {"still held, and free for us", "{\"cap\": {\"state\": \"free\", \"ramp_mw\": 200000}, \"limits\": {\"enforced_mw\": 200000}}", false, true, true, false, ""},
        {"on the way", "{\"cap\": {\"state\": \"held\", \"ramping\": true, \"ramp_mw\": 250000}, \"limits\": {\"enforced_mw\": 250000}}", false, true, false, false, "on the way down to 210 W"},
        {"the ramp is there, the board not", "{\"cap\": {\"state\": \"held\", \"ramp_mw\": 210000, \"text\": \"try 2\"}, \"limits\": {\"enforced_mw\": 250000}}", false, true, false, false, "not at 210 W yet: try 2"},
        {"the board was there before the ramp", "{\"cap\": {\"state\": \"held\", \"ramp_mw\": 250000, \"ramping\": true}, \"limits\": {\"enforced_mw\": 210000}}", false, true, false, false, "on the way down to 210 W"},
        {"lost again", "{\"cap\": {\"state\": \"held\", \"ramp_mw\": 250000}, \"limits\": {\"enforced_mw\": 250000}}", true, true, true, true, ""},
        {"yielded", "{\"cap\": {\"state\": \"yielded\", \"ramp_mw\": 210000, \"text\": \"another set 300 W\"}, \"limits\": {\"enforced_mw\": 300000}}", true, true, true, true, "yielded: another set 300 W"},
        {"yielded, and low all the same", "{\"cap\": {\"state\": \"yielded\", \"ramp_mw\": 210000}, \"limits\": {\"enforced_mw\": 200000}}", false, true, true, false, "yielded"},
        {"another Underwatt's, and low all the same", "{\"cap\": {\"state\": \"lost\", \"ramp_mw\": 200000, \"holder\": \"held by x\"}, \"limits\": {\"enforced_mw\": 200000}}", false, true, false, false, "held by x: no cap until that command ends; the cap is then tried within 5 s"},
        {"being written", "{\"cap\": {\"state\": \"holding\", \"ramp_mw\": 210000}, \"limits\": {\"enforced_mw\": 300000}}", false, true, false, false, ""},
        {"limit unknown", "{\"cap\": {\"state\": \"held\", \"ramp_mw\": 210000}, \"limits\": {\"enforced_mw\": null}}", false, true, false, false, ""},
        {"not in the answer", "null", true, true, true, true, ""},
        {"denied", "{\"cap\": {\"state\": \"denied\", \"text\": \"the driver said no\"}, \"limits\": {\"enforced_mw\": 300000}}", false, false, false, false, "the driver said no"},
        {"denied, no reason", "{\"cap\": {\"state\": \"denied\"}}", false, false, false, false, "the daemon may not set its limit"},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[300];
        (void)snprintf(text, sizeof text, "[%s]", cases[i].board);
        auto_(json_free) struct json *doc = doc_of(text);
        struct cap_target t = {.cap_mw = 210000, .reached = cases[i].was};
        char line[240] = "canary";
        bool may = cap_read_board(json_at(json_root(doc), 0), &t, line, sizeof line);
        ok(may == cases[i].may, "board: %s", cases[i].name);
        ok(t.reached == cases[i].reached && t.lost == cases[i].lost,
           "%s: reached %d, lost %d", cases[i].name, t.reached, t.lost);
        is_str(line, cases[i].line, cases[i].name);
    }
    auto_(json_free) struct json *doc =
        doc_of("{\"cap\": {\"state\": \"held\"}, \"limits\": {\"original_mw\": 250000}}");
    struct cap_target t = {.cap_mw = 210000, .original_mw = 280000}, u = {.cap_mw = 1};
    char line[8];
    (void)cap_read_board(json_root(doc), &t, line, sizeof line);
    (void)cap_read_board(json_root(doc), &u, line, sizeof line);
    ok(t.original_mw == 280000 && u.original_mw == 250000,
       "the limit found first is kept, one that was unknown taken");
}

static void back(void)
{
    /* clang-format off */
    static const struct { const char *name, *explain; bool at_once, later; } cases[] = {
        {"let go of", "{\"enforced_mw\": 1, \"cap\": {\"state\": \"free\"}}", true, true},
        {"let go of, not confirmed", "{\"unrestored\": true, \"cap\": {\"state\": \"free\"}}", false, false},
        {"another's", "{\"cap\": {\"state\": \"yielded\"}}", true, true},
        {"released", "{\"cap\": {\"state\": \"released\"}}", true, true},
        {"being written", "{\"cap\": {\"state\": \"holding\", \"target_mw\": 300000}, \"enforced_mw\": 300000, \"bounds\": {\"original_mw\": 300000}}", false, false},
        {"denied", "{\"cap\": {\"state\": \"denied\"}}", false, false},
        {"held at the original: only if it stays so", "{\"cap\": {\"state\": \"held\", \"target_mw\": 300000}, \"enforced_mw\": 300000, \"bounds\": {\"original_mw\": 300000}}", false, true},
        {"not there yet", "{\"cap\": {\"state\": \"held\", \"target_mw\": 300000}, \"enforced_mw\": 210000, \"bounds\": {\"original_mw\": 300000}}", false, false},
        {"another claim's", "{\"cap\": {\"state\": \"held\", \"target_mw\": 250000}, \"enforced_mw\": 250000, \"bounds\": {\"original_mw\": 300000}}", true, true},
        {"on the way to another claim's", "{\"cap\": {\"state\": \"held\", \"target_mw\": 250000, \"ramping\": true}, \"enforced_mw\": 260000, \"bounds\": {\"original_mw\": 300000}}", true, true},
        {"another claim's, not there", "{\"cap\": {\"state\": \"held\", \"target_mw\": 250000}, \"enforced_mw\": 260000, \"bounds\": {\"original_mw\": 300000}}", false, false},
        {"an answer with nothing in it", "{}", false, false},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        auto_(json_free) struct json *doc = doc_of(cases[i].explain);
        ok(cap_read_back(json_root(doc), false) == cases[i].at_once, "back: %s",
           cases[i].name);
        ok(cap_read_back(json_root(doc), true) == cases[i].later, "%s, after a while",
           cases[i].name);
    }
}

/* Without the daemon. */
static void own_back(void)
{
    /* clang-format off */
    static const struct { const char *name, *explain; int back; const char *line; } cases[] = {
        {"let go of", "{\"unrestored\": false, \"cap\": {\"state\": \"free\"}}", 1, ""},
        {"let go of, not confirmed", "{\"unrestored\": true, \"cap\": {\"state\": \"free\"}}", -1, ""},
        {"held", "{\"unrestored\": false, \"cap\": {\"state\": \"held\"}}", 0, ""},
        {"being written", "{\"unrestored\": false, \"cap\": {\"state\": \"holding\"}}", 0, ""},
        {"lost", "{\"unrestored\": false, \"cap\": {\"state\": \"lost\", \"text\": \"it broke\"}}", -1, "it broke"},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        auto_(json_free) struct json *doc = doc_of(cases[i].explain);
        char line[240] = "canary";
        is_int(cap_read_own_back(json_root(doc), line, sizeof line), cases[i].back,
               "own: %s", cases[i].name);
        is_str(line, cases[i].line, cases[i].name);
    }
}

static void mine(void)
{
    /* clang-format off */
    static const struct { const char *name, *claim, *you; bool mine; } cases[] = {
        {"mine", "{\"source\": \"person\", \"uid\": 7}", "{\"uid\": 7}", true},
        {"root's", "{\"source\": \"person\", \"uid\": 0}", "{\"uid\": 0}", true},
        {"another's", "{\"source\": \"person\", \"uid\": 8, \"who\": \"anna\"}", "{\"uid\": 7, \"name\": \"anna\"}", false},
        {"of a search for my job", "{\"source\": \"search\", \"uid\": 7}", "{\"uid\": 7}", false},
        {"a cap of my job", "{\"source\": \"job-cap\", \"uid\": 7}", "{\"uid\": 7}", false},
        {"the budget's", "{\"source\": \"budget\", \"uid\": 0}", "{\"uid\": 0}", false},
        {"a source that is not known", "{\"source\": \"rule\", \"uid\": 7}", "{\"uid\": 7}", false},
        {"no uid", "{\"source\": \"person\"}", "{\"uid\": 0}", false},
        {"I have no uid", "{\"source\": \"person\", \"uid\": 0}", "{}", false},
        {"neither has one", "{\"source\": \"person\"}", "{}", false},
        {"nobody's", "{}", "{\"uid\": 7}", false},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        auto_(json_free) struct json *doc = doc_of(cases[i].claim);
        auto_(json_free) struct json *you = doc_of(cases[i].you);
        ok(cap_read_mine(json_root(doc), json_root(you)) == cases[i].mine, "claim: %s",
           cases[i].name);
    }
}

static void left_alone(void)
{
    static const struct {
        const char *state;
        bool alone;
    } cases[] = {{"free", true},     {"released", true}, {"held", false},
                 {"holding", false}, {"yielded", false}, {"denied", false}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "{\"cap\": {\"state\": \"%s\"}}",
                       cases[i].state);
        auto_(json_free) struct json *doc = doc_of(text);
        ok(cap_read_left_alone(json_root(doc)) == cases[i].alone,
           "a sweep on a board: %s", cases[i].state);
    }
    auto_(json_free) struct json *bare = doc_of("{\"gpu\": 1}");
    ok(cap_read_left_alone(json_root(bare)), "a board without caps");
}

int main(void)
{
    targets();
    lowers();
    boards();
    back();
    own_back();
    mine();
    left_alone();
    return done();
}
