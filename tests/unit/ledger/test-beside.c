/* Market-based and embodied emissions and the facility's energy, beside what is booked:
 * known figures, sums over each grouping, and the same after rolling up.
 */
#include "core/carbon/accounting.h"
#include "help.h"
#include "io/ledger-report.h"
#include "tap.h"

/* Two days, of each minute 10 s.  Board 0: job 1, 0.8 kWh a day, 5 % of it unattributed.
 * Board 1: 0.2 kWh a day, shared by jobs 2 and 3 on the first, idle on the second.
 */
enum { A_DAY = 1440, MINUTE = 6, TWO = 2 };
#define KWH_J 3.6e6

static void put_on_1(struct ledger_batch *b, int64_t i, uint64_t first, uint64_t last)
{
    int64_t begin = T0 + i * 10 * S;
    struct ledger_energy e = {.begin_utc_ns = begin,
                              .end_utc_ns = begin + 10 * S,
                              .board = 1,
                              .kind = LEDGER_JOB,
                              .cap_mw = 300000,
                              .energy_j = 250,
                              .method = LEDGER_COUNTED,
                              .simulated = true};
    struct ledger_meter m = {begin, begin + 10 * S, 1, 5000, 5500};

    for (e.job = first; e.job <= last; e.job++) {
        e.kind = e.job > 0 ? LEDGER_JOB : LEDGER_UNATTRIBUTED;
        (void)ledger_add_energy(b, &e);
    }
    (void)ledger_add_meter(b, &m);
}

static void fill(struct ledger *l)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    uw_error err = {""};

    for (uint64_t id = 1; id <= 3; id++) {
        struct ledger_job j = help_job(id, id < 3 ? 1000 : 1001, id < 3 ? "anna" : "ben");
        (void)ledger_add_job(b, &j);
    }
    for (int64_t i = 0; i < TWO * A_DAY; i++) {
        (void)help_interval(b, i * MINUTE, 0, 1, 200000, 2000, 0.95);
        if (i < A_DAY)
            put_on_1(b, i * MINUTE, 2, 3);
        else
            (void)help_interval(b, i * MINUTE, 1, 0, 300000, 500, 1);
    }
    is_int(ledger_write(l, b, &err), 0, "two days %s", err.text);
}

static struct json *get(struct ledger *l, const struct accounting *a, const char *by,
                        const char *day)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    auto_(mem_free) char *text = NULL;
    struct json *doc = NULL;
    struct ledger_query q;
    uw_error err = {""};

    ledger_query_init(&q, T0 + 100 * DAY);
    int r = ledger_query_set(&q, "by", by, T0, &err);
    if (r >= 0 && day)
        r = ledger_query_set(&q, "from", day, T0, &err);
    if (r >= 0 && day)
        r = ledger_query_set(&q, "to", day, T0, &err);
    q.accounting = a;
    if (r >= 0)
        r = ledger_report(l, &q, o, &err);
    if (r >= 0)
        r = json_out_string(o, &text, &err);
    if (r >= 0)
        r = json_read("report", text, strlen(text), &doc, &err);
    ok(r >= 0, "a report by %s %s", by, err.text);
    return doc;
}

static double number(const struct json_value *v, const char *key)
{
    double d = (double)NAN;

    (void)json_get_double(v, key, &d, NULL);
    return d;
}

static void figures_are(const struct json_value *v, double market_g, double covered,
                        double embodied_g, const char *name)
{
    is_near(number(v, "market_g"), market_g, 1e-3 * market_g, "%s: market-based", name);
    is_near(number(v, "market_covered"), covered, 1e-6, "%s: covered", name);
    is_near(number(v, "embodied_g"), embodied_g, 1e-3 * embodied_g, "%s: embodied", name);
    is_near(number(v, "embodied_covered"), 1, 1e-9, "%s: all of it", name);
    is_near(number(v, "facility_j"), 1.5 * number(v, "energy_j"), 1e-3, "%s: facility",
            name);
    ok(json_get(v, "facility_co2_g") && isnan(number(v, "facility_co2_g")),
       "%s: its grams are unknown where nothing is booked", name);
}

static void sums(struct ledger *l, const struct accounting *a)
{
    static const char *const by[] = {"job", "user", "day", "gpu", "user,day"};

    for (size_t i = 0; i < n_elements(by); i++) {
        auto_(json_free) struct json *doc = get(l, a, by[i], NULL);
        const struct json_value *root = json_root(doc), *rows = json_get(root, "rows");
        const struct json_value *all =
            json_get(root, i == 2 || i == 3 ? "totals" : "jobs");
        double market_g = 0, embodied_g = 0;
        for (size_t k = 0; k < json_count(rows); k++) {
            market_g += number(json_at(rows, k), "market_g");
            embodied_g += number(json_at(rows, k), "embodied_g");
        }
        double want = number(all, "market_g");
        is_near(market_g, want, 1e-6 * want, "rows by %s: market-based", by[i]);
        want = number(all, "embodied_g");
        is_near(embodied_g, want, 1e-6 * want, "rows by %s: embodied", by[i]);
    }
}

/* 0.5 of 2 kWh at 20 g; what that leaves of the second day, 0.75 kWh, at 500 g. */
static void known(struct ledger *l, const struct accounting *a)
{
    auto_(json_free) struct json *all = get(l, a, "job", NULL),
                                 *first = get(l, a, "day", "2026-01-01"),
                                 *second = get(l, a, "gpu", "2026-01-02");
    const struct json_value *root = json_root(all), *rows = json_get(root, "rows");
    const struct json_value *totals = json_get(root, "totals");

    is_near(number(root, "pue"), 1.5, 0, "the PUE is told");
    is_near(number(totals, "energy_j"), 2 * KWH_J, 1, "the energy is without it");
    figures_are(totals, 385, 0.625, 4 * 144, "all");
    is_near(number(totals, "embodied_attributed_g"), 3 * 144, 0.1, "of jobs");
    is_near(number(totals, "embodied_idle_g"), 144, 0.1, "of idle time");
    is_near(number(totals, "embodied_unattributed_g"), 0, 1e-6, "of nobody's");
    figures_are(json_at(rows, 0), 0.8 * 0.95 * 385, 0.625, 2 * 144, "job 1");
    figures_are(json_at(rows, 1), 0.1 * 5, 0.25, 72, "job 2, half of a board");
    figures_are(json_get(json_root(first), "totals"), 5, 0.25, 2 * 144, "the first day");
    figures_are(json_at(json_get(json_root(second), "rows"), 1), 0.2 * 380, 1, 144,
                "an idle board");
    is_int(json_count(json_get(root, "factors")), 3, "origins are told");
    sums(l, a);
}

/* Without figures, and of a board without one. */
static void none(struct ledger *l)
{
    struct accounting a = {.pue = 0};
    uw_error err = {""};

    auto_(json_free) struct json *plain = get(l, NULL, "job", NULL);
    const struct json_value *totals = json_get(json_root(plain), "totals");
    ok(!json_get(totals, "market_g") && !json_get(totals, "embodied_g") &&
           !json_get(totals, "facility_j") && !json_get(json_root(plain), "pue"),
       "nothing is told that nobody gave");
    (void)accounting_embodied(&a, "Board B", 36, "its maker", &err);
    auto_(json_free) struct json *other = get(l, &a, "job", NULL);
    totals = json_get(json_root(other), "totals");
    ok(isnan(number(totals, "embodied_g")) && number(totals, "embodied_covered") == 0,
       "a board without a figure is not covered");
}

/* Of an hour jobs 2 and 3 share the first half, and nobody has the second: rows of 10 s,
 * of minutes, of the hour.
 */
static void half_shared(const struct accounting *a)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    auto_(ledger_close) struct ledger *l = NULL;
    uw_error err = {""};

    is_int(help_open("h.sqlite", T0, &l, &err), 0, "a ledger %s", err.text);
    (void)help_boards(l, 2);
    for (uint64_t id = 2; id <= 3; id++) {
        struct ledger_job j = help_job(id, 1000, "anna");
        (void)ledger_add_job(b, &j);
    }
    for (int64_t i = 0; i < 360; i++)
        put_on_1(b, i, i < 180 ? 2 : 0, i < 180 ? 3 : 0);
    is_int(ledger_write(l, b, &err), 0, "an hour %s", err.text);
    for (int64_t days = 1; days < 40; days += 13) {
        while (ledger_tidy(l, T0 + days * DAY, &err) == 1)
            ;
        auto_(json_free) struct json *doc = get(l, a, "job", NULL);
        const struct json_value *root = json_root(doc), *rows = json_get(root, "rows");
        for (size_t i = 0; i < 2; i++)
            is_near(number(json_at(rows, i), "embodied_g"), 9, 1e-9,
                    "day %lld: a job has half of the half hour", (long long)days);
        is_near(number(json_get(root, "totals"), "embodied_unattributed_g"), 18, 1e-9,
                "nobody the other half");
    }
}

int main(void)
{
    auto_(ledger_close) struct ledger *l = NULL;
    static const int64_t days[] = {3, 30, 500};
    struct market_contract c[] = {
        {T0 / 1000000, (T0 + 2 * DAY) / 1000000, MARKET_ENERGY, 0.5, 20, "GO 17"},
        {(T0 + DAY) / 1000000, (T0 + 2 * DAY) / 1000000, MARKET_RESIDUAL, 0, 500, "mix"}};
    struct accounting a = {.contract = c, .n_contracts = n_elements(c)};
    uw_error err = {""};

    if (!help_begin())
        return skip_all("no folder in /tmp");
    is_int(accounting_pue(&a, "1.5", &err), 0, "a PUE");
    is_int(accounting_embodied(&a, "Board A", 36, "its maker", &err), 0, "a board");
    is_int(help_open("m.sqlite", T0, &l, &err), 0, "a ledger %s", err.text);
    (void)help_boards(l, 2);
    fill(l);
    known(l, &a);
    none(l);
    for (size_t i = 0; i < n_elements(days); i++) {
        while (ledger_tidy(l, T0 + days[i] * DAY, &err) == 1)
            ;
        known(l, &a);
    }
    ledger_close(take(l));
    half_shared(&a);
    help_end();
    return done();
}
