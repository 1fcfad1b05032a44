/* Reads the rows of the span once: energies by day, board, kind and job go into small
 * temporary tables that the rest of a report queries, caps over time into pieces.  With
 * GROUP BY, SQLite would sort hundreds of thousands of rows five times per report.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "io/store/report-beside.h"

enum { PARTS_MAX = 1 << 20 };
__extension__ typedef __int128 wide;

struct part {
    int32_t day; /* 20261121; 0: this place is free */
    int8_t kind; /* enum ledger_kind; 0: the meter */
    bool domain; /* not a board */
    int64_t board, job, uj, span_ms;
    struct half_sum half;
    struct report_charges charges;
};

struct parts {
    struct part *part; /* a hash table */
    size_t size, n;    /* size: a power of two */
    const struct ledger_query *q;
    struct zone *zone; /* of q->zone; or NULL */
    int64_t quarter;   /* of the last day queried: no zone's clock differs by less */
    int32_t day;
};

static void parts_fini(struct parts *p)
{
    free(p->part);
    zone_free(p->zone);
}

static size_t slot_of(const struct parts *p, const struct part *key)
{
    uint64_t h = (uint64_t)key->day * UINT64_C(0x9e3779b97f4a7c15);

    h = (h ^ (uint64_t)key->job ^ (uint64_t)key->board << 40 ^
         (uint64_t)key->kind << 56) *
        UINT64_C(0xff51afd7ed558ccd);
    size_t at = (size_t)(h ^ h >> 32) & (p->size - 1);
    for (;; at = (at + 1) & (p->size - 1)) {
        const struct part *q = &p->part[at];
        if (q->day == 0 || (q->day == key->day && q->kind == key->kind &&
                            q->board == key->board && q->job == key->job))
            return at;
    }
}

static int grow(struct parts *p)
{
    struct parts old = *p;

    if (p->size >= PARTS_MAX)
        return -E2BIG;
    p->size = old.size ? 2 * old.size : 1024;
    p->part = calloc(p->size, sizeof *p->part);
    if (!p->part) {
        *p = old;
        return -ENOMEM;
    }
    for (size_t i = 0; i < old.size; i++)
        if (old.part[i].day)
            p->part[slot_of(p, &old.part[i])] = old.part[i];
    free(old.part);
    return 0;
}

/* The date of a moment, in the report's zone. */
static int32_t day_of(struct parts *p, int64_t ms)
{
    int64_t quarter = ms / (LEDGER_QUARTER_S * INT64_C(1000));
    struct tm tm;

    if (p->day && quarter == p->quarter)
        return p->day;
    time_t at = (time_t)ledger_query_wall_s(p->q, p->zone, quarter * LEDGER_QUARTER_S);
    if (!gmtime_r(&at, &tm))
        return 19700101;
    p->quarter = quarter;
    p->day = (tm.tm_year + 1900) * 10000 + (tm.tm_mon + 1) * 100 + tm.tm_mday;
    return p->day;
}

static int add(struct parts *p, int64_t begin_ms, const struct part *row)
{
    struct part key = *row;

    if (2 * (p->n + 1) > p->size) {
        int r = grow(p);
        if (r < 0)
            return r;
    }
    key.day = day_of(p, begin_ms);
    struct part *q = &p->part[slot_of(p, &key)];
    if (q->day == 0) {
        *q = key;
        p->n++;
        return 0;
    }
    q->uj += row->uj;
    half_sum_add(&q->half, &row->half);
    q->span_ms += row->span_ms;
    report_add_charges(&q->charges, &row->charges);
    return 0;
}

/* ---- caps over time ---- */

/* Index of a board among those with caps; false: there are too many. */
static bool caps_board(struct report_caps *c, int64_t board, size_t *ret)
{
    size_t i = 0;

    while (i < c->n && c->board[i] != board)
        i++;
    if (i == LEDGER_BOARDS)
        return false;
    if (i == c->n)
        c->board[c->n++] = board;
    *ret = i;
    return true;
}

static void caps_add(struct report_caps *c, int64_t board, int64_t begin_ms,
                     int64_t span_ms, int64_t mw)
{
    int64_t at = (begin_ms - c->begin_ms) / c->piece_ms;
    size_t i = 0;

    if (mw <= 0 || span_ms <= 0 || at < 0 || at >= REPORT_PIECES ||
        !caps_board(c, board, &i))
        return;
    struct report_cap *p = &c->piece[i * REPORT_PIECES + (size_t)at];
    if (p->span_ms == 0 || mw < p->least_mw)
        p->least_mw = mw;
    if (mw > p->most_mw)
        p->most_mw = mw;
    p->sum += (double)mw * (double)span_ms;
    p->span_ms += span_ms;
}

/* Pieces over the time that has any rows. */
static int caps_begin(struct report *rep, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    struct report_caps *c = &rep->caps;

    int r = report_prepare(
        rep,
        "SELECT min(a), max(z) FROM (SELECT min(begin_ms) AS a, max(begin_ms) AS z FROM"
        " energy WHERE res = 0 AND begin_ms >= :from AND begin_ms < :to UNION ALL SELECT"
        " min(begin_ms), max(begin_ms) FROM energy WHERE res = 60 AND begin_ms >= :from"
        " AND begin_ms < :to UNION ALL SELECT min(begin_ms), max(begin_ms) FROM energy"
        " WHERE res = 3600 AND begin_ms >= :from AND begin_ms < :to UNION ALL SELECT"
        " min(begin_ms), max(begin_ms) FROM energy WHERE res = 86400 AND begin_ms >="
        " :from AND begin_ms < :to)",
        &stmt, err);
    if (r >= 0)
        r = db_step(rep->l, stmt, err);
    if (r < 0)
        return r;
    c->begin_ms = sqlite3_column_int64(stmt, 0);
    int64_t most = sqlite3_column_int64(stmt, 1) - c->begin_ms;
    c->piece_ms = most / REPORT_PIECES + 1;
    if (c->piece_ms < 60000)
        c->piece_ms = 60000;
    c->piece = calloc((size_t)LEDGER_BOARDS * REPORT_PIECES, sizeof *c->piece);
    return c->piece ? 0 : fail(err, -ENOMEM, "out of memory");
}

/* ---- reading all rows ---- */

#define IS_PRICED "cost_factor IN (SELECT id FROM factor WHERE unit = :unit)"
#define IS_DOMAIN "board IN (SELECT id FROM board WHERE kind > 1)"

/* The time whose rows are shown: for domains, whole periods. */
static void told_span(const struct report *rep, bool domain, int64_t *ret_from_ms,
                      int64_t *ret_to_ms)
{
    const struct ledger_query *q = rep->q;
    int64_t period_ms = (int64_t)(q->domains.period_ns / (uint64_t)NS_PER_MS_I);
    int64_t from_ms = ms_of_ns(q->from_utc_ns), to_ms = ms_of_ns(q->to_utc_ns);

    if (domain && period_ms > 0) {
        int64_t until_ms = ms_of_ns(q->domains.until_utc_ns);
        from_ms += period_ms - 1;
        to_ms = until_ms < to_ms ? until_ms : to_ms;
        from_ms -= from_ms % period_ms;
        to_ms -= to_ms % period_ms;
    }
    *ret_from_ms = from_ms;
    *ret_to_ms = to_ms;
}

/* Whether a domain's row of that time may be shown. */
static bool is_told(const struct report *rep, int64_t begin_ms)
{
    int64_t from_ms, to_ms;

    told_span(rep, true, &from_ms, &to_ms);
    return begin_ms >= from_ms && begin_ms < to_ms;
}

int report_price(struct report *rep, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    int64_t units = 0;

    int r = db_number(rep->l,
                      "SELECT count(DISTINCT unit) FROM factor WHERE signal ="
                      " 'price'",
                      0, &units, err);
    if (r < 0 || units == 0)
        return r;
    r = report_prepare(rep,
                       units == 1 ? "SELECT unit FROM factor WHERE signal = 'price'"
                                  : "SELECT f.unit FROM energy e JOIN factor f ON f.id ="
                                    " e.cost_factor WHERE " IN_SPAN
                                    " GROUP BY f.unit ORDER BY sum(cost_covered_uj) DESC,"
                                    " f.unit LIMIT 1",
                       &stmt, err);
    if (r >= 0)
        r = db_step(rep->l, stmt, err);
    if (r > 0)
        (void)snprintf(rep->price_unit, sizeof rep->price_unit, "%s", db_text(stmt, 0));
    return r;
}

void report_use_factor(struct report *rep, int64_t id)
{
    if (id > 0 && id < REPORT_FACTORS)
        rep->used[id] = 1;
}

static void add_beside(const struct report *rep, sqlite3_stmt *stmt, struct part *row)
{
    const struct report_beside_row of = {
        .board = row->board,
        .kind = row->kind,
        .res = sqlite3_column_int64(stmt, 11 + REPORT_CHARGE_COLUMNS + LEDGER_CHARGES),
        .begin_ms = sqlite3_column_int64(stmt, 0),
        .span_ms = row->span_ms,
        .energy_uj = row->uj};

    report_beside_row(rep->beside, &of, row->charges.beside);
}

static int read_energy(struct report *rep, struct parts *p, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = report_prepare(
        rep,
        "SELECT begin_ms, span_ms, board, kind, job, energy_uj,"
        " half_uj, method, simulated, cap_mw, " IS_DOMAIN
        ", co2_mg, co2_covered_uj, 0, marginal_mg,"
        " marginal_covered_uj, 0, iif(" IS_PRICED ", cost, 0), iif(" IS_PRICED
        ", cost_covered_uj, 0), 0, 0, 0, 0, 0, 0, co2_factor, marginal_factor,"
        " cost_factor, res FROM energy WHERE " IN_SPAN,
        &stmt, err);
    while (r >= 0 && (r = db_step(rep->l, stmt, err)) > 0) {
        int64_t begin_ms = sqlite3_column_int64(stmt, 0);
        struct part row = {
            .span_ms = sqlite3_column_int64(stmt, 1),
            .board = sqlite3_column_int64(stmt, 2),
            .kind = (int8_t)sqlite3_column_int(stmt, 3),
            .job = sqlite3_column_int64(stmt, 4),
            .uj = sqlite3_column_int64(stmt, 5),
            .domain = sqlite3_column_int(stmt, 10) != 0,
        };
        row.half = store_half(row.uj, sqlite3_column_int64(stmt, 6),
                              (unsigned)sqlite3_column_int(stmt, 7));
        report_charges(stmt, 11, &row.charges);
        if (row.domain && !is_told(rep, begin_ms))
            continue;
        unsigned *method = row.domain ? &rep->domain_method : &rep->method;
        *method |= (unsigned)sqlite3_column_int(stmt, 7);
        rep->simulated |= sqlite3_column_int(stmt, 8) != 0;
        for (int i = 0; i < LEDGER_CHARGES; i++)
            report_use_factor(rep,
                              sqlite3_column_int64(stmt, 11 + REPORT_CHARGE_COLUMNS + i));
        if (!row.domain)
            add_beside(rep, stmt, &row);
        caps_add(&rep->caps, row.board, begin_ms, row.span_ms,
                 sqlite3_column_int64(stmt, 9));
        r = add(p, begin_ms, &row);
        if (r < 0)
            return fail(err, r, "out of memory for the report");
    }
    return r;
}

/* ---- revisions ---- */

struct revised {
    int64_t begin_ms, end_ms; /* of its bucket */
    int64_t board, kind, job, amount, uj;
    int charge;
    bool domain;
};

/* The part of v that comes before this much of the total energy. */
static int64_t share(int64_t v, int64_t before_uj, int64_t all_uj)
{
    return (int64_t)((wide)v * before_uj / all_uj);
}

/* Takes the part of a bucket that the span cuts: by its energy there or, if energy
 * became covered, by the energy without a factor.  0: it is not in the span.
 */
static int cut(const struct report *rep, struct revised *v, uw_error *err)
{
    static const char *const covered[] = {"co2", "marginal", "cost"};
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    int64_t from_ms, to_ms, uj[6];
    char sql[480];

    told_span(rep, v->domain, &from_ms, &to_ms);
    if (v->end_ms <= from_ms || v->begin_ms >= to_ms)
        return 0;
    if (v->begin_ms >= from_ms && v->end_ms <= to_ms)
        return 1;
    (void)snprintf(sql, sizeof sql,
                   "SELECT sum(iif(t < ?6, e, 0)), sum(iif(t < ?7, e, 0)), sum(e),"
                   " sum(iif(t < ?6, u, 0)), sum(iif(t < ?7, u, 0)), sum(u) FROM (SELECT"
                   " begin_ms AS t, energy_uj AS e, energy_uj - ifnull(%s_covered_uj, 0)"
                   " AS u FROM energy WHERE res IN (0, 60, 3600, 86400) AND begin_ms >="
                   " ?1 AND begin_ms < ?2 AND board = ?3 AND kind = ?4 AND ifnull(job, 0)"
                   " = ?5)",
                   covered[v->charge]);
    int r = db_ask(rep->l, sql, &stmt, err, "iiiiiii", v->begin_ms, v->end_ms, v->board,
                   v->kind, v->job, from_ms, to_ms);
    if (r >= 0)
        r = db_step(rep->l, stmt, err);
    if (r < 0)
        return r;
    for (int i = 0; i < 6; i++)
        uj[i] = sqlite3_column_int64(stmt, i);
    if (uj[2] <= 0) /* no energy is left there */
        return v->begin_ms >= from_ms;
    const int64_t *by = v->uj > 0 && uj[5] > 0 ? &uj[3] : uj;
    v->amount = share(v->amount, by[1], by[2]) - share(v->amount, by[0], by[2]);
    v->uj = share(v->uj, by[1], by[2]) - share(v->uj, by[0], by[2]);
    v->begin_ms = v->begin_ms < from_ms ? from_ms : v->begin_ms;
    return uj[1] > uj[0];
}

static int add_revised(struct report *rep, struct parts *p, sqlite3_stmt *stmt,
                       uw_error *err)
{
    struct revised v = {.begin_ms = sqlite3_column_int64(stmt, 0),
                        .end_ms = sqlite3_column_int64(stmt, 9),
                        .board = sqlite3_column_int64(stmt, 1),
                        .kind = sqlite3_column_int64(stmt, 2),
                        .job = sqlite3_column_int64(stmt, 3),
                        .amount = sqlite3_column_int64(stmt, 4),
                        .uj = sqlite3_column_int64(stmt, 5),
                        .charge = sqlite3_column_int(stmt, 6),
                        .domain = sqlite3_column_int(stmt, 7) != 0};
    int r = cut(rep, &v, err);
    if (r <= 0)
        return r;
    struct part row = {
        .board = v.board, .kind = (int8_t)v.kind, .job = v.job, .domain = v.domain};
    row.charges.of[v.charge].amount = row.charges.of[v.charge].revised = v.amount;
    row.charges.of[v.charge].uj = v.uj;
    report_use_factor(rep, sqlite3_column_int64(stmt, 8));
    r = add(p, v.begin_ms, &row);
    return r < 0 ? fail(err, r, "out of memory for the report") : 0;
}

/* Reads the changes by later values of factors: they change an amount, and no energy. */
static int read_revisions(struct report *rep, struct parts *p, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = report_prepare(rep,
                           "SELECT begin_ms, board, kind, job, amount, covered_uj,"
                           " CASE f.signal WHEN 'carbon' THEN 0 WHEN 'carbon.marginal'"
                           " THEN 1 ELSE 2 END, " IS_DOMAIN ", f.id, begin_ms + res *"
                           " 1000 FROM revision r JOIN factor f ON f.id = r.factor WHERE"
                           " res IN (900, 3600, 86400) AND begin_ms > :from - 86400000"
                           " AND begin_ms < :to AND (f.signal <> 'price' OR f.unit ="
                           " :unit)",
                           &stmt, err);
    while (r >= 0 && (r = db_step(rep->l, stmt, err)) > 0)
        r = add_revised(rep, p, stmt, err);
    return r;
}

static int read_meter(struct report *rep, struct parts *p, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = report_prepare(
        rep, "SELECT begin_ms, board, energy_uj, " IS_DOMAIN " FROM meter WHERE " IN_SPAN,
        &stmt, err);
    while (r >= 0 && (r = db_step(rep->l, stmt, err)) > 0) {
        struct part row = {.board = sqlite3_column_int64(stmt, 1),
                           .uj = sqlite3_column_int64(stmt, 2),
                           .domain = sqlite3_column_int(stmt, 3) != 0};
        if (row.domain && !is_told(rep, sqlite3_column_int64(stmt, 0)))
            continue;
        r = add(p, sqlite3_column_int64(stmt, 0), &row);
        if (r < 0)
            return fail(err, r, "out of memory for the report");
    }
    return r;
}

#define COLUMNS                                                                        \
    "(day INTEGER, board INTEGER, kind INTEGER, job INTEGER, energy_uj INTEGER,"       \
    " fixed_j REAL, noise2_j2 REAL, span_ms INTEGER, co2_mg INTEGER, co2_uj INTEGER, " \
    "co2_by"                                                                           \
    " INTEGER, marginal_mg INTEGER, marginal_uj INTEGER, marginal_by INTEGER,"         \
    " cost INTEGER, cost_uj INTEGER, cost_by INTEGER, market_mg REAL, market_uj"       \
    " REAL, embodied_mg REAL, embodied_ms REAL, board_ms REAL);"
#define VALUES " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
static int write_parts(struct report *rep, const struct parts *p, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *board = NULL, *domain = NULL;

    int r =
        db_exec(rep->l,
                "CREATE TEMP TABLE part" COLUMNS "CREATE TEMP TABLE domain_part" COLUMNS
                "CREATE INDEX temp.domain_by_job ON domain_part(job)",
                err);
    if (r >= 0)
        r = db_prepare(rep->l, "INSERT INTO temp.part" VALUES, &board, err);
    if (r >= 0)
        r = db_prepare(rep->l, "INSERT INTO temp.domain_part" VALUES, &domain, err);
    for (size_t i = 0; r >= 0 && i < p->size; i++) {
        const struct part *q = &p->part[i];
        if (!q->day)
            continue;
        sqlite3_stmt *stmt = q->domain ? domain : board;
        const struct report_charges *c = &q->charges;
        db_bind(stmt, "iiiiiddiiiiiiiiiiddddd", (int64_t)q->day, q->board,
                (int64_t)q->kind, q->job, q->uj, q->half.fixed_j, q->half.noise2_j2,
                q->span_ms, c->of[LEDGER_CO2].amount, c->of[LEDGER_CO2].uj,
                c->of[LEDGER_CO2].revised, c->of[LEDGER_MARGINAL].amount,
                c->of[LEDGER_MARGINAL].uj, c->of[LEDGER_MARGINAL].revised,
                c->of[LEDGER_COST].amount, c->of[LEDGER_COST].uj,
                c->of[LEDGER_COST].revised, c->beside[BESIDE_MARKET_MG],
                c->beside[BESIDE_MARKET_UJ], c->beside[BESIDE_EMBODIED_MG],
                c->beside[BESIDE_EMBODIED_MS], c->beside[BESIDE_BOARD_MS]);
        r = db_run(rep->l, stmt, err);
    }
    return r;
}

int report_gather(struct report *rep, uw_error *err)
{
    struct parts p = {.q = rep->q};

    int r = caps_begin(rep, err);
    if (r >= 0 && rep->q->zone[0])
        r = zone_read(rep->q->zone, &p.zone, err);
    if (r >= 0)
        r = report_price(rep, err);
    if (r >= 0)
        r = report_beside_new(rep, &rep->beside, err);
    if (r >= 0)
        r = read_energy(rep, &p, err);
    if (r >= 0)
        r = read_revisions(rep, &p, err);
    if (r >= 0)
        r = read_meter(rep, &p, err);
    if (r >= 0)
        r = write_parts(rep, &p, err);
    parts_fini(&p);
    return r < 0 ? r : 0;
}
