/* The queue in virtual time: intervals, full disks, reports, the end. */
#include <errno.h>
#include <fcntl.h>

#include "base/units.h"
#include "core/carbon/accounting.h"
#include "help.h"
#include "io/ledger-queue.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

struct world {
    struct loop *loop;
    struct ledger_queue *q;
    int64_t i;
    int states[8], n_states;
    int asked, reports, report_r;
    bool has_pue;
};

static void on_state(int r, const char *text, void *user)
{
    struct world *w = user;

    printf("# state %d %s\n", r, text);
    w->states[w->n_states++ % 8] = r;
}

static void begin(struct world *w, const char *name, uint64_t disk_max)
{
    struct ledger *l = NULL;
    uw_error err = {{0}};
    int64_t utc_s = T0 / S;

    *w = (struct world){.i = 0};
    if (loop_new_virtual(NS_PER_S, utc_s, &w->loop, &err) < 0 ||
        ledger_open(&(struct ledger_opts){.path = help_path(name),
                                          .boot_id = BOOT,
                                          .version = "test",
                                          .simulated = true,
                                          .utc_ns = T0,
                                          .disk_max = disk_max},
                    &l, &err) < 0 ||
        help_boards(l, 1) < 0 ||
        ledger_queue_new(
            &(struct ledger_queue_opts){
                .loop = w->loop, .ledger = l, .on_state = on_state, .user = w},
            &w->q, &err) < 0)
        ok(false, "a world: %s", err.text);
}

static void end(struct world *w)
{
    ledger_queue_free(w->q);
    loop_free(w->loop);
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

static void put(struct world *w, int n)
{
    for (int k = 0; k < n; k++)
        if (help_interval(ledger_queue_rows(w->q), w->i++, 0, 0, 0, 100, 1) < 0)
            ledger_queue_lost(w->q);
}

static void test_intervals(void)
{
    struct world w;
    struct ledger_queue_stats stats;

    begin(&w, "q.sqlite", 0);
    put(&w, 1);
    ledger_queue_flush(w.q);
    ledger_queue_look(w.q, &stats);
    is_int(stats.waiting, 2, "a flush does not block: rows are on their way");
    pass(&w, 1);
    ledger_queue_look(w.q, &stats);
    is_int(stats.rows, 2, "then they are written");
    is_int(stats.waiting, 0, "and nothing waits");
    put(&w, 2);
    pass(&w, 11);
    ledger_queue_look(w.q, &stats);
    is_int(stats.rows, 6, "without a flush after 10 s at most");
    for (int i = 0; i < 5; i++) {
        put(&w, 1);
        ledger_queue_flush(w.q);
    }
    pass(&w, 1);
    ledger_queue_look(w.q, &stats);
    is_int(stats.rows, 16, "flushes in a row lose nothing");
    put(&w, 3);
    end(&w);
    is_int(help_number(help_path("q.sqlite"), "SELECT sum(energy_uj) FROM energy"),
           11 * 100000000LL, "the end writes what waits");
    is_int(help_number(help_path("q.sqlite"),
                       "SELECT count(*) FROM run WHERE ended_ms IS NOT NULL"),
           1, "and says that it ended in order");
}

static void test_tidies(void)
{
    struct world w;
    struct ledger_queue_stats stats;

    begin(&w, "t.sqlite", 0);
    put(&w, 3000);
    ledger_queue_flush(w.q);
    pass(&w, 4 * 86400);
    ledger_queue_look(w.q, &stats);
    is_int(stats.rows, 6000, "rows");
    is_int(
        help_number(help_path("t.sqlite"), "SELECT count(*) FROM energy WHERE res = 0"),
        0, "are rolled up in time");
    is_int(help_number(help_path("t.sqlite"), "SELECT count(*) FROM energy"), 500,
           "to minutes");
    ledger_queue_keep(w.q, &(struct ledger_keep){.minute_ns = 3600 * NS_PER_S});
    pass(&w, 300);
    is_int(help_number(help_path("t.sqlite"), "SELECT count(*) FROM energy"), 9,
           "kept shorter from now on: to hours");
    end(&w);
}

static void test_full(void)
{
    struct world w;
    struct ledger_queue_stats stats;
    int64_t most = 0;

    begin(&w, "f.sqlite", 220 << 10);
    for (int i = 0; i < 2000; i++) {
        put(&w, 10);
        pass(&w, 10);
        ledger_queue_look(w.q, &stats);
        if ((int64_t)stats.waiting > most)
            most = (int64_t)stats.waiting;
    }
    ok(stats.failing && stats.failures > 100, "the disk is full: %d failures",
       (int)stats.failures);
    ok(strstr(stats.text, "full"), "%s", stats.text);
    is_int(w.n_states, 1, "said once");
    is_int(w.states[0], -ENOSPC, "why");
    is_int(stats.lost, 0, "no row is lost");
    ok(most < 6000, "%d rows waited at most: they are merged", (int)most);
    sqlite3 *db = NULL;
    (void)sqlite3_open(help_path("f.sqlite"), &db);
    int64_t gone =
        help_number(help_path("f.sqlite"), "SELECT sum(energy_uj) FROM energy");
    (void)sqlite3_exec(db, "DELETE FROM energy; DELETE FROM meter", NULL, NULL, NULL);
    (void)sqlite3_close(db);
    pass(&w, 30);
    ledger_queue_look(w.q, &stats);
    ok(!stats.failing && stats.waiting == 0, "with room again all is written: %s",
       stats.text);
    is_int(w.n_states, 2, "said once");
    is_int(w.states[1], 0, "that it works");
    is_int(help_number(help_path("f.sqlite"), "SELECT sum(energy_uj) FROM energy") + gone,
           20000 * 100000000LL, "not one joule is lost");
    is_int(help_number(help_path("f.sqlite"), "SELECT sum(energy_uj) FROM meter"),
           help_number(help_path("f.sqlite"), "SELECT sum(energy_uj) FROM energy"),
           "and the sums agree");
    end(&w);
}

static void add_revision(struct world *w, const char *unit, int64_t factor)
{
    const struct ledger_value value = {T0, T0 + 1800 * S, factor, false};

    is_int(ledger_add_revision(ledger_queue_rows(w->q),
                               &(struct ledger_revision){.charge = LEDGER_COST,
                                                         .signal = "price",
                                                         .source = unit,
                                                         .unit = unit,
                                                         .begin_utc_ns = T0,
                                                         .utc_ns = T0 + 1800 * S,
                                                         .value = &value,
                                                         .n = 1}),
           0, "a price in %s comes late", unit);
}

static void revised_is(const struct world *w, uint64_t rows, int64_t amount,
                       const char *currency, const char *what)
{
    struct ledger_queue_stats stats;

    ledger_queue_look(w->q, &stats);
    ok(stats.revised.rows[LEDGER_COST] == rows &&
           stats.revised.amount[LEDGER_COST] == amount &&
           strcmp(stats.revised.currency, currency) == 0,
       "%s: %d rows, %d %s", what, (int)stats.revised.rows[LEDGER_COST],
       (int)stats.revised.amount[LEDGER_COST], stats.revised.currency);
}

static void test_revised(void)
{
    struct world w;
    struct ledger_queue_stats stats;

    begin(&w, "v.sqlite", 0);
    put(&w, 36); /* 3,600 J: 1 EUR/kWh is 1,000 millionths */
    pass(&w, 20);
    add_revision(&w, "EUR/kWh", 2000000000);
    (void)help_interval(ledger_queue_rows(w.q), 0, 5, 0, 0, 100, 1); /* no such board */
    pass(&w, 20);
    revised_is(&w, 0, 0, "", "taken back with the rest of its transaction");
    add_revision(&w, "EUR/kWh", 2000000000);
    revised_is(&w, 0, 0, "", "waits");
    pass(&w, 20);
    revised_is(&w, 1, 2000, "EUR", "written");
    add_revision(&w, "EUR/kWh", 1500000000);
    pass(&w, 20);
    revised_is(&w, 2, 1500, "EUR", "and once more, by less than 0");
    add_revision(&w, "EUR/kWh", 3000000000);
    ledger_batch_free(ledger_queue_end(take(w.q), &stats));
    ok(stats.revised.rows[LEDGER_COST] == 3 && stats.revised.amount[LEDGER_COST] == 3000,
       "and with the last rows: %d", (int)stats.revised.amount[LEDGER_COST]);
    end(&w);
    struct ledger_revised sum = stats.revised;
    ledger_revised_add(&sum, &(struct ledger_revised){.rows = {1, 0, 1},
                                                      .amount = {5, 0, 7},
                                                      .currency = "CHF"});
    ok(sum.rows[LEDGER_COST] == 4 && sum.amount[LEDGER_COST] == 7 &&
           strcmp(sum.currency, "CHF") == 0 && sum.amount[LEDGER_CO2] == 5,
       "money in another currency begins anew");
}

static void test_never_taken(void)
{
    struct world w;
    struct ledger_queue_stats stats;

    begin(&w, "n.sqlite", 0);
    (void)help_interval(ledger_queue_rows(w.q), 0, 5, 0, 0, 100, 1); /* no such board */
    ledger_queue_flush(w.q);
    pass(&w, 1);
    put(&w, 1);
    pass(&w, 20);
    ledger_queue_look(w.q, &stats);
    is_int(stats.lost, 2, "rows that are never taken are counted");
    is_int(stats.rows, 2, "and block nobody");
    end(&w);
}

static void on_report(int r, const struct json_out *report, const char *text, void *user)
{
    struct world *w = user;
    char *json = NULL;

    w->reports++;
    w->report_r = r;
    if (r == 0 && json_out_string(report, &json, NULL) == 0) {
        ok(strstr(json, "\"meter_j\":500") || strstr(json, "\"meter_j\": 500"),
           "it tells what was written");
        w->has_pue |= strstr(json, "\"pue\":1.5") || strstr(json, "\"pue\": 1.5");
    } else {
        printf("# report: %d %s\n", r, text);
    }
    free(json);
}

static void on_any_report(int r, const struct json_out *report, const char *text,
                          void *user)
{
    struct world *w = user;

    (void)r;
    (void)report;
    (void)text;
    w->reports++;
}

static void test_reports(void)
{
    struct world w;
    struct ledger_query query;
    uw_error err = {{0}};

    begin(&w, "p.sqlite", 0);
    put(&w, 5);
    ledger_queue_flush(w.q);
    pass(&w, 60);
    ledger_query_init(&query, T0 + DAY);
    /* the queue has a copy: a reload may free the node's meanwhile */
    struct accounting *figures = calloc(1, sizeof *figures);
    if (!ok(figures && accounting_pue(figures, "1.5", &err) == 0, "figures beside"))
        return;
    query.accounting = figures;
    is_int(ledger_queue_report(w.q, &query, on_report, &w, &err), 0, "a report is begun");
    accounting_free(figures);
    query.accounting = NULL;
    is_int(w.reports, 0, "and not told from inside");
    pass(&w, 1);
    is_int(w.reports, 1, "but soon");
    is_int(w.report_r, 0, "and well");
    ok(w.has_pue, "with the figures that were given");
    int r = 0, n = 0;
    while ((r = ledger_queue_report(w.q, &query, on_report, &w, &err)) == 0 && n < 100)
        n++;
    is_int(r, -EAGAIN, "%d wait at most: %s", n, err.text);
    query.from_utc_ns = query.to_utc_ns;
    is_int(ledger_queue_report(w.q, &query, on_report, &w, &err), -EINVAL,
           "a bad one: %s", err.text);
    end(&w);
    is_int(w.reports, n + 1, "each is told, at the end too");
}

/* The file's pages are overwritten while it is in use. */
static void test_damaged(void)
{
    struct world w;
    struct ledger_queue_stats stats;
    char junk[4096];

    begin(&w, "dam.sqlite", 0);
    put(&w, 400);
    ledger_queue_flush(w.q);
    pass(&w, 1);
    const char *path = help_path("dam.sqlite");
    sqlite3 *db = NULL;
    (void)sqlite3_open(path, &db); /* what lies in the WAL goes into the file */
    (void)sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    (void)sqlite3_close(db);
    int64_t page = help_number(path, "SELECT rootpage FROM sqlite_master WHERE name ="
                                     " 'energy_by_age'");
    int fd = open(path, O_WRONLY);
    memset(junk, 0x5a, sizeof junk);
    ok(pwrite(fd, junk, sizeof junk, (page - 1) * 4096) == (ssize_t)sizeof junk,
       "a page is hit");
    (void)close(fd);
    db = NULL; /* a write by another makes the writer read its pages anew */
    (void)sqlite3_open(path, &db);
    (void)sqlite3_exec(db, "INSERT INTO event VALUES(1, 1, 'x', NULL, NULL, NULL)", NULL,
                       NULL, NULL);
    (void)sqlite3_close(db);
    put(&w, 7);
    ledger_queue_flush(w.q);
    pass(&w, 30);
    ledger_queue_look(w.q, &stats);
    is_int(w.n_states, 1, "it is told once");
    is_int(w.states[0], LEDGER_ASIDE, "that the file is kept aside");
    ok(!stats.failing && stats.waiting == 0 && stats.lost == 0, "and all goes on: %s",
       stats.text);
    is_int(help_number(path, "SELECT sum(energy_uj) FROM energy"), 7 * 100000000LL,
           "in a new file");
    ok(help_number(path, "SELECT value FROM meta WHERE key = 'next_job'") >= 1000,
       "with ids that go on");
    is_int(help_number(path, "SELECT count(*) FROM board WHERE uuid = 'GPU-0'"), 1,
           "and its boards");
    end(&w);
    begin(&w, "dam.sqlite", 0);
    end(&w);
}

/* ---- threads: the real loop ---- */

static int on_beat(struct loop_timer *timer, uint64_t now, void *user)
{
    struct world *w = user;
    struct ledger_query query;

    (void)timer;
    (void)now;
    put(w, 1);
    if (w->i % 3 == 0)
        ledger_queue_flush(w->q);
    ledger_query_init(&query, T0 + DAY);
    if (w->i % 10 == 0 && ledger_queue_report(w->q, &query, on_any_report, w, NULL) == 0)
        w->asked++;
    if (w->i == 200)
        loop_stop(w->loop, 0);
    return 0;
}

static void test_threads(void)
{
    struct world w = {.i = 0};
    struct ledger *l = NULL;
    struct loop_timer *beat = NULL;
    uw_error err = {{0}};

    int r = loop_new_real((struct loop_clock){0, 1}, &w.loop, &err);
    if (r >= 0)
        r = help_open("real.sqlite", T0, &l, &err);
    (void)help_boards(l, 1);
    const struct ledger_queue_opts opts = {.loop = w.loop,
                                           .ledger = l,
                                           .flush_ns = 5 * NS_PER_MS,
                                           .tidy_ns = 7 * NS_PER_MS,
                                           .on_state = on_state,
                                           .user = &w};
    if (r >= 0)
        r = ledger_queue_new(&opts, &w.q, &err);
    if (r >= 0)
        r = loop_timer_new(w.loop, 0, NS_PER_MS, on_beat, &w, &beat, &err);
    if (r >= 0)
        r = loop_run(w.loop, &err);
    is_int(r, 0, "a real loop with real threads %s", err.text);
    loop_timer_free(beat);
    end(&w);
    is_int(help_number(help_path("real.sqlite"), "SELECT sum(energy_uj) FROM energy"),
           200 * 100000000LL, "all of it is written");
    ok(w.asked >= 16, "%d reports are taken, at least as many as may wait", w.asked);
    is_int(w.reports, w.asked, "each of them is told");
}

int main(void)
{
    if (!help_begin())
        return skip_all("no folder in /tmp");
    test_intervals();
    test_tidies();
    test_full();
    test_revised();
    test_never_taken();
    test_reports();
    test_damaged();
    test_threads();
    help_end();
    return done();
}
