#include <errno.h>
#include <math.h>
#include <stdarg.h>

#include "base/error.h"
#include "io/store/inside.h"

static int errno_of(int code)
{
    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return -EBADMSG;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
        return -EACCES;
    default:
        return -EIO;
    }
}

int db_fail(struct ledger *l, const char *what, uw_error *err)
{
    int code = l->db ? sqlite3_extended_errcode(l->db) : SQLITE_NOMEM;
    const char *text = l->db ? sqlite3_errmsg(l->db) : "out of memory";

    l->damaged |= errno_of(code) == -EBADMSG;
    return fail(err, errno_of(code), "%s: %s%s%s (SQLite %d)", l->path, what,
                what[0] ? ": " : "", text, code);
}

int db_exec(struct ledger *l, const char *sql, uw_error *err)
{
    return sqlite3_exec(l->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0
                                                                   : db_fail(l, "", err);
}

int db_prepare(struct ledger *l, const char *sql, sqlite3_stmt **ret, uw_error *err)
{
    sqlite3_stmt *stmt = NULL;

    if (sqlite3_prepare_v3(l->db, sql, -1, 0, &stmt, NULL) != SQLITE_OK)
        return db_fail(l, "", err);
    *ret = stmt;
    return 0;
}

void db_finalize(sqlite3_stmt *stmt)
{
    (void)sqlite3_finalize(stmt);
}

static void bind_double(sqlite3_stmt *stmt, int at, double v, bool or_null)
{
    if (or_null && !isfinite(v))
        (void)sqlite3_bind_null(stmt, at);
    else
        (void)sqlite3_bind_double(stmt, at, v);
}

static void bind_text(sqlite3_stmt *stmt, int at, const char *text)
{
    if (!text || !text[0])
        (void)sqlite3_bind_null(stmt, at);
    else
        (void)sqlite3_bind_text(stmt, at, text, -1, SQLITE_STATIC);
}

static void bind_int(sqlite3_stmt *stmt, int at, int64_t v, bool or_null)
{
    if (or_null && v == 0)
        (void)sqlite3_bind_null(stmt, at);
    else
        (void)sqlite3_bind_int64(stmt, at, v);
}

static void bind_all(sqlite3_stmt *stmt, const char *letters, va_list args)
{
    for (int at = 1; letters[at - 1]; at++) {
        switch (letters[at - 1]) {
        case 't':
            bind_text(stmt, at, va_arg(args, const char *));
            break;
        case 'd':
        case 'o':
            bind_double(stmt, at, va_arg(args, double), letters[at - 1] == 'o');
            break;
        default:
            bind_int(stmt, at, va_arg(args, int64_t), letters[at - 1] == 'z');
        }
    }
}

void db_bind(sqlite3_stmt *stmt, const char *letters, ...)
{
    va_list args;

    va_start(args, letters);
    bind_all(stmt, letters, args);
    va_end(args);
}

int db_ask(struct ledger *l, const char *sql, sqlite3_stmt **ret, uw_error *err,
           const char *letters, ...)
{
    va_list args;
    int r = db_prepare(l, sql, ret, err);

    if (r < 0)
        return r;
    va_start(args, letters);
    bind_all(*ret, letters, args);
    va_end(args);
    return 0;
}

int db_step(struct ledger *l, sqlite3_stmt *stmt, uw_error *err)
{
    int code = sqlite3_step(stmt);

    if (code == SQLITE_ROW)
        return 1;
    int r = code == SQLITE_DONE ? 0 : db_fail(l, "", err);
    (void)sqlite3_reset(stmt);
    return r;
}

int db_run(struct ledger *l, sqlite3_stmt *stmt, uw_error *err)
{
    int r;

    do
        r = db_step(l, stmt, err);
    while (r > 0);
    return r;
}

int db_do(struct ledger *l, const char *sql, uw_error *err, const char *letters, ...)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    va_list args;
    int r = db_prepare(l, sql, &stmt, err);

    if (r < 0)
        return r;
    va_start(args, letters);
    bind_all(stmt, letters, args);
    va_end(args);
    return db_run(l, stmt, err);
}

int db_number(struct ledger *l, const char *sql, int64_t otherwise, int64_t *ret,
              uw_error *err)
{
    auto_(db_finalize) sqlite3_stmt *stmt = NULL;
    int64_t v = otherwise;

    int r = db_prepare(l, sql, &stmt, err);
    if (r < 0)
        return r;
    r = db_step(l, stmt, err);
    if (r < 0)
        return r;
    if (r > 0 && sqlite3_column_type(stmt, 0) != SQLITE_NULL)
        v = sqlite3_column_int64(stmt, 0);
    *ret = v;
    return 0;
}

const char *db_text(sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);

    return text ? text : "";
}

double db_double(sqlite3_stmt *stmt, int column)
{
    if (sqlite3_column_type(stmt, column) == SQLITE_NULL)
        return (double)NAN;
    return sqlite3_column_double(stmt, column);
}

static int kept(struct ledger *l, enum ledger_stmt which, const char *sql, uw_error *err)
{
    if (!l->stmt[which]) {
        int r = db_prepare(l, sql, &l->stmt[which], err);
        if (r < 0)
            return r;
    }
    return db_run(l, l->stmt[which], err);
}

int db_begin(struct ledger *l, uw_error *err)
{
    return kept(l, STMT_BEGIN, "BEGIN IMMEDIATE", err);
}

int db_end(struct ledger *l, int r, uw_error *err)
{
    if (r >= 0)
        r = kept(l, STMT_COMMIT, "COMMIT", err);
    if (r < 0)
        db_rollback(l);
    return r;
}

void db_rollback(struct ledger *l)
{
    if (!sqlite3_get_autocommit(l->db))
        (void)sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
}
