/* Jobs by the keys of the rows: temporary tables of the jobs that are shown, of their
 * sums by the keys, and of the energy by day of the largest ones.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/utf8.h"
#include "io/store/report-keys.h"

enum { NSS_BYTES = 65536 };

/* ---- the users' groups ---- */

/* Writes the name of the primary group, "gid 1000" where it has none; "": no such user.
 */
static void group_of(uid_t uid, char *room, char *ret, size_t size)
{
    struct passwd pw, *user = NULL;
    struct group gr, *group = NULL;

    ret[0] = '\0';
    if (getpwuid_r(uid, &pw, room, NSS_BYTES, &user) != 0 || !user)
        return;
    gid_t gid = user->pw_gid;
    if (getgrgid_r(gid, &gr, room, NSS_BYTES, &group) == 0 && group)
        (void)snprintf(ret, size, "%s", group->gr_name);
    else
        (void)snprintf(ret, size, "gid %u", (unsigned)gid);
    utf8_mend(ret);
}

static int put_groups(const struct report *rep, sqlite3_stmt *uids, char *room,
                      uw_error *err)
{
    char name[LEDGER_TEXT];
    int r = 0;

    while (r >= 0 && (r = db_step(rep->l, uids, err)) > 0) {
        int64_t uid = sqlite3_column_int64(uids, 0);
        group_of((uid_t)uid, room, name, sizeof name);
        r = db_do(rep->l, "INSERT INTO temp.user_group VALUES(?, nullif(?, ''))", err,
                  "it", uid, name);
    }
    return r;
}

/* The file has uids; the groups are this machine's present ones. */
static int read_groups(const struct report *rep, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *uids = NULL;
    char *room = malloc(NSS_BYTES);

    if (!room)
        return fail(err, -ENOMEM, "out of memory for the report");
    int r = db_exec(rep->l, "CREATE TEMP TABLE user_group(uid INTEGER PRIMARY KEY, name)",
                    err);
    if (r >= 0)
        r = report_prepare(
            rep, "SELECT DISTINCT uid FROM job WHERE :uid < 0 OR uid = :uid", &uids, err);
    if (r >= 0)
        r = put_groups(rep, uids, room, err);
    free(room);
    return r;
}

/* ---- jobs ---- */

#define LABEL(key) "nullif(" REPORT_LABEL(key) ", '')"

/* A key of rows as SQL: j is the job, e.job its id.  Days are no key of jobs. */
static const char *expression_of(const struct ledger_key *k, bool first)
{
    switch (k->by) {
    case LEDGER_BY_JOB:
        return "e.job";
    case LEDGER_BY_USER:
        return "j.uid";
    case LEDGER_BY_GROUP:
        return "(SELECT name FROM temp.user_group ug WHERE ug.uid = j.uid)";
    case LEDGER_BY_PROJECT:
        return "coalesce(" LABEL("'project'") ", " REPORT_FACT("slurm.account") ")";
    case LEDGER_BY_CLASS:
        return "coalesce(nullif(j.class, ''), (SELECT nullif(f.class, '') FROM job f"
               " WHERE f.id = j.within))";
    case LEDGER_BY_PARTITION:
        return REPORT_FACT("slurm.partition");
    case LEDGER_BY_ACCOUNT:
        return REPORT_FACT("slurm.account");
    case LEDGER_BY_QOS:
        return REPORT_FACT("slurm.qos");
    case LEDGER_BY_ARRAY:
        return REPORT_FACT("slurm.array_job");
    case LEDGER_BY_LABEL:
        return first ? LABEL(":label") : LABEL(":label2");
    default:
        return "NULL";
    }
}

static int run(const struct report *rep, const char *sql, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = report_prepare(rep, sql, &stmt, err);
    return r < 0 ? r : db_run(rep->l, stmt, err);
}

/* A job's savings cover all of it.  If the span has a part of the job, the energy
 * outside the span determines the part of the savings that is shown.
 */
static int add_beyond(const struct report *rep, uw_error *err)
{
#define BEYOND(when)                                                                   \
    "SELECT job, energy_uj AS uj FROM energy WHERE kind = 1 AND res IN (0, 60, 3600,"  \
    " 86400) AND " when " AND job IN (SELECT k.job FROM temp.job_key k JOIN job j ON"  \
    " j.id = k.job WHERE j.saved_j NOT NULL) AND board IN (SELECT id FROM board WHERE" \
    " kind = 1)"
    static const char *const steps[] = {
        "CREATE TEMP TABLE beyond(job INTEGER PRIMARY KEY, uj INTEGER)",
        "INSERT INTO temp.beyond SELECT job, sum(uj) FROM (" BEYOND(
            "begin_ms < :from AND begin_ms >= (SELECT min(j.began_ms) - 86400000 FROM"
            " temp.job_key k JOIN job j ON j.id = k.job)") " UNION ALL " BEYOND("begin_"
                                                                                "ms >= "
                                                                                ":to") ")"
                                                                                       " "
                                                                                       "G"
                                                                                       "R"
                                                                                       "O"
                                                                                       "U"
                                                                                       "P"
                                                                                       " "
                                                                                       "B"
                                                                                       "Y"
                                                                                       " "
                                                                                       "j"
                                                                                       "o"
                                                                                       "b",
        "UPDATE temp.job_key SET whole_uj = whole_uj + (SELECT b.uj FROM temp.beyond b"
        " WHERE b.job = job_key.job) WHERE job IN (SELECT job FROM temp.beyond)"};
#undef BEYOND
    int r = 0;

    for (size_t i = 0; r >= 0 && i < n_elements(steps); i++)
        r = run(rep, steps[i], err);
    return r;
}

static int read_jobs(const struct report *rep, uw_error *err)
{
    const struct ledger_query *q = rep->q;
    const struct ledger_key *second = q->n_keys > 1 ? &q->key[1] : NULL;
    char sql[3600];

    int r = db_exec(rep->l,
                    "CREATE TEMP TABLE job_key(job INTEGER PRIMARY KEY, k1, k2, whole_uj"
                    " INTEGER)",
                    err);
    if (r < 0)
        return r;
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO temp.job_key SELECT e.job, %s, %s, e.uj FROM"
                   " (SELECT job, sum(energy_uj) AS uj FROM part WHERE kind = 1"
                   " GROUP BY job) e LEFT JOIN job j ON j.id = e.job"
                   " WHERE" REPORT_IS_SHOWN,
                   expression_of(&q->key[0], true),
                   second ? expression_of(second, false) : "NULL");
    r = run(rep, sql, err);
    return r < 0 ? r : add_beyond(rep, err);
}

/* ---- their sums by the keys ---- */

/* For savings, the part of the job that is shown.  Grams and money are the same part of
 * what is booked to it: that of its covered energy, NULL if nothing is covered.
 */
#define SHARE " * (1.0 * g.uj / nullif(k.whole_uj, 0))"
#define OF_J(amount, uj, unit) \
    " * iif(" uj " > 0, " amount " * " unit ", NULL) / nullif(k.whole_uj, 0)"
#define SAVED(amount, uj, unit)                                         \
    " sum(j.saved_j" OF_J(amount, uj, unit) "),"                        \
                                            " sum(j.saved_half_j" OF_J( \
                                                "abs(" amount ")", uj, unit) ")"

/* The largest energy first; if days are the second key, these in their order. */
static const char *order_of(const struct ledger_query *q)
{
    if (q->key[0].by == LEDGER_BY_DAY)
        return q->n_keys > 1 ? " ORDER BY g.k1, sum(g.uj) DESC, g.k2" : " ORDER BY g.k1";
    if (q->n_keys > 1 && q->key[1].by == LEDGER_BY_DAY)
        return " ORDER BY sum(sum(g.uj)) OVER (PARTITION BY g.k1) DESC, g.k1, g.k2";
    if (q->n_keys > 1)
        return " ORDER BY sum(sum(g.uj)) OVER (PARTITION BY g.k1) DESC, g.k1,"
               " sum(g.uj) DESC, g.k2";
    return " ORDER BY sum(g.uj) DESC, g.k1";
}

static bool has_day(const struct ledger_query *q)
{
    return q->key[0].by == LEDGER_BY_DAY ||
           (q->n_keys > 1 && q->key[1].by == LEDGER_BY_DAY);
}

static int read_grouped(const struct report *rep, uw_error *err)
{
    const struct ledger_query *q = rep->q;
    char sql[3600];

    int r = db_exec(
        rep->l,
        "CREATE TEMP TABLE grouped(at INTEGER PRIMARY KEY, k1, k2, user,"
        " name, uj, fixed, noise2, span, jobs, spared_j, spared_half_j, domains, co2_mg,"
        " co2_uj, co2_by, marginal_mg, marginal_uj, marginal_by, cost, cost_uj,"
        " cost_by, market_mg, market_uj, embodied_mg, embodied_ms, board_ms,"
        " saved_co2,"
        " saved_co2_half, saved_marginal, saved_marginal_half, saved_money,"
        " saved_money_half)",
        err);
    if (r < 0)
        return r;
    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO temp.grouped SELECT NULL, g.k1, g.k2, max(j.user), "
        "max(j.name),"
        " sum(g.uj), sum(g.fixed), sum(g.noise2), sum(g.span), count(*), "
        "sum(j.saved_j" SHARE "), sum(j.saved_half_j" SHARE
        "), sum(g.domains), sum(g.co2_mg), sum(g.co2_uj),"
        " sum(g.co2_by), sum(g.marginal_mg), sum(g.marginal_uj), sum(g.marginal_by),"
        " sum(g.cost), sum(g.cost_uj), sum(g.cost_by), sum(g.market_mg), "
        "sum(g.market_uj),"
        " sum(g.embodied_mg), sum(g.embodied_ms), sum(g.board_ms)," SAVED(
            "g.co2_mg", "g.co2_uj",
            "1e3") "," SAVED("g.marginal_mg", "g.marginal_uj",
                             "1e3") "," SAVED("g.cost", "g.cost_uj",
                                              "1.0") " FROM (SELECT %s AS k1, %s AS k2, "
                                                     "e.job "
                                                     "AS job, sum(energy_uj) AS uj,"
                                                     " sum(fixed_j) AS fixed, "
                                                     "sum(noise2_j2) AS noise2, "
                                                     "sum(span_ms) AS "
                                                     "span, (SELECT sum(d.energy_uj) FROM"
                                                     " domain_part d WHERE d.kind = 1 "
                                                     "AND "
                                                     "d.job = e.job%s) AS domains,"
                                                     " " REPORT_CHARGE_SUMS(
                                                         "e.") " FROM part e JOIN "
                                                               "temp.job_key "
                                                               "k ON k.job = e.job WHERE"
                                                               " e.kind = 1 GROUP BY "
                                                               "e.job%s) "
                                                               "g JOIN temp.job_key k ON "
                                                               "k.job "
                                                               "= g.job LEFT JOIN"
                                                               " job j ON j.id = g.job "
                                                               "GROUP "
                                                               "BY g.k1, g.k2%s",
        q->key[0].by == LEDGER_BY_DAY ? "e.day" : "k.k1",
        q->n_keys > 1 && q->key[1].by == LEDGER_BY_DAY ? "e.day" : "k.k2",
        has_day(q) ? " AND d.day = e.day" : "", has_day(q) ? ", e.day" : "", order_of(q));
    return run(rep, sql, err);
}

/* ---- the largest ones by day, for pictures ---- */

/* For the first key that is not a day; none for the day alone, a board or a domain. */
static int read_stack(const struct report *rep, uw_error *err)
{
    const struct ledger_query *q = rep->q;
    bool day_first = q->key[0].by == LEDGER_BY_DAY, none = day_first && q->n_keys < 2;
    char sql[400];

    none |= q->key[0].by == LEDGER_BY_BOARD || q->key[0].by == LEDGER_BY_DOMAIN;
    int r = db_exec(rep->l,
                    "CREATE TEMP TABLE stack(at INTEGER PRIMARY KEY, k1, user, name);"
                    "CREATE TEMP TABLE day_stack(day INTEGER, at INTEGER, uj INTEGER,"
                    " PRIMARY KEY(day, at))",
                    err);
    if (r < 0 || none)
        return r;
    const char *key = day_first ? "k2" : "k1";
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO temp.stack SELECT NULL, %s, max(user), max(name) FROM"
                   " temp.grouped GROUP BY %s ORDER BY sum(uj) DESC, %s LIMIT :stack",
                   key, key, key);
    r = run(rep, sql, err);
    if (r < 0)
        return r;
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO temp.day_stack SELECT e.day, s.at, sum(energy_uj) FROM"
                   " part e JOIN temp.job_key k ON k.job = e.job JOIN temp.stack s ON"
                   " s.k1 IS k.%s WHERE e.kind = 1 GROUP BY e.day, s.at",
                   key);
    return run(rep, sql, err);
}

bool report_has_key(const struct ledger_query *q, enum ledger_by by)
{
    return q->key[0].by == by || (q->n_keys > 1 && q->key[1].by == by);
}

int report_keys(const struct report *rep, uw_error *err)
{
    const struct ledger_query *q = rep->q;
    int r = report_has_key(q, LEDGER_BY_GROUP) ? read_groups(rep, err) : 0;

    if (r >= 0)
        r = read_jobs(rep, err);
    if (r >= 0)
        r = read_grouped(rep, err);
    if (r >= 0)
        r = read_stack(rep, err);
    return r < 0 ? r : 0;
}
