#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/store/inside.h"

enum { ROUNDING_MS = 50 };

/* The results of a search; for a lost job whose end is reported after a restart, only
 * the file has them.
 */
/* clang-format off */
#define FOUND(column) \
    " " column " = ifnull(excluded." column ", iif(job.lost AND" \
    " excluded.ended_ms IS NOT NULL, job." column ", NULL)),"
#define ALL_FOUND \
    FOUND("cap_mw") FOUND("steps") FOUND("saved") FOUND("saved_half") \
    FOUND("slowdown") FOUND("slowdown_half") FOUND("saved_j") FOUND("saved_half_j") \
    FOUND("looks") FOUND("model_saved") FOUND("model_slowdown")
/* clang-format on */

static const char *const sql_of[STMTS] = {
    [STMT_ENERGY] = "INSERT INTO energy(res, begin_ms, span_ms, boot, board, kind, job,"
                    " phase, cap_mw, energy_uj, half_uj, method, simulated, co2_mg,"
                    " co2_covered_uj, co2_factor, marginal_mg, marginal_covered_uj,"
                    " marginal_factor, cost, cost_covered_uj, cost_factor, waste)"
                    " VALUES(0, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,"
                    " iif(?15, ?13, NULL), ?14, ?15, iif(?18, ?16, NULL), ?17, ?18,"
                    " iif(?21, ?19, NULL), ?20, ?21, ?22)",
    [STMT_METER] = "INSERT INTO meter(res, begin_ms, span_ms, boot, board, energy_uj)"
                   " VALUES(0, ?, ?, ?, ?, ?)",
    [STMT_JOB] =
        "INSERT INTO job(id, source, name, uid, user, began_ms, ended_ms, boot, pid,"
        " pid_start, goal, class, named_mw, cap_mw, steps, saved, saved_half, slowdown,"
        " slowdown_half, saved_j, saved_half_j, looks, model_saved, model_slowdown,"
        " command, processes, firm, lost, within) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?,"
        " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT(id) DO UPDATE SET name = excluded.name, user = excluded.user,"
        " ended_ms = excluded.ended_ms, boot = excluded.boot, pid = excluded.pid,"
        " pid_start = excluded.pid_start, goal = excluded.goal, class = excluded.class,"
        " named_mw = excluded.named_mw, " ALL_FOUND " command = excluded.command,"
        " processes = excluded.processes, lost = excluded.lost,"
        " within = ifnull(excluded.within, job.within)",
    [STMT_JOB_UNLABEL] = "DELETE FROM job_label WHERE job = ?",
    [STMT_JOB_LABEL] = "INSERT OR REPLACE INTO job_label VALUES(?, ?, ?)",
    [STMT_JOB_LEAVE] = "UPDATE job_board SET held = 0 WHERE job = ? AND board = ?"
                       " AND held <> 0",
    [STMT_JOB_BOARD] = "INSERT INTO job_board(job, board, held) VALUES(?, ?, ?)"
                       " ON CONFLICT(job, board) DO UPDATE SET held = excluded.held",
    [STMT_CLAIM_FIND] =
        "SELECT seq, mw, kind,"
        " ifnull(until_ms + ?3 - ifnull(ahead_ms, ?3), 0), ifnull(why, '')"
        " FROM claim WHERE id = ?1 AND board = ?2 AND ended_ms IS NULL"
        " ORDER BY seq DESC LIMIT 1",
    [STMT_CLAIM_TOUCH] = "UPDATE claim SET run = ?2, mw = ?3, why = ?5,"
                         " until_ms = ?4 - ?7 + ifnull(ahead_ms, ?7),"
                         " changes = changes + ?6 WHERE seq = ?1",
    [STMT_CLAIM_END] = "UPDATE claim SET ended_ms = ?3, how = ?4"
                       " WHERE id = ?1 AND board = ?2 AND ended_ms IS NULL",
    [STMT_CLAIM_NEW] = "INSERT INTO claim(id, run, board, made_ms, until_ms, uid, job,"
                       " kind, mw, walked, changes, who, why, ahead_ms, source, pid,"
                       " pid_start) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?,"
                       " ?, ?)",
    [STMT_CAP] = "INSERT INTO cap VALUES(?, ?, ?, ?, ?, ?)",
    [STMT_EVENT] = "INSERT INTO event VALUES(?, ?, ?, ?, ?, ?)",
    [STMT_SEARCH_DROP] = "DELETE FROM search WHERE uid = ? AND same = ? AND model = ?"
                         " AND boards = ?",
    [STMT_SEARCH] = "INSERT INTO search(uid, same, model, boards, job, at_ms,"
                    " reference_mw, demand_w) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
    [STMT_SEARCH_CAP] = "INSERT OR REPLACE INTO search_cap"
                        " VALUES(?, ?, ?, ?, ?, ?, ?)",
    [STMT_SEARCH_USER] = "DELETE FROM search WHERE id IN (SELECT id FROM search"
                         " WHERE uid = ? ORDER BY at_ms DESC, id DESC"
                         " LIMIT -1 OFFSET ?)",
    [STMT_SEARCH_ALL] = "DELETE FROM search WHERE id IN (SELECT id FROM search"
                        " ORDER BY at_ms DESC, id DESC LIMIT -1 OFFSET ?)",
    [STMT_SEARCH_ORPHANS] = "DELETE FROM search_cap WHERE search NOT IN"
                            " (SELECT id FROM search)",
};

/* The ledger's own state after this transaction is committed. */
struct writing {
    struct ledger *l;
    uint64_t next_job, next_claim;
    int64_t last_ms;
    uw_error *err;
};

static int ready(struct writing *w, enum ledger_stmt which, sqlite3_stmt **ret)
{
    struct ledger *l = w->l;

    if (!l->stmt[which]) {
        int r = db_prepare(l, sql_of[which], &l->stmt[which], w->err);
        if (r < 0)
            return r;
    }
    *ret = l->stmt[which];
    return 0;
}

#define DO(w, which, ...)                         \
    __extension__({                               \
        sqlite3_stmt *stmt_ = NULL;               \
        int r_ = ready((w), (which), &stmt_);     \
        if (r_ >= 0) {                            \
            db_bind(stmt_, __VA_ARGS__);          \
            r_ = db_run((w)->l, stmt_, (w)->err); \
        }                                         \
        r_;                                       \
    })

static void seen(struct writing *w, int64_t ms)
{
    if (ms > w->last_ms)
        w->last_ms = ms;
}

/* The file's id of a board of this run. */
static int board_id(struct writing *w, size_t board, int64_t *ret)
{
    if (!place_is_known(w->l, board))
        return fail(w->err, -EINVAL, "%s: no board %zu: there are %zu", w->l->path, board,
                    w->l->n_boards);
    *ret = w->l->board[board];
    return 0;
}

static int put_energy(struct writing *w, const struct row_energy *e)
{
    const struct ledger_amount *c = e->charge;
    int64_t board = 0, id[LEDGER_CHARGES];

    int r = board_id(w, e->board, &board);
    for (int i = 0; r >= 0 && i < LEDGER_CHARGES; i++)
        r = charge_factor(w->l, c[i].factor, &id[i], w->err);
    if (r < 0)
        return r;
    seen(w, e->begin_ms + e->span_ms);
    return DO(w, STMT_ENERGY, "iiiiizzziiiiiiziiziizz", e->begin_ms, e->span_ms,
              w->l->boot, board, (int64_t)e->kind, (int64_t)e->job, (int64_t)e->phase,
              (int64_t)e->cap_mw, e->energy_uj, e->half_uj, (int64_t)e->method,
              (int64_t)e->simulated, c[LEDGER_CO2].amount, c[LEDGER_CO2].covered_uj,
              id[LEDGER_CO2], c[LEDGER_MARGINAL].amount, c[LEDGER_MARGINAL].covered_uj,
              id[LEDGER_MARGINAL], c[LEDGER_COST].amount, c[LEDGER_COST].covered_uj,
              id[LEDGER_COST], (int64_t)e->waste);
}

static int put_meter(struct writing *w, const struct row_meter *m)
{
    int64_t board = 0;

    int r = board_id(w, m->board, &board);
    if (r < 0)
        return r;
    seen(w, m->begin_ms + m->span_ms);
    return DO(w, STMT_METER, "iiiii", m->begin_ms, m->span_ms, w->l->boot, board,
              m->energy_uj);
}

static int put_labels(struct writing *w, const struct ledger_job *j)
{
    int r = DO(w, STMT_JOB_UNLABEL, "i", (int64_t)j->id);

    for (size_t i = 0; r >= 0 && i < j->n_labels; i++)
        r = DO(w, STMT_JOB_LABEL, "itt", (int64_t)j->id, j->label[i].key,
               j->label[i].value);
    return r;
}

/* The results of the search; NaN (NULL in the file) if unknown. */
static int put_job_row(struct writing *w, const struct ledger_job *j, int64_t ended_ms)
{
    double none = (double)NAN;
    const double found[] = {j->saved,         j->saved_half, j->slowdown,
                            j->slowdown_half, j->saved_j,    j->saved_half_j};
    double v[n_elements(found)];

    for (size_t i = 0; i < n_elements(found); i++)
        v[i] = j->saved_known ? found[i] : none;
    return DO(w, STMT_JOB, "ittitizizzttzzzoooooozoottiiz", (int64_t)j->id, j->source,
              j->name, (int64_t)j->uid, j->user, ms_of_ns(j->began_utc_ns), ended_ms,
              w->l->boot, (int64_t)j->pid, (int64_t)j->pid_start, j->goal, j->cls,
              (int64_t)j->named_mw, (int64_t)j->cap_mw, (int64_t)j->steps, v[0], v[1],
              v[2], v[3], v[4], v[5], (int64_t)j->looks,
              j->model_known ? j->model_saved : none,
              j->model_known ? j->model_slowdown : none, j->command, j->processes,
              (int64_t)j->firm, (int64_t)j->lost, (int64_t)j->within);
}

static int put_job_boards(struct writing *w, const struct ledger_job *j)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < w->l->n_boards; i++)
        if (j->boards >> i & 1)
            r = DO(w, STMT_JOB_BOARD, "iii", (int64_t)j->id, w->l->board[i],
                   (int64_t)(j->held >> i & 1));
        else if (place_is_known(w->l, i)) /* missing boards may come back */
            r = DO(w, STMT_JOB_LEAVE, "ii", (int64_t)j->id, w->l->board[i]);
    return r;
}

static int put_job(struct writing *w, const struct ledger_job *j)
{
    int64_t ended_ms = ms_of_ns(j->ended_utc_ns);

    int r = put_job_row(w, j, ended_ms);
    if (r >= 0)
        r = put_labels(w, j);
    if (r >= 0)
        r = put_job_boards(w, j);
    if (r >= 0 && j->id >= w->next_job)
        w->next_job = j->id + 1;
    seen(w, ms_of_ns(j->began_utc_ns));
    seen(w, ended_ms);
    return r;
}

/* After a restart, a claim's times are computed again from two clocks that are not read
 * at the same moment.
 */
static bool same_time(int64_t a_ms, int64_t b_ms)
{
    return (a_ms == 0) == (b_ms == 0) && llabs(a_ms - b_ms) <= ROUNDING_MS;
}

/* A claim of that id is open: 1 (it was brought up to date, or ended so that the new
 * one is written), 0 (none is open).
 */
static int put_claim_change(struct writing *w, const struct ledger_claim *c,
                            int64_t board, int64_t until_ms)
{
    sqlite3_stmt *find = NULL;

    int r = ready(w, STMT_CLAIM_FIND, &find);
    if (r < 0)
        return r;
    db_bind(find, "iii", (int64_t)c->id, board, ms_of_ns(c->ahead_ns));
    r = db_step(w->l, find, w->err);
    if (r <= 0)
        return r;
    int64_t seq = sqlite3_column_int64(find, 0);
    bool same_mw = sqlite3_column_int64(find, 1) == c->mw;
    bool same = same_mw && same_time(sqlite3_column_int64(find, 3), until_ms);
    (void)sqlite3_reset(find);
    if (same || c->overwrites)
        r = DO(w, STMT_CLAIM_TOUCH, "iiiztii", seq, w->l->run, (int64_t)c->mw, until_ms,
               c->why, (int64_t)!same_mw, ms_of_ns(c->ahead_ns));
    else
        r = DO(w, STMT_CLAIM_END, "iiit", (int64_t)c->id, board, ms_of_ns(c->made_utc_ns),
               "changed");
    return r < 0 ? r : same || c->overwrites;
}

static int put_claim(struct writing *w, const struct ledger_claim *c)
{
    int64_t board = 0;
    int64_t until_ms = c->until_utc_ns == LEDGER_FOREVER ? 0 : ms_of_ns(c->until_utc_ns);

    int r = board_id(w, c->board, &board);
    if (r >= 0)
        r = put_claim_change(w, c, board, until_ms);
    if (r == 0)
        r = DO(w, STMT_CLAIM_NEW, "iiiiziztiittitzz", (int64_t)c->id, w->l->run, board,
               ms_of_ns(c->made_utc_ns), until_ms, (int64_t)c->uid, (int64_t)c->job,
               c->kind, (int64_t)c->mw, (int64_t)c->overwrites, c->who, c->why,
               ms_of_ns(c->ahead_ns), c->source, (int64_t)c->pid, (int64_t)c->pid_start);
    if (r >= 0 && c->id >= w->next_claim)
        w->next_claim = c->id + 1;
    seen(w, ms_of_ns(c->made_utc_ns));
    return r < 0 ? r : 0;
}

static int put_claim_end(struct writing *w, const struct ledger_claim_end *c)
{
    int64_t board = 0;

    int r = board_id(w, c->board, &board);
    if (r < 0)
        return r;
    seen(w, ms_of_ns(c->utc_ns));
    return DO(w, STMT_CLAIM_END, "iiit", (int64_t)c->id, board, ms_of_ns(c->utc_ns),
              c->how);
}

static int put_cap(struct writing *w, const struct ledger_cap *c)
{
    int64_t board = 0;

    int r = board_id(w, c->board, &board);
    if (r < 0)
        return r;
    seen(w, ms_of_ns(c->utc_ns));
    return DO(w, STMT_CAP, "iiiztz", ms_of_ns(c->utc_ns), board, (int64_t)c->target_mw,
              (int64_t)c->enforced_mw, c->by, (int64_t)c->claim);
}

static int put_event(struct writing *w, const struct ledger_event *e)
{
    sqlite3_stmt *stmt = NULL;
    int64_t board = 0;

    int r = e->has_board ? board_id(w, e->board, &board) : 0;
    if (r >= 0)
        r = ready(w, STMT_EVENT, &stmt);
    if (r < 0)
        return r;
    seen(w, ms_of_ns(e->utc_ns));
    db_bind(stmt, "iitzit", ms_of_ns(e->utc_ns), w->l->run, e->kind, board,
            (int64_t)e->uid, e->text);
    if (!e->has_uid)
        (void)sqlite3_bind_null(stmt, 5);
    return db_run(w->l, stmt, w->err);
}

static int put_search_caps(struct writing *w, const struct ledger_search *s, int64_t id)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < s->n; i++)
        r = DO(w, STMT_SEARCH_CAP, "iiidddd", id, (int64_t)s->cap[i].cap_mw,
               (int64_t)s->cap[i].windows, s->cap[i].step_s, s->cap[i].step_j,
               s->cap[i].step_s_rse, s->cap[i].step_j_rse);
    return r;
}

static int drop_orphans(struct writing *w)
{
    return DO(w, STMT_SEARCH_ORPHANS, "");
}

/* Removes the earlier search of the same job, and its caps: its id may be used again. */
static int drop_search(struct writing *w, const struct ledger_search *s)
{
    int r = DO(w, STMT_SEARCH_DROP, "itti", (int64_t)s->uid, s->same, s->model,
               (int64_t)s->boards);
    return r < 0 ? r : drop_orphans(w);
}

/* Removes the oldest searches above the bounds. */
static int drop_old_searches(struct writing *w, uid_t uid)
{
    int r = DO(w, STMT_SEARCH_USER, "ii", (int64_t)uid, (int64_t)LEDGER_USER_SEARCHES);

    if (r >= 0)
        r = DO(w, STMT_SEARCH_ALL, "i", (int64_t)LEDGER_SEARCHES);
    return r < 0 ? r : drop_orphans(w);
}

static int put_search(struct writing *w, const struct ledger_search *s)
{
    int64_t at_ms = ms_of_ns(s->utc_ns);

    int r = drop_search(w, s);
    if (r >= 0)
        r = DO(w, STMT_SEARCH, "ittiziid", (int64_t)s->uid, s->same, s->model,
               (int64_t)s->boards, (int64_t)s->job, at_ms, (int64_t)s->reference_mw,
               s->demand_w);
    if (r >= 0)
        r = put_search_caps(w, s, sqlite3_last_insert_rowid(w->l->db));
    if (r >= 0)
        r = drop_old_searches(w, s->uid);
    seen(w, at_ms);
    return r;
}

static int put_row(struct writing *w, const struct row *row)
{
    switch (row->type) {
    case ROW_ENERGY:
        return put_energy(w, &row->energy);
    case ROW_METER:
        return put_meter(w, &row->meter);
    case ROW_JOB:
        return put_job(w, row->job);
    case ROW_CLAIM:
        return put_claim(w, row->claim);
    case ROW_CLAIM_END:
        return put_claim_end(w, row->claim_end);
    case ROW_CAP:
        return put_cap(w, row->cap);
    case ROW_SEARCH:
        return put_search(w, row->search);
    case ROW_REVISION:
        return charge_revise(w->l, row->revision, w->err);
    case ROW_EVENT:
    default:
        return put_event(w, row->event);
    }
}

/* The file reserves ids ahead of those in use, so that ids of a killed run are never
 * used again.
 */
static int put_reserve(struct writing *w, const char *key, uint64_t next,
                       uint64_t *reserved)
{
    if (next + LEDGER_RESERVE / 2 <= *reserved)
        return 0;
    *reserved = next + LEDGER_RESERVE;
    return meta_set(w->l, key, (int64_t)*reserved, w->err);
}

/* Ends the jobs and claims that are open in the file and not in the batch.  Jobs before
 * the batch, whose rows open theirs again; claims after it, because its rows assign
 * theirs to this run.
 */
static int end_open_jobs(struct ledger *l, uw_error *err)
{
    if (!l->settle_ms)
        return 0;
    return db_do(l, "UPDATE job SET ended_ms = max(began_ms, ?) WHERE ended_ms IS NULL",
                 err, "i", l->settle_ms);
}

static int end_open_claims(struct ledger *l, uw_error *err)
{
    return l->settle_ms ? ledger_claims_settle(l, l->settle_ms * NS_PER_MS_I, err) : 0;
}

static int put_rows(struct writing *w, const struct ledger_batch *b)
{
    int r = end_open_jobs(w->l, w->err);

    for (size_t i = 0; r >= 0 && i < b->n; i++)
        r = put_row(w, &b->row[i]);
    return r < 0 ? r : end_open_claims(w->l, w->err);
}

int ledger_write(struct ledger *l, const struct ledger_batch *b, uw_error *err)
{
    struct writing w = {l, l->next_job, l->next_claim, l->last_ms, err};
    uint64_t job = l->reserved_job, claim = l->reserved_claim;

    l->revised = (struct ledger_revised){0};
    if (b->n == 0 && !l->settle_ms)
        return 0;
    if (!ledger_is_open(l))
        return fail(err, -ENODEV, "%s: is not open", l->path);
    l->sums[0].known = l->sums[1].known = false;
    int r = db_begin(l, err);
    if (r >= 0)
        r = put_rows(&w, b);
    if (r >= 0)
        r = put_reserve(&w, "next_job", w.next_job, &job);
    if (r >= 0)
        r = put_reserve(&w, "next_claim", w.next_claim, &claim);
    r = db_end(l, r, err);
    if (r < 0) {
        l->revised = (struct ledger_revised){0};
        return r;
    }
    l->next_job = w.next_job;
    l->next_claim = w.next_claim;
    l->reserved_job = job;
    l->reserved_claim = claim;
    l->last_ms = w.last_ms;
    l->settle_ms = 0;
    return 0;
}

/* A board or a domain, as in the table of boards. */
struct place {
    const char *text[3]; /* UUID, name, bus id */
    enum place_kind kind;
};

/* Keeps its texts for ledger_renew(). */
static int keep_place(struct ledger *l, size_t at, const struct place *place)
{
    for (int k = 0; k < 3; k++) {
        char *copy = place->text[k] ? strdup(place->text[k]) : NULL;
        if (place->text[k] && !copy)
            return -ENOMEM;
        free(l->board_text[at][k]);
        l->board_text[at][k] = copy;
    }
    l->place_kind[at] = place->kind;
    return 0;
}

/* The id in a file that is only read; -1: not in it. */
static int find_place(struct ledger *l, const char *uuid, int64_t *ret, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *find = NULL;

    int r = db_ask(l, "SELECT id FROM board WHERE uuid = ?", &find, err, "t", uuid);
    if (r >= 0)
        r = db_step(l, find, err);
    *ret = r > 0 ? sqlite3_column_int64(find, 0) : -1;
    return r < 0 ? r : 0;
}

static int find_places(struct ledger *l, const struct place *place, size_t n,
                       int64_t *ret, uw_error *err)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && l->db && i < n; i++)
        r = find_place(l, place[i].text[0], &ret[i], err);
    return r;
}

/* The file's ids of n places, in one transaction. */
static int place_ids(struct ledger *l, const struct place *place, size_t n, int64_t *ret,
                     uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *add = NULL;

    int r = db_prepare(
        l,
        "INSERT INTO board(uuid, name, pci_bus_id, at, first_ms, last_ms, kind)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?5, ?6) ON CONFLICT(uuid) DO UPDATE SET name = ?2,"
        " pci_bus_id = ?3, at = ?4, last_ms = ?5, kind = ?6 RETURNING id",
        &add, err);
    if (r >= 0)
        r = db_begin(l, err);
    for (size_t i = 0; r >= 0 && i < n; i++) {
        db_bind(add, "tttiii", place[i].text[0], place[i].text[1], place[i].text[2],
                (int64_t)i, l->last_ms, (int64_t)place[i].kind);
        r = db_step(l, add, err);
        if (r > 0) {
            ret[i] = sqlite3_column_int64(add, 0);
            r = db_run(l, add, err);
        }
    }
    return db_end(l, r, err);
}

/* From index `first` on; *ret_n: how many there are now. */
static int put_places(struct ledger *l, size_t first, const struct place *place, size_t n,
                      size_t *ret_n, uw_error *err)
{
    int64_t ids[LEDGER_BOARDS] = {0};

    int r = ledger_is_open(l) ? place_ids(l, place, n, ids, err)
                              : find_places(l, place, n, ids, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        l->board[first + i] = ids[i];
        if (keep_place(l, first + i, &place[i]) < 0)
            return fail(err, -ENOMEM, "out of memory");
    }
    *ret_n = n;
    l->sums[0].known = l->sums[1].known = false;
    return 0;
}

int ledger_boards(struct ledger *l, const struct ledger_board *board, size_t n,
                  uw_error *err)
{
    struct place place[LEDGER_BOARDS];

    if (n > LEDGER_BOARDS)
        return fail(err, -E2BIG, "%zu boards: the ledger takes %d", n, LEDGER_BOARDS);
    for (size_t i = 0; i < n; i++)
        place[i] = (struct place){{board[i].uuid, board[i].name, board[i].pci_bus_id},
                                  PLACE_GPU};
    return put_places(l, 0, place, n, &l->n_boards, err);
}

int ledger_domains(struct ledger *l, const struct ledger_domain *domain, size_t n,
                   uw_error *err)
{
    struct place place[LEDGER_DOMAINS];

    if (n > LEDGER_DOMAINS)
        return fail(err, -E2BIG, "%zu RAPL domains: the ledger takes %d", n,
                    LEDGER_DOMAINS);
    for (size_t i = 0; i < n; i++)
        place[i] = (struct place){{domain[i].uuid, domain[i].name, NULL},
                                  domain[i].memory ? PLACE_MEMORY : PLACE_PACKAGE};
    return put_places(l, LEDGER_BOARDS, place, n, &l->n_domains, err);
}
