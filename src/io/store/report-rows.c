#include <math.h>

#include "io/store/report-beside.h"
#include "io/store/report-keys.h"

/* Columns of grouped, in the order in which put_group() reads them. */
#define FIGURES " uj, fixed, noise2, span, jobs, domains,"
#define CHARGED                                                                      \
    " co2_mg, co2_uj, co2_by, marginal_mg, marginal_uj, marginal_by, cost, cost_uj," \
    " cost_by, market_mg, market_uj, embodied_mg, embodied_ms, board_ms,"
#define ROW FIGURES CHARGED REPORT_SAVED
/* The same for all of grouped; a sum leaves out unknown figures. */
#define SUMS                                                                    \
    " sum(uj), sum(fixed), sum(noise2), sum(span), sum(jobs), "                 \
    "sum(domains)," REPORT_CHARGES                                              \
    ", sum(spared_j), sum(spared_half_j), sum(saved_co2), sum(saved_co2_half)," \
    " sum(saved_marginal), sum(saved_marginal_half), sum(saved_money),"         \
    " sum(saved_money_half)"
enum {
    FIGURES_COLUMNS = 6,
    ROW_COLUMNS = FIGURES_COLUMNS + REPORT_CHARGE_COLUMNS + REPORT_SAVED_COLUMNS
};

bool report_is_whole(const struct ledger_query *q)
{
    bool filters = q->of_user[0] || q->of_job || q->of_label[0];
    enum ledger_by by = q->key[0].by;

    return q->n_keys == 1 && (by == LEDGER_BY_BOARD || by == LEDGER_BY_DOMAIN ||
                              (by == LEDGER_BY_DAY && !filters));
}

/* The savings: energy, grams and money, each with half of its interval.  The errors of
 * several jobs are added as if all had the same sign.
 */
void report_put_saved(const struct report *rep, sqlite3_stmt *stmt, int column)
{
    static const char *const keys[REPORT_SAVED_COLUMNS] = {
        "saved_j",          "saved_half_j",          "saved_co2_g", "saved_co2_half_g",
        "saved_marginal_g", "saved_marginal_half_g", "saved_money", "saved_money_half"};

    for (int i = 0; i < REPORT_SAVED_COLUMNS; i++)
        report_put_sum(rep->o, keys[i], stmt ? db_double(stmt, column + i) : (double)NAN);
}

/* Columns from `column` on: ROW or SUMS. */
static void put_group(const struct report *rep, sqlite3_stmt *stmt, int column)
{
    struct json_out *o = rep->o;
    struct report_charges c;
    double j = report_j(stmt, column);
    struct half_sum half = report_half(stmt, column + 1);
    double s = (double)sqlite3_column_int64(stmt, column + 3) / 1e3;

    report_put_energy(rep, "energy_j", j);
    json_out_double(o, "half_j", half_sum_j(&half));
    report_put_sum(o, "gpu_s", s);
    json_out_double(o, "mean_w", s > 0 ? j / s : (double)NAN);
    json_out_int(o, "jobs", sqlite3_column_int64(stmt, column + 4));
    report_put_cpu(rep, stmt, column + 5);
    report_charges(stmt, column + FIGURES_COLUMNS, &c);
    report_put_charges(rep, &c, sqlite3_column_int64(stmt, column), false);
    report_put_beside(rep, &c, sqlite3_column_int64(stmt, column));
    report_put_saved(rep, stmt, column + FIGURES_COLUMNS + REPORT_CHARGE_COLUMNS);
}

/* ---- names of rows ---- */

/* "2026-11-21" of 20261121 */
static void put_date(struct json_out *o, int64_t day)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%04d-%02d-%02d", (int)(day / 10000),
                   (int)(day / 100 % 100), (int)(day % 100));
    json_out_text(o, "day", text);
}

/* user, name: columns with the user's and the job's name. */
static void put_key(const struct report *rep, const struct ledger_key *k,
                    sqlite3_stmt *stmt, int column, int user)
{
    struct json_out *o = rep->o;

    switch (k->by) {
    case LEDGER_BY_JOB:
        json_out_int(o, "job", sqlite3_column_int64(stmt, column));
        json_out_text(o, "name", db_text(stmt, user + 1));
        break;
    case LEDGER_BY_USER:
        report_put_int(o, "uid", stmt, column);
        json_out_text(o, "user", db_text(stmt, user));
        break;
    case LEDGER_BY_DAY:
        put_date(o, sqlite3_column_int64(stmt, column));
        break;
    case LEDGER_BY_LABEL:
        report_put_text(o, "value", stmt, column);
        break;
    default:
        report_put_text(o, names_word(NAMES_REPORT_BY, k->by), stmt, column);
    }
}

/* ---- jobs ---- */

static int put_labels(const struct report *rep, int64_t job, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *labels = NULL;

    int r = db_ask(rep->l, "SELECT key, value FROM job_label WHERE job = ?", &labels, err,
                   "i", job);
    json_out_object(rep->o, "labels");
    while (r >= 0 && (r = db_step(rep->l, labels, err)) > 0)
        json_out_text(rep->o, db_text(labels, 0), db_text(labels, 1));
    json_out_end(rep->o);
    return r;
}

static int put_job_boards(const struct report *rep, int64_t job, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *boards = NULL;

    int r = db_ask(rep->l,
                   "SELECT b.at FROM job_board jb JOIN board b ON b.id = jb.board"
                   " WHERE jb.job = ? ORDER BY b.at",
                   &boards, err, "i", job);
    json_out_array(rep->o, "gpus");
    while (r >= 0 && (r = db_step(rep->l, boards, err)) > 0)
        json_out_int(rep->o, NULL, sqlite3_column_int64(boards, 0));
    json_out_end(rep->o);
    return r;
}

/* The savings predicted by the search's model, and the number of reference windows on
 * which the measured savings are based.
 */
static void put_model(struct json_out *o, sqlite3_stmt *stmt, int column)
{
    report_put_int(o, "looks", stmt, column);
    json_out_double(o, "model_saved", db_double(stmt, column + 1));
    json_out_double(o, "model_slowdown", db_double(stmt, column + 2));
}

#define JOBS                                                                         \
    "SELECT g.k1, j.name, j.user, j.uid, j.source, j.began_ms, j.ended_ms, j.saved," \
    " j.saved_half, j.slowdown, j.slowdown_half, j.goal, j.cap_mw, j.looks,"         \
    " j.model_saved, j.model_slowdown," ROW " FROM (SELECT at, k1," ROW " FROM"      \
    " temp.grouped WHERE at <= :rows) g LEFT JOIN job j ON j.id = g.k1 ORDER BY g.at"
static int put_job(const struct report *rep, sqlite3_stmt *stmt, uw_error *err)
{
    struct json_out *o = rep->o;
    int64_t job = sqlite3_column_int64(stmt, 0);

    json_out_int(o, "job", job);
    json_out_text(o, "name", db_text(stmt, 1));
    json_out_text(o, "user", db_text(stmt, 2));
    json_out_int(o, "uid", sqlite3_column_int64(stmt, 3));
    json_out_text(o, "source", db_text(stmt, 4));
    report_time(o, "began", stmt, 5);
    report_time(o, "ended", stmt, 6);
    json_out_double(o, "saved", db_double(stmt, 7));
    json_out_double(o, "saved_half", db_double(stmt, 8));
    json_out_double(o, "slowdown", db_double(stmt, 9));
    json_out_double(o, "slowdown_half", db_double(stmt, 10));
    report_put_text(o, "goal", stmt, 11);
    report_put_int(o, "cap_mw", stmt, 12);
    put_model(o, stmt, 13);
    put_group(rep, stmt, 16);
    int r = put_job_boards(rep, job, err);
    return r < 0 ? r : put_labels(rep, job, err);
}

/* ---- groups ---- */

static int put_row(const struct report *rep, sqlite3_stmt *stmt, uw_error *err)
{
    const struct ledger_query *q = rep->q;

    (void)err;
    put_key(rep, &q->key[0], stmt, 0, 2);
    if (q->n_keys > 1)
        put_key(rep, &q->key[1], stmt, 1, 2);
    put_group(rep, stmt, 4);
    return 0;
}

static int put_stack(const struct report *rep, sqlite3_stmt *stmt, uw_error *err)
{
    const struct ledger_key *k = rep->q->key;

    (void)err;
    put_key(rep, k->by == LEDGER_BY_DAY ? &k[1] : &k[0], stmt, 0, 1);
    return 0;
}

/* An object of sums. */
static int put_sums(const struct report *rep, const char *key, const char *sql,
                    uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = report_prepare(rep, sql, &stmt, err);
    if (r >= 0)
        r = db_step(rep->l, stmt, err);
    if (r < 0)
        return r;
    json_out_object(rep->o, key);
    put_group(rep, stmt, 0);
    json_out_end(rep->o);
    return 0;
}

static int put_rows(const struct report *rep, uw_error *err)
{
    const struct ledger_query *q = rep->q;

    if (report_is_whole(q))
        return q->key[0].by == LEDGER_BY_BOARD    ? report_boards(rep, "rows", err)
               : q->key[0].by == LEDGER_BY_DOMAIN ? report_domains(rep, "rows", err)
                                                  : report_days(rep, "rows", err);
    if (q->n_keys == 1 && q->key[0].by == LEDGER_BY_JOB)
        return report_list(rep, "rows", JOBS, put_job, err);
    return report_list(rep, "rows",
                       "SELECT k1, k2, user, name," ROW
                       " FROM temp.grouped WHERE at <= :rows ORDER BY at",
                       put_row, err);
}

int report_rows(const struct report *rep, uw_error *err)
{
    int r = put_sums(rep, "jobs", "SELECT" SUMS " FROM temp.grouped", err);

    if (r >= 0 && !report_is_whole(rep->q))
        r = put_sums(rep, "rest", "SELECT" SUMS " FROM temp.grouped WHERE at > :rows",
                     err);
    if (r >= 0)
        r = report_list(rep, "stack", "SELECT k1, user, name FROM temp.stack ORDER BY at",
                        put_stack, err);
    return r < 0 ? r : put_rows(rep, err);
}
