/* The whole node in virtual time over simulated boards: who may claim what, time, restart
 * with take-over, reload, dry run, books.
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "node-scene.h"
#include "node/node-inside.h"
#include "tuner/searches-inside.h"

enum { ANNA = 1000, EVE = 1001 };

static const struct node_who anna = {.uid = ANNA, .may_claim = true, .name = "user anna"},
                             eve = {.uid = EVE, .may_claim = true, .name = "user eve"},
                             root = {.uid = 0,
                                     .admin = true,
                                     .may_claim = true,
                                     .name = "user root"},
                             reader = {.uid = ANNA, .name = "token grafana"};

/* ---- who may what ---- */

static void refuse(const struct node_who *who, const char *board, enum claim_kind kind,
                   uint32_t mw, double ttl_s, int want, const char *words,
                   const char *name)
{
    uint64_t id = 77;
    uw_error err;
    int r = claim(who, board, kind, mw, ttl_s, &id, &err);

    if (!ok(r == want && id == 77 && strstr(err.text, words), "refused: %s", name))
        printf("# r %d: %s\n", r, err.text);
}

static void rights(void)
{
    struct loop_child *job = train("0", ANNA);
    uint64_t id = 0, hard = 0;
    uw_error err;

    w.config.caps.from.mw = 160000;
    ok(start_node(), "rights: a node");
    run_s(20);
    const struct node_view *v = node_look(w.node);
    ok(v->n_jobs == 1 && v->job[0].job->uid == ANNA, "anna's job is found");
    id = v->job[0].job->id;
    ok(node_job_leave(w.node, &anna, id, loop_child_pid(job), &err) == -EPERM,
       "which she did not begin and may not end: %s", err.text);
    ok(node_job_leave(w.node, &root, id, loop_child_pid(job), &err) == -ENOENT &&
           node_look(w.node)->n_jobs == 1,
       "its processes have not joined it: %s", err.text);
    ok(v->n_boards == BOARDS && !v->read_only, "four boards, an actuator");

    refuse(&eve, "0", CLAIM_NAMED, 200000, 0, -EPERM, "user eve may not claim on GPU 0",
           "eve on anna's board");
    refuse(&anna, "1", CLAIM_NAMED, 200000, 0, -EPERM, "may not claim on GPU 1",
           "anna where nobody is");
    refuse(&anna, "0", CLAIM_HARD, 200000, 0, -EPERM, "not make hard claims",
           "a user's hard one");
    refuse(&reader, "0", CLAIM_NAMED, 200000, 0, -EPERM, "may only read",
           "a reader's claim");
    refuse(&anna, "0", CLAIM_NAMED, 159000, 0, -ERANGE,
           "159 W is outside 160..300 W, the range for users", "under what users may");
    refuse(&anna, "0", CLAIM_NAMED, 301000, 0, -ERANGE, "301 W is outside",
           "over what the board can");
    refuse(&anna, "0", CLAIM_NAMED, 0, 0, -EINVAL, "needs a limit above", "no watts");
    refuse(&anna, "0", CLAIM_NAMED, 200000, 100000, -ERANGE, "too long for a user",
           "too long");
    refuse(&anna, "9", CLAIM_NAMED, 200000, 0, -ENOENT, "9", "no such board");
    refuse(&anna, "0,1", CLAIM_NAMED, 200000, 0, -ENOENT, "0,1", "two boards");
    refuse(&anna, "0", (enum claim_kind)9, 200000, 0, -EINVAL, "soft, named or hard",
           "no such kind");
    refuse(&root, NULL, CLAIM_NAMED, 200000, 0, -EINVAL, "names a GPU or a job",
           "neither board nor job");
    run_s(11);
    uint64_t rows = node_look(w.node)->ledger_rows;
    for (unsigned i = 0; i < 500; i++) {
        struct node_claim ask = {.job = 1000 + i, .cap = {.mw = 200000}};
        ask.kind = CLAIM_NAMED;
        (void)node_claim(w.node, &eve, &ask, NULL, &err);
    }
    run_s(11);
    rows = node_look(w.node)->ledger_rows - rows;
    ok(rows < 100,
       "500 refusals of one cause are not 500 rows of the ledger (%" PRIu64 ")", rows);
    ok(in_force(0) == ORIGINAL_MW, "nothing of that moved a cap");

    ok(claim(&anna, "0", CLAIM_NAMED, 200000, 0, &id, &err) == 0, "anna claims 200 W");
    run_s(90); /* 100 W at 1.5 W/s */
    is_int(in_force(0), 200000, "… and it is in force after its ramp");
    ok(in_force(1) == ORIGINAL_MW, "… there alone");
    v = node_look(w.node);
    is_int((long long)v->board[0].cap.verdict.claim, (long long)id, "… explained by it");

    ok(claim(&root, "0", CLAIM_HARD, 150000, 30, &hard, &err) == 0,
       "root claims 150 W, hard, for 30 s");
    run_s(2);
    is_int(in_force(0), 150000, "… in force at once");
    ok(node_withdraw(w.node, &eve, id, &err) == -EPERM, "eve may not withdraw it");
    ok(node_withdraw(w.node, &anna, hard, &err) == -EPERM, "anna may not, root's");
    ok(node_withdraw(w.node, &anna, 4711, &err) == -ENOENT, "no such claim");
    run_s(31);
    is_int(in_force(0), 200000, "over: anna's again");
    ok(node_withdraw(w.node, &anna, id, &err) == 0, "anna withdraws her own");
    run_s(4);
    is_int(in_force(0), ORIGINAL_MW, "… the original is back");

    for (unsigned i = 0; i < 8; i++)
        (void)claim(&anna, "0", CLAIM_NAMED, 200000, 600, &id, &err);
    refuse(&anna, "0", CLAIM_NAMED, 200000, 600, -E2BIG, "claims on it",
           "a user's ninth claim");
    ok(claim(&root, "0", CLAIM_HARD, 180000, 5, &hard, &err) == 0,
       "… root finds room all the same");
    ok(loop_child_kill(job, 9) == 0, "anna's job is killed");
    run_s(15);
    v = node_look(w.node);
    is_int((long long)v->board[0].n_jobs, 0, "… and gone");
    refuse(&anna, "0", CLAIM_NAMED, 200000, 0, -EPERM, "may not claim",
           "anna, now that no job of hers is there");
    ok(w.told[NODE_EVENT_SAMPLES] > 100 && w.told[NODE_EVENT_CAPS] > 5 &&
           w.told[NODE_EVENT_JOB] >= 1,
       "the listener heard of samples, caps and jobs (%u, %u, %u)", w.told[2], w.told[0],
       w.told[1]);
    loop_child_free(job);
}

/* ---- jobs, books, restart ---- */

static uint64_t begin_job(const struct node_who *who, enum job_source source, pid_t pid,
                          uint64_t boards, int want)
{
    static const struct label labels[] = {{"project", "llm"}};
    struct node_job ask = {.reg = {.source = source,
                                   .name = "slurm:42",
                                   .uid = ANNA,
                                   .boards = boards,
                                   .pid = pid,
                                   .label = labels,
                                   .n_labels = 1},
                           .page_fd = -1};
    uint64_t id = 0;
    uw_error err = {""};
    int r = node_job_begin(w.node, who, &ask, &id, &err);

    if (!ok(r == want, "%s begins a job (%s)", who->name, strerror(-want)))
        printf("# r %d: %s\n", r, err.text);
    return id;
}

static const struct view_job *find_job(const struct node_view *v, uint64_t id)
{
    for (size_t i = 0; i < v->n_jobs; i++)
        if (v->job[i].job->id == id)
            return &v->job[i];
    return NULL;
}

static void check_books(const char *when)
{
    const struct node_view *v = node_look(w.node);
    double worst = 0;

    for (size_t i = 0; i < v->n_boards; i++) {
        const struct view_board *b = &v->board[i];
        double sum = b->attributed_j + b->idle_j + b->unattributed_j;
        worst = fmax(worst, fabs(sum - b->energy_j) / fmax(b->energy_j, 1));
    }
    ok(worst <= 1e-3, "%s: parts add up to the whole (off by %.2g)", when, worst);
}

static void books_and_restart(void)
{
    struct loop_child *job = train("0,1", ANNA);
    double true_j = 0, seen_j = 0;
    uint64_t claim_id = 0, short_id = 0;
    uw_error err;

    ok(start_node(), "books: a node");
    (void)begin_job(&eve, JOB_REGISTERED, 0, 3, -EPERM);
    uint64_t id = begin_job(&root, JOB_REGISTERED, 0, 3, 0);
    ok(claim(&anna, "1", CLAIM_NAMED, 200000, 3600, &claim_id, &err) == 0,
       "anna may claim on what the scheduler gave her %s", err.text);
    ok(claim(&root, "3", CLAIM_HARD, 150000, 400, &short_id, &err) == 0,
       "root claims for 400 s");
    for (size_t i = 0; i < BOARDS; i++)
        true_j -= virtual_world_true_j(w.sim, i);
    const struct node_view *v = node_look(w.node);
    for (size_t i = 0; i < BOARDS; i++)
        seen_j -= v->board[i].energy_j;
    run_s(300);
    for (size_t i = 0; i < BOARDS; i++)
        true_j += virtual_world_true_j(w.sim, i);
    v = node_look(w.node);
    for (size_t i = 0; i < BOARDS; i++)
        seen_j += v->board[i].energy_j;
    is_near(seen_j / true_j, 1, 0.06, "300 s are booked (an interval may be under way)");
    check_books("before the restart");
    const struct view_job *j = find_job(v, id);
    ok(j && j->energy_j > 0.5 * (v->board[0].energy_j + v->board[1].energy_j),
       "the job has most of its boards' energy");
    double job_j = j ? j->energy_j : 0, board_j = v->board[0].energy_j;
    uint64_t rows = v->ledger_rows;
    ok(rows > 0 && v->ledger_failures == 0, "rows were written (%" PRIu64 ")", rows);
    is_int(in_force(1), 200000, "anna's cap is in force");

    /* as by kill -9: nothing is ended in order */
    node_free(take(w.node));
    run_s(3);
    ok(start_node(), "restart: a node");
    v = node_look(w.node);
    j = find_job(v, id);
    ok(j != NULL, "the job is taken over under its id");
    ok(j && j->job->uid == ANNA && j->job->n_labels == 1 && j->job->boards == 3,
       "… with user, label and boards");
    ok(j && j->energy_j >= 0.9 * job_j, "… and its energy (%.0f J of %.0f J)",
       j ? j->energy_j : 0, job_j);
    ok(v->board[0].energy_j >= 0.9 * board_j, "the board's counter goes on");
    run_s(90);
    is_int(in_force(1), 200000, "anna's cap is in force again");
    is_int((long long)v->board[1].cap.verdict.claim, (long long)claim_id,
           "… by the same claim");
    is_int(in_force(3), 150000, "root's, too");
    run_s(60);
    is_int(in_force(3), ORIGINAL_MW, "… and it ends when it should have ended");
    uint64_t more = 0;
    (void)claim(&root, "2", CLAIM_NAMED, 200000, 10, &more, &err);
    ok(more > short_id, "ids go on (%" PRIu64 " after %" PRIu64 ")", more, short_id);
    check_books("after the restart");

    ok(node_job_end(w.node, &anna, id, &err) == -EPERM,
       "anna may not end the scheduler's");
    ok(node_job_leave(w.node, &anna, id, loop_child_pid(job), &err) == -EPERM &&
           find_job(node_look(w.node), id),
       "nor have a process leave it: %s", err.text);
    ok(node_job_end(w.node, &root, id, &err) == 0, "root may");
    run_s(15);
    is_int((long long)node_look(w.node)->board[1].cap.verdict.claim, 0,
           "anna's claim ends with the job that gave her the right");
    uint64_t kept = 0;
    ok(claim(&root, "1", CLAIM_NAMED, 210000, 3600, &kept, &err) == 0, "root claims");
    run_s(1);
    ok(node_end(w.node, on_node_end, NULL) == 0, "the node is told to end");
    for (unsigned i = 0; i < 10 && !w.ended; i++)
        run_s(1);
    ok(w.ended, "… and does");
    node_free(take(w.node));
    run_s(1);
    ok(start_node(), "once more");
    v = node_look(w.node);
    ok(!find_job(v, id), "a job that has ended is not taken over");
    is_int((long long)v->board[1].cap.verdict.claim, (long long)kept,
           "root's claim outlives an orderly restart");
    (void)loop_child_kill(job, 9);
    loop_child_free(job);
}

/* ---- a ledger that is damaged while it is used ---- */

/* Its pages are overwritten; a write by another makes the writer read them anew. */
static void damage_ledger(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    char junk[4096];
    off_t page = 0;

    (void)sqlite3_open(path, &db);
    (void)sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    if (sqlite3_prepare_v2(db,
                           "SELECT rootpage FROM sqlite_master WHERE name ="
                           " 'energy_by_age'",
                           -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        page = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    memset(junk, 0x5a, sizeof junk);
    ok(page > 0 &&
           pwrite(fd, junk, sizeof junk, (page - 1) * 4096) == (ssize_t)sizeof junk,
       "a page is hit");
    (void)close(fd);
    db = NULL;
    (void)sqlite3_open(path, &db);
    (void)sqlite3_exec(db, "INSERT INTO event VALUES(1, 1, 'x', NULL, NULL, NULL)", NULL,
                       NULL, NULL);
    (void)sqlite3_close(db);
}

static void damaged(void)
{
    struct loop_child *job = train("0,1", ANNA);
    char path[128], command[200];
    uint64_t named = 0, hard = 0, over = 0;
    uw_error err;

    (void)snprintf(path, sizeof path, "%s/ledger.sqlite", w.dir);
    ok(start_node(), "a damaged ledger: a node");
    uint64_t id = begin_job(&root, JOB_REGISTERED, 0, 3, 0);
    ok(claim(&anna, "1", CLAIM_NAMED, 200000, 3600, &named, &err) == 0 &&
           claim(&root, "3", CLAIM_HARD, 150000, 400, &hard, &err) == 0 &&
           claim(&root, "2", CLAIM_HARD, 150000, 400, &over, &err) == 0,
       "three claims");
    run_s(30);
    ok(node_withdraw(w.node, &root, over, &err) == 0, "one is withdrawn");
    run_s(30);
    damage_ledger(path);
    run_s(40);
    (void)snprintf(command, sizeof command, "ls %s.damaged-* >/dev/null 2>&1", path);
    ok(system(command) == 0, "the old file is kept aside");
    is_int(in_force(1), 200000, "no cap has moved");

    node_free(take(w.node)); /* as by kill -9 */
    run_s(3);
    ok(start_node(), "restart: a node");
    run_s(90);
    const struct node_view *v = node_look(w.node);
    const struct view_job *j = find_job(v, id);
    ok(j && !j->job->ended_ns && j->job->uid == ANNA && j->job->n_labels == 1,
       "the job is taken over out of the new file");
    is_int((long long)v->board[1].cap.verdict.claim, (long long)named,
           "anna's claim, too");
    is_int((long long)v->board[3].cap.verdict.claim, (long long)hard, "and root's");
    is_int((long long)v->board[2].cap.verdict.claim, 0, "not the one that was withdrawn");
    is_int(in_force(1), 200000, "the cap is in force");
    run_s(240);
    is_int(in_force(3), ORIGINAL_MW, "root's claim ends when it should have ended");
    (void)loop_child_kill(job, 9);
    loop_child_free(job);
    node_free(take(w.node));
    (void)snprintf(command, sizeof command, "rm -f %s.damaged-*", path);
    (void)!system(command);
}

/* ---- trouble ---- */

static void trouble(void)
{
    uint64_t claims[2] = {0}, calls = 0;
    uw_error err;

    ok(start_node(), "trouble: a node");
    (void)claim(&root, "0", CLAIM_HARD, 200000, 0, &claims[0], &err);
    (void)claim(&root, "1", CLAIM_HARD, 200000, 0, &claims[1], &err);
    run_s(5);
    fault("1 hang for 60s");
    run_s(10);
    const struct node_view *v = node_look(w.node);
    ok(v->board[1].failures > 0, "a board hangs");
    calls = v->board[0].calls;
    run_s(10);
    v = node_look(w.node);
    ok(v->board[0].calls > calls + 3, "… the others are sampled on");
    ok(claim(&root, "2", CLAIM_HARD, 180000, 0, NULL, &err) == 0, "… and capped");
    run_s(3);
    is_int((long long)node_look(w.node)->board[2].cap.enforced_mw, 180000, "… at once");
    run_s(s_of_ns(VIRTUAL_HANG_NS) + 60);
    v = node_look(w.node);
    ok(v->board[1].failures == 0, "the call comes back: the board is sampled again");
    is_int(in_force(1), 200000, "… under its cap");
    fault("3 lost for 20s");
    run_s(10);
    v = node_look(w.node);
    ok(v->board[3].failures > 0 && v->board[0].failures == 0, "a board is lost, alone");
    ok(v->board[3].last.has == 0 && v->board[3].cap.enforced_mw == 0 &&
           v->board[0].last.has & GPU_HAS_TEMP && v->board[0].cap.enforced_mw,
       "… and its old readings and limit are not shown");
    run_s(30);
    v = node_look(w.node);
    ok(v->n_boards == BOARDS && v->board[3].failures == 0, "… and found again");

    uint64_t waits = 0;
    (void)claim(&root, "3", CLAIM_HARD, 190000, 0, &waits, &err);
    run_s(3);
    fault("3 lost for 20s");
    run_s(1);
    node_free(take(w.node));
    ok(start_node(), "a restart while a board is lost");
    run_s(60);
    v = node_look(w.node);
    ok(v->board[3].cap.can_cap && claims_find(v->board[3].cap.claims, waits),
       "… it is opened again, and its claim was kept");

    fault("reload");
    run_s(10);
    ok(in_force(0) == 200000 && in_force(1) == 200000,
       "the driver is loaded anew: claims are in force again (%u, %u mW)", in_force(0),
       in_force(1));
    v = node_look(w.node);
    is_int((long long)v->board[0].cap.verdict.claim, (long long)claims[0],
           "… by the claims that were there");
    fault("unload");
    run_s(20);
    v = node_look(w.node);
    ok(v->n_boards == 0 || v->board[0].failures > 0, "the driver is gone");
    fault("reload");
    run_s(30);
    v = node_look(w.node);
    ok(v->n_boards == BOARDS, "… and back, with its boards");
    is_int(in_force(0), 200000, "… and their caps");
}

/* ---- calls ---- */

static double calls_a_second(size_t board, double s)
{
    uint64_t before = node_look(w.node)->board[board].calls;

    run_s(s);
    return (double)(node_look(w.node)->board[board].calls - before) / s;
}

static void calls(void)
{
    ok(start_node(), "calls: a node");
    run_s(60);
    double rest = calls_a_second(3, 300), true_j = -virtual_world_true_j(w.sim, 3);
    ok(rest > 0.3 && rest <= 1.2, "a board at rest is asked %.2f times a second", rest);
    double seen_j = -node_look(w.node)->board[3].energy_j;
    run_s(600);
    true_j += virtual_world_true_j(w.sim, 3);
    seen_j += node_look(w.node)->board[3].energy_j;
    is_near(seen_j / true_j, 1, 0.04, "… and its energy is known all the same");
    struct loop_child *job = train("3", ANNA);
    run_s(9);
    ok(node_look(w.node)->n_jobs == 1, "a job is found within 9 s");
    run_s(60);
    true_j = -virtual_world_true_j(w.sim, 3);
    seen_j = -node_look(w.node)->board[3].energy_j;
    run_s(600);
    true_j += virtual_world_true_j(w.sim, 3);
    seen_j += node_look(w.node)->board[3].energy_j;
    is_near(seen_j / true_j, 1, 0.03, "its energy is known, too");
    (void)loop_child_kill(job, 9);
    loop_child_free(job);
    run_s(60);
    struct node_config config = w.config;
    config.sampling.rest_ns = 500 * NS_PER_MS;
    config.sampling.job_ns = config.sampling.search_ns = 100 * NS_PER_MS;
    uw_error err = {""};
    ok(node_configure(w.node, &config, &err) == 0 && calls_a_second(2, 60) > 1.5,
       "a board at rest is asked more often when the configuration says so");
}

/* ---- settings ---- */

static void settings(void)
{
    struct node_config c;
    uint64_t id = 0;
    uw_error err;

    w.config.node.dry_run = true;
    ok(start_node(), "dry run: a node");
    const struct node_view *v = node_look(w.node);
    ok(v->dry_run && v->read_only, "it says so");
    ok(claim(&root, "0", CLAIM_HARD, 160000, 0, &id, &err) == 0, "a claim is taken");
    run_s(5);
    v = node_look(w.node);
    ok(v->board[0].cap.verdict.target_mw == 160000, "… decided");
    is_int(in_force(0), ORIGINAL_MW, "… and not written");

    c = w.config;
    c.node.dry_run = false;
    ok(node_configure(w.node, &c, &err) == 0, "a new configuration: for real");
    run_s(5);
    is_int(in_force(0), 160000, "… what was claimed is in force");
    node_config_failed(w.node, "c.yaml:3: wrong");
    v = node_look(w.node);
    ok(v->config_loads == 2 && v->config_failures == 1, "loads and failures are counted");
    is_str(v->config_error, "c.yaml:3: wrong", "… with the reason");
    ok(node_configure(w.node, &c, &err) == 0 && !node_look(w.node)->config_error[0],
       "… until the next one is in force");
}

/* ---- percent of boards that differ ---- */

static uint64_t cap_job(double percent, int want)
{
    struct node_job ask = {
        .reg = {.source = JOB_REGISTERED, .name = "slurm:43", .uid = ANNA, .boards = 6},
        .cap = {.percent = percent},
        .page_fd = -1};
    uint64_t id = 0;
    uw_error err = {""};
    int r = node_job_begin(w.node, &root, &ask, &id, &err);

    if (!ok(r == want, "a job at %g %% (%s)", percent, strerror(-want)))
        printf("# r %d: %s\n", r, err.text);
    return id;
}

static void is_claimed(size_t board, uint32_t mw, const char *why)
{
    const struct claims *c = node_look(w.node)->board[board].cap.claims;

    is_int(in_force(board), mw, "GPU %zu: its own", board);
    is_str(c->n == 1 ? c->claim[0].why : "(no claim)", why, "and says what it is of");
}

static void looks(enum node_event event, const void *what, void *user)
{
    (void)what;
    (void)user;
    w.told[event] += node_look(w.node)->budget.budget_mw > 0;
}

/* Boards are opened anew under a budget, while somebody follows what happens. */
static void followed(void)
{
    w.config.budget_mw = 800000;
    ok(start_node(), "a budget: a node");
    run_s(5);
    is_int(in_force(0), 200000, "its share is in force");
    node_listen(w.node, looks, NULL);
    fault("reload");
    run_s(30);
    is_int(in_force(0), 200000, "… and again when the driver was loaded anew");
    ok(w.told[NODE_EVENT_CAPS] > 0, "somebody looked at the node at each event");
    node_listen(w.node, NULL, NULL);
}

/* The end of a scheduler's job is told while the boards are opened anew. */
static void early_end(void)
{
    const struct scheduler_ask ask = {
        .reg = {.name = "slurm:42", .uid = ANNA}, .n_minors = 1, .ask = "cap 200 W"};
    uint64_t id = 0;
    uw_error err = {""};

    ok(start_node(), "an early end: a node");
    ok(node_scheduler_put(w.node, &root, &ask, &id, &err) >= 0, "a job %s", err.text);
    run_s(5);
    is_int(in_force(0), 200000, "its cap is in force");
    fault("reload");
    for (unsigned i = 0; i < 2000 && node_boards(w.node); i++)
        run_s(0.01);
    ok(!node_boards(w.node), "no board is open");
    is_int(node_scheduler_end(w.node, &anna, "slurm:42", &err), -EPERM,
           "its user may not end it");
    is_int(node_scheduler_end(w.node, &root, "slurm:42", &err), 0, "its end is told");
    run_s(30);
    const struct view_job *j = find_job(node_look(w.node), id);
    ok(!j || j->job->ended_ns, "the job is over when they are open");
    is_int(in_force(0), ORIGINAL_MW, "and the original limit is back");
}

/* It becomes known that a job that is searched runs in a scheduler's of another class. */
static void outer_class(void)
{
    const struct scheduler_ask outer = {.reg = {.name = "slurm:44", .uid = ANNA},
                                        .n_minors = 1,
                                        .ask = "",
                                        .cls = "batch"};
    const struct node_job inner = {
        .reg = {.source = JOB_REGISTERED, .name = "train", .uid = ANNA, .boards = 1},
        .search = true,
        .goal = {.kind = GOAL_EDP},
        .page_fd = -1};
    uint64_t id = 0, outer_id = 0;
    uw_error err = {""};

    w.config.caps.cls[w.config.caps.n_classes++] =
        (struct config_class){"batch", {.floor = 0.7}};
    ok(start_node(), "classes: a node");
    ok(node_job_begin(w.node, &root, &inner, &id, &err) == 0, "a job %s", err.text);
    ok(node_scheduler_put(w.node, &root, &outer, &outer_id, &err) >= 0, "another %s",
       err.text);
    const struct job_search *s = searches_find(w.node->searches, id);
    ok(s && s->ask.cls && s->ask.cls->floor != 0.7, "its search has the default class");
    if (!s || !s->ask.cls)
        return;
    struct job_entry entry = *roster_find(w.node->roster, id);
    entry.within = outer_id;
    ok(node_give_goal(w.node, &entry, job_records_find(w.node->records, id), &err) == 0,
       "within the other one it is given its goal %s", err.text);
    ok(s->ask.cls->floor == 0.7 && s->ask.goal.kind == GOAL_EDP, "and that one's class");
}

static void mixed(void)
{
    ok(start_node(), "boards that differ: a node");
    uint64_t id = cap_job(85, 0);
    run_s(120);
    is_claimed(1, 255000, "85 % of this board's default limit, 300 W");
    is_claimed(2, 221000, "85 % of this board's default limit, 260 W");
    is_int(in_force(0), ORIGINAL_MW, "a board of no job's is left alone");
    node_free(take(w.node));
    run_s(3);
    ok(start_node(), "restart: a node");
    run_s(120);
    is_claimed(1, 255000, "85 % of this board's default limit, 300 W");
    is_claimed(2, 221000, "85 % of this board's default limit, 260 W");
    uw_error err = {""};
    ok(node_job_end(w.node, &root, id, &err) == 0, "the job ends");
    run_s(10);
    (void)cap_job(10, -ERANGE);
    (void)cap_job(40, 0);
    run_s(160);
    is_claimed(1, 150000,
               "40 % of this board's default limit, 300 W, raised to its minimum");
    is_claimed(2, 104000, "40 % of this board's default limit, 260 W");
}

int main(void)
{
    static void (*const parts[])(void) = {
        rights,   books_and_restart, damaged,   trouble,     calls,
        settings, followed,          early_end, outer_class, mixed};

    log_set_level((enum log_level)0);
    for (size_t i = 0; i < n_elements(parts); i++) {
        if (parts[i] == mixed)
            scene_boards = "boards: [{model: v100, count: 2}, {model: rtx6000}]\n";
        if (!ok(open_world(), "a world"))
            break;
        parts[i]();
        close_world();
    }
    return done();
}
