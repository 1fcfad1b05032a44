/* The schema and its history.  A released step is never changed: the next change is the
 * next step, and tests/data/ gains a dump of it.
 */
#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "io/store/inside.h"

static const char version_1[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;"
    "CREATE TABLE schema_version(version INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL,"
    " program TEXT);"
    "CREATE TABLE boot(id INTEGER PRIMARY KEY, boot_id TEXT NOT NULL UNIQUE,"
    " first_ms INTEGER NOT NULL);"
    "CREATE TABLE run(id INTEGER PRIMARY KEY, boot INTEGER NOT NULL REFERENCES boot,"
    " program TEXT, began_ms INTEGER NOT NULL, ended_ms INTEGER);"
    "CREATE TABLE board(id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, name TEXT,"
    " pci_bus_id TEXT, at INTEGER, first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL);"
    "CREATE TABLE job(id INTEGER PRIMARY KEY, source TEXT, name TEXT,"
    " uid INTEGER NOT NULL, user TEXT, began_ms INTEGER NOT NULL, ended_ms INTEGER,"
    " boot INTEGER NOT NULL REFERENCES boot, pid INTEGER, pid_start INTEGER,"
    " goal TEXT, named_mw INTEGER, cap_mw INTEGER, steps INTEGER, saved REAL,"
    " saved_half REAL, slowdown REAL, slowdown_half REAL, saved_j REAL,"
    " saved_half_j REAL);"
    "CREATE TABLE job_label(job INTEGER NOT NULL REFERENCES job, key TEXT NOT NULL,"
    " value TEXT, PRIMARY KEY(job, key)) WITHOUT ROWID;"
    "CREATE TABLE job_board(job INTEGER NOT NULL REFERENCES job,"
    " board INTEGER NOT NULL REFERENCES board, PRIMARY KEY(job, board)) WITHOUT ROWID;"
    /* res: seconds of the bucket, 0 as booked; kind: 1 job, 2 idle, 3 unattributed */
    "CREATE TABLE energy(res INTEGER NOT NULL, begin_ms INTEGER NOT NULL,"
    " span_ms INTEGER NOT NULL, boot INTEGER NOT NULL, board INTEGER NOT NULL,"
    " kind INTEGER NOT NULL, job INTEGER, phase INTEGER, cap_mw INTEGER,"
    " energy_uj INTEGER NOT NULL, half_uj INTEGER NOT NULL, method INTEGER NOT NULL,"
    " simulated INTEGER NOT NULL);"
    "CREATE TABLE meter(res INTEGER NOT NULL, begin_ms INTEGER NOT NULL,"
    " span_ms INTEGER NOT NULL, boot INTEGER NOT NULL, board INTEGER NOT NULL,"
    " energy_uj INTEGER NOT NULL);"
    "CREATE TABLE claim(seq INTEGER PRIMARY KEY, id INTEGER NOT NULL,"
    " run INTEGER NOT NULL REFERENCES run, board INTEGER NOT NULL, made_ms INTEGER,"
    " until_ms INTEGER, uid INTEGER NOT NULL, job INTEGER, kind TEXT NOT NULL,"
    " mw INTEGER NOT NULL, walked INTEGER NOT NULL, changes INTEGER NOT NULL,"
    " who TEXT, why TEXT, ended_ms INTEGER, how TEXT);"
    "CREATE INDEX claim_by_id ON claim(id, board);"
    "CREATE TABLE cap(at_ms INTEGER NOT NULL, board INTEGER NOT NULL,"
    " target_mw INTEGER NOT NULL, enforced_mw INTEGER, by TEXT, claim INTEGER);"
    "CREATE TABLE event(at_ms INTEGER NOT NULL, run INTEGER NOT NULL, kind TEXT NOT NULL,"
    " board INTEGER, uid INTEGER, text TEXT);";

/* Indices by age: without them, the search for old rows and reports of some days read
 * the whole table.  A job taken over after a restart had lost its class of cap settings.
 */
static const char version_2[] = "CREATE INDEX energy_by_age ON energy(res, begin_ms);"
                                "CREATE INDEX meter_by_age ON meter(res, begin_ms);"
                                "ALTER TABLE job ADD COLUMN class TEXT;";

/* Processors and their memory have rows like boards: kind 1 is a board (GPU), 2 a
 * package of a processor, 3 its memory.
 */
static const char version_3[] =
    "ALTER TABLE board ADD COLUMN kind INTEGER NOT NULL DEFAULT 1;";

/* The savings of a job were stored without the model's prediction and without the number
 * of reference windows on which they are based; and a search began again however often
 * the same job had run.
 */
static const char version_4[] =
    "ALTER TABLE job ADD COLUMN looks INTEGER;"
    "ALTER TABLE job ADD COLUMN model_saved REAL;"
    "ALTER TABLE job ADD COLUMN model_slowdown REAL;"
    "ALTER TABLE job ADD COLUMN command TEXT;"
    "CREATE TABLE search(id INTEGER PRIMARY KEY, uid INTEGER NOT NULL,"
    " same TEXT NOT NULL, model TEXT NOT NULL, boards INTEGER NOT NULL, job INTEGER,"
    " at_ms INTEGER NOT NULL, reference_mw INTEGER NOT NULL, demand_w REAL NOT NULL,"
    " UNIQUE(uid, same, model, boards));"
    "CREATE TABLE search_cap(search INTEGER NOT NULL REFERENCES search,"
    " cap_mw INTEGER NOT NULL, windows INTEGER NOT NULL, step_s REAL NOT NULL,"
    " step_j REAL NOT NULL, step_s_rse REAL NOT NULL, step_j_rse REAL NOT NULL,"
    " PRIMARY KEY(search, cap_mw)) WITHOUT ROWID;";

/* After a restart the processes of found jobs were not recognised, and each board that a
 * job's processes had ever used counted as named by the job.
 */
static const char version_5[] =
    "ALTER TABLE job ADD COLUMN processes TEXT;"
    "ALTER TABLE job_board ADD COLUMN held INTEGER NOT NULL DEFAULT 1;";

/* A claim's end in UTC moved when the clock was set; and after a restart it was not
 * known which jobs an administrator had begun.
 */
static const char version_6[] =
    "ALTER TABLE claim ADD COLUMN ahead_ms INTEGER;"
    "ALTER TABLE job ADD COLUMN firm INTEGER NOT NULL DEFAULT 0;";

/* The owner of a claim, and the process with which it ends, were only in `who`, a line
 * for users, which a restart had to parse.
 */
#define OF_PROCESS "substr(who, instr(who, ', process ') + 10)"
static const char version_7[] =
    "ALTER TABLE claim ADD COLUMN source TEXT;"
    "ALTER TABLE claim ADD COLUMN pid INTEGER;"
    "ALTER TABLE claim ADD COLUMN pid_start INTEGER;"
    "UPDATE claim SET source = CASE WHEN walked THEN 'search'"
    " WHEN kind = 'hard' AND who = 'budget of this node' THEN 'budget'"
    " WHEN job IS NOT NULL AND who LIKE 'cap by name%' THEN 'job-cap'"
    " ELSE 'person' END;"
    "UPDATE claim SET pid = CAST(" OF_PROCESS " AS INTEGER), pid_start ="
    " CAST(substr(" OF_PROCESS ", instr(" OF_PROCESS ", '.') + 1) AS INTEGER)"
    " WHERE instr(who, ', process ') > 0;";

/* A scheduler's job that was taken to be over, and came back after a restart, had lost
 * its cap.
 */
static const char version_8[] =
    "ALTER TABLE job ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;";

/* Energy was stored without emissions and money.  Older rows have no factor: none of
 * their energy is covered.
 */
#define CHARGE(amount, prefix)                                                        \
    "ALTER TABLE energy ADD COLUMN " amount " INTEGER;"                               \
    "ALTER TABLE energy ADD COLUMN " prefix "_covered_uj INTEGER NOT NULL DEFAULT 0;" \
    "ALTER TABLE energy ADD COLUMN " prefix "_factor INTEGER REFERENCES factor;"
static const char version_9[] =
    "CREATE TABLE factor(id INTEGER PRIMARY KEY, signal TEXT NOT NULL,"
    " source TEXT NOT NULL, unit TEXT NOT NULL, estimated INTEGER NOT NULL,"
    " UNIQUE(signal, source, unit, estimated));" CHARGE("co2_mg", "co2")
        CHARGE("marginal_mg", "marginal") CHARGE("cost", "cost");

/* Booked amounts stay as they are, so there was no column for a later value of a factor.
 * A row is the difference that it makes in a quarter of an hour (res: 900), and then in
 * an hour or a day, for a board and a job.  Nor did a row show whether the board worked
 * for its job.
 */
static const char version_10[] =
    "CREATE TABLE revision(res INTEGER NOT NULL, begin_ms INTEGER NOT NULL,"
    " board INTEGER NOT NULL, kind INTEGER NOT NULL, job INTEGER,"
    " factor INTEGER NOT NULL REFERENCES factor, amount INTEGER NOT NULL,"
    " covered_uj INTEGER NOT NULL, made_ms INTEGER NOT NULL);"
    "CREATE INDEX revision_by_age ON revision(res, begin_ms);"
    "ALTER TABLE energy ADD COLUMN waste INTEGER;";

/* The energy of a job within a scheduler's job was in no sum of the scheduler's facts:
 * these are the outer job's, and the labels of the inner one do not prove them.
 */
static const char version_11[] = "ALTER TABLE job ADD COLUMN within INTEGER;";

static const char *const steps[LEDGER_VERSION] = {
    version_1, version_2, version_3, version_4,  version_5, version_6,
    version_7, version_8, version_9, version_10, version_11};

int schema_version(struct ledger *l, int *ret, uw_error *err)
{
    int64_t v = 0;

    int r = db_number(l, "PRAGMA user_version", 0, &v, err);
    if (r < 0)
        return r;
    if (v < 0 || v > LEDGER_VERSION)
        return fail(err, -EPROTONOSUPPORT,
                    "%s: its schema has version %lld, this program knows up to %d: it "
                    "was written by a newer underwattd; nothing was changed",
                    l->path, (long long)v, LEDGER_VERSION);
    *ret = (int)v;
    return 0;
}

static int take_step(struct ledger *l, int version, const char *program, int64_t now_ms,
                     uw_error *err)
{
    char pragma[96];

    int r = db_exec(l, steps[version - 1], err);
    if (r < 0)
        return r;
    (void)snprintf(pragma, sizeof pragma,
                   "PRAGMA user_version = %d; PRAGMA application_id = %d", version,
                   APPLICATION_ID);
    r = db_exec(l, pragma, err);
    return r < 0 ? r
                 : db_do(l, "INSERT INTO schema_version VALUES(?, ?, ?)", err, "iit",
                         (int64_t)version, now_ms, program);
}

int schema_migrate(struct ledger *l, const char *program, int64_t now_ms, uw_error *err)
{
    int version = 0;

    int r = schema_version(l, &version, err);
    while (r >= 0 && version < LEDGER_VERSION) {
        r = db_begin(l, err);
        if (r >= 0)
            r = take_step(l, version + 1, program, now_ms, err);
        r = db_end(l, r, err);
        if (r < 0)
            return fail_in(err, r, "to version %d of the schema", version + 1);
        version++;
    }
    return r < 0 ? r : 0;
}

int meta_get(struct ledger *l, const char *key, int64_t otherwise, int64_t *ret,
             uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;

    int r = db_ask(l, "SELECT value FROM meta WHERE key = ?", &stmt, err, "t", key);
    if (r >= 0)
        r = db_step(l, stmt, err);
    if (r < 0)
        return r;
    *ret = r > 0 ? sqlite3_column_int64(stmt, 0) : otherwise;
    return 0;
}

int meta_set(struct ledger *l, const char *key, int64_t value, uw_error *err)
{
    if (!l->stmt[STMT_META]) {
        int r = db_prepare(l, "INSERT OR REPLACE INTO meta VALUES(?, ?)",
                           &l->stmt[STMT_META], err);
        if (r < 0)
            return r;
    }
    db_bind(l->stmt[STMT_META], "ti", key, value);
    return db_run(l, l->stmt[STMT_META], err);
}
