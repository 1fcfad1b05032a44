/* What a daemon finds that is started anew beside an actuator that lived on: chosen
 * scenes of what chaos-virtual.c plays at random.
 */
#pragma GCC diagnostic ignored "-Wunused-function" /* it leaves out what is random */
#include "tuner/tuner.h"
#define fault disk /* the scene has a function of that name */
#include "base/names.h"
#include "unit/ledger/fault.h"
#undef fault
#include "simulation/chaos-scene.h"
#include "virtual/virtual-loop.h"

static struct round r;

static void open_scene(const char *name)
{
    printf("# %s\n", name);
    ok(open_round(&r, 1, 2), "a world");
    r.config.caps.yield_ns = 600 * NS_PER_S; /* the default */
}

static void close_scene(void)
{
    is_str(r.bad, "", "nothing else went wrong");
    close_round(&r);
}

static void claim_for(size_t board, enum claim_kind kind, uint32_t mw, uint64_t ttl_ns)
{
    char name[24];
    struct node_claim ask = {.board = name,
                             .kind = kind,
                             .cap = {.mw = mw},
                             .ttl_ns = ttl_ns,
                             .why = "a test"};
    uw_error err = {""};

    (void)snprintf(name, sizeof name, "%zu", board);
    int got = node_claim(r.node, &root, &ask, NULL, &err);
    ok(got == 0, "%u mW are claimed %s", mw, err.text);
}

static void claim(size_t board, enum claim_kind kind, uint32_t mw)
{
    claim_for(board, kind, mw, 0);
}

static const struct caps_view *cap(size_t board)
{
    return &node_look(r.node)->board[board].cap;
}

static uint64_t changes(size_t board, enum caps_cause cause)
{
    return cap(board)->changes[cause];
}

/* The driver forgets the cap while nobody but the actuator is there: nobody is yielded
 * to. */
static void reloaded(void)
{
    open_scene("the driver is loaded anew between two daemons");
    begin_life(&r);
    claim(0, CLAIM_HARD, 200000);
    pass(&r, 5);
    is_int(limit_of(&r, 0), 200000, "in force");
    kill_node(&r);
    fault(&r, "reload");
    begin_life(&r);
    pass(&r, 2);
    is_int(limit_of(&r, 0), 200000, "in force again: nobody's will had changed it");
    is_int((long long)changes(0, CAPS_CAUSE_OTHER), 0, "nobody is blamed");
    is_str(names_word(NAMES_CAP_STATE, cap(0)->state), "held", "held");
    close_scene();
}

/* Another's limit is yielded to as always. */
static void foreign(void)
{
    open_scene("another writes between two daemons");
    begin_life(&r);
    claim(0, CLAIM_HARD, 200000);
    pass(&r, 5);
    kill_node(&r);
    fault(&r, "0 limit 230W");
    begin_life(&r);
    pass(&r, 2);
    is_int(limit_of(&r, 0), 230000, "theirs stays");
    is_int((long long)changes(0, CAPS_CAUSE_OTHER), 1, "counted as theirs");
    is_str(names_word(NAMES_CAP_STATE, cap(0)->state), "yielded", "yielded to");
    close_scene();
}

/* The claims are in view while nobody can say a thing about the boards. */
static void ask_while_away(void)
{
    struct caps_claim_look claim;
    const struct caps_view *v = cap(0);
    uw_error err = {""};
    size_t at = 9;

    ok(node_board(r.node, "1", &at, &err) == 0 && at == 1, "a board is known by name");
    is_int(node_release(r.node, &root, "0", 0, NULL, NULL, &err), -EAGAIN,
           "what has to be done to one waits: %s", err.text);
    is_int(node_withdraw(r.node, &root, 1, &err), -EAGAIN, "a withdrawal, too");
    caps_claim_look(v, &v->claims->claim[0], &claim);
    is_int(claim.why, CAPS_UNMET_NOT_HELD, "the claim is not in force");
    is_str(claim.text, "not in force: waiting for the boards", "the claim says so");
}

static void waiting(void)
{
    unsigned without = 0, shown = 0, late = 0;

    open_scene("boards are opened anew, which takes its time");
    begin_life(&r);
    claim(0, CLAIM_HARD, 200000);
    claim_for(1, CLAIM_HARD, 210000, ns_of_s(12)); /* ends meanwhile */
    pass(&r, 5);
    fault(&r, "0 limit 230W");
    pass(&r, 3);
    uint64_t others = changes(0, CAPS_CAUSE_OTHER);
    is_int((long long)others, 1, "another writer was counted");
    fault(&r, "reload");
    fault(&r, "1 hang for 20s");
    r.may_default = r.hung = true;
    for (int i = 0; i < 200; i++) {
        pass(&r, 0.1);
        const struct node_view *v = node_look(r.node);
        without += v->n_boards == 0 || v->board[0].cap.claims->n != 1;
        if (v->n_boards == 2 &&
            strcmp(v->board[0].cap.text, "waiting for the boards") == 0 && shown++ == 0)
            ask_while_away();
        if (v->n_boards == 2 && v->board[1].cap.claims->n &&
            v->board[1].cap.claims->claim[0].until_ns < v->now_ns)
            late++;
    }
    is_int(without, 0, "the claim is there in each look");
    is_int(late, 0, "one that ends meanwhile is in no look after its end");
    ok(shown > 10, "it waited for the boards (%u looks)", shown);
    pass(&r, 30);
    is_int(limit_of(&r, 0), 200000, "the boards are back: in force");
    ok(changes(0, CAPS_CAUSE_OTHER) == others, "counts go on");
    close_scene();
}

/* Anna's training, registered with a search; its number. */
static uint64_t begin_search(void)
{
    for (int i = 0; i < 40 && !r.run[0].job; i++) {
        end_run(&r, &r.run[0]);
        begin_run(&r, &r.run[0]);
    }
    return r.run[0].job;
}

/* By board it is the whole of what is shown; the board that it has. */
static void parts_are_whole(const char *when, const struct view_job *j)
{
    double sum = 0;

    for (size_t i = 0; i < j->n_parts; i++)
        sum += j->part[i].energy_j;
    is_near(sum, j->energy_j, 1e-6, "%s: its boards have all of it", when);
    ok(j->n_parts == 1 && j->job->so_far == 1ull << j->part[0].board,
       "%s: it has one board", when);
    is_near(j->part[0].time_s, j->booked_s, 1e-2, "%s: for the same time", when);
}

/* What the ledger has of a job is shown by the next daemon's first look. */
static void energy(void)
{
    open_scene("the energy of a job that is taken over");
    begin_life(&r);
    uint64_t job = begin_search();
    pass(&r, 64);
    const struct view_job *j = node_look(r.node)->job;
    double before_j = j->energy_j, time_s = j->time_s, booked_s = j->booked_s;
    ok(booked_s > 40 && booked_s < time_s - 1, "of which %.1f s are booked", booked_s);
    double power_w = before_j / booked_s;
    ok(j->job->id == job && before_j > 5000 && j->half_j.known, "%.0f J in %.0f s",
       before_j, time_s);
    parts_are_whole("before", j);
    kill_node(&r);
    begin_life(&r);
    j = node_look(r.node)->job;
    ok(j->job->id == job && j->time_s < time_s + 1, "another daemon has it");
    ok(j->energy_j <= before_j && j->energy_j > before_j - 300 * INTERVAL_S,
       "… shows its energy at once, less the last interval's at the most: %.0f J",
       j->energy_j);
    ok(j->half_j.known && j->half_j.v > 0, "… and its interval: ± %.0f J", j->half_j.v);
    is_near(j->energy_j / j->booked_s, power_w, 0.1 * power_w,
            "… and the time for which it is");
    parts_are_whole("another daemon", j);
    before_j = j->energy_j;
    pass(&r, 30);
    j = node_look(r.node)->job;
    ok(j->energy_j > before_j + 2000, "… and goes on from there: %.0f J", j->energy_j);
    ok(j->booked_s > booked_s + 10 && j->booked_s < j->time_s, "… in %.1f s",
       j->booked_s);
    parts_are_whole("later", j);
    close_scene();
}

/* A job whose page died with its client: the cap that was found is held blind for a
 * while, no longer.
 */
static void blind(void)
{
    open_scene("daemon and client die, the job lives");
    begin_life(&r);
    uint64_t job = begin_search();
    const struct node_view *v = node_look(r.node);
    size_t at = v->n_jobs && v->job[0].job->boards & 1 ? 0 : 1;
    for (int i = 0; i < 400 && !strstr(node_look(r.node)->job[0].search.state, "holds");
         i++)
        pass(&r, 5);
    pass(&r, 60);
    uint32_t held = limit_of(&r, at);
    ok(job && held && held < ORIGINAL_MW, "a cap is found and held: %u mW", held);
    kill_node(&r);
    r.run[0].job = 0; /* nobody hands the page over */
    begin_life(&r);
    pass(&r, 5);
    is_int(limit_of(&r, at), held, "held on for a moment");
    pass(&r, 40);
    is_int(limit_of(&r, at), ORIGINAL_MW, "no progress is known: no cap of the search's");
    ok(strstr(node_look(r.node)->job[0].search.state, "no steps"), "told: %s",
       node_look(r.node)->job[0].search.state);
    r.run[0].job = job;
    hand_over(&r, &r.run[0]);
    pass(&r, 120);
    ok(limit_of(&r, at) < ORIGINAL_MW, "the page is back: so is the cap, %u mW",
       limit_of(&r, at));
    close_scene();
}

static size_t board_of(uint64_t job)
{
    const struct node_view *v = node_look(r.node);

    for (size_t i = 0; i < v->n_jobs; i++)
        if (v->job[i].job->id == job)
            return v->job[i].job->boards & 1 ? 0 : 1;
    return SIZE_MAX;
}

static const struct searches_view *search_of(uint64_t job)
{
    const struct node_view *v = node_look(r.node);

    for (size_t i = 0; i < v->n_jobs; i++)
        if (v->job[i].job->id == job)
            return &v->job[i].search;
    return NULL;
}

/* Until its search has gone well below the original; the limit there. */
static uint32_t wait_for_cap(size_t board)
{
    for (int i = 0; i < 400 && limit_of(&r, board) > ORIGINAL_MW * 8 / 10; i++)
        pass(&r, 1);
    return limit_of(&r, board);
}

/* What is set is the search's doing, and no original. */
static void searching(void)
{
    open_scene("a daemon dies in the middle of a search");
    begin_life(&r);
    uint64_t job = begin_search();
    size_t at = board_of(job);
    uint32_t low = wait_for_cap(at);
    ok(low <= ORIGINAL_MW * 8 / 10 && !strstr(search_of(job)->state, "holds"),
       "it is on its way: %u mW, %s", low, search_of(job)->state);
    kill_node(&r);
    begin_life(&r);
    pass(&r, 3);
    is_int(search_of(job)->report->original_mw, ORIGINAL_MW,
           "the next one knows the original (%s)", search_of(job)->state);
    is_int(limit_of(&r, at), ORIGINAL_MW, "… which is in force until it searches");
    for (int i = 0; i < 400 && !strstr(search_of(job)->state, "holds"); i++)
        pass(&r, 5);
    ok(strstr(search_of(job)->state, "holds") && search_of(job)->cap_mw < ORIGINAL_MW,
       "a cap is found: %s", search_of(job)->state);
    is_int(search_of(job)->report->reference_mw, ORIGINAL_MW,
           "… against the original, as ever");
    close_scene();
}

/* The same for another job, at once: what a dead one's search has left on its board. */
static void left(void)
{
    open_scene("a daemon dies in the middle of a search, then the job does");
    begin_life(&r);
    uint64_t job = begin_search();
    size_t at = board_of(job);
    uint32_t low = wait_for_cap(at);
    ok(low <= ORIGINAL_MW * 8 / 10, "it is on its way: %u mW", low);
    kill_node(&r);
    begin_life(&r);
    end_run(&r, &r.run[0]);
    do {
        job = begin_search();
    } while (board_of(job) != at && (end_run(&r, &r.run[0]), true));
    ok(job, "another job, on the same board");
    pass(&r, 5);
    is_int(search_of(job)->report->original_mw, ORIGINAL_MW,
           "its search knows the original (%s)", search_of(job)->state);
    close_scene();
}

/* ---- jobs that nobody registered ---- */

/* Anna's training: found, and capped by her; its job and her claim. */
struct found {
    struct loop_child *child;
    uint64_t job, claim;
};

static struct loop_child *train(const char *workload, size_t board, uid_t uid)
{
    char gpus[24], owner[40];
    const char *argv[] = {"underwatt-sim", "train",  "--workload",
                          workload,        "--gpus", gpus,
                          "--epochs",      "100000", NULL};
    const char *env[] = {owner, NULL};
    struct loop_child_opts opts = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    struct loop_child *child = NULL;

    (void)snprintf(gpus, sizeof gpus, "%zu", board);
    (void)snprintf(owner, sizeof owner, VIRTUAL_UID "=%u", (unsigned)uid);
    ok(loop_child_new(r.loop, &opts, nobody_cares, NULL, &child, NULL) == 0,
       "uid %u computes on board %zu", (unsigned)uid, board);
    return child;
}

static void stop(struct loop_child *child)
{
    if (child)
        (void)loop_child_kill(child, SIGKILL);
    loop_child_free(child);
}

static uint64_t job_on(size_t board)
{
    const struct view_board *b = &node_look(r.node)->board[board];

    return b->n_jobs == 1 ? b->job[0] : 0;
}

static struct found capped(double ttl_s)
{
    struct found f = {.child = train("resnet50", 0, ANNA)};
    struct node_claim ask = {.board = "0",
                             .kind = CLAIM_NAMED,
                             .cap = {.mw = 200000},
                             .ttl_ns = ns_of_s(ttl_s),
                             .why = "a test"};
    uw_error err = {""};

    begin_life(&r);
    pass(&r, 7);
    f.job = job_on(0);
    int got = node_claim(r.node, &anna, &ask, &f.claim, &err);
    ok(f.job && got == 0, "job %ju is found, anna caps it %s", (uintmax_t)f.job,
       err.text);
    for (int i = 0; i < 200 && limit_of(&r, 0) != 200000; i++)
        pass(&r, 1);
    pass(&r, 12); /* an interval is booked */
    is_int(limit_of(&r, 0), 200000, "her cap is in force");
    return f;
}

/* Time passes; the highest limit of board 0 meanwhile. */
static uint32_t highest_in(double s)
{
    uint32_t most = 0;

    for (double at = 0; at < s; at += 0.1) {
        pass(&r, 0.1);
        if (limit_of(&r, 0) > most)
            most = limit_of(&r, 0);
    }
    return most;
}

static bool ledger_has(const char *sql)
{
    char to[100], text[100] = "";

    pass(&r, 1); /* rows are written */
    sqlite3 *db = open_copy(&r, to);
    if (db)
        query(&r, db, sql, text);
    (void)sqlite3_close(db);
    (void)each_file(to, NULL);
    return strcmp(text, "1") == 0;
}

static bool has_claim_of(uint64_t id, uid_t uid)
{
    const struct claim *c = claims_find(cap(0)->claims, id);

    return c && c->uid == uid;
}

static void is_the_same(const struct found *f, const char *when)
{
    is_int((long long)job_on(0), (long long)f->job, "%s: the same job", when);
    ok(has_claim_of(f->claim, ANNA), "%s: with her claim", when);
}

static void found_within(void)
{
    open_scene("a found job with its user's cap: the daemon is killed, twice");
    struct found f = capped(3600);
    const struct view_job *j = node_look(r.node)->job;
    double before_j = j->energy_j;
    int64_t began = j->job->began_utc_ns;
    kill_node(&r);
    ok(highest_in(4) <= 200000, "the actuator keeps the cap for the grace");
    begin_life(&r);
    is_the_same(&f, "at once");
    ok(highest_in(8) <= 200000, "the cap never left");
    is_the_same(&f, "after looks at the board");
    kill_node(&r);
    ok(highest_in(2) <= 200000, "again");
    begin_life(&r);
    ok(highest_in(30) <= 200000, "the cap never left");
    is_the_same(&f, "after the second");
    j = node_look(r.node)->job;
    is_int((long long)node_look(r.node)->n_jobs, 1, "there is one job");
    ok(llabs(j->job->began_utc_ns - began) < (int64_t)NS_PER_S, "it began when it began");
    ok(j->energy_j > before_j + 2000, "its energy goes on: %.0f J after %.0f J",
       j->energy_j, before_j);
    ok(ledger_has("SELECT count(*) = 1 FROM job"), "the ledger has one job");
    ok(ledger_has("SELECT count(DISTINCT job) = 1 AND sum(kind <> 1) = 0 FROM energy"
                  " WHERE board = 1 AND begin_ms >= (SELECT min(begin_ms) FROM energy"
                  " WHERE kind = 1)"),
       "… and all that was booked of the board since it began there");
    ok(ledger_has("SELECT count(*) = 0 FROM event WHERE kind LIKE 'claim-lost'"),
       "nothing was lost");
    stop(f.child);
    pass(&r, 10);
    ok(!has_claim_of(f.claim, ANNA) && limit_of(&r, 0) == ORIGINAL_MW,
       "it ends: so does the claim");
    close_scene();
}

static void found_after(void)
{
    open_scene("… and is started again after the grace");
    struct found f = capped(120);
    kill_node(&r);
    pass(&r, 30);
    is_int(limit_of(&r, 0), ORIGINAL_MW, "the original is back");
    begin_life(&r);
    is_the_same(&f, "at once");
    for (int i = 0; i < 200 && limit_of(&r, 0) != 200000; i++)
        pass(&r, 0.5);
    is_int(limit_of(&r, 0), 200000, "in force again");
    pass(&r, 90);
    ok(!has_claim_of(f.claim, ANNA) && limit_of(&r, 0) == ORIGINAL_MW,
       "until its time, which has not moved");
    stop(f.child);
    close_scene();
}

static void found_left(void)
{
    open_scene("… and is told to leave its caps to the next one (SIGUSR2)");
    struct found f = capped(3600);
    node_leave_caps(r.node);
    end_node(&r);
    ok(highest_in(3) <= 200000, "the cap stays");
    begin_life(&r);
    ok(highest_in(10) <= 200000, "the cap never left");
    is_the_same(&f, "then");
    stop(f.child);
    close_scene();
}

static int read_later(pid_t pid, struct proc_facts *ret, void *user)
{
    int got = virtual_world_proc(pid, ret, user);

    ret->start += 7;
    return got;
}

/* What may have become of it while no daemon was there. */
static const struct {
    const char *name;
    bool reused, rebooted, ended, joined;
    const char *how; /* … and of the claim */
} fates[] = {
    {.name = "its pid is another process's", .reused = true, .how = "job ended"},
    {.name = "the machine has rebooted", .rebooted = true, .how = "restart"},
    {.name = "it has ended", .ended = true, .how = "job ended"},
    {.name = "another user computes there, too", .joined = true, .how = "right lost"},
};

static void found_lost(void)
{
    for (size_t i = 0; i < n_elements(fates); i++) {
        struct loop_child *other = NULL;
        char sql[200];
        open_scene("a found job with its user's cap, and no daemon");
        printf("# %s\n", fates[i].name);
        struct found f = capped(3600);
        kill_node(&r);
        if (fates[i].rebooted) {
            stop_guard(&r);
            r.boot++;
            (void)snprintf(r.boot_id, sizeof r.boot_id, "boot-%u", r.boot);
            start_guard(&r);
        }
        if (fates[i].ended)
            stop(take(f.child));
        other = fates[i].joined ? train("none", 0, ANNA + 1) : NULL;
        scene_read = fates[i].reused ? read_later : virtual_world_proc;
        begin_life(&r);
        pass(&r, 20);
        ok(!has_claim_of(f.claim, ANNA), "%s: her claim is over", fates[i].name);
        is_int(limit_of(&r, 0), ORIGINAL_MW, "… the original is back");
        ok(fates[i].joined || job_on(0) != f.job, "… it is not the same job");
        (void)snprintf(sql, sizeof sql,
                       "SELECT count(*) = 1 FROM claim WHERE id = %ju AND how = '%s'",
                       (uintmax_t)f.claim, fates[i].how);
        ok(ledger_has(sql), "… the ledger says so (%s)", fates[i].how);
        ok(ledger_has("SELECT count(*) = 1 FROM event WHERE uid = 1000 AND"
                      " kind IN ('claim-lost', 'withdrawn')"),
           "… and whose it was: an event");
        scene_read = virtual_world_proc;
        stop(f.child);
        stop(other);
        close_scene();
    }
}

/* A number out of the ledger as it stands. */
static long long booked(const char *sql)
{
    char path[160], dir[100], text[100];
    sqlite3 *db = NULL;

    life_dir(&r, r.life, dir);
    (void)snprintf(path, sizeof path, "%s/ledger.sqlite", dir);
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK)
        query(&r, db, sql, text);
    (void)sqlite3_close(db);
    return atoll(text);
}

/* UTC is 400 days ahead for an hour, in which a daemon is killed and another begins. */
static void clock_set(void)
{
    open_scene("UTC is set 400 days forward, and back");
    begin_life(&r);
    claim(0, CLAIM_HARD, 200000);
    pass(&r, 3600);
    loop_shift_utc(r.loop, 400 * 86400 * (int64_t)NS_PER_S);
    pass(&r, 1800);
    is_int(limit_of(&r, 0), 200000, "a claim is in force");
    kill_node(&r);
    begin_life(&r);
    pass(&r, 1800);
    is_int(limit_of(&r, 0), 200000, "so it is after a restart");
    loop_shift_utc(r.loop, -400 * 86400 * (int64_t)NS_PER_S);
    pass(&r, 3600);
    is_int(booked("SELECT count(*) FROM energy WHERE res > 0"), 0, "no row is rolled up");
    is_int(booked("SELECT count(*) FROM (SELECT DISTINCT board, begin_ms / 60000 FROM"
                  " meter)") /
               10,
           2 * 3 * 60 / 10, "each minute of three hours is there, as it was booked");
    is_int(booked("SELECT count(*) FROM event WHERE kind = 'clock-set'"), 2,
           "and when the clock was set");
    is_int(booked("SELECT sum(ended_ms IS NULL) FROM claim WHERE kind = 'hard'"), 1,
           "the claim stands");
    close_scene();
}

/* Rows wait while the driver is loaded anew: a link stands in the ledger's place. */
static void no_ledger(void)
{
    char path[160], real[170], dir[100];

    open_scene("the driver is loaded anew while there is no ledger");
    begin_life(&r);
    life_dir(&r, r.life, dir);
    (void)snprintf(path, sizeof path, "%s/ledger.sqlite", dir);
    (void)snprintf(real, sizeof real, "%s.real", path);
    claim(0, CLAIM_HARD, 200000);
    pass(&r, 120);
    ok(rename(path, real) == 0 && symlink(real, path) == 0, "a link in its place");
    pass(&r, 300);
    uint64_t waited = node_look(r.node)->ledger_waiting;
    ok(!node_look(r.node)->ledger_up && waited > 20, "%u rows wait", (unsigned)waited);
    fault(&r, "reload");
    pass(&r, 120);
    ok(node_look(r.node)->ledger_waiting > waited, "they wait on: %u",
       (unsigned)node_look(r.node)->ledger_waiting);
    is_int(limit_of(&r, 0), 200000, "the claim is in force");
    ok(unlink(path) == 0 && rename(real, path) == 0, "it is back");
    pass(&r, 60);
    ok(node_look(r.node)->ledger_up, "and written: %s", node_look(r.node)->ledger);
    is_int((long long)node_look(r.node)->ledger_lost, 0, "no row is lost");
    ok(booked("SELECT count(DISTINCT begin_ms / 10000) FROM meter WHERE board = 1") >= 57,
       "nearly each ten seconds of ten minutes are there");
    is_int(limit_of(&r, 0), 200000, "the claim is in force still");
    is_int(booked("SELECT count(*) FROM claim WHERE ended_ms IS NULL AND kind = 'hard'"),
           1, "and open in the ledger, once");
    close_scene();
}

/* Nothing can be written, but what was is read. */
static void fill(bool full)
{
    disk.full = disk.made = full;
    disk.at = full;
    disk.n = 0;
}

static uint64_t begin_job(enum job_source source, uid_t uid, pid_t pid, size_t board)
{
    struct node_job ask = {.reg = {.source = source,
                                   .name = "a job",
                                   .uid = uid,
                                   .pid = pid,
                                   .boards = 1ull << board},
                           .page_fd = -1};
    uint64_t id = 0;
    uw_error err = {""};

    ok(node_job_begin(r.node, &root, &ask, &id, &err) == 0, "a job, %s, of uid %u %s",
       names_word(NAMES_JOB_SOURCE, source), (unsigned)uid, err.text);
    return id;
}

static uint64_t registered(size_t board)
{
    return begin_job(JOB_REGISTERED, ANNA, 0, board);
}

/* An administrator gives a board; who computes there has it no more than before. */
static void given(void)
{
    const struct view_job *v = NULL;

    open_scene("a board that an administrator gave, after a restart");
    begin_life(&r);
    (void)begin_job(JOB_RUN, ANNA, 0, 0);
    pass(&r, 5);
    kill_node(&r);
    begin_life(&r);
    pass(&r, 5);
    struct loop_child *child = train("resnet50", 0, ANNA + 1);
    uint64_t id = begin_job(JOB_RUN, ANNA + 1, loop_child_pid(child), 0);
    pass(&r, 20);
    for (size_t i = 0; i < node_look(r.node)->n_jobs; i++)
        if (node_look(r.node)->job[i].job->id == id)
            v = &node_look(r.node)->job[i];
    ok(v && v->job->n_pids > 0 && v->job->given == 0 && v->job->waits == 1,
       "another who computes there waits");
    stop(child);
    close_scene();
}

static bool runs(uint64_t job)
{
    for (size_t i = 0; i < node_look(r.node)->n_jobs; i++) {
        const struct job_entry *e = node_look(r.node)->job[i].job;
        if (e->id == job)
            return e->ended_ns == 0;
    }
    return false;
}

/* A claim and two jobs, of which the disk has the older half; id: the job that has begun.
 */
static uint64_t change_full(void)
{
    uw_error err = {""};
    uint64_t ends = registered(0), id = 0;

    pass(&r, 60);
    is_int(limit_of(&r, 0), 200000, "a claim is in force");
    id = cap(0)->claims->claim[0].id;
    fill(true);
    pass(&r, 30);
    is_int(node_withdraw(r.node, &root, id, &err), 0, "it is withdrawn %s", err.text);
    is_int(node_job_end(r.node, &root, ends, &err), 0, "the job ends %s", err.text);
    id = registered(1);
    pass(&r, 30);
    ok(!node_look(r.node)->ledger_up, "which is not in the ledger");
    is_int((long long)cap(0)->claims->n, 0, "no claim any more");
    return id;
}

/* What the file says is older than what the daemon knows. */
static void ended_full(void)
{
    open_scene("claims and jobs end and begin on a full disk, and the driver is loaded "
               "anew");
    begin_life(&r);
    claim(0, CLAIM_HARD, 200000);
    claim(1, CLAIM_HARD, 190000);
    uint64_t begins = change_full();
    fault(&r, "reload");
    pass(&r, 120);
    ok(!node_look(r.node)->ledger_up, "the disk is full still");
    ok(cap(0)->claims->n == 0 && limit_of(&r, 0) > 200000, "nor afterwards, and no cap");
    ok(cap(1)->claims->n == 1 && limit_of(&r, 1) == 190000, "one that stands goes on");
    ok(!runs(begins - 1), "the job that ended runs no more");
    ok(runs(begins), "the one that has begun goes on");
    fill(false);
    pass(&r, 60);
    ok(node_look(r.node)->ledger_up, "written again: %s", node_look(r.node)->ledger);
    is_int(booked("SELECT count(*) FROM claim WHERE ended_ms IS NULL AND kind = 'hard'"),
           1, "the ledger has the claim that stands");
    is_int(booked("SELECT max(id) FROM job WHERE ended_ms IS NULL"), (long long)begins,
           "and the job");
    close_scene();
}

/* The rows that waited are written before anything is taken over. */
static void written_meanwhile(void)
{
    char path[160], real[170], dir[100];

    open_scene("there is a ledger again once the driver is loaded anew");
    begin_life(&r);
    life_dir(&r, r.life, dir);
    (void)snprintf(path, sizeof path, "%s/ledger.sqlite", dir);
    (void)snprintf(real, sizeof real, "%s.real", path);
    claim(0, CLAIM_HARD, 200000);
    pass(&r, 60);
    ok(rename(path, real) == 0 && symlink(real, path) == 0, "a link in its place");
    pass(&r, 30);
    claim(1, CLAIM_HARD, 190000);
    uint64_t begins = registered(1);
    pass(&r, 30);
    fault(&r, "reload");
    for (int i = 0; i < 9000 && strcmp(cap(0)->text, "waiting for the boards") != 0; i++)
        pass(&r, 0.001);
    is_str(cap(0)->text, "waiting for the boards", "boards are away");
    ok(unlink(path) == 0 && rename(real, path) == 0, "it is back meanwhile");
    pass(&r, 120);
    ok(node_look(r.node)->ledger_up, "and written: %s", node_look(r.node)->ledger);
    is_int(limit_of(&r, 0), 200000, "the claim of before is in force");
    is_int(limit_of(&r, 1), 190000, "so is the one that was made meanwhile");
    ok(runs(begins), "the job that was begun meanwhile runs");
    is_int(booked("SELECT count(*) FROM claim WHERE ended_ms IS NULL AND kind = 'hard'"),
           2, "both are open in the ledger");
    close_scene();
}

int main(void)
{
    log_set_level((enum log_level)(getenv("CHAOS_LOG") ? LOG_LEVEL_DEBUG : 0));
    fault_begin();
    reloaded();
    foreign();
    waiting();
    blind();
    energy();
    searching();
    left();
    found_within();
    found_after();
    found_left();
    found_lost();
    clock_set();
    no_ledger();
    given();
    ended_full();
    written_meanwhile();
    return done();
}
