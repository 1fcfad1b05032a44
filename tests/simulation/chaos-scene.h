/* The house of chaos-virtual.c: a virtual node whose daemon and actuator can die. */
#ifndef CHAOS_SCENE_H
#define CHAOS_SCENE_H

#include <dirent.h>
#include <errno.h>

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actuator/guard.h"
#include "actuator/journal.h"
#include "base/auto.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/units.h"
#include "io/progress.h"
#include "node/node.h"
#include "tap.h"
#include "virtual/virtual-loop.h"
#include "virtual/virtual-world.h"

enum {
    ANNA = 1000,
    RUNS = 5,
    EVENTS = 60,
    OURS_MAX = 256,
    FOREIGN_MAX = 64,
    KNOWN_MAX = 512,
    INTERVAL_S = 10,
    GRACE_S = 10,
    LEASE_S = 3,
    CALM_S = 45, /* what failed is tried again after 32 s at the latest */
};
#define ORIGINAL_MW 250000u
#define DEFAULT_MW 300000u /* a V100's */
#define MIN_MW 150000u

static const struct node_who anna = {.uid = ANNA, .may_claim = true, .name = "user anna"},
                             root = {.uid = 0,
                                     .admin = true,
                                     .may_claim = true,
                                     .name = "user root"};

/* Through which the actuator writes. */
static const struct gpu_backend *scene_backend = &virtual_backend;
/* Root's configuration of the actuator; NULL: none. */
static const struct core_rules *scene_rules;
/* By which the daemon knows processes. */
static proc_read_fn scene_read = virtual_world_proc;
static struct guard *volatile scene_kept[256];
static size_t scene_n_kept;

/* A claim as it was asked for. */
struct ours {
    uint64_t id, made_ns, until_ns, withdrawn_ns; /* withdrawn 0: not */
    size_t board;
    enum claim_kind kind;
    uint32_t mw, mhz;
    uint64_t job; /* that gave the right to it; 0: root's need none */
    pid_t pid;    /* its process */
    bool roots, rebooted;
    bool unsure; /* the ledger may not know it */
};

struct run {
    struct loop_child *child;
    struct progress_page *page;
    uint64_t job; /* 0: to be found */
    size_t board;
    uint64_t found;    /* the job that it was seen as; 0: none yet */
    uint64_t found_ns; /* … first; later while the disk is full */
    unsigned trouble;  /* of its board then */
};

struct known {
    uint64_t id;
    int64_t began_utc_ns;
};

struct round {
    struct rng g;
    struct loop *loop;
    struct loop_timer *timer;
    struct virtual_world *sim;
    void *reader; /* a library of the test's own */
    char dir[64], boot_id[32];
    unsigned life, boot;
    struct node_config config;
    struct node *node;
    bool ready, ended;
    struct actuator_virtual service;
    void *service_lib;
    struct journal journal;
    size_t n_boards;
    struct ours ours[OURS_MAX];
    size_t n_ours;
    struct run run[RUNS];
    uint32_t foreign_mw[FOREIGN_MAX];
    size_t n_foreign;
    struct known known[KNOWN_MAX];
    size_t n_known;
    uint64_t top_job, last_life_job;
    double energy_j[8];
    bool may_default, may_hang, hung, disk_full, disk_ever, jumped;
    unsigned trouble[8];         /* a job ended there, or may seem to have */
    uint64_t noise_ns, fault_ns; /* last trouble; until when one lasts */
    uint64_t awake_ns, guard_ns, back_ns, disk_ns; /* when what is away comes back */
    uint64_t gone_ns;                              /* when the daemon died; 0: lives */
    unsigned long looks, calm, locked, users;
    char bad[300];
};

static uint64_t now_of(const struct round *r)
{
    return loop_now_ns(r->loop);
}

static uint64_t below(struct round *r, uint64_t n)
{
    return rng_below(&r->g, n);
}

__attribute__((format(printf, 2, 3))) static void bad(struct round *r, const char *format,
                                                      ...)
{
    va_list args;

    if (r->bad[0])
        return;
    va_start(args, format);
    int n = vsnprintf(r->bad, sizeof r->bad, format, args);
    va_end(args);
    if (r->loop && n > 0 && (size_t)n < sizeof r->bad)
        (void)snprintf(r->bad + n, sizeof r->bad - (size_t)n, " (at %.1f s, life %u)",
                       s_between(1000 * NS_PER_S, now_of(r)), r->life);
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    loop_stop(user, 0);
    return 0;
}

static void pass(struct round *r, double s)
{
    loop_timer_set(r->timer, now_of(r) + ns_of_s(s), 0);
    (void)loop_run(r->loop, NULL);
}

static void fault(struct round *r, const char *text)
{
    struct sim_fault f;

    if (sim_fault_parse(text, &f, NULL) < 0 || virtual_world_fault(r->sim, &f, NULL) < 0)
        bad(r, "fault %s", text);
}

/* The plant's truth; 0: the board cannot be asked. */
static uint32_t limit_of(const struct round *r, size_t board)
{
    struct gpu_sample sample = {0};

    (void)virtual_backend.sample(virtual_backend.at(r->reader, board), GPU_HAS_REQUESTED,
                                 &sample, NULL);
    return sample.has & GPU_HAS_REQUESTED ? sample.requested_mw : 0;
}

/* The original, a default after a reload, or another's: none of ours. */
static bool is_theirs(const struct round *r, uint32_t mw)
{
    bool theirs = mw == ORIGINAL_MW || (r->may_default && mw == DEFAULT_MW);

    for (size_t i = 0; i < r->n_foreign; i++)
        theirs = theirs || mw == r->foreign_mw[i];
    return theirs;
}

static uint32_t highest(const struct round *r)
{
    return r->may_default ? DEFAULT_MW : ORIGINAL_MW;
}

/* ---- files ---- */

static void life_dir(const struct round *r, unsigned life, char ret[100])
{
    (void)snprintf(ret, 100, "%s/life%u", r->dir, life);
}

static bool copy_file(const char *from, const char *to)
{
    char data[65536];
    ssize_t n = 0;
    auto_(fd_close) int in = open(from, O_RDONLY | O_CLOEXEC);
    auto_(fd_close) int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

    while (in >= 0 && out >= 0 && (n = read(in, data, sizeof data)) > 0)
        if (write(out, data, (size_t)n) != n)
            return false;
    return in >= 0 && out >= 0 && n == 0;
}

/* All files of a folder: to another one, which is made, or (to NULL) removed with it. */
static bool each_file(const char *from, const char *to)
{
    char a[400], b[400];
    bool good = !to || mkdir(to, 0700) == 0;
    DIR *dir = opendir(from);

    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(a, sizeof a, "%s/%s", from, e->d_name);
        (void)snprintf(b, sizeof b, "%s/%s", to ? to : "", e->d_name);
        if (!to)
            good = unlink(a) == 0 && good;
        else if (!strstr(e->d_name, "-shm")) /* SQLite makes it anew */
            good = copy_file(a, b) && good;
    }
    if (dir)
        (void)closedir(dir);
    return good && (to || rmdir(from) == 0);
}

/* No file of ours can grow any more. */
static void fill_disk(struct round *r, bool full)
{
    static const char *const names[] = {"ledger.sqlite", "ledger.sqlite-wal"};
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    char dir[100], path[160];
    struct stat st;

    for (size_t i = 0; full && i < r->n_ours; i++) /* may not be written yet */
        if (now_of(r) < r->ours[i].made_ns + NS_PER_S ||
            (r->ours[i].withdrawn_ns && now_of(r) < r->ours[i].withdrawn_ns + NS_PER_S))
            r->ours[i].unsure = true;
    (void)getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = limit.rlim_max;
    r->disk_full = full;
    if (full) {
        limit.rlim_cur = 65536;
        r->disk_ever = true;
    }
    life_dir(r, r->life, dir);
    for (size_t i = 0; full && i < n_elements(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        if (stat(path, &st) == 0 && (rlim_t)st.st_size > limit.rlim_cur)
            limit.rlim_cur = (rlim_t)st.st_size;
    }
    (void)setrlimit(RLIMIT_FSIZE, &limit);
}

/* ---- the ledger ---- */

static int on_row(void *user, int n, char **text, char **name)
{
    char *ret = user;

    (void)n;
    (void)name;
    (void)snprintf(ret, 100, "%s", text[0] ? text[0] : "");
    return 0;
}

static void query(struct round *r, sqlite3 *db, const char *sql, char ret[100])
{
    char *why = NULL;

    ret[0] = '\0';
    if (sqlite3_exec(db, sql, on_row, ret, &why) != SQLITE_OK)
        bad(r, "ledger: %s: %s", sql, why ? why : "");
    sqlite3_free(why);
}

/* A copy of the files of this life, or of the last one, to be looked at; to is its
 * folder, for each_file().
 */
static sqlite3 *open_copy(struct round *r, char to[100])
{
    char from[100], path[160];
    sqlite3 *db = NULL;

    life_dir(r, r->life, from);
    (void)snprintf(to, 100, "%s/look", r->dir);
    if (!each_file(from, to))
        bad(r, "no copy of %s", from);
    (void)snprintf(path, sizeof path, "%s/ledger.sqlite", to);
    if (sqlite3_open(path, &db) == SQLITE_OK)
        return db;
    bad(r, "the ledger cannot be opened: %s", sqlite3_errmsg(db));
    (void)sqlite3_close(db);
    return NULL;
}

/* Of the files that the last life has left, in a copy of them. */
static void look_at_ledger(struct round *r)
{
    char to[100], text[100];
    sqlite3 *db = open_copy(r, to);

    if (db) {
        query(r, db, "PRAGMA integrity_check", text);
        if (strcmp(text, "ok") != 0)
            bad(r, "ledger: %s", text);
        query(r, db,
              "SELECT abs(a - b) <= 0.001 * max(a, b, 1) FROM (SELECT"
              " (SELECT ifnull(sum(energy_uj), 0) FROM energy) AS a,"
              " (SELECT ifnull(sum(energy_uj), 0) FROM meter) AS b)",
              text);
        if (strcmp(text, "1") != 0)
            bad(r, "ledger: energy and meter differ");
    }
    (void)sqlite3_close(db);
    (void)each_file(to, NULL);
}

/* ---- the actuator ---- */

static void say_guard(const char *text, void *user)
{
    const struct round *r = user;

    log_event(LOG_LEVEL_DEBUG, LOG_EVENT_ACTUATOR, "at=%.1f text=%s",
              s_between(1000 * NS_PER_S, now_of(r)), log_quote(text).text);
}

static void start_guard(struct round *r)
{
    struct guard_opts opts = {.loop = r->loop,
                              .grace_ns = GRACE_S * NS_PER_S,
                              .backend = scene_backend,
                              .lib = r->service_lib,
                              .journal = &r->journal,
                              .rules = scene_rules,
                              .say = say_guard,
                              .user = r};

    (void)snprintf(r->journal.boot, sizeof r->journal.boot, "%s", r->boot_id);
    r->service.life++;
    if (guard_new(&opts, &r->service.guard, NULL) < 0 ||
        guard_recover(r->service.guard, NULL) < 0)
        bad(r, "no actuator");
}

static void stop_guard(struct round *r)
{
    struct guard *guard = take(r->service.guard);

    if (r->hung) /* a call that hangs keeps it: pointed to for good, so no leak */
        scene_kept[scene_n_kept++ % 256] = guard;
    guard_free(guard);
}

static bool entries_left(const struct round *r)
{
    char uuids[8][96];
    size_t n = 0;

    return journal_list(&r->journal, uuids, 8, &n, NULL) < 0 || n > 0;
}

/* ---- the daemon ---- */

static uint64_t clock_of(void *user)
{
    return loop_now_ns(user);
}

static int on_ready(struct node *node, int res, const uw_error *err, void *user)
{
    struct round *r = user;

    (void)node;
    if (res < 0)
        bad(r, "not ready: %s", err->text);
    r->ready = true;
    return 0;
}

static int on_node_end(struct node *node, void *user)
{
    struct round *r = user;

    (void)node;
    r->ended = true;
    return 0;
}

static void hand_over(struct round *r, const struct run *run)
{
    int fd = open(progress_page_path(run->page), O_RDONLY | O_CLOEXEC);

    (void)node_job_page(r->node, &root, run->job, fd, NULL);
}

/* A daemon over the files of the last one. */
static void begin_life(struct round *r)
{
    char dir[100];
    uw_error err = {""};
    struct node_opts opts = {
        .loop = r->loop,
        .config = &r->config,
        .backend = &virtual_backend,
        .gpu = {.clock = {clock_of, r->loop}, .backend_user = r->sim},
        .version = "chaos",
        .simulated = true,
        .service = &r->service,
        .boot_id = r->boot_id,
        .read = scene_read,
        .read_user = r->sim,
        .on_ready = on_ready,
        .user = r};

    (void)snprintf(r->boot_id, sizeof r->boot_id, "boot-%u", r->boot);
    life_dir(r, r->life, dir);
    (void)snprintf(r->config.ledger.path, sizeof r->config.ledger.path,
                   "%s/ledger.sqlite", dir);
    r->ready = false;
    if (node_new(&opts, &r->node, &err) < 0)
        bad(r, "no daemon: %s", err.text);
    for (int i = 0; i < 20 && r->node && !r->ready; i++)
        pass(r, 0.5);
    for (size_t i = 0; r->node && i < RUNS; i++)
        if (r->run[i].job)
            hand_over(r, &r->run[i]);
    r->gone_ns = 0;
    r->noise_ns = now_of(r);
}

static void count_death(struct round *r)
{
    r->gone_ns = r->noise_ns = now_of(r);
    r->last_life_job = r->top_job;
    look_at_ledger(r);
}

/* Jobs that the ledger may not know. */
static void forget_fresh(struct round *r)
{
    for (size_t i = 0; i < RUNS; i++)
        if (now_of(r) < r->run[i].found_ns + NS_PER_S)
            r->run[i].found = 0;
}

static void kill_node(struct round *r)
{
    char from[100], to[100];
    bool full = r->disk_full;

    /* What came within the last moment may not be written yet. */
    for (size_t i = 0; i < r->n_ours; i++)
        if (now_of(r) < r->ours[i].made_ns + NS_PER_S ||
            (r->ours[i].withdrawn_ns && now_of(r) < r->ours[i].withdrawn_ns + NS_PER_S))
            r->ours[i].unsure = true;
    forget_fresh(r);
    if (full)
        fill_disk(r, false);
    life_dir(r, r->life, from);
    life_dir(r, ++r->life, to);
    if (!each_file(from, to))
        bad(r, "no copy of %s", from);
    bool stopped = r->service.stopped;
    r->service.stopped = true; /* who is killed asks for nothing any more */
    node_free(take(r->node));
    r->service.stopped = stopped;
    (void)each_file(from, NULL);
    count_death(r);
}

static void end_node(struct round *r)
{
    r->ended = false;
    forget_fresh(r);
    if (node_end(r->node, on_node_end, r) < 0)
        bad(r, "no end");
    for (int i = 0; i < 20 && !r->ended; i++)
        pass(r, 0.5);
    if (!r->ended)
        bad(r, "the daemon does not end");
    node_free(take(r->node));
    count_death(r);
}

/* ---- jobs ---- */

static int nobody_cares(struct loop_child *child, int status, void *user)
{
    (void)child;
    (void)status;
    (void)user;
    return 0;
}

static void end_run(struct round *r, struct run *run)
{
    if (!run->child)
        return;
    if (run->job && r->node)
        (void)node_job_end(r->node, &root, run->job, NULL);
    (void)loop_child_kill(run->child, SIGKILL);
    loop_child_free(run->child);
    progress_page_free(run->page);
    *run = (struct run){0};
}

/* Anna's training: found by itself, or registered with a search for its best cap. */
static void begin_run_on(struct round *r, struct run *run, size_t board, bool search)
{
    char gpus[24], owner[40], page[300];
    const char *argv[] = {"underwatt-sim", "train",  "--workload",
                          "resnet50",      "--gpus", gpus,
                          "--epochs",      "100000", NULL};
    const char *env[] = {owner, page, NULL};
    struct loop_child_opts opts = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    struct node_job ask = {.reg = {.source = JOB_REGISTERED,
                                   .name = "slurm:1",
                                   .uid = ANNA,
                                   .boards = 1ull << board},
                           .search = true,
                           .page_fd = -1};

    (void)snprintf(gpus, sizeof gpus, "%zu", board);
    (void)snprintf(owner, sizeof owner, VIRTUAL_UID "=%d", ANNA);
    if (progress_page_new("/dev/shm", &run->page, NULL) < 0)
        return;
    (void)snprintf(page, sizeof page, "UNDERWATT_PROGRESS=%s",
                   progress_page_path(run->page));
    run->board = board;
    if (loop_child_new(r->loop, &opts, nobody_cares, NULL, &run->child, NULL) < 0)
        progress_page_free(take(run->page));
    if (!run->child || !search)
        return;
    for (size_t i = 0; i < r->n_ours; i++) /* who computes there is this job's now */
        if (r->ours[i].board == board && !r->ours[i].roots)
            r->ours[i].unsure = true;
    (void)goal_parse("edp", &ask.goal, NULL);
    ask.page_fd = open(progress_page_path(run->page), O_RDONLY | O_CLOEXEC);
    (void)node_job_begin(r->node, &root, &ask, &run->job, NULL);
}

static inline void begin_run(struct round *r, struct run *run)
{
    size_t board = below(r, r->n_boards);

    begin_run_on(r, run, board, below(r, 2));
}

/* ---- a round ---- */

/* n_boards 0: as many as the seed says. */
static bool open_round(struct round *r, uint64_t seed, size_t n_boards)
{
    struct sim_machine machine;
    struct gpu_open_opts gpu = {0};
    char dir[100];

    *r = (struct round){0};
    rng_init(&r->g, seed);
    r->n_boards = 2 + below(r, 3) + (below(r, 4) == 0 ? below(r, 5) : 0);
    if (n_boards)
        r->n_boards = n_boards;
    r->may_hang = below(r, 8) == 0;
    (void)snprintf(r->dir, sizeof r->dir, "%s/uw-test-chaos-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    (void)snprintf(r->boot_id, sizeof r->boot_id, "boot-0");
    if (!mkdtemp(r->dir) ||
        loop_new_virtual(1000 * NS_PER_S, 1700000000, &r->loop, NULL) ||
        loop_timer_new(r->loop, UINT64_MAX, 0, on_timer, r->loop, &r->timer, NULL) ||
        sim_machine_builtin("v100", (unsigned)r->n_boards, &machine, NULL))
        return false;
    for (size_t i = 0; i < r->n_boards; i++)
        machine.board[i].limit_mw = ORIGINAL_MW;
    life_dir(r, 0, dir);
    if (mkdir(dir, 0700) || virtual_world_new(r->loop, &machine, seed, &r->sim, NULL) ||
        node_config_init(&r->config, NULL, NULL))
        return false;
    r->config.caps.yield_ns = 20 * NS_PER_S;
    r->config.caps.clocks = true;
    gpu = (struct gpu_open_opts){.clock = {clock_of, r->loop}, .backend_user = r->sim};
    (void)snprintf(dir, sizeof dir, "%s/journal", r->dir);
    if (virtual_backend.open(&gpu, &r->reader, NULL) ||
        virtual_backend.open(&gpu, &r->service_lib, NULL) ||
        journal_open(dir, &r->journal, NULL))
        return false;
    start_guard(r);
    return true;
}

static void close_round(struct round *r)
{
    char dir[100];

    if (r->disk_full)
        fill_disk(r, false);
    for (size_t i = 0; i < RUNS; i++)
        end_run(r, &r->run[i]);
    node_free(take(r->node));
    stop_guard(r);
    virtual_backend.close(r->service_lib);
    virtual_backend.close(r->reader);
    journal_close(&r->journal);
    loop_timer_free(r->timer);
    virtual_world_free(r->sim);
    loop_free(r->loop);
    life_dir(r, r->life, dir);
    (void)each_file(dir, NULL);
    (void)snprintf(dir, sizeof dir, "%s/journal", r->dir);
    (void)each_file(dir, NULL);
    (void)rmdir(r->dir);
}

#endif
