/* Processors in the whole node: what is booked to whom, that the parts make up the
 * counters, what wraps and what begins anew, and how coarse everybody's view of them is.
 */
#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

#include "node-scene.h"
#include "tap.h"

enum { ANNA = 1000, BEN = 1001 };
#define PACKAGE_W 400.0
#define DRAM_W 5.5
#define RANGE_UJ 20000000000u /* so that the package wraps every 50 s */

static struct {
    struct loop_timer *timer;
    uint64_t began_ns;
    uint64_t add_uj; /* of the package, beside what its power makes */
    bool stand;      /* still */
} cpu;

static void put(const char *zone, const char *file, const char *text)
{
    char path[160];

    (void)snprintf(path, sizeof path, "%s/rapl/%s", w.dir, zone);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof path, "%s/rapl/%s/%s", w.dir, zone, file);
    FILE *f = fopen(path, "w");
    if (!f)
        return;
    (void)fprintf(f, "%s\n", text);
    (void)fclose(f);
}

static double true_j(double watts)
{
    return watts * s_between(cpu.began_ns, loop_now_ns(w.loop));
}

static void put_counts(void)
{
    char text[40];

    (void)snprintf(text, sizeof text, "%llu",
                   ((unsigned long long)llround(true_j(PACKAGE_W) * 1e6) + cpu.add_uj) %
                       RANGE_UJ);
    put("intel-rapl:0", "energy_uj", text);
    (void)snprintf(text, sizeof text, "%lld", llround(true_j(DRAM_W) * 1e6));
    put("intel-rapl:0:0", "energy_uj", text);
}

static int on_count(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    (void)user;
    if (!cpu.stand)
        put_counts();
    return 0;
}

static bool open_tree(char tree[100])
{
    (void)snprintf(tree, 100, "%s/rapl", w.dir);
    (void)mkdir(tree, 0700);
    memset(&cpu, 0, sizeof cpu);
    cpu.began_ns = loop_now_ns(w.loop);
    put("intel-rapl:0", "name", "package-0");
    put("intel-rapl:0", "max_energy_range_uj", "20000000000");
    put("intel-rapl:0:0", "name", "dram");
    put("intel-rapl:0:0", "max_energy_range_uj", "65712999613");
    put_counts();
    w.cpu = tree;
    return loop_timer_new(w.loop, loop_now_ns(w.loop), 200 * NS_PER_MS, on_count, NULL,
                          &cpu.timer, NULL) == 0;
}

static void close_tree(void)
{
    char command[100];

    loop_timer_free(take(cpu.timer));
    (void)snprintf(command, sizeof command, "rm -rf '%s/rapl'", w.dir);
    (void)!system(command);
}

static void end_node(void)
{
    if (node_end(w.node, on_node_end, NULL) == 0)
        for (unsigned i = 0; i < 10 && !w.ended; i++)
            run_s(1);
    node_free(take(w.node));
}

/* One number of the ledger. */
static double asked(const char *sql)
{
    char path[128];
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    double v = (double)NAN;

    (void)snprintf(path, sizeof path, "%s/ledger.sqlite", w.dir);
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        v = sqlite3_column_double(stmt, 0);
    else
        printf("# %s: %s\n", sql, sqlite3_errmsg(db));
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    return v;
}

#define PACKAGE                                           \
    " FROM energy e JOIN board b ON b.id = e.board WHERE" \
    " b.uuid = 'rapl:package-0'"
#define SUM_J "SELECT ifnull(sum(energy_uj), 0) * 1e-6"

static void check_sums(const char *when)
{
    static const char *const domains[] = {"package-0", "dram-0"};
    char sql[300];

    for (size_t i = 0; i < n_elements(domains); i++) {
        (void)snprintf(sql, sizeof sql,
                       "SELECT (SELECT sum(e.energy_uj) FROM energy e JOIN board b ON"
                       " b.id = e.board AND b.name = '%s') * 1.0 / (SELECT"
                       " sum(m.energy_uj) FROM meter m JOIN board b ON b.id = m.board AND"
                       " b.name = '%s')",
                       domains[i], domains[i]);
        is_near(asked(sql), 1, 1e-6, "%s: the parts of %s make up its counter", when,
                domains[i]);
    }
}

/* Idle, a job alone on all boards, a job that has a part of them, another beside it. */
static void to_whom(void)
{
    char tree[100];

    ok(open_tree(tree) && start_node(), "to whom: a node");
    double from_j = true_j(PACKAGE_W);
    run_s(60);
    struct loop_child *all = train("0,1,2,3", ANNA);
    run_s(120);
    (void)loop_child_kill(all, 9);
    loop_child_free(all);
    run_s(60);
    struct loop_child *part = train("0,1", ANNA);
    run_s(60);
    struct loop_child *other = train("2,3", BEN);
    run_s(60);
    (void)loop_child_kill(part, 9);
    (void)loop_child_kill(other, 9);
    loop_child_free(part);
    loop_child_free(other);
    run_s(60);
    double to_j = true_j(PACKAGE_W);
    end_node();

    check_sums("six minutes");
    is_near(asked(SUM_J PACKAGE) / (to_j - from_j), 1, 0.02,
            "what was counted is booked, over eight wraps");
    is_near(asked(SUM_J PACKAGE " AND e.kind = 1") / (120 * PACKAGE_W), 1, 0.1,
            "to the job that had the node alone, while it had it");
    is_near(asked("SELECT count(DISTINCT job)" PACKAGE " AND e.kind = 1"), 1, 0,
            "to that one");
    ok(asked("SELECT min(job)" PACKAGE " AND e.kind = 1") ==
           asked("SELECT min(id) FROM job"),
       "… which was the first");
    is_near(asked(SUM_J PACKAGE " AND e.kind = 3") / (120 * PACKAGE_W), 1, 0.1,
            "of a part of the node, or two beside each other: unattributed");
    is_near(asked(SUM_J PACKAGE " AND e.kind = 2") / (180 * PACKAGE_W), 1, 0.1,
            "nobody there: idle");
    is_near(asked("SELECT count(*)" PACKAGE " AND e.method & 4"), 0, 0,
            "nothing is bridged");
    is_near(asked("SELECT count(*) FROM job_board jb JOIN board b ON b.id = jb.board AND"
                  " b.kind > 1"),
            0, 0, "no job's boards are processors");
    close_tree();
}

/* A counter that falls by more than a wrap can be has begun anew. */
static void anew(void)
{
    char tree[100];

    ok(open_tree(tree) && start_node(), "anew: a node");
    run_s(60);
    double before_j = true_j(DRAM_W);
    cpu.stand = true; /* of the memory: as after a suspend */
    put("intel-rapl:0:0", "energy_uj", "1000");
    run_s(3);
    cpu.began_ns = loop_now_ns(w.loop) - NS_PER_S; /* it counts on from there */
    cpu.stand = false;
    run_s(60);
    end_node();
    double booked = asked(SUM_J " FROM energy e JOIN board b ON b.id = e.board WHERE"
                                " b.name = 'dram-0'");
    ok(booked < before_j + 62 * DRAM_W && booked > 0.9 * before_j + 50 * DRAM_W,
       "no joule is made up where the counter began anew (%.1f J)", booked);
    ok(asked("SELECT count(*) FROM energy e JOIN board b ON b.id = e.board WHERE"
             " b.name = 'dram-0' AND e.method & 4") >= 1,
       "and the interval says that it is bridged");
    check_sums("anew");
    close_tree();
}

/* Asked ten times a second, everybody sees whole joules and a change every 2 s at most.
 */
static void coarse(void)
{
    char tree[100];
    double last = -1, last_exact = -1, last_w = -1;
    unsigned changes = 0, exact = 0, powers = 0, fractions = 0, backwards = 0;

    ok(open_tree(tree) && start_node(), "coarse: a node");
    run_s(5);
    for (unsigned i = 0; i < 400; i++) {
        run_s(0.1);
        const struct node_view *v = node_look(w.node);
        if (v->n_rapl != 2)
            continue;
        const struct view_rapl *d = &v->rapl[0];
        changes += d->energy_j != last;
        backwards += d->energy_j < last;
        exact += d->exact.energy_j != last_exact;
        powers += d->power_w.v != last_w;
        fractions += fmod(d->energy_j, VIEW_RAPL_STEP_J) != 0;
        last = d->energy_j;
        last_exact = d->exact.energy_j;
        last_w = d->power_w.v;
    }
    ok(changes > 10 && changes <= 21, "40 s: %u values", changes);
    ok(exact > 30 && exact <= 45, "%u for administrators", exact);
    ok(powers <= 21, "%u of power", powers);
    is_int(fractions, 0, "whole joules");
    is_int(backwards, 0, "that never go back, though the counter wraps");
    w.config.boards.rapl_ns = 10 * NS_PER_S;
    ok(node_configure(w.node, &w.config, NULL) == 0, "another period");
    run_s(10);
    changes = 0;
    for (unsigned i = 0; i < 400; i++) {
        run_s(0.1);
        changes += node_look(w.node)->rapl[0].energy_j != last;
        last = node_look(w.node)->rapl[0].energy_j;
    }
    ok(changes >= 3 && changes <= 5, "is in force: %u values in 40 s", changes);
    is_near(node_look(w.node)->rapl[0].power_w.v, PACKAGE_W, 0.1 * PACKAGE_W,
            "the mean power is right");
    ok(strcmp(node_look(w.node)->rapl[1].name, "dram-0") == 0, "the memory's name");
    node_free(take(w.node));
    close_tree();
}

/* Of a window: in whole joules for everybody, exact for administrators. */
static void of_window(const char *name, uint64_t begin_ns)
{
    struct client_window_result window = {.begin_ns = begin_ns,
                                          .end_ns = loop_now_ns(w.loop)};
    struct processors_energy all[LEDGER_DOMAINS], own[LEDGER_DOMAINS];
    double s = s_between(window.begin_ns, window.end_ns), true_package = PACKAGE_W * s;

    is_int(node_window_processors(w.node, false, &window, all), 2, "%s: two", name);
    (void)node_window_processors(w.node, true, &window, own);
    is_str(all[0].name, "package-0", name);
    ok(all[0].known && fabs(all[0].energy_j - true_package) <= all[0].half_j + 1,
       "%s: %.1f J +- %.1f J for everybody, true %.1f J", name, all[0].energy_j,
       all[0].half_j, true_package);
    ok(own[0].known && fabs(own[0].energy_j - true_package) <= own[0].half_j + 100,
       "%s: %.1f J +- %.1f J for administrators", name, own[0].energy_j, own[0].half_j);
    ok(all[0].half_j >= VIEW_RAPL_STEP_J && all[0].half_j < 4 * PACKAGE_W,
       "%s: the interval says something", name);
    ok(own[1].known && fabs(own[1].energy_j - DRAM_W * s) <= own[1].half_j + 2,
       "%s: memory %.1f J +- %.1f J", name, own[1].energy_j, own[1].half_j);
}

static void windows(void)
{
    char tree[100];

    ok(open_tree(tree) && start_node(), "windows: a node");
    struct client_window_result early = {.begin_ns = 1, .end_ns = loop_now_ns(w.loop)};
    struct processors_energy e[LEDGER_DOMAINS] = {{.known = true}};
    (void)node_window_processors(w.node, false, &early, e);
    ok(!e[0].known, "before the first values: not known");
    run_s(10);
    uint64_t begin_ns = loop_now_ns(w.loop);
    run_s(3);
    of_window("3 s", begin_ns);
    run_s(1200);
    of_window("20 min", begin_ns);
    end_node();
    close_tree();
}

int main(void)
{
    static void (*const parts[])(void) = {to_whom, anew, coarse, windows};

    log_set_level((enum log_level)0);
    for (size_t i = 0; i < n_elements(parts); i++) {
        if (!ok(open_world(), "a world"))
            break;
        parts[i]();
        close_world();
    }
    return done();
}
