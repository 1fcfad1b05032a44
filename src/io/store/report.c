/* A report: totals with their check against the meters, boards, days, caps over time,
 * and the requested rows.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/names.h"
#include "core/carbon/accounting.h"
#include "io/store/report-beside.h"
#include "io/store/report-keys.h"
#include "io/store/report-waste.h"

#define J_PER_KWH 3.6e6
#define SUM_TOLERANCE 0.001

/* "2026-11-21T14:30:00Z" */
static void put_time(struct json_out *o, const char *key, int64_t ms)
{
    time_t at = (time_t)(ms / 1000);
    struct tm tm;
    char text[40];

    if (gmtime_r(&at, &tm) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm))
        json_out_text(o, key, text);
    else
        json_out_null(o, key);
}

void report_time(struct json_out *o, const char *key, sqlite3_stmt *stmt, int column)
{
    if (sqlite3_column_type(stmt, column) == SQLITE_NULL)
        json_out_null(o, key);
    else
        put_time(o, key, sqlite3_column_int64(stmt, column));
}

void report_put_text(struct json_out *o, const char *key, sqlite3_stmt *stmt, int column)
{
    json_out_text(o, key, (const char *)sqlite3_column_text(stmt, column));
}

void report_put_int(struct json_out *o, const char *key, sqlite3_stmt *stmt, int column)
{
    json_out_known_int(o, key, sqlite3_column_type(stmt, column) != SQLITE_NULL,
                       sqlite3_column_int64(stmt, column));
}

double report_domain_j(const struct report *rep, int64_t uj)
{
    double j = (double)uj / 1e6, step_j = rep->q->domains.step_j;

    return step_j > 0 ? floor(j / step_j) * step_j : j;
}

void report_put_sum(struct json_out *o, const char *key, double v)
{
    json_out_exact_double(o, key, rint(v * 1e6) / 1e6); /* sums have noise */
}

void report_put_cpu(const struct report *rep, sqlite3_stmt *stmt, int column)
{
    if (sqlite3_column_type(stmt, column) == SQLITE_NULL)
        json_out_null(rep->o, "cpu_j");
    else
        report_put_sum(rep->o, "cpu_j",
                       report_domain_j(rep, sqlite3_column_int64(stmt, column)));
}

double report_j(sqlite3_stmt *stmt, int column)
{
    return (double)sqlite3_column_int64(stmt, column) / 1e6;
}

struct half_sum report_half(sqlite3_stmt *stmt, int column)
{
    return (struct half_sum){sqlite3_column_double(stmt, column),
                             sqlite3_column_double(stmt, column + 1)};
}

void report_put_energy(const struct report *rep, const char *key, double j)
{
    report_put_sum(rep->o, key, j);
    if (rep->q->has_carbon)
        report_put_sum(rep->o, "gco2e", j / J_PER_KWH * rep->q->gco2e_kwh);
    if (rep->q->has_price)
        report_put_sum(rep->o, "cost", j / J_PER_KWH * rep->q->price_kwh);
    if (rep->q->accounting && rep->q->accounting->pue > 0)
        report_put_sum(rep->o, "facility_j", j * rep->q->accounting->pue);
}

void report_charges(sqlite3_stmt *stmt, int column, struct report_charges *ret)
{
    for (int i = 0; i < LEDGER_CHARGES; i++) {
        ret->of[i].amount = sqlite3_column_int64(stmt, column + 3 * i);
        ret->of[i].uj = sqlite3_column_int64(stmt, column + 3 * i + 1);
        ret->of[i].revised = sqlite3_column_int64(stmt, column + 3 * i + 2);
    }
    for (int i = 0; i < REPORT_BESIDE; i++)
        ret->beside[i] = sqlite3_column_double(stmt, column + 3 * LEDGER_CHARGES + i);
}

void report_add_charges(struct report_charges *to, const struct report_charges *c)
{
    for (int i = 0; i < LEDGER_CHARGES; i++) {
        to->of[i].amount += c->of[i].amount;
        to->of[i].uj += c->of[i].uj;
        to->of[i].revised += c->of[i].revised;
    }
    for (int i = 0; i < REPORT_BESIDE; i++)
        to->beside[i] += c->beside[i];
}

void report_put_charges(const struct report *rep, const struct report_charges *c,
                        int64_t energy_uj, bool hidden)
{
    static const struct {
        const char *amount, *booked, *revised, *covered;
        double unit;
    } keys[LEDGER_CHARGES] = {
        {"co2_g", "co2_booked_g", "co2_revised_g", "co2_covered", 1e3},
        {"marginal_g", "marginal_booked_g", "marginal_revised_g", "marginal_covered",
         1e3},
        {"money", "money_booked", "money_revised", "money_covered", 1e6}};

    for (int i = 0; i < LEDGER_CHARGES; i++) {
        bool known = c->of[i].uj > 0 && !hidden;
        int64_t by = c->of[i].revised, amount = c->of[i].amount;
        int64_t uj = c->of[i].uj < energy_uj ? c->of[i].uj : energy_uj;
        double covered = (double)uj / (double)energy_uj;
        const double unit = known ? keys[i].unit : (double)NAN;
        json_out_exact_double(rep->o, keys[i].amount, (double)amount / unit);
        json_out_exact_double(rep->o, keys[i].booked, (double)(amount - by) / unit);
        json_out_exact_double(rep->o, keys[i].revised, (double)by / unit);
        json_out_double(rep->o, keys[i].covered,
                        energy_uj > 0 && !hidden ? covered : (double)NAN);
    }
}

int report_prepare(const struct report *rep, const char *sql, sqlite3_stmt **ret,
                   uw_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const struct ledger_query *q = rep->q;

    int r = db_prepare(rep->l, sql, &stmt, err);
    if (r < 0)
        return r;
    const struct {
        const char *name;
        int64_t v;
    } value[] = {
        {":from", ms_of_ns(q->from_utc_ns)},
        {":to", ms_of_ns(q->to_utc_ns)},
        {":uid", q->one_user ? (int64_t)q->uid : -1},
        {":rows", REPORT_ROWS},
        {":stack", REPORT_STACK},
        {":of_job", (int64_t)q->of_job},
    };
    const struct {
        const char *name, *v;
    } text[] = {{":label", q->key[0].label}, {":label2", q->key[1].label},
                {":unit", rep->price_unit},  {":of_user", q->of_user},
                {":of_label", q->of_label},  {":of_value", q->of_value}};

    for (size_t i = 0; i < n_elements(value); i++) /* SQLite refuses index 0 */
        (void)sqlite3_bind_int64(stmt, sqlite3_bind_parameter_index(stmt, value[i].name),
                                 value[i].v);
    for (size_t i = 0; i < n_elements(text); i++)
        (void)sqlite3_bind_text(stmt, sqlite3_bind_parameter_index(stmt, text[i].name),
                                text[i].v, -1, SQLITE_STATIC);
    *ret = stmt;
    return 0;
}

int report_list(const struct report *rep, const char *key, const char *sql,
                report_row_fn fn, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = report_prepare(rep, sql, &stmt, err);
    json_out_array(rep->o, key);
    while (r >= 0 && (r = db_step(rep->l, stmt, err)) > 0) {
        json_out_object(rep->o, NULL);
        r = fn(rep, stmt, err);
        json_out_end(rep->o);
    }
    json_out_end(rep->o);
    return r;
}

/* ---- totals ---- */

struct totals {
    int64_t uj[4]; /* by enum ledger_kind; 0: the meters */
    struct half_sum half;
    struct report_charges charges;
    double embodied_mg[4];
};

static int read_totals(const struct report *rep, const char *sql, struct totals *ret,
                       uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    struct totals t = {0};

    int r = report_prepare(rep, sql, &stmt, err);
    while (r >= 0 && (r = db_step(rep->l, stmt, err)) > 0) {
        int kind = sqlite3_column_int(stmt, 0);
        if (kind < 0 || kind > LEDGER_UNATTRIBUTED)
            continue;
        t.uj[kind] = sqlite3_column_int64(stmt, 1);
        struct half_sum half = report_half(stmt, 2);
        half_sum_add(&t.half, &half);
        struct report_charges c;
        report_charges(stmt, 4, &c);
        report_add_charges(&t.charges, &c);
        t.embodied_mg[kind] = c.beside[BESIDE_EMBODIED_MG];
    }
    if (r >= 0)
        *ret = t;
    return r;
}

static void put_method(struct json_out *o, unsigned method)
{
    json_out_array(o, "method");
    for (unsigned i = 0; 1u << i <= LEDGER_BRIDGED; i++)
        if (method >> i & 1)
            json_out_text(o, NULL, names_word(NAMES_ENERGY_METHOD, i));
    json_out_end(o);
}

static double total_j(const struct report *rep, bool domains, int64_t uj)
{
    return domains ? report_domain_j(rep, uj) : (double)uj / 1e6;
}

/* Whether figures are rounded: finer ones would reveal more of the energy than is
 * permitted.
 */
static bool is_coarse(const struct report *rep)
{
    return rep->q->domains.step_j > 0;
}

/* With the time of the boards used. */
static void put_beside(const struct report *rep, const struct totals *t,
                       int64_t energy_uj)
{
    const struct accounting *a = rep->q->accounting;
    struct json_out *o = rep->o;

    report_put_beside(rep, &t->charges, energy_uj);
    if (!a || a->n_embodied == 0)
        return;
    report_put_sum(o, "embodied_attributed_g", t->embodied_mg[LEDGER_JOB] / 1e3);
    report_put_sum(o, "embodied_idle_g", t->embodied_mg[LEDGER_IDLE] / 1e3);
    report_put_sum(o, "embodied_unattributed_g",
                   t->embodied_mg[LEDGER_UNATTRIBUTED] / 1e3);
}

/* The three parts must add up to what the meters of boards, or of domains, measured. */
static void put_totals(const struct report *rep, bool domains, const struct totals *t)
{
    struct json_out *o = rep->o;
    int64_t sum = t->uj[LEDGER_JOB] + t->uj[LEDGER_IDLE] + t->uj[LEDGER_UNATTRIBUTED];
    int64_t off = sum - t->uj[0];
    double fraction = t->uj[0] > 0 ? (double)off / (double)t->uj[0] : (double)NAN;

    json_out_object(o, domains ? "cpu" : "totals");
    report_put_sum(o, "attributed_j", total_j(rep, domains, t->uj[LEDGER_JOB]));
    report_put_sum(o, "idle_j", total_j(rep, domains, t->uj[LEDGER_IDLE]));
    report_put_sum(o, "unattributed_j",
                   total_j(rep, domains, t->uj[LEDGER_UNATTRIBUTED]));
    report_put_energy(rep, "energy_j", total_j(rep, domains, sum));
    json_out_double(o, "half_j", total_j(rep, domains, ledger_uj(half_sum_j(&t->half))));
    report_put_sum(o, "meter_j", total_j(rep, domains, t->uj[0]));
    report_put_sum(o, "difference_j", total_j(rep, domains, off));
    json_out_double(o, "difference", fraction);
    if (sum == 0 && t->uj[0] == 0)
        json_out_null(o, "holds");
    else
        json_out_bool(o, "holds", fabs(fraction) <= SUM_TOLERANCE);
    put_method(o, domains ? rep->domain_method : rep->method);
    report_put_charges(rep, &t->charges, sum, domains && is_coarse(rep));
    if (!domains)
        put_beside(rep, t, sum);
    json_out_end(o);
}

/* "by": "user", "user,day"; "label": its key. */
static void put_keys(const struct report *rep)
{
    const struct ledger_key *k = rep->q->key;
    const char *label = k[0].label[0] ? k[0].label : k[1].label;
    char by[64];

    (void)snprintf(by, sizeof by, "%.30s%s%.30s", names_word(NAMES_REPORT_BY, k[0].by),
                   rep->q->n_keys > 1 ? "," : "",
                   rep->q->n_keys > 1 ? names_word(NAMES_REPORT_BY, k[1].by) : "");
    json_out_text(rep->o, "by", by);
    json_out_text(rep->o, "label", label[0] ? label : NULL);
}

/* Only the requested ones. */
static void put_filters(const struct report *rep)
{
    const struct ledger_query *q = rep->q;

    json_out_object(rep->o, "only");
    if (q->of_user[0])
        json_out_text(rep->o, "user", q->of_user);
    if (q->of_job)
        json_out_int(rep->o, "job", (int64_t)q->of_job);
    if (q->of_label[0]) {
        json_out_text(rep->o, "label", q->of_label);
        json_out_text(rep->o, "value", q->of_value);
    }
    if (rep->unknown)
        json_out_bool(rep->o, "known", false);
    json_out_end(rep->o);
}

void report_put_head(const struct report *rep)
{
    const struct ledger_query *q = rep->q;
    struct json_out *o = rep->o;
    char currency[sizeof rep->price_unit];

    json_out_bool(o, "simulated", rep->l->simulated || rep->simulated);
    put_keys(rep);
    json_out_int(o, "rows_max", REPORT_ROWS);
    json_out_text(o, "zone", q->local ? "local" : q->zone[0] ? q->zone : "utc");
    put_time(o, "from", ms_of_ns(q->from_utc_ns));
    put_time(o, "to", ms_of_ns(q->to_utc_ns));
    json_out_known_int(o, "only_uid", q->one_user, q->uid);
    put_filters(rep);
    if (q->has_carbon)
        json_out_given(o, "gco2e_kwh", q->gco2e_kwh);
    if (q->has_price) {
        json_out_given(o, "price_kwh", q->price_kwh);
        json_out_text(o, "currency", q->currency);
    }
    if (q->accounting && q->accounting->pue > 0)
        json_out_given(o, "pue", q->accounting->pue);
    (void)snprintf(currency, sizeof currency, "%.*s", (int)strcspn(rep->price_unit, "/"),
                   rep->price_unit);
    json_out_text(o, "money_currency", currency[0] ? currency : NULL);
}

int report_put_factors(const struct report *rep, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = db_prepare(rep->l,
                       "SELECT id, signal, source, unit, estimated FROM factor ORDER BY"
                       " signal, source, unit, estimated",
                       &stmt, err);
    json_out_array(rep->o, "factors");
    while (r >= 0 && (r = db_step(rep->l, stmt, err)) > 0) {
        int64_t id = sqlite3_column_int64(stmt, 0);
        if (id <= 0 || id >= REPORT_FACTORS || !rep->used[id])
            continue;
        json_out_object(rep->o, NULL);
        report_put_text(rep->o, "signal", stmt, 1);
        report_put_text(rep->o, "source", stmt, 2);
        report_put_text(rep->o, "unit", stmt, 3);
        json_out_bool(rep->o, "estimated", sqlite3_column_int(stmt, 4) != 0);
        json_out_end(rep->o);
    }
    report_put_origins(rep);
    json_out_end(rep->o);
    return r;
}

/* ---- boards, domains, days, caps: everybody's, for totals and pictures ---- */

/* The last columns of PARTS: the sum, and what it is charged with. */
static void put_part_charges(const struct report *rep, sqlite3_stmt *stmt, int column,
                             bool hidden)
{
    struct report_charges c;

    report_charges(stmt, column + 1, &c);
    report_put_charges(rep, &c, sqlite3_column_int64(stmt, column), hidden);
}

static void put_parts(const struct report *rep, sqlite3_stmt *stmt, int column)
{
    struct json_out *o = rep->o;
    struct report_charges c;

    report_put_sum(o, "attributed_j", report_j(stmt, column));
    report_put_sum(o, "idle_j", report_j(stmt, column + 1));
    report_put_sum(o, "unattributed_j", report_j(stmt, column + 2));
    report_put_energy(rep, "energy_j",
                      report_j(stmt, column) + report_j(stmt, column + 1) +
                          report_j(stmt, column + 2));
    report_put_sum(o, "meter_j", report_j(stmt, column + 3));
    put_part_charges(rep, stmt, column + 4, false);
    report_charges(stmt, column + 5, &c);
    report_put_beside(rep, &c, sqlite3_column_int64(stmt, column + 4));
}

#define PARTS                                                                      \
    " sum(CASE e.kind WHEN 1 THEN energy_uj END), sum(CASE e.kind WHEN 2 THEN"     \
    " energy_uj END), sum(CASE e.kind WHEN 3 THEN energy_uj END), sum(CASE e.kind" \
    " WHEN 0 THEN energy_uj END), sum(CASE WHEN e.kind > 0 THEN energy_uj "        \
    "END)," REPORT_CHARGES
enum { PARTS_COLUMNS = 5 + REPORT_CHARGE_COLUMNS };
static int put_board(const struct report *rep, sqlite3_stmt *stmt, uw_error *err)
{
    (void)err;
    json_out_int(rep->o, "gpu", sqlite3_column_int64(stmt, 0));
    json_out_text(rep->o, "uuid", db_text(stmt, 1));
    json_out_text(rep->o, "name", db_text(stmt, 2));
    put_parts(rep, stmt, 3);
    return 0;
}

int report_boards(const struct report *rep, const char *key, uw_error *err)
{
    return report_list(rep, key,
                       "SELECT b.at, b.uuid, b.name," PARTS
                       " FROM part e LEFT JOIN board b ON b.id = e.board GROUP BY e.board"
                       " ORDER BY b.at, b.id",
                       put_board, err);
}

/* A column of PARTS. */
static double domain_j(const struct report *rep, sqlite3_stmt *stmt, int column)
{
    return report_domain_j(rep, sqlite3_column_int64(stmt, column));
}

static int put_domain(const struct report *rep, sqlite3_stmt *stmt, uw_error *err)
{
    struct json_out *o = rep->o;

    (void)err;
    json_out_text(o, "domain", db_text(stmt, 0));
    json_out_text(o, "kind",
                  sqlite3_column_int(stmt, 1) == PLACE_MEMORY ? "memory" : "package");
    report_put_sum(o, "attributed_j", domain_j(rep, stmt, 2));
    report_put_sum(o, "idle_j", domain_j(rep, stmt, 3));
    report_put_sum(o, "unattributed_j", domain_j(rep, stmt, 4));
    report_put_energy(rep, "energy_j", domain_j(rep, stmt, 6));
    report_put_sum(o, "meter_j", domain_j(rep, stmt, 5));
    put_part_charges(rep, stmt, 6, is_coarse(rep));
    return 0;
}

int report_domains(const struct report *rep, const char *key, uw_error *err)
{
    return report_list(
        rep, key,
        "SELECT b.name, b.kind," PARTS " FROM domain_part e"
        " JOIN board b ON b.id = e.board GROUP BY e.board ORDER BY b.at, b.id",
        put_domain, err);
}

/* "stack_j": a day's energy of each of "stack". */
static int put_stack(const struct report *rep, int64_t day, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = db_ask(rep->l,
                   "SELECT ifnull(d.uj, 0) FROM temp.stack s LEFT JOIN temp.day_stack d"
                   " ON d.at = s.at AND d.day = ? ORDER BY s.at",
                   &stmt, err, "i", day);
    json_out_array(rep->o, "stack_j");
    while (r >= 0 && (r = db_step(rep->l, stmt, err)) > 0)
        report_put_sum(rep->o, NULL, report_j(stmt, 0));
    json_out_end(rep->o);
    return r;
}

/* If rows are by day: the savings on that day. */
static int put_day_saved(const struct report *rep, int64_t day, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    if (!report_is_whole(rep->q) || rep->q->key[0].by != LEDGER_BY_DAY)
        return 0;
    int r = db_ask(rep->l, "SELECT" REPORT_SAVED " FROM temp.grouped WHERE k1 = ?", &stmt,
                   err, "i", day);
    if (r >= 0)
        r = db_step(rep->l, stmt, err);
    if (r >= 0)
        report_put_saved(rep, r > 0 ? stmt : NULL, 0);
    return r;
}

static int put_day(const struct report *rep, sqlite3_stmt *stmt, uw_error *err)
{
    json_out_text(rep->o, "day", db_text(stmt, 0));
    put_parts(rep, stmt, 1);
    report_put_cpu(rep, stmt, 1 + PARTS_COLUMNS);
    int64_t day = sqlite3_column_int64(stmt, 2 + PARTS_COLUMNS);
    int r = put_day_saved(rep, day, err);
    return r < 0 ? r : put_stack(rep, day, err);
}

int report_days(const struct report *rep, const char *key, uw_error *err)
{
    return report_list(rep, key,
                       "SELECT printf('%04d-%02d-%02d', day / 10000, day / 100 % 100,"
                       " day % 100)," PARTS ", (SELECT sum(d.energy_uj) FROM"
                       " domain_part d WHERE d.day = e.day AND d.kind > 0), e.day"
                       " FROM part e GROUP BY day ORDER BY day LIMIT 4000",
                       put_day, err);
}

/* Seconds since 1970; mean, least and most of the cap in mW. */
static void put_pieces(struct json_out *o, const struct report_caps *c, size_t board)
{
    json_out_array(o, "points");
    for (size_t i = 0; i < REPORT_PIECES; i++) {
        const struct report_cap *p = &c->piece[board * REPORT_PIECES + i];
        if (p->span_ms == 0)
            continue;
        json_out_array(o, NULL);
        json_out_int(o, NULL, (c->begin_ms + (int64_t)i * c->piece_ms) / 1000);
        json_out_int(o, NULL, llround(p->sum / (double)p->span_ms));
        json_out_int(o, NULL, p->least_mw);
        json_out_int(o, NULL, p->most_mw);
        json_out_end(o);
    }
    json_out_end(o);
}

/* The caps in force, in pieces of time: how long, and each board's. */
static int put_caps(const struct report *rep, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    const struct report_caps *c = &rep->caps;
    struct json_out *o = rep->o;

    int r =
        db_prepare(rep->l, "SELECT at, uuid, id FROM board ORDER BY at, id", &stmt, err);
    json_out_int(o, "caps_piece_s", c->piece_ms / 1000);
    json_out_array(o, "caps");
    while (r >= 0 && (r = db_step(rep->l, stmt, err)) > 0) {
        size_t i = 0;
        while (i < c->n && c->board[i] != sqlite3_column_int64(stmt, 2))
            i++;
        if (i == c->n)
            continue;
        json_out_object(o, NULL);
        json_out_int(o, "gpu", sqlite3_column_int64(stmt, 0));
        json_out_text(o, "uuid", db_text(stmt, 1));
        put_pieces(o, c, i);
        json_out_end(o);
    }
    json_out_end(o);
    return r;
}

/* Writes the whole report at one moment: the transaction excludes the daemon's writes. */
static int put_report(struct report *rep, uw_error *err)
{
    struct totals boards, domains;

    int r = report_gather(rep, err);
    if (r >= 0)
        r = report_keys(rep, err);
    if (r >= 0)
        r = read_totals(
            rep,
            "SELECT kind, sum(energy_uj), sum(fixed_j), sum(noise2_j2)," REPORT_CHARGES
            " FROM part GROUP BY kind",
            &boards, err);
    if (r >= 0)
        r = read_totals(
            rep,
            "SELECT kind, sum(energy_uj), sum(fixed_j), sum(noise2_j2)," REPORT_CHARGES
            " FROM domain_part GROUP BY kind",
            &domains, err);
    if (r < 0)
        return r;
    json_out_object(rep->o, NULL);
    report_put_head(rep);
    put_totals(rep, false, &boards);
    put_totals(rep, true, &domains);
    r = report_rows(rep, err);
    if (r >= 0)
        r = report_boards(rep, "gpus", err);
    if (r >= 0)
        r = report_domains(rep, "cpus", err);
    if (r >= 0)
        r = report_days(rep, "days", err);
    if (r >= 0)
        r = put_caps(rep, err);
    if (r >= 0)
        r = report_put_factors(rep, err);
    if (r >= 0)
        json_out_end(rep->o);
    return r;
}

/* Whether any job, at any time, is of this user and has this id. */
static int look_for_job(struct report *rep, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    if (!rep->q->of_user[0] && !rep->q->of_job)
        return 0;
    int r = report_prepare(rep,
                           "SELECT 1 FROM job j JOIN (SELECT id AS job FROM job) e"
                           " ON e.job = j.id WHERE" REPORT_OF_JOB " LIMIT 1",
                           &stmt, err);
    if (r >= 0)
        r = db_step(rep->l, stmt, err);
    rep->unknown = r == 0;
    return r;
}

int ledger_report(struct ledger *l, const struct ledger_query *q, struct json_out *o,
                  uw_error *err)
{
    struct report rep = {.l = l, .q = q, .o = o};

    int r = ledger_query_check(q, err);
    if (r < 0)
        return r;
    r = db_exec(l, "BEGIN", err);
    if (r < 0)
        return r;
    r = look_for_job(&rep, err);
    if (r >= 0)
        r = q->waste ? report_waste(&rep, err) : put_report(&rep, err);
    db_rollback(l); /* drops the temporary tables, too */
    report_beside_free(rep.beside);
    free(rep.caps.piece);
    return r < 0 ? r : 0;
}
