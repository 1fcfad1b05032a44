#include <math.h>

#include "io/store/report-inside.h"

/* Of attributed energy: who, how much, how long. */
#define OF_JOBS                                                   \
    " FROM part e LEFT JOIN job j ON j.id = e.job WHERE kind = 1" \
    " AND (:uid < 0 OR j.uid = :uid)"
#define FIGURES " sum(energy_uj), sum(half_uj), sum(span_ms), "
/* What a job that had the node alone used beside its boards. */
#define OF_DOMAINS                                                 \
    "(SELECT sum(d.energy_uj) FROM domain_part d WHERE d.kind = 1" \
    " AND d.job = e.job)"

static void put_figures(const struct report *rep, sqlite3_stmt *stmt, int column)
{
    double j = report_j(stmt, column);
    double s = (double)sqlite3_column_int64(stmt, column + 2) * 1e-3;

    report_put_energy(rep, "energy_j", j);
    json_out_double(rep->o, "half_j", report_j(stmt, column + 1));
    json_out_double(rep->o, "gpu_s", s);
    json_out_double(rep->o, "mean_w", s > 0 ? j / s : (double)NAN);
}

static void put_domains(const struct report *rep, sqlite3_stmt *stmt, int column)
{
    if (sqlite3_column_type(stmt, column) == SQLITE_NULL)
        json_out_null(rep->o, "cpu_j");
    else
        json_out_double(rep->o, "cpu_j",
                        report_domain_j(rep, sqlite3_column_int64(stmt, column)));
}

/* What was saved, of whole jobs: the energy, and half of its interval. */
static void put_saved(struct json_out *o, sqlite3_stmt *stmt, int column)
{
    json_out_double(o, "saved_j", db_double(stmt, column));
    json_out_double(o, "saved_half_j", db_double(stmt, column + 1));
}

static int put_labels(const struct report *rep, sqlite3_stmt *labels, int64_t job,
                      uw_error *err)
{
    int r;

    db_bind(labels, "i", job);
    json_out_object(rep->o, "labels");
    while ((r = db_step(rep->l, labels, err)) > 0)
        json_out_text(rep->o, db_text(labels, 0), db_text(labels, 1));
    json_out_end(rep->o);
    return r;
}

static int put_job_boards(const struct report *rep, sqlite3_stmt *boards, int64_t job,
                          uw_error *err)
{
    int r;

    db_bind(boards, "i", job);
    json_out_array(rep->o, "gpus");
    while ((r = db_step(rep->l, boards, err)) > 0)
        json_out_int(rep->o, NULL, sqlite3_column_int64(boards, 0));
    json_out_end(rep->o);
    return r;
}

/* What the search's model says beside what was measured, and at how many looks out of
 * the hold that was.
 */
static void put_model(struct json_out *o, sqlite3_stmt *stmt, int column)
{
    if (sqlite3_column_type(stmt, column) == SQLITE_NULL)
        json_out_null(o, "looks");
    else
        json_out_int(o, "looks", sqlite3_column_int64(stmt, column));
    json_out_double(o, "model_saved", db_double(stmt, column + 1));
    json_out_double(o, "model_slowdown", db_double(stmt, column + 2));
}

static void put_job(const struct report *rep, sqlite3_stmt *stmt)
{
    struct json_out *o = rep->o;

    json_out_int(o, "job", sqlite3_column_int64(stmt, 0));
    json_out_text(o, "name", db_text(stmt, 4));
    json_out_text(o, "user", db_text(stmt, 5));
    json_out_int(o, "uid", sqlite3_column_int64(stmt, 6));
    json_out_text(o, "source", db_text(stmt, 7));
    report_time(o, "began", stmt, 8);
    report_time(o, "ended", stmt, 9);
    put_figures(rep, stmt, 1);
    put_saved(o, stmt, 10);
    json_out_double(o, "saved", db_double(stmt, 12));
    json_out_double(o, "saved_half", db_double(stmt, 13));
    json_out_double(o, "slowdown", db_double(stmt, 14));
    json_out_double(o, "slowdown_half", db_double(stmt, 15));
    json_out_text(o, "goal",
                  sqlite3_column_type(stmt, 16) == SQLITE_NULL ? NULL
                                                               : db_text(stmt, 16));
    if (sqlite3_column_type(stmt, 17) == SQLITE_NULL)
        json_out_null(o, "cap_mw");
    else
        json_out_int(o, "cap_mw", sqlite3_column_int64(stmt, 17));
    put_domains(rep, stmt, 18);
    put_model(o, stmt, 19);
}

static int rows_by_job(const struct report *rep, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL, *labels = NULL, *boards = NULL;

    int r = report_prepare(
        rep,
        "SELECT e.job," FIGURES "j.name, j.user, j.uid, j.source, j.began_ms,"
        " j.ended_ms, j.saved_j, j.saved_half_j, j.saved, j.saved_half, j.slowdown,"
        " j.slowdown_half, j.goal, j.cap_mw, " OF_DOMAINS
        ", j.looks, j.model_saved, j.model_slowdown" OF_JOBS
        " GROUP BY e.job ORDER BY 2 DESC, e.job LIMIT :rows",
        &stmt, err);
    if (r >= 0)
        r = db_prepare(rep->l, "SELECT key, value FROM job_label WHERE job = ?", &labels,
                       err);
    if (r >= 0)
        r = db_prepare(rep->l,
                       "SELECT b.at FROM job_board jb JOIN board b ON b.id = jb.board"
                       " WHERE jb.job = ? ORDER BY b.at",
                       &boards, err);
    while (r >= 0 && (r = db_step(rep->l, stmt, err)) > 0) {
        int64_t job = sqlite3_column_int64(stmt, 0);
        json_out_object(rep->o, NULL);
        put_job(rep, stmt);
        r = put_job_boards(rep, boards, job, err);
        if (r >= 0)
            r = put_labels(rep, labels, job, err);
        json_out_end(rep->o);
    }
    return r;
}

/* Saved energy of the jobs of a group: a job counts once however many rows it has. */
#define PER_JOB                                                                     \
    " FROM (SELECT e.job AS job, sum(energy_uj) AS uj, sum(half_uj) AS half,"       \
    " sum(span_ms) AS span, " OF_DOMAINS " AS domains" OF_JOBS " GROUP BY e.job) g" \
    " LEFT JOIN job j ON j.id = g.job"
#define GROUPED                                                 \
    " sum(uj), sum(half), sum(span), count(*), sum(j.saved_j)," \
    " sum(j.saved_half_j), sum(domains)"

static void put_group(const struct report *rep, sqlite3_stmt *stmt, int column)
{
    put_figures(rep, stmt, column);
    json_out_int(rep->o, "jobs", sqlite3_column_int64(stmt, column + 3));
    put_saved(rep->o, stmt, column + 4);
    put_domains(rep, stmt, column + 6);
}

static int rows_by_user(const struct report *rep, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = report_prepare(rep,
                           "SELECT j.uid, max(j.user)," GROUPED PER_JOB
                           " GROUP BY j.uid ORDER BY 3 DESC LIMIT :rows",
                           &stmt, err);
    while (r >= 0 && (r = db_step(rep->l, stmt, err)) > 0) {
        json_out_object(rep->o, NULL);
        json_out_int(rep->o, "uid", sqlite3_column_int64(stmt, 0));
        json_out_text(rep->o, "user", db_text(stmt, 1));
        put_group(rep, stmt, 2);
        json_out_end(rep->o);
    }
    return r;
}

static int rows_by_label(const struct report *rep, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = report_prepare(rep,
                           "SELECT lb.value," GROUPED PER_JOB
                           " LEFT JOIN job_label lb ON lb.job = g.job AND lb.key = :label"
                           " GROUP BY lb.value ORDER BY 2 DESC LIMIT :rows",
                           &stmt, err);
    while (r >= 0 && (r = db_step(rep->l, stmt, err)) > 0) {
        json_out_object(rep->o, NULL);
        json_out_text(rep->o, "value",
                      sqlite3_column_type(stmt, 0) == SQLITE_NULL ? NULL
                                                                  : db_text(stmt, 0));
        put_group(rep, stmt, 1);
        json_out_end(rep->o);
    }
    return r;
}

int report_rows(const struct report *rep, uw_error *err)
{
    int r;

    switch (rep->q->by) {
    case LEDGER_BY_BOARD:
        return report_boards(rep, "rows", err);
    case LEDGER_BY_DOMAIN:
        return report_domains(rep, "rows", err);
    case LEDGER_BY_DAY:
        return report_days(rep, "rows", err);
    default:
        break;
    }
    json_out_array(rep->o, "rows");
    if (rep->q->by == LEDGER_BY_USER)
        r = rows_by_user(rep, err);
    else if (rep->q->by == LEDGER_BY_LABEL)
        r = rows_by_label(rep, err);
    else
        r = rows_by_job(rep, err);
    json_out_end(rep->o);
    return r;
}
