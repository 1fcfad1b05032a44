/* `underwatt sweep -- CMD` in virtual time: the very engine, actuator and meter code on
 * simulated boards.  The curve is the plant's own; whatever goes wrong, the original
 * limits are back and what was measured is kept.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actuator/client.h"
#include "actuator/core.h"
#include "actuator/guard.h"
#include "base/auto.h"
#include "base/log.h"
#include "base/units.h"
#include "node/node.h"
#include "plant/plant.h"
#include "sweep/sweeper.h"
#include "tap.h"
#include "virtual/virtual-loop.h"
#include "virtual/virtual-world.h"

enum { BOARDS = 2 };

struct world {
    struct loop *loop;
    struct virtual_world *sim;
    struct actuator_virtual service;
    void *lib; /* the actuator's */
    struct sweeper *sweeper;
    struct loop_timer *timer;
    struct sweeper_result result;
    bool done;
    size_t runs; /* seen by on_run */
    unsigned notes;
    char note[200];
    /* what happens when so many runs are made */
    size_t at_run;
    int signo;
    const char *fault;
    bool stops;    /* the actuator, too */
    double then_s; /* after that run */
};

static uint64_t clock_of(void *user)
{
    return loop_now_ns(user);
}

static int on_done(struct sweeper *s, const struct sweeper_result *r, void *user)
{
    struct world *w = user;
    (void)s;

    w->result = *r;
    w->done = true;
    loop_stop(w->loop, 0);
    return 0;
}

static void on_note(const char *text, void *user)
{
    struct world *w = user;

    w->notes++;
    (void)snprintf(w->note, sizeof w->note, "%s", text);
}

static int on_trouble(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct world *w = user;
    struct sim_fault fault;
    uw_error err = {{0}};
    (void)timer;
    (void)now_ns;

    w->service.stopped = w->stops;
    if (w->signo)
        return sweeper_signal(w->sweeper, w->signo);
    if (sim_fault_parse(w->fault, &fault, &err) < 0 ||
        virtual_world_fault(w->sim, &fault, &err) < 0)
        printf("# fault: %s\n", err.text);
    return 0;
}

static void on_run(const struct sweep_run *run, size_t no, void *user)
{
    struct world *w = user;
    (void)run;

    w->runs++;
    if (no == w->at_run)
        loop_timer_set(w->timer, loop_now_ns(w->loop) + ns_of_s(w->then_s), 0);
}

static const char *const train[] = {"underwatt-sim", "train", "--workload", "alexnet",
                                    "--gpus",        "1",     "--epochs",   "1",
                                    "--phases",      "train", NULL};

static const char *const longer[] = {"underwatt-sim", "train", "--workload", "resnet50",
                                     "--gpus",        "1",     "--epochs",   "1",
                                     "--phases",      "train", NULL};

/* What a case changes of a plain sweep of board 1. */
struct setting {
    const char *gpus;
    const char *const *argv;
    const char *state;
    uint32_t from_mw, step_mw, limit_mw;
    unsigned runs;
    uint64_t seed;
    uint64_t set_latency_ns; /* of the driver; 0: the machine's own */
    struct core_rules rules;
};

/* The actuator, with root's rules. */
static int open_service(struct world *w, const struct gpu_open_opts *gpu,
                        const struct core_rules *rules, uw_error *err)
{
    int r = virtual_backend.open(gpu, &w->lib, err);
    struct guard_opts opts = {.loop = w->loop,
                              .backend = &virtual_backend,
                              .lib = w->lib,
                              .rules = rules,
                              .keep_trying = true};

    return r == 0 ? guard_new(&opts, &w->service.guard, err) : r;
}

static bool play(struct world *w, const struct setting *set)
{
    struct sim_machine machine;
    uw_error err = {{0}};

    int r = loop_new_virtual(1000000000, 1700000000, &w->loop, &err);
    if (r >= 0)
        r = sim_machine_builtin("v100", BOARDS, &machine, &err);
    for (size_t i = 0; i < BOARDS && r >= 0; i++) {
        machine.board[i].ideal = true;
        machine.board[i].limit_mw = set->limit_mw;
    }
    if (r >= 0 && set->set_latency_ns)
        machine.set_latency_ns = set->set_latency_ns;
    if (r >= 0)
        r = virtual_world_new(w->loop, &machine, 1, &w->sim, &err);
    if (r >= 0)
        r = loop_timer_new(w->loop, UINT64_MAX, 0, on_trouble, w, &w->timer, &err);
    struct gpu_open_opts gpu = {.clock = {clock_of, w->loop}, .backend_user = w->sim};
    if (r >= 0)
        r = open_service(w, &gpu, &set->rules, &err);
    const struct node_opts node = {.loop = w->loop,
                                   .backend = &virtual_backend,
                                   .gpu = gpu,
                                   .version = "test",
                                   .service = &w->service,
                                   .read = virtual_world_proc,
                                   .read_user = w->sim};
    struct sweeper_opts opts = {
        .node = &node,
        .gpus = set->gpus,
        .argv = set->argv ? set->argv : train,
        .from_mw = set->from_mw,
        .step_mw = set->step_mw ? set->step_mw : 50000,
        .runs = set->runs ? set->runs : 1,
        .seed = set->seed ? set->seed : 1,
        .settle_s = 1,
        .state_path = set->state,
        .note = on_note,
        .on_run = on_run,
        .user = w,
    };
    if (r >= 0)
        r = sweeper_new(&opts, on_done, &w->sweeper, &err);
    if (r >= 0)
        sweeper_start(w->sweeper);
    if (r >= 0)
        r = loop_run(w->loop, &err);
    if (r < 0)
        printf("# %s\n", err.text);
    if (w->result.error.text[0])
        printf("# says: %s\n", w->result.error.text);
    return r >= 0 && w->done;
}

/* The limit in force on a board, as a client sees it. */
static uint32_t limit_of(const struct world *w, size_t board)
{
    struct gpu_open_opts opts = {.clock = {clock_of, w->loop}, .backend_user = w->sim};
    struct gpu_sample sample = {0};
    void *lib = NULL;

    if (virtual_backend.open(&opts, &lib, NULL) != 0)
        return 0;
    (void)virtual_backend.sample(virtual_backend.at(lib, board), GPU_HAS_ENFORCED,
                                 &sample, NULL);
    virtual_backend.close(lib);
    return sample.enforced_mw;
}

static void close_world(struct world *w)
{
    sweeper_free(w->sweeper);
    guard_free(w->service.guard);
    virtual_backend.close(w->lib);
    virtual_world_free(w->sim);
    loop_free(w->loop);
    *w = (struct world){0};
}

static void test_curve(void)
{
    struct world w = {0};
    struct setting set = {.gpus = "1", .runs = 2, .argv = longer};
    const struct plant_board *board = plant_board_find("v100");
    const struct plant_workload *work = plant_workload_find(board, "resnet50");
    double worst_t = 0, worst_e = 0;

    ok(play(&w, &set) && w.result.end == SWEEPER_DONE, "a sweep runs to its end");
    is_int(w.result.n_done, 2 * 4 + 1,
           "caps 150, 200, 250, 300 W twice, and a reference");
    is_int(w.runs, w.result.n_done, "each run is told");
    ok(w.result.simulated && w.result.n_boards == 1, "simulated, one board");
    for (size_t i = 0; i < w.result.n_done; i++) {
        const struct sweep_run *run = &w.result.done[i];
        struct plant_steady s = plant_steady(board, work, run->cap_mw);
        worst_t = fmax(worst_t, fabs(run->time_s / s.time_s - 1));
        worst_e = fmax(worst_e, fabs(run->energy_j / s.energy_j - 1));
    }
    ok(worst_t < 0.005 && worst_e < 0.02,
       "time and energy are the plant's: within %.2f and %.2f %%", worst_t * 100,
       worst_e * 100);
    ok(w.result.restored && limit_of(&w, 1) == 300000, "the original limit is back");
    close_world(&w);
}

static void test_found(void)
{
    struct world w = {0};
    struct setting set = {0};

    ok(play(&w, &set) && w.result.end == SWEEPER_DONE,
       "no board is named: CMD's is found");
    ok(w.result.n_boards == 1 && w.result.n_done == 5, "the run that found it counts");
    is_int(limit_of(&w, 1), 300000, "the limit is back");
    close_world(&w);

    set.limit_mw = 280000;
    ok(play(&w, &set) && w.result.end == SWEEPER_DONE,
       "a limit below the default is found");
    is_int(w.result.n_done, 5, "the reference is at the default all the same");
    ok(w.notes > 0 && strstr(w.note, "does not count"), "the first run does not count");
    is_int(limit_of(&w, 1), 280000, "the limit found is back, not the default");
    close_world(&w);

    set = (struct setting){.gpus = "0,1"};
    ok(play(&w, &set) && w.result.end == SWEEPER_DONE && w.result.n_boards == 2,
       "two boards are swept together");
    ok(w.result.done && w.result.done[0].energy_j > 7206 + 30 * 40,
       "the idle one's energy is in it");
    close_world(&w);
}

static void test_trouble(void)
{
    static const struct {
        const char *name, *fault;
        int signo;
        double then_s;
        enum sweeper_end end;
        uint32_t limit_mw; /* afterwards; 0: cannot be asked */
    } cases[] = {
        {"interrupted while CMD runs", NULL, SIGINT, 20, SWEEPER_INTERRUPTED, 300000},
        {"terminated while a cap settles", NULL, SIGTERM, 0.5, SWEEPER_INTERRUPTED,
         300000},
        {"terminated right after a run", NULL, SIGTERM, 0, SWEEPER_INTERRUPTED, 300000},
        {"another's limit while CMD runs", "1 limit 260W", 0, 20, SWEEPER_FAILED, 260000},
        {"the board is lost", "1 lost", 0, 20, SWEEPER_FAILED, 0},
        {"limits are refused", "1 refuse for 30s", 0, 0, SWEEPER_FAILED, 0},
        {"the driver is loaded anew", "reload", 0, 20, SWEEPER_FAILED, 300000},
    };
    for (size_t i = 0; i < n_elements(cases); i++) {
        struct world w = {.at_run = 2,
                          .signo = cases[i].signo,
                          .fault = cases[i].fault,
                          .then_s = cases[i].then_s};
        struct setting set = {.gpus = "1"};
        ok(play(&w, &set), "%s: the sweep ends", cases[i].name);
        is_int(w.result.end, cases[i].end, "%s: its end", cases[i].name);
        is_int(w.result.n_done, 2, "%s: what was done is kept", cases[i].name);
        if (cases[i].limit_mw)
            is_int(limit_of(&w, 1), cases[i].limit_mw, "%s: the limit", cases[i].name);
        if (!cases[i].limit_mw)
            ok(!w.result.restored && w.result.restore[0], "%s: said: %s", cases[i].name,
               w.result.restore);
        if (cases[i].signo)
            ok(w.result.restored && w.result.signo == cases[i].signo, "%s: said",
               cases[i].name);
        close_world(&w);
    }
}

/* The actuator is stopped when the board is to be given back. */
static void test_no_answer(void)
{
    struct world w = {.at_run = 2, .signo = SIGINT, .stops = true, .then_s = 20};
    struct setting set = {.gpus = "1"};

    ok(play(&w, &set) && w.result.end == SWEEPER_INTERRUPTED, "^C, no actuator answers");
    const char *uuid = virtual_backend.info(virtual_backend.at(w.lib, 1))->uuid;
    ok(!w.result.restored && strncmp(w.result.restore, uuid, strlen(uuid)) == 0 &&
           strstr(w.result.restore, "does not answer within 6 s"),
       "the board and the time are said: %s", w.result.restore);
    close_world(&w);
}

static void test_slow_driver(void)
{
    struct world w = {0};
    struct setting set = {.gpus = "1", .set_latency_ns = 19 * NS_PER_S / 10};

    ok(play(&w, &set) && w.result.end == SWEEPER_DONE && w.result.n_done == 5,
       "a driver that takes 1.9 s for each limit: the whole sweep");
    ok(w.result.restored && limit_of(&w, 1) == 300000, "and the original is back");
    close_world(&w);
    w = (struct world){.at_run = 2, .signo = SIGINT, .then_s = 1};
    ok(play(&w, &set) && w.result.end == SWEEPER_INTERRUPTED,
       "^C while such a driver writes");
    ok(w.result.restored && limit_of(&w, 1) == 300000,
       "the original is back all the same");
    close_world(&w);
}

static void test_cmd(void)
{
    static const char *const bad[] = {"underwatt-sim", "train", "--workload", "nothing",
                                      NULL};
    static const char *const none[] = {"no-such-program", NULL};
    struct setting set = {.gpus = "1", .argv = bad};
    struct world w = {0};

    ok(play(&w, &set) && (w.result.end == SWEEPER_CMD || w.result.end == SWEEPER_BEFORE),
       "a command that fails ends the sweep");
    is_int(limit_of(&w, 1), 300000, "a command that fails: the limit is back");
    close_world(&w);
    set.argv = none;
    ok(play(&w, &set) && w.result.end == SWEEPER_NOT_FOUND,
       "a command that is not there");
    is_int(limit_of(&w, 1), 300000, "a command that is not there: the limit is back");
    close_world(&w);
    set = (struct setting){.gpus = "7"};
    ok(play(&w, &set) && w.result.end == SWEEPER_USAGE, "a board that is not there");
    close_world(&w);
    set = (struct setting){.gpus = "1", .from_mw = 100000};
    ok(play(&w, &set) && w.result.end == SWEEPER_USAGE &&
           strstr(w.result.error.text, "--from: 100 W is outside 150 W..300 W"),
       "a range outside the board's");
    close_world(&w);
}

static bool same_runs(const struct sweep_run *a, const struct sweep_run *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i].cap_mw != b[i].cap_mw || fabs(a[i].time_s - b[i].time_s) > 0 ||
            fabs(a[i].energy_j - b[i].energy_j) > 0 || fabs(a[i].at_s - b[i].at_s) > 0)
            return false;
    return true;
}

static void test_state(void)
{
    char path[] = "/tmp/uw-sweep-XXXXXX";
    struct setting set = {.gpus = "1", .state = path, .runs = 2};
    struct world w = {.at_run = 3, .signo = SIGTERM, .then_s = 5};

    int fd = mkstemp(path);
    ok(fd >= 0 && close(fd) == 0 && unlink(path) == 0, "a place for the state");
    ok(play(&w, &set) && w.result.end == SWEEPER_INTERRUPTED && w.result.n_done == 3,
       "state: interrupted after three runs");
    struct sweep_run first[3];
    memcpy(first, w.result.done, sizeof first);
    close_world(&w);

    ok(play(&w, &set) && w.result.end == SWEEPER_DONE && w.result.n_resumed == 3,
       "state: goes on from there");
    is_int(w.runs, 6, "state: makes the six that are missing");
    ok(w.result.n_done == 9 && same_runs(first, w.result.done, 3),
       "state: keeps those it had");
    close_world(&w);

    ok(play(&w, &set) && w.result.end == SWEEPER_DONE && w.runs == 0,
       "state: a finished sweep runs nothing");
    close_world(&w);
    set.runs = 3;
    ok(play(&w, &set) && w.result.end == SWEEPER_DONE && w.runs == 4,
       "state: more runs are added to it");
    close_world(&w);

    static const char *const other[] = {"underwatt-sim", "train", "--workload", "vgg19",
                                        NULL};
    const struct {
        const char *name, *text;
        struct setting set;
    } cases[] = {
        {"command",
         "another command: word 4 was 'alexnet', is 'vgg19'",
         {.gpus = "1", .argv = other}},
        {"board", "another board: was GPU-", {.gpus = "0"}},
        {"boards", "other boards: were 1, are 2", {.gpus = "0,1"}},
        {"range", "the lowest cap was 150 W, is 200 W", {.gpus = "1", .from_mw = 200000}},
        {"step", "the step was 50 W, is 25 W", {.gpus = "1", .step_mw = 25000}},
        {"order", "--seed was 1, is 2", {.gpus = "1", .seed = 2}},
    };
    for (size_t i = 0; i < n_elements(cases); i++) {
        struct setting its = cases[i].set;
        its.state = path;
        ok(play(&w, &its) && w.result.end == SWEEPER_USAGE && w.runs == 0,
           "state: another %s is refused", cases[i].name);
        ok(strstr(w.result.error.text, cases[i].text) != NULL, "state: and named: %s",
           w.result.error.text);
        close_world(&w);
    }
    FILE *file = fopen(path, "we");
    if (file) {
        (void)fputs("{\"underwatt_sweep\": 1}", file);
        (void)fclose(file);
    }
    ok(!play(&w, &set), "state: a file that is none is refused");
    close_world(&w);
    (void)unlink(path);
}

static bool all_within(const struct world *w, uint32_t least_mw, uint32_t most_mw)
{
    for (size_t i = 0; i < w->result.n_done; i++)
        if (w->result.done[i].cap_mw < least_mw || w->result.done[i].cap_mw > most_mw)
            return false;
    return w->result.n_done > 0;
}

/* What root's configuration forbids is known before the first run, not after hours. */
static void test_allowed(void)
{
    const struct core_rules low = {.from.mw = 230000}, high = {.to.mw = 260000};
    char path[] = "/tmp/uw-sweep-XXXXXX";
    struct setting set = {.gpus = "1", .rules = low, .state = path};
    struct world w = {.at_run = 2, .signo = SIGTERM, .then_s = 5};

    int fd = mkstemp(path);
    ok(fd >= 0 && close(fd) == 0 && unlink(path) == 0, "a place for the state");
    ok(play(&w, &set) && w.result.end == SWEEPER_INTERRUPTED && w.result.n_done == 2 &&
           all_within(&w, 230000, 300000),
       "within root's range");
    ok(strstr(w.note, "allows 230 W to 300 W") != NULL, "… which is told: %s", w.note);
    close_world(&w);
    ok(play(&w, &set) && w.result.end == SWEEPER_DONE && w.result.n_resumed == 2 &&
           all_within(&w, 230000, 300000),
       "… and gone on with there");
    size_t n = w.result.n_done;
    close_world(&w);
    set.rules.from.mw = 240000;
    set.runs = 2;
    ok(play(&w, &set) && w.result.end == SWEEPER_USAGE && w.runs == 0 &&
           strstr(w.result.error.text, "240 W to 300 W here, and ") != NULL &&
           limit_of(&w, 1) == 300000,
       "a range that has shrunk since: refused");
    close_world(&w);
    (void)unlink(path);

    set = (struct setting){.rules = low};
    ok(play(&w, &set) && w.result.end == SWEEPER_DONE && w.result.n_done == n &&
           all_within(&w, 230000, 300000),
       "on a board that the first run has found, which counts");
    close_world(&w);

    set = (struct setting){.gpus = "1", .rules = low, .from_mw = 200000};
    ok(play(&w, &set) && w.result.end == SWEEPER_USAGE && w.runs == 0 &&
           strstr(w.result.error.text, "--from: 200 W is outside 230 W..300 W") != NULL,
       "a cap asked for that root forbids: refused before a run");
    ok(w.result.restored && limit_of(&w, 1) == 300000, "… and nothing is left");
    close_world(&w);

    set = (struct setting){.gpus = "1", .rules = high, .step_mw = 45000};
    ok(play(&w, &set) && w.result.end == SWEEPER_DONE, "the highest that is allowed");
    size_t above = 0, other = 0;
    for (size_t i = 0; i < w.result.n_done; i++) {
        above += w.result.done[i].cap_mw > 260000;
        other += w.result.done[i].cap_mw > 260000 && w.result.done[i].cap_mw != 300000;
    }
    ok(above > 0 && other == 0,
       "the default limit that was found may be set all the same, no other above it");
    close_world(&w);
    set.limit_mw = 250000;
    ok(play(&w, &set) && w.result.end == SWEEPER_USAGE && w.runs == 0 &&
           strstr(w.result.error.text, "not the default limit, 300 W") != NULL,
       "a default limit that root forbids: nothing to compare with");
    close_world(&w);
}

int main(void)
{
    log_set_level(LOG_LEVEL_NONE);
    test_curve();
    test_allowed();
    test_found();
    test_trouble();
    test_no_answer();
    test_slow_driver();
    test_cmd();
    test_state();
    return done();
}
