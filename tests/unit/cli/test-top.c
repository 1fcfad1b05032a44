/* The live view as text: what stands where at 80x24, narrow, wide and in ASCII. */
#include <math.h>
#include <stdlib.h>

#include "cli/top.h"
#include "tap.h"

static struct top t;

static struct top_board board(unsigned index, double power, double cap, const char *by)
{
    struct top_board b = {.index = index,
                          .name = "Tesla V100-SXM2-16GB",
                          .state = "held",
                          .power_w = power,
                          .cap_w = cap,
                          .target_w = cap,
                          .original_w = 300,
                          .max_w = 300,
                          .temp_c = 61,
                          .util = 0.98,
                          .clock_mhz = 1380,
                          .today_j = 7.2e6};

    (void)snprintf(b.by, sizeof b.by, "%s", by);
    return b;
}

static void set_up(void)
{
    t = (struct top){.host = "node1", .clock = "14:03:22", .simulated = true};
    t.n_boards = 4;
    t.board[0] = board(0, 150, 300, "original");
    t.board[1] = board(1, 210, 215, "search of job 12");
    t.board[2] = board(2, 195, 215, "search of job 12");
    t.board[3] = board(3, NAN, NAN, "");
    t.board[3].temp_c = t.board[3].util = t.board[3].today_j = NAN;
    (void)snprintf(t.board[3].text, sizeof t.board[3].text, "the driver hangs");
    t.board[1].n_claims = 2;
    t.board[1].claim[0] = (struct top_claim){.kind = "soft",
                                             .who = "search of job 12",
                                             .why = "edp",
                                             .cap_w = 215,
                                             .left_s = INFINITY,
                                             .wins = true};
    t.board[1].claim[1] = (struct top_claim){
        .kind = "named", .who = "user anna", .why = "", .cap_w = 250, .left_s = 3599};
    t.n_jobs = 3;
    for (size_t i = 0; i < 3; i++) {
        struct top_job *j = &t.job[i];
        *j = (struct top_job){.id = 12 + i, .cap_w = 215, .saved = 0.1 + 0.1 * (double)i};
        (void)snprintf(j->user, sizeof j->user, "anna");
        (void)snprintf(j->name, sizeof j->name, "train-%zu.py", i);
        (void)snprintf(j->gpus, sizeof j->gpus, "1-2");
        (void)snprintf(j->state, sizeof j->state, "holding");
        (void)snprintf(j->goal, sizeof j->goal, "edp");
        j->saved_half = 0.01;
        j->energy_j = 3.6e6 * (double)(3 - i);
        j->time_s = 60.0 * (double)(i + 1);
    }
    t.job[2].saved = NAN;
    for (int i = 0; i < 10; i++)
        top_tick(&t);
}

static struct grid *drawn(unsigned rows, unsigned cols, bool ascii)
{
    struct grid *g = grid_new(rows, cols, ascii);

    top_draw(&t, g);
    return g;
}

static bool row_has(const struct grid *g, unsigned row, const char *what)
{
    char *text = grid_row(g, row);
    bool has = text && strstr(text, what);

    if (!has)
        printf("# row %u: %s\n", row, text ? text : "(none)");
    free(text);
    return has;
}

static void is_row(const struct grid *g, unsigned row, const char *want, const char *name)
{
    char *text = grid_row(g, row);

    is_str(text ? text : "(none)", want, name);
    free(text);
}

static void test_standard(void)
{
    set_up();
    struct grid *g = drawn(24, 80, false);
    is_row(g, 0,
           "node1  4 GPUs  555 W of 730 W  today 6.00 kWh  simulated"
           "                14:03:22",
           "the title sums up");
    is_row(g, 1,
           "GPU NAME         POWER AGAINST CAP  W   CAP  °C UTIL     TODAY CAPPED BY",
           "the head");
    is_row(g, 2,
           "  0 Tesla V100-… ███████······│   150   300  61  98%  2.00 kWh original",
           "half of the bar, the stroke at its end");
    ok(row_has(g, 3, "210   215  61  98%  2.00 kWh search of job 12"), "a capped board");
    ok(row_has(g, 5, "the driver ha"), "a silent board tells why instead of a bar");
    ok(row_has(g, 5, "-     -   -    -         -"), "and unknown is '-', never 0");
    ok(row_has(g, 6, "GPU 0 "), "history of the picked board");
    ok(row_has(g, 6, "▅▅▅▅▅▅▅▅▅▅ 150..150 W"), "ten looks at half of its power");
    ok(row_has(g, 7, "JOB USER     NAME"), "the jobs follow");
    is_row(g, 8,
           "   12 anna     train-0.py   1-2     holding          215     10.0 % 3.00 kWh",
           "a job");
    ok(row_has(g, 10, "         - 1.00 kWh"), "unknown savings are '-'");
    ok(row_has(g, 23, "F1Help  F2ClaimsF6Sort  F9FreezeF10Quit"), "keys");
    grid_free(g);
}

static void test_looks(void)
{
    set_up();
    struct grid *g = drawn(24, 80, false);
    is_int(g->cell[2 * 80 + 17].look, GRID_GOOD, "far under its cap");
    is_int(g->cell[3 * 80 + 17].look, GRID_FULL, "held by its cap");
    is_int(g->cell[4 * 80 + 17].look, GRID_NEAR, "close to its cap");
    is_int(g->cell[2 * 80].look, GRID_PICKED, "the picked board");
    is_int(g->cell[3 * 80].look, GRID_PLAIN, "another one");
    grid_free(g);
}

static void test_ascii(void)
{
    set_up();
    struct grid *g = drawn(24, 80, true);
    bool plain = true;
    for (size_t i = 0; i < 24 * 80; i++)
        plain &= g->cell[i].code < 0x7f;
    ok(plain, "nothing beyond ASCII");
    is_row(g, 2,
           "  0 Tesla V100-~ #######......|   150   300  61  98%  2.00 kWh original",
           "the same bar");
    grid_free(g);
}

static void test_claims(void)
{
    set_up();
    (void)top_key(&t, TOP_KEY_DOWN);
    (void)top_key(&t, TOP_KEY_CLAIMS);
    struct grid *g = drawn(24, 80, false);
    ok(row_has(g, 7, "CLAIMS ON GPU 1"), "claims of the picked board");
    is_row(g, 8, "> soft              215 W   no end  search of job 12: edp",
           "the winner");
    is_row(g, 9, "  named             250 W    59:59  user anna", "the other");
    grid_free(g);
    (void)top_key(&t, TOP_KEY_HOME);
    g = drawn(24, 80, false);
    ok(row_has(g, 8, "none: the original limit of 300 W holds"), "no claims");
    grid_free(g);
}

static void test_keys(void)
{
    set_up();
    ok(!top_key(&t, TOP_KEY_UP) && t.picked == 0, "up stops at the first board");
    (void)top_key(&t, TOP_KEY_END);
    ok(!top_key(&t, TOP_KEY_DOWN) && t.picked == 3, "down at the last");
    (void)top_key(&t, TOP_KEY_SORT);
    struct grid *g = drawn(24, 80, false);
    ok(row_has(g, 7, "*ENERGY") && row_has(g, 8, "train-0"), "most energy first");
    grid_free(g);
    (void)top_key(&t, TOP_KEY_SORT);
    g = drawn(24, 80, false);
    ok(row_has(g, 8, "train-1") && row_has(g, 10, "train-2"),
       "most saved first, unknown last");
    grid_free(g);
    (void)top_key(&t, TOP_KEY_HELP);
    g = drawn(24, 80, false);
    ok(row_has(g, 0, "live view"), "help");
    grid_free(g);
    ok(!top_key(&t, TOP_KEY_FREEZE) && !t.help && !t.frozen, "any key leaves the help");
    ok(top_key(&t, TOP_KEY_QUIT), "q leaves");
}

/* No size and no content may write outside (ASan tells) or lose the title. */
static void test_sizes(void)
{
    static const unsigned sizes[][2] = {{1, 1},  {2, 5},   {3, 20},   {7, 79},
                                        {8, 30}, {10, 40}, {60, 300}, {400, 500}};

    set_up();
    t.n_boards = TOP_BOARDS;
    for (size_t i = 0; i < TOP_BOARDS; i++)
        t.board[i] =
            board((unsigned)i, 200, 210, "a name that is longer than any column");
    (void)top_key(&t, TOP_KEY_END);
    for (size_t i = 0; i < n_elements(sizes); i++) {
        struct grid *g = drawn(sizes[i][0], sizes[i][1], i & 1);
        ok(g->cell[0].code == 'n', "%u x %u", sizes[i][0], sizes[i][1]);
        grid_free(g);
    }
    struct grid *g = drawn(24, 80, false);
    ok(row_has(g, 17, " 63 Tesla"), "the picked board is in sight");
    grid_free(g);
    set_up();
    (void)snprintf(t.job[0].name, sizeof t.job[0].name, "\xff\xfe\xe4\xb8\xad\033[2J");
    g = drawn(24, 80, false);
    ok(row_has(g, 8, "?????[2J") || row_has(g, 8, "????[2J"),
       "no control character and no broken UTF-8 gets through");
    grid_free(g);
}

int main(void)
{
    test_standard();
    test_looks();
    test_ascii();
    test_claims();
    test_keys();
    test_sizes();
    return done();
}
