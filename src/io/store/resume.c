/* The state that a daemon takes over from the runs before it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "io/store/inside.h"

static int64_t ns_of_ms(int64_t ms)
{
    return ms * NS_PER_MS_I;
}

/* The index of a board of this run; false: it is not among them. */
static bool board_at(const struct ledger *l, int64_t id, size_t *ret)
{
    for (size_t i = 0; i < LEDGER_PLACES; i++) {
        if (place_is_known(l, i) && l->board[i] == id) {
            *ret = i;
            return true;
        }
    }
    return false;
}

struct labels_read {
    struct ledger_label label[LEDGER_LABELS];
    char text[LEDGER_LABELS][2][LEDGER_TEXT];
    size_t n;
};

static int read_labels(struct ledger *l, int64_t job, struct labels_read *ret,
                       uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r =
        db_ask(l, "SELECT key, value FROM job_label WHERE job = ?", &stmt, err, "i", job);
    if (r < 0)
        return r;
    ret->n = 0;
    while ((r = db_step(l, stmt, err)) > 0 && ret->n < LEDGER_LABELS) {
        for (int k = 0; k < 2; k++)
            (void)snprintf(ret->text[ret->n][k], LEDGER_TEXT, "%.255s", db_text(stmt, k));
        ret->label[ret->n] =
            (struct ledger_label){ret->text[ret->n][0], ret->text[ret->n][1]};
        ret->n++;
    }
    return r < 0 ? r : 0;
}

static int read_boards(struct ledger *l, int64_t job, uint64_t *ret, uint64_t *ret_held,
                       uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    uint64_t bits = 0, held = 0;
    size_t at = 0;

    int r = db_ask(l, "SELECT board, held FROM job_board WHERE job = ?", &stmt, err, "i",
                   job);
    while (r >= 0 && (r = db_step(l, stmt, err)) > 0)
        if (board_at(l, sqlite3_column_int64(stmt, 0), &at) && at < LEDGER_BOARDS) {
            bits |= UINT64_C(1) << at;
            held |= (uint64_t)(sqlite3_column_int64(stmt, 1) != 0) << at;
        }
    *ret = bits;
    *ret_held = held;
    return r < 0 ? r : 0;
}

static double or_zero(sqlite3_stmt *stmt, int column)
{
    double v = db_double(stmt, column);
    return isnan(v) ? 0 : v;
}

static int read_job(struct ledger *l, sqlite3_stmt *stmt, ledger_job_fn fn, void *user,
                    uw_error *err)
{
    struct labels_read labels;
    int64_t id = sqlite3_column_int64(stmt, 0);
    struct ledger_job job = {
        .id = (uint64_t)id,
        .source = db_text(stmt, 1),
        .name = db_text(stmt, 2),
        .uid = (uid_t)sqlite3_column_int64(stmt, 3),
        .user = db_text(stmt, 4),
        .began_utc_ns = ns_of_ms(sqlite3_column_int64(stmt, 5)),
        .pid = (pid_t)sqlite3_column_int64(stmt, 6),
        .pid_start = (uint64_t)sqlite3_column_int64(stmt, 7),
        .goal = db_text(stmt, 8),
        .cls = db_text(stmt, 9),
        .named_mw = (uint32_t)sqlite3_column_int64(stmt, 10),
        .cap_mw = (uint32_t)sqlite3_column_int64(stmt, 11),
        .steps = (uint64_t)sqlite3_column_int64(stmt, 12),
        .saved_known = !isnan(db_double(stmt, 13)),
        .saved = or_zero(stmt, 13),
        .saved_half = or_zero(stmt, 14),
        .slowdown = or_zero(stmt, 15),
        .slowdown_half = or_zero(stmt, 16),
        .saved_j = or_zero(stmt, 17),
        .saved_half_j = or_zero(stmt, 18),
        .looks = (unsigned)sqlite3_column_int64(stmt, 20),
        .model_known = !isnan(db_double(stmt, 21)),
        .model_saved = or_zero(stmt, 21),
        .model_slowdown = or_zero(stmt, 22),
        .command = db_text(stmt, 23),
        .processes = db_text(stmt, 24),
        .firm = sqlite3_column_int64(stmt, 25) != 0,
        .ended_utc_ns = ns_of_ms(sqlite3_column_int64(stmt, 26)),
        .lost = sqlite3_column_int64(stmt, 27) != 0,
    };

    int r = read_labels(l, id, &labels, err);
    if (r >= 0)
        r = read_boards(l, id, &job.boards, &job.held, err);
    if (r < 0)
        return r;
    job.label = labels.label;
    job.n_labels = labels.n;
    return fn(&job, db_text(stmt, 19), user);
}

int ledger_open_jobs(struct ledger *l, ledger_job_fn fn, void *user, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = db_ask(
        l,
        "SELECT j.id, source, name, uid, user, began_ms, pid, pid_start, goal, class,"
        " named_mw, cap_mw, steps, saved, saved_half, slowdown, slowdown_half, saved_j,"
        " saved_half_j, b.boot_id, looks, model_saved, model_slowdown, command,"
        " processes, firm, ended_ms, lost"
        " FROM job j JOIN boot b ON b.id = j.boot"
        " WHERE ended_ms IS NULL OR (lost AND b.boot_id = ?) ORDER BY j.id",
        &stmt, err, "t", l->boot_id);
    while (r >= 0 && (r = db_step(l, stmt, err)) > 0)
        r = read_job(l, stmt, fn, user, err);
    return r < 0 ? r : 0;
}

static void read_search(sqlite3_stmt *stmt, struct ledger_search *ret)
{
    *ret = (struct ledger_search){
        .uid = (uid_t)sqlite3_column_int64(stmt, 1),
        .boards = (unsigned)sqlite3_column_int64(stmt, 4),
        .job = (uint64_t)sqlite3_column_int64(stmt, 5),
        .utc_ns = ns_of_ms(sqlite3_column_int64(stmt, 6)),
        .reference_mw = (uint32_t)sqlite3_column_int64(stmt, 7),
        .demand_w = or_zero(stmt, 8),
    };
    (void)snprintf(ret->same, sizeof ret->same, "%s", db_text(stmt, 2));
    (void)snprintf(ret->model, sizeof ret->model, "%s", db_text(stmt, 3));
}

int ledger_searches(struct ledger *l, ledger_search_fn fn, void *user, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    struct ledger_search s = {0};
    int64_t of = 0;

    int r = db_prepare(l,
                       "SELECT id, uid, same, model, boards, job, at_ms, reference_mw,"
                       " demand_w, cap_mw, windows, step_s, step_j, step_s_rse,"
                       " step_j_rse FROM search JOIN search_cap ON search = id"
                       " ORDER BY at_ms, id, cap_mw = reference_mw DESC, cap_mw DESC",
                       &stmt, err);
    while (r >= 0 && (r = db_step(l, stmt, err)) > 0) {
        int64_t id = sqlite3_column_int64(stmt, 0);
        if (s.n == 0 || id != of) {
            r = s.n > 0 ? fn(&s, user) : 0;
            read_search(stmt, &s);
            of = id;
        }
        if (s.n < LEDGER_SEARCH_CAPS)
            s.cap[s.n++] = (struct ledger_search_cap){
                .cap_mw = (uint32_t)sqlite3_column_int64(stmt, 9),
                .windows = (unsigned)sqlite3_column_int64(stmt, 10),
                .step_s = or_zero(stmt, 11),
                .step_j = or_zero(stmt, 12),
                .step_s_rse = or_zero(stmt, 13),
                .step_j_rse = or_zero(stmt, 14),
            };
    }
    if (r >= 0 && s.n > 0)
        r = fn(&s, user);
    return r < 0 ? r : 0;
}

static int read_claim(struct ledger *l, sqlite3_stmt *stmt, ledger_claim_fn fn,
                      void *user)
{
    struct ledger_claim claim = {
        .id = (uint64_t)sqlite3_column_int64(stmt, 0),
        .made_utc_ns = ns_of_ms(sqlite3_column_int64(stmt, 2)),
        .until_utc_ns = LEDGER_FOREVER,
        .uid = (uid_t)sqlite3_column_int64(stmt, 4),
        .job = (uint64_t)sqlite3_column_int64(stmt, 5),
        .kind = db_text(stmt, 6),
        .mw = (uint32_t)sqlite3_column_int64(stmt, 7),
        .overwrites = sqlite3_column_int64(stmt, 8) != 0,
        .who = db_text(stmt, 9),
        .why = db_text(stmt, 10),
        .source = db_text(stmt, 12),
        .pid = (pid_t)sqlite3_column_int64(stmt, 13),
        .pid_start = (uint64_t)sqlite3_column_int64(stmt, 14),
    };

    if (sqlite3_column_type(stmt, 3) != SQLITE_NULL)
        claim.until_utc_ns = ns_of_ms(sqlite3_column_int64(stmt, 3));
    if (!board_at(l, sqlite3_column_int64(stmt, 1), &claim.board))
        return 0; /* its board is missing */
    return fn(&claim, db_text(stmt, 11), user);
}

/* Converts a claim's times to today's UTC. ?3: UTC less CLOCK_BOOTTIME now, ?4: the
 * boot's id; the times of claims of another boot stay as they are.
 */
#define SHIFT "(?3 - iif(b.boot_id = ?4, ifnull(ahead_ms, ?3), ?3))"

int ledger_open_claims(struct ledger *l, int64_t utc_ns, int64_t ahead_ns,
                       ledger_claim_fn fn, void *user, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = db_ask(
        l,
        "SELECT claim.id, board, made_ms + " SHIFT ", until_ms + " SHIFT ", uid, job,"
        " kind, mw, walked, who, why, b.boot_id, source, pid, pid_start FROM claim"
        " JOIN run r ON r.id = claim.run JOIN boot b ON b.id = r.boot"
        " WHERE claim.ended_ms IS NULL AND claim.run < ?1"
        " AND (until_ms IS NULL OR until_ms + " SHIFT " > ?2) ORDER BY seq",
        &stmt, err, "iiit", l->run, ms_of_ns(utc_ns), ms_of_ns(ahead_ns), l->boot_id);
    while (r >= 0 && (r = db_step(l, stmt, err)) > 0)
        r = read_claim(l, stmt, fn, user);
    return r < 0 ? r : 0;
}

int ledger_claims_settle(struct ledger *l, int64_t utc_ns, uw_error *err)
{
    return db_do(l,
                 "UPDATE claim SET ended_ms = min(?2, ifnull(until_ms, ?2)),"
                 " how = CASE WHEN until_ms <= ?2 THEN 'expired' ELSE 'restart' END"
                 " WHERE ended_ms IS NULL AND run < ?1",
                 err, "ii", l->run, ms_of_ns(utc_ns));
}

/* Reads a table once for all boards, in the order of the file if everything is wanted;
 * SQLite's GROUP BY would sort it.
 */
static int add_sums(struct ledger *l, const char *sql, struct sums_read *sums,
                    uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = db_ask(l, sql, &stmt, err, "i", sums->from_ms);
    while (r >= 0 && (r = db_step(l, stmt, err)) > 0) {
        int64_t kind = sqlite3_column_int64(stmt, 1), uj = sqlite3_column_int64(stmt, 2);
        int64_t waste =
            kind == LEDGER_IDLE ? WASTE_NOBODY : sqlite3_column_int64(stmt, 3);
        size_t at = 0;
        if (kind < 0 || kind > LEDGER_UNATTRIBUTED ||
            !board_at(l, sqlite3_column_int64(stmt, 0), &at))
            continue;
        sums->uj[at][kind] += uj;
        if (kind != 0 && waste >= 0 && waste < WASTE_N) {
            sums->waste[at][waste].uj += uj;
            sums->waste[at][waste].ms += sqlite3_column_int64(stmt, 4);
        }
    }
    return r;
}

static int read_sums(struct ledger *l, struct sums_read *sums, int64_t from_ms,
                     uw_error *err)
{
    static const char *const all[] = {
        "SELECT board, kind, energy_uj, waste, span_ms FROM energy NOT INDEXED WHERE"
        " begin_ms >= ?",
        "SELECT board, 0, energy_uj, 0, 0 FROM meter NOT INDEXED WHERE begin_ms >= ?"};
    static const char *const some[] = {
        "SELECT board, kind, energy_uj, waste, span_ms FROM energy WHERE res IN (0, 60, "
        "3600, 86400)"
        " AND begin_ms >= ?",
        "SELECT board, 0, energy_uj, 0, 0 FROM meter WHERE res IN (0, 60, 3600, 86400)"
        " AND begin_ms >= ?"};
    const char *const *sql = from_ms > 0 ? some : all;

    *sums = (struct sums_read){.from_ms = from_ms};
    int r = add_sums(l, sql[0], sums, err);
    if (r >= 0)
        r = add_sums(l, sql[1], sums, err);
    sums->known = r >= 0;
    return r;
}

int ledger_board_sums(struct ledger *l, size_t board, int64_t from_utc_ns,
                      struct ledger_sums *ret, uw_error *err)
{
    int64_t from_ms = from_utc_ns > 0 ? ms_of_ns(from_utc_ns) : 0;

    if (!place_is_known(l, board))
        return fail(err, -ENODEV, "no board %zu", board);
    struct sums_read *sums = &l->sums[from_ms > 0];
    if (!sums->known || sums->from_ms != from_ms) {
        int r = read_sums(l, sums, from_ms, err);
        if (r < 0)
            return r;
    }
    const int64_t *uj = sums->uj[board];
    *ret = (struct ledger_sums){
        .job_j = (double)uj[LEDGER_JOB] * 1e-6,
        .idle_j = (double)uj[LEDGER_IDLE] * 1e-6,
        .unattributed_j = (double)uj[LEDGER_UNATTRIBUTED] * 1e-6,
        .meter_j = (double)uj[0] * 1e-6,
    };
    for (int i = 0; i < WASTE_N; i++) {
        ret->use_j[i] = (double)sums->waste[board][i].uj * 1e-6;
        ret->use_s[i] = (double)sums->waste[board][i].ms * 1e-3;
    }
    return 0;
}

int ledger_job_energy(struct ledger *l, uint64_t job,
                      struct ledger_booked buf[LEDGER_BOARDS + 1], size_t *ret_n,
                      uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    struct ledger_booked away = {.board = SIZE_MAX};
    size_t n = 0;

    int r = db_ask(l,
                   "SELECT board, sum(energy_uj),"
                   " half_sum(energy_uj, half_uj, method) FILTER (WHERE method & ?2),"
                   " sum(energy_uj) FILTER (WHERE NOT method & ?2),"
                   " half_sum(energy_uj, half_uj, method) FILTER (WHERE NOT method & ?2),"
                   " sum(span_ms),"
                   " max(method & 1) | max(method & 2) | max(method & 4) FROM energy"
                   " WHERE res IN (0, 60, 3600, 86400) AND begin_ms >="
                   " (SELECT began_ms - 86400000 FROM job WHERE id = ?1)"
                   " AND job = ?1"
                   " AND board IN (SELECT id FROM board WHERE kind = 1)"
                   " GROUP BY board",
                   &stmt, err, "ii", (int64_t)job, (int64_t)LEDGER_SUMMED);
    while (r >= 0 && (r = db_step(l, stmt, err)) > 0) {
        struct ledger_booked *b = &away;
        size_t at = 0;
        if (board_at(l, sqlite3_column_int64(stmt, 0), &at)) {
            b = &buf[n++];
            *b = (struct ledger_booked){.board = at};
        }
        struct half_sum summed =
            store_half(0, sqlite3_column_int64(stmt, 2), LEDGER_SUMMED);
        struct half_sum counted = store_half(
            sqlite3_column_int64(stmt, 3), sqlite3_column_int64(stmt, 4), LEDGER_COUNTED);
        b->energy_j += or_zero(stmt, 1) * 1e-6;
        b->half_fixed_j += summed.fixed_j + counted.fixed_j;
        b->half_noise2_j2 += summed.noise2_j2 + counted.noise2_j2;
        b->time_s = fmax(b->time_s, or_zero(stmt, 5) * 1e-3);
        b->method |= (uint32_t)sqlite3_column_int64(stmt, 6);
    }
    if (r < 0)
        return r;
    if (away.time_s > 0)
        buf[n++] = away;
    *ret_n = n;
    return 0;
}
