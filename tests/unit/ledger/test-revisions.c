/* Later values of a factor: what they change of booked rows is a row of its own, once. */
#include <errno.h>
#include <math.h>

#include "help.h"
#include "io/json.h"
#include "io/ledger-report.h"
#include "tap.h"

#define QUARTER (900 * S)
#define G INT64_C(1000000) /* of g/kWh, in a factor */

static const struct ledger_factor grid = {"carbon", "signals grid", "g/kWh", true},
                                  hand = {"carbon", "set by user anna", "g/kWh", false},
                                  market = {"price", "signals market", "EUR/kWh", false};

/* 36 kJ in a row of 10 s: 1 g/kWh is 10 mg. */
static void put_row(struct ledger_batch *b, int64_t begin, uint64_t job,
                    const struct ledger_factor *factor, int64_t g)
{
    struct ledger_energy e = {.begin_utc_ns = begin,
                              .end_utc_ns = begin + 10 * S,
                              .kind = job ? LEDGER_JOB : LEDGER_IDLE,
                              .job = job,
                              .board = job ? 0 : 1,
                              .energy_j = 36000,
                              .simulated = true};

    if (factor)
        e.charge[LEDGER_CO2] = (struct ledger_amount){factor, 10 * g, 36000000000};
    is_int(ledger_add_energy(b, &e), 0, "a row");
}

/* Three quarters of a job on board 0 and of idle board 1: 300 g/kWh, as estimated; then
 * nothing known; then 500 by hand.
 */
static void fill(struct ledger *l)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    struct ledger_job job = {.id = 1,
                             .source = "run",
                             .name = "train",
                             .user = "anna",
                             .uid = 1000,
                             .began_utc_ns = T0,
                             .boards = 1,
                             .held = 1};
    uw_error err = {""};

    is_int(ledger_add_job(b, &job), 0, "a job");
    for (int64_t i = 0; i < 270; i++)
        for (uint64_t id = 0; id < 2; id++)
            put_row(b, T0 + i * 10 * S, id,
                    i < 90    ? &grid
                    : i < 180 ? NULL
                              : &hand,
                    i < 90 ? 300 : 500);
    is_int(ledger_write(l, b, &err), 0, "are booked %s", err.text);
}

/* Values of source for the first hour: g in the first quarter, then `more`. */
static int revise_by(struct ledger *l, const char *source, int64_t g, int64_t more,
                     int64_t now)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    const struct ledger_value value[] = {
        {T0, T0 + QUARTER, g * G, false},
        {T0 + QUARTER, T0 + 4 * QUARTER, more * G, false}};
    uw_error err = {""};

    for (int64_t i = 0; i < 4; i++)
        (void)ledger_add_revision(
            b, &(struct ledger_revision){.charge = LEDGER_CO2,
                                         .signal = "carbon",
                                         .source = source,
                                         .unit = "g/kWh",
                                         .begin_utc_ns = T0 + i * QUARTER,
                                         .utc_ns = now,
                                         .value = value,
                                         .n = 2});
    is_int((long long)ledger_batch_rows(b), 4, "four quarters are looked at");
    return ledger_write(l, b, &err);
}

static int64_t count(const char *path)
{
    return help_number(path, "SELECT count(*) FROM revision");
}

static int64_t revised(const char *path)
{
    return help_number(path, "SELECT ifnull(sum(amount), 0) FROM revision");
}

/* What the last write says of itself. */
static void told_is(const struct ledger *l, uint64_t rows, int64_t mg, const char *when)
{
    const struct ledger_revised *v = ledger_revised(l);

    ok(v->rows[LEDGER_CO2] == rows && v->amount[LEDGER_CO2] == mg &&
           v->rows[LEDGER_MARGINAL] + v->rows[LEDGER_COST] == 0,
       "%s: %d rows, %d mg are told", when, (int)v->rows[LEDGER_CO2],
       (int)v->amount[LEDGER_CO2]);
}

static int64_t booked(const char *path)
{
    return help_number(path, "SELECT sum(co2_mg) FROM energy");
}

static double number(const struct json_value *row, const char *key)
{
    double v = (double)NAN;

    return json_as_double(json_get(row, key), &v) ? v : (double)NAN;
}

/* Grams, those booked, and how much is covered, of the sum and of the job. */
/* The sum over all classes of the report of waste; *ret_covered: of its energy. */
static double waste_g(struct ledger *l, int64_t from, int64_t to, double *ret_covered)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    auto_(json_free) struct json *doc = NULL;
    auto_(mem_free) char *text = NULL;
    struct ledger_query q;
    double g = 0, j = 0, covered_j = 0;
    uw_error err = {""};

    ledger_query_init(&q, T0 + DAY);
    q.from_utc_ns = from;
    q.to_utc_ns = to;
    q.waste = true;
    is_int(ledger_report(l, &q, o, &err), 0, "a report of waste %s", err.text);
    (void)json_out_string(o, &text, &err);
    is_int(json_read("report", text, strlen(text), &doc, &err), 0, "%s", err.text);
    const struct json_value *uses = json_get(json_root(doc), "uses");
    for (size_t i = 0; i < json_count(uses); i++) {
        const struct json_value *use = json_at(uses, i);
        g += number(use, "co2_g");
        j += number(use, "energy_j");
        covered_j += number(use, "energy_j") * number(use, "co2_covered");
    }
    *ret_covered = covered_j / j;
    return g;
}

static void report_is(struct ledger *l, double g, double by, double covered)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    auto_(json_free) struct json *doc = NULL;
    auto_(mem_free) char *text = NULL;
    struct ledger_query q;
    uw_error err = {""};

    ledger_query_init(&q, T0 + DAY);
    is_int(ledger_report(l, &q, o, &err), 0, "a report %s", err.text);
    (void)json_out_string(o, &text, &err);
    is_int(json_read("report", text, strlen(text), &doc, &err), 0, "%s", err.text);
    const struct json_value *totals = json_get(json_root(doc), "totals");
    const struct json_value *job = json_at(json_get(json_root(doc), "rows"), 0);
    ok(fabs(number(totals, "co2_g") - g) < 1e-6 &&
           fabs(number(totals, "co2_revised_g") - by) < 1e-6 &&
           fabs(number(totals, "co2_booked_g") - (g - by)) < 1e-6 &&
           fabs(number(totals, "co2_covered") - covered) < 1e-7,
       "%g g, %g of them revised, of %g", number(totals, "co2_g"),
       number(totals, "co2_revised_g"), number(totals, "co2_covered"));
    double waste_covered = 0,
           in_waste = waste_g(l, q.from_utc_ns, q.to_utc_ns, &waste_covered);
    ok(fabs(in_waste - g) < 1e-6 && fabs(waste_covered - covered) < 1e-7,
       "the report of waste has the same: %g g of %g", in_waste, waste_covered);
    ok(fabs(number(job, "co2_g") - g / 2) < 1e-6 &&
           fabs(number(job, "co2_revised_g") - by / 2) < 1e-6,
       "half of it the job's: %g", number(job, "co2_g"));
}

static void test_once(void)
{
    const char *path = help_path("r.sqlite");
    const int64_t now = T0 + 4 * QUARTER;
    struct ledger *l = NULL;
    uw_error err = {""};

    (void)help_open("r.sqlite", T0, &l, &err);
    (void)help_boards(l, 2);
    fill(l);
    int64_t before = booked(path); /* per quarter and board 90 rows: 300 g/kWh: 270 g */
    is_int(before, 2 * (270000 + 450000), "what was booked");
    report_is(l, 1440, 0, 2 / 3.0);
    is_int(revise_by(l, "signals grid", 300, 300, now), 0, "the same value as booked");
    is_int(count(path), 2, "covers what nothing covered, and changes no more");
    report_is(l, 1980, 540, 1);
    is_int(revise_by(l, "signals grid", 360, 300, now), 0, "another value than booked");
    is_int(count(path), 4, "a row a board of the first quarter");
    told_is(l, 2, 2 * 54000, "by 60 g/kWh of 900 Wh");
    is_int(revised(path), 2 * (270000 + 54000), "by 60 g/kWh");
    is_int(help_number(path, "SELECT count(*) FROM revision r JOIN factor f ON f.id ="
                             " r.factor WHERE r.res = 900 AND f.source = 'signals grid'"
                             " AND NOT f.estimated AND ifnull(r.job, 0) = (r.kind = 1)"),
           4, "which say of whom, and by which factor");
    report_is(l, 2088, 648, 1);
    is_int(revise_by(l, "signals grid", 360, 300, now), 0, "the same again");
    told_is(l, 0, 0, "the same again");
    ledger_close(take(l));
    (void)help_open("r.sqlite", now, &l, &err);
    (void)help_boards(l, 2);
    is_int(revise_by(l, "signals grid", 360, 300, now), 0, "and after a restart");
    is_int(count(path), 4, "change nothing");
    is_int(revise_by(l, "signals grid", -20, 300, now), 0, "a value below 0");
    is_int(revised(path), 2 * (270000 - 288000), "is revised to");
    is_int(revise_by(l, "signals grid", 360, 300, now), 0, "and back");
    is_int(revise_by(l, "signals other", 1, 1, now), 0, "another source");
    is_int(count(path), 8, "revises nothing of this one, nor what this one covers");
    is_int(revise_by(l, "set by user anna", 1, 500, now), 0, "a source of its own");
    is_int(count(path), 8, "has nothing to revise");
    is_int(booked(path), before, "what was booked stays as it is");
    report_is(l, 2088, 648, 1);
    for (size_t i = 0; i < 3; i++) {
        while (ledger_tidy(l, T0 + (int64_t[]){3, 20, 500}[i] * DAY, &err) == 1)
            ;
        report_is(l, 2088, 648, 1);
        int64_t rows = count(path);
        is_int(revise_by(l, "signals grid", 1, 1, now), 0, "rolled up");
        is_int(count(path), rows, "nothing is revised any more");
    }
    is_int(help_number(path, "SELECT count(*) FROM revision WHERE res = 86400"), 2,
           "a row a board is left");
    ledger_close(l);
}

/* What is said of a source is no part of its name; a file's path is all of it. */
static void test_named(void)
{
    static const struct ledger_factor file = {"carbon", "file /srv/signals (a", "g/kWh",
                                              false};
    static const char *const other[] = {"signals grid2 (X; CC BY 4.0)", "signals gri",
                                        "file /srv/signals (b", "file /srv/signals"};
    const char *path = help_path("n.sqlite");
    const int64_t now = T0 + 4 * QUARTER;
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    struct ledger *l = NULL;
    uw_error err = {""};

    (void)help_open("n.sqlite", T0, &l, &err);
    (void)help_boards(l, 2);
    put_row(b, T0, 0, &grid, 300);
    put_row(b, T0 + QUARTER, 0, &file, 300);
    is_int(ledger_write(l, b, &err), 0, "rows of two sources %s", err.text);
    for (size_t i = 0; i < n_elements(other); i++)
        is_int(revise_by(l, other[i], 1, 1, now), 0, "%s", other[i]);
    is_int(count(path), 0, "others revise nothing");
    is_int(revise_by(l, "signals grid (X: DE 2024; CC BY 4.0)", 360, 360, now), 0,
           "the source, by its licence and table, too");
    is_int(revised(path), 600, "revises what it charged before it named them");
    is_int(revise_by(l, "signals grid (CC BY-SA 4.0)", 360, 360, now), 0, "by others");
    is_int(count(path), 1, "the same values change nothing");
    is_int(revise_by(l, "signals grid", 350, 360, now), 0, "and by none");
    is_int(revised(path), 500, "other values do");
    ledger_close(l);
}

/* Values that change within a row, do not reach all of it, or come when booked rows are
 * old.
 */
static void test_edges(void)
{
    const char *path = help_path("e.sqlite");
    struct ledger *l = NULL;
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    const struct ledger_value split[] = {{T0, T0 + 4 * S, 400 * G, true},
                                         {T0 + 4 * S, T0 + QUARTER, 300 * G, false}};
    struct ledger_revision rev = {.charge = LEDGER_CO2,
                                  .signal = "carbon",
                                  .source = "signals grid",
                                  .unit = "g/kWh",
                                  .begin_utc_ns = T0,
                                  .utc_ns = T0 + QUARTER,
                                  .value = split,
                                  .n = 1};
    uw_error err = {""};

    (void)help_open("e.sqlite", T0, &l, &err);
    (void)help_boards(l, 2);
    put_row(b, T0, 0, &grid, 300);
    is_int(ledger_write(l, b, &err), 0, "one row %s", err.text);
    ledger_batch_clear(b);
    is_int(ledger_add_revision(b, &rev), 0, "values of 4 s of 10");
    is_int(ledger_write(l, b, &err), 0, "%s", err.text);
    is_int(count(path), 0, "cover less than before: nothing");
    ledger_batch_clear(b);
    rev.n = 2;
    rev.unit = "lb/MWh";
    (void)ledger_add_revision(b, &rev);
    rev.unit = "g/kWh";
    rev.utc_ns = T0 + 3 * DAY;
    (void)ledger_add_revision(b, &rev);
    is_int(ledger_write(l, b, &err), 0, "another unit; after three days %s", err.text);
    is_int(count(path), 0, "nothing");
    ledger_batch_clear(b);
    rev.utc_ns = T0 + QUARTER;
    (void)ledger_add_revision(b, &rev);
    is_int((long long)ledger_batch_squeeze(b), 1, "squeezed, it stays");
    is_int(ledger_write(l, b, &err), 0, "two values within the row %s", err.text);
    is_int(revised(path), 400, "split by time: 40 g/kWh more");
    is_int(help_number(path, "SELECT f.estimated FROM revision r JOIN factor f ON f.id ="
                             " r.factor"),
           1, "one of them estimated");
    ledger_batch_clear(b);
    rev.charge = LEDGER_COST;
    rev.signal = market.signal;
    rev.source = market.source;
    rev.unit = market.unit;
    (void)ledger_add_revision(b, &rev);
    is_int(ledger_write(l, b, &err), 0, "a price that came late %s", err.text);
    is_int(help_number(path, "SELECT amount FROM revision r JOIN factor f ON f.id ="
                             " r.factor WHERE f.signal = 'price'"),
           3400, "covers the row");
    ok(ledger_revised(l)->rows[LEDGER_COST] == 1 &&
           ledger_revised(l)->amount[LEDGER_COST] == 3400 &&
           strcmp(ledger_revised(l)->currency, "EUR") == 0 &&
           ledger_revised(l)->rows[LEDGER_CO2] == 0,
       "and is told in the currency");
    rev.begin_utc_ns = T0 + S;
    is_int(ledger_add_revision(b, &rev), -EINVAL, "no quarter of an hour");
    rev.begin_utc_ns = T0;
    rev.n = 0;
    is_int(ledger_add_revision(b, &rev), -EINVAL, "no values");
    rev.n = 2;
    rev.value = (const struct ledger_value[]){split[1], split[0]};
    is_int(ledger_add_revision(b, &rev), -EINVAL, "in no order");
    rev.value = split;
    rev.source = "";
    is_int(ledger_add_revision(b, &rev), -EINVAL, "of nobody");
    is_int((long long)ledger_batch_shed(b, 0), 1, "revisions go where rows are too many");
    ledger_close(l);
}

/* Rows that waited for the file and were merged do not say when in their time the energy
 * was used.
 */
static void test_squeezed(void)
{
    const char *path = help_path("s.sqlite");
    const int64_t now = T0 + 4 * QUARTER;
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    struct ledger *l = NULL;
    uw_error err = {""};

    (void)help_open("s.sqlite", T0, &l, &err);
    (void)help_boards(l, 2);
    for (int64_t i = 0; i < 120; i++)
        put_row(b, T0 + i * 10 * S, 0, &grid, 300);
    is_int((long long)ledger_batch_squeeze(b), 1, "rows of 20 minutes become one");
    for (int64_t i = 180; i < 190; i++)
        put_row(b, T0 + i * 10 * S, 0, &grid, 300);
    is_int(ledger_write(l, b, &err), 0, "are booked %s", err.text);
    ledger_batch_clear(b);
    for (int64_t i = 0; i < 2; i++)
        put_row(b, T0 + (270 + 60 * i) * 10 * S, 0, &grid, 300);
    is_int((long long)ledger_batch_squeeze(b), 1, "two rows of one hour become one");
    is_int(ledger_write(l, b, &err), 0, "which is booked %s", err.text);
    is_int(revise_by(l, "signals grid", 400, 360, now), 0, "other values");
    is_int(
        help_number(path, "SELECT count(*) FROM revision WHERE begin_ms = 1767225600000"),
        0, "do not revise it by those of its begin");
    is_int(
        help_number(path, "SELECT count(*) FROM revision WHERE begin_ms = 1767228300000"),
        0, "nor two of 10 s that were ten minutes apart");
    is_int(revised(path), 10 * 600, "and revise what is booked as it was used");
    ledger_close(l);
}

/* Figures of a report from `from` to `to` with its totals, or its first row. */
struct part {
    double g, by, covered;
};

static struct part part_of(struct ledger *l, int64_t from, int64_t to, bool totals,
                           int64_t *ret_jobs)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    auto_(json_free) struct json *doc = NULL;
    auto_(mem_free) char *text = NULL;
    struct ledger_query q;
    uw_error err = {""};

    ledger_query_init(&q, T0 + DAY);
    q.from_utc_ns = from;
    q.to_utc_ns = to;
    is_int(ledger_report(l, &q, o, &err), 0, "a report %s", err.text);
    (void)json_out_string(o, &text, &err);
    is_int(json_read("report", text, strlen(text), &doc, &err), 0, "%s", err.text);
    const struct json_value *rows = json_get(json_root(doc), "rows");
    const struct json_value *v = json_get(json_root(doc), "totals");
    double covered = 0, in_waste = waste_g(l, from, to, &covered);
    ok(isnan(number(v, "co2_covered"))
           ? isnan(covered)
           : fabs(in_waste - number(v, "co2_g")) < 2e-3 &&
                 fabs(covered - number(v, "co2_covered")) < 1e-9,
       "the report of waste has the same: %g g of %g", in_waste, covered);
    v = totals ? v : json_at(rows, 0);
    *ret_jobs = (int64_t)json_count(rows);
    return (struct part){number(v, "co2_g"), number(v, "co2_revised_g"),
                         number(v, "co2_covered")};
}

/* Cut at a moment, both sides are covered, and make up the whole. */
static void halves(struct ledger *l, int64_t at, double g, double by)
{
    int64_t jobs = 0;

    for (int totals = 0; totals < 2; totals++) {
        struct part a = part_of(l, T0, at, totals, &jobs);
        struct part b = part_of(l, at, T0 + DAY, totals, &jobs);
        struct part c = part_of(l, T0, T0 + DAY, totals, &jobs);
        double n = totals ? 2 : 1;
        ok(fabs(a.g - n * g) < 2e-3 && fabs(a.by - n * by) < 2e-3, "%g g, %g revised",
           a.g, a.by);
        ok(fabs(a.covered - 1) < 1e-9 && fabs(b.covered - 1) < 1e-9,
           "covered: %g before, %g after", a.covered, b.covered);
        ok(fabs(a.g + b.g - c.g) < 1e-6 && fabs(a.by + b.by - c.by) < 1e-6,
           "and %g g after make up %g g", b.g, c.g);
    }
}

static void test_cut(void)
{
    const int64_t now = T0 + 4 * QUARTER;
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    struct ledger *l = NULL;
    int64_t jobs = 0;
    uw_error err = {""};

    (void)help_open("c.sqlite", T0, &l, &err);
    (void)help_boards(l, 2);
    fill(l);
    is_int(revise_by(l, "signals grid", 360, 300, now), 0, "revised");
    halves(l, T0 + 420 * S, 42 * 3.6, 42 * 0.6); /* booked with 300 g/kWh, now 360 */
    halves(l, T0 + QUARTER + 10 * S, 90 * 3.6 + 3, 90 * 0.6 + 3);
    struct part p = part_of(l, T0 + QUARTER + 10 * S, T0 + QUARTER + 20 * S, true, &jobs);
    ok(fabs(p.g - 6) < 2e-3 && fabs(p.covered - 1) < 1e-9, "within: %g g of %g", p.g,
       p.covered);
    for (int64_t i = 0; i < 90; i++) /* the fourth: nothing known from its middle on */
        put_row(b, T0 + 3 * QUARTER + i * 10 * S, 1, i < 45 ? &grid : NULL, 300);
    is_int(ledger_write(l, b, &err), 0, "the fourth %s", err.text);
    is_int(revise_by(l, "signals grid", 360, 300, now), 0, "revised");
    p = part_of(l, T0 + 3 * QUARTER, T0 + 3 * QUARTER + 450 * S, true, &jobs);
    ok(fabs(p.g - 135) < 2e-3 && fabs(p.by) < 2e-3 && fabs(p.covered - 1) < 1e-9,
       "what was covered has nothing of what was not: %g of %g g", p.by, p.g);
    p = part_of(l, T0 + 3 * QUARTER + 450 * S, now, true, &jobs);
    ok(fabs(p.g - 135) < 2e-3 && fabs(p.by - 135) < 2e-3 && fabs(p.covered - 1) < 1e-9,
       "which has all: %g of %g g", p.by, p.g);
    (void)part_of(l, T0 + 3 * QUARTER + 895 * S, now, true, &jobs);
    is_int(jobs, 0, "no row of a job without energy there");
    while (ledger_tidy(l, T0 + 3 * DAY, &err) == 1)
        ;
    halves(l, T0 + 420 * S, 42 * 3.6, 42 * 0.6);
    ledger_close(l);
}

int main(void)
{
    if (!help_begin())
        return skip_all("no folder in /tmp");
    test_once();
    test_named();
    test_edges();
    test_squeezed();
    test_cut();
    help_end();
    return done();
}
