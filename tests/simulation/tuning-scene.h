/* The daemon's searches in virtual time: jobs, pages, samplers, claims, ramp, actuator
 * and meters as they are, on eight simulated boards.
 */
#ifndef TUNING_SCENE_H
#define TUNING_SCENE_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"
#include "caps/budget.h"
#include "io/progress.h"
#include "plant/plant.h"
#include "tap.h"
#include "trace.h"
#include "tuner/searches.h"
#include "virtual/virtual-loop.h"
#include "virtual/virtual-world.h"

enum { BOARDS = 8, JOBS = 3, STATE = 65536 };
static bool verbose;
static const char *case_name = ""; /* of the next scene, in the trace */
/* Of the next scene: what sets its boards apart, and search.slack. */
static const struct plant_trait *traits;
static double slack, visits;
static int looks;                               /* search.looks; 0: the tuner's own */
static bool clocks;                             /* search.clocks, and caps.clocks */
static bool no_gain;                            /* their sensors err by noise alone */
static uint32_t budget_mw;                      /* budget.node */
static uint32_t least_mw;                       /* their lowest limit; 0: a V100's */
static bool uncounted;                          /* see virtual_world_uncounted() */
static double speed_noise;                      /* see struct sim_machine_board */
static const struct gpu_backend *scene_backend; /* limits' way; NULL: the boards' own */
static uint64_t set_latency_ns;                 /* of the driver; 0: the machine's own */

/* Sanitizers look at memory: repetitions whose results are compared are left to the plain
 * build, which plays them all.
 */
static inline bool sanitized(void)
{
    return getenv("UNDERWATT_SANITIZED") && !getenv("UNDERWATT_SOAK");
}

struct play {
    const char *workload, *boards, *goal, *cap;
    double seconds;
    bool mute; /* it has no page */
};

struct run {
    struct scene *scene;
    struct job_entry entry;
    struct progress_page *page;
    struct loop_child *child;
    char state[STATE];
    unsigned saves;
    double ended_s;
    bool stays; /* the job outlives its program */
};

struct scene {
    struct loop *loop;
    struct virtual_world *world;
    struct boards *boards;
    struct window_worker *folds;
    struct sampler *sampler[BOARDS];
    struct actuator *act;
    struct caps *caps;
    struct budget *budget;
    struct searches *tunings;
    struct loop_timer *pause, *tick;
    struct run run[JOBS];
    size_t n_runs;
    char said[4096];
    bool open, ready;
    int first_waits; /* at the first cap that came into force: caps waited; -1: none */
};

static uint64_t clock_of(void *user)
{
    return loop_now_ns(user);
}

static int on_pause(struct loop_timer *timer, uint64_t now, void *user)
{
    struct scene *s = user;
    (void)timer;
    (void)now;

    loop_stop(s->loop, 0);
    return 0;
}

static void pass(struct scene *s, double seconds)
{
    loop_timer_set(s->pause, loop_now_ns(s->loop) + ns_of_s(seconds), 0);
    int r = loop_run(s->loop, NULL);
    if (r < 0)
        ok(false, "the loop runs: %d", r);
}

static int on_tick(struct loop_timer *timer, uint64_t now, void *user)
{
    struct scene *s = user;
    (void)timer;
    (void)now;

    for (size_t i = 0; i < BOARDS; i++) {
        sampler_watch_clock(s->sampler[i], 0, caps_watches_clock(s->caps, i));
        caps_seen(s->caps, i, &sampler_board(s->sampler[i], 0)->limits);
    }
    return 0;
}

static void note_first(struct scene *s, const struct caps_what *what)
{
    struct caps_view v;

    if (!s->caps || s->first_waits >= 0 || what->event != CAPS_EVENT_CAP)
        return;
    caps_look(s->caps, what->board, &v);
    if (what->enforced_mw && what->enforced_mw < v.bounds.original_mw)
        s->first_waits = v.waiting;
}

static void on_caps(const struct caps_what *what, void *user)
{
    struct scene *s = user;

    note_first(s, what);

    if (s->tunings)
        searches_on_caps(s->tunings, what);
    if (verbose && what->event != CAPS_EVENT_CAP)
        printf("# %8.1f s  board %zu event %d claim %.0f W enforced %.0f W %s\n",
               (double)what->at_ns * 1e-9, what->board, (int)what->event,
               what->claim ? w_of_mw(what->claim->mw) : 0, w_of_mw(what->enforced_mw),
               what->text);
}

static int on_boards(struct boards *set, int r, const uw_error *err, void *user)
{
    struct scene *s = user;
    (void)set;
    (void)err;

    s->open = r == 0;
    loop_stop(s->loop, 0);
    return 0;
}

static int on_ready(struct actuator *act, int r, const char *text, void *user)
{
    struct scene *s = user;
    (void)text;

    s->ready = r == 0;
    if (s->ready)
        caps_use_actuator(s->caps, act);
    return 0;
}

static int on_event(struct actuator *act, enum actuator_event event,
                    const struct actuator_reply *what, void *user)
{
    struct scene *s = user;
    (void)act;

    caps_on_actuator(s->caps, event, what);
    return 0;
}

static struct sampler *sampler_of(size_t board, void *user)
{
    struct scene *s = user;
    return board < BOARDS ? s->sampler[board] : NULL;
}

static void on_save(uint64_t job, const char *state, void *user)
{
    struct scene *s = user;
    struct run *r = &s->run[job - 1];

    r->saves++;
    (void)snprintf(r->state, sizeof r->state, "%s", state);
}

static void on_note(uint64_t job, const char *text, bool important, void *user)
{
    struct scene *s = user;
    size_t n = strlen(s->said);
    (void)important;

    (void)snprintf(s->said + n, sizeof s->said - n, "%llu: %s\n", (unsigned long long)job,
                   text);
    if (verbose)
        printf("# %8.1f s  job %llu: %s\n", (double)loop_now_ns(s->loop) * 1e-9,
               (unsigned long long)job, text);
}

static int new_tunings(struct scene *s, uw_error *err)
{
    struct searches_opts opts = {
        .loop = s->loop,
        .boards = s->boards,
        .caps = s->caps,
        .sampler = sampler_of,
        .slack = slack,
        .clocks = clocks,
        .gap_checks = looks,
        .checks_share = visits,
        .save = on_save,
        .note = on_note,
        .user = s,
    };
    return searches_new(&opts, &s->tunings, err);
}

static bool scene_open(struct scene *s)
{
    struct sim_machine machine;
    uw_error err = {""};

    trace_case("%s", case_name);
    *s = (struct scene){.first_waits = -1};
    int r = loop_new_virtual(1000000000, 1700000000, &s->loop, &err);
    if (r >= 0)
        r = sim_machine_builtin("v100", BOARDS, &machine, &err);
    for (size_t i = 0; traits && i < BOARDS; i++)
        machine.board[i].trait = traits[i];
    for (size_t i = 0; no_gain && i < BOARDS; i++)
        machine.board[i].gain = 1;
    for (size_t i = 0; i < BOARDS; i++)
        machine.board[i].speed_noise = speed_noise;
    for (size_t i = 0; least_mw && i < BOARDS; i++)
        machine.board[i].plant.min_mw = least_mw;
    if (set_latency_ns)
        machine.set_latency_ns = set_latency_ns;
    if (r >= 0)
        r = virtual_world_new(s->loop, &machine, 1, &s->world, &err);
    if (r >= 0 && uncounted)
        virtual_world_uncounted(s->world);
    struct gpu_open_opts gpu = {.clock = {clock_of, s->loop}, .backend_user = s->world};
    if (r >= 0)
        r = boards_open(s->loop, trace_backend(), &gpu, on_boards, s, &s->boards, &err);
    if (r >= 0)
        r = loop_timer_new(s->loop, UINT64_MAX, 0, on_pause, s, &s->pause, &err);
    if (r >= 0)
        r = loop_run(s->loop, &err);
    struct caps_opts caps = {.loop = s->loop,
                             .boards = s->boards,
                             .conf = {.cls = CAP_CLASS_DEFAULT, .clocks = clocks},
                             .on_event = on_caps,
                             .user = s};
    if (r >= 0)
        r = caps_new(&caps, &s->caps, &err);
    if (r >= 0)
        r = budget_new(s->loop, s->caps, BOARDS, &s->budget, &err);
    if (r >= 0)
        budget_configure(s->budget, budget_mw);
    if (r >= 0)
        r = window_worker_new(s->loop, &s->folds, &err);
    for (size_t i = 0; i < BOARDS && r >= 0; i++) {
        struct board *b = boards_at(s->boards, i);
        struct sampler_opts opts = {.seed = i + 1, .folds = s->folds};
        r = sampler_new(s->loop, &b, 1, &opts, &s->sampler[i], &err);
    }
    struct actuator_opts act = {.on_ready = on_ready, .on_event = on_event, .user = s};
    if (r >= 0)
        r = actuator_start_virtual(s->loop,
                                   scene_backend ? scene_backend : trace_backend(),
                                   boards_lib(s->boards), &act, &s->act, &err);
    if (r >= 0)
        r = loop_timer_new(s->loop, loop_now_ns(s->loop) + NS_PER_S, NS_PER_S, on_tick, s,
                           &s->tick, &err);
    if (r >= 0)
        r = new_tunings(s, &err);
    if (r >= 0)
        pass(s, 2);
    return ok(r >= 0 && s->open && s->ready, "the node is there %s", err.text);
}

static void scene_close(struct scene *s)
{
    searches_free(s->tunings);
    for (size_t i = 0; i < s->n_runs; i++) {
        loop_child_free(s->run[i].child);
        progress_page_free(s->run[i].page);
    }
    loop_timer_free(s->tick);
    for (size_t i = 0; i < BOARDS; i++)
        sampler_free(s->sampler[i]);
    window_worker_free(s->folds);
    actuator_free(s->act);
    budget_free(s->budget);
    caps_free(s->caps);
    boards_free(s->boards);
    loop_timer_free(s->pause);
    virtual_world_free(s->world);
    loop_free(s->loop);
}

static int on_exit_of(struct loop_child *child, int status, void *user)
{
    struct run *r = user;
    struct scene *s = r->scene;
    (void)child;

    r->ended_s = (double)loop_now_ns(s->loop) * 1e-9;
    if (status != 0)
        printf("# job %llu ended with %d\n", (unsigned long long)r->entry.id, status);
    return s->tunings && !r->stays ? searches_on_job(s->tunings, ROSTER_END, &r->entry)
                                   : 0;
}

static int start_program(struct scene *s, struct run *r, const struct play *p,
                         uw_error *err)
{
    const struct plant_board *b = plant_board_find("v100");
    const struct plant_workload *work = plant_workload_find(b, p->workload);
    char epochs[16], page[300];
    const char *argv[] = {"underwatt-sim", "train",  "--workload",
                          p->workload,     "--gpus", p->boards,
                          "--epochs",      epochs,   NULL};
    const char *env[] = {page, NULL};

    (void)snprintf(epochs, sizeof epochs, "%.0f",
                   ceil(p->seconds / plant_steady(b, work, b->default_mw).time_s));
    (void)snprintf(page, sizeof page, "UNDERWATT_PROGRESS=%s",
                   progress_page_path(r->page));
    struct loop_child_opts child = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    return loop_child_new(s->loop, &child, on_exit_of, r, &r->child, err);
}

static int hand_over(struct scene *s, struct run *r, uw_error *err)
{
    int fd = open(progress_page_path(r->page), O_RDONLY | O_CLOEXEC);
    int got = searches_page(s->tunings, r->entry.id, fd, err);

    if (got < 0)
        (void)close(fd);
    return got;
}

static int ask_of(const struct play *p, struct searches_ask *ret, uw_error *err)
{
    *ret = (struct searches_ask){.search = p->goal != NULL};
    return p->goal ? goal_parse(p->goal, &ret->goal, err)
                   : parse_cap(p->cap, &ret->cap, err);
}

static bool begin(struct scene *s, const struct play *p)
{
    struct run *r = &s->run[s->n_runs];
    struct searches_ask ask;
    uw_error err = {""};

    r->scene = s;
    r->entry = (struct job_entry){.id = ++s->n_runs, .uid = 1000};
    for (const char *c = p->boards; *c; c++)
        if (*c != ',')
            r->entry.boards |= 1ull << (*c - '0');
    int got = progress_page_new("/dev/shm", &r->page, &err);
    if (got >= 0)
        got = ask_of(p, &ask, &err);
    if (got >= 0)
        got = searches_begin(s->tunings, &r->entry, &ask, &err);
    if (got >= 0)
        got = start_program(s, r, p, &err);
    if (got >= 0 && !p->mute)
        got = hand_over(s, r, &err);
    return ok(got >= 0, "%s on %s: begins %s", p->workload, p->boards, err.text);
}

/* A node with one job; false: there is none, nothing is left to close. */
static inline bool scene_begin(struct scene *s, const struct play *p)
{
    if (scene_open(s) && begin(s, p))
        return true;
    scene_close(s);
    return false;
}

static const struct tuner_report *report_of_job(struct scene *s, uint64_t job)
{
    struct searches_view v;
    return searches_look(s->tunings, job, &v) ? v.report : NULL;
}

static const struct tuner_report *report_of(struct scene *s, size_t i)
{
    return report_of_job(s, s->run[i].entry.id);
}

static inline uint32_t in_force(const struct scene *s, size_t board)
{
    struct caps_view v;
    caps_look(s->caps, board, &v);
    return v.enforced_mw;
}

static inline void wait_for_hold(struct scene *s, size_t i)
{
    for (int k = 0; k < 240 && !report_of(s, i)->holding; k++)
        pass(s, 5);
}

struct scene_case {
    const char *name;
    void (*run)(void);
};

/* main() of a test: plays the case that argv[1] names, and shows more of it; without one
 * plays all.
 */
static inline int play_cases(const struct scene_case *cases, size_t n, int argc,
                             char **argv)
{
    struct statfs fs;

    verbose = argc > 1;
    if (statfs("/dev/shm", &fs) < 0 || fs.f_type != 0x01021994)
        return skip_all("/dev/shm is no tmpfs");
    for (size_t i = 0; i < n; i++)
        if (argc == 1 || strcmp(argv[1], cases[i].name) == 0) {
            case_name = cases[i].name;
            cases[i].run();
        }
    return done();
}

#endif
