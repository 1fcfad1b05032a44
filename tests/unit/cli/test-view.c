#include <stdlib.h>

#include "base/auto.h"
#include "chart/canvas.h"
#include "cli/view.h"
#include "tap.h"

#define W(w) ((uint32_t)(w)*1000u)

static const struct sweep_run runs[] = {
    {W(300), 100, 30000, 0},   {W(100), 240, 27000, 100}, {W(200), 110, 22000, 340},
    {W(150), 140, 21000, 450}, {W(300), 102, 30600, 590}, {W(200), 112, 22400, 690},
    {W(250), 112, 26000, 800}, {W(300), 101, 30300, 912},
};

static struct sweep *sweep;
static struct sweep_drift drift;

static struct view view_of(const char *workload, const char *label)
{
    return (struct view){
        .sweep = sweep,
        .drift = &drift,
        .runs = runs,
        .n_runs = n_elements(runs),
        .simulated = true,
        .board = "Test board",
        .board_note = "uncalibrated",
        .workload = workload,
        .label = label,
        .work_unit = "one run",
        .least_mw = W(50),
        .boards = 2,
        .method = "Made up for a test.",
    };
}

typedef int (*view_fn)(const struct view *v, FILE *to, uw_error *err);

/* What a view writes; free() it. */
static char *written(view_fn fn, const struct view *v, size_t *ret_len)
{
    char *text = NULL;
    uw_error err = {{0}};

    FILE *mem = open_memstream(&text, ret_len);
    ok(fn(v, mem, &err) == 0, "a view is written %s", err.text);
    (void)fclose(mem);
    return text;
}

static const char table[] =
    "SIMULATED: ./train on Test board (uncalibrated), sum of 2 boards, one run\n"
    "5 caps from 100 to 300 W, 1 to 2 runs each, the default limit 3 times\n"
    "\n"
    "              cap, W  mean, W energy, kJ  +- %   change  time, s  +- %   change\n"
    "default          300    300.0      30.30  2.46             101.0  2.46\n"
    "min E            150    150.0      21.00        -30.7 %    140.0        +38.6 %\n"
    "min EDP          200    200.0      22.20 11.45  -26.7 %    111.0 11.45   +9.9 %\n"
    "min EDS(2)       200    200.0      22.20 11.45  -26.7 %    111.0 11.45   +9.9 %\n"
    "min EDS(1.5)     200    200.0      22.20 11.45  -26.7 %    111.0 11.45   +9.9 %\n"
    "slowdown:1.05    300    300.0      30.30  2.46             101.0  2.46\n"
    "\n"
    "What more time buys:\n"
    "  at most  1 %     300 W   energy    0.0 %   time    0.0 %\n"
    "  at most  2 %     300 W   energy    0.0 %   time    0.0 %\n"
    "  at most  5 %     300 W   energy    0.0 %   time    0.0 %\n"
    "  at most 10 %     200 W   energy  -26.7 %   time   +9.9 %\n"
    "\n"
    "Pareto front: 3 of 5 caps.\n"
    "+-: half of the 95 % interval of a mean.\n"
    "Over the sweep the 3 runs at the default limit changed by +1.3 % in time and\n"
    "+1.3 % in energy (+-19.1 and +-19.1 points): no significant drift.\n";

static const char csv[] =
    "cap_mw,runs,time_s,time_sd_s,energy_j,energy_sd_j,power_w,power_sd_w,time_rel,"
    "energy_rel,edp_rel,eds2,eds1_5,pareto,reference,simulated\n"
    "100000,1,240,0,27000,0,112.5,0,2.37623762,0.891089109,2.11743947,1.63366337,"
    "1.88118812,0,0,1\n"
    "150000,1,140,0,21000,0,150,0,1.38613861,0.693069307,0.960690128,1.03960396,"
    "1.15511551,1,0,1\n"
    "200000,2,111,1.41421,22200,282.843,200,0,1.0990099,0.732673267,0.805215175,"
    "0.915841584,0.97689769,1,0,1\n"
    "250000,1,112,0,26000,0,232.142857,0,1.10891089,0.858085809,0.951540699,"
    "0.98349835,1.02530253,0,0,1\n"
    "300000,3,101,1,30300,300,300,0,1,1,1,1,1,1,1,1\n";

static void test_golden(void)
{
    struct view v = view_of("./train", "./train");
    size_t len;
    auto_(mem_free) char *got_table = written(view_table, &v, &len);
    auto_(mem_free) char *got_csv = written(view_csv, &v, &len);

    is_str(got_table, table, "the table");
    is_str(got_csv, csv, "the CSV");
}

/* Whatever a command is called, pages and pictures stay whole. */
static void test_hostile(void)
{
    static const char name[] = "</script><b>&\"\x01\xff\xc3 \xe2\x82\xac";
    char label[64];
    size_t len;

    view_label(name, label, sizeof label);
    is_str(label, "</script><b>&\" ?? \xe2\x82\xac", "a label has no broken bytes");
    struct view v = view_of(name, label);
    auto_(mem_free) char *page = written(view_html, &v, &len);
    auto_(mem_free) char *svg = written(view_svg, &v, &len);
    ok(strstr(page, "<b>") == NULL && strstr(svg, "<b>") == NULL,
       "no element is smuggled");
    size_t scripts = 0;
    for (const char *p = page; (p = strstr(p, "</script>")) != NULL; p++)
        scripts++;
    is_int(scripts, 2, "two scripts end, no more");
    ok(strstr(page, "&lt;/script&gt;&lt;b&gt;&amp;&quot;") != NULL, "the name is shown");
    ok(strstr(page, "\\u003c/script") != NULL, "it is in the data, made harmless");
}

/* The unit of a job's energy is that of all other views. */
static void test_unit(void)
{
    static const struct {
        double j;
        const char *unit;
    } cases[] = {{900, "J"}, {1500, "kJ"}, {3e6, "MJ"}, {2e9, "GJ"}};
    struct view v = view_of("./train", "./train");
    double was = sweep->point[sweep->ref].energy_j;

    for (size_t i = 0; i < n_elements(cases); i++) {
        sweep->point[sweep->ref].energy_j = cases[i].j;
        is_str(view_energy_unit(&v).name, cases[i].unit, "a unit");
    }
    sweep->point[sweep->ref].energy_j = was;
}

static void test_label(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", ""},
        {"short", "short"},
        {"sixteen are fine", "sixteen are fine"},
        {"seventeen are not", "seventeen are\xe2\x80\xa6"},
        {"caf\xc3\xa9 caf\xc3\xa9 caf\xc3\xa9", "caf\xc3\xa9 caf\xc3\xa9 c\xe2\x80\xa6"},
        {"\xc0\xaf", "??"},
        {"\xed\xa0\x80", "???"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"a\tb\nc", "a b c"},
    };
    for (size_t i = 0; i < n_elements(cases); i++) {
        char label[17];
        view_label(cases[i].text, label, sizeof label);
        is_str(label, cases[i].want, "a label");
    }
}

/* Sweeps that leave nothing to scale by are drawn all the same. */
static void test_odd_sweeps(void)
{
    static const struct sweep_run flat[] = {
        {W(100), 10, 500, 0}, {W(200), 10, 500, 1}, {W(300), 10, 500, 2}};
    static const struct {
        const char *name;
        size_t n;
        uint32_t ref;
    } cases[] = {{"one cap", 1, W(100)}, {"all alike", 3, W(200)}};
    struct sweep *kept = sweep;

    for (size_t i = 0; i < n_elements(cases); i++) {
        size_t len;
        sweep = NULL;
        (void)sweep_fold(flat, cases[i].n, cases[i].ref, NULL, &sweep, NULL);
        struct view v = view_of("x", "x");
        auto_(mem_free) char *svg = written(view_svg, &v, &len);
        ok(!strstr(svg, "nan") && !strstr(svg, "inf"), "%s: no coordinate is amiss",
           cases[i].name);
        auto_(mem_free) char *page = written(view_html, &v, &len);
        ok(len > 1000, "%s: a page", cases[i].name);
        sweep_free(sweep);
    }
    sweep = kept;
}

static void test_full_disk(void)
{
    struct view v = view_of("x", "x");
    static const view_fn fns[] = {view_table, view_csv, view_json,
                                  view_svg,   view_png, view_html};
    uw_error err;

    for (size_t i = 0; i < n_elements(fns); i++) {
        FILE *full = fopen("/dev/full", "we");
        if (!full) {
            skip_one("full disk", "no /dev/full");
            return;
        }
        (void)setvbuf(full, NULL, _IONBF, 0);
        ok(fns[i](&v, full, &err) < 0, "a full disk is a failure of view %zu", i);
        (void)fclose(full);
    }
}

int main(void)
{
    uw_error err;

    sweep_drift(runs, n_elements(runs), W(300), &drift);
    if (sweep_fold(runs, n_elements(runs), W(300), NULL, &sweep, &err) < 0)
        return 1;
    test_golden();
    test_hostile();
    test_unit();
    test_label();
    test_odd_sweeps();
    test_full_disk();
    sweep_free(sweep);
    canvas_forget_fonts();
    return done();
}
