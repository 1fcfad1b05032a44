/* A claim holds only while the right to it does: boards that were named before anybody
 * else came are no weapon.
 */
#include <sqlite3.h>

#include "node-scene.h"

enum { ANNA = 1000, BERT = 1001 };

static const struct node_who root = {.admin = true, .may_claim = true, .name = "root"};
static const struct node_who chief = {
    .uid = 1002, .admin = true, .may_claim = true, .name = "user chief"};
static const struct node_who bert = {.uid = BERT, .may_claim = true, .name = "user bert"};
static const struct node_who anna = {.uid = ANNA, .may_claim = true, .name = "user anna"};

static uint64_t begin(const struct node_who *who, const struct node_job *ask)
{
    struct node_job copy = *ask;
    uint64_t id = 0;
    uw_error err = {""};

    copy.reg.name = "sleep";
    copy.page_fd = -1;
    if (!ok(node_job_begin(w.node, who, &copy, &id, &err) == 0, "%s begins a job",
            who->name))
        printf("# %s\n", err.text);
    return id;
}

static unsigned claims_of(uid_t uid, size_t board)
{
    const struct claims *c = node_look(w.node)->board[board].cap.claims;
    unsigned n = 0;

    for (size_t i = 0; i < c->n; i++)
        n += c->claim[i].uid == uid;
    return n;
}

static const struct searches_view *search_of(uint64_t job)
{
    const struct node_view *v = node_look(w.node);

    for (size_t i = 0; i < v->n_jobs; i++)
        if (v->job[i].job->id == job)
            return &v->job[i].search;
    return NULL;
}

/* Bert sleeps on all boards and caps them in each way there is. */
static void squatting(void)
{
    struct loop_child *his = train("2", BERT), *hers = NULL;
    pid_t pid = loop_child_pid(his);
    struct node_job run = {
        .reg = {.source = JOB_RUN, .uid = BERT, .boards = 1, .pid = pid},
        .cap = {.percent = 60}};
    uint64_t id = 0, late = 0;
    uw_error err;

    ok(start_node(), "a node");
    run_s(10);
    uint64_t capped = begin(&bert, &run);
    run.reg.boards = 8;
    run.cap.percent = 0;
    (void)begin(&bert, &run);
    ok(claim(&bert, "3", CLAIM_NAMED, 160000, 3600, &id, &err) == 0, "bert claims on 3");
    ok(claim(&bert, "0", CLAIM_SOFT, 170000, 3600, &id, &err) == 0, "and, softly, on 0");
    ok(claim(&root, "3", CLAIM_NAMED, 290000, 3600, &id, &err) == 0, "root on 3, too");
    ok(claim(&chief, "3", CLAIM_NAMED, 280000, 3600, &id, &err) == 0, "and the chief");
    run_s(120);
    ok(in_force(0) <= 180000 && in_force(3) == 160000, "he has his caps: %u, %u mW",
       in_force(0), in_force(3));
    hers = train("0,3", ANNA);
    run_s(8);
    ok(claims_of(BERT, 0) == 0 && claims_of(BERT, 3) == 0,
       "anna trains there: none of his claims stands");
    is_int(in_force(0), ORIGINAL_MW, "the original is back");
    is_int(in_force(3), 280000, "where others claim, theirs");
    ok(claims_of(0, 3) == 1 && claims_of(chief.uid, 3) == 1, "administrators' stand");
    const struct view_board *b = &node_look(w.node)->board[3];
    ok(b->lost_ns && strstr(b->lost_text, "user bert") && strstr(b->lost_text, "160 W"),
       "and it is told why: %s", b->lost_ns ? b->lost_text : "(not)");
    ok(strncmp(search_of(capped)->state, "not capped: another user computes on GPU 0",
               42) == 0,
       "his job's cap by name waits: %s", search_of(capped)->state);
    ok(claim(&bert, "3", CLAIM_NAMED, 160000, 60, &late, &err) == -EPERM,
       "he may not claim there again");
    ok(claim(&anna, "0", CLAIM_NAMED, 290000, 60, &late, &err) == 0,
       "she may, who computes there alone");
    (void)loop_child_kill(hers, 9);
    run_s(150);
    ok(claims_of(ANNA, 0) == 0 && claims_of(BERT, 0) == 1 && in_force(0) == 180000,
       "she has gone: his job's cap by name is walked to again");
    (void)loop_child_kill(his, 9);
    run_s(10);
    loop_child_free(hers);
    loop_child_free(his);
}

static const struct job_entry *entry_of(uint64_t job)
{
    const struct node_view *v = node_look(w.node);

    for (size_t i = 0; i < v->n_jobs; i++)
        if (v->job[i].job->id == job)
            return v->job[i].job;
    return NULL;
}

/* Bert has named the board that anna runs her training on, and computes elsewhere. */
static void named_twice(void)
{
    struct loop_child *his = train("2", BERT), *hers = NULL;
    struct node_job run = {.reg = {.source = JOB_RUN, .uid = BERT, .boards = 1},
                           .cap = {.percent = 60}};

    ok(start_node(), "a node");
    run_s(10);
    run.reg.pid = loop_child_pid(his);
    uint64_t berts = begin(&bert, &run);
    run_s(120);
    is_int(in_force(0), 180000, "his cap by name is in force");
    hers = train("0", ANNA);
    run.reg.uid = ANNA;
    run.reg.pid = loop_child_pid(hers);
    run.cap.percent = 90;
    uint64_t annas = begin(&anna, &run);
    ok(entry_of(annas)->waits == 1 &&
           strstr(entry_of(annas)->held, "GPU 0 belongs to job"),
       "it waits for the board: %s", entry_of(annas)->held);
    run_s(8);
    ok(entry_of(annas)->given == 1 && entry_of(berts)->given == 0, "she computes there");
    ok(claims_of(BERT, 0) == 0, "his cap is withdrawn");
    ok(in_force(0) > 180000, "and not in force: %u mW", in_force(0));
    run_s(120);
    ok(in_force(0) == 270000 && claims_of(BERT, 0) == 0, "hers is");
    (void)loop_child_kill(hers, 9);
    run_s(150);
    ok(claims_of(ANNA, 0) == 0 && entry_of(berts)->given == 1 && in_force(0) == 180000,
       "she has gone: the board is his again, and his cap");
    (void)loop_child_kill(his, 9);
    run_s(10);
    loop_child_free(hers);
    loop_child_free(his);
}

/* Those that an administrator began or a scheduler registered keep theirs. */
static void registered(void)
{
    struct loop_child *his = train("2", BERT), *hers = NULL;
    pid_t pid = loop_child_pid(his);
    struct node_job job = {
        .reg = {.source = JOB_REGISTERED, .uid = BERT, .boards = 1, .pid = pid},
        .cap = {.percent = 60}};
    uint64_t id = 0;
    uw_error err;

    ok(start_node(), "a node");
    run_s(10);
    (void)begin(&root, &job);
    job.reg.source = JOB_RUN;
    job.reg.boards = 2;
    (void)begin(&chief, &job);
    ok(claim(&bert, "0", CLAIM_NAMED, 170000, 3600, &id, &err) == 0, "bert claims");
    run_s(120);
    hers = train("0,1", ANNA);
    run_s(8);
    ok(claims_of(BERT, 0) == 2 && in_force(0) == 170000, "a scheduler's job keeps both");
    ok(claims_of(BERT, 1) == 1 && in_force(1) == 180000, "an administrator's its cap");
    (void)loop_child_kill(hers, 9);
    (void)loop_child_kill(his, 9);
    run_s(10);
    loop_child_free(hers);
    loop_child_free(his);
}

/* A scheduler gives the board to somebody else. */
static void given_away(void)
{
    struct loop_child *his = train("2", BERT);
    struct node_job job = {.reg = {.source = JOB_REGISTERED, .uid = ANNA, .boards = 4}};
    uint64_t id = 0;
    uw_error err;

    ok(start_node(), "a node");
    run_s(10);
    ok(claim(&bert, "2", CLAIM_NAMED, 200000, 3600, &id, &err) == 0, "bert claims");
    (void)begin(&root, &job);
    ok(claims_of(BERT, 2) == 0, "the board is given to anna: his claim ends at once");
    (void)loop_child_kill(his, 9);
    run_s(10);
    loop_child_free(his);
}

/* Another job of the same user's takes a board over from one, and gives it back. */
static void passed_on(void)
{
    struct loop_child *hers = train("0,3", ANNA), *also = train("1", ANNA);
    struct node_job run = {
        .reg = {
            .source = JOB_RUN, .uid = ANNA, .boards = 1, .pid = loop_child_pid(also)}};
    uint64_t id = 0;
    uw_error err;

    ok(start_node(), "a node");
    run_s(10);
    ok(claim(&anna, "0", CLAIM_NAMED, 290000, 600, &id, &err) == 0, "anna claims");
    uint64_t second = begin(&anna, &run);
    run_s(5);
    ok(node_job_end(w.node, &anna, second, &err) == 0 && claims_of(ANNA, 0) == 1,
       "her claim stands when a job that was given its board ends");
    run_s(10);
    ok(claims_of(ANNA, 0) == 1, "and after the next look");
    (void)loop_child_kill(hers, 9);
    (void)loop_child_kill(also, 9);
    run_s(10);
    loop_child_free(hers);
    loop_child_free(also);
}

/* A token for a job is its user's: ids of a ledger begun anew are used again. */
static void tokens(void)
{
    struct loop_child *his = train("2", BERT), *hers = train("0", ANNA);
    struct node_job run = {
        .reg = {
            .source = JOB_RUN, .uid = ANNA, .boards = 1, .pid = loop_child_pid(hers)}};
    struct node_who token = {.uid = BERT, .may_claim = true, .name = "token bert"};
    struct node_claim ask = {.kind = CLAIM_NAMED, .cap = {.mw = 200000}};
    uint64_t id = 0, late = 0;
    uw_error err;

    ok(start_node(), "a node");
    run_s(10);
    token.only_job = ask.job = begin(&anna, &run);
    ok(claim(&anna, "0", CLAIM_NAMED, 290000, 60, &id, &err) == 0, "anna claims");
    ok(node_claim(w.node, &token, &ask, &late, &err) == -EPERM,
       "bert's token for her job may not claim for it: %s", err.text);
    ok(claim(&token, "0", CLAIM_NAMED, 200000, 60, &late, &err) == -EPERM,
       "nor on its board: %s", err.text);
    ok(node_withdraw(w.node, &token, id, &err) == -EPERM, "nor withdraw: %s", err.text);
    ok(node_job_end(w.node, &token, ask.job, &err) == -EPERM, "nor end it: %s", err.text);
    token.uid = ANNA;
    ok(node_claim(w.node, &token, &ask, &late, &err) == 0 &&
           node_withdraw(w.node, &token, late, &err) == 0,
       "anna's may claim and withdraw %s", err.text);
    ok(node_job_end(w.node, &token, ask.job, &err) == 0, "and end it");
    (void)loop_child_kill(his, 9);
    (void)loop_child_kill(hers, 9);
    run_s(10);
    loop_child_free(his);
    loop_child_free(hers);
}

static uint64_t join_before; /* the job that the process says it had a part in */

static int join(const struct node_who *who, pid_t pid, uint64_t boards, uint64_t *ret_id,
                uw_error *err)
{
    struct node_job ask = {.reg = {.source = JOB_RUN,
                                   .name = "train",
                                   .uid = ANNA,
                                   .pid = pid,
                                   .boards = boards,
                                   .group = "ranks"},
                           .before = join_before,
                           .page_fd = -1};

    *err = (uw_error){""};
    return node_job_join(w.node, who, &ask, ret_id, err);
}

static unsigned refusals_booked(void)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *rows = NULL;
    int n = -1;

    run_s(12);
    if (sqlite3_open_v2(w.config.ledger.path, &db, SQLITE_OPEN_READONLY, NULL) == 0 &&
        sqlite3_prepare_v2(db, "SELECT count(*) FROM event WHERE kind = 'refused'", -1,
                           &rows, NULL) == 0 &&
        sqlite3_step(rows) == SQLITE_ROW)
        n = sqlite3_column_int(rows, 0);
    (void)sqlite3_finalize(rows);
    (void)sqlite3_close(db);
    return (unsigned)n;
}

/* Ranks that join the job of their group, and the boards that they bring. */
static void joiners(void)
{
    struct loop_child *first = train("0", ANNA), *other = train("1", ANNA);
    struct node_job run = {.reg = {.source = JOB_RUN,
                                   .uid = ANNA,
                                   .boards = 1,
                                   .group = "ranks",
                                   .pid = loop_child_pid(first)}};
    pid_t pid = loop_child_pid(other);
    uint64_t id = 0;
    uw_error err = {""};

    ok(start_node(), "a node");
    run_s(10);
    uint64_t firm = begin(&chief, &run);
    is_int(join(&anna, pid, 3, &id, &err), -EPERM, "no more boards: %s", err.text);
    ok(entry_of(firm)->given == 1 && entry_of(firm)->n_procs == 1, "it is as it was");
    is_int((long)refusals_booked(), 1, "and that is booked");
    ok(join(&anna, pid, 1, &id, &err) == 1 && id == firm, "on its own board she may");
    ok(join(&chief, pid, 3, &id, &err) == 1 && entry_of(firm)->given == 3,
       "the chief may add one");
    ok(node_job_leave(w.node, &bert, firm, pid, &err) == -EPERM, "not bert's: %s",
       err.text);
    is_int((long)refusals_booked(), 2, "which is booked, too");
    ok(node_job_end(w.node, &chief, firm, &err) == 0, "it ends");

    run.cap.mw = 200000;
    uint64_t capped = begin(&anna, &run);
    w.config.caps.from.mw = 250000; /* what users may claim has changed */
    ok(node_configure(w.node, &w.config, &err) == 0, "configured anew");
    is_int(join(&anna, pid, 2, &id, &err), -ERANGE, "its cap by name: %s", err.text);
    ok(join(&anna, pid, 1, &id, &err) == 1 && entry_of(capped)->given == 1,
       "is of no account where no board is added");
    ok(node_job_end(w.node, &anna, capped, &err) == 0, "it ends");

    run.reg.group = NULL;
    run.cap.mw = 0;
    join_before = begin(&anna, &run);
    is_int(join(&anna, pid, 2, &id, &err), 0,
           "one that was not the process' is not joined");
    ok(join(&anna, run.reg.pid, 1, &id, &err) == 1 && id == join_before,
       "one that was is %s", err.text);
    (void)loop_child_kill(first, 9);
    (void)loop_child_kill(other, 9);
    run_s(10);
    loop_child_free(first);
    loop_child_free(other);
}

/* A cap in watts on boards of two kinds, and on one whose range is unknown. */
static void ranges(void)
{
    struct loop_child *first = train("1", ANNA), *other = train("0", ANNA);
    struct node_job run = {.reg = {.source = JOB_RUN,
                                   .name = "train",
                                   .uid = ANNA,
                                   .boards = 2,
                                   .group = "ranks",
                                   .pid = loop_child_pid(first)},
                           .cap.mw = 350000,
                           .page_fd = -1};
    pid_t pid = loop_child_pid(other);
    uint64_t id = 0;
    uw_error err = {""};

    ok(start_node(), "a node");
    run_s(10);
    uint64_t capped = begin(&chief, &run);
    is_int(join(&chief, pid, 1, &id, &err), -ERANGE,
           "a board that does not take its cap");
    ok(strstr(err.text, ": 350 W is outside 150..300 W"), "… %s", err.text);
    is_int((long)entry_of(capped)->given, 2, "is not added");
    board_view(boards_at(node_boards(w.node), 0))->has_limits = false;
    is_int(join(&chief, pid, 1, &id, &err), -ENOTSUP, "one of unknown range: %s",
           err.text);
    run.reg.boards = 1;
    run.reg.group = NULL;
    run.reg.pid = pid;
    is_int(node_job_begin(w.node, &chief, &run, &id, &err), -ENOTSUP,
           "nor does a job with a cap begin there: %s", err.text);
    run.reg.boards = 0;
    run.cap.mw = 200000;
    is_int(node_job_begin(w.node, &chief, &run, &id, &err), 0,
           "one that names no boards begins %s", err.text);
    (void)loop_child_kill(first, 9);
    (void)loop_child_kill(other, 9);
    run_s(10);
    loop_child_free(first);
    loop_child_free(other);
}

int main(void)
{
    static void (*const parts[])(void) = {squatting, named_twice, registered, given_away,
                                          tokens,    passed_on,   joiners};

    log_set_level((enum log_level)0);
    for (size_t i = 0; i < n_elements(parts); i++) {
        if (!ok(open_world(), "a world"))
            break;
        parts[i]();
        close_world();
    }
    scene_boards = "boards: [{model: v100}, {model: a100}]\n";
    if (ok(open_world(), "a world of two kinds of boards"))
        ranges();
    close_world();
    return done();
}
