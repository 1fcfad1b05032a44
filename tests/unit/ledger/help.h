/* What the tests of the ledger share: a folder of their own, boards, rows, SQL. */
#ifndef TESTS_LEDGER_HELP_H
#define TESTS_LEDGER_HELP_H

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/ledger.h"

#define S INT64_C(1000000000)
#define DAY (86400 * S)
#define T0 (INT64_C(1767225600) * S) /* 2026-01-01T00:00:00Z */
#define BOOT "b0000000-0000-4000-8000-000000000000"

static char help_dir[128];

__attribute__((unused)) static const char *help_path(const char *name)
{
    static char path[4][256];
    static unsigned at;
    char *ret = path[at++ % 4];

    (void)snprintf(ret, sizeof path[0], "%s/%s", help_dir, name);
    return ret;
}

__attribute__((unused)) static bool help_begin(void)
{
    (void)snprintf(help_dir, sizeof help_dir, "/tmp/uw-ledger-XXXXXX");
    return mkdtemp(help_dir) != NULL;
}

__attribute__((unused)) static void help_end(void)
{
    char command[160];

    (void)snprintf(command, sizeof command, "rm -rf '%s'", help_dir);
    if (system(command) != 0)
        printf("# %s is left\n", help_dir);
}

__attribute__((unused)) static int help_open(const char *name, int64_t now,
                                             struct ledger **ret, uw_error *err)
{
    return ledger_open(&(struct ledger_opts){.path = help_path(name),
                                             .boot_id = BOOT,
                                             .version = "test",
                                             .simulated = true,
                                             .utc_ns = now},
                       ret, err);
}

__attribute__((unused)) static int help_boards(struct ledger *l, size_t n)
{
    static const struct ledger_board boards[] = {
        {"GPU-0", "Board A", "00000000:01:00.0"},
        {"GPU-1", "Board A", "00000000:02:00.0"},
        {"GPU-2", "Board A", NULL},
        {"GPU-3", "Board A", NULL},
        {"GPU-4", "Board A", NULL},
        {"GPU-5", "Board A", NULL},
        {"GPU-6", "Board A", NULL},
        {"GPU-7", "Board A", NULL},
    };
    return ledger_boards(l, boards, n, NULL);
}

/* One number out of the file, by a connection of its own. */
__attribute__((unused)) static int64_t help_number(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    int64_t v = INT64_MIN;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        v = sqlite3_column_int64(stmt, 0);
    else
        printf("# %s: %s\n", sql, sqlite3_errmsg(db));
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    return v;
}

__attribute__((unused)) static bool help_text_is(const char *path, const char *sql,
                                                 const char *want)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    bool same = false;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(stmt, 0);
        same = strcmp(text ? text : "(NULL)", want) == 0;
        if (!same)
            printf("#      got: %s\n", text ? text : "(NULL)");
    } else {
        printf("# %s: %s\n", sql, sqlite3_errmsg(db));
    }
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    return same;
}

/* Interval i of 10 s of one board: job (0: idle) took `part` of j, the rest is
 * unattributed; the meter saw all of it.
 */
__attribute__((unused)) static int help_interval(struct ledger_batch *b, int64_t i,
                                                 size_t board, uint64_t job,
                                                 uint32_t cap_mw, double j, double part)
{
    int64_t begin = T0 + i * 10 * S;
    struct ledger_energy e = {.begin_utc_ns = begin,
                              .end_utc_ns = begin + 10 * S,
                              .board = board,
                              .kind = job ? LEDGER_JOB : LEDGER_IDLE,
                              .job = job,
                              .cap_mw = cap_mw,
                              .energy_j = j * part,
                              .half_j = j * part * 0.01,
                              .method = LEDGER_COUNTED,
                              .simulated = true};
    struct ledger_meter m = {begin, begin + 10 * S, board, 5000, 5000 + j};

    int r = ledger_add_energy(b, &e);
    if (r >= 0 && part < 1) {
        e.kind = LEDGER_UNATTRIBUTED;
        e.job = 0;
        e.energy_j = j - e.energy_j;
        e.half_j = 0;
        r = ledger_add_energy(b, &e);
    }
    return r < 0 ? r : ledger_add_meter(b, &m);
}

__attribute__((unused)) static struct ledger_job help_job(uint64_t id, uid_t uid,
                                                          const char *user)
{
    static const struct ledger_label labels[] = {{"project", "llm"}, {"team", "vision"}};

    return (struct ledger_job){.id = id,
                               .source = "run",
                               .name = "python train.py",
                               .user = user,
                               .uid = uid,
                               .label = labels,
                               .n_labels = 2,
                               .began_utc_ns = T0,
                               .boards = 1,
                               .pid = 4711,
                               .pid_start = 123456,
                               .goal = "edp",
                               .cls = "batch",
                               .cap_mw = 210000,
                               .steps = 900,
                               .saved_known = true,
                               .saved = 0.2,
                               .saved_half = 0.01,
                               .slowdown = 1.05,
                               .slowdown_half = 0.004,
                               .saved_j = 5000,
                               .saved_half_j = 250,
                               .looks = 12,
                               .model_known = true,
                               .model_saved = 0.21,
                               .model_slowdown = 1.06,
                               .command = "0123456789abcdef"};
}

#endif
