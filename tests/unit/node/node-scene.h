/* A node in virtual time over simulated boards, for the tests of the whole. */
#ifndef TESTS_NODE_SCENE_H
#define TESTS_NODE_SCENE_H

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/log.h"
#include "base/units.h"
#include "gpu/rapl/rapl.h"
#include "node/node.h"
#include "tap.h"
#include "virtual/virtual-loop.h"
#include "virtual/virtual-world.h"

enum { BOARDS = 4 };
#define ORIGINAL_MW 300000u /* a V100's; its minimum is 150 W */

static struct {
    struct loop *loop;
    struct virtual_world *sim;
    struct loop_timer *timer;
    struct node_config config;
    struct node *node;
    const char *cpu; /* a tree of counters, or NULL */
    char dir[64];
    bool ready, ended;
    unsigned told[NODE_EVENT_LIMIT + 1];
} w;

__attribute__((unused)) static uint64_t clock_of(void *user)
{
    return loop_now_ns(user);
}

__attribute__((unused)) static int on_timer(struct loop_timer *timer, uint64_t now_ns,
                                            void *user)
{
    (void)timer;
    (void)now_ns;
    (void)user;
    loop_stop(w.loop, 0);
    return 0;
}

__attribute__((unused)) static void run_s(double s)
{
    loop_timer_set(w.timer, loop_now_ns(w.loop) + ns_of_s(s), 0);
    (void)loop_run(w.loop, NULL);
}

__attribute__((unused)) static int on_ready(struct node *node, int r, const uw_error *err,
                                            void *user)
{
    (void)node;
    (void)user;
    if (r < 0)
        printf("# not ready: %s\n", err->text);
    w.ready = r == 0;
    return 0;
}

__attribute__((unused)) static void on_told(enum node_event event, const void *what,
                                            void *user)
{
    (void)what;
    (void)user;
    w.told[event]++;
}

__attribute__((unused)) static bool start_node(void)
{
    struct node_opts opts = {.loop = w.loop,
                             .config = &w.config,
                             .backend = &virtual_backend,
                             .gpu = {.clock = {clock_of, w.loop}, .backend_user = w.sim},
                             .cpu = w.cpu ? &rapl_backend : NULL,
                             .cpu_source = w.cpu,
                             .version = "test",
                             .simulated = true,
                             .virtual_actuator = true,
                             .read = virtual_world_proc,
                             .read_user = w.sim,
                             .on_ready = on_ready};
    uw_error err = {""};

    w.ready = w.ended = false;
    int r = node_new(&opts, &w.node, &err);
    if (r < 0)
        printf("# %s\n", err.text);
    for (unsigned i = 0; i < 20 && r == 0 && !w.ready; i++)
        run_s(0.5);
    if (w.node)
        node_listen(w.node, on_told, NULL);
    run_s(2); /* the actuator is there, too */
    return w.ready;
}

/* Boards of other kinds than V100: a machine file's text; NULL: V100. */
static const char *scene_boards;

__attribute__((unused)) static bool open_world(void)
{
    struct sim_machine machine;
    uw_error err = {""};

    memset(&w, 0, sizeof w);
    (void)snprintf(w.dir, sizeof w.dir, "%s/uw-test-node-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    int r = mkdtemp(w.dir) ? 0 : -errno;
    if (r == 0)
        r = loop_new_virtual(1000 * NS_PER_S, 1700000000, &w.loop, &err);
    if (r == 0)
        r = loop_timer_new(w.loop, UINT64_MAX, 0, on_timer, NULL, &w.timer, &err);
    if (r == 0)
        r = scene_boards ? sim_machine_read_text("scene", scene_boards,
                                                 strlen(scene_boards), &machine, &err)
                         : sim_machine_builtin("v100", BOARDS, &machine, &err);
    if (r == 0)
        r = virtual_world_new(w.loop, &machine, 1, &w.sim, &err);
    if (r == 0)
        r = node_config_init(&w.config, NULL, &err);
    w.config.policy_file[0] = '\0'; /* not the machine's own */
    (void)snprintf(w.config.ledger.path, sizeof w.config.ledger.path, "%s/ledger.sqlite",
                   w.dir);
    if (r < 0)
        printf("# %s\n", err.text);
    return r == 0;
}

__attribute__((unused)) static void close_world(void)
{
    char path[128];
    static const char *const names[] = {"ledger.sqlite", "ledger.sqlite-wal",
                                        "ledger.sqlite-shm", "ledger.sqlite.lock"};

    node_free(w.node);
    loop_timer_free(w.timer);
    virtual_world_free(w.sim);
    loop_free(w.loop);
    for (size_t i = 0; i < n_elements(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", w.dir, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(w.dir);
}

/* A training job of that uid; its pid. */
__attribute__((unused)) static int nobody_cares(struct loop_child *child, int status,
                                                void *user)
{
    (void)child;
    (void)status;
    (void)user;
    return 0;
}

__attribute__((unused)) static struct loop_child *train(const char *gpus, uid_t uid)
{
    char owner[40], cgroup[80];
    const char *argv[] = {"underwatt-sim", "train",  "--workload",
                          "resnet50",      "--gpus", gpus,
                          "--epochs",      "100000", NULL};
    const char *env[] = {owner, cgroup, NULL};
    struct loop_child_opts opts = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    struct loop_child *child = NULL;
    uw_error err = {""};

    (void)snprintf(owner, sizeof owner, VIRTUAL_UID "=%u", (unsigned)uid);
    (void)snprintf(cgroup, sizeof cgroup,
                   VIRTUAL_CGROUP "=/user.slice/user-%u.slice/session-%s.scope",
                   (unsigned)uid, gpus);
    if (loop_child_new(w.loop, &opts, nobody_cares, NULL, &child, &err) < 0)
        printf("# train: %s\n", err.text);
    return child;
}

__attribute__((unused)) static uint32_t in_force(size_t board)
{
    const struct node_view *v = node_look(w.node);

    return v->n_boards > board ? v->board[board].last.enforced_mw : 0;
}

__attribute__((unused)) static int claim(const struct node_who *who, const char *board,
                                         enum claim_kind kind, uint32_t mw, double ttl_s,
                                         uint64_t *ret_id, uw_error *err)
{
    struct node_claim ask = {.board = board,
                             .kind = kind,
                             .cap = {.mw = mw},
                             .ttl_ns = ns_of_s(ttl_s),
                             .why = "a test"};

    *err = (uw_error){""};
    return node_claim(w.node, who, &ask, ret_id, err);
}

__attribute__((unused)) static int on_node_end(struct node *node, void *user)
{
    (void)node;
    (void)user;
    w.ended = true;
    loop_stop(w.loop, 0);
    return 0;
}

__attribute__((unused)) static void fault(const char *text)
{
    struct sim_fault f;
    uw_error err = {""};
    int r = sim_fault_parse(text, &f, &err);

    if (r == 0)
        r = virtual_world_fault(w.sim, &f, &err);
    if (r < 0)
        printf("# fault %s: %s\n", text, err.text);
}

#endif
