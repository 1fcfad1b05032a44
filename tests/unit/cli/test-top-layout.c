/* Rows of the parts of `underwatt top`, and the parts that only large terminals show. */
#include <math.h>
#include <stdlib.h>

#include "cli/top.h"
#include "tap.h"

static struct top t;

static struct top_needs needs(unsigned boards, unsigned jobs)
{
    return (struct top_needs){
        .boards = boards, .list = 1 + (jobs ? jobs : 1), .details = 6, .events = 6};
}

static unsigned sum(const struct top_layout *l)
{
    return 3 + l->boards + l->cause + l->graphs + l->list + l->jobs + l->details +
           l->events;
}

/* Every size, with few and many boards and jobs. */
static void test_all_sizes(void)
{
    static const unsigned boards[] = {1, 2, 4, 8, 16, 64}, jobs[] = {0, 1, 3, 12, 200};
    static const unsigned cols[] = {40, 80, 120, 200, 300};
    unsigned over = 0, empty = 0, cut = 0, low = 0, hidden = 0;

    for (size_t b = 0; b < 6; b++)
        for (size_t j = 0; j < 5; j++)
            for (size_t c = 0; c < 5; c++)
                for (unsigned rows = 8; rows <= 120; rows++) {
                    struct top_needs n = needs(boards[b], jobs[j]);
                    n.cause = (unsigned)j % 3;
                    struct top_layout l = top_layout(rows, cols[c], &n);
                    unsigned left = rows > sum(&l) ? rows - sum(&l) : 0;
                    unsigned list = n.list > 4 ? n.list : 4;
                    bool fits = 3 + n.boards + list + 1 <= rows;
                    over += sum(&l) > rows;
                    empty += left > 2 && left * 10 > rows;
                    cut += fits && (l.boards < n.boards || l.list < list);
                    low += fits && 3 + n.boards + list + 3 <= rows && l.graphs < 3;
                    hidden +=
                        (size_t)l.bands * l.beside < n.boards && l.graphs / 6 > l.bands;
                }
    is_int(over, 0, "the parts never take more rows than there are");
    is_int(empty, 0, "and leave 2 rows or a tenth at most");
    is_int(cut, 0, "boards and jobs are whole where they fit");
    is_int(low, 0, "the graphs have three rows or more where these are left");
    is_int(hidden, 0, "and no board lacks a graph for which a band of 6 rows is left");
}

static void test_layouts(void)
{
    static const struct {
        unsigned rows, cols, boards, jobs;
        struct top_layout want;
    } cases[] = {
        {50, 200, 1, 1, {1, 30, 4, 0, 6, 6, .bands = 1, .beside = 1}},
        {50, 200, 2, 2, {2, 29, 4, 0, 6, 6, .bands = 1, .beside = 2}},
        {50, 200, 8, 3, {8, 24, 4, 0, 6, 5, .bands = 3, .beside = 3}},
        {50, 200, 16, 3, {16, 27, 4, 0, 0, 0, .bands = 4, .beside = 3}},
        {40, 120, 2, 2, {2, 19, 4, 0, 6, 6, .bands = 1, .beside = 2}},
        {24, 80, 2, 2, {2, 15, 4, 0, 0, 0, .bands = 2, .beside = 1}},
        {24, 80, 16, 2, {16, 1, 4, 0, 0, 0, .bands = 1, .beside = 1}},
        {24, 80, 2, 40, {2, 1, 18, 0, 0, 0, .bands = 1, .beside = 1}},
        {60, 200, 2, 90, {2, 6, 49, 0, 0, 0, .bands = 1, .beside = 2}},
        {80, 300, 8, 3, {8, 53, 4, 0, 6, 6, .bands = 2, .beside = 4}},
        {7, 80, 8, 3, {4, 0, 0, 0, 0, 0, .bands = 1, .beside = 1}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct top_needs n = needs(cases[i].boards, cases[i].jobs);
        struct top_layout l = top_layout(cases[i].rows, cases[i].cols, &n);
        if (!ok(memcmp(&l, &cases[i].want, sizeof l) == 0, "%u x %u, %u boards, %u jobs",
                cases[i].cols, cases[i].rows, cases[i].boards, cases[i].jobs))
            printf("# boards %u, graphs %u, list %u, details %u, events %u; %u x %u\n",
                   l.boards, l.graphs, l.list, l.details, l.events, l.bands, l.beside);
    }
    struct top_needs n = needs(2, 2);
    n.list = 3;
    n.jobs = 3;
    n.details = 0;
    struct top_layout l = top_layout(50, 200, &n);
    ok(l.list == 4 && l.jobs == 3 && l.details == 0, "claims with the jobs below them");
    n = needs(2, 2);
    n.cause = 2;
    l = top_layout(24, 80, &n);
    ok(l.cause == 2 && l.graphs == 13 && sum(&l) == 24, "a cause that its row cuts");
    l = top_layout(50, 200, &n);
    ok(l.cause == 0 && l.details == 6, "not beside the details, which have it");
    l = top_layout(12, 80, &n);
    ok(l.cause == 0 && l.graphs == 3 && sum(&l) == 12, "nor without room");
}

static void set_up(void)
{
    t = (struct top){.clock = "14:03:22", .began = "14:00:00", .look_s = 1, .looks = 1};
    t.n_boards = 2;
    for (unsigned i = 0; i < 2; i++) {
        t.board[i] = (struct top_board){.index = i,
                                        .name = "V100",
                                        .power_w = 100,
                                        .cap_w = 300,
                                        .target_w = NAN,
                                        .original_w = 300,
                                        .max_w = 300,
                                        .clock_mhz = NAN,
                                        .memory_bytes = 3 << 20,
                                        .use = "held",
                                        .use_s = 75};
        (void)snprintf(t.board[i].by, sizeof t.board[i].by, "original");
    }
}

static bool shows(unsigned rows, unsigned cols, const char *what)
{
    struct grid *g = grid_new(rows, cols, true);
    bool found = false;

    top_draw(&t, g);
    for (unsigned row = 0; row < rows; row++) {
        char *text = grid_row(g, row);
        found = found || (text && strstr(text, what));
        free(text);
    }
    grid_free(g);
    return found;
}

static void test_events(void)
{
    set_up();
    for (unsigned i = 0; i < 2; i++) {
        struct top_board now = t.board[i];
        now.target_w = 215;
        (void)snprintf(now.by, sizeof now.by, "search of job 7");
        top_note_board(&t, &t.board[i], &t.board[i]);
        top_note_board(&t, &t.board[i], &now);
    }
    is_int(t.n_events, 1, "no change is no event; one of two boards is one event");
    ok(shows(50, 120, "14:03:22  GPU 0-1: cap 215 W, before 300 W: search of job 7"),
       "new caps");
    struct top_board lost = t.board[1];
    lost.power_w = NAN;
    top_note_board(&t, &t.board[1], &lost);
    ok(shows(50, 120, "14:03:22  GPU 1: no answer"), "a board without an answer");
    top_note_board(&t, &lost, &t.board[1]);
    ok(shows(50, 120, "14:03:22  GPU 1: answers"), "which answers again");
    struct top_job job = {.id = 9, .user = "anna", .name = "train", .gpus = "0-1"};
    struct top_job stuck = job;
    (void)snprintf(stuck.state, sizeof stuck.state, "no progress for 2 min");
    top_note_job(&t, NULL, &job);
    top_note_job(&t, &job, &stuck);
    stuck.energy_j = 3.6e6;
    top_note_job(&t, &stuck, NULL);
    ok(shows(50, 120, "job 9, anna train: started on GPU 0-1") &&
           shows(50, 120, "job 9, anna train: no progress for 2 min") &&
           shows(50, 120, "job 9, anna train: ended, 3.600 MJ"),
       "a job begins, changes and ends");
    for (unsigned i = 0; i < 3 * TOP_EVENTS; i++) {
        (void)snprintf(t.clock, sizeof t.clock, "14:05:%02u", i % 60);
        top_note_job(&t, NULL, &job);
    }
    ok(!shows(80, 120, "no progress") && shows(80, 120, "14:05:11  job 9"),
       "the newest are kept");
}

/* Two commands without a daemon, each with a job 1 on a board of its own. */
static void test_own_jobs(void)
{
    static const char both[] =
        "{\"jobs\": [{\"id\": 1, \"running\": true, \"gpus\": [0], \"source\": \"a\"},"
        " {\"id\": 1, \"running\": true, \"gpus\": [1], \"source\": \"b\"}]}";
    auto_(json_free) struct json *doc = NULL;
    uw_error err = {""};

    set_up();
    t.n_events = 0;
    ok(json_read("jobs", both, sizeof both - 1, &doc, &err) == 0 &&
           top_take_jobs(&t, json_root(doc), &err) == 0 && t.n_jobs == 2,
       "two jobs of one number");
    t.n_events = 0;
    ok(top_take_jobs(&t, json_root(doc), &err) == 0 && t.n_events == 0,
       "which do not change are no events");
}

/* A cause that no column holds is whole below the boards, or among the details. */
static void test_details(void)
{
    static const char why[] = "rule night-tariff: price 0.41 EUR/kWh > 0.30 EUR/kWh";

    set_up();
    (void)snprintf(t.board[0].by, sizeof t.board[0].by, "%s", why);
    ok(!shows(12, 80, why) && shows(24, 80, why) && shows(40, 80, why),
       "80 columns: the cause is below");
    ok(shows(40, 120, "SM clock -; memory of processes 3 MiB; held for 1:15"),
       "unknown is '-'");
    t.board[0].n_claims = 1;
    t.board[0].claim[0] = (struct top_claim){.kind = "soft", .cap_w = 200};
    (void)snprintf(t.board[0].claim[0].who, TOP_TEXT, "rule night-tariff");
    (void)snprintf(t.board[0].claim[0].why, TOP_TEXT,
                   "price 0.41 EUR/kWh > 0.30 EUR/kWh");
    ok(shows(40, 80, "  rule night-tariff: price 0.41 EUR/kWh > 0.30") &&
           shows(40, 80, "                                    EUR/kWh"),
       "a reason goes on in the next row");
    (void)top_key(&t, TOP_KEY_CLAIMS, "");
    ok(shows(40, 80, "JOB USER") && !shows(40, 80, "SM clock"),
       "claims first: the jobs are below");
}

int main(void)
{
    test_all_sizes();
    test_layouts();
    test_events();
    test_own_jobs();
    test_details();
    return done();
}
