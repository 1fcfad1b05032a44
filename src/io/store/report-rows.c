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

/* The grams that were saved, of whole jobs: the saved energy at the mean intensity of the
 * energy that is covered.
 */
static void put_saved_g(struct json_out *o, sqlite3_stmt *stmt, int column)
{
    json_out_double(o, "saved_co2_g", db_double(stmt, column));
    json_out_double(o, "saved_co2_half_g", db_double(stmt, column + 1));
}
#define OF_J(mg, uj) "* " mg " * 1e3 / nullif(" uj ", 0)" /* grams */
#define MEAN_G OF_J("co2_mg", "co2_uj")
#define MEAN_HALF_G OF_J("abs(co2_mg)", "co2_uj")
#define MEAN_JOB_G OF_J("sum(co2_mg)", "sum(co2_uj)")
#define MEAN_JOB_HALF_G OF_J("abs(sum(co2_mg))", "sum(co2_uj)")

/* Columns from `column` on: REPORT_CHARGES, then the saved grams. */
static void put_charges(const struct report *rep, sqlite3_stmt *stmt, int column,
                        int64_t energy_uj)
{
    struct report_charges c;

    report_charges(stmt, column, &c);
    report_put_charges(rep, &c, energy_uj, false);
    put_saved_g(rep->o, stmt, column + 2 * LEDGER_CHARGES);
}

/* What was saved, of whole jobs: the energy, and half of its interval. */
static void put_saved(struct json_out *o, sqlite3_stmt *stmt, int column)
{
    json_out_double(o, "saved_j", db_double(stmt, column));
    json_out_double(o, "saved_half_j", db_double(stmt, column + 1));
}

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

/* The savings that the search's model predicts, and the number of reference windows that
 * the measured savings rest on.
 */
static void put_model(struct json_out *o, sqlite3_stmt *stmt, int column)
{
    report_put_int(o, "looks", stmt, column);
    json_out_double(o, "model_saved", db_double(stmt, column + 1));
    json_out_double(o, "model_slowdown", db_double(stmt, column + 2));
}

static int put_job(const struct report *rep, sqlite3_stmt *stmt, uw_error *err)
{
    struct json_out *o = rep->o;
    int64_t job = sqlite3_column_int64(stmt, 0);

    json_out_int(o, "job", job);
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
    report_put_text(o, "goal", stmt, 16);
    report_put_int(o, "cap_mw", stmt, 17);
    report_put_cpu(rep, stmt, 18);
    put_model(o, stmt, 19);
    put_charges(rep, stmt, 22, sqlite3_column_int64(stmt, 1));
    int r = put_job_boards(rep, job, err);
    return r < 0 ? r : put_labels(rep, job, err);
}

/* Saved energy of the jobs of a group: a job counts once however many rows it has. */
#define PER_JOB                                                                    \
    " FROM (SELECT e.job AS job, sum(energy_uj) AS uj, sum(half_uj) AS half,"      \
    " sum(span_ms) AS span, " OF_DOMAINS " AS domains, sum(co2_mg) AS co2_mg,"     \
    " sum(co2_uj) AS co2_uj, sum(marginal_mg) AS marginal_mg, sum(marginal_uj) AS" \
    " marginal_uj, sum(cost) AS cost, sum(cost_uj) AS cost_uj" OF_JOBS             \
    " GROUP BY e.job) g"                                                           \
    " LEFT JOIN job j ON j.id = g.job"
#define GROUPED                                                                    \
    " sum(uj), sum(half), sum(span), count(*), sum(j.saved_j),"                    \
    " sum(j.saved_half_j), sum(domains)," REPORT_CHARGES ", sum(j.saved_j " MEAN_G \
    "), sum(j.saved_half_j " MEAN_HALF_G ")"

static void put_group(const struct report *rep, sqlite3_stmt *stmt, int column)
{
    put_figures(rep, stmt, column);
    json_out_int(rep->o, "jobs", sqlite3_column_int64(stmt, column + 3));
    put_saved(rep->o, stmt, column + 4);
    report_put_cpu(rep, stmt, column + 6);
    put_charges(rep, stmt, column + 7, sqlite3_column_int64(stmt, column));
}

static int put_user(const struct report *rep, sqlite3_stmt *stmt, uw_error *err)
{
    (void)err;
    json_out_int(rep->o, "uid", sqlite3_column_int64(stmt, 0));
    json_out_text(rep->o, "user", db_text(stmt, 1));
    put_group(rep, stmt, 2);
    return 0;
}

static int put_value(const struct report *rep, sqlite3_stmt *stmt, uw_error *err)
{
    (void)err;
    report_put_text(rep->o, "value", stmt, 0);
    put_group(rep, stmt, 1);
    return 0;
}

int report_rows(const struct report *rep, uw_error *err)
{
    switch (rep->q->by) {
    case LEDGER_BY_BOARD:
        return report_boards(rep, "rows", err);
    case LEDGER_BY_DOMAIN:
        return report_domains(rep, "rows", err);
    case LEDGER_BY_DAY:
        return report_days(rep, "rows", err);
    case LEDGER_BY_USER:
        return report_list(rep, "rows",
                           "SELECT j.uid, max(j.user)," GROUPED PER_JOB
                           " GROUP BY j.uid ORDER BY 3 DESC LIMIT :rows",
                           put_user, err);
    case LEDGER_BY_LABEL:
        return report_list(rep, "rows",
                           "SELECT lb.value," GROUPED PER_JOB
                           " LEFT JOIN job_label lb ON lb.job = g.job AND lb.key = :label"
                           " GROUP BY lb.value ORDER BY 2 DESC LIMIT :rows",
                           put_value, err);
    default:
        return report_list(
            rep, "rows",
            "SELECT e.job," FIGURES "j.name, j.user, j.uid, j.source, j.began_ms,"
            " j.ended_ms, j.saved_j, j.saved_half_j, j.saved, j.saved_half, j.slowdown,"
            " j.slowdown_half, j.goal, j.cap_mw, " OF_DOMAINS
            ", j.looks, j.model_saved, j.model_slowdown," REPORT_CHARGES
            ", j.saved_j " MEAN_JOB_G ", j.saved_half_j " MEAN_JOB_HALF_G OF_JOBS
            " GROUP BY e.job ORDER BY 2 DESC, e.job LIMIT :rows",
            put_job, err);
    }
}
