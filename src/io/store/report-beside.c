#include "io/store/report-beside.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/error.h"
#include "core/carbon/accounting.h"

enum { HOUR_MS = 3600000, HOURS_MAX = 1 << 22, ORIGINS = 20 };

struct board {
    int64_t id;
    bool known; /* the figure of its model was given */
    double g_hour;
};

struct hour {
    int64_t hour, board;
    struct embodied_hour of;
};

struct report_beside {
    struct market *market;
    struct board *board;
    size_t n_boards, boards_cap;
    struct hour *hour; /* in the order of hour and board */
    size_t n_hours, hours_cap;
};

void report_beside_free(struct report_beside *b)
{
    if (!b)
        return;
    market_free(b->market);
    free(b->board);
    free(b->hour);
    free(b);
}
DEFINE_AUTO(struct report_beside *, report_beside_free);

/* ---- contracts ---- */

/* A rolled-up row represents its bucket. */
static int64_t end_of(int64_t begin_ms, int64_t res, int64_t span_ms)
{
    return begin_ms + (res > 0 ? res * 1000 : span_ms);
}

/* A contract covers energy of its whole time, whatever part of it is reported. */
static int use_energy(const struct report *rep, struct market *m, uw_error *err)
{
    const struct accounting *a = rep->q->accounting;
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    int64_t from_ms = INT64_MAX, to_ms = INT64_MIN;

    for (size_t i = 0; i < a->n_contracts; i++) {
        const struct market_contract *c = &a->contract[i];
        from_ms = c->from_ms < from_ms ? c->from_ms : from_ms;
        to_ms = c->to_ms > to_ms ? c->to_ms : to_ms;
    }
    if (from_ms >= to_ms)
        return 0;
    int r = db_ask(rep->l,
                   "SELECT begin_ms, res, span_ms, energy_uj FROM energy WHERE res IN (0,"
                   " 60, 3600, 86400) AND begin_ms >= ? AND begin_ms < ? AND board IN"
                   " (SELECT id FROM board WHERE kind = 1)",
                   &stmt, err, "ii", from_ms - MS_PER_DAY, to_ms);
    while (r >= 0 && (r = db_step(rep->l, stmt, err)) > 0) {
        int64_t begin_ms = sqlite3_column_int64(stmt, 0);
        market_use(m, begin_ms,
                   end_of(begin_ms, sqlite3_column_int64(stmt, 1),
                          sqlite3_column_int64(stmt, 2)),
                   sqlite3_column_int64(stmt, 3));
    }
    return r;
}

static int read_contracts(const struct report *rep, struct report_beside *b,
                          uw_error *err)
{
    const struct accounting *a = rep->q->accounting;

    int r = market_new(a->contract, a->n_contracts, &b->market);
    if (r < 0)
        return fail(err, r, "out of memory for the report");
    r = use_energy(rep, b->market, err);
    if (r >= 0)
        market_settle(b->market);
    return r;
}

/* ---- boards and their hours ---- */

static int read_boards(const struct report *rep, struct report_beside *b, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = db_prepare(rep->l, "SELECT id, name FROM board WHERE kind = 1", &stmt, err);
    while (r >= 0 && (r = db_step(rep->l, stmt, err)) > 0) {
        if (array_grow(&b->board, &b->boards_cap, b->n_boards, HOURS_MAX) < 0)
            return fail(err, -ENOMEM, "out of memory for the report");
        const struct embodied *e = accounting_board(rep->q->accounting, db_text(stmt, 1));
        b->board[b->n_boards++] =
            (struct board){sqlite3_column_int64(stmt, 0), e != NULL, e ? e->g_hour : 0};
    }
    return r;
}

/* Rows of one board in one hour, in the order of their start. */
struct reading {
    int64_t hour, board, begin_ms, res, job;
    struct embodied_hour of;     /* the hour so far */
    struct embodied_hour bucket; /* for rolled-up rows */
    int64_t job_ms, longest_ms;  /* in the bucket: the job's; of the longest before it */
    int64_t until_ms;            /* end of the rows as booked */
};

static void end_job(struct reading *r)
{
    r->longest_ms = r->job_ms > r->longest_ms ? r->job_ms : r->longest_ms;
    r->job_ms = 0;
}

static void end_bucket(struct reading *r)
{
    end_job(r);
    if (r->res > 0)
        r->of.used_ms += embodied_used_ms(&r->bucket, r->longest_ms);
    r->bucket = (struct embodied_hour){0};
    r->longest_ms = 0;
}

static int end_hour(struct reading *r, struct report_beside *b, uw_error *err)
{
    end_bucket(r);
    if (r->board == 0)
        return 0;
    if (array_grow(&b->hour, &b->hours_cap, b->n_hours, HOURS_MAX) < 0)
        return fail(err, -ENOMEM, "out of memory for the report");
    b->hour[b->n_hours++] = (struct hour){r->hour, r->board, r->of};
    return 0;
}

/* Jobs that share a board have rows of the same time. */
static void add_held(struct reading *r, int64_t ms)
{
    int64_t from_ms = r->begin_ms > r->until_ms ? r->begin_ms : r->until_ms;
    int64_t end_ms = r->begin_ms + ms;

    r->of.held_ms += ms;
    r->bucket.held_ms += ms;
    r->job_ms += ms;
    if (r->res > 0 || end_ms <= from_ms)
        return;
    r->of.used_ms += end_ms - from_ms;
    r->until_ms = end_ms;
}

/* Columns: hour, board, begin_ms, res, kind (0: the meter), job, span_ms. */
static int read_hour_row(struct reading *r, sqlite3_stmt *stmt, struct report_beside *b,
                         uw_error *err)
{
    const struct reading at = {
        .hour = sqlite3_column_int64(stmt, 0),
        .board = sqlite3_column_int64(stmt, 1),
        .begin_ms = sqlite3_column_int64(stmt, 2),
        .res = sqlite3_column_int64(stmt, 3),
        .job = sqlite3_column_int64(stmt, 5),
    };
    int64_t kind = sqlite3_column_int64(stmt, 4), ms = sqlite3_column_int64(stmt, 6);

    if (at.hour != r->hour || at.board != r->board) {
        int e = end_hour(r, b, err);
        if (e < 0)
            return e;
        *r = at;
    }
    if (at.begin_ms != r->begin_ms || at.res != r->res)
        end_bucket(r);
    else if (at.job != r->job)
        end_job(r);
    r->begin_ms = at.begin_ms;
    r->res = at.res;
    r->job = at.job;
    if (kind == 0) {
        r->of.board_ms += ms;
        r->bucket.board_ms += ms;
    } else if (kind == LEDGER_UNATTRIBUTED) {
        r->of.other_ms += ms;
        r->bucket.other_ms += ms;
    } else
        add_held(r, ms);
    return 0;
}

static int read_hours(const struct report *rep, struct report_beside *b, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    struct reading reading = {.board = 0};

    int r = report_prepare(
        rep,
        "SELECT begin_ms / 3600000 AS h, board, begin_ms, res, kind, ifnull(job, 0) AS j,"
        " span_ms FROM (SELECT begin_ms, board, res, kind, job, span_ms FROM energy"
        " WHERE " IN_SPAN " UNION ALL SELECT begin_ms, board, res, 0, 0, span_ms FROM"
        " meter WHERE " IN_SPAN ") WHERE board IN (SELECT id FROM board WHERE kind = 1)"
        " ORDER BY h, board, begin_ms, res, j",
        &stmt, err);
    while (r >= 0 && (r = db_step(rep->l, stmt, err)) > 0)
        r = read_hour_row(&reading, stmt, b, err);
    return r < 0 ? r : end_hour(&reading, b, err);
}

int report_beside_new(const struct report *rep, struct report_beside **ret, uw_error *err)
{
    const struct accounting *a = rep->q->accounting;

    *ret = NULL;
    if (!a || (a->n_contracts == 0 && a->n_embodied == 0))
        return 0;
    auto_(report_beside_free) struct report_beside *b = calloc(1, sizeof *b);
    if (!b)
        return fail(err, -ENOMEM, "out of memory for the report");
    int r = a->n_contracts > 0 ? read_contracts(rep, b, err) : 0;
    if (r >= 0 && a->n_embodied > 0)
        r = read_boards(rep, b, err);
    if (r >= 0 && a->n_embodied > 0)
        r = read_hours(rep, b, err);
    if (r < 0)
        return r;
    *ret = take(b);
    return 0;
}

/* ---- one row ---- */

static int by_hour(const void *key, const void *item)
{
    const struct hour *k = key, *h = item;

    if (k->hour != h->hour)
        return k->hour < h->hour ? -1 : 1;
    return (k->board > h->board) - (k->board < h->board);
}

static void add_embodied(const struct report_beside *b,
                         const struct report_beside_row *row, double add[REPORT_BESIDE])
{
    const struct hour key = {.hour = row->begin_ms / HOUR_MS, .board = row->board};
    static const struct embodied_hour none = {0};
    const struct hour *h =
        b->n_hours ? bsearch(&key, b->hour, b->n_hours, sizeof key, by_hour) : NULL;
    double ms =
        embodied_ms(h ? &h->of : &none, row->kind == LEDGER_UNATTRIBUTED, row->span_ms);

    add[BESIDE_BOARD_MS] += ms;
    for (size_t i = 0; i < b->n_boards; i++) {
        if (b->board[i].id != row->board || !b->board[i].known)
            continue;
        add[BESIDE_EMBODIED_MS] += ms;
        add[BESIDE_EMBODIED_MG] += b->board[i].g_hour * 1e3 * ms / HOUR_MS;
    }
}

void report_beside_row(const struct report_beside *b, const struct report_beside_row *row,
                       double add[REPORT_BESIDE])
{
    if (b && b->market) {
        struct market_part p =
            market_part(b->market, row->begin_ms,
                        end_of(row->begin_ms, row->res, row->span_ms), row->energy_uj);
        add[BESIDE_MARKET_MG] += p.mg;
        add[BESIDE_MARKET_UJ] += p.covered_uj;
    }
    if (b && b->n_boards > 0)
        add_embodied(b, row, add);
}

/* ---- as JSON ---- */

void report_put_beside(const struct report *rep, const struct report_charges *c,
                       int64_t energy_uj)
{
    const struct accounting *a = rep->q->accounting;
    const double *v = c->beside;
    struct json_out *o = rep->o;

    if (a && a->pue > 0)
        json_out_known_double(o, "facility_co2_g", c->of[LEDGER_CO2].uj > 0,
                              (double)c->of[LEDGER_CO2].amount / 1e3 * a->pue);
    if (a && a->n_contracts > 0) {
        json_out_known_double(o, "market_g", v[BESIDE_MARKET_UJ] > 0,
                              v[BESIDE_MARKET_MG] / 1e3);
        json_out_known_double(o, "market_covered", energy_uj > 0,
                              v[BESIDE_MARKET_UJ] / (double)energy_uj);
    }
    if (a && a->n_embodied > 0) {
        json_out_known_double(o, "embodied_g", v[BESIDE_EMBODIED_MS] > 0,
                              v[BESIDE_EMBODIED_MG] / 1e3);
        json_out_known_double(o, "embodied_covered", v[BESIDE_BOARD_MS] > 0,
                              v[BESIDE_EMBODIED_MS] / v[BESIDE_BOARD_MS]);
    }
}

static void put_origin(struct json_out *o, const char *signal, const char *source,
                       const char *unit)
{
    json_out_object(o, NULL);
    json_out_text(o, "signal", signal);
    json_out_text(o, "source", source);
    json_out_text(o, "unit", unit);
    json_out_bool(o, "estimated", false);
    json_out_end(o);
}

static bool is_first(const struct accounting *a, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(a->contract[k].origin, a->contract[i].origin) == 0)
            return false;
    return true;
}

void report_put_origins(const struct report *rep)
{
    const struct accounting *a = rep->q->accounting;
    char source[EMBODIED_MODEL + MARKET_ORIGIN + 4];
    size_t n = 0;

    if (rep->q->waste) /* waste has no such figures */
        return;
    for (size_t i = 0; a && i < a->n_contracts && n < ORIGINS; i++) {
        const struct market_contract *c = &a->contract[i];
        if (c->to_ms <= ms_of_ns(rep->q->from_utc_ns) ||
            c->from_ms >= ms_of_ns(rep->q->to_utc_ns) || !is_first(a, i))
            continue;
        put_origin(rep->o, c->kind == MARKET_RESIDUAL ? "market.residual" : "market",
                   c->origin, "g/kWh");
        n++;
    }
    for (size_t i = 0; a && i < a->n_embodied; i++) {
        (void)snprintf(source, sizeof source, "%s: %s", a->embodied[i].model,
                       a->embodied[i].origin);
        put_origin(rep->o, "embodied", source, "g/h");
    }
}
