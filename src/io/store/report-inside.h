/* Shared by the parts of a report. */
#ifndef IO_STORE_REPORT_INSIDE_H
#define IO_STORE_REPORT_INSIDE_H

#include "io/ledger-report.h"
#include "io/store/inside.h"

enum {
    REPORT_ROWS = 5000,
    REPORT_STACK = 5
}; /* rows of most energy, "rest": the others */

/* Selects the rows of the span in energy and meter, by index. */
#define IN_SPAN "res IN (0, 60, 3600, 86400) AND begin_ms >= :from AND begin_ms < :to"

enum { REPORT_FACTORS = 1024 }; /* with a higher id they are not told */
#define REPORT_LABEL_AT(job, name) \
    "(SELECT lb.value FROM job_label lb WHERE lb.job = " job " AND lb.key = " name ")"
/* A label of job j, or of the job in which j runs: its own one's, but for a scheduler's.
 */
#define REPORT_LABEL(name)                                                          \
    "coalesce(iif(" name " GLOB 'slurm.*' OR " name " GLOB 'kubernetes.*' OR " name \
    " = 'group', " REPORT_LABEL_AT("j.within", name) ", NULL), " REPORT_LABEL_AT(   \
        "j.id", name) ", " REPORT_LABEL_AT("j.within", name) ")"
/* Whether the job of e.job, its row j, is one that was asked for: by user and id, by all.
 */
#define REPORT_OF_JOB                                                  \
    " (:uid < 0 OR j.uid = :uid) AND (:of_job = 0 OR e.job = :of_job)" \
    " AND (:of_user = '' OR j.user = :of_user OR CAST(j.uid AS TEXT) = :of_user)"
#define REPORT_IS_SHOWN \
    REPORT_OF_JOB       \
    " AND (:of_label = '' OR " REPORT_LABEL(":of_label") " = :of_value)"

enum { REPORT_PIECES = 200 };
struct report_cap {
    int64_t least_mw, most_mw, span_ms; /* span 0: this piece is unknown */
    double sum;                         /* of mW x ms */
};
struct report_caps {
    int64_t begin_ms, piece_ms;
    int64_t board[LEDGER_BOARDS]; /* ids */
    size_t n;
    struct report_cap *piece; /* REPORT_PIECES a board */
};

/* Sums beside what is booked (report-beside.h).  Board time: of jobs that share a board,
 * each one's part.
 */
enum {
    BESIDE_MARKET_MG,
    BESIDE_MARKET_UJ, /* energy that it covers */
    BESIDE_EMBODIED_MG,
    BESIDE_EMBODIED_MS, /* board time that it covers */
    BESIDE_BOARD_MS,
    REPORT_BESIDE
};
struct report_beside;

/* Sums of what energy is charged with, in order: amounts, how much they cover, and what
 * of the amounts are revisions of what was booked.
 */
struct report_charges {
    struct {
        int64_t amount, uj, revised;
    } of[LEDGER_CHARGES];
    double beside[REPORT_BESIDE];
};
#define REPORT_CHARGE_SUMS(e)                                                    \
    "sum(" e "co2_mg) AS co2_mg, sum(" e "co2_uj) AS co2_uj, sum(" e             \
    "co2_by) AS co2_by, sum(" e "marginal_mg) AS marginal_mg, sum(" e            \
    "marginal_uj) AS marginal_uj, sum(" e "marginal_by) AS marginal_by, "        \
    "sum(" e "cost) AS cost, sum(" e "cost_uj) AS cost_uj, sum(" e               \
    "cost_by) AS cost_by, "                                                      \
    "sum(" e "market_mg) AS market_mg, sum(" e "market_uj) AS market_uj, sum(" e \
    "embodied_mg) AS embodied_mg, sum(" e "embodied_ms) AS embodied_ms, sum(" e  \
    "board_ms) AS board_ms"
#define REPORT_CHARGES                                                            \
    " sum(co2_mg), sum(co2_uj), sum(co2_by), sum(marginal_mg), sum(marginal_uj)," \
    " sum(marginal_by), sum(cost), sum(cost_uj), sum(cost_by),"                   \
    " sum(market_mg), sum(market_uj), sum(embodied_mg), sum(embodied_ms),"        \
    " sum(board_ms)"
enum { REPORT_CHARGE_COLUMNS = 3 * LEDGER_CHARGES + REPORT_BESIDE };

struct report {
    struct ledger *l;
    const struct ledger_query *q;
    struct json_out *o;
    unsigned method, domain_method;
    bool simulated;
    bool unknown; /* the user or job of the query is none of the ledger's */
    uint8_t used[REPORT_FACTORS]; /* by id of a factor: some energy is charged with it */
    char price_unit[16];          /* "EUR/kWh": costs in other currencies do not count */
    struct report_caps caps;
    struct report_beside *beside; /* NULL: nothing is asked for */
};

/* Reads the span's rows once: fills the methods, simulated, caps, and the temporary table
 * part(day, board, kind (0: the meter), job, energy_uj, fixed_j and
 * noise2_j2 (struct half_sum), span_ms, co2_mg, co2_uj,
 * co2_by, marginal_mg, marginal_uj, marginal_by, cost, cost_uj, cost_by, market_mg,
 * market_uj, embodied_mg, embodied_ms, board_ms) of boards, price_unit, and domain_part,
 * the same of RAPL domains: no query can add up both by mistake.
 */
int report_gather(struct report *rep, uw_error *err);

/* Fills price_unit: of several currencies the one that covers most energy. */
int report_price(struct report *rep, uw_error *err);

/* Prepares with :from, :to, :uid (-1: all), :label, :rows and the filters bound.
 */
int report_prepare(const struct report *rep, const char *sql, sqlite3_stmt **ret,
                   uw_error *err);
/* Microjoules of a column as J; 0 for NULL. */
double report_j(sqlite3_stmt *stmt, int column);
/* Of the columns fixed and noise2. */
struct half_sum report_half(sqlite3_stmt *stmt, int column);
/* Whole millionths, which the ledger has, so that parts add up. */
void report_put_sum(struct json_out *o, const char *key, double v);
/* Writes an energy, and its emissions and cost where configured. */
void report_put_energy(const struct report *rep, const char *key, double j);
/* The columns of REPORT_CHARGES from `column` on. */
void report_charges(sqlite3_stmt *stmt, int column, struct report_charges *ret);
void report_add_charges(struct report_charges *to, const struct report_charges *c);
/* Emissions and money of so much energy; hidden: as if nothing were known. */
void report_put_charges(const struct report *rep, const struct report_charges *c,
                        int64_t energy_uj, bool hidden);
/* Write a column as time, text or whole number; null for NULL. */
void report_time(struct json_out *o, const char *key, sqlite3_stmt *stmt, int column);
void report_put_text(struct json_out *o, const char *key, sqlite3_stmt *stmt, int column);
void report_put_int(struct json_out *o, const char *key, sqlite3_stmt *stmt, int column);
/* "cpu_j": report_domain_j() of a column. */
void report_put_cpu(const struct report *rep, sqlite3_stmt *stmt, int column);

/* Writes an array under key: one object for each row of sql, filled by fn. */
typedef int (*report_row_fn)(const struct report *rep, sqlite3_stmt *stmt, uw_error *err);
int report_list(const struct report *rep, const char *key, const char *sql,
                report_row_fn fn, uw_error *err);

/* Microjoules of a domain as J, at this query's resolution. */
double report_domain_j(const struct report *rep, int64_t uj);
int report_boards(const struct report *rep, const char *key, uw_error *err);
int report_domains(const struct report *rep, const char *key, uw_error *err);
int report_days(const struct report *rep, const char *key, uw_error *err);
/* Writes the keys that every report has, of what was asked. */
void report_put_head(const struct report *rep);
/* Writes "factors": those that are marked as used. */
int report_put_factors(const struct report *rep, uw_error *err);
/* Marks a factor as used; 0: none. */
void report_use_factor(struct report *rep, int64_t id);
/* What a scheduler says of job j, or of the job in which j runs.  Of other jobs such a
 * label is their users' own word.
 */
#define REPORT_FACT(key)                                                           \
    "(SELECT nullif(lf.value, '') FROM job f JOIN job_label lf ON lf.job = f.id"   \
    " AND lf.key = '" key "' WHERE f.id = coalesce(j.within, j.id) AND (f.firm OR" \
    " f.source = 'registered'))"

#endif
