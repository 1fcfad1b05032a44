/* Reports: sums, groups, whose jobs are seen, the check against the meters; and that
 * rolling up changes none of it.
 */
#include <errno.h>

#include "help-json.h"
#include "help.h"
#include "io/ledger-report.h"
#include "tap.h"

/* Six days of two boards: anna's job 1 on board 0 for four days, ben's job 2 for one on
 * board 1, then nothing; 5 % of board 0 unattributed.  An interval of 10 s each minute.
 */
enum { DAYS = 6, A_DAY = 1440 };

static void fill(struct ledger *l)
{
    for (int64_t day = 0; day < DAYS; day++) {
        auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
        for (int64_t i = 0; i < A_DAY; i++) {
            int64_t at = day * 8640 + i * 6;
            (void)help_interval(b, at, 0, day < 4 ? 1 : 0,
                                200000 + (uint32_t)(i % 7) * 10000,
                                2000 + (double)(i % 13) * 0.1234567, day < 4 ? 0.95 : 1);
            (void)help_interval(b, at, 1, day == 2 ? 2 : 0, 300000, 500.0000004, 1);
        }
        uw_error err = {{0}};
        if (ledger_write(l, b, &err) < 0)
            ok(false, "day %d is written: %s", (int)day, err.text);
    }
}

static void put_jobs(struct ledger *l)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    struct ledger_job a = help_job(1, 1000, "anna"), c = help_job(2, 1001, "ben");
    static const struct ledger_label vision[] = {{"project", "vision"}};

    c.label = vision;
    c.n_labels = 1;
    c.boards = 2;
    c.saved_known = false;
    c.ended_utc_ns = T0 + 3 * DAY;
    (void)ledger_add_job(b, &a);
    (void)ledger_add_job(b, &c);
    (void)ledger_write(l, b, NULL);
}

struct got {
    struct json *doc;
    const struct json_value *root, *rows, *totals;
};

static void get(struct ledger *l, const struct ledger_query *q, struct got *ret)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    char *text = NULL;
    uw_error err = {{0}};

    *ret = (struct got){0};
    int r = ledger_report(l, q, o, &err);
    if (r >= 0)
        r = json_out_string(o, &text, &err);
    if (r >= 0)
        r = json_read("report", text, strlen(text), &ret->doc, &err);
    if (r < 0) {
        ok(false, "a report: %s", err.text);
        free(text);
        return;
    }
    free(text);
    ret->root = json_root(ret->doc);
    ret->rows = json_get(ret->root, "rows");
    ret->totals = json_get(ret->root, "totals");
}

static const char *text(const struct json_value *v, const char *key)
{
    const char *t = json_as_text(json_get(v, key));
    return t ? t : "(none)";
}

static struct ledger_query query(const char *by, const char *from, const char *to)
{
    struct ledger_query q;
    uw_error err = {{0}};

    ledger_query_init(&q, T0 + 100 * DAY);
    int r = ledger_query_set(&q, "by", by, T0, &err);
    if (r >= 0 && from)
        r = ledger_query_set(&q, "from", from, T0, &err);
    if (r >= 0 && to)
        r = ledger_query_set(&q, "to", to, T0, &err);
    if (r < 0)
        ok(false, "a query: %s", err.text);
    return q;
}

static void test_totals(struct ledger *l)
{
    struct got g;
    struct ledger_query q = query("job", NULL, NULL);
    bool holds = false;

    get(l, &q, &g);
    double meter = number(g.totals, "meter_j");
    ok(meter > 1e7, "the meters saw %.1f J", meter);
    is_near(number(g.totals, "attributed_j") + number(g.totals, "idle_j") +
                number(g.totals, "unattributed_j"),
            meter, 0.2, "the parts make it up");
    ok(json_get_bool(g.totals, "holds", &holds, NULL) == 0 && holds,
       "and the report says so");
    ok(fabs(number(g.totals, "difference")) < 1e-6, "to %.2g",
       number(g.totals, "difference"));
    json_free(g.doc);
    q = query("job", "2026-03-01", NULL);
    get(l, &q, &g);
    ok(json_get_bool(g.totals, "holds", &holds, NULL) == -EINVAL,
       "of nothing nothing is said");
    is_int(json_count(g.rows), 0, "no rows");
    json_free(g.doc);
}

static void test_groups(struct ledger *l)
{
    struct got g;
    struct ledger_query q = query("job", NULL, NULL);

    get(l, &q, &g);
    is_int(json_count(g.rows), 2, "two jobs");
    const struct json_value *row = json_at(g.rows, 0);
    is_str(text(row, "user"), "anna", "anna's used most");
    is_near(number(row, "gpu_s"), 4.0 * A_DAY * 10, 1e-6, "for so long");
    is_near(number(row, "saved_j"), 5000, 1e-9, "saved so much");
    is_near(number(row, "saved_half_j"), 250, 1e-9, "give or take");
    is_near(number(row, "looks"), 12, 0, "measured against so many looks");
    is_near(number(row, "model_saved"), 0.21, 1e-9, "the model's word beside it");
    is_near(number(row, "model_slowdown"), 1.06, 1e-9, "of time, too");
    is_str(text(json_get(row, "labels"), "team"), "vision", "with its labels");
    is_str(text(row, "began"), "2026-01-01T00:00:00Z", "began");
    is_str(text(row, "ended"), "(none)", "runs");
    ok(isnan(number(json_at(g.rows, 1), "saved_j")), "unknown is null, not 0");
    is_near(number(json_at(g.rows, 1), "energy_j"), A_DAY * 500.0, 1e-3, "ben's energy");
    json_free(g.doc);
    q = query("user", NULL, NULL);
    get(l, &q, &g);
    is_int(json_count(g.rows), 2, "two users");
    is_int(number(json_at(g.rows, 1), "uid"), 1001, "the second");
    is_int(number(json_at(g.rows, 0), "jobs"), 1, "with one job");
    json_free(g.doc);
    q = query("label:team", NULL, NULL);
    get(l, &q, &g);
    is_str(text(json_at(g.rows, 0), "value"), "vision", "by a label");
    is_str(text(json_at(g.rows, 1), "value"), "(none)", "and those without it");
    json_free(g.doc);
    q = query("gpu", NULL, NULL);
    get(l, &q, &g);
    is_int(json_count(g.rows), 2, "two boards");
    is_str(text(json_at(g.rows, 1), "uuid"), "GPU-1", "by name");
    is_near(number(json_at(g.rows, 1), "attributed_j"), A_DAY * 500.0, 1e-3, "to jobs");
    is_near(number(json_at(g.rows, 1), "idle_j"), 5.0 * A_DAY * 500, 5e-3, "idle");
    json_free(g.doc);
    q = query("day", "2026-01-03", "2026-01-03");
    get(l, &q, &g);
    is_int(json_count(g.rows), 1, "one day");
    is_str(text(json_at(g.rows, 0), "day"), "2026-01-03", "that one");
    is_near(number(json_at(g.rows, 0), "idle_j"), 0, 1e-9, "in which nothing idled");
    json_free(g.doc);
}

static void test_own(struct ledger *l)
{
    struct got g;
    struct ledger_query q = query("job", NULL, NULL);
    static const char *const by[] = {"job", "user", "label:project"};

    for (size_t i = 0; i < n_elements(by); i++) {
        q = query(by[i], NULL, NULL);
        q.one_user = true;
        q.uid = 1001;
        get(l, &q, &g);
        is_int(json_count(g.rows), 1, "ben sees his own by %s", by[i]);
        is_near(number(json_at(g.rows, 0), "energy_j"), A_DAY * 500.0, 1e-3, "all of it");
        ok(number(g.totals, "attributed_j") > A_DAY * 2000.0, "and the boards' totals");
        json_free(g.doc);
    }
    q = query("job", NULL, NULL);
    q.one_user = true;
    q.uid = 0;
    get(l, &q, &g);
    is_int(json_count(g.rows), 0, "uid 0 has no jobs: it is no wildcard");
    json_free(g.doc);
}

static void test_figures(struct ledger *l)
{
    struct got g;
    struct ledger_query q = query("user", NULL, NULL);

    get(l, &q, &g);
    ok(!json_get(json_at(g.rows, 0), "gco2e") && !json_get(json_at(g.rows, 0), "cost"),
       "no carbon and no cost where none is configured");
    json_free(g.doc);
    (void)ledger_query_set(&q, "user", "nobody", T0, NULL);
    get(l, &q, &g);
    bool known = true;
    ok(json_as_bool(json_get(json_get(g.root, "only"), "known"), &known) && !known,
       "a user that the ledger does not know");
    json_free(g.doc);
    q = query("user", NULL, "2000-01-01");
    (void)ledger_query_set(&q, "user", "anna", T0, NULL);
    get(l, &q, &g);
    ok(!json_get(json_get(g.root, "only"), "known"), "anna, in an empty period");
    json_free(g.doc);
    q = query("user", NULL, NULL);
    (void)ledger_query_set(&q, "gco2e_kwh", "360", T0, NULL);
    (void)ledger_query_set(&q, "price_kwh", "0.5 EUR", T0, NULL);
    get(l, &q, &g);
    const struct json_value *row = json_at(g.rows, 1);
    is_near(number(row, "gco2e"), A_DAY * 500.0 / 3.6e6 * 360, 1e-3, "grams");
    is_near(number(row, "cost"), A_DAY * 500.0 / 3.6e6 * 0.5, 1e-6, "money");
    is_str(text(g.root, "currency"), "EUR", "of which kind");
    json_free(g.doc);
}

/* ---- rolling up ---- */

static const char *const sums[] = {
    "SELECT sum(energy_uj) FROM energy",
    "SELECT sum(energy_uj) FROM energy WHERE job = 1",
    "SELECT sum(energy_uj) FROM energy WHERE job = 2",
    "SELECT sum(energy_uj) FROM energy WHERE kind = 2",
    "SELECT sum(energy_uj) FROM energy WHERE kind = 3",
    "SELECT sum(energy_uj) FROM energy WHERE board = 1",
    "SELECT sum(energy_uj) FROM energy WHERE board = 2 AND kind = 2",
    "SELECT sum(span_ms) FROM energy",
    "SELECT sum(energy_uj) FROM meter",
    "SELECT sum(energy_uj) FROM meter WHERE board = 2",
};

/* Of job 1. */
static double half_j(struct ledger *l)
{
    struct ledger_query q = query("job", NULL, NULL);
    struct got g;

    get(l, &q, &g);
    double v = number(json_at(g.rows, 0), "half_j");
    json_free(g.doc);
    return v;
}

static void test_tidy(struct ledger *l, const char *path)
{
    double half = half_j(l);
    int64_t before[n_elements(sums)];
    static const struct {
        int64_t age;
        int64_t most;
        const char *left;
    } cases[] = {
        {3 * DAY, 100000,
         "SELECT count(*) FROM energy WHERE res = 0 AND begin_ms <"
         " 1767225600000 + 86400000"},
        {30 * DAY, 3000, "SELECT count(*) FROM energy WHERE res < 3600"},
        {500 * DAY, 30, "SELECT count(*) FROM energy WHERE res < 86400"},
    };
    uw_error err = {{0}};

    for (size_t i = 0; i < n_elements(sums); i++)
        before[i] = help_number(path, sums[i]);
    for (size_t k = 0; k < n_elements(cases); k++) {
        int steps = 0, r;
        while ((r = ledger_tidy(l, T0 + cases[k].age, &err)) == 1)
            steps++;
        ok(r == 0 && steps > 0, "after %d days: %d steps %s", (int)(cases[k].age / DAY),
           steps, err.text);
        for (size_t i = 0; i < n_elements(sums); i++)
            is_int(help_number(path, sums[i]), before[i], "kept exactly: %s", sums[i]);
        is_near(half_j(l), half, 1e-6 * half, "the interval is the same: +- %.3f J",
                half);
        is_int(help_number(path, cases[k].left), 0, "nothing finer is left");
        int64_t rows = help_number(path, "SELECT count(*) FROM energy");
        ok(rows <= cases[k].most, "%d rows, %d at most", (int)rows, (int)cases[k].most);
    }
    is_int(ledger_tidy(l, T0 + 500 * DAY, &err), 0, "then there is nothing to do");
    is_int(help_number(path,
                       "SELECT max(cap_mw) BETWEEN 229000 AND 230100 FROM energy WHERE"
                       " board = 1 AND job = 1"),
           1, "a day's cap is the mean over its time");
}

static void test_forget(struct ledger *l, const char *path)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    struct ledger_claim c = {.id = 1,
                             .made_utc_ns = T0,
                             .until_utc_ns = LEDGER_FOREVER,
                             .kind = "soft",
                             .mw = 1000};

    for (int64_t i = 0; i < 1200; i++) {
        (void)ledger_add_cap(b,
                             &(struct ledger_cap){T0 + i * S, 0, 1000, 1000, "claim", 1});
        (void)ledger_add_event(b,
                               &(struct ledger_event){.utc_ns = T0 + i * S, .kind = "x"});
    }
    (void)ledger_add_claim(b, &c);
    c.id = 2;
    (void)ledger_add_claim(b, &c);
    (void)ledger_add_claim_end(b, &(struct ledger_claim_end){2, 0, T0 + S, "withdrawn"});
    (void)ledger_write(l, b, NULL);
    int steps = 0;
    while (ledger_tidy(l, T0 + 30 * DAY + 600 * S, NULL) == 1)
        steps++;
    ok(steps >= 2, "forgetting takes %d steps", steps);
    is_int(help_number(path, "SELECT count(*) FROM cap"), 600, "caps are kept 30 days");
    is_int(help_number(path, "SELECT count(*) FROM event"), 1200, "events longer");
    while (ledger_tidy(l, T0 + 401 * DAY, NULL) == 1)
        ;
    is_int(help_number(path, "SELECT count(*) FROM event"), 0, "not for ever");
    is_int(help_number(path, "SELECT count(*) FROM claim"), 1, "ended claims neither");
    is_int(help_number(path, "SELECT id FROM claim"), 1, "one that is in force stays");
}

/* ---- processors ---- */

/* Two days of a board, a package and its memory, an interval of 10 s each minute: job 1
 * alone on the first day, on the second it is not, then nobody.
 */
static void fill_domains(struct ledger *l)
{
    static const struct ledger_domain domains[] = {
        {"rapl:package-0", "package-0", false},
        {"rapl:package-0:dram", "dram-0", true},
    };
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    struct ledger_job a = help_job(1, 1000, "anna");
    static const double watts[] = {80.123456, 6.5};

    is_int(ledger_domains(l, domains, 2, NULL), 0, "a package and its memory");
    (void)ledger_add_job(b, &a);
    for (int64_t i = 0; i < 2 * A_DAY; i++) {
        bool first = i < A_DAY;
        (void)help_interval(b, i * 6, 0, 1, 300000, 3000, 1);
        for (size_t d = 0; d < 2; d++)
            (void)help_interval(b, i * 6, LEDGER_DOMAIN(d), first ? 1 : 0, 0,
                                watts[d] * 10, first ? 1 : 0.25);
    }
    uw_error err = {{0}};
    is_int(ledger_write(l, b, &err), 0, "written %s", err.text);
}

static void test_domains(struct ledger *l)
{
    struct got g;
    struct ledger_query q = query("job", NULL, NULL);
    bool holds = false;
    struct ledger_booked had[LEDGER_BOARDS + 1] = {{0}};
    size_t n = 0;
    const double package = 801.23456 * A_DAY, memory = 65.0 * A_DAY;

    get(l, &q, &g);
    const struct json_value *cpu = json_get(g.root, "cpu"), *row = json_at(g.rows, 0);
    is_near(number(g.totals, "energy_j"), 3000.0 * 2 * A_DAY, 1e-3,
            "sums of boards have no processor in them");
    is_near(number(g.totals, "meter_j"), 3000.0 * 2 * A_DAY, 1e-3, "nor have the meters");
    is_near(number(row, "energy_j"), 3000.0 * 2 * A_DAY, 1e-3, "nor has the job");
    is_near(number(row, "gpu_s"), 10.0 * 2 * A_DAY, 1e-6, "nor its hours of GPUs");
    is_near(number(row, "cpu_j"), package + memory, 0.01, "it stands beside: alone");
    is_near(number(cpu, "attributed_j"), package + memory, 0.01, "to jobs");
    is_near(number(cpu, "idle_j"), 0.25 * (package + memory), 0.01, "idle");
    is_near(number(cpu, "unattributed_j"), 0.75 * (package + memory), 0.01, "the rest");
    is_near(number(cpu, "meter_j"), 2 * (package + memory), 0.01, "what was counted");
    ok(json_get_bool(cpu, "holds", &holds, NULL) == 0 && holds &&
           fabs(number(cpu, "difference")) < 1e-6,
       "the parts make it up: %.2g", number(cpu, "difference"));
    const struct json_value *days = json_get(g.root, "days");
    is_near(number(json_at(days, 1), "cpu_j"), package + memory, 0.01, "of one day");
    is_near(number(json_at(days, 1), "energy_j"), 3000.0 * A_DAY, 1e-3, "… the boards");
    is_int(json_count(json_get(g.root, "gpus")), 1, "no processor is called a GPU");
    json_free(g.doc);
    is_int(ledger_job_energy(l, 1, had, &n, NULL), 0, "what a restart takes over");
    is_int((long long)n, 1, "is of boards, too");
    is_near(had[0].energy_j, 3000.0 * 2 * A_DAY, 1e-3, "… all of it");
    is_near(had[0].time_s, 10.0 * 2 * A_DAY, 1e-6, "… and its time");
    struct ledger_sums sums_of = {0};
    is_int(ledger_board_sums(l, LEDGER_DOMAIN(1), 0, &sums_of, NULL), 0, "of a domain");
    is_near(sums_of.meter_j, 2 * memory, 0.01, "its own sum");

    q = query("cpu", NULL, NULL);
    get(l, &q, &g);
    is_int(json_count(g.rows), 2, "a row each");
    is_str(text(json_at(g.rows, 0), "domain"), "package-0", "the package");
    is_str(text(json_at(g.rows, 0), "kind"), "package", "is one");
    is_str(text(json_at(g.rows, 1), "kind"), "memory", "memory is memory");
    is_near(number(json_at(g.rows, 0), "energy_j"), 2 * package, 0.01, "its energy");
    is_near(number(json_at(g.rows, 1), "attributed_j"), memory, 0.01, "a job's");
    json_free(g.doc);

    q = query("user", "2026-01-02", NULL);
    get(l, &q, &g);
    ok(isnan(number(json_at(g.rows, 0), "cpu_j")), "none of it is his: null, not 0");
    json_free(g.doc);
    q = query("user", NULL, NULL);
    get(l, &q, &g);
    is_near(number(json_at(g.rows, 0), "cpu_j"), package + memory, 0.01, "by user");
    json_free(g.doc);
    q = query("label:team", NULL, NULL);
    q.domains.step_j = 1000;
    get(l, &q, &g);
    is_near(number(json_at(g.rows, 0), "cpu_j"), floor((package + memory) / 1000) * 1000,
            1e-6, "in whole steps for some");
    ok(fmod(number(json_get(g.root, "cpu"), "idle_j"), 1000) == 0 &&
           fmod(number(json_at(json_get(g.root, "cpus"), 0), "unattributed_j"), 1000) ==
               0 &&
           fmod(number(json_at(json_get(g.root, "days"), 0), "cpu_j"), 1000) == 0,
       "everywhere");
    ok(isnan(number(json_get(g.root, "cpu"), "co2_covered")) &&
           isnan(number(json_at(json_get(g.root, "cpus"), 0), "co2_g")),
       "emissions would tell more");
    is_near(number(g.totals, "energy_j"), 3000.0 * 2 * A_DAY, 1e-3, "boards exactly");
    json_free(g.doc);
}

/* Whole periods alone, whatever is asked for. */
static void test_periods(struct ledger *l)
{
    static const struct {
        const char *from, *to;
        int64_t until_s;
        unsigned hours;
    } cases[] = {
        {"2026-01-01T00:00:00Z", "2026-01-01T03:00:00Z", 864000, 3},
        {"2026-01-01T00:00:10Z", "2026-01-01T03:59:50Z", 864000, 2},
        {"2026-01-01T00:00:00Z", "2026-01-01T06:00:00Z", 3 * 3600 + 3599, 3},
        {"2026-01-01T00:10:00Z", "2026-01-01T00:50:00Z", 864000, 0},
    };
    struct got g;

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct ledger_query q = query("cpu", cases[i].from, cases[i].to);
        q.domains =
            (struct ledger_coarse){1, UINT64_C(3600000000000), T0 + cases[i].until_s * S};
        get(l, &q, &g);
        is_near(number(json_get(g.root, "cpu"), "meter_j"),
                floor(60 * 866.23456 * cases[i].hours), 1, "%s to %s: %u h",
                cases[i].from, cases[i].to, cases[i].hours);
        json_free(g.doc);
    }
}

static void domains(struct ledger *l)
{
    uw_error err = {{0}};

    fill_domains(l);
    test_domains(l);
    test_periods(l);
    while (ledger_tidy(l, T0 + 500 * DAY, &err) == 1)
        ;
    is_int(help_number(help_path("c.sqlite"), "SELECT count(*) FROM energy WHERE"
                                              " res < 86400"),
           0, "rolled up as boards are");
    test_domains(l);
}

/* Boards whose rows came in another order stand by their index. */
static void test_order(struct ledger *l)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    struct ledger_query q = query("gpu", NULL, NULL);
    struct got g;
    static const size_t came[] = {1, 0, 2};

    for (size_t i = 0; i < 3; i++)
        (void)help_interval(b, (int64_t)i, came[i], 0, 300000, 100, 1);
    is_int(ledger_write(l, b, NULL), 0, "three boards, the second first");
    get(l, &q, &g);
    const struct json_value *caps = json_get(g.root, "caps");
    is_int(json_count(caps), 3, "caps of three boards");
    for (size_t i = 0; i < json_count(caps); i++)
        is_int(number(json_at(caps, i), "gpu"), (int)i, "in their order");
    json_free(g.doc);
}

/* Jobs 1 (half of it at 200 g/kWh), 2 (never covered) and 3 (at -100 g/kWh), 1 kWh each;
 * a little of job 3 is in another currency.
 */
static void fill_charges(struct ledger *l)
{
    static const struct ledger_factor carbon = {"carbon", "grid", "g/kWh", false},
                                      euro = {"price", "market", "EUR/kWh", false},
                                      dollar = {"price", "market", "USD/kWh", false};
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    const int64_t kwh = INT64_C(3600000000000);
    struct ledger_energy e = {.begin_utc_ns = T0,
                              .end_utc_ns = T0 + 10 * S,
                              .kind = LEDGER_JOB,
                              .energy_j = 3.6e6,
                              .simulated = true};

    for (uint64_t id = 1; id <= 3; id++) {
        struct ledger_job job = help_job(id, 1000, "anna");
        job.saved_j = 7.2e6;
        job.saved_half_j = 3.6e5;
        (void)ledger_add_job(b, &job);
        e.job = id;
        memset(e.charge, 0, sizeof e.charge);
        if (id == 1)
            e.charge[LEDGER_CO2] = (struct ledger_amount){&carbon, 100000, kwh / 2};
        if (id == 1)
            e.charge[LEDGER_COST] = (struct ledger_amount){&euro, 300000, kwh};
        if (id == 3)
            e.charge[LEDGER_CO2] = (struct ledger_amount){&carbon, -100000, kwh};
        if (id == 3)
            e.charge[LEDGER_COST] = (struct ledger_amount){&dollar, 70000, kwh / 4};
        is_int(ledger_add_energy(b, &e), 0, "job %d", (int)id);
    }
    is_int(ledger_write(l, b, NULL), 0, "are written");
}

static void test_charges(struct ledger *l)
{
    struct got g;
    struct ledger_query q = query("job", NULL, NULL);

    fill_charges(l);
    get(l, &q, &g);
    is_near(number(g.totals, "co2_g"), 0, 1e-9, "100 g and -100 g");
    is_near(number(g.totals, "co2_covered"), 0.5, 1e-9, "of half of the energy");
    ok(isnan(number(g.totals, "marginal_g")) && number(g.totals, "marginal_covered") == 0,
       "marginal ones are unknown, not 0");
    is_near(number(g.totals, "money"), 0.3, 1e-9, "euros");
    is_near(number(g.totals, "money_covered"), 1 / 3.0, 1e-7, "without the dollars");
    is_str(text(g.root, "money_currency"), "EUR", "in the currency of most energy");
    for (size_t i = 0; i < 3; i++) {
        static const double want[] = {200, (double)NAN, -200}, half[] = {10, 0, 10};
        const struct json_value *row = json_at(g.rows, i);
        double saved = number(row, "saved_co2_g");
        ok(isnan(want[i]) ? isnan(saved) && isnan(number(row, "co2_g"))
                          : fabs(saved - want[i]) < 1e-9 &&
                                fabs(number(row, "saved_co2_half_g") - half[i]) < 1e-9,
           "job %zu saved %g g", i + 1, saved);
    }
    json_free(g.doc);
    q = query("user", NULL, NULL);
    get(l, &q, &g);
    is_near(number(json_at(g.rows, 0), "saved_co2_g"), 0, 1e-9, "a user's jobs");
    is_near(number(json_at(g.rows, 0), "saved_co2_half_g"), 20, 1e-9, "their halves");
    is_near(number(json_at(g.rows, 0), "co2_covered"), 0.5, 1e-9, "their coverage");
    json_free(g.doc);
    q = query("day", NULL, NULL);
    get(l, &q, &g);
    is_near(number(json_at(g.rows, 0), "money_covered"), 1 / 3.0, 1e-7, "a day");
    json_free(g.doc);
}

/* A job's energy stays by board in the next run, whose boards are others. */
static void test_boards_of_job(void)
{
    auto_(ledger_close) struct ledger *l = NULL;
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    struct ledger_booked had[LEDGER_BOARDS + 1] = {{0}};
    struct ledger_job job = help_job(7, 1000, "anna");
    size_t n = 0;
    uw_error err = {{0}};

    is_int(help_open("boards.sqlite", T0, &l, &err), 0, "a ledger of four boards");
    (void)help_boards(l, 4);
    (void)ledger_add_job(b, &job);
    for (size_t board = 0; board < 4; board++) /* the last is another job's */
        for (int64_t i = 0; i <= (int64_t)board; i++)
            (void)help_interval(b, i, board, board < 3 ? 7 : 8, 200000, 1000, 1);
    is_int(ledger_write(l, b, &err), 0, "is written %s", err.text);
    is_int(ledger_job_energy(l, 7, had, &n, &err), 0, "a job of three of them");
    is_int((long long)n, 3, "has a sum each");
    for (size_t i = 0; i < n && i < 3; i++) {
        is_int((long long)had[i].board, (long long)i, "of board %zu", i);
        is_near(had[i].energy_j, 1000.0 * (double)(i + 1), 1e-9, "its energy");
        is_near(had[i].time_s, 10.0 * (double)(i + 1), 1e-9, "in its time");
        is_int(had[i].method, LEDGER_COUNTED, "by its counter");
    }
    ledger_close(take(l));
    is_int(help_open("boards.sqlite", T0 + DAY, &l, &err), 0, "opened with one board");
    (void)help_boards(l, 1);
    is_int(ledger_job_energy(l, 7, had, &n, &err), 0, "the same job");
    is_int((long long)n, 2, "has two sums");
    is_int((long long)had[0].board, 0, "of the board that is there");
    is_near(had[0].energy_j, 1000, 1e-9, "its energy");
    ok(had[1].board == SIZE_MAX, "and of the others together");
    is_near(had[1].energy_j, 5000, 1e-9, "theirs");
    is_near(had[1].time_s, 30, 1e-9, "in the time of the longest");
}

/* One row of a job is of readings: the noise of the counted rows still adds up in
 * squares, in what a restart takes over as in the report.
 */
static void test_both_methods(void)
{
    auto_(ledger_close) struct ledger *l = NULL;
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    struct ledger_booked had[LEDGER_BOARDS + 1] = {{0}};
    struct ledger_job job = help_job(7, 1000, "anna");
    struct ledger_query q = query("job", NULL, NULL);
    struct got g;
    size_t n = 0;
    uw_error err = {{0}};

    is_int(help_open("methods.sqlite", T0, &l, &err), 0, "a ledger of one board");
    (void)help_boards(l, 1);
    (void)ledger_add_job(b, &job);
    for (int64_t i = 0; i < 5; i++) {
        struct ledger_energy e = {.begin_utc_ns = T0 + i * 10 * S,
                                  .end_utc_ns = T0 + (i + 1) * 10 * S,
                                  .kind = LEDGER_JOB,
                                  .job = 7,
                                  .energy_j = 1000,
                                  .half_j = i == 2 ? 30 : 50,
                                  .method = i == 2 ? LEDGER_SUMMED : LEDGER_COUNTED,
                                  .simulated = true};
        (void)ledger_add_energy(b, &e);
    }
    is_int(ledger_write(l, b, &err), 0, "is written %s", err.text);
    const double want = hypot(4 * 4 + 30, sqrt(4 * (50 * 50 - 4 * 4)));
    is_int(ledger_job_energy(l, 7, had, &n, &err), 0, "a job of counter and readings");
    is_int((long long)n, 1, "has one sum");
    is_near(hypot(had[0].half_fixed_j, sqrt(had[0].half_noise2_j2)), want, 1e-5,
            "half of its interval");
    is_near(had[0].half_fixed_j, 4 * 4 + 30, 1e-5, "… of which this part adds up");
    get(l, &q, &g);
    is_near(number(json_at(g.rows, 0), "half_j"), want, 1e-3, "as in the report");
    json_free(g.doc);
}

int main(void)
{
    auto_(ledger_close) struct ledger *l = NULL, *m = NULL, *c = NULL, *o = NULL,
                                      *e = NULL;
    uw_error err = {{0}};

    if (!help_begin())
        return skip_all("no folder in /tmp");
    is_int(help_open("r.sqlite", T0, &l, &err), 0, "a ledger %s", err.text);
    (void)help_boards(l, 2);
    put_jobs(l);
    fill(l);
    test_totals(l);
    test_groups(l);
    test_own(l);
    test_figures(l);
    test_tidy(l, help_path("r.sqlite"));
    test_totals(l);
    test_groups(l);
    test_own(l);
    (void)help_open("f.sqlite", T0, &m, &err);
    (void)help_boards(m, 1);
    test_forget(m, help_path("f.sqlite"));
    (void)help_open("c.sqlite", T0, &c, &err);
    (void)help_boards(c, 1);
    domains(c);
    (void)help_open("o.sqlite", T0, &o, &err);
    (void)help_boards(o, 3);
    test_order(o);
    (void)help_open("e.sqlite", T0, &e, &err);
    (void)help_boards(e, 1);
    test_charges(e);
    test_boards_of_job();
    test_both_methods();
    help_end();
    return done();
}
