/* One job on a private node in virtual time, as `underwatt run` plays one where no daemon
 * runs: the node with its searches, caps, meters and actuator on simulated boards, and
 * what an oracle of the training loop would have held.  Programs that use this are linked
 * with scene_link (meson.build), which wraps log_event().
 */
#ifndef RUN_SCENE_H
#define RUN_SCENE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "core/optimum/goal.h"
#include "node/node.h"
#include "plant/plant.h"
#include "scene-job.h"
#include "tap.h"
#include "trace.h"
#include "verdict.h"
#include "virtual/virtual-loop.h"
#include "virtual/virtual-world.h"

static bool verbose;
#define JOB_S 1200.0 /* simulated time of a job at the default limit */
#define LOOK_NS (NS_PER_S / 4)

enum {
    FEED_S = 1,    /* the boards are sampled for so long before CMD starts */
    SETTLE_S = 60, /* longest wait for the job's energy and its boards after its end */
};

/* What the command is told. */
struct play {
    const char *const *argv;
    uint64_t boards; /* a mask */
    bool search;     /* for goal; else a cap by name, or no cap at all */
    struct goal goal;
    struct cap_arg cap;
};

/* What is known at the end. */
struct outcome {
    uw_error error;
    int status;      /* of waitpid() */
    bool measured;   /* the energy is known */
    double time_s;   /* of the job, as the node has it */
    double energy_j; /* booked to the job */
    double window_j; /* of its boards in a window of the client's, and … */
    double window_half_j;
    uint32_t why;                     /* … enum meter_why */
    uint64_t steps;                   /* that CMD told; 0: none */
    const struct tuner_report *tuner; /* NULL: no caps were wanted */
};

/* When the steps of a job at the original cap were seen. */
struct twin {
    size_t n;
    double at_s[1 << 20];
};

struct world {
    struct loop *loop;
    struct virtual_world *sim;
    struct loop_timer *timer;
    struct node_config config;
    struct node *node;
    struct job *job;
    uint64_t id, window; /* of the job; of the client's window */
    const struct play *play;
    bool capped;       /* of play: a search, or a cap by name */
    bool running;      /* CMD was started */
    uint64_t ended_ns; /* when CMD ended; 0: it runs */
    bool told_window;
    int waited; /* result of what start_node() waits for; 1: it has not come */
    struct outcome result;
    bool done;
    char dir[64];
    double checks_share; /* of the configuration; 0: its default; < 0: none */
    int looks;           /* same */
    bool mute;           /* the job has no page: it tells of no steps */
    double dark_s;       /* its page cannot be read from then on; 0: it can */
    struct loop_timer *dark;
    const char *inject; /* of job_opts */
    double
        blur_s; /* its sensor shows means of so long, one after the other; 0: its own */
    const char *const *more; /* further arguments of the job, up to NULL, 8 at most */
    double noise_sd;         /* of its boards' speed, each second */
    double memory_s;         /* of this noise; 0: none */
    struct twin *twin;       /* NULL: none */
    double bound;            /* 1: this is the twin */
    double over_s;           /* longest time over bound x that of the twin, so far */
    double over_at_s;
    unsigned over_n;
    uint64_t first_ns, first_steps;
    double held_s;      /* from the first step to the first hold; 0: none yet */
    double reference_s; /* that the search measured at the original cap since then */
    double seen_s;      /* when its steps were last compared */
    char noted[4096];   /* all notes of the search, as far as they fit */
};

static struct world *noting; /* the world whose node logs */

static const struct node_who self
    __attribute__((unused)) = {.admin = true, .may_claim = true, .name = "user root"};

static uint64_t clock_of(void *user)
{
    return loop_now_ns(user);
}

/* A folder in memory: a node takes pages from no other. */
static inline bool open_dir(struct world *w)
{
    (void)snprintf(w->dir, sizeof w->dir, "/dev/shm/underwatt-test-XXXXXX");
    return mkdtemp(w->dir) != NULL;
}

static void note(struct world *w, const char *text)
{
    size_t n = strlen(w->noted);

    (void)snprintf(w->noted + n, sizeof w->noted - n, "%s\n", text);
    if (verbose)
        printf("# %8.1f s  %s\n", (double)loop_now_ns(w->loop) * 1e-9, text);
}

void __wrap_log_event(enum log_level level, enum log_word event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The notes of searches; nothing else of the node's log. */
void __wrap_log_event(enum log_level level, enum log_word event, const char *format, ...)
{
    char text[512];
    va_list args;
    (void)level;

    if (event != LOG_EVENT_SEARCH || !noting)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    note(noting, text);
}

/* ---- the job's page ---- */

/* -1: there is none. */
static int open_page(const struct world *w, int flags)
{
    DIR *dir = opendir(w->dir);
    int fd = -1;

    for (struct dirent *e; dir && fd < 0 && (e = readdir(dir));)
        if (strncmp(e->d_name, PROGRESS_PREFIX, strlen(PROGRESS_PREFIX)) == 0)
            fd = openat(dirfd(dir), e->d_name, flags | O_CLOEXEC);
    if (dir)
        (void)closedir(dir);
    return fd;
}

static inline int on_dark(struct loop_timer *timer, uint64_t now, void *user)
{
    static const char none[8] = "";
    int fd = open_page(user, O_RDWR);
    (void)timer;
    (void)now;

    ok(fd >= 0 && pwrite(fd, none, sizeof none, 0) == (ssize_t)sizeof none,
       "(its page cannot be read any more)");
    if (fd >= 0)
        (void)close(fd);
    return 0;
}

/* ---- the end ---- */

static void on_window(int r, const struct client_window_result *result, const char *text,
                      void *user)
{
    struct world *w = user;
    struct outcome *o = &w->result;
    double half2 = 0;

    w->told_window = true;
    if (r < 0)
        (void)fail(&o->error, r, "%s", text);
    o->measured = r == 0;
    for (size_t i = 0; r == 0 && i < result->n; i++) {
        const struct client_window_board *b = &result->board[i];
        if (!(w->play->boards >> i & 1))
            continue;
        if (b->r < 0)
            (void)fail(&o->error, b->r, "%s", b->error.text);
        o->measured &= b->r == 0;
        o->window_j += b->energy_j;
        half2 += b->half_j * b->half_j;
        o->why |= b->why;
    }
    o->window_half_j = sqrt(half2);
}

static const struct view_job *view_of(const struct world *w)
{
    const struct node_view *v = node_look(w->node);

    for (size_t i = 0; i < v->n_jobs; i++)
        if (v->job[i].job->id == w->id)
            return &v->job[i];
    return NULL;
}

/* Registers the job and hands over its page; anew where the node has lost it with its
 * boards: the driver was loaded anew, and no ledger keeps jobs.
 */
static int register_job(struct world *w, uw_error *err)
{
    const struct play *p = w->play;
    struct node_job ask = {
        .reg = {.source = JOB_RUN,
                .name = p->argv[0],
                .boards = p->boards,
                .pid = job_pid(w->job)},
        .search = p->search,
        .goal = p->goal,
        .cap = p->cap,
        .page_fd = w->capped && !w->mute ? open_page(w, O_RDONLY) : -1,
    };

    return node_job_begin(w->node, &self, &ask, &w->id, err);
}

static bool is_over(const struct view_job *j)
{
    return j && (!j->search.on || j->search.status == SEARCH_IS_OVER);
}

static void take_result(struct world *w, const struct view_job *j)
{
    if (is_over(j)) {
        w->result.time_s = j->time_s;
        w->result.energy_j = j->energy_j;
        w->result.tuner = j->search.on ? j->search.report : NULL;
    }
    w->done = true;
    loop_stop(w->loop, 0);
}

/* Whether the step of the search is a window at the original cap. */
static bool is_at_reference(const struct searches_view *v)
{
    char at[32];

    (void)snprintf(at, sizeof at, " %.0f W (", w_of_mw(v->report->original_mw));
    return (v->status == SEARCH_WALKS || v->status == SEARCH_MEASURES) &&
           strstr(v->state, at);
}

/* Notes the job's steps, or compares them with those of its twin. */
static void compare(struct world *w, const struct view_job *j, const struct step_mark *m)
{
    struct twin *t = w->twin;

    if (m->steps == 0)
        return;
    if (!w->first_ns) {
        w->first_ns = m->at_ns;
        w->first_steps = m->steps;
    }
    double s = s_between(w->first_ns, m->at_ns);
    size_t step = (size_t)(m->steps - w->first_steps);
    const struct tuner_report *r = j->search.report;
    if (r && r->holding && !w->held_s)
        w->held_s = s;
    if (r && w->held_s > 0 && is_at_reference(&j->search))
        w->reference_s += s - w->seen_s;
    w->seen_s = s;
    if (w->bound <= 1) {
        for (; t->n <= step && t->n < n_elements(t->at_s); t->n++)
            t->at_s[t->n] = s;
        return;
    }
    if (step >= t->n) /* its twin made fewer */
        return;
    double over = s - w->bound * t->at_s[step];
    if (over > fmax(1, 1e-3 * t->at_s[step]) && !w->over_n++ && verbose)
        printf("# %8.1f s  over by %.2f s\n", s, over);
    if (over > w->over_s) {
        w->over_s = over;
        w->over_at_s = s;
    }
}

/* Ends the play when the job's energy is booked and its boards are released. */
static int on_timer(struct loop_timer *timer, uint64_t now, void *user)
{
    struct world *w = user;
    const struct view_job *j = w->running ? view_of(w) : NULL;
    (void)timer;

    if (w->running && !w->ended_ns && w->twin && j)
        compare(w, j, &job_steps(w->job)->mark);
    if (!w->running) { /* start_node() waits */
        loop_stop(w->loop, 0);
    } else if (!w->ended_ns && !j) {
        (void)register_job(w, NULL); /* the boards may be closed: tried again */
    } else if (w->ended_ns) {
        bool over = is_over(j) && j->settled && w->told_window;
        if (over || s_between(w->ended_ns, now) > SETTLE_S)
            take_result(w, j);
    }
    return 0;
}

static int on_exit_of_job(struct job *job, int status, void *user)
{
    struct world *w = user;
    uw_error err = {""};

    w->result.status = status;
    w->result.steps = job_steps(job)->mark.steps;
    w->ended_ns = loop_now_ns(w->loop);
    const struct client_window_ask ask = {.fn = on_window, .user = w};
    w->told_window =
        node_window_end(w->node, &self, w->window, &ask, &w->result.error) < 0;
    int r = node_job_end(w->node, &self, w->id, &err);
    if (r < 0)
        printf("# end: %s\n", err.text);
    loop_timer_set(w->timer, w->ended_ns, LOOK_NS);
    return 0;
}

/* ---- the beginning ---- */

/* A virtual loop and these boards. */
static int open_world(struct world *w, const struct sim_machine *machine, uw_error *err)
{
    int r = loop_new_virtual(1000000000, 1700000000, &w->loop, err);

    w->noted[0] = '\0';
    w->result = (struct outcome){.time_s = 0};
    noting = w;
    if (r >= 0)
        r = loop_timer_new(w->loop, UINT64_MAX, 0, on_timer, w, &w->timer, err);
    return r < 0 ? r : virtual_world_new(w->loop, machine, 1, &w->sim, err);
}

static int on_ready(struct node *node, int r, const uw_error *err, void *user)
{
    struct world *w = user;
    (void)node;

    if (r < 0)
        printf("# not ready: %s\n", err->text);
    w->waited = r;
    loop_stop(w->loop, 0);
    return 0;
}

static void on_actuator(int r, const char *text, void *user)
{
    struct world *w = user;

    if (r < 0)
        printf("# actuator: %s\n", text);
    w->waited = r;
    loop_stop(w->loop, 0);
}

/* Runs the loop until something has come. */
static int await(struct world *w, uw_error *err)
{
    int r = loop_run(w->loop, err);

    return r < 0 ? r : w->waited;
}

static void configure(struct world *w)
{
    struct node_config *c = &w->config;

    c->ledger.path[0] = '\0';
    c->history_ns = 0;
    c->jobs.discover = c->jobs.phases = false;
    if (w->checks_share)
        c->reference_share = fmax(w->checks_share, 0);
    if (w->looks)
        c->gap_checks = w->looks > 0 ? (uint64_t)w->looks : 0;
}

/* The node of a command (ask/own-node.c), its boards, and its actuator where caps are
 * wanted.
 */
static int start_node(struct world *w, uw_error *err)
{
    struct node_opts opts = {
        .loop = w->loop,
        .config = &w->config,
        .backend = trace_backend(),
        .gpu = {.clock = {clock_of, w->loop}, .backend_user = w->sim},
        .version = "test",
        .simulated = true,
        .private = true,
        .virtual_actuator = true,
        .read = virtual_world_proc,
        .read_user = w->sim,
        .on_ready = on_ready,
        .user = w};
    int r = node_config_init(&w->config, NULL, err);

    if (r == 0)
        configure(w);
    w->waited = 1;
    if (r == 0)
        r = node_new(&opts, &w->node, err);
    if (r == 0)
        r = await(w, err);
    if (r == 0 && w->capped) {
        w->waited = 1;
        r = node_need_actuator(w->node, on_actuator, w, err);
        r = r == 0 ? await(w, err) : r < 0 ? r : 0;
    }
    if (r < 0)
        return r;
    loop_timer_set(w->timer, loop_now_ns(w->loop) + FEED_S * NS_PER_S, 0);
    return loop_run(w->loop, err);
}

static void on_uncounted(const char *why, void *user)
{
    note(user, why);
}

static int start_job(struct world *w, uw_error *err)
{
    struct job_opts job = {
        .argv = w->play->argv,
        .runtime_dir = w->mute ? NULL : w->dir,
        .inject = w->inject,
        .poll_ns =
            w->capped && !w->twin ? ns_of_s(24 * 3600) : 0, /* else the node reads it */
        .on_uncounted = on_uncounted,
        .on_exit = on_exit_of_job,
        .user = w,
    };
    int r = job_start(w->loop, &job, &w->job, err);

    if (r >= 0)
        r = node_window_begin(w->node, &self, &w->window, err);
    if (r >= 0)
        r = register_job(w, err);
    if (r < 0)
        return r;
    w->running = true;
    loop_timer_set(w->timer, loop_now_ns(w->loop) + LOOK_NS, LOOK_NS);
    return 0;
}

/* One command there, to its end. */
static int play(struct world *w, const struct play *p, uw_error *err)
{
    w->play = p;
    w->capped = p->search || p->cap.mw || p->cap.percent > 0;
    int r = start_node(w, err);
    if (r >= 0)
        r = start_job(w, err);
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
    struct play p = {.argv = argv, .boards = 1, .search = true};
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
        machine.board[0].speed_noise = w->noise_sd;
    if (r >= 0)
        machine.board[0].speed_memory_s = w->memory_s;
    if (r >= 0)
        r = open_world(w, &machine, &err);
    if (r >= 0)
        r = goal_parse(goal_text, &p.goal, &err);
    if (r >= 0 && w->dark_s > 0)
        r = loop_timer_new(w->loop, loop_now_ns(w->loop) + ns_of_s(w->dark_s), 0, on_dark,
                           w, &w->dark, &err);
    if (r >= 0)
        r = play(w, &p, &err);
    if (r < 0)
        printf("# %s\n", err.text);
    return r >= 0 && w->done && w->result.tuner;
}

static void close_world(struct world *w)
{
    noting = NULL;
    node_free(take(w->node));
    job_free(take(w->job));
    loop_timer_free(take(w->dark));
    loop_timer_free(take(w->timer));
    virtual_world_free(take(w->sim));
    loop_free(take(w->loop));
    w->ended_ns = w->id = w->window = 0;
    w->running = w->told_window = w->done = false;
}

/* `make soak` plays every pair of workload and goal, `make check` one in three: each
 * workload with two goals, each goal with a third of the workloads.  Sanitizers look at
 * memory, not at results: one in six, on one of the boards.
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
    bool by_turns = getenv("UNDERWATT_SANITIZED") && !getenv("UNDERWATT_SOAK");

    for (size_t b = 0; b < n_elements(boards); b++) {
        if (argc > 1 && strcmp(argv[1], boards[b]) != 0)
            continue;
        const struct plant_workload *work;
        const struct plant_board *board = plant_board_find(boards[b]);
        for (size_t i = 0; (work = plant_workload_at(board, i)); i++) {
            if (argc > 2 ? strcmp(argv[2], work->name) != 0 : by_turns && i % 2 != b)
                continue;
            for (size_t g = 0; g < n_elements(goals); g++)
                if (argc > 3 ? strcmp(argv[3], goals[g]) == 0 : !left_out(i, g))
                    one(w, boards[b], work->name, goals[g]);
        }
    }
}

#endif
