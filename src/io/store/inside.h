/* Shared by the parts of the ledger. */
#ifndef IO_STORE_INSIDE_H
#define IO_STORE_INSIDE_H

#include <sqlite3.h>

#include "core/meter/half-sum.h"
#include "io/ledger.h"
#include "io/store/clock.h"
#include "io/store/guard.h"

/* Resolution of a row: seconds of its bucket; 0: as booked. */
enum ledger_res {
    RES_BOOKED = 0,
    RES_MINUTE = 60,
    RES_QUARTER = LEDGER_QUARTER_S, /* of revisions alone */
    RES_HOUR = 3600,
    RES_DAY = 86400
};
/* Of an energy's `method`, beside enum ledger_method: rows that waited and became one. */
enum { METHOD_MERGED = 8 };
enum { LEDGER_RESERVE = 1000 }; /* ids reserved ahead of the written ones */
#define MS_PER_DAY INT64_C(86400000)
#define NS_PER_MS_I INT64_C(1000000)

enum ledger_stmt {
    STMT_BEGIN,
    STMT_COMMIT,
    STMT_ENERGY,
    STMT_FACTOR_FIND,
    STMT_FACTOR_NEW,
    STMT_METER,
    STMT_JOB,
    STMT_JOB_UNLABEL,
    STMT_JOB_LABEL,
    STMT_JOB_LEAVE,
    STMT_JOB_BOARD,
    STMT_CLAIM_FIND,
    STMT_CLAIM_TOUCH,
    STMT_CLAIM_END,
    STMT_CLAIM_NEW,
    STMT_CAP,
    STMT_EVENT,
    STMT_SEARCH_DROP,
    STMT_SEARCH,
    STMT_SEARCH_CAP,
    STMT_SEARCH_USER,
    STMT_SEARCH_ALL,
    STMT_SEARCH_ORPHANS,
    STMT_META,
    STMTS,
};

/* The kind of a row of the table of boards. */
enum place_kind { PLACE_GPU = 1, PLACE_PACKAGE, PLACE_MEMORY };

/* Sums of all boards and domains, by enum ledger_kind; 0: the meter.  waste: by enum
 * waste_class.
 */
struct sums_read {
    bool known;
    int64_t from_ms, uj[LEDGER_PLACES][LEDGER_UNATTRIBUTED + 1];
    struct {
        int64_t uj, ms;
    } waste[LEDGER_PLACES][WASTE_N];
};

struct ledger {
    sqlite3 *db;
    int fd; /* holds the lock against a second writer; closed after db */
    char *path;
    bool read_only, simulated;
    bool damaged;            /* damage seen: the next run must check the file */
    struct ledger_keep keep; /* never 0 */
    int64_t run, boot;       /* row ids of this run and its boot */
    int64_t began_ms;        /* start of this run, the same in each of its files */
    struct guard_file beside[GUARD_BESIDE]; /* SQLite's own files, as they were made */
    int64_t settle_ms; /* the next write ends, at this time, jobs and claims that it does
                          not contain; 0: none */
    struct tidy_clock clock;
    int64_t clock_kept_ms; /* its time in the file */
    int64_t last_ms;       /* the newest time that was written */
    int64_t jobs_tidied;   /* jobs up to this id were checked, and are kept */
    uint64_t first_job, first_claim;
    uint64_t next_job, next_claim;         /* one above the highest written */
    uint64_t reserved_job, reserved_claim; /* in the file: no later run uses these */
    int64_t board[LEDGER_PLACES];          /* ids of this run's boards, then domains */
    size_t n_boards, n_domains;
    char *board_text[LEDGER_PLACES][3]; /* UUID, name, bus id: for ledger_renew() */
    enum place_kind place_kind[LEDGER_PLACES];
    char boot_id[64], program[64];
    uint64_t disk_max;
    sqlite3_stmt *stmt[STMTS];
    struct sums_read sums[2]; /* cached by ledger_board_sums(): in all, since a time */
    struct ledger_revised revised; /* by the last write */
};

/* ---- open.c ---- */

/* A ledger without a file, with the options' values. */
int store_new(const struct ledger_opts *o, const char *path, struct ledger **ret,
              uw_error *err);
/* Opens for writing.  before: this run wrote another file, or none yet, and continues
 * here with its ids (-EEXIST: they may be in use here); or NULL.
 */
int store_open(const struct ledger_opts *o, const struct ledger *before,
               struct ledger **ret, uw_error *err);
void store_close_db(struct ledger *l);
DEFINE_AUTO(struct ledger *, ledger_abandon);

/* ---- db.c ---- */

/* The error of the last call as -errno, with a text. */
int db_fail(struct ledger *l, const char *what, uw_error *err);
/* One or more statements without parameters. */
int db_exec(struct ledger *l, const char *sql, uw_error *err);
int db_prepare(struct ledger *l, const char *sql, sqlite3_stmt **ret, uw_error *err);
void db_finalize(sqlite3_stmt *stmt);
DEFINE_AUTO(sqlite3_stmt *, db_finalize);
/* Binds parameters in order, a letter each: i int64_t, z int64_t (0 is NULL), d double, o
 * double (not finite is NULL), t const char * (NULL and "" are NULL; must stay valid).
 */
void db_bind(sqlite3_stmt *stmt, const char *letters, ...);
/* db_prepare() and db_bind(). */
int db_ask(struct ledger *l, const char *sql, sqlite3_stmt **ret, uw_error *err,
           const char *letters, ...);
/* Runs one statement to its end. */
int db_do(struct ledger *l, const char *sql, uw_error *err, const char *letters, ...);
/* SQLITE_ROW: 1; done: 0 and reset; else -errno, reset. */
int db_step(struct ledger *l, sqlite3_stmt *stmt, uw_error *err);
/* Runs it to its end. */
int db_run(struct ledger *l, sqlite3_stmt *stmt, uw_error *err);
/* The first column of the first row; `otherwise` when there is none or it is NULL. */
int db_number(struct ledger *l, const char *sql, int64_t otherwise, int64_t *ret,
              uw_error *err);
/* A text column, "" for NULL; borrowed until the next step. */
const char *db_text(sqlite3_stmt *stmt, int column);
/* NaN for NULL. */
double db_double(sqlite3_stmt *stmt, int column);

int db_begin(struct ledger *l, uw_error *err);
/* r >= 0: commits; else, or where that fails, rolls back to db_begin().  Returns r, or
 * the commit's result.
 */
int db_end(struct ledger *l, int r, uw_error *err);
void db_rollback(struct ledger *l);

/* ---- schema.c ---- */

enum { APPLICATION_ID = 0x55774c31 }; /* "UwL1" */
/* Migrates a database (version 0: empty) to LEDGER_VERSION, a transaction a step.
 * -ENOTSUP: its version is newer.
 */
int schema_migrate(struct ledger *l, const char *program, int64_t now_ms, uw_error *err);
int schema_version(struct ledger *l, int *ret, uw_error *err);

/* ---- meta: small values by name ---- */
int meta_get(struct ledger *l, const char *key, int64_t otherwise, int64_t *ret,
             uw_error *err);
int meta_set(struct ledger *l, const char *key, int64_t value, uw_error *err);

/* ---- batch.c ---- */

enum row_type {
    ROW_ENERGY,
    ROW_METER,
    ROW_JOB,
    ROW_CLAIM,
    ROW_CLAIM_END,
    ROW_CAP,
    ROW_EVENT,
    ROW_SEARCH,
    ROW_REVISION,
};
/* Half widths of rows (core/meter/half-sum.h); the SQL function half_sum() is in half.c:
 * the result of sqlite3_create_function().
 */
struct half_sum store_half(int64_t energy_uj, int64_t half_uj, unsigned method);
int store_half_register(sqlite3 *db);

/* Energy and meter as they are stored. */
struct row_energy {
    int64_t begin_ms, span_ms;
    size_t board;
    int kind;
    uint64_t job;
    uint32_t phase, cap_mw, method;
    bool simulated;
    enum waste_class waste;
    int64_t energy_uj, half_uj;
    struct ledger_amount charge[LEDGER_CHARGES];
};
struct row_meter {
    int64_t begin_ms, span_ms;
    size_t board;
    int64_t energy_uj;
};
struct row {
    enum row_type type;
    union {
        struct row_energy energy;
        struct row_meter meter;
        struct ledger_job *job; /* with its texts, in one allocation */
        struct ledger_claim *claim;
        struct ledger_claim_end *claim_end;
        struct ledger_cap *cap;
        struct ledger_event *event;
        struct ledger_search *search;
        struct ledger_revision *revision;
        void *piece; /* any of these */
    };
};
struct ledger_batch {
    struct row *row;
    size_t n, cap;
    struct ledger_factor **factor; /* each once; rows point to them */
    size_t n_factors, factors_cap;
};

/* ---- charge.c ---- */

/* The file's id of a factor, which is added where it is new; 0: NULL. */
int charge_factor(struct ledger *l, const struct ledger_factor *f, int64_t *ret,
                  uw_error *err);
/* Within a transaction. */
int charge_revise(struct ledger *l, const struct ledger_revision *rev, uw_error *err);

/* Whether this is a board or a domain of this run. */
static inline bool place_is_known(const struct ledger *l, size_t at)
{
    return at < l->n_boards || (at >= LEDGER_BOARDS && at - LEDGER_BOARDS < l->n_domains);
}

/* UTC in ns to ms, rounded down. */
static inline int64_t ms_of_ns(int64_t ns)
{
    return ns / NS_PER_MS_I - (ns % NS_PER_MS_I < 0);
}

#endif
