/* The books of a simulated node over hours: jobs of several users come and go on boards
 * that they share, drivers hang, counters start anew, the program is started again; what
 * is booked is compared with the meter and with what the boards really took.
 *
 * Usage: test-book [SEED [HOURS]]
 */
#include <errno.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/rng.h"
#include "base/units.h"
#include "energy/attribution.h"
#include "tap.h"
#include "world.h"

enum { BOARDS = 4, PROGRAMS = 12 };

static struct {
    struct world world;
    struct sampler *sampler[BOARDS];
    struct roster *roster;
    struct attribution *book;
    struct loop_child *program[PROGRAMS];
    struct loop_timer *churn;
    struct rng rng;
    bool ready, ended, quiet;
    unsigned begun, jobs_ended;
    double row_j[BOARDS], kind_j[BOARDS][3]; /* as the rows say */
    double job_j[64][BOARDS];                /* … of jobs by number */
    double lost_s, shared_j;
    uint64_t at_ns[BOARDS], first_ns[BOARDS];
    int64_t at_utc_ns[BOARDS];
    double first_true_j[BOARDS], last_true_j[BOARDS]; /* < 0: not yet */
    unsigned rows, gaps, backwards, odd_totals, negative, orphans;
} w;

/* ---- what the books tell ---- */

static void on_row(const struct attribution_row *row, void *user)
{
    (void)user;
    w.rows++;
    w.row_j[row->board] += row->energy_j;
    w.kind_j[row->board][row->kind] += row->energy_j;
    if (row->job < n_elements(w.job_j))
        w.job_j[row->job][row->board] += row->energy_j;
    w.negative += row->energy_j < 0 || row->half_j < 0;
    w.backwards += row->end_ns <= row->begin_ns || row->end_utc_ns <= row->begin_utc_ns;
    w.orphans += (row->kind == ATTRIBUTION_JOB) != (row->job != 0);
    if (row->lost)
        w.lost_s += s_between(row->begin_ns, row->end_ns);
    if (row->kind == ATTRIBUTION_JOB && row->split == SPLIT_USE)
        w.shared_j += row->energy_j;
}

static void on_total(const struct attribution_total *t, void *user)
{
    (void)user;
    if (w.at_ns[t->board] == 0)
        w.first_ns[t->board] = t->begin_ns;
    else
        w.gaps +=
            t->begin_ns != w.at_ns[t->board] || t->begin_utc_ns != w.at_utc_ns[t->board];
    w.at_ns[t->board] = t->end_ns;
    w.at_utc_ns[t->board] = t->end_utc_ns;
    w.odd_totals += t->end_j < t->begin_j ||
                    fabs(t->end_j - w.row_j[t->board]) > 1e-9 * t->end_j + 1e-6;
}

static void on_event(enum roster_event event, const struct job_entry *job, void *user)
{
    (void)job;
    (void)user;
    w.begun += event == ROSTER_BEGIN;
    w.jobs_ended += event == ROSTER_END;
}

/* A board's book may be opened here. */
static void on_turn(size_t board, void *user)
{
    (void)user;
    if (!w.book)
        return;
    if (w.first_true_j[board] < 0)
        w.first_true_j[board] = virtual_world_true_j(w.world.sim, board);
    loop_shift_utc(w.world.loop,
                   ((int64_t)(w.rows % 5) - 2) * (int64_t)NS_PER_MS); /* it is slewed */
    attribution_turn(w.book, board);
}

/* ---- people ---- */

static int on_program(struct loop_child *child, int status, void *user)
{
    struct loop_child **at = user;
    (void)status;

    loop_child_free(child);
    *at = NULL;
    return 0;
}

static void start_one(struct loop_child **at)
{
    char gpus[16], uid[48], cgroup[96];
    unsigned first = (unsigned)rng_below(&w.rng, BOARDS),
             user = 1000 + (unsigned)rng_below(&w.rng, 3);
    bool idles = rng_uniform(&w.rng) < 0.2, two = rng_uniform(&w.rng) < 0.3;

    (void)snprintf(gpus, sizeof gpus, two ? "%u,%u" : "%u", first, (first + 1) % BOARDS);
    (void)snprintf(uid, sizeof uid, VIRTUAL_UID "=%u", user);
    (void)snprintf(cgroup, sizeof cgroup, VIRTUAL_CGROUP "=/slurm/uid_%u/job_%u/step_0",
                   user, (unsigned)rng_below(&w.rng, 1000));
    const char *argv[] = {"underwatt-sim",
                          "train",
                          "--workload",
                          idles ? "none" : "resnet50",
                          "--gpus",
                          gpus,
                          "--epochs",
                          "100",
                          NULL};
    const char *env[] = {uid, cgroup, NULL};
    struct loop_child_opts opts = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    uw_error err = {{0}};

    if (loop_child_new(w.world.loop, &opts, on_program, at, at, &err) < 0) {
        *at = NULL;
        printf("# %s\n", err.text);
    }
}

static int on_churn(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct loop_child **at = &w.program[rng_below(&w.rng, PROGRAMS)];
    (void)user;

    loop_timer_set(timer, now_ns + ns_of_s(5 + 120 * rng_uniform(&w.rng)), 0);
    if (*at)
        (void)loop_child_kill(*at, 15);
    else if (rng_uniform(&w.rng) < 0.5 && !w.quiet)
        start_one(at);
    return 0;
}

/* ---- the node ---- */

static void wait_s(double s)
{
    world_wait_s(&w.world, s);
}

static int start_node(const struct attribution_board *before, uint64_t first_id,
                      uw_error *err)
{
    struct roster_opts roster = {.loop = w.world.loop,
                                 .read = virtual_world_proc,
                                 .read_user = w.world.sim,
                                 .first_id = first_id,
                                 .on_event = on_event,
                                 .on_turn = on_turn};
    struct attribution_opts book = {.loop = w.world.loop,
                                    .sampler = w.sampler,
                                    .n = BOARDS,
                                    .before = before,
                                    .on_row = on_row,
                                    .on_total = on_total};

    for (size_t i = 0; i < BOARDS; i++)
        w.first_true_j[i] = -1;
    int r = world_open_boards(&w.world, err);
    for (size_t i = 0; i < BOARDS && r == 0; i++) {
        struct board *b = boards_at(w.world.boards, i);
        struct sampler_opts opts = {.period_ns = 100 * NS_PER_MS, .seed = i};
        r = sampler_new(w.world.loop, &b, 1, &opts, &w.sampler[i], err);
    }
    roster.boards = w.world.boards;
    if (r == 0)
        r = roster_new(&roster, &w.roster, err);
    book.roster = w.roster;
    if (r == 0)
        r = attribution_new(&book, &w.book, err);
    return r;
}

static int on_end(struct attribution *b, void *user)
{
    (void)b;
    (void)user;
    w.ended = true;
    loop_stop(w.world.loop, 0);
    return 0;
}

static void stop_node(void)
{
    uw_error err;

    w.ended = false;
    for (size_t i = 0; i < BOARDS; i++)
        w.last_true_j[i] = virtual_world_true_j(w.world.sim, i);
    if (w.book && attribution_end(w.book, on_end, NULL) == 0)
        (void)loop_run(w.world.loop, &err);
    ok(w.ended, "the books are closed");
}

static void free_node(void)
{
    attribution_free(take(w.book));
    roster_free(take(w.roster));
    for (size_t i = 0; i < BOARDS; i++)
        sampler_free(take(w.sampler[i]));
    boards_free(take(w.world.boards));
}

static void fault(const char *text)
{
    struct sim_fault f;
    uw_error err = {{0}};

    if (sim_fault_parse(text, &f, &err) < 0 ||
        virtual_world_fault(w.world.sim, &f, &err) < 0)
        ok(false, "fault %s: %s", text, err.text);
}

/* ---- checks ---- */

static void note_truth(void)
{
    for (size_t i = 0; i < BOARDS; i++)
        if (w.first_true_j[i] < 0)
            w.first_true_j[i] = virtual_world_true_j(w.world.sim, i);
}

static void check_rows(const char *when)
{
    ok(w.gaps == 0, "%s: stretches follow each other without a gap", when);
    ok(w.odd_totals == 0, "%s: after each stretch the rows' sum is the total", when);
    ok(w.negative == 0 && w.backwards == 0 && w.orphans == 0, "%s: %u rows, none odd",
       when, w.rows);
    for (size_t i = 0; i < BOARDS; i++) {
        const struct attribution_board *b = attribution_board(w.book, i);
        double parts = b->attributed_j + b->idle_j + b->unattributed_j;
        ok(fabs(parts - b->energy_j) <= 1e-9 * b->energy_j,
           "%s: board %zu: attributed + idle + unattributed = %.0f J", when, i,
           b->energy_j);
    }
}

/* The meter itself, asked for the whole time at once. */
static void check_meter(const char *when)
{
    for (size_t i = 0; i < BOARDS; i++) {
        struct meter_result m;
        uw_error err = {{0}};
        double booked = attribution_board(w.book, i)->energy_j;
        int r = meter_window(sampler_meter(w.sampler[i], 0), w.first_ns[i], w.at_ns[i],
                             &m, &err);
        ok(r == 0 && fabs(booked / m.energy_j - 1) <= 1e-3,
           "%s: board %zu: booked %.0f J, the meter says %.0f J (%+.4f %%)%s", when, i,
           booked, m.energy_j, 100 * (booked / m.energy_j - 1), err.text);
    }
}

static void check_truth(const char *when, const double *before_j, double allowed)
{
    for (size_t i = 0; i < BOARDS; i++) {
        double truth = w.last_true_j[i] - w.first_true_j[i];
        double booked =
            attribution_board(w.book, i)->energy_j - (before_j ? before_j[i] : 0);
        ok(fabs(booked / truth - 1) <= allowed,
           "%s: board %zu: booked %.0f J of %.0f J (%+.3f %%, lost %.0f s)", when, i,
           booked, truth, 100 * (booked / truth - 1),
           attribution_board(w.book, i)->lost_s);
    }
}

static int open_world(const char *model, uint64_t seed, uw_error *err)
{
    memset(&w, 0, sizeof w);
    rng_init(&w.rng, seed);
    return world_new(&w.world, model, BOARDS, seed, err);
}

static void close_world(void)
{
    free_node();
    loop_timer_free(w.churn);
    for (size_t i = 0; i < PROGRAMS; i++)
        loop_child_free(w.program[i]);
    world_close(&w.world);
}

static void life(const char *model, uint64_t seed, double hours, double allowed)
{
    struct attribution_board before[BOARDS];
    double before_j[BOARDS];
    uw_error err = {{0}};

    int r = open_world(model, seed, &err);
    if (r == 0)
        r = start_node(NULL, 1, &err);
    if (!ok(r == 0, "%s: a node %s", model, err.text)) {
        close_world();
        return;
    }
    wait_s(1.05);
    note_truth();
    if (loop_timer_new(w.world.loop, loop_now_ns(w.world.loop) + 30 * NS_PER_S, 0,
                       on_churn, NULL, &w.churn, &err) < 0)
        return;
    for (double h = 0; h < hours; h += 0.25) {
        wait_s(900);
        for (size_t i = 0; i < BOARDS; i++)
            attribution_cap(w.book, i, 200000 + (uint32_t)rng_below(&w.rng, 3) * 25000);
    }
    w.quiet = true;
    wait_s(30);
    check_rows(model);
    check_meter(model);
    ok(w.begun > 10 * hours && w.jobs_ended > 0, "%s: %u jobs were found, %u ended",
       model, w.begun, w.jobs_ended);
    ok(w.shared_j > 0, "%s: %.0f J of shared boards were split by use", model,
       w.shared_j);
    double idle = 0, jobs = 0;
    for (size_t i = 0; i < BOARDS; i++) {
        idle += attribution_board(w.book, i)->idle_j;
        jobs += attribution_board(w.book, i)->attributed_j;
    }
    ok(idle > 0 && jobs > 0, "%s: idle %.0f J, jobs %.0f J", model, idle, jobs);
    stop_node();
    check_truth(model, NULL, allowed);

    /* started again: totals go on */
    for (size_t i = 0; i < BOARDS; i++) {
        before[i] = *attribution_board(w.book, i);
        before_j[i] = before[i].energy_j;
        w.at_ns[i] = 0;
    }
    uint64_t first_id = 100000;
    free_node();
    r = start_node(before, first_id, &err);
    ok(r == 0, "%s: started again %s", model, err.text);
    wait_s(1.05);
    note_truth();
    w.quiet = false;
    wait_s(1800);
    check_rows("started again");
    stop_node();
    check_truth("started again", before_j, allowed);
    close_world();
}

/* A driver that does not answer, a counter that starts anew, one that stands still. */
static void trouble(void)
{
    uw_error err = {{0}};

    int r = open_world("v100", 5, &err);
    if (r == 0)
        r = start_node(NULL, 1, &err);
    if (!ok(r == 0, "trouble: a node %s", err.text)) {
        close_world();
        return;
    }
    wait_s(1.05);
    note_truth();
    start_one(&w.program[0]);
    wait_s(60);
    fault("0 hang for 90s"); /* the call under way takes an hour */
    fault("3 lost for 90s");
    wait_s(60);
    double hung = attribution_board(w.book, 0)->energy_j,
           other = attribution_board(w.book, 1)->energy_j;
    wait_s(1000);
    ok(attribution_board(w.book, 0)->energy_j == hung,
       "trouble: a board that hangs waits");
    ok(attribution_board(w.book, 1)->energy_j > other, "  the others do not");
    wait_s(2700);
    ok(attribution_board(w.book, 0)->energy_j > hung, "  and is made up for afterwards");
    fault("reload");
    wait_s(120);
    fault("1 stuck for 60s");
    wait_s(300);
    check_rows("trouble");
    stop_node();
    check_rows("trouble, closed");
    check_truth("trouble", NULL, 0.01);
    is_near(w.lost_s, 0, 0, "trouble: no second is lost where the counter went on");
    close_world();

    r = open_world("v100", 6, &err);
    if (r == 0)
        r = start_node(NULL, 1, &err);
    ok(r == 0, "hung at the end: a node");
    wait_s(60);
    fault("2 hang");
    wait_s(47);
    stop_node();
    check_rows("hung at the end");
    const struct attribution_board *b = attribution_board(w.book, 2);
    ok(b->lost_s > 40 && b->lost_s < 60, "  %.0f s are told as lost", b->lost_s);
    is_near(attribution_board(w.book, 1)->lost_s, 0, 0, "  none of the others'");
    close_world();
}

/* ---- a job's boards ---- */

static void begin(size_t at, const char *gpus, const char *workload, unsigned job)
{
    char cgroup[96];
    uw_error err = {{0}};

    (void)snprintf(cgroup, sizeof cgroup, VIRTUAL_CGROUP "=/slurm/uid_1000/job_%u/step_0",
                   job);
    const char *argv[] = {"underwatt-sim", "train",  "--workload",
                          workload,        "--gpus", gpus,
                          "--epochs",      "100",    NULL};
    const char *env[] = {VIRTUAL_UID "=1000", cgroup, NULL};
    struct loop_child_opts opts = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};

    if (loop_child_new(w.world.loop, &opts, on_program, &w.program[at], &w.program[at],
                       &err) < 0)
        ok(false, "a program: %s", err.text);
}

/* Each job's sums by board are those of its rows, and a board's jobs have what it gave
 * to jobs; the boards of job i are told by mask[i].
 */
static void check_parts(const char *when, const unsigned *mask, size_t n)
{
    double jobs_j[BOARDS] = {0};

    for (uint64_t id = 1; id <= n; id++) {
        const struct attribution_job *j = attribution_job(w.book, id);
        unsigned has = 0;
        for (size_t i = 0; j && i < j->n_parts; i++) {
            const struct attribution_part *p = &j->part[i];
            has |= 1u << p->board;
            jobs_j[p->board] += p->energy_j;
            is_near(p->energy_j, w.job_j[id][p->board], 1e-6, "%s: job %u on board %zu",
                    when, (unsigned)id, p->board);
            ok(p->why == 0, "%s: nothing makes that less sure (%x)", when, p->why);
            ok(p->energy_j > 0 && half_sum_j(&p->half) > 0.0039 * p->energy_j &&
                   p->method == METER_COUNTER,
               "  measured: %.0f J", p->energy_j);
            ok(p->time_s > 0 && p->time_s <= j->time_s + 1e-6,
               "  in %.1f s of the job's %.1f s", p->time_s, j->time_s);
        }
        is_int(has, mask[id - 1], "%s: the boards that job %u had", when, (unsigned)id);
    }
    for (size_t i = 0; i < BOARDS; i++)
        is_near(jobs_j[i], attribution_board(w.book, i)->attributed_j, 1e-6,
                "%s: the jobs of board %zu", when, i);
}

/* A job gets a second board, loses its first one and shares the other. */
static void boards_of_jobs(void)
{
    static const unsigned one[] = {1}, two[] = {3}, shared[] = {3, 6};
    uw_error err = {{0}};

    int r = open_world("v100", 7, &err);
    if (r == 0)
        r = start_node(NULL, 1, &err);
    if (!ok(r == 0, "jobs' boards: a node %s", err.text)) {
        close_world();
        return;
    }
    wait_s(5);
    begin(0, "0", "resnet50", 7);
    wait_s(60);
    check_parts("one board", one, 1);
    begin(1, "1", "none", 7);
    wait_s(60);
    check_parts("a board joins", two, 1);
    double left_j = 0;
    if (w.program[0])
        (void)loop_child_kill(w.program[0], 15);
    wait_s(30);
    left_j = attribution_job(w.book, 1)->part[0].energy_j;
    begin(2, "1,2", "none", 8);
    wait_s(120);
    check_parts("a board leaves, another is shared", shared, 2);
    is_near(attribution_job(w.book, 1)->part[0].energy_j, left_j, 1e-9,
            "what it had on the board that it left stays");
    stop_node();
    check_parts("at the end", shared, 2);

    struct attribution_part before = {.board = 1, .energy_j = 500, .time_s = 10};
    is_int(attribution_resume(w.book, 9, 10, &before, 1), 0, "a job of before");
    is_near(attribution_job(w.book, 9)->part[0].energy_j, 500, 0, "has what it had");
    attribution_forget(w.book, 9);
    ok(!attribution_job(w.book, 9), "… until it is forgotten");
    close_world();
}

int main(int argc, char **argv)
{
    uint64_t seed = 1;
    double hours = 2;

    if (argc > 1)
        (void)parse_u64(argv[1], &seed, NULL);
    if (argc > 2)
        (void)parse_double(argv[2], &hours, NULL);
    printf("# seed %llu\n", (unsigned long long)seed);
    life("v100", seed, hours, 2e-3);
    trouble();
    boards_of_jobs();
    return done();
}
