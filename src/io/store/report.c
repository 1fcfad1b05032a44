/* A report: totals with their check against the meters, boards, days, caps over time,
 * and the rows that were asked for.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "io/store/report-inside.h"

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

double report_j(sqlite3_stmt *stmt, int column)
{
    return (double)sqlite3_column_int64(stmt, column) * 1e-6;
}

void report_energy(const struct report *rep, const char *key, double j)
{
    json_out_double(rep->o, key, j);
    if (rep->q->has_carbon)
        json_out_double(rep->o, "gco2e", j / J_PER_KWH * rep->q->gco2e_kwh);
    if (rep->q->has_price)
        json_out_double(rep->o, "cost", j / J_PER_KWH * rep->q->price_kwh);
}

int report_prepare(const struct report *rep, const char *sql, sqlite3_stmt **ret,
                   uw_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const struct ledger_query *q = rep->q;

    int r = db_prepare(rep->l, sql, &stmt, err);
    if (r < 0)
        return r;
    for (int i = 1; i <= sqlite3_bind_parameter_count(stmt); i++) {
        const char *name = sqlite3_bind_parameter_name(stmt, i);
        int64_t v = 0;
        if (name && strcmp(name, ":from") == 0)
            v = ms_of_ns(q->from_utc_ns);
        else if (name && strcmp(name, ":to") == 0)
            v = ms_of_ns(q->to_utc_ns);
        else if (name && strcmp(name, ":uid") == 0)
            v = q->one_user ? (int64_t)q->uid : -1;
        else if (name && strcmp(name, ":local") == 0)
            v = q->local;
        else if (name && strcmp(name, ":rows") == 0)
            v = REPORT_ROWS;
        else if (name && strcmp(name, ":label") == 0) {
            (void)sqlite3_bind_text(stmt, i, q->label, -1, SQLITE_STATIC);
            continue;
        }
        (void)sqlite3_bind_int64(stmt, i, v);
    }
    *ret = stmt;
    return 0;
}

/* ---- totals ---- */

struct totals {
    int64_t uj[4]; /* by enum ledger_kind */
    int64_t half_uj, meter_uj;
    unsigned method;
    bool simulated, any;
};

static int read_totals(const struct report *rep, struct totals *ret, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *e = NULL, *m = NULL;
    struct totals t = {0};

    int r = report_prepare(
        rep,
        "SELECT kind, sum(energy_uj), sum(half_uj),"
        " max(method & 1) | max(method & 2) | max(method & 4), max(simulated)"
        " FROM energy WHERE " IN_SPAN " GROUP BY kind",
        &e, err);
    while (r >= 0 && (r = db_step(rep->l, e, err)) > 0) {
        int kind = sqlite3_column_int(e, 0);
        if (kind < LEDGER_JOB || kind > LEDGER_UNATTRIBUTED)
            continue;
        t.uj[kind] = sqlite3_column_int64(e, 1);
        t.half_uj += sqlite3_column_int64(e, 2);
        t.method |= (unsigned)sqlite3_column_int(e, 3);
        t.simulated |= sqlite3_column_int(e, 4) != 0;
        t.any = true;
    }
    if (r >= 0)
        r = report_prepare(rep, "SELECT sum(energy_uj) FROM meter WHERE " IN_SPAN, &m,
                           err);
    if (r >= 0)
        r = db_step(rep->l, m, err);
    if (r < 0)
        return r;
    t.meter_uj = sqlite3_column_int64(m, 0);
    *ret = t;
    return 0;
}

static void put_method(struct json_out *o, unsigned method)
{
    static const char *const names[] = {"counter", "power readings", "bridged gaps"};

    json_out_array(o, "method");
    for (unsigned i = 0; i < n_elements(names); i++)
        if (method >> i & 1)
            json_out_text(o, NULL, names[i]);
    json_out_end(o);
}

/* The three parts have to make up what the meters saw. */
static void put_totals(const struct report *rep, const struct totals *t)
{
    struct json_out *o = rep->o;
    int64_t sum = t->uj[LEDGER_JOB] + t->uj[LEDGER_IDLE] + t->uj[LEDGER_UNATTRIBUTED];
    int64_t off = sum - t->meter_uj;
    double fraction = t->meter_uj > 0 ? (double)off / (double)t->meter_uj : (double)NAN;

    json_out_object(o, "totals");
    json_out_double(o, "attributed_j", (double)t->uj[LEDGER_JOB] * 1e-6);
    json_out_double(o, "idle_j", (double)t->uj[LEDGER_IDLE] * 1e-6);
    json_out_double(o, "unattributed_j", (double)t->uj[LEDGER_UNATTRIBUTED] * 1e-6);
    report_energy(rep, "energy_j", (double)sum * 1e-6);
    json_out_double(o, "half_j", (double)t->half_uj * 1e-6);
    json_out_double(o, "meter_j", (double)t->meter_uj * 1e-6);
    json_out_double(o, "difference_j", (double)off * 1e-6);
    json_out_double(o, "difference", fraction);
    if (sum == 0 && t->meter_uj == 0)
        json_out_null(o, "holds");
    else
        json_out_bool(o, "holds", fabs(fraction) <= SUM_TOLERANCE);
    put_method(o, t->method);
    json_out_end(o);
}

static void put_head(const struct report *rep, const struct totals *t)
{
    static const char *const by[] = {"job", "user", "gpu", "day", "label"};
    const struct ledger_query *q = rep->q;
    struct json_out *o = rep->o;

    json_out_bool(o, "simulated", rep->l->simulated || t->simulated);
    json_out_text(o, "by", by[q->by]);
    json_out_text(o, "label", q->by == LEDGER_BY_LABEL ? q->label : NULL);
    json_out_text(o, "zone", q->local ? "local" : "utc");
    put_time(o, "from", ms_of_ns(q->from_utc_ns));
    put_time(o, "to", ms_of_ns(q->to_utc_ns));
    if (q->one_user)
        json_out_int(o, "only_uid", q->uid);
    else
        json_out_null(o, "only_uid");
    if (q->has_carbon)
        json_out_double(o, "gco2e_kwh", q->gco2e_kwh);
    if (q->has_price) {
        json_out_double(o, "price_kwh", q->price_kwh);
        json_out_text(o, "currency", q->currency);
    }
}

/* ---- boards, days, caps: everybody's, for totals and pictures ---- */

static void put_parts(const struct report *rep, sqlite3_stmt *stmt, int column)
{
    struct json_out *o = rep->o;

    json_out_double(o, "attributed_j", report_j(stmt, column));
    json_out_double(o, "idle_j", report_j(stmt, column + 1));
    json_out_double(o, "unattributed_j", report_j(stmt, column + 2));
    report_energy(rep, "energy_j",
                  report_j(stmt, column) + report_j(stmt, column + 1) +
                      report_j(stmt, column + 2));
    json_out_double(o, "meter_j", report_j(stmt, column + 3));
}

#define PARTS                                                                  \
    " sum(CASE kind WHEN 1 THEN energy_uj END), sum(CASE kind WHEN 2 THEN"     \
    " energy_uj END), sum(CASE kind WHEN 3 THEN energy_uj END), sum(CASE kind" \
    " WHEN 0 THEN energy_uj END)"
/* Energies of all kinds, and the meters' as kind 0. */
#define ALL_KINDS                                                          \
    " (SELECT begin_ms, board, kind, energy_uj FROM energy WHERE " IN_SPAN \
    " UNION ALL SELECT begin_ms, board, 0, energy_uj FROM meter WHERE " IN_SPAN ")"

int report_boards(const struct report *rep, const char *key, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    struct json_out *o = rep->o;

    int r = report_prepare(rep,
                           "SELECT b.at, b.uuid, b.name," PARTS " FROM" ALL_KINDS
                           " e LEFT JOIN board b ON b.id = e.board GROUP BY e.board"
                           " ORDER BY b.at, b.id",
                           &stmt, err);
    if (r < 0)
        return r;
    json_out_array(o, key);
    while ((r = db_step(rep->l, stmt, err)) > 0) {
        json_out_object(o, NULL);
        json_out_int(o, "gpu", sqlite3_column_int64(stmt, 0));
        json_out_text(o, "uuid", db_text(stmt, 1));
        json_out_text(o, "name", db_text(stmt, 2));
        put_parts(rep, stmt, 3);
        json_out_end(o);
    }
    json_out_end(o);
    return r;
}

int report_days(const struct report *rep, const char *key, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    struct json_out *o = rep->o;

    int r = report_prepare(rep,
                           "SELECT CASE WHEN :local THEN date(begin_ms / 1000,"
                           " 'unixepoch', 'localtime') ELSE date(begin_ms / 1000,"
                           " 'unixepoch') END AS day," PARTS " FROM" ALL_KINDS
                           " GROUP BY day ORDER BY day LIMIT 4000",
                           &stmt, err);
    if (r < 0)
        return r;
    json_out_array(o, key);
    while ((r = db_step(rep->l, stmt, err)) > 0) {
        json_out_object(o, NULL);
        json_out_text(o, "day", db_text(stmt, 0));
        put_parts(rep, stmt, 1);
        json_out_end(o);
    }
    json_out_end(o);
    return r;
}

/* Mean, least and most of the cap in force, in at most REPORT_CAPS pieces of time. */
static int put_caps(const struct report *rep, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    struct json_out *o = rep->o;

    int r = report_prepare(
        rep,
        "WITH s AS (SELECT min(begin_ms) AS a, max(begin_ms) AS z FROM energy WHERE"
        " cap_mw > 0 AND " IN_SPAN "), p AS (SELECT a, max(60000, (z - a) / 200 + 1)"
        " AS piece FROM s) SELECT e.board, b.at, b.uuid, p.a + (e.begin_ms - p.a)"
        " / p.piece * p.piece AS at_ms, CAST(round(sum(cap_mw * 1.0 * span_ms) /"
        " max(1, sum(span_ms))) AS INTEGER), min(cap_mw), max(cap_mw) FROM energy e, p"
        " LEFT JOIN board b ON b.id = e.board WHERE cap_mw > 0 AND span_ms > 0 AND"
        " " IN_SPAN " GROUP BY e.board, at_ms ORDER BY e.board, at_ms",
        &stmt, err);
    int64_t board = -1;
    if (r < 0)
        return r;
    json_out_array(o, "caps");
    while ((r = db_step(rep->l, stmt, err)) > 0) {
        if (sqlite3_column_int64(stmt, 0) != board) {
            if (board >= 0) {
                json_out_end(o);
                json_out_end(o);
            }
            board = sqlite3_column_int64(stmt, 0);
            json_out_object(o, NULL);
            json_out_int(o, "gpu", sqlite3_column_int64(stmt, 1));
            json_out_text(o, "uuid", db_text(stmt, 2));
            json_out_array(o, "points");
        }
        json_out_array(o, NULL); /* seconds since 1970, mean, least, most in mW */
        json_out_int(o, NULL, sqlite3_column_int64(stmt, 3) / 1000);
        for (int i = 4; i < 7; i++)
            json_out_int(o, NULL, sqlite3_column_int64(stmt, i));
        json_out_end(o);
    }
    if (board >= 0) {
        json_out_end(o);
        json_out_end(o);
    }
    json_out_end(o);
    return r;
}

/* All of it, as of one moment: a transaction keeps the daemon's writes out. */
static int put_report(const struct report *rep, const char *key, uw_error *err)
{
    struct totals totals;

    int r = read_totals(rep, &totals, err);
    if (r < 0)
        return r;
    json_out_object(rep->o, key);
    put_head(rep, &totals);
    put_totals(rep, &totals);
    r = report_rows(rep, err);
    if (r >= 0)
        r = report_boards(rep, "gpus", err);
    if (r >= 0)
        r = report_days(rep, "days", err);
    if (r >= 0)
        r = put_caps(rep, err);
    if (r >= 0)
        json_out_end(rep->o);
    return r;
}

int ledger_report(struct ledger *l, const struct ledger_query *q, struct json_out *o,
                  const char *key, uw_error *err)
{
    struct report rep = {l, q, o};

    int r = ledger_query_check(q, err);
    if (r < 0)
        return r;
    r = db_exec(l, "BEGIN", err);
    if (r < 0)
        return r;
    r = put_report(&rep, key, err);
    db_rollback(l);
    return r < 0 ? r : 0;
}
