/* Charges of energy beyond the columns of its rows: the origin of factors, and the
 * changes by their later values.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "io/store/inside.h"

#define UJ_PER_KWH INT64_C(3600000000000)
#define FRACTIONS 1000 /* of a milligram or millionth a kWh, in a factor */
#define QUARTER_MS (LEDGER_QUARTER_S * INT64_C(1000))
#define ROW_MS INT64_C(660000) /* longest row as booked: 10 min and a short delay */
__extension__ typedef __int128 wide;

/* The name of a source without its details: see ledger_factor. */
#define NAME_OF(source)                                                       \
    "iif(" source " GLOB 'signals * (*', substr(" source ", 1, instr(" source \
    ", ' (') - 1), " source ")"

static int kept(struct ledger *l, enum ledger_stmt which, const char *sql, uw_error *err)
{
    return l->stmt[which] ? 0 : db_prepare(l, sql, &l->stmt[which], err);
}

int charge_factor(struct ledger *l, const struct ledger_factor *f, int64_t *ret,
                  uw_error *err)
{
    *ret = 0;
    if (!f)
        return 0;
    int r = kept(l, STMT_FACTOR_FIND,
                 "SELECT id FROM factor WHERE signal = ? AND source = ? AND unit = ? AND"
                 " estimated = ?",
                 err);
    if (r >= 0)
        r = kept(l, STMT_FACTOR_NEW,
                 "INSERT INTO factor(signal, source, unit, estimated) VALUES(?, ?, ?, ?)",
                 err);
    if (r < 0)
        return r;
    sqlite3_stmt *find = l->stmt[STMT_FACTOR_FIND], *new = l->stmt[STMT_FACTOR_NEW];
    db_bind(find, "ttti", f->signal, f->source, f->unit, (int64_t)f->estimated);
    r = db_step(l, find, err);
    if (r > 0)
        *ret = sqlite3_column_int64(find, 0);
    (void)sqlite3_reset(find);
    if (r != 0)
        return r < 0 ? r : 0;
    db_bind(new, "ttti", f->signal, f->source, f->unit, (int64_t)f->estimated);
    r = db_run(l, new, err);
    *ret = sqlite3_last_insert_rowid(l->db);
    return r;
}

/* ---- revisions ---- */

/* Booked rows of a board and a job in the quarter, or of idle or unattributed energy. */
struct account {
    int64_t board, kind, job; /* board 0: none yet */
    /* [1]: for rows without a factor */
    struct {
        int64_t amount, covered_uj; /* as booked */
        int64_t now_uj;             /* covered by the new values */
        wide sum;                   /* sum of energy times value */
    } of[2];
    bool estimated; /* some of it by an estimated value */
};

struct revising {
    struct ledger *l;
    const struct ledger_revision *rev;
    int64_t begin_ms;
    struct account account;
    uw_error *err;
};

static const struct {
    const char *amount, *prefix;
} columns[LEDGER_CHARGES] = {[LEDGER_CO2] = {"co2_mg", "co2"},
                             [LEDGER_MARGINAL] = {"marginal_mg", "marginal"},
                             [LEDGER_COST] = {"cost", "cost"}};

static int64_t clamp(int64_t ms, int64_t begin_ms, int64_t end_ms)
{
    return ms < begin_ms ? begin_ms : ms > end_ms ? end_ms : ms;
}

/* Adds the energy within the value's time: energy is spread evenly over a row's time, or
 * all at one moment.
 */
static void add_value(struct account *a, bool bare, const struct ledger_value *v,
                      int64_t begin_ms, int64_t span_ms, int64_t uj)
{
    int64_t from_ms = ms_of_ns(v->from_utc_ns), to_ms = ms_of_ns(v->to_utc_ns);
    int64_t from = clamp(from_ms, begin_ms, begin_ms + span_ms) - begin_ms;
    int64_t to = clamp(to_ms, begin_ms, begin_ms + span_ms) - begin_ms;

    if (span_ms == 0 ? begin_ms < from_ms || begin_ms >= to_ms : from == to)
        return;
    if (span_ms > 0)
        uj = (int64_t)((wide)uj * to / span_ms) - (int64_t)((wide)uj * from / span_ms);
    a->of[bare].now_uj += uj;
    a->of[bare].sum += (wide)uj * v->factor;
    a->estimated |= v->estimated;
}

/* Reads the revisions made so far.  *ret_bare: energy without a factor may become
 * covered, as no other source covers it.
 */
static int read_revised(const struct revising *v, int64_t *ret_amount, int64_t *ret_uj,
                        bool *ret_bare)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    const struct ledger_revision *rev = v->rev;
    const struct account *a = &v->account;

    int r = db_ask(
        v->l,
        "SELECT sum(iif(own, amount, 0)), sum(iif(own, covered_uj, 0)),"
        " sum(NOT own) FROM (SELECT amount, covered_uj, " NAME_OF(
            "f.source") " = " NAME_OF("?6") " AND f.unit = ?7 AS own FROM revision r "
                                            "JOIN factor f ON f.id = r.factor"
                                            " WHERE res = 900 AND begin_ms = ?1 AND "
                                            "board = ?2 AND kind = ?3 AND"
                                            " ifnull(job, 0) = ?4 AND f.signal = ?5)",
        &stmt, v->err, "iiiittt", v->begin_ms, a->board, a->kind, a->job, rev->signal,
        rev->source, rev->unit);
    if (r >= 0)
        r = db_step(v->l, stmt, v->err);
    if (r < 0)
        return r;
    *ret_amount = sqlite3_column_int64(stmt, 0);
    *ret_uj = sqlite3_column_int64(stmt, 1);
    *ret_bare = sqlite3_column_int64(stmt, 2) == 0;
    return 0;
}

void ledger_revised_add(struct ledger_revised *to, const struct ledger_revised *from)
{
    if (from->currency[0] && strcmp(from->currency, to->currency) != 0) {
        memcpy(to->currency, from->currency, sizeof to->currency);
        to->amount[LEDGER_COST] = 0;
    }
    for (size_t i = 0; i < LEDGER_CHARGES; i++) {
        to->rows[i] += from->rows[i];
        to->amount[i] += from->amount[i];
    }
}

const struct ledger_revised *ledger_revised(const struct ledger *l)
{
    return &l->revised;
}

static void count(struct ledger *l, const struct ledger_revision *rev, int64_t amount)
{
    struct ledger_revised one = {.rows = {0}};

    one.rows[rev->charge] = 1;
    one.amount[rev->charge] = amount;
    if (rev->charge == LEDGER_COST)
        (void)snprintf(one.currency, sizeof one.currency, "%.*s",
                       (int)strcspn(rev->unit, "/"), rev->unit);
    ledger_revised_add(&l->revised, &one);
}

static int put_difference(const struct revising *v, int64_t amount, int64_t uj)
{
    const struct ledger_revision *rev = v->rev;
    const struct account *a = &v->account;
    const struct ledger_factor f = {rev->signal, rev->source, rev->unit, a->estimated};
    int64_t factor = 0;

    int r = charge_factor(v->l, &f, &factor, v->err);
    if (r < 0)
        return r;
    r = db_do(v->l,
              "INSERT INTO revision(res, begin_ms, board, kind, job, factor, amount,"
              " covered_uj, made_ms) VALUES(900, ?, ?, ?, ?, ?, ?, ?, ?)",
              v->err, "iiiziiii", v->begin_ms, a->board, a->kind, a->job, factor, amount,
              uj, ms_of_ns(rev->utc_ns));
    if (r >= 0)
        count(v->l, rev, amount);
    return r;
}

/* Rounds the amount to the nearest integer.  Booked amounts carry fractions from row to
 * row, so a difference of one counts as none.
 */
static int close_account(struct revising *v)
{
    struct account *a = &v->account;
    const wide per_unit = (wide)UJ_PER_KWH * FRACTIONS;
    int64_t amount = 0, uj = 0;
    bool bare = false;

    if (a->board == 0)
        return 0;
    int r = read_revised(v, &amount, &uj, &bare);
    if (r < 0)
        return r;
    amount += a->of[0].amount;
    uj += a->of[0].covered_uj;
    wide sum = a->of[0].sum + (bare ? a->of[1].sum : 0) + per_unit / 2;
    int64_t now_uj = a->of[0].now_uj + (bare ? a->of[1].now_uj : 0);
    int64_t by = (int64_t)(sum / per_unit - (sum % per_unit < 0)) - amount;
    if (now_uj < uj || (now_uj == uj && by >= -1 && by <= 1))
        return 0;
    return put_difference(v, by, now_uj - uj);
}

/* Columns: board, kind, job, begin_ms, span_ms, energy_uj, amount, covered_uj, whether no
 * factor covers it.
 */
static int add_row(struct revising *v, sqlite3_stmt *stmt)
{
    struct account *a = &v->account;
    int64_t board = sqlite3_column_int64(stmt, 0), kind = sqlite3_column_int64(stmt, 1),
            job = sqlite3_column_int64(stmt, 2);
    bool bare = sqlite3_column_int(stmt, 8) != 0;

    if (board != a->board || kind != a->kind || job != a->job) {
        int r = close_account(v);
        if (r < 0)
            return r;
        *a = (struct account){.board = board, .kind = kind, .job = job};
    }
    a->of[bare].amount += sqlite3_column_int64(stmt, 6);
    a->of[bare].covered_uj += sqlite3_column_int64(stmt, 7);
    for (size_t i = 0; i < v->rev->n; i++)
        add_value(a, bare, &v->rev->value[i], sqlite3_column_int64(stmt, 3),
                  sqlite3_column_int64(stmt, 4), sqlite3_column_int64(stmt, 5));
    return 0;
}

/* Rows that were rolled up, or merged while the file could not be written, no longer
 * show when the energy was used.
 */
static int is_whole(const struct revising *v)
{
    int64_t keep_ms = (int64_t)(v->l->keep.booked_ns / (uint64_t)NS_PER_MS_I);
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    if (v->begin_ms + QUARTER_MS <= ms_of_ns(v->rev->utc_ns) - keep_ms)
        return 0;
    int r = db_ask(v->l,
                   "SELECT 1 FROM energy WHERE res IN (0, 60) AND begin_ms >= ?1 AND"
                   " begin_ms < ?2 AND (res = 60 OR method & ?3 OR span_ms > ?4) LIMIT 1",
                   &stmt, v->err, "iiii", v->begin_ms, v->begin_ms + QUARTER_MS,
                   (int64_t)METHOD_MERGED, ROW_MS);
    if (r >= 0)
        r = db_step(v->l, stmt, v->err);
    return r < 0 ? r : r == 0;
}

int charge_revise(struct ledger *l, const struct ledger_revision *rev, uw_error *err)
{
    struct revising v = {
        .l = l, .rev = rev, .begin_ms = ms_of_ns(rev->begin_utc_ns), .err = err};
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    const char *amount = columns[rev->charge].amount,
               *prefix = columns[rev->charge].prefix;
    char sql[800];

    int r = is_whole(&v);
    if (r <= 0)
        return r;
    (void)snprintf(
        sql, sizeof sql,
        "SELECT board, kind, ifnull(job, 0) AS j, begin_ms, span_ms, energy_uj,"
        " %s, %s_covered_uj, %s_factor IS NULL FROM energy WHERE res = 0 AND"
        " begin_ms >= ?1 AND begin_ms < ?2 AND (%s_factor IS NULL OR %s_factor"
        " IN (SELECT id FROM factor WHERE signal = ?3 AND " NAME_OF(
            "source") " = " NAME_OF("?4") " AND unit = ?5)) ORDER BY board, kind, j",
        amount, prefix, prefix, prefix, prefix);
    r = db_ask(l, sql, &stmt, err, "iittt", v.begin_ms, v.begin_ms + QUARTER_MS,
               rev->signal, rev->source, rev->unit);
    while (r >= 0 && (r = db_step(l, stmt, err)) > 0)
        r = add_row(&v, stmt);
    return r < 0 ? r : close_account(&v);
}
