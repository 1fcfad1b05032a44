/* Each key that a reload takes over does something at once in a running node: changed,
 * and looked at.  What the doors do with theirs is test-daemon.py's.
 */
#include <sqlite3.h>
#include <unistd.h>

#include "io/file.h"
#include "node-scene.h"

enum { ANNA = 1000 };

static const struct node_who anna = {.uid = ANNA, .may_claim = true, .name = "user anna"},
                             root = {.uid = 0,
                                     .admin = true,
                                     .may_claim = true,
                                     .name = "user root"};

static bool load(const char *text)
{
    struct node_config c = w.config;
    uw_error err = {""};
    int r = node_config_read(&c, "c.yaml", text, strlen(text), &err);

    if (r == 0)
        r = node_configure(w.node, &c, &err);
    if (r < 0)
        printf("# %s\n", err.text);
    return r == 0;
}

static const struct view_board *board(size_t i)
{
    return &node_look(w.node)->board[i];
}

static double calls_a_second(size_t i)
{
    uint64_t before = board(i)->calls;

    run_s(60);
    return (double)(board(i)->calls - before) / 60;
}

static int claimed(const struct node_who *who, uint32_t mw, double ttl_s)
{
    uint64_t id = 0;
    uw_error err;
    int r = claim(who, "0", CLAIM_NAMED, mw, ttl_s, &id, &err);

    if (r == 0)
        (void)node_withdraw(w.node, &root, id, NULL);
    return r;
}

static bool dry_run(void)
{
    bool was = node_look(w.node)->dry_run;

    return load("node: {dry_run: true}") && !was && node_look(w.node)->dry_run;
}

static bool rest(void)
{
    double was = calls_a_second(3);

    return load("sampling: {rest: 500 ms}") && calls_a_second(3) > 2 * was;
}

/* Anna's job is on board 0. */
static bool job(void)
{
    double was = calls_a_second(0);

    return load("sampling: {job: 50 ms, search: 50 ms}") && calls_a_second(0) > 2 * was;
}

/* … and one that is searched on board 1. */
static bool search(void)
{
    struct node_job ask = {
        .reg = {.source = JOB_REGISTERED, .name = "s", .uid = ANNA, .boards = 2},
        .search = true,
        .page_fd = -1};
    uint64_t id = 0;

    (void)goal_parse("edp", &ask.goal, NULL);
    if (node_job_begin(w.node, &root, &ask, &id, NULL) < 0)
        return false;
    run_s(10);
    double was = calls_a_second(1);
    /* without a page its power is listened to, every 50 ms already */
    return load("sampling: {search: 20 ms}") && calls_a_second(1) > 2 * was;
}

static bool users_from(void)
{
    return claimed(&anna, 160000, 0) == 0 && load("caps: {users: {from: 60 %}}") &&
           claimed(&anna, 160000, 0) == -ERANGE && claimed(&root, 160000, 0) == 0;
}

static bool users_to(void)
{
    return claimed(&anna, 260000, 0) == 0 && load("caps: {users: {to: 250 W}}") &&
           claimed(&anna, 260000, 0) == -ERANGE;
}

static bool users_longest(void)
{
    return claimed(&anna, 200000, 100) == 0 && load("caps: {users: {longest: 50 s}}") &&
           claimed(&anna, 200000, 100) == -ERANGE;
}

/* Another's limit while ours is in force: what is said of it. */
static bool other_says(const char *config, const char *words)
{
    uw_error err;
    uint64_t id = 0;
    bool good = load(config) && claim(&root, "2", CLAIM_HARD, 200000, 0, &id, &err) == 0;

    run_s(3);
    fault("2 limit 250W");
    run_s(3);
    good = good && strstr(board(2)->cap.text, words);
    if (!good)
        printf("# '%s'\n", board(2)->cap.text);
    return good;
}

static bool other_writers(void)
{
    return other_says("caps: {other_writers: reassert}", "overwritten in 10 s");
}

static bool reassert_after(void)
{
    return other_says("caps: {other_writers: reassert, reassert_after: 33 s}",
                      "overwritten in 33 s");
}

static bool yield_for(void)
{
    return other_says("caps: {yield_for: 44 s}", "tried again in 44 s");
}

static bool always_hold(void)
{
    bool was = board(3)->cap.state == CAPS_HELD, good = load("caps: {always_hold: true}");

    run_s(2);
    return good && !was && board(3)->cap.state == CAPS_HELD;
}

static bool clocks(void)
{
    bool was = board(3)->cap.clock.on, good = load("caps: {clocks: true}");

    run_s(1);
    return good && !was && board(3)->cap.clock.on;
}

/* Too little is refused, and the old one stays. */
static bool budget(void)
{
    bool good = load("budget: {node: 800 W}") && !load("budget: {node: 599 W}");

    run_s(3);
    for (size_t i = 0; i < 4; i++)
        good = good && board(i)->cap.enforced_mw == 200000;
    good = good && load("budget: {node: none}");
    run_s(3);
    return good && board(3)->cap.claims->n == 0 && board(3)->cap.enforced_mw == 300000;
}

static bool classes(void)
{
    return load("caps: {classes: {default: {ramp: 7 %/s}}}") &&
           fabs(board(2)->cap.cls.rate - 0.07) < 1e-9;
}

static bool found_jobs(void)
{
    bool good = load("search: {found_jobs: edp}");
    struct loop_child *child = train("2", ANNA);
    const struct node_view *v;

    run_s(10);
    v = node_look(w.node);
    good = good && v->n_jobs == 2 &&
           (strcmp(v->job[0].search.goal, "edp") == 0 ||
            strcmp(v->job[1].search.goal, "edp") == 0);
    (void)loop_child_kill(child, 9);
    loop_child_free(child);
    return good;
}

/* Rows of this resolution (s) that are older than so long. */
static long long old_rows(int res, double s)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    long long n = -1;

    if (sqlite3_open(w.config.ledger.path, &db) == SQLITE_OK &&
        sqlite3_prepare_v2(db,
                           "SELECT count(*) FROM energy WHERE res = ? AND begin_ms < ?",
                           -1, &stmt, NULL) == SQLITE_OK) {
        (void)sqlite3_bind_int(stmt, 1, res);
        (void)sqlite3_bind_int64(stmt, 2,
                                 loop_utc_ns(w.loop) / 1000000 - (int64_t)(s * 1000));
        if (sqlite3_step(stmt) == SQLITE_ROW)
            n = sqlite3_column_int64(stmt, 0);
    }
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    return n;
}

static bool keep_fine(void)
{
    run_s(4 * 3600);
    bool was = old_rows(0, 3 * 3600) > 0, good = load("ledger: {keep: {fine: 1 h}}");

    run_s(2 * 3600);
    printf("# %lld rows are older than 3 h\n", old_rows(0, 3 * 3600));
    return good && was && old_rows(0, 3 * 3600) == 0;
}

/* With fine rows for an hour, those by the minute for two. */
static bool keep_minute(void)
{
    bool good = load("ledger: {keep: {fine: 1 h}}");

    run_s(6 * 3600);
    bool was = old_rows(60, 4 * 3600) > 0;
    good = good && load("ledger: {keep: {fine: 1 h, minute: 2 h}}");
    run_s(2 * 3600);
    printf("# %lld rows are older than 4 h\n", old_rows(60, 4 * 3600));
    return good && was && old_rows(60, 4 * 3600) == 0;
}

/* A job that has board 3, and no process. */
static bool idle_after(void)
{
    struct node_job ask = {
        .reg = {.source = JOB_REGISTERED, .name = "i", .uid = ANNA, .boards = 8},
        .page_fd = -1};
    uint64_t id = 0;

    if (node_job_begin(w.node, &root, &ask, &id, NULL) < 0)
        return false;
    run_s(80);
    bool was = board(3)->use == WASTE_WORKING;
    bool good = load("waste: {idle_after: 30 s}");
    run_s(80);
    return good && was && board(3)->use == WASTE_ALLOCATED;
}

/* Anna's job uses some 70 % of what board 1 could draw: whether that is too little only
 * once the configuration is another one.
 */
static bool is_under(const char *before)
{
    struct loop_child *job = train("1", ANNA);

    bool good = load(before);
    run_s(100);
    bool was = board(1)->use == WASTE_WORKING;
    good = good && load("waste: {under_for: 1 min, under: 100 %}");
    run_s(30);
    bool is = board(1)->use == WASTE_UNDER;
    (void)loop_child_kill(job, 9);
    loop_child_free(job);
    return good && was && is;
}

static bool under(void)
{
    return is_under("waste: {under_for: 1 min}");
}

static bool under_for(void)
{
    return is_under("waste: {under: 100 %}");
}

static const struct signal_view *signal_of(const char *name)
{
    const struct node_view *v = node_look(w.node);

    for (size_t i = 0; i < v->n_signals; i++)
        if (strcmp(v->signal[i].decl->name, name) == 0)
            return &v->signal[i];
    return NULL;
}

/* A list of signals; a wrong one changes nothing. */
static bool policy_file(void)
{
    static const char good[] =
        "policy: 1\nsignals: [{name: rack3.power, unit: kW, age: 60 s}]\n";
    static const char wrong[] = "policy: 1\nsignals: [{name: rack3.power}]\n";
    const struct node_signal ask = {.value = {.number = 38}, .unit = "kW"};
    char path[] = "/tmp/uw-policy-XXXXXX", text[80];
    uw_error err = {""};
    int fd = mkstemp(path);
    bool was = fd >= 0 && close(fd) == 0 && !signal_of("rack3.power");

    (void)snprintf(text, sizeof text, "policy: {file: %s}", path);
    was = was && file_write(path, good, sizeof good - 1, 0600, NULL) == 0 && load(text) &&
          signal_of("rack3.power") && !signal_of("rack3.power")->known &&
          node_signal_set(w.node, &root, "rack3.power", &ask, NULL) == 0 &&
          node_signal_set(w.node, &anna, "rack3.power", &ask, &err) == -EPERM &&
          node_signal_unset(w.node, &anna, "rack3.power", &err) == -EPERM;
    run_s(800);
    was = was && signal_of("rack3.power")->known;
    was = was && file_write(path, wrong, sizeof wrong - 1, 0600, NULL) == 0 &&
          !load(text) && signal_of("rack3.power")->value;
    run_s(101);
    (void)unlink(path); /* a file that is lost is no end of a policy */
    was = was && !load(text) && signal_of("rack3.power");
    return was && !signal_of("rack3.power")->known;
}

/* clang-format off */
static const struct { const char *key; bool (*works)(void); } live[] = {
    {"node.dry_run", dry_run},
    {"budget.node", budget},
    {"sampling.rest", rest},
    {"sampling.job", job},
    {"sampling.search", search},
    {"caps.users.from", users_from},
    {"caps.users.to", users_to},
    {"caps.users.longest", users_longest},
    {"caps.other_writers", other_writers},
    {"caps.reassert_after", reassert_after},
    {"caps.yield_for", yield_for},
    {"caps.clocks", clocks},
    {"caps.always_hold", always_hold},
    {"caps.classes", classes},
    {"search.found_jobs", found_jobs},
    {"waste.idle_after", idle_after},
    {"waste.under", under},
    {"waste.under_for", under_for},
    {"ledger.keep.fine", keep_fine},
    {"ledger.keep.minute", keep_minute},
    {"policy.file", policy_file},
};
/* The doors': test-daemon.py; the processors': test-node-rapl.c; the hours of a year: one struct
 * with the other two; what searches leave: simulation/test-history.c; the policy's file:
 * simulation/test-policy.c; figures of reports: test-accounting.py.
 */
static const char *const elsewhere[] = {
    "node.admin_group", "node.log", "boards.rapl_period", "ledger.keep.hour", "search.history", "api.tcp.tokens",
    "api.limits.per_client", "api.limits.requests", "api.limits.followers", "api.limits.idle",
    "metrics.enabled", "metrics.per_job", "metrics.max_jobs", "accounting.market", "accounting.embodied",
};
/* clang-format on */

static void every_key(void)
{
    for (size_t i = 0; node_config_key(i); i++) {
        const char *key = node_config_key(i);
        bool looked = node_config_needs_restart(key);
        for (size_t k = 0; k < n_elements(live); k++)
            looked |= strcmp(live[k].key, key) == 0;
        for (size_t k = 0; k < n_elements(elsewhere); k++)
            looked |= strcmp(elsewhere[k], key) == 0;
        ok(looked, "%s: somebody looks at what a reload does", key);
    }
}

/* Not a reload's: the other keys' place is the start. */
static void discover(void)
{
    struct loop_child *child = train("0", ANNA);

    w.config.jobs.discover = false;
    ok(start_node(), "jobs.discover off: a node");
    run_s(20);
    ok(node_look(w.node)->n_jobs == 0, "no job is found");
    ok(board(0)->attributed_j <= 0, "its energy is nobody's");
    (void)loop_child_kill(child, 9);
    loop_child_free(child);
}

int main(void)
{
    log_set_level((enum log_level)0);
    every_key();
    for (size_t i = 0; i < n_elements(live); i++) {
        bool world = open_world();
        struct loop_child *child = world ? train("0", ANNA) : NULL;
        bool node = world && start_node();
        run_s(10);
        ok(node && live[i].works(), "%s is in force after a reload", live[i].key);
        (void)loop_child_kill(child, 9);
        loop_child_free(child);
        close_world();
    }
    if (ok(open_world(), "a world"))
        discover();
    close_world();
    return done();
}
