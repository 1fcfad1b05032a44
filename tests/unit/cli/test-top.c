/* The live view as text: what stands where at 80x24, narrow, wide and in ASCII. */
#include <errno.h>
#include <locale.h>
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
    for (size_t i = 0; i < TOP_HISTORY; i++)
        b.history_w[i] = NAN;
    return b;
}

static void set_up(void)
{
    t = (struct top){
        .host = "node1", .clock = "14:03:22", .simulated = true, .look_s = 1};
    t.n_boards = 4;
    t.board[0] = board(0, 150, 300, "original");
    t.board[1] = board(1, 210, 215, "search of job 12");
    t.board[2] = board(2, 195, 215, "search of job 12");
    t.board[3] = board(3, NAN, NAN, "");
    t.board[3].temp_c = t.board[3].util = t.board[3].today_j = NAN;
    (void)snprintf(t.board[3].text, sizeof t.board[3].text, "the driver hangs");
    for (size_t i = 0; i < t.n_boards; i++)
        t.board[i].claims_known = true;
    t.board[1].n_claims = 2;
    t.board[1].claim[0] = (struct top_claim){.kind = "soft",
                                             .who = "search of job 12",
                                             .why = "edp",
                                             .cap_w = 215,
                                             .left_s = INFINITY,
                                             .of_job = true,
                                             .wins = true};
    t.board[1].claim[1] = (struct top_claim){
        .kind = "named", .who = "user anna", .why = "", .cap_w = 250, .left_s = 3599};
    t.n_jobs = 3;
    for (size_t i = 0; i < 3; i++) {
        struct top_job *j = &t.job[i];
        *j = (struct top_job){.id = 12 + i, .boards = 6, .saved = 0.1 + 0.1 * (double)i};
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

static bool row_shows(const struct grid *g, unsigned row, const char *what)
{
    char *text = grid_row(g, row);
    bool has = text && strstr(text, what);

    free(text);
    return has;
}

static bool row_has(const struct grid *g, unsigned row, const char *what)
{
    char *text = grid_row(g, row);

    if (!text || !strstr(text, what))
        printf("# row %u: %s\n", row, text ? text : "(none)");
    free(text);
    return row_shows(g, row, what);
}

static void is_row(const struct grid *g, unsigned row, const char *want, const char *name)
{
    char *text = grid_row(g, row);

    is_str(text ? text : "(none)", want, name);
    free(text);
}

/* The row of the head of the list below the graphs. */
static unsigned list(const struct grid *g)
{
    unsigned row = 2;

    while (row + 1 < g->rows && g->cell[(size_t)row * g->cols].look != GRID_HEAD)
        row++;
    return row;
}

static void test_standard(void)
{
    set_up();
    struct grid *g = drawn(13, 80, false);
    is_row(g, 0,
           "node1  4 GPUs  555 W of 730 W  today 21.60 MJ  simulated"
           "                14:03:22",
           "the title sums up");
    grid_free(g);
    t.budget_w = 2400;
    g = drawn(13, 80, false);
    is_row(g, 0,
           "node1  4 GPUs  555 W of 730 W  today 21.60 MJ  budget 2400 W  simulated",
           "... with a budget, in place of the clock where both do not fit");
    is_row(g, 1,
           "GPU NAME         POWER AGAINST CAP  W   CAP  °C UTIL     TODAY CAPPED BY",
           "the head");
    is_row(g, 2,
           "  0 Tesla V100-… ███████······│   150   300  61  98%  7.200 MJ original",
           "half of the bar, the stroke at its end");
    ok(row_has(g, 3, "210   215  61  98%  7.200 MJ search of job 12"), "a capped board");
    ok(row_has(g, 5, "the driver hangs"), "a silent board tells why, in full");
    ok(row_has(g, 5, "-     -   -    -         -"), "and unknown is '-', never 0");
    ok(row_has(g, 6, "GPU 0 "), "history of the picked board");
    ok(row_has(g, 6, "▅▅▅▅▅▅▅▅▅▅ 150..150 W"), "ten looks at half of its power");
    ok(row_has(g, 7, "JOB USER     NAME"), "the jobs follow");
    is_row(g, 8,
           "   12 anna     train-0.py   1-2     holding          215     10.0 % 10.80 MJ",
           "a job");
    ok(row_has(g, 10, "         - 3.600 MJ"), "unknown savings are '-'");
    grid_free(g);
    t.board[2].cap_w = 198;
    t.job[1].boards = 1;
    t.job[2].boards = 12;
    g = drawn(13, 80, false);
    ok(row_has(g, 8, "holding          198 "), "a job's cap is its lowest board's");
    ok(row_has(g, 9, "holding          300 "), "… in force, not the search's");
    ok(row_has(g, 10, "holding            - "), "… and unknown with one of them");
    set_up();
    ok(row_has(g, 12, "F1Help F2Claims F3Waste F4Filter F6Sort F9Freeze F10Quit"),
       "keys");
    grid_free(g);
    g = drawn(24, 80, false);
    ok(row_has(g, 6, "GPU 0 power, 73 s, 150..150 W") && row_has(g, 12, "GPU 1 power"),
       "24 rows: two graphs in the rows that nothing else needs");
    ok(list(g) == 19 && row_has(g, 20, "   12 anna") && row_has(g, 22, "   14 "),
       "and all jobs below");
    grid_free(g);
}

/* The title's sums are those of the figures below it, not of what these are rounded from.
 */
static void test_sums(void)
{
    set_up();
    for (size_t i = 0; i < 3; i++)
        t.board[i].power_w -= 0.4;
    struct grid *g = drawn(13, 80, false);
    ok(row_has(g, 0, "  555 W of 730 W  ") && row_has(g, 2, "   150   300 ") &&
           row_has(g, 3, "   210   215 ") && row_has(g, 4, "   195   215 "),
       "150, 210 and 195 W are 555 W");
    grid_free(g);
}

/* 60 columns: whole columns alone; trouble: said in full, old figures marked. */
static void test_narrow_and_trouble(void)
{
    set_up();
    struct grid *g = drawn(24, 60, true);
    is_row(g, 0, "node1  4 GPUs  555 W of 730 W  today 21.60 MJ  simulated",
           "the clock gives way");
    is_row(g, 1, "GPU NAME         POWER AGAINST CAP W   CAP CAPPED BY",
           "no temperature, no use, no energy of today");
    is_row(g, 3, "  1 Tesla V100-~ #########|...   210   215 search of job 12",
           "who caps a board is whole");
    is_row(g, list(g), "  JOB USER     NAME         GPUS    STATE            CAP",
           "a head without what does not fit");
    is_row(g, list(g) + 1, "   12 anna     train-0.py   1-2     holding          215",
           "a job");
    grid_free(g);
    (void)snprintf(t.trouble, sizeof t.trouble,
                   "/run/underwatt/underwattd.sock: GET /v1/node: no answer in 1.5 s");
    g = drawn(24, 80, true);
    is_row(g, 23, "/run/underwatt/underwattd.sock: GET /v1/node: no answer in 1.5 s",
           "trouble has the row of the keys");
    is_row(g, 0,
           "node1  4 GPUs  555 W of 730 W  today 21.60 MJ  simulated  old figures  "
           " 14:03:22",
           "and the figures are called old");
    is_int(g->cell[(size_t)3 * 80 + 60].look, GRID_DIM, "and stand back");
    grid_free(g);
    t.trouble[0] = '\0';
}

/* Columns of boards are whole or not there; the least important ones go first. */
static void test_columns(void)
{
    static const struct {
        unsigned least, most; /* columns of the terminal */
        const char *head;     /* without the bar's */
    } rows[] = {
        {23, 28, "W"},
        {29, 45, "W CAP"},
        {46, 60, "W CAP CAPPED BY"},
        {61, 64, "W CAP UTIL CAPPED BY"},
        {65, 74, "W CAP C UTIL CAPPED BY"},
        {75, 120, "W CAP C UTIL TODAY CAPPED BY"},
    };

    set_up();
    for (size_t i = 0; i < n_elements(rows); i++)
        for (unsigned cols = rows[i].least; cols <= rows[i].most; cols++) {
            struct grid *g = drawn(24, cols, true);
            char *head = grid_row(g, 1), got[80] = "";
            char *bar = strstr(head, "POWER AGAINST CAP "),
                 *power = strstr(head, "POWER ");
            char *rest = bar ? bar + 18 : power ? power + 6 : head + 9;
            for (char *word = strtok(rest, " "); word; word = strtok(NULL, " "))
                (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s",
                               *got ? " " : "", word);
            ok(strcmp(got, rows[i].head) == 0, "%u columns: %s", cols, got);
            free(head);
            grid_free(g);
        }
}

/* 200 x 50: names, reasons and states are whole, and boards have graphs of several rows
 * side by side.
 */
/* What its column cuts stands in full below: of the picked board and of its jobs. */
static void test_cut(void)
{
    set_up();
    t.picked = 2;
    (void)snprintf(t.board[2].by, sizeof t.board[2].by,
                   "cap by name of job 13: 70 %% of this board's default limit, 300 W");
    for (int i = 0; i < 3; i++)
        (void)snprintf(t.job[i].state, sizeof t.job[i].state,
                       "waits for 3 steps and 10 s of training");
    t.job[1].boards = 1;
    struct grid *g = drawn(26, 80, false);
    ok(row_has(g, 4, "cap by name of j…"), "a cause is cut in the table");
    is_row(
        g, 6,
        "GPU 2 capped by: cap by name of job 13: 70 % of this board's default limit, 300",
        "… and whole below it");
    is_row(g, 7, "W", "… in two rows");
    ok(row_has(g, 8, "GPU 2 power"), "the graphs begin below");
    unsigned row = list(g);
    ok(row_has(g, row + 1, "   12 anna     train-0.py   1-2     waits for 3 st…"),
       "a state is cut in the table");
    is_row(g, row + 2, "               waits for 3 steps and 10 s of training",
           "… and whole below it");
    ok(row_has(g, row + 3, "   13 anna") && row_has(g, row + 4, "   14 anna"),
       "but not that of a job on other boards");
    grid_free(g);
    t.picked = 1;
    g = drawn(24, 80, false);
    ok(row_has(g, 6, "GPU 1 power"), "a cause that fits has no further row");
    grid_free(g);
    g = drawn(50, 160, false);
    ok(!row_has(g, 6, "capped by"), "nor has one in a wider table");
    grid_free(g);
}

static void test_wide(void)
{
    static const char name[] = "NVIDIA H100 80GB HBM3",
                      by[] = "rule night-tariff: price 0.41 EUR/kWh > 0.30 EUR/kWh";
    static const char state[] = "trying 153 W (model expects 5.6 % lower EDP)";

    set_up();
    (void)snprintf(t.board[0].name, sizeof t.board[0].name, "%s", name);
    (void)snprintf(t.board[0].by, sizeof t.board[0].by, "%s", by);
    (void)snprintf(t.job[1].state, sizeof t.job[1].state, "%s", state);
    struct grid *g = drawn(50, 200, false);
    ok(row_has(g, 2, name) && row_has(g, 2, by), "name and reason are whole");
    ok(row_has(g, 1, "UTIL  MHZ     MEMORY     TODAY") && row_has(g, 2, " 98% 1380 "),
       "clock and memory are shown, too");
    ok(row_has(g, 6, "GPU 0 power, 93 s, 150..150 W") && row_has(g, 6, "GPU 1 power"),
       "two graphs beside each other");
    ok(row_has(g, 7, "300") && row_has(g, 19, "    0 "),
       "on a scale up to the highest limit");
    is_int(g->cell[(size_t)14 * 200 + 98].code, 0x2588,
           "half of the limit: half the height");
    is_int(g->cell[(size_t)12 * 200 + 98].code, ' ', "and no more");
    ok(row_has(g, 20, "GPU 2 power") &&
           row_has(g, 20, "GPU 3 power, 93 s, now: the driver hangs"),
       "the others below, and why there is nothing to draw");
    ok(list(g) == 34 && row_has(g, 36, state), "a state is whole");
    ok(row_has(g, 38, "GPU 0  NVIDIA H100 80GB HBM3") &&
           row_has(g, 39, "limit 300 W in force, 300 W wanted, 300 W original") &&
           row_has(g, 40, by) && row_has(g, 41, "CLAIMS ON GPU 0") &&
           row_has(g, 42, "the original limit of 300 W holds"),
       "then the picked board in detail");
    ok(row_has(g, 43, "EVENTS SINCE -") && row_has(g, 44, "none"), "then events");
    grid_free(g);
    t.n_boards = 40;
    for (size_t i = 4; i < 40; i++)
        t.board[i] = board((unsigned)i, 200, 210, "search of job 12");
    g = drawn(50, 200, false);
    ok(row_has(g, 42, "GPU 0 "), "many boards leave one row to the history");
    grid_free(g);
}

/* Keys as a person types them. */
static void type(const char *text)
{
    for (; *text; text++)
        (void)top_key(&t,
                      *text == 'q'   ? TOP_KEY_QUIT
                      : *text == 'c' ? TOP_KEY_CLAIMS
                                     : TOP_KEY_OTHER,
                      (const char[]){*text, '\0'});
}

static void test_filter(void)
{
    set_up();
    (void)snprintf(t.board[2].uuid, sizeof t.board[2].uuid, "GPU-5ab07c");
    (void)snprintf(t.job[1].user, sizeof t.job[1].user, "bert");
    t.board[0].n_jobs = 1;
    t.board[0].job = 13; /* bert's */
    ok(!top_key(&t, TOP_KEY_FILTER, "/"), "a key begins the filter");
    struct grid *g = drawn(24, 80, true);
    is_row(g, 23, "EnterKeep  EscClear  Filter:", "the line in which it is typed");
    grid_free(g);
    type("SEARCH of job 12/q");
    is_str(t.filter, "SEARCH of job 12/q", "keys are characters now");
    (void)top_key(&t, TOP_KEY_BACKSPACE, "");
    (void)top_key(&t, TOP_KEY_BACKSPACE, "");
    (void)top_key(&t, TOP_KEY_ENTER, "");
    g = drawn(24, 80, true);
    ok(row_has(g, 0, "4 GPUs  555 W of 730 W  today 21.60 MJ  simulated  filtered"),
       "the title still sums up the node");
    ok(row_has(g, 2, "  1 Tesla") && row_has(g, 3, "  2 Tesla"), "two boards are left");
    ok(row_has(g, 4, "GPU 1 "), "one of which is picked");
    ok(row_has(g, list(g) + 1, "no job matches the filter"), "no job has that");
    is_row(g, 23,
           "Filter: SEARCH of job 12 EscClear F1Help F2Claims F3Waste F4Filter F6Sort "
           "F9Free",
           "the filter stands in the last line");
    grid_free(g);
    (void)top_key(&t, TOP_KEY_DOWN, "j");
    is_int((long long)t.picked, 2, "down goes to the next that is left");
    (void)top_key(&t, TOP_KEY_DOWN, "j");
    is_int((long long)t.picked, 2, "and no further");
    (void)top_key(&t, TOP_KEY_HOME, "");
    is_int((long long)t.picked, 1, "home is the first that is left");
    ok(!top_key(&t, TOP_KEY_ESCAPE, "") && !t.filter[0], "Esc clears it");
    g = drawn(24, 80, true);
    ok(row_has(g, 2, "  0 Tesla") && row_has(g, list(g) + 1, "   12 anna"),
       "all is back");
    grid_free(g);

    (void)top_key(&t, TOP_KEY_FILTER, "");
    type("bert");
    g = drawn(24, 80, true);
    ok(row_has(g, 2, "  0 Tesla") && row_has(g, 3, "GPU 0 "),
       "while it is typed: the board of the job that is left");
    ok(row_has(g, list(g) + 1, "   13 bert") && !row_has(g, list(g) + 2, "anna"),
       "and that job");
    grid_free(g);
    (void)top_key(&t, TOP_KEY_ESCAPE, "");
    ok(!t.typing && !t.filter[0], "Esc ends the typing, too");
    (void)top_key(&t, TOP_KEY_FILTER, "");
    type("gpu-5AB");
    is_int((long long)top_boards_shown(&t).n, 1, "the begin of a UUID");
    (void)top_key(&t, TOP_KEY_BACKSPACE, "");
    type("x");
    g = drawn(24, 80, true);
    is_row(g, 2, "  no board matches the filter", "no board");
    grid_free(g);
    (void)top_key(&t, TOP_KEY_ESCAPE, "");
    (void)top_key(&t, TOP_KEY_FILTER, "");
    for (int i = 0; i < 3 * TOP_FILTER; i++)
        (void)top_key(&t, TOP_KEY_OTHER, "é"); /* two bytes */
    is_int((long long)strlen(t.filter), TOP_FILTER - 2, "a long text ends at whole ones");
    (void)top_key(&t, TOP_KEY_BACKSPACE, "");
    is_int((long long)strlen(t.filter), TOP_FILTER - 4, "which go as a whole");
    ok(top_key(&t, TOP_KEY_QUIT, ""), "^C leaves all the same");
}

static void test_looks(void)
{
    set_up();
    struct grid *g = drawn(24, 80, false);
    is_int(g->cell[(size_t)2 * 80 + 17].look, GRID_GOOD, "far under its cap");
    is_int(g->cell[(size_t)3 * 80 + 17].look, GRID_FULL, "held by its cap");
    is_int(g->cell[(size_t)4 * 80 + 17].look, GRID_NEAR, "close to its cap");
    is_int(g->cell[(size_t)2 * 80].look, GRID_PICKED, "the picked board");
    is_int(g->cell[(size_t)3 * 80].look, GRID_PLAIN, "another one");
    grid_free(g);
}

static void test_ascii(void)
{
    set_up();
    struct grid *g = drawn(24, 80, true);
    bool plain = true;
    for (size_t i = 0; i < (size_t)24 * 80; i++)
        plain &= g->cell[i].code < 0x7f;
    ok(plain, "nothing beyond ASCII");
    is_row(g, 2,
           "  0 Tesla V100-~ #######......|   150   300  61  98%  7.200 MJ original",
           "the same bar");
    grid_free(g);
}

static void test_claims(void)
{
    set_up();
    (void)top_key(&t, TOP_KEY_DOWN, "");
    (void)top_key(&t, TOP_KEY_CLAIMS, "");
    struct grid *g = drawn(24, 80, false);
    ok(row_has(g, list(g), "CLAIMS ON GPU 1"), "claims of the picked board");
    is_row(g, list(g) + 1, "> soft              215 W with job  search of job 12: edp",
           "the winner");
    is_row(g, list(g) + 2, "  named             250 W    59:59  user anna", "the other");
    grid_free(g);
    (void)top_key(&t, TOP_KEY_HOME, "");
    g = drawn(24, 80, false);
    ok(row_has(g, list(g) + 1, "none: the original limit of 300 W holds"), "no claims");
    grid_free(g);
    t.board[0].claims_known = false;
    g = drawn(24, 80, false);
    is_row(g, list(g) + 1, "  -", "not known whether there are any");
    grid_free(g);
    t.board[0].claims_known = true;
}

static void test_waste(void)
{
    set_up();
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(t.board[i].use, sizeof t.board[i].use, "working");
        t.board[i].use_s = t.board[i].memory_bytes = NAN;
    }
    (void)top_key(&t, TOP_KEY_CLAIMS, "");
    (void)top_key(&t, TOP_KEY_WASTE, "");
    struct grid *g = drawn(24, 80, false);
    ok(row_has(g, list(g) + 1, "none: no board is known to be idle"), "nothing is idle");
    is_row(g, list(g) + 2, "WASTED TODAY BY USER", "what was wasted today");
    is_row(g, list(g) + 3, "  no answer yet", "is not known yet");
    grid_free(g);
    (void)snprintf(t.board[1].use, sizeof t.board[1].use, "held");
    t.board[1].use_s = 11411;
    t.board[1].memory_bytes = 3.0 * (1 << 30);
    t.board[1].job = 12;
    t.board[1].n_jobs = 1;
    (void)snprintf(t.board[3].use, sizeof t.board[3].use, "nobody");
    t.board[3].use_s = 59;
    g = drawn(24, 80, false);
    is_row(g, list(g), "GPU WASTE            FOR      W     MEMORY  WHO HAS IT",
           "the heads");
    is_row(g, list(g) + 1,
           "  1 held         3:10:11    210   3072 MiB  12 anna train-0.py",
           "a board that is held");
    is_row(g, list(g) + 2, "  3 nobody          0:59      -          -  -", "nobody's");
    grid_free(g);
    t.board[1].n_jobs = 3;
    g = drawn(24, 60, true);
    ok(row_has(g, list(g) + 1, "12 and 2 more"), "of several jobs");
    grid_free(g);
    (void)top_key(&t, TOP_KEY_CLAIMS, "");
    g = drawn(24, 80, false);
    ok(row_has(g, list(g), "CLAIMS ON GPU 0"), "the claims instead");
    grid_free(g);
    (void)top_key(&t, TOP_KEY_WASTE, "");
    (void)top_key(&t, TOP_KEY_WASTE, "");
    g = drawn(24, 80, false);
    ok(row_has(g, list(g), "JOB USER"), "the jobs again");
    grid_free(g);
}

/* ---- what was wasted today ---- */

static int take_waste(const char *text)
{
    struct json *doc = NULL;
    uw_error err = {""};

    is_int(json_read("answer", text, strlen(text), &doc, NULL), 0, "an answer");
    int r = top_take_waste(&t, json_root(doc), &err);
    ok(r == 0 || err.text[0], "with a reason if it is refused: %s", err.text);
    json_free(doc);
    return r;
}

static const char some_waste[] =
    "{\"to\": \"2026-11-27T14:03:22Z\", \"money_currency\": \"EUR\", \"uses\": [], "
    "\"jobs\": [], \"users\": ["
    "{\"user\": null, \"uid\": 1007, \"energy_j\": 360000, \"time_s\": 5400,"
    " \"money\": null, \"money_covered\": 0},"
    "{\"user\": \"anna\", \"uid\": 1001, \"energy_j\": 7200000, \"time_s\": 90000,"
    " \"money\": 0.6, \"money_covered\": 1},"
    "{\"user\": \"bert\", \"uid\": 1002, \"energy_j\": 3600000, \"time_s\": 36000,"
    " \"money\": 0.15, \"money_covered\": 0.5}],"
    "\"projects\": ["
    "{\"project\": null, \"energy_j\": 3960000, \"time_s\": null, \"money\": 0.15,"
    " \"money_covered\": 0.4545454545},"
    "{\"project\": \"llm\", \"energy_j\": 7200000, \"time_s\": 90000, \"money\": 0.6,"
    " \"money_covered\": 1}]}";

static void test_wasted(void)
{
    set_up();
    t.waste = true;
    is_int(take_waste(some_waste), 0, "a report is taken");
    struct grid *g = drawn(24, 80, true);
    is_row(g, list(g) + 2,
           "WASTED TODAY BY USER               kWh     HOURS        EUR (80 %)  TO 14:03 "
           "UTC",
           "the heads, and of how much energy the price is known");
    is_row(g, list(g) + 3,
           " anna                            2.000     25.00             0.600",
           "the most energy first");
    is_row(g, list(g) + 4,
           " bert                            1.000     10.00             0.150",
           "the next");
    is_row(g, list(g) + 5,
           " uid 1007                        0.100      1.50                 -",
           "no name, no price");
    ok(row_has(g, list(g) + 6, "WASTED TODAY BY PROJECT            kWh"), "by project");
    ok(row_has(g, list(g) + 7, " llm                             2.000     25.00"),
       "one");
    ok(row_has(g, list(g) + 8, " (none)                          1.100         -"),
       "none, and hours that are not known");
    grid_free(g);
    g = drawn(16, 50, true); /* 8 rows: 2 for boards, 3 for users, 3 for projects */
    is_row(g, list(g) + 2, "WASTED TODAY BY USER               kWh     HOURS",
           "no room for money");
    is_row(g, list(g) + 3, " anna                            2.000     25.00",
           "the worst");
    is_row(g, list(g) + 4, " 2 more                          1.100     11.50",
           "the rest summed");
    ok(row_has(g, list(g) + 5, "BY PROJECT") && row_has(g, list(g) + 7, " (none) "),
       "all projects");
    grid_free(g);
    g = drawn(14, 80, true); /* 6 rows */
    is_row(g, list(g) + 3,
           " all 3                           3.100     36.50             0.750",
           "all in one row");
    grid_free(g);
}

static void test_wasted_trouble(void)
{
    bool shown = false;

    set_up();
    t.waste = true;
    is_int(take_waste("{\"to\": \"2026-11-27T14:03:22Z\", \"users\": []}"), -EINVAL,
           "no report of waste");
    is_int(take_waste("{\"uses\": [], \"users\": [], \"projects\": [], \"jobs\": []}"),
           -EINVAL, "without its end");
    is_str(t.wasted_to, "", "nothing has changed");
    is_int(take_waste("{\"to\": \"2026-11-27T14:03:22Z\", \"uses\": [], \"users\": [],"
                      "\"projects\": [], \"jobs\": []}"),
           0, "nothing was wasted");
    struct grid *g = drawn(24, 80, true);
    is_row(g, list(g) + 3, "  none: no job is known to waste energy", "is said");
    grid_free(g);
    (void)snprintf(t.wasted_trouble, sizeof t.wasted_trouble, "no answer in 60 s");
    g = drawn(24, 80, true);
    is_row(g, list(g) + 3, "  no answer in 60 s", "why it is unknown");
    for (unsigned row = 0; row < g->rows; row++)
        shown |= row_shows(g, row, "BY PROJECT");
    ok(!shown, "and no list by project");
    grid_free(g);
}

/* More than the model keeps: the sums stay. */
static void test_many_wasted(void)
{
    enum { MANY = 100 };
    static char text[200 * MANY + 200];
    size_t n = 0;

    n += (size_t)snprintf(text, sizeof text,
                          "{\"to\": \"2026-11-27T14:03:22Z\", \"uses\": [], \"jobs\": "
                          "[], \"projects\": [], \"users\": [");
    for (int i = 0; i < MANY; i++) /* 1..100 kJ, in no order */
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "%s{\"user\": \"u%d\", \"energy_j\": %d000, "
                              "\"time_s\": 36}",
                              i ? "," : "", i * 37 % MANY + 1, i * 37 % MANY + 1);
    (void)snprintf(text + n, sizeof text - n, "]}");
    set_up();
    t.waste = true;
    is_int(take_waste(text), 0, "many users");
    ok(t.users.n == TOP_WASTERS && t.users.n_rest == MANY - TOP_WASTERS,
       "the others are summed");
    for (size_t i = 0; i < t.users.n; i++)
        if (t.users.of[i].energy_j != 1e3 * (double)(MANY - i))
            ok(false, "user %zu has %g J", i, t.users.of[i].energy_j);
    struct grid *g = drawn(24, 80, true);
    is_row(g, list(g) + 3, " u100                            0.028      0.01",
           "the worst");
    ok(row_has(g, list(g) + 13, " 90 more                         1.137      0.90"),
       "the rest");
    grid_free(g);
}

/* No list has a head without a row, and all rows are used that are needed. */
static void test_share_rows(void)
{
    static const struct {
        unsigned need[TOP_LISTS], room, got[TOP_LISTS];
    } rows[] = {
        {{2, 4, 3}, 20, {2, 4, 3}}, {{9, 9, 9}, 16, {6, 5, 5}},
        {{9, 2, 0}, 16, {9, 2, 0}}, {{9, 9, 9}, 5, {3, 2, 0}},
        {{9, 9, 9}, 2, {2, 0, 0}},  {{9, 9, 9}, 1, {0, 0, 0}},
        {{2, 3, 3}, 3, {2, 0, 0}},
    };

    for (size_t i = 0; i < n_elements(rows); i++) {
        unsigned got[TOP_LISTS];
        top_share_rows(rows[i].need, rows[i].room, got);
        ok(memcmp(got, rows[i].got, sizeof got) == 0, "%u rows: %u, %u, %u", rows[i].room,
           got[0], got[1], got[2]);
    }
}

static void test_keys(void)
{
    set_up();
    ok(!top_key(&t, TOP_KEY_UP, "") && t.picked == 0, "up stops at the first board");
    (void)top_key(&t, TOP_KEY_END, "");
    ok(!top_key(&t, TOP_KEY_DOWN, "") && t.picked == 3, "down at the last");
    (void)top_key(&t, TOP_KEY_SORT, "");
    struct grid *g = drawn(24, 80, false);
    ok(row_has(g, list(g), "*ENERGY") && row_has(g, list(g) + 1, "train-0"),
       "most energy first");
    grid_free(g);
    (void)top_key(&t, TOP_KEY_SORT, "");
    g = drawn(24, 80, false);
    ok(row_has(g, list(g) + 1, "train-1") && row_has(g, list(g) + 3, "train-2"),
       "most saved first, unknown last");
    grid_free(g);
    (void)top_key(&t, TOP_KEY_HELP, "");
    g = drawn(24, 80, false);
    ok(row_has(g, 0, "live view"), "help");
    ok(row_has(g, 7, "±: half of the 95 % interval."), "… says what an interval is");
    grid_free(g);
    ok(!top_key(&t, TOP_KEY_FREEZE, "") && !t.help && !t.frozen,
       "any key leaves the help");
    ok(top_key(&t, TOP_KEY_QUIT, ""), "q leaves");
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
    (void)top_key(&t, TOP_KEY_END, "");
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
    ok(row_has(g, list(g) + 1, "?????[2J") || row_has(g, list(g) + 1, "????[2J"),
       "no control character and no broken UTF-8 gets through");
    grid_free(g);
}

static struct json *parsed(const char *text)
{
    struct json *doc = NULL;
    uw_error err = {""};

    ok(json_read("test", text, strlen(text), &doc, &err) == 0, "parses %s", err.text);
    return doc;
}

static void take_jobs_and_claims(const struct json_value *jobs,
                                 const struct json_value *claims)
{
    uw_error err = {""};

    ok(top_take_jobs(&t, jobs, &err) == 0, "jobs");
    is_int(t.n_jobs, 2, "those that run");
    is_str(t.job[0].gpus, "0-2,5,7-8", "boards in runs");
    is_str(t.job[0].name, "(another's)", "another user's job has no name");
    is_str(t.job[1].user, "1001", "a user without a name");
    is_str(t.job[1].state, "found", "a job without a search tells where it is from");
    ok(isnan(t.job[1].saved), "saved: unknown");
    ok(top_take_claims(&t, claims, &err) == 0 && t.board[0].n_claims == 1, "claims");
    ok(isinf(t.board[0].claim[0].left_s), "without an end");
}

/* The daemon's answers, as its OpenAPI describes them. */
static void test_answers(void)
{
    static const char node[] =
        "{\"hostname\": \"n7\", \"utc\": \"2026-11-21T20:01:02.345Z\", "
        "\"simulated\": true, \"actuator\": {\"up\": false}}";
    static const char gpus[] =
        "{\"simulated\": true, \"gpus\": [{\"gpu\": 3, \"uuid\": "
        "\"GPU-a\", \"name\": \"V\", "
        "\"power_w\": 99.5, \"temperature_c\": null, \"use\": \"held\", \"use_for_s\": "
        "7, "
        "\"memory_used_bytes\": null, \"jobs\": [4], \"limits\": "
        "{\"enforced_mw\": 150000, "
        "\"max_mw\": 300000, \"original_mw\": 300000}, \"cap\": "
        "{\"state\": \"held\", \"by\": "
        "\"claim\", \"claim_who\": \"search of job 4\", \"claim_why\": "
        "\"edp\", \"target_mw\": "
        "140000}}]}";
    static const char jobs[] =
        "{\"jobs\": [{\"id\": 4, \"running\": true, \"user\": \"anna\", \"name\": null, "
        "\"gpus\": "
        "[0, 1, 2, 5, 7, 8], \"search\": {\"goal\": \"edp\", \"state\": \"holding\", "
        "\"cap_mw\": "
        "150000, \"saved\": {\"fraction\": 0.2, \"fraction_half\": 0.01}}, \"energy_j\": "
        "5}, "
        "{\"id\": 3, \"running\": false}, {\"id\": 5, \"running\": true, \"uid\": 1001, "
        "\"source\": \"found\", \"search\": null, \"gpus\": [], \"energy_j\": 0, "
        "\"half_j\": null}]}";
    static const char claims[] =
        "{\"uuid\": \"GPU-a\", \"claims\": [{\"kind\": \"hard\", \"who\": \"budget\", "
        "\"why\": "
        "\"row 3\", \"cap_mw\": 150000, \"left_s\": null, \"wins\": true}]}";
    uw_error err = {""};
    auto_(json_free) struct json *n = parsed(node), *g = parsed(gpus), *j = parsed(jobs);
    auto_(json_free) struct json *c = parsed(claims);

    t = (struct top){.picked = 9};
    ok(top_take_node(&t, json_root(n), &err) == 0 && t.read_only && t.simulated, "node");
    is_str(t.clock, "20:01:02", "its clock");
    ok(top_take_gpus(&t, json_root(g), &err) == 0 && t.n_boards == 1, "boards");
    ok(t.picked == 0, "what was picked is there still, or the last one is");
    is_str(t.board[0].by, "search of job 4: edp", "who decides");
    is_near(t.board[0].cap_w, 150, 1e-9, "milliwatts become watts");
    is_str(t.board[0].use, "held", "what it does");
    ok(t.board[0].use_s == 7 && t.board[0].job == 4 && isnan(t.board[0].memory_bytes),
       "for how long, whose, with memory that is not known");
    ok(isnan(t.board[0].temp_c) && isnan(t.board[0].util), "null and absent are unknown");
    ok(isnan(t.board[0].history_w[0]), "no history yet");
    top_tick(&t);
    ok(top_take_gpus(&t, json_root(g), &err) == 0, "the same board again");
    is_near(t.board[0].history_w[0], 99.5, 1e-9, "keeps its history");
    take_jobs_and_claims(json_root(j), json_root(c));
    ok(top_take_gpus(&t, json_root(g), &err) == 0 && !t.board[0].claims_known &&
           t.board[0].n_claims == 0,
       "the claims of an earlier look are not shown as those of this one");
    ok(t.n_jobs == 2 && t.job[0].energy_j == 5 && isnan(t.job[1].energy_j),
       "a job of which nothing is booked has no energy that is known, not 0 J");
    struct top before = t;
    ok(top_take_gpus(&t, json_root(j), &err) == -EINVAL &&
           top_take_jobs(&t, json_root(g), &err) == -EINVAL &&
           top_take_node(&t, json_root(g), &err) == -EINVAL,
       "another answer is refused");
    ok(before.n_boards == t.n_boards && before.n_jobs == t.n_jobs &&
           strcmp(before.board[0].uuid, t.board[0].uuid) == 0 &&
           before.job[0].id == t.job[0].id && strcmp(before.host, t.host) == 0,
       "and nothing has changed");
}

/* The daemon's history fills the samples before the first one. */
static void test_history(void)
{
    static const char text[] =
        "{\"gpu\": 0, \"uuid\": \"GPU-a\", \"length_s\": 10, \"samples\": "
        "[{\"time_s\": 4, \"over_s\": 4, \"power_w\": 100}, "
        "{\"time_s\": 8.5, \"over_s\": 4.5, \"power_w\": 200}]}";
    auto_(json_free) struct json *doc = parsed(text);
    uw_error err = {""};

    set_up();
    t.looks = 0;
    t.board[0] = board(0, 300, 300, "");
    (void)snprintf(t.board[0].uuid, sizeof t.board[0].uuid, "GPU-a");
    ok(top_take_history(&t, json_root(doc), &err) == 0, "a history");
    top_tick(&t);
    const double *h = t.board[0].history_w;
    ok(h[0] == 300 && isnan(h[TOP_HISTORY - 1]) && h[TOP_HISTORY - 2] == 200 &&
           h[TOP_HISTORY - 5] == 200 && h[TOP_HISTORY - 6] == 100 &&
           h[TOP_HISTORY - 9] == 100 && isnan(h[TOP_HISTORY - 11]),
       "each sample stands where its time was, the newest 1.5 s are unknown");
    ok(top_take_history(&t, json_get(json_root(doc), "samples"), &err) == -EINVAL,
       "another answer is refused");
}

/* Columns behind wide and combining characters do not move. */
static void test_wide_characters(void)
{
    static const struct {
        const char *text, *utf8, *ascii;
        unsigned width;
    } cases[] = {
        {"電力価格", "電力価格|", "????????|", 8},
        {"電力価格", "電力価…|", "??????~|", 7},
        {"電力価格", "電力 …|", "?????~|", 6},
        {"電力", "電力 |", "???? |", 5},
        {"e\xcc\x81x", "e\xcc\x81x |", "ex |", 3},
        {"xe\xcc\x81", "xe\xcc\x81|", "xe|", 2},
        {"\xcc\x81x", "x |", "x |", 2},
        {"a\xff", "a?|", "a?|", 2},
    };

    (void)setlocale(LC_CTYPE, "C.UTF-8");
    for (size_t i = 0; i < n_elements(cases); i++)
        for (int ascii = 0; ascii < 2; ascii++) {
            struct grid *g = grid_new(1, 20, ascii);
            grid_field(g, 0, 0, cases[i].width, GRID_PLAIN, cases[i].text);
            (void)grid_text(g, 0, cases[i].width, GRID_PLAIN, "|");
            is_row(g, 0, ascii ? cases[i].ascii : cases[i].utf8, cases[i].text);
            grid_free(g);
        }
    struct grid *g = grid_new(1, 20, false);
    (void)grid_text(g, 0, 0, GRID_PLAIN, "a電\xcc\x81z");
    grid_field(g, 0, 2, 2, GRID_PLAIN, "bc");
    is_row(g, 0, "a bc", "the blank left of an overwritten character has no mark");
    grid_field(g, 0, 1, 1, GRID_PLAIN, "\xcc\x81\xcc\x82x");
    is_row(g, 0, "axbc", "a mark at a field's begin does not join the one before");
    (void)grid_text(g, 0, 1, GRID_PLAIN, "\xcc\x81y");
    is_row(g, 0, "aybc", "… nor one at a text's begin");
    grid_free(g);
    (void)setlocale(LC_CTYPE, "C");
}

int main(void)
{
    test_wide_characters();
    test_answers();
    test_history();
    test_standard();
    test_sums();
    test_narrow_and_trouble();
    test_columns();
    test_cut();
    test_wide();
    test_filter();
    test_looks();
    test_ascii();
    test_claims();
    test_waste();
    test_wasted();
    test_wasted_trouble();
    test_many_wasted();
    test_share_rows();
    test_keys();
    test_sizes();
    return done();
}
