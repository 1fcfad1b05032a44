#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "io/store/guard.h"
#include "io/store/inside.h"

enum {
    DAMAGED = 1, /* outcomes of looking into a file */
    FOREIGN,
};
enum { BUSY_MS = 2000, PAGE_BYTES = 4096 };

static uint64_t days(unsigned n)
{
    return (uint64_t)n * 86400 * NS_PER_S;
}

static uint64_t or_else(uint64_t v, uint64_t otherwise)
{
    return v ? v : otherwise;
}

static void keep_defaults(struct ledger_keep *k)
{
    k->booked_ns = or_else(k->booked_ns, days(2));
    k->minute_ns = or_else(k->minute_ns, days(14));
    k->hour_ns = or_else(k->hour_ns, days(400));
    k->caps_ns = or_else(k->caps_ns, days(30));
    k->audit_ns = or_else(k->audit_ns, days(400));
    k->search_ns = or_else(k->search_ns, days(90));
}

void store_close_db(struct ledger *l)
{
    for (int i = 0; i < STMTS; i++) {
        db_finalize(l->stmt[i]);
        l->stmt[i] = NULL;
    }
    (void)sqlite3_close_v2(l->db);
    l->db = NULL;
}

static void boards_free(char *text[LEDGER_PLACES][3])
{
    for (size_t i = 0; i < LEDGER_PLACES; i++) {
        for (int k = 0; k < 3; k++) {
            free(text[i][k]);
            text[i][k] = NULL;
        }
    }
}

/* Closes the database without recording the end of the run. */
void ledger_abandon(struct ledger *l)
{
    if (!l)
        return;
    store_close_db(l);
    fd_close_p(&l->fd); /* after the database: closing drops SQLite's locks */
    boards_free(l->board_text);
    free(l->path);
    free(l);
}

static int connect_db(struct ledger *l, const char *name, int flags, uw_error *err)
{
    sqlite3 *db = NULL;
    int code = sqlite3_open_v2(
        name, &db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, NULL);

    l->db = db;
    if (code != SQLITE_OK)
        return db_fail(l, "", err);
    if (store_half_register(db) != SQLITE_OK)
        return fail(err, -ENOMEM, "out of memory");
    (void)sqlite3_extended_result_codes(db, 1);
    (void)sqlite3_busy_timeout(db, BUSY_MS);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    return 0;
}

/* The kind of file: 0 (a ledger, or new), DAMAGED, FOREIGN (err: why). */
static int look_into(struct ledger *l, uw_error *err)
{
    int64_t id = 0, version = 0, tables = 0;

    int r = db_number(l, "PRAGMA application_id", 0, &id, err);
    if (r >= 0)
        r = db_number(l, "PRAGMA user_version", 0, &version, err);
    if (r >= 0)
        r = db_number(l, "SELECT count(*) FROM sqlite_master", 0, &tables, err);
    if (r == -EBADMSG)
        return DAMAGED;
    if (r < 0)
        return r;
    if (id == APPLICATION_ID || (id == 0 && version == 0 && tables == 0))
        return 0;
    return fail(err, FOREIGN, "%s: is another program's database", l->path);
}

/* Checks the pages after a run that did not end in order. */
static int check_pages(struct ledger *l, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    int64_t unclean = 0;
    int version = 0;

    int r = schema_version(l, &version, err);
    if (r < 0 || version == 0)
        return r;
    r = db_number(l, "SELECT count(*) FROM run WHERE ended_ms IS NULL", 0, &unclean, err);
    if (r < 0)
        return r == -EBADMSG ? DAMAGED : r;
    if (!unclean)
        return 0;
    r = db_prepare(l, "PRAGMA quick_check(1)", &stmt, err);
    if (r >= 0)
        r = db_step(l, stmt, err);
    if (r == -EBADMSG)
        return DAMAGED;
    if (r < 0)
        return r;
    if (r > 0 && strcmp(db_text(stmt, 0), "ok") != 0) {
        const char *text = db_text(stmt, 0);
        if (*text == '*') /* "*** in database main ***", then the error */
            text += strcspn(text, "\n");
        text += *text == '\n';
        return fail(err, DAMAGED, "%s: %.*s", l->path, (int)strcspn(text, "\n"), text);
    }
    return 0;
}

static int settings(struct ledger *l, uint64_t disk_max, uw_error *err)
{
    char sql[400];

    (void)snprintf(sql, sizeof sql,
                   "PRAGMA page_size = %d; PRAGMA journal_mode = WAL;"
                   "PRAGMA synchronous = FULL; PRAGMA cache_size = -512;"
                   "PRAGMA wal_autocheckpoint = 256; PRAGMA journal_size_limit = 1048576;"
                   "PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;",
                   PAGE_BYTES);
    int r = db_exec(l, sql, err);
    if (r < 0 || !disk_max)
        return r;
    (void)snprintf(sql, sizeof sql, "PRAGMA max_page_count = %llu",
                   (unsigned long long)(disk_max / PAGE_BYTES));
    return db_exec(l, sql, err);
}

static int check_kind(struct ledger *l, uw_error *err)
{
    int64_t simulated = 0;

    int r = meta_get(l, "simulated", l->simulated, &simulated, err);
    if (r < 0)
        return r;
    if (l->read_only)
        l->simulated = simulated;
    else if ((simulated != 0) != l->simulated)
        return fail(err, -ENOTSUP,
                    "%s: holds figures of %s boards, ours are %s: they do not mix",
                    l->path, simulated ? "simulated" : "real",
                    l->simulated ? "simulated" : "real");
    return 0;
}

/* The id of this boot, added if necessary. */
static int note_boot(struct ledger *l, const char *boot_id, int64_t now_ms, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *get = NULL;

    int r = db_do(l, "INSERT OR IGNORE INTO boot(boot_id, first_ms) VALUES(?, ?)", err,
                  "ti", boot_id, now_ms);
    if (r >= 0)
        r = db_ask(l, "SELECT id FROM boot WHERE boot_id = ?", &get, err, "t", boot_id);
    if (r >= 0)
        r = db_step(l, get, err);
    if (r > 0)
        l->boot = sqlite3_column_int64(get, 0);
    return r < 0 ? r : 0;
}

/* Continues this run in another file.  It keeps its ids, provided that no other run can
 * have used them in that file.
 */
static int keep_ids(struct ledger *l, const struct ledger *before, int64_t *job,
                    int64_t *claim, uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *own = NULL;

    int r = db_ask(l,
                   "SELECT 1 FROM run r JOIN boot b ON b.id = r.boot"
                   " WHERE r.began_ms = ? AND b.boot_id = ?",
                   &own, err, "it", before->began_ms, before->boot_id);
    if (r >= 0)
        r = db_step(l, own, err);
    if (r == 0 &&
        ((uint64_t)*job > before->first_job || (uint64_t)*claim > before->first_claim))
        return fail(err, -EEXIST,
                    "%s: holds ids that this run has given, too: restart underwattd to "
                    "go on in it",
                    l->path);
    if (r < 0)
        return r;
    *job = (int64_t)before->first_job;
    *claim = (int64_t)before->first_claim;
    l->next_job = before->next_job;
    l->next_claim = before->next_claim;
    return 0;
}

/* Records this run, with ids that no earlier run can have used. */
static int begin_run(struct ledger *l, const struct ledger_opts *o,
                     const struct ledger *before, uw_error *err)
{
    int64_t job = 1, claim = 1, now_ms = ms_of_ns(o->utc_ns);

    int r = meta_get(l, "next_job", 1, &job, err);
    if (r >= 0)
        r = meta_get(l, "next_claim", 1, &claim, err);
    l->next_job = (uint64_t)job;
    l->next_claim = (uint64_t)claim;
    if (r >= 0 && before)
        r = keep_ids(l, before, &job, &claim, err);
    l->reserved_job = l->next_job + LEDGER_RESERVE;
    l->reserved_claim = l->next_claim + LEDGER_RESERVE;
    if (before && before->reserved_job > l->reserved_job)
        l->reserved_job = before->reserved_job;
    if (before && before->reserved_claim > l->reserved_claim)
        l->reserved_claim = before->reserved_claim;
    if (r >= 0)
        r = meta_set(l, "next_job", (int64_t)l->reserved_job, err);
    if (r >= 0)
        r = meta_set(l, "next_claim", (int64_t)l->reserved_claim, err);
    if (r >= 0)
        r = meta_set(l, "simulated", l->simulated, err);
    if (r >= 0)
        r = note_boot(l, o->boot_id, now_ms, err);
    l->began_ms = before ? before->began_ms : now_ms;
    if (r >= 0)
        r = db_do(l, "INSERT INTO run(boot, program, began_ms) VALUES(?, ?, ?)", err,
                  "iti", l->boot, o->version, l->began_ms);
    if (r < 0)
        return r;
    l->run = sqlite3_last_insert_rowid(l->db);
    l->first_job = (uint64_t)job;
    l->first_claim = (uint64_t)claim;
    l->last_ms = now_ms;
    return 0;
}

static int begin(struct ledger *l, const struct ledger_opts *o,
                 const struct ledger *before, uw_error *err)
{
    int r = settings(l, o->disk_max, err);
    if (r >= 0)
        r = schema_migrate(l, o->version, ms_of_ns(o->utc_ns), err);
    if (r >= 0)
        r = check_kind(l, err);
    if (r >= 0)
        r = db_begin(l, err);
    if (r < 0)
        return r;
    r = db_end(l, begin_run(l, o, before, err), err);
    if (r >= 0)
        guard_beside(l->path, l->beside);
    return r;
}

int store_new(const struct ledger_opts *o, const char *path, struct ledger **ret,
              uw_error *err)
{
    auto_(ledger_abandon) struct ledger *l = calloc(1, sizeof *l);

    if (!l)
        return fail(err, -ENOMEM, "out of memory");
    l->fd = -1;
    l->simulated = o->simulated;
    (void)snprintf(l->boot_id, sizeof l->boot_id, "%s", o->boot_id);
    (void)snprintf(l->program, sizeof l->program, "%s", o->version ? o->version : "");
    l->disk_max = o->disk_max;
    l->keep = o->keep;
    keep_defaults(&l->keep);
    l->path = strdup(path);
    if (!l->path)
        return fail(err, -ENOMEM, "out of memory");
    *ret = take(l);
    return 0;
}

/* One attempt: 0, DAMAGED or FOREIGN. */
static int try_open(const struct ledger_opts *o, const char *path,
                    const struct ledger *before, struct ledger **ret, uw_error *err)
{
    auto_(ledger_abandon) struct ledger *l = NULL;
    bool alien = false;

    int r = store_new(o, path, &l, err);
    if (r < 0 || !l)
        return r;
    r = guard_open(path, &l->fd, &alien, err);
    if (r < 0)
        return r;
    if (alien)
        return fail(err, DAMAGED, "%s: is not a database", path);
    r = connect_db(l, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW, err);
    if (r < 0)
        return r;
    if (!guard_same(path, l->fd))
        return fail(err, -EPERM, "%s: was exchanged while it was opened", path);
    r = look_into(l, err);
    if (r == 0)
        r = check_pages(l, err);
    if (r != 0)
        return r;
    r = begin(l, o, before, err);
    if (r == -EBADMSG)
        return DAMAGED;
    if (r < 0)
        return r;
    *ret = take(l);
    return 0;
}

int store_open(const struct ledger_opts *o, const struct ledger *before,
               struct ledger **ret, uw_error *err)
{
    auto_(mem_free) char *path = NULL;
    uw_error why = {{0}}, name = {{0}};

    if (!o->boot_id || !o->boot_id[0] || o->utc_ns < 0)
        return fail(err, -EINVAL, "%s: no boot id or no time", o->path);
    int r = guard_path(o->path, &path, err);
    if (r < 0)
        return r;
    r = try_open(o, path, before, ret, &why);
    if (r <= 0)
        return fail(err, r, "%s", why.text);
    r = guard_aside(path, r == FOREIGN ? "foreign" : "damaged", ms_of_ns(o->utc_ns),
                    &name);
    if (r < 0)
        return fail(err, r, "%.90s; and %.90s", why.text, name.text);
    r = try_open(o, path, before, ret, err);
    if (r < 0)
        return r;
    if (r > 0)
        return fail(err, -EBADMSG, "%s: a new file is damaged at once", path);
    return fail(err, LEDGER_ASIDE, "%.80s; it is kept as %.90s", why.text, name.text);
}

/* ---- for reports ---- */

/* Copies a file of an older version into memory and migrates it there. */
static int older(struct ledger *l, uw_error *err)
{
    sqlite3 *file = l->db, *copy = NULL;

    if (sqlite3_open(":memory:", &copy) != SQLITE_OK) {
        (void)sqlite3_close_v2(copy);
        return fail(err, -ENOMEM, "out of memory");
    }
    if (store_half_register(copy) != SQLITE_OK) {
        (void)sqlite3_close_v2(copy);
        return fail(err, -ENOMEM, "out of memory");
    }
    sqlite3_backup *b = sqlite3_backup_init(copy, "main", file, "main");
    int code = b ? sqlite3_backup_step(b, -1) : SQLITE_NOMEM;
    (void)sqlite3_backup_finish(b);
    l->db = copy;
    (void)sqlite3_close_v2(file);
    if (code != SQLITE_DONE)
        return fail(err, -EIO, "%s: cannot be copied (SQLite %d)", l->path, code);
    return schema_migrate(l, "report", 0, err);
}

/* file:PATH?immutable=1, with the path's odd characters escaped. */
static char *constant_uri(const char *path)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t len = strlen(path), n = 5;
    char *uri = malloc(3 * len + 32);

    if (!uri)
        return NULL;
    (void)snprintf(uri, 6, "file:");
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)path[i];
        if (isalnum(c) || strchr("/._-", c)) {
            uri[n++] = path[i];
            continue;
        }
        uri[n++] = '%';
        uri[n++] = hex[c >> 4];
        uri[n++] = hex[c & 15];
    }
    (void)snprintf(uri + n, 3 * len + 32 - n, "?immutable=1");
    return uri;
}

/* If no process writes the file and this one may not create its -shm, reads it as
 * immutable.
 */
static int connect_reading(struct ledger *l, uw_error *err)
{
    char wal[PATH_MAX];
    auto_(mem_free) char *uri = NULL;
    int64_t n = 0;

    (void)snprintf(wal, sizeof wal, "%s-wal", l->path);
    int r = connect_db(l, l->path, SQLITE_OPEN_READONLY, err);
    if (r >= 0)
        r = db_number(l, "SELECT count(*) FROM sqlite_master", 0, &n, err);
    if (r != -EIO && r != -EACCES)
        return r;
    if (access(wal, F_OK) == 0 || access(l->path, R_OK) < 0)
        return r;
    store_close_db(l);
    uri = constant_uri(l->path);
    if (!uri)
        return fail(err, -ENOMEM, "out of memory");
    return connect_db(l, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, err);
}

static int open_reading(const struct ledger_opts *o, struct ledger **ret, uw_error *err)
{
    auto_(ledger_abandon) struct ledger *l = calloc(1, sizeof *l);
    int version = 0;

    if (!l)
        return fail(err, -ENOMEM, "out of memory");
    l->fd = -1;
    l->read_only = true;
    l->path = strdup(o->path);
    if (!l->path)
        return fail(err, -ENOMEM, "out of memory");
    if (access(o->path, R_OK) < 0)
        return fail(err, -errno, "%s: %s", o->path, strerror(errno));
    int r = connect_reading(l, err);
    if (r >= 0)
        r = look_into(l, err);
    if (r > 0)
        return r == FOREIGN ? -EBADMSG : fail_in(err, -EBADMSG, "is not a ledger");
    if (r >= 0)
        r = schema_version(l, &version, err);
    if (r < 0)
        return r;
    if (version == 0)
        return fail(err, -EBADMSG, "%s: is not a ledger: it is empty", o->path);
    if (version < LEDGER_VERSION)
        r = older(l, err);
    if (r >= 0)
        r = db_exec(l, "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -512", err);
    if (r >= 0)
        r = check_kind(l, err);
    if (r < 0)
        return r;
    *ret = take(l);
    return 0;
}

int ledger_open(const struct ledger_opts *opts, struct ledger **ret, uw_error *err)
{
    if (!opts->path || !opts->path[0])
        return fail(err, -EINVAL, "the ledger's path is empty");
    return opts->read_only ? open_reading(opts, ret, err)
                           : store_open(opts, NULL, ret, err);
}

void ledger_close(struct ledger *l)
{
    if (l && ledger_is_open(l) && !l->damaged && db_begin(l, NULL) >= 0) {
        int r = db_do(l, "UPDATE run SET ended_ms = ? WHERE id = ?", NULL, "ii",
                      l->last_ms, l->run);
        if (r >= 0)
            r = meta_set(l, "next_job", (int64_t)l->next_job, NULL);
        if (r >= 0)
            r = meta_set(l, "next_claim", (int64_t)l->next_claim, NULL);
        (void)db_end(l, r, NULL);
    }
    ledger_abandon(l);
}

void ledger_keep(struct ledger *l, const struct ledger_keep *keep)
{
    l->keep = *keep;
    keep_defaults(&l->keep);
}

const char *ledger_path(const struct ledger *l)
{
    return l->path;
}

uint64_t ledger_first_job(const struct ledger *l)
{
    return l->first_job;
}

uint64_t ledger_first_claim(const struct ledger *l)
{
    return l->first_claim;
}
