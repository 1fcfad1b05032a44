/* The disk is full, or fails, at each statement in turn: nothing crashes, the file is
 * whole, what was written stays, and what waited in memory is written once there is room;
 * so at the making of a file and at each step of its schema, too.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/units.h"
#include "core/carbon/accounting.h"
#include "fault.h"
#include "help.h"
#include "io/file.h"
#include "io/ledger-queue.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

enum { INTERVALS = 12, PART_J = 100 };

/* Operations from one fault to the next: more under a sanitizer, which judges memory. */
static long stride = 1;

struct world {
    struct loop *loop;
    struct ledger_queue *q;
    int returned, asides;
};

static void on_state(int r, const char *text, void *user)
{
    struct world *w = user;

    (void)text;
    w->returned += r == 0;
    w->asides += r == LEDGER_ASIDE;
    if (r > 0) { /* what the node tells a file that does not know it */
        struct ledger_job job = help_job(1, 1000, "anna");
        (void)ledger_add_job(ledger_queue_rows(w->q), &job);
    }
}

static int stop(struct loop_timer *timer, uint64_t now, void *user)
{
    (void)timer;
    (void)now;
    loop_stop(user, 0);
    return 0;
}

static void pass(struct world *w, uint64_t s)
{
    struct loop_timer *t = NULL;

    (void)loop_timer_new(w->loop, loop_now_ns(w->loop) + s * NS_PER_S, 0, stop, w->loop,
                         &t, NULL);
    (void)loop_run(w->loop, NULL);
    loop_timer_free(t);
}

static bool begin(struct world *w, const char *name)
{
    struct ledger *l = NULL;
    uw_error why = {{0}};
    struct ledger_opts opts = {
        .path = help_path(name),
        .boot_id = BOOT,
        .version = "test",
        .simulated = true,
        .keep = {.booked_ns = 60 * NS_PER_S, .minute_ns = 3600 * NS_PER_S},
        .utc_ns = T0};

    *w = (struct world){0};
    if (loop_new_virtual(NS_PER_S, T0 / S, &w->loop, NULL) < 0)
        return false;
    int r = ledger_open(&opts, &l, &why);
    w->asides += r == LEDGER_ASIDE;
    if (r < 0)
        r = ledger_open_later(&opts, r, &l, &why);
    if (r >= 0 && help_boards(l, 1) < 0) {
        ledger_leave(l);
        r = help_boards(l, 1);
    }
    if (r >= 0)
        r = ledger_queue_new(&(struct ledger_queue_opts){.loop = w->loop,
                                                         .ledger = l,
                                                         .why = why.text,
                                                         .on_state = on_state,
                                                         .user = w,
                                                         .tidy_ns = 15 * NS_PER_S},
                             &w->q, &why);
    return r >= 0;
}

static void put_others(struct ledger_batch *b, int64_t i)
{
    struct ledger_job job = help_job(1, 1000, "anna");
    int64_t at = T0 + i * 10 * S;

    (void)ledger_add_job(b, &job);
    (void)ledger_add_claim(b, &(struct ledger_claim){.id = (uint64_t)i + 1,
                                                     .made_utc_ns = at,
                                                     .until_utc_ns = LEDGER_FOREVER,
                                                     .kind = "soft",
                                                     .mw = 200000,
                                                     .who = "x",
                                                     .why = "y"});
    (void)ledger_add_claim_end(
        b, &(struct ledger_claim_end){.id = (uint64_t)i + 1, .utc_ns = at, .how = "z"});
    (void)ledger_add_cap(b, &(struct ledger_cap){at, 0, 200000, 200000, "claim", 1});
    (void)ledger_add_event(b, &(struct ledger_event){.utc_ns = at, .kind = "x"});
    (void)ledger_add_search(b, &(struct ledger_search){.same = "a",
                                                       .model = "m",
                                                       .boards = 1,
                                                       .utc_ns = at,
                                                       .reference_mw = 1,
                                                       .demand_w = 1,
                                                       .n = 1,
                                                       .cap = {{1, 1, 1, 1, 0, 0}}});
}

static void work(struct world *w, const char *name)
{
    for (int64_t i = 0; i < INTERVALS; i++) {
        (void)help_interval(ledger_queue_rows(w->q), i, 0, i % 2 ? 1 : 0, 200000, PART_J,
                            1);
        if (i % 6 == 0)
            put_others(ledger_queue_rows(w->q), i);
        ledger_queue_flush(w->q);
        pass(w, 10);
    }
    (void)name;
}

static bool sum_is(const char *path, const char *sql, int64_t want)
{
    int64_t got = help_number(path, sql);

    if (got != want)
        printf("# %s: %lld, not %lld\n", sql, (long long)got, (long long)want);
    return got == want;
}

/* Faults from operation k on, and room again after all of it; false: k is never
 * reached, or something is wrong.
 */
static bool one(long k, const char *name, int *bad)
{
    struct world w;
    struct ledger_queue_stats stats;
    const char *path = help_path(name);

    fault.n = 0;
    fault.at = k;
    if (!begin(&w, name)) {
        (*bad)++;
        return false;
    }
    work(&w, name);
    bool reached = fault.n >= k;
    fault.at = 0;
    pass(&w, 40);
    ledger_queue_look(w.q, &stats);
    bool good = !stats.failing && stats.waiting == 0 && stats.lost == 0 && w.asides == 0;
    if (!good)
        printf("# %zu wait, %llu lost, %d aside: %s\n", stats.waiting,
               (unsigned long long)stats.lost, w.asides, stats.text);
    ledger_queue_free(w.q);
    loop_free(w.loop);
    good = good && help_text_is(path, "PRAGMA integrity_check", "ok") &&
           sum_is(path, "SELECT sum(energy_uj) FROM energy",
                  INTERVALS * PART_J * INT64_C(1000000)) &&
           sum_is(path, "SELECT sum(energy_uj) FROM meter",
                  INTERVALS * PART_J * INT64_C(1000000)) &&
           sum_is(path, "SELECT count(*) FROM cap", INTERVALS / 6) &&
           sum_is(path, "SELECT count(*) FROM claim", INTERVALS / 6) &&
           sum_is(path, "SELECT count(*) FROM claim WHERE ended_ms IS NULL", 0) &&
           sum_is(path, "SELECT count(*) FROM job", 1) &&
           sum_is(path,
                  "SELECT count(*) FROM energy WHERE res > 0 AND energy_uj > 0 "
                  "AND begin_ms < 1767225600000",
                  0);
    if (!good)
        printf("# … with the fault at %ld\n", k);
    *bad += !good;
    return reached;
}

static void test_work(const char *what, bool full, bool once)
{
    int bad = 0;
    long k = 1;
    char name[40];

    fault.full = full;
    fault.once = once;
    for (;; k += once ? 3 * stride : stride) { /* takes its time */
        (void)snprintf(name, sizeof name, "w%d%d-%ld.sqlite", full, once, k);
        if (!one(k, name, &bad) || bad > 3)
            break;
        (void)unlink(help_path(name));
    }
    ok(bad == 0 && k > 100, "%s at operations up to %ld: all is written after", what,
       k - 1);
}

/* ---- steps of the schema ---- */

static bool lay_out(const char *sql_file, const char *name)
{
    auto_(mem_free) char *sql = NULL;
    sqlite3 *db = NULL;

    fault.at = 0;
    if (file_read(sql_file, 1 << 20, &sql, NULL, NULL) < 0)
        return false;
    bool good = sqlite3_open(help_path(name), &db) == SQLITE_OK &&
                sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
    (void)sqlite3_close(db);
    (void)chmod(help_path(name), 0640);
    return good;
}

static int open_at(const char *name, bool simulated, struct ledger **ret, uw_error *err)
{
    return ledger_open(&(struct ledger_opts){.path = help_path(name),
                                             .boot_id = BOOT,
                                             .version = "test",
                                             .simulated = simulated,
                                             .utc_ns = T0 + 500 * DAY},
                       ret, err);
}

static bool migrates(const char *name, bool simulated, long k, int64_t want, int *bad)
{
    struct ledger *l = NULL;
    uw_error err = {{0}};

    fault.n = 0;
    fault.at = k;
    int r = open_at(name, simulated, &l, &err);
    bool reached = fault.n >= k;
    bool good = r != LEDGER_ASIDE;
    ledger_close(l);
    fault.at = 0;
    l = NULL;
    r = open_at(name, simulated, &l, &err);
    good = good && r == 0;
    ledger_close(l);
    good =
        good && help_text_is(help_path(name), "PRAGMA integrity_check", "ok") &&
        sum_is(help_path(name), "PRAGMA user_version", LEDGER_VERSION) &&
        sum_is(help_path(name), "SELECT count(*) FROM schema_version", LEDGER_VERSION) &&
        sum_is(help_path(name), "SELECT sum(energy_uj) FROM energy", want);
    if (!good)
        printf("# fault at %ld: %d %s\n", k, r, err.text);
    *bad += !good;
    return reached;
}

static void test_schema(const char *dir, int version, bool full)
{
    char file[300], name[40];
    long k = 1;
    int bad = 0;
    int64_t want = 0;
    bool simulated = false, good = true;

    fault.full = full;
    fault.once = false;
    (void)snprintf(file, sizeof file, "%s/ledger-v%d.sql", dir, version);
    for (; good; k += stride) {
        (void)snprintf(name, sizeof name, "v%d-%d-%ld.sqlite", version, full, k);
        good = lay_out(file, name);
        if (k == 1) {
            want = help_number(help_path(name), "SELECT sum(energy_uj) FROM energy");
            simulated = help_number(help_path(name), "SELECT value FROM meta WHERE key ="
                                                     " 'simulated'") == 1;
        }
        good = good && migrates(name, simulated, k, want, &bad) && bad <= 3;
        (void)unlink(help_path(name));
    }
    ok(bad == 0 && k > 10,
       "version %d, %s at each of %ld operations: brought forward after", version,
       full ? "a full disk" : "a disk that fails", k - 1 - stride);
}

/* ---- reports ---- */

static const struct market_contract contract = {.from_ms = T0 / 1000000,
                                                .to_ms = (T0 + DAY) / 1000000,
                                                .kind = MARKET_SHARE,
                                                .amount = 0.5,
                                                .g_kwh = 20,
                                                .origin = "GO"};

/* The report's text, to free(); NULL: it failed with an error.  All with a PUE, a
 * contract and grams of the boards.
 */
static char *read_report(const char *name, uw_error *err)
{
    auto_(accounting_free) struct accounting *figures =
        accounting_copy(&(struct accounting){
            .pue = 1.2,
            .embodied = {{.model = "Board A", .g_hour = 3.4, .origin = "x"}},
            .n_embodied = 1,
            .contract = (struct market_contract *)(uintptr_t)&contract,
            .n_contracts = 1});
    auto_(ledger_close) struct ledger *l = NULL;
    auto_(json_out_free) struct json_out *o = json_out_new();
    struct ledger_query q;
    char *text = NULL;

    ledger_query_init(&q, T0 + DAY);
    q.accounting = figures;
    int r = ledger_open(&(struct ledger_opts){.path = help_path(name), .read_only = true},
                        &l, err);
    if (r >= 0)
        r = ledger_report(l, &q, o, err);
    if (r >= 0)
        r = json_out_string(o, &text, err);
    return text;
}

static bool write_rows(const char *name)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    auto_(ledger_close) struct ledger *l = NULL;
    int r = help_open(name, T0, &l, NULL);

    if (r >= 0)
        r = help_boards(l, 1);
    for (int64_t i = 0; r >= 0 && i < 1000; i++)
        r = help_interval(b, i, 0, 0, 200000, PART_J, 1);
    return r >= 0 && ledger_write(l, b, NULL) >= 0;
}

/* Each read of a report with figures fails once: it fails with an error, or is whole. */
static void test_report(void)
{
    static const char name[] = "r.sqlite";
    uw_error err = {""};
    int bad = 0, failed = 0;
    long k = 1;
    bool reached = true;

    fault.at = 0;
    fault.once = true;
    fault.full = false;
    if (!ok(write_rows(name), "rows"))
        return;
    fault.reads = true;
    auto_(mem_free) char *whole = read_report(name, &err);
    ok(whole && strstr(whole, "market_g") && strstr(whole, "embodied_g"),
       "a report with figures %s", err.text);
    for (; whole && reached && bad == 0; k += stride) {
        fault.n = 0;
        fault.at = k;
        err.text[0] = '\0';
        auto_(mem_free) char *text = read_report(name, &err);
        reached = fault.n >= k;
        failed += !text;
        if (text ? strcmp(text, whole) != 0 : !err.text[0])
            printf("# fault at %ld: %s\n", k, ++bad && text ? text : "no error");
    }
    ok(bad == 0 && failed * stride > 20,
       "%d reports failed at %ld reads, the others are whole", failed, k - stride);
    fault.reads = false;
}

int main(int argc, char **argv)
{
    if (!help_begin())
        return skip_all("no folder in /tmp");
    if (getenv("UNDERWATT_SANITIZED") && !getenv("UNDERWATT_SOAK"))
        stride = 4;
    fault_begin();
    test_work("a full disk", true, false);
    test_work("a disk that fails", false, false);
    test_work("one write on a full disk", true, true);
    test_work("one fault of the disk", false, true);
    test_report();
    for (int v = 1; argc > 1 && v < LEDGER_VERSION; v++) {
        test_schema(argv[1], v, true);
        test_schema(argv[1], v, false);
    }
    fault.at = 0;
    help_end();
    return done();
}
