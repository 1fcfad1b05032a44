/* Rolling up: old rows of one resolution become rows of the next one, their energies
 * added in integer microjoules, so that every sum is unchanged.
 */
#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "base/units.h"
#include "io/store/inside.h"

enum { FORGET_ROWS = 500, FORGET_JOBS = 100 }; /* in one step */
#define MINUTES_MS(n) ((n)*INT64_C(60000))

#define CHARGES                                                             \
    "co2_mg, co2_covered_uj, co2_factor, marginal_mg, marginal_covered_uj," \
    " marginal_factor, cost, cost_covered_uj, cost_factor"
/* Rows with different factors stay separate.  Up to the minute, the cap is part of a
 * row's key; above it, a row has its mean over time (0: unknown in part).
 */
#define ENERGY_UP(cap, group)                                                           \
    "INSERT INTO energy(res, begin_ms, span_ms, boot, board, kind, job, phase, cap_mw," \
    " energy_uj, half_uj, method, simulated, waste, " CHARGES ")"                       \
    " SELECT ?4, begin_ms / ?3 * ?3 AS at, sum(span_ms), boot, board, kind, job,"       \
    " phase, " cap ", sum(energy_uj), half_sum(energy_uj, half_uj, method),"            \
    " max(method & 1) | max(method & 2) | max(method & 4), simulated, waste, "          \
    "sum(co2_mg),"                                                                      \
    " sum(co2_covered_uj), co2_factor, sum(marginal_mg), sum(marginal_covered_uj),"     \
    " marginal_factor, sum(cost), sum(cost_covered_uj), cost_factor FROM energy"        \
    " WHERE res = ?5 AND begin_ms >= ?1 AND begin_ms < ?2"                              \
    " GROUP BY at, boot, board, kind, job, phase, " group                               \
    "simulated, waste, co2_factor,"                                                     \
    " marginal_factor, cost_factor"
#define MEAN_CAP                                              \
    "CASE WHEN count(cap_mw) = count(*) AND sum(span_ms) > 0" \
    " THEN (sum(cap_mw * span_ms) + sum(span_ms) / 2) / sum(span_ms) END"
static const char to_minute[] = ENERGY_UP("cap_mw", "cap_mw, ");
static const char to_more[] = ENERGY_UP(MEAN_CAP, "");
static const char meter_up[] =
    "INSERT INTO meter(res, begin_ms, span_ms, boot, board, energy_uj)"
    " SELECT ?4, begin_ms / ?3 * ?3 AS at, sum(span_ms), boot, board, sum(energy_uj)"
    " FROM meter WHERE res = ?5 AND begin_ms >= ?1 AND begin_ms < ?2"
    " GROUP BY at, boot, board";
static const char revision_up[] =
    "INSERT INTO revision(res, begin_ms, board, kind, job, factor, amount, covered_uj,"
    " made_ms) SELECT ?4, begin_ms / ?3 * ?3 AS at, board, kind, job, factor,"
    " sum(amount), sum(covered_uj), max(made_ms) FROM revision WHERE res = ?5 AND"
    " begin_ms >= ?1 AND begin_ms < ?2 GROUP BY at, board, kind, job, factor";

/* window_ms: the size of one step: some hundred rows of eight boards. */
static const struct level {
    enum ledger_res from, to;
    int64_t window_ms;
    const char *table, *up;
} levels[] = {
    {RES_BOOKED, RES_MINUTE, MINUTES_MS(10), "energy", to_minute},
    {RES_MINUTE, RES_HOUR, MINUTES_MS(60), "energy", to_more},
    {RES_HOUR, RES_DAY, MS_PER_DAY, "energy", to_more},
    {RES_BOOKED, RES_MINUTE, MINUTES_MS(30), "meter", meter_up},
    {RES_MINUTE, RES_HOUR, MINUTES_MS(60), "meter", meter_up},
    {RES_HOUR, RES_DAY, MS_PER_DAY, "meter", meter_up},
    {RES_QUARTER, RES_HOUR, MINUTES_MS(60), "revision", revision_up},
    {RES_HOUR, RES_DAY, MS_PER_DAY, "revision", revision_up},
};

static int run_window(struct ledger *l, const char *sql, const struct level *level,
                      int64_t begin_ms, uw_error *err)
{
    return db_do(l, sql, err, "iiiii", begin_ms, begin_ms + level->window_ms,
                 (int64_t)level->to * 1000, (int64_t)level->to, (int64_t)level->from);
}

/* 1: a window was rolled up; 0: nothing is old enough. */
static int roll_up(struct ledger *l, const struct level *level, int64_t keep_ms,
                   int64_t now_ms, uw_error *err)
{
    int64_t oldest = -1;
    char sql[112];

    (void)snprintf(sql, sizeof sql, "SELECT min(begin_ms) FROM %s WHERE res = %d",
                   level->table, (int)level->from);
    int r = db_number(l, sql, -1, &oldest, err);
    if (r < 0 || oldest < 0)
        return r;
    int64_t begin_ms = oldest / level->window_ms * level->window_ms;
    if (begin_ms + level->window_ms > now_ms - keep_ms)
        return 0;
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM %s WHERE res = ?5 AND begin_ms >= ?1 AND begin_ms < ?2",
                   level->table);
    r = db_begin(l, err);
    if (r >= 0)
        r = run_window(l, level->up, level, begin_ms, err);
    if (r >= 0)
        r = run_window(l, sql, level, begin_ms, err);
    r = db_end(l, r, err);
    return r < 0
               ? fail_in(err, r, "rolling up %s of %d s", level->table, (int)level->from)
               : 1;
}

/* 1: some rows were forgotten; 0: none is old enough. */
static int forget(struct ledger *l, const char *sql, int64_t before_ms, uw_error *err)
{
    int r = db_do(l, sql, err, "ii", before_ms, (int64_t)FORGET_ROWS);

    return r < 0 ? r : sqlite3_changes(l->db) > 0;
}

/* Rows of the first three tables are in the order of their times, so the oldest come
 * first.
 */
static int forget_old(struct ledger *l, int64_t now_ms, uw_error *err)
{
    const struct {
        uint64_t keep_ns;
        const char *sql;
    } old[] = {
        {l->keep.caps_ns, "DELETE FROM cap WHERE rowid IN (SELECT rowid FROM cap"
                          " ORDER BY rowid LIMIT ?2) AND at_ms < ?1"},
        {l->keep.audit_ns, "DELETE FROM event WHERE rowid IN (SELECT rowid FROM event"
                           " ORDER BY rowid LIMIT ?2) AND at_ms < ?1"},
        {l->keep.audit_ns, "DELETE FROM claim WHERE seq IN (SELECT seq FROM claim"
                           " ORDER BY seq LIMIT ?2) AND ended_ms < ?1"},
        {l->keep.search_ns, "DELETE FROM search WHERE id IN (SELECT id FROM search WHERE"
                            " at_ms < ?1 LIMIT ?2)"},
        {0, "DELETE FROM search_cap WHERE ?1 NOT NULL AND search IN (SELECT search FROM"
            " search_cap WHERE search NOT IN (SELECT id FROM search) LIMIT ?2)"},
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < n_elements(old); i++)
        r = forget(l, old[i].sql, now_ms - (int64_t)(old[i].keep_ns / NS_PER_MS), err);
    return r;
}

/* The last job that may be forgotten in this step: all jobs up to it ended long enough
 * ago. 0: none.
 */
static int jobs_to(struct ledger *l, int64_t before_ms, int64_t *ret, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = db_ask(
        l,
        "SELECT max(id) FROM (SELECT id FROM job WHERE id > ?1 AND id < coalesce("
        "(SELECT id FROM job WHERE id > ?1 AND (ended_ms IS NULL OR ended_ms >= ?2)"
        " ORDER BY id LIMIT 1), 9223372036854775807) ORDER BY id LIMIT ?3)",
        &stmt, err, "iii", l->jobs_tidied, before_ms, (int64_t)FORGET_JOBS);
    if (r >= 0)
        r = db_step(l, stmt, err);
    if (r < 0)
        return r;
    *ret = r > 0 ? sqlite3_column_int64(stmt, 0) : 0;
    return 0;
}

/* A job's rows of energy begin between its start, minus a bucket, and its end.  Jobs
 * that ran in it take their facts from it.
 */
#define NO_ENERGY                                                           \
    "(SELECT id FROM job j WHERE id > ?1 AND id <= ?2 AND NOT EXISTS"       \
    " (SELECT 1 FROM energy WHERE res IN (0, 60, 3600, 86400) AND begin_ms" \
    " BETWEEN j.began_ms - 86400000 AND j.ended_ms AND job = j.id)"         \
    " AND id NOT IN (SELECT within FROM job WHERE within NOT NULL))"

static int drop_jobs(struct ledger *l, int64_t to, uw_error *err)
{
    static const char *const drop[] = {
        "DELETE FROM job_label WHERE job IN " NO_ENERGY,
        "DELETE FROM job_board WHERE job IN " NO_ENERGY,
        "DELETE FROM job WHERE id IN " NO_ENERGY,
    };
    int r = 0;

    for (size_t i = 0; i < n_elements(drop) && r >= 0; i++)
        r = db_do(l, drop[i], err, "ii", l->jobs_tidied, to);
    return r;
}

/* Jobs without any energy are removed once their claims and events are; the others stay,
 * like their rows. 1: some were checked.
 */
static int forget_jobs(struct ledger *l, int64_t now_ms, uw_error *err)
{
    int64_t before_ms = now_ms - (int64_t)(l->keep.audit_ns / NS_PER_MS), to = 0;

    int r = jobs_to(l, before_ms, &to, err);
    if (r < 0 || to == 0)
        return r;
    r = db_begin(l, err);
    if (r >= 0)
        r = drop_jobs(l, to, err);
    r = db_end(l, r, err);
    if (r < 0)
        return fail_in(err, r, "forgetting jobs");
    l->jobs_tidied = to;
    return 1;
}

/* Resume from the time that an earlier run stored, or from the newest row. */
static void begin_clock(struct ledger *l)
{
    int64_t newest = 0;

    (void)db_number(l, "SELECT max(begin_ms) FROM meter WHERE res = 0", 0, &newest, NULL);
    (void)meta_get(l, "tidy_ms", newest, &l->clock.at_ms, NULL);
    (void)meta_get(l, "tidy_stood_ms", 0, &l->clock.stood_ms, NULL);
    (void)meta_get(l, "tidy_utc_ms", l->clock.at_ms, &l->clock.utc_ms, NULL);
    l->clock_kept_ms = l->clock.at_ms;
}

/* Stored once an hour: after a kill the clock is at most an hour behind. */
static void keep_clock(struct ledger *l)
{
    int64_t since_ms = l->clock.at_ms - l->clock_kept_ms;

    if (since_ms > -MINUTES_MS(60) && since_ms < MINUTES_MS(60))
        return;
    if (meta_set(l, "tidy_ms", l->clock.at_ms, NULL) >= 0 &&
        meta_set(l, "tidy_utc_ms", l->clock.utc_ms, NULL) >= 0 &&
        meta_set(l, "tidy_stood_ms", l->clock.stood_ms, NULL) >= 0)
        l->clock_kept_ms = l->clock.at_ms;
}

int64_t ledger_clock(struct ledger *l, uint64_t now_ns, int64_t utc_ns)
{
    if (!l->clock.seen && ledger_is_open(l))
        begin_clock(l);
    tidy_clock_look(&l->clock, now_ns, ms_of_ns(utc_ns));
    if (ledger_is_open(l))
        keep_clock(l);
    return l->clock.at_ms * NS_PER_MS_I;
}

/* The time for which rows of this resolution are kept.  Revisions are kept as long as
 * the rows that they revise.
 */
static uint64_t kept_ns(const struct ledger_keep *k, enum ledger_res res)
{
    switch (res) {
    case RES_BOOKED:
        return k->booked_ns;
    case RES_MINUTE:
        return k->minute_ns;
    case RES_QUARTER:
        return k->minute_ns > k->booked_ns ? k->minute_ns : k->booked_ns;
    default:
        return k->hour_ns;
    }
}

int ledger_tidy(struct ledger *l, int64_t utc_ns, uw_error *err)
{
    int64_t now_ms = ms_of_ns(utc_ns);
    const struct ledger_keep *k = &l->keep;

    if (!ledger_is_open(l))
        return 0;
    for (size_t i = 0; i < n_elements(levels); i++) {
        int64_t keep_ms = (int64_t)(kept_ns(k, levels[i].from) / NS_PER_MS);
        int r = roll_up(l, &levels[i], keep_ms, now_ms, err);
        if (r != 0)
            return r;
    }
    int r = forget_old(l, now_ms, err);
    return r != 0 ? r : forget_jobs(l, now_ms, err);
}
