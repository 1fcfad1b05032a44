/* The use of boards by the jobs that had them (docs/waste.md): sums by class, then by
 * users, projects and jobs with waste, with the measured smaller requests that would
 * have sufficed.
 */
#include "io/store/report-waste.h"

#include <math.h>

#include "base/names.h"

/* Revisions of buckets within the span, or cut by it. */
#define REVISED \
    "res IN (900, 3600, 86400) AND begin_ms > :from - 86400000 AND begin_ms < :to"

/* A job's rows by their class; idle rows belong to no job, unattributed time counts as
 * working.
 */
static int read_used(struct report *rep, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = db_exec(rep->l,
                    "CREATE TEMP TABLE used(job INTEGER, board INTEGER, use INTEGER,"
                    " span_ms INTEGER, energy_uj INTEGER, co2_mg INTEGER, co2_uj INTEGER,"
                    " marginal_mg INTEGER, marginal_uj INTEGER, cost INTEGER, cost_uj"
                    " INTEGER)",
                    err);
    if (r >= 0)
        r = report_price(rep, err);
    if (r >= 0)
        r = report_prepare(
            rep,
            "INSERT INTO temp.used SELECT e.job, board, iif(e.kind = 2, 4, ifnull(waste,"
            " 0)) AS use, sum(span_ms), sum(energy_uj), sum(co2_mg),"
            " sum(co2_covered_uj), sum(marginal_mg), sum(marginal_covered_uj),"
            " sum(iif(f.unit = :unit, cost, 0)), sum(iif(f.unit = :unit, cost_covered_uj,"
            " 0)) FROM energy e LEFT JOIN factor f ON f.id = e.cost_factor LEFT JOIN job"
            " j ON j.id = e.job WHERE " IN_SPAN
            " AND board IN (SELECT id FROM board WHERE kind = 1) AND (e.kind = 2 OR"
            " (" REPORT_IS_SHOWN ")) GROUP BY e.job, board, use",
            &stmt, err);
    if (r >= 0)
        r = db_run(rep->l, stmt, err);
    return r < 0 ? r : db_exec(rep->l, "CREATE INDEX temp.used_by_job ON used(job)", err);
}

/* The energy of each bucket with a revision, by the columns of the revision and by
 * class.  One search per bucket: the time of one search per revision would grow with the
 * square of the boards.
 */
static int read_buckets(struct report *rep, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = db_exec(rep->l,
                    "CREATE TEMP TABLE bucket(res INTEGER, begin_ms INTEGER, board"
                    " INTEGER, kind INTEGER, job INTEGER, waste INTEGER, told INTEGER,"
                    " energy_uj INTEGER, co2_uj INTEGER, marginal_uj INTEGER, cost_uj"
                    " INTEGER)",
                    err);
    if (r >= 0)
        r = report_prepare(
            rep,
            "INSERT INTO temp.bucket SELECT b.res, b.begin_ms, board, kind, ifnull(job,"
            " 0) AS j, waste, e.begin_ms >= :from AND e.begin_ms < :to AS told,"
            " sum(energy_uj), sum(co2_covered_uj), sum(marginal_covered_uj),"
            " sum(cost_covered_uj) FROM (SELECT DISTINCT res, begin_ms FROM revision"
            " WHERE " REVISED ") b CROSS JOIN energy e ON e.res IN (0, 60, 3600, 86400)"
            " AND e.begin_ms >= b.begin_ms AND e.begin_ms < b.begin_ms + b.res * 1000"
            " WHERE board IN (SELECT id FROM board WHERE kind = 1) GROUP BY b.res,"
            " b.begin_ms, board, kind, j, waste, told",
            &stmt, err);
    if (r >= 0)
        r = db_run(rep->l, stmt, err);
    return r < 0 ? r
                 : db_exec(rep->l,
                           "CREATE INDEX temp.bucket_of ON bucket(res, begin_ms, board,"
                           " kind, job)",
                           err);
}

/* Adds the changes by later values of factors (an amount, no energy) to the classes of
 * their rows: by the energy in the bucket or, if energy became covered, by the energy
 * without a factor, like the usual report cuts a bucket.  `+`: otherwise SQLite would
 * search the table of buckets by the span, which is known for the revisions.
 */
static int read_revised(struct report *rep, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = read_buckets(rep, err);
    if (r >= 0)
        r = report_prepare(
            rep,
            "WITH x AS (SELECT r.rowid AS id, f.signal AS of, r.amount AS by,"
            " r.covered_uj AS cover, r.job AS job, b.board AS board, b.kind AS kind,"
            " waste, told, energy_uj AS a, energy_uj - CASE f.signal WHEN 'carbon' THEN"
            " co2_uj WHEN 'price' THEN cost_uj ELSE marginal_uj END AS u FROM (SELECT"
            " rowid, * FROM revision WHERE " REVISED ") r JOIN factor f ON f.id ="
            " r.factor CROSS JOIN temp.bucket b ON b.res = +r.res AND b.begin_ms ="
            " +r.begin_ms AND b.board = r.board AND b.kind = r.kind AND b.job ="
            " ifnull(r.job, 0) WHERE f.signal <> 'price' OR f.unit = :unit), y AS"
            " (SELECT *, sum(a) OVER bucket AS all_a, sum(u) OVER bucket AS all_u FROM x"
            " WINDOW bucket AS (PARTITION BY id)), z AS (SELECT *, iif(cover > 0 AND"
            " all_u > 0, 1.0 * u / all_u, 1.0 * a / nullif(all_a, 0)) AS part FROM y"
            " WHERE told) INSERT INTO temp.used SELECT e.job, board, iif(e.kind = 2, 4,"
            " ifnull(waste, 0)) AS use, 0, 0, sum(iif(of = 'carbon', by * part, 0)),"
            " sum(iif(of = 'carbon', cover * part, 0)), sum(iif(of = 'carbon.marginal',"
            " by * part, 0)), sum(iif(of = 'carbon.marginal', cover * part, 0)),"
            " sum(iif(of = 'price', by * part, 0)), sum(iif(of = 'price', cover * part,"
            " 0)) FROM z e LEFT JOIN job j ON j.id = e.job WHERE e.kind = 2 OR"
            " (" REPORT_IS_SHOWN ") GROUP BY e.job, board, use",
            &stmt, err);
    return r < 0 ? r : db_run(rep->l, stmt, err);
}

/* Marks the factors with which the energy in the span was charged. */
static int read_factors(struct report *rep, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = report_prepare(
        rep,
        "SELECT f.id FROM (SELECT co2_factor AS id FROM energy WHERE " IN_SPAN
        " UNION SELECT marginal_factor FROM energy WHERE " IN_SPAN
        " UNION SELECT cost_factor FROM energy WHERE " IN_SPAN
        " UNION SELECT factor FROM revision WHERE res IN (900, 3600, 86400) AND begin_ms "
        ">"
        " :from - res * 1000 AND begin_ms < :to) JOIN factor f USING(id) WHERE f.signal "
        "<> 'price' OR f.unit = :unit",
        &stmt, err);
    while (r >= 0 && (r = db_step(rep->l, stmt, err)) > 0)
        report_use_factor(rep, sqlite3_column_int64(stmt, 0));
    return r;
}

/* ---- sums ---- */

static void put_amounts(const struct report *rep, sqlite3_stmt *stmt, int column,
                        int64_t energy_uj)
{
    static const struct {
        const char *amount, *covered;
        double unit;
    } keys[LEDGER_CHARGES] = {{"co2_g", "co2_covered", 1e3},
                              {"marginal_g", "marginal_covered", 1e3},
                              {"money", "money_covered", 1e6}};

    for (int i = 0; i < LEDGER_CHARGES; i++) {
        double amount = sqlite3_column_double(stmt, column + 2 * i);
        double covered_uj = sqlite3_column_double(stmt, column + 2 * i + 1);
        json_out_known_double(rep->o, keys[i].amount, covered_uj > 0,
                              amount / keys[i].unit);
        json_out_known_double(rep->o, keys[i].covered, energy_uj > 0,
                              covered_uj / (double)energy_uj);
    }
}

/* Columns of SUMS from `column` on. */
static void put_sums(const struct report *rep, sqlite3_stmt *stmt, int column)
{
    int64_t uj = sqlite3_column_int64(stmt, column + 1);
    double s = (double)sqlite3_column_int64(stmt, column) / 1e3;

    report_put_sum(rep->o, "time_s", s);
    report_put_sum(rep->o, "energy_j", (double)uj / 1e6);
    json_out_known_double(rep->o, "mean_w", s > 0, (double)uj / 1e6 / s);
    put_amounts(rep, stmt, column + 2, uj);
}
#define SUMS                                                                     \
    " sum(span_ms), sum(energy_uj), sum(co2_mg), sum(co2_uj), sum(marginal_mg)," \
    " sum(marginal_uj), sum(cost), sum(cost_uj)"

static int put_class(const struct report *rep, sqlite3_stmt *stmt, uw_error *err)
{
    (void)err;
    json_out_text(rep->o, "use",
                  names_word(NAMES_USE, (unsigned)sqlite3_column_int(stmt, 0)));
    put_sums(rep, stmt, 1);
    return 0;
}

/* ---- smaller requests that would have sufficed ---- */

static void put_idle_boards(const struct report *rep, sqlite3_stmt *stmt)
{
    int64_t boards = sqlite3_column_int64(stmt, 0), idle = sqlite3_column_int64(stmt, 1);

    if (idle == 0)
        return;
    json_out_object(rep->o, NULL);
    json_out_text(rep->o, "kind", "fewer-boards");
    json_out_int(rep->o, "boards", boards);
    json_out_int(rep->o, "idle_boards", idle);
    json_out_double(rep->o, "idle", db_double(stmt, 2));
    json_out_end(rep->o);
}

/* Boards that were idle for at least 90 % of the job's time. */
static int hint_boards(const struct report *rep, int64_t job, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = db_ask(rep->l,
                   "SELECT count(*), sum(idle >= 0.9), sum(iif(idle >= 0.9, idle * ms,"
                   " 0)) / sum(iif(idle >= 0.9, ms, 0)) FROM (SELECT sum(span_ms) AS ms,"
                   " 1.0 * sum(iif(use IN (1, 2), span_ms, 0)) / nullif(sum(span_ms), 0)"
                   " AS idle FROM temp.used WHERE job = ? GROUP BY board)",
                   &stmt, err, "i", job);
    if (r >= 0)
        r = db_step(rep->l, stmt, err);
    if (r > 0)
        put_idle_boards(rep, stmt);
    return r;
}

/* The lowest cap measured by the job's search from which on no cap is slower than the
 * reference by more than 1 %.
 */
static int hint_cap(const struct report *rep, int64_t job, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = db_ask(
        rep->l,
        "WITH s AS (SELECT id, reference_mw, demand_w FROM search WHERE job = ?1 ORDER BY"
        " at_ms DESC LIMIT 1), r AS (SELECT c.step_s FROM search_cap c JOIN s ON c.search"
        " = s.id AND c.cap_mw = s.reference_mw) SELECT c.cap_mw, s.reference_mw,"
        " s.demand_w, c.step_s / r.step_s FROM search_cap c JOIN s ON c.search = s.id, r"
        " WHERE c.cap_mw > ifnull((SELECT max(cap_mw) FROM search_cap d WHERE d.search ="
        " s.id AND d.step_s > 1.01 * r.step_s), 0) ORDER BY c.cap_mw LIMIT 1",
        &stmt, err, "i", job);
    if (r >= 0)
        r = db_step(rep->l, stmt, err);
    if (r <= 0 || sqlite3_column_int64(stmt, 0) >= sqlite3_column_int64(stmt, 1))
        return r;
    json_out_object(rep->o, NULL);
    json_out_text(rep->o, "kind", "lower-cap");
    json_out_int(rep->o, "cap_mw", sqlite3_column_int64(stmt, 0));
    json_out_int(rep->o, "reference_mw", sqlite3_column_int64(stmt, 1));
    json_out_double(rep->o, "demand_w", db_double(stmt, 2));
    json_out_double(rep->o, "time", db_double(stmt, 3));
    json_out_end(rep->o);
    return r;
}

/* The results of searches of the same job on other boards, each at its reference. */
static int hint_models(const struct report *rep, int64_t job, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = db_ask(
        rep->l,
        "SELECT o.model, o.boards, d.step_s, d.step_j, s.model, s.boards, c.step_s,"
        " c.step_j FROM search s JOIN search_cap c ON c.search = s.id AND c.cap_mw ="
        " s.reference_mw JOIN search o ON o.uid = s.uid AND o.same = s.same AND (o.model"
        " <> s.model OR o.boards <> s.boards) JOIN search_cap d ON d.search = o.id AND"
        " d.cap_mw = o.reference_mw WHERE s.job = ?1 AND d.step_j < c.step_j ORDER BY"
        " d.step_j LIMIT 3",
        &stmt, err, "i", job);
    while (r >= 0 && (r = db_step(rep->l, stmt, err)) > 0) {
        json_out_object(rep->o, NULL);
        json_out_text(rep->o, "kind", "other-boards");
        json_out_text(rep->o, "model", db_text(stmt, 0));
        json_out_int(rep->o, "boards", sqlite3_column_int64(stmt, 1));
        json_out_double(rep->o, "step_s", db_double(stmt, 2));
        json_out_double(rep->o, "step_j", db_double(stmt, 3));
        json_out_text(rep->o, "here_model", db_text(stmt, 4));
        json_out_int(rep->o, "here_boards", sqlite3_column_int64(stmt, 5));
        json_out_double(rep->o, "here_step_s", db_double(stmt, 6));
        json_out_double(rep->o, "here_step_j", db_double(stmt, 7));
        json_out_end(rep->o);
    }
    return r;
}

/* ---- rows ---- */

/* For jobs and groups: the time of all their boards, each class, the waste. */
#define PARTS                                                                        \
    " sum(all_ms), sum(iif(use = 1, span_ms, 0)), sum(iif(use = 1, energy_uj, 0)),"  \
    " sum(iif(use = 2, span_ms, 0)), sum(iif(use = 2, energy_uj, 0)), sum(iif(use =" \
    " 3, span_ms, 0)), sum(iif(use = 3, energy_uj, 0))," SUMS
/* clang-format off */
#define OF(column) " iif(use > 0, " column ", 0) AS " column
#define WASTED                                                               \
    " FROM (SELECT job, use, span_ms AS all_ms," OF("span_ms") ","           \
    OF("energy_uj") "," OF("co2_mg") "," OF("co2_uj") "," OF("marginal_mg")  \
    "," OF("marginal_uj") "," OF("cost") "," OF("cost_uj")                   \
    " FROM temp.used WHERE job NOT NULL) g LEFT JOIN job j ON j.id = g.job"
/* clang-format on */
#define N_JOBS " count(DISTINCT iif(span_ms > 0, g.job, NULL)),"
#define WORST " HAVING sum(span_ms) > 0 ORDER BY sum(energy_uj) DESC, 1 LIMIT :rows"

static void put_wasted(const struct report *rep, sqlite3_stmt *stmt, int column)
{
    static const struct {
        const char *time, *energy;
    } keys[] = {{"allocated_s", "allocated_j"},
                {"held_s", "held_j"},
                {"underused_s", "underused_j"}};
    int64_t all_ms = sqlite3_column_int64(stmt, column);
    int64_t ms = sqlite3_column_int64(stmt, column + 7);

    for (int i = 0; i < 3; i++) {
        report_put_sum(rep->o, keys[i].time,
                       (double)sqlite3_column_int64(stmt, column + 1 + 2 * i) / 1e3);
        report_put_sum(rep->o, keys[i].energy, report_j(stmt, column + 2 + 2 * i));
    }
    json_out_double(rep->o, "of_time",
                    all_ms > 0 ? (double)ms / (double)all_ms : (double)NAN);
    put_sums(rep, stmt, column + 7);
}

static int put_user(const struct report *rep, sqlite3_stmt *stmt, uw_error *err)
{
    (void)err;
    json_out_int(rep->o, "uid", sqlite3_column_int64(stmt, 0));
    json_out_text(rep->o, "user", db_text(stmt, 1));
    json_out_int(rep->o, "jobs", sqlite3_column_int64(stmt, 2));
    put_wasted(rep, stmt, 3);
    return 0;
}

static int put_project(const struct report *rep, sqlite3_stmt *stmt, uw_error *err)
{
    (void)err;
    report_put_text(rep->o, "project", stmt, 0);
    json_out_int(rep->o, "jobs", sqlite3_column_int64(stmt, 1));
    put_wasted(rep, stmt, 2);
    return 0;
}

static int put_job(const struct report *rep, sqlite3_stmt *stmt, uw_error *err)
{
    int64_t job = sqlite3_column_int64(stmt, 0);

    json_out_int(rep->o, "job", job);
    json_out_text(rep->o, "name", db_text(stmt, 1));
    json_out_text(rep->o, "user", db_text(stmt, 2));
    json_out_int(rep->o, "uid", sqlite3_column_int64(stmt, 3));
    report_put_text(rep->o, "project", stmt, 4);
    put_wasted(rep, stmt, 5);
    json_out_array(rep->o, "less");
    int r = hint_boards(rep, job, err);
    if (r >= 0)
        r = hint_cap(rep, job, err);
    if (r >= 0)
        r = hint_models(rep, job, err);
    json_out_end(rep->o);
    return r;
}

/* The user's label, else the scheduler's project. */
#define PROJECT                                                         \
    "coalesce(nullif(" REPORT_LABEL("'project'") ", ''), " REPORT_FACT( \
        "slurm.account") ")"

int report_waste(struct report *rep, uw_error *err)
{
    int r = read_used(rep, err);

    if (r >= 0)
        r = read_revised(rep, err);
    if (r >= 0)
        r = read_factors(rep, err);
    if (r < 0)
        return r;
    json_out_object(rep->o, NULL);
    report_put_head(rep);
    json_out_bool(rep->o, "waste", true);
    r = report_list(rep, "uses",
                    "SELECT use," SUMS " FROM temp.used GROUP BY use ORDER BY use",
                    put_class, err);
    if (r >= 0)
        r = report_list(rep, "users",
                        "SELECT j.uid, max(j.user)," N_JOBS PARTS WASTED
                        " GROUP BY j.uid" WORST,
                        put_user, err);
    if (r >= 0)
        r = report_list(rep, "projects",
                        "SELECT " PROJECT " AS project," N_JOBS PARTS WASTED
                        " GROUP BY project" WORST,
                        put_project, err);
    if (r >= 0)
        r = report_list(rep, "jobs",
                        "SELECT g.job, j.name, j.user, j.uid, " PROJECT "," PARTS WASTED
                        " GROUP BY g.job" WORST,
                        put_job, err);
    if (r >= 0)
        r = report_put_factors(rep, err);
    if (r >= 0)
        json_out_end(rep->o);
    return r;
}
