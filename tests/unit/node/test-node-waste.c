/* Boards that work, that are held, that a job has without a process, and nobody's: what
 * the node says of them, what it books, and what a restart keeps.
 */
#include <math.h>
#include <sqlite3.h>

#include "node-scene.h"

enum { ANNA = 1000, PAUSE_S = WASTE_AFTER_S };

static const struct node_who root = {
    .uid = 0, .admin = true, .may_claim = true, .name = "user root"};

/* A process of anna's that computes nothing. */
static struct loop_child *sleeper(const char *gpus)
{
    char owner[40];
    const char *argv[] = {"underwatt-sim", "train", "--workload", "none",
                          "--gpus",        gpus,    NULL};
    const char *env[] = {owner, VIRTUAL_CGROUP "=/user.slice/user-1000.slice/s.scope",
                         NULL};
    struct loop_child_opts opts = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    struct loop_child *child = NULL;

    (void)snprintf(owner, sizeof owner, VIRTUAL_UID "=%d", ANNA);
    (void)loop_child_new(w.loop, &opts, nobody_cares, NULL, &child, NULL);
    return child;
}

/* Trains with pauses of `gap` in each epoch of a minute or two. */
static struct loop_child *paused(const char *gpus, const char *phases)
{
    const char *argv[] = {
        "underwatt-sim", "train",   "--workload", "resnet50", "--gpus", gpus, "--epochs",
        "100000",        "--steps", "400",        "--phases", phases,   NULL};
    const char *env[] = {VIRTUAL_UID "=1000",
                         VIRTUAL_CGROUP "=/user.slice/user-1000.slice/p.scope", NULL};
    struct loop_child_opts opts = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    struct loop_child *child = NULL;

    (void)loop_child_new(w.loop, &opts, nobody_cares, NULL, &child, NULL);
    return child;
}

static void end(struct loop_child *child)
{
    (void)loop_child_kill(child, 9);
    loop_child_free(child);
}

static const struct view_board *board(size_t i)
{
    return &node_look(w.node)->board[i];
}

static double booked(const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    double v = -1;

    if (sqlite3_open(w.config.ledger.path, &db) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        v = sqlite3_column_double(stmt, 0);
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    return v;
}

static bool adds_up(size_t i)
{
    const struct view_board *b = board(i);
    double sum = 0;

    for (int k = 0; k < WASTE_N; k++)
        sum += b->use_j[k];
    return fabs(sum - b->energy_j) < 1e-6 * b->energy_j;
}

/* Board 0 trains, 1 is held, 2 is a job's without a process, 3 nobody's. */
static void classes(void)
{
    struct node_job ask = {
        .reg = {.source = JOB_REGISTERED, .name = "slurm:7", .uid = ANNA, .boards = 4},
        .page_fd = -1};
    uint64_t id = 0;

    ok(start_node(), "a node");
    run_s(60);
    struct loop_child *job = train("0", ANNA), *held = sleeper("1");
    ok(node_job_begin(w.node, &root, &ask, &id, NULL) == 0, "a job that has board 2");
    run_s(PAUSE_S - 20);
    ok(board(0)->use == WASTE_WORKING && board(1)->use == WASTE_WORKING &&
           board(2)->use == WASTE_WORKING,
       "for as long as a pause nothing is said");
    ok(board(3)->use == WASTE_NOBODY, "but that board 3 is nobody's");
    run_s(1000);
    is_int(board(0)->use, WASTE_WORKING, "a job that trains works");
    is_int(board(1)->use, WASTE_HELD, "a process that computes nothing holds");
    is_int(board(2)->use, WASTE_ALLOCATED, "a job without a process has its board");
    is_near(board(1)->use_for_s, PAUSE_S + 980, 30, "since its first second");
    ok(board(1)->memory_bytes > 1 << 20, "with memory");
    is_near(board(2)->use_for_s, PAUSE_S + 980, 30, "the other, too");
    is_near(board(1)->use_s[WASTE_HELD], 980, 25, "what is beyond a pause is booked");
    is_near(board(1)->use_j[WASTE_HELD],
            board(1)->use_s[WASTE_HELD] * board(1)->power_w.v, 2500, "with its energy");
    is_near(board(0)->use_s[WASTE_WORKING], 1270, 30, "training has no other time");
    ok(adds_up(0) && adds_up(1) && adds_up(2) && adds_up(3), "the parts are the whole");
    run_s(20);
    end(job);
    end(held);
}

static void restart(void)
{
    double held_s = board(1)->use_s[WASTE_HELD], held_j = board(1)->use_j[WASTE_HELD];

    ok(held_s > 900, "%.0f s were held", held_s);
    node_free(take(w.node));
    double s = booked("SELECT sum(span_ms) * 1e-3 FROM energy WHERE waste = 2");
    is_near(s, held_s, 25, "so long in the ledger");
    is_near(booked("SELECT count(DISTINCT job) FROM energy WHERE waste NOT NULL"), 2, 0,
            "of two jobs");
    is_near(booked("SELECT count(*) FROM energy WHERE waste NOT NULL AND kind <> 1"), 0,
            0, "and of jobs alone");
    ok(start_node(), "the node again");
    is_near(board(1)->use_s[WASTE_HELD], s, 0.01, "it goes on from there");
    ok(board(1)->use_j[WASTE_HELD] >= held_j - 1e3, "with the energy");
    ok(adds_up(0) && adds_up(1) && adds_up(2), "which is the whole again");
    run_s(60);
    ok(board(1)->use == WASTE_NOBODY, "and the board is nobody's by now");
}

/* Checkpoints of 4 min and loading of 2 are pauses. */
static void pauses(void)
{
    struct loop_child *job = paused("0", "load=2m,train,validate=5%,checkpoint=2m");

    ok(start_node(), "a node");
    run_s(4 * 3600);
    is_near(board(0)->use_s[WASTE_HELD] + board(0)->use_s[WASTE_UNDER] +
                board(0)->use_s[WASTE_ALLOCATED],
            0, 0, "4 h with pauses of 4 min: nothing is said");
    ok(board(0)->use_s[WASTE_WORKING] > 14000, "all of it works");
    end(job);
}

int main(void)
{
    log_set_level((enum log_level)0);
    if (ok(open_world(), "a world")) {
        classes();
        restart();
    }
    close_world();
    if (ok(open_world(), "another"))
        pauses();
    close_world();
    return done();
}
