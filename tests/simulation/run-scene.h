/* One `underwatt run` in virtual time: the very session, tuner, meter and actuator code
 * on simulated boards, and what an oracle of the training loop would have held.
 */
#ifndef RUN_SCENE_H
#define RUN_SCENE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "actuator/client.h"
#include "base/auto.h"
#include "base/units.h"
#include "core/optimum/goal.h"
#include "io/file.h"
#include "jobs/job.h"
#include "local/session.h"
#include "plant/plant.h"
#include "sim/virtual.h"
#include "tap.h"
#include "trace.h"

static bool verbose;
#define JOB_S 1200.0 /* simulated time of a job at the default limit */

struct world {
    struct loop *loop;
    struct virtual_world *sim;
    struct session *session;
    struct session_result result;
    bool done;
    char dir[64];
    double checks_share; /* of opts; 0: the tuner's own */
    int looks;           /* same */
    bool mute;           /* the job has no page: it tells of no steps */
    double dark_s;       /* its page cannot be read from then on; 0: it can */
    struct loop_timer *dark;
    const char *inject; /* of opts */
    double
        blur_s; /* its sensor shows means of so long, one after the other; 0: its own */
    const char *const *more; /* further arguments of the job, up to NULL, 8 at most */
    char noted[4096];        /* all notes, as far as they fit */
};

static uint64_t clock_of(void *user)
{
    return loop_now_ns(user);
}

static int on_done(struct session *s, const struct session_result *r, void *user)
{
    struct world *w = user;
    (void)s;

    w->result = *r;
    w->done = true;
    loop_stop(w->loop, 0);
    return 0;
}

static void on_note(const char *text, bool important, void *user)
{
    struct world *w = user;
    size_t n = strlen(w->noted);
    (void)important;

    (void)snprintf(w->noted + n, sizeof w->noted - n, "%s\n", text);
    if (verbose)
        printf("# %8.1f s  %s\n", (double)loop_now_ns(w->loop) * 1e-9, text);
}

static inline int on_dark(struct loop_timer *timer, uint64_t now, void *user)
{
    static const char none[8] = "";
    struct world *w = user;
    DIR *dir = opendir(w->dir);
    unsigned pages = 0;
    (void)timer;
    (void)now;

    for (struct dirent *e; dir && (e = readdir(dir));) {
        int fd = openat(dirfd(dir), e->d_name, O_RDWR | O_CLOEXEC);
        pages += fd >= 0 && pwrite(fd, none, sizeof none, 0) == (ssize_t)sizeof none;
        if (fd >= 0)
            (void)close(fd);
    }
    if (dir)
        (void)closedir(dir);
    ok(pages == 1, "(its page cannot be read any more)");
    return 0;
}

/* What the oracle's cap gives, and what the held one does, in the goal's own measure. */
struct verdict {
    uint32_t held_mw, oracle_mw;
    double regret, slowdown;
};

static inline struct verdict judge(const char *board_key, const char *workload,
                                   const struct goal *goal, uint32_t held_mw)
{
    const struct plant_board *board = plant_board_find(board_key);
    const struct plant_workload *work = plant_workload_find(board, workload);
    struct plant_steady ref = plant_steady_step(board, work, board->default_mw);
    struct goal_ref gref = {ref.energy_j, ref.time_s, board->max_mw * 1e-3};
    struct plant_steady held = plant_steady_step(board, work, held_mw);
    struct verdict v = {.held_mw = held_mw};
    double best = INFINITY;

    for (uint32_t mw = board->min_mw; mw <= board->default_mw; mw += 100) {
        struct plant_steady at = plant_steady_step(board, work, mw);
        double value = goal_relative(goal, at.energy_j, at.time_s, &gref);
        if (value < best) {
            best = value;
            v.oracle_mw = mw;
        }
    }
    struct goal plain = *goal;
    if (goal->kind == GOAL_SLOWDOWN) /* told apart: broken bounds and regret */
        plain.kind = GOAL_ENERGY;
    v.regret = goal_relative(&plain, held.energy_j, held.time_s, &gref) / best - 1;
    v.slowdown = held.time_s / ref.time_s;
    return v;
}

/* A virtual loop and these boards. */
static int open_world(struct world *w, const struct sim_machine *machine, uw_error *err)
{
    int r = loop_new_virtual(1000000000, 1700000000, &w->loop, err);

    w->noted[0] = '\0';
    return r < 0 ? r : virtual_world_new(w->loop, machine, 1, &w->sim, err);
}

/* The session of these options there, to its end. */
static int play(struct world *w, struct session_opts *opts, uw_error *err)
{
    opts->loop = w->loop;
    opts->backend = trace_backend();
    opts->gpu =
        (struct gpu_open_opts){.clock = {clock_of, w->loop}, .backend_user = w->sim};
    opts->runtime_dir = w->mute ? NULL : w->dir;
    opts->checks_share = w->checks_share;
    opts->gap_checks = w->looks;
    opts->inject = w->inject;
    opts->note = on_note;
    opts->user = w;
    int r = session_start(opts, on_done, &w->session, err);
    return r < 0 ? r : loop_run(w->loop, err);
}

/* change: what --change of the job is told, or NULL. */
static inline bool run_for(struct world *w, const char *board, const char *workload,
                           const char *goal_text, const char *change, double job_s)
{
    char epochs[16];
    const char *argv[20] = {"underwatt-sim", "train", "--workload", workload,
                            "--gpus",        "0",     "--epochs",   epochs};
    const struct plant_board *b = plant_board_find(board);
    const struct plant_workload *work = plant_workload_find(b, workload);
    struct sim_machine machine;
    struct session_opts opts = {.gpus = "0", .argv = argv, .caps = SESSION_SEARCH};
    uw_error err = {{0}};

    trace_case("%s %s %s%s%s", board, workload, goal_text, change ? " change " : "",
               change ? change : "");
    (void)snprintf(epochs, sizeof epochs, "%.0f",
                   ceil(job_s / plant_steady(b, work, b->default_mw).time_s));
    if (change) {
        argv[8] = "--change";
        argv[9] = change;
    }
    for (size_t i = 0; w->more && w->more[i]; i++)
        argv[(change ? 10U : 8U) + i] = w->more[i];
    int r = sim_machine_builtin(board, 1, &machine, &err);
    if (r >= 0 && w->blur_s > 0)
        machine.board[0].plant.sensor.period_ns =
            machine.board[0].plant.sensor.window_ns = ns_of_s(w->blur_s);
    if (r >= 0)
        r = open_world(w, &machine, &err);
    if (r >= 0)
        r = goal_parse(goal_text, &opts.goal, &err);
    if (r >= 0 && w->dark_s > 0)
        r = loop_timer_new(w->loop, loop_now_ns(w->loop) + ns_of_s(w->dark_s), 0, on_dark,
                           w, &w->dark, &err);
    if (r >= 0)
        r = play(w, &opts, &err);
    if (r < 0)
        printf("# %s\n", err.text);
    return r >= 0 && w->done && w->result.end == SESSION_RAN && w->result.tuner;
}

static void close_world(struct world *w)
{
    session_free(w->session);
    loop_timer_free(take(w->dark));
    virtual_world_free(w->sim);
    loop_free(w->loop);
    w->session = NULL;
    w->sim = NULL;
    w->loop = NULL;
    w->done = false;
}

/* `make soak` plays every pair of workload and goal, `make check` one in three: each
 * workload with two goals, each goal with a third of the workloads.  Sanitizers look at
 * memory, not at results: one in six.
 */
static inline bool left_out(size_t workload, size_t goal)
{
    size_t each = getenv("UNDERWATT_SANITIZED") ? 6 : 3;

    return !getenv("UNDERWATT_SOAK") && (workload + goal) % each != 0;
}

static const char *const goals[] __attribute__((unused)) = {
    "energy", "edp", "eds:2", "eds:1.5", "cost:0.5", "slowdown:1.1"};

/* Each board, workload and goal, or those that argv[1], [2] and [3] name. */
static inline void one_by_one(struct world *w, int argc, char **argv,
                              void (*one)(struct world *w, const char *board,
                                          const char *workload, const char *goal))
{
    static const char *const boards[] = {"rtx6000", "v100"};

    for (size_t b = 0; b < n_elements(boards); b++) {
        if (argc > 1 && strcmp(argv[1], boards[b]) != 0)
            continue;
        const struct plant_workload *work;
        const struct plant_board *board = plant_board_find(boards[b]);
        for (size_t i = 0; (work = plant_workload_at(board, i)); i++) {
            if (argc > 2 && strcmp(argv[2], work->name) != 0)
                continue;
            for (size_t g = 0; g < n_elements(goals); g++)
                if (argc > 3 ? strcmp(argv[3], goals[g]) == 0 : !left_out(i, g))
                    one(w, boards[b], work->name, goals[g]);
        }
    }
}

#endif
