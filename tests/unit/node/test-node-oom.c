/* Jobs, searches, meters and books where memory is short: each allocation fails once.
 * What is refused leaves nothing behind; what goes on by itself gets there in the end.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "board/energy-sum.h"
#include "io/file.h"
#include "node-scene.h"
#include "node/node-policy.h"
#include "oom.h"
#include "unit/jobs/procs.h"

enum { ANNA = 1000, MOST = 400 };

static const struct node_who root = {
    .uid = 0, .admin = true, .may_claim = true, .name = "user root"};

/* ---- the roster, by itself ---- */

static unsigned begun, ended;

static void on_event(enum roster_event event, const struct job_entry *job, void *user)
{
    (void)job;
    (void)user;
    begun += event == ROSTER_BEGIN;
    ended += event == ROSTER_END;
}

static const struct roster_register job_of_anna = {
    .source = JOB_REGISTERED, .name = "slurm:1", .uid = ANNA, .boards = 3};

static int make_roster(void *user)
{
    struct roster_opts opts = {.loop = fake.loop,
                               .boards = fake.boards,
                               .read = fake_read,
                               .on_event = on_event};
    auto_(roster_free) struct roster *r = NULL;
    uw_error err = {""};
    (void)user;

    int result = roster_new(&opts, &r, &err);
    return result < 0 && (r || !err.text[0]) ? 1 : result;
}

/* 0, or the number of the allocation after which something was left. */
static unsigned begin_jobs(struct roster *r, unsigned *ret_n)
{
    uint64_t last = 0;

    for (unsigned n = 1; n <= MOST; n++) {
        unsigned before = begun;
        uint64_t id = 0;
        uw_error err = {""};
        oom_fail_at(n);
        int result = roster_begin(r, &job_of_anna, &id, &err);
        bool failed = oom_count() >= n;
        oom_fail_at(0);
        *ret_n = n;
        if (result != 0 && (result != -ENOMEM || roster_count(r) != 0 ||
                            begun != before || id != 0 || roster_in_use(r, 0)))
            return n;
        if (result != 0)
            result = roster_begin(r, &job_of_anna, &id, &err);
        if (result != 0 || id <= last || roster_count(r) != 1 || begun != before + 1 ||
            roster_end(r, id, &err) != 0 || roster_count(r) != 0)
            return n;
        last = id;
        fake_wait(3);
        if (!failed)
            return 0;
    }
    return MOST;
}

/* A process is seen, and a job made of it, though memory was short for a while. */
static unsigned find_jobs(struct roster *r, unsigned *ret_n)
{
    for (unsigned n = 1; n <= MOST; n++) {
        oom_fail_at(n);
        fake_process(100, 1, ANNA, "/slurm/uid_1000/job_42/step_0");
        fake_on(0, 100, true);
        fake_wait(7);
        bool failed = oom_count() >= n;
        oom_fail_at(0);
        *ret_n = n;
        fake_wait(14);
        if (roster_count(r) != 1 || roster_at(r, 0)->boards != 1)
            return n;
        fake_exit(100);
        fake_wait(14);
        if (roster_count(r) != 0 || begun != ended)
            return n;
        if (!failed)
            return 0;
    }
    return MOST;
}

static void rosters(void)
{
    struct roster_opts opts = {.on_event = on_event};
    struct roster *r = NULL;
    uw_error err = {""};
    unsigned n = 0;

    if (!ok(fake_begin(false), "a made-up node"))
        return;
    (void)oom_each("roster_new", make_roster, NULL);
    opts.loop = fake.loop;
    opts.boards = fake.boards;
    opts.read = fake_read;
    is_int(roster_new(&opts, &r, &err), 0, "a roster");
    is_int(begin_jobs(r, &n), 0, "a job begins or leaves nothing behind (%u)", n);
    is_int(find_jobs(r, &n), 0, "a job is found in the end (%u)", n);
    roster_free(r);
    fake_end();
}

/* ---- meters ---- */

static struct {
    struct boards *boards;
    struct sampler *sampler[2];
    unsigned answers;
    double energy_j;
} m;

static int on_window(const struct energy_sum_window *win, void *user)
{
    (void)user;
    m.answers++;
    m.energy_j = win->r == 0 ? win->energy_j : -1;
    return 0;
}

static int make_energy_sum(void *user)
{
    auto_(energy_sum_free) struct energy_sum *meters = NULL;
    uint64_t now = loop_now_ns(w.loop);
    unsigned before = m.answers;
    uw_error err = {""};
    (void)user;

    int r = energy_sum_new(m.sampler, 2, &meters, &err);
    if (r < 0)
        return meters || !err.text[0] ? 1 : r;
    r = energy_sum_window(meters, now - 20 * NS_PER_S, now - 10 * NS_PER_S, on_window,
                          NULL);
    if (r < 0) { /* nobody waits: the next one is answered, and alone */
        oom_fail_at(0);
        if (energy_sum_window(meters, now - 20 * NS_PER_S, now - 10 * NS_PER_S, on_window,
                              NULL) < 0)
            return 2;
    }
    run_s(3);
    if (m.answers != before + 1 || !(m.energy_j > 0))
        return 3;
    return r;
}

static int on_boards(struct boards *set, int r, const uw_error *err, void *user)
{
    (void)set;
    (void)r;
    (void)err;
    (void)user;
    loop_stop(w.loop, 0);
    return 0;
}

static void meters(void)
{
    struct gpu_open_opts opts = {.clock = {clock_of, w.loop}, .backend_user = w.sim};
    struct sampler_opts sampling = {.seed = 1};
    uw_error err = {""};

    int r =
        boards_open(w.loop, &virtual_backend, &opts, on_boards, NULL, &m.boards, &err);
    if (r == 0)
        r = loop_run(w.loop, &err);
    for (unsigned i = 0; i < 2 && r == 0; i++) {
        struct board *b = boards_at(m.boards, i);
        r = sampler_new(w.loop, &b, 1, &sampling, &m.sampler[i], &err);
    }
    is_int(r, 0, "two samplers %s", err.text);
    run_s(30);
    (void)oom_each_tolerant("meters: made and asked", make_energy_sum, NULL);
    for (unsigned i = 0; i < 2; i++)
        sampler_free(m.sampler[i]);
    boards_free(m.boards);
}

/* ---- the whole node: a job with a search ---- */

static int search_job(uint64_t *ret_id, uw_error *err)
{
    struct node_job ask = {
        .reg = {.source = JOB_REGISTERED, .name = "slurm:2", .uid = ANNA, .boards = 3},
        .search = true,
        .page_fd = -1};

    if (goal_parse("edp", &ask.goal, err) < 0)
        return -EINVAL;
    return node_job_begin(w.node, &root, &ask, ret_id, err);
}

static size_t running(void)
{
    const struct node_view *v = node_look(w.node);
    size_t n = 0;

    for (size_t i = 0; i < v->n_jobs; i++)
        n += v->job[i].job->ended_ns == 0;
    return n;
}

static unsigned begin_searches(unsigned *ret_n)
{
    for (unsigned n = 1; n <= MOST; n++) {
        uint64_t id = 0;
        uw_error err = {""};
        oom_fail_at(n);
        int r = search_job(&id, &err);
        bool failed = oom_count() >= n;
        oom_fail_at(0);
        *ret_n = n;
        if (r != 0 && (r != -ENOMEM || id != 0 || !err.text[0] || running() != 0))
            return n;
        if (r != 0)
            r = search_job(&id, &err);
        const struct view_job *j =
            r == 0 && running() == 1 ? node_look(w.node)->job : NULL;
        if (!j || node_job_end(w.node, &root, id, &err) != 0)
            return n;
        run_s(2);
        if (running() != 0)
            return n;
        if (!failed)
            return 0;
    }
    return MOST;
}

static void searches(void)
{
    unsigned n = 0;

    ok(start_node(), "searches: a node");
    is_int(begin_searches(&n), 0, "a search begins or leaves nothing behind (%u)", n);
    node_free(take(w.node));
}

/* ---- the whole node: its books ---- */

static double off_by(void)
{
    const struct node_view *v = node_look(w.node);
    double worst = 0;

    for (size_t i = 0; i < v->n_boards; i++) {
        const struct view_board *b = &v->board[i];
        worst = fmax(worst,
                     fabs(b->attributed_j + b->idle_j + b->unattributed_j - b->energy_j));
    }
    return worst;
}

static double booked_j(void)
{
    const struct node_view *v = node_look(w.node);
    double sum = 0;

    for (size_t i = 0; i < v->n_boards; i++)
        sum += v->board[i].energy_j;
    return sum;
}

/* An allocation fails in each interval, always another one. */
static void books(void)
{
    struct loop_child *job = train("0,1", ANNA);
    double true_j = 0, seen_j, worst = 0;
    unsigned n = 1;

    ok(start_node(), "books: a node");
    run_s(30);
    for (size_t i = 0; i < BOARDS; i++)
        true_j -= virtual_world_true_j(w.sim, i);
    seen_j = -booked_j();
    for (; n <= 60; n++) {
        oom_fail_at(n);
        run_s(11);
        oom_fail_at(0);
        worst = fmax(worst, off_by());
    }
    run_s(30);
    for (size_t i = 0; i < BOARDS; i++)
        true_j += virtual_world_true_j(w.sim, i);
    seen_j += booked_j();
    ok(worst < 1e-3, "the parts are the whole all along (off by %g J)", worst);
    is_near(seen_j / true_j, 1, 0.06, "no stretch is lost in %u failures", n - 1);
    (void)loop_child_kill(job, 9);
    loop_child_free(job);
    node_free(take(w.node));
}

/* ---- the first policy ---- */

static int first_policy(void *user)
{
    const struct node_policy_opts opts = {.loop = w.loop};
    auto_(node_policy_free) struct node_policy *p = NULL;
    struct policy_file *file = NULL;
    struct view_policy v;
    uw_error err = {""};

    int r = node_policy_new(&opts, &p, &err);
    if (r == 0)
        r = node_policy_read(p, user, &file, &err);
    if (r < 0)
        return r;
    r = node_policy_use(p, file, &err);
    node_policy_look(p, &v);
    return (v.engine != NULL) == (r == 0) && v.failures == (r < 0) ? r : 1;
}

static void policies(void)
{
    static const char text[] = "policy: 1\nrules:\n"
                               "  - {name: long, when: job.age > 1 h, cap: 200 W}\n";
    char path[80];

    (void)snprintf(path, sizeof path, "%s/policy.yaml", w.dir);
    ok(file_write(path, text, sizeof text - 1, 0600, NULL) == 0, "a policy's file");
    (void)oom_each("the first policy", first_policy, path);
    (void)unlink(path);
}

/* ---- another policy ---- */

static bool has_signal(const char *name)
{
    const struct signal_view *v = NULL;
    size_t n = 0;
    bool has = false;

    (void)node_signals(w.node, &v, &n, NULL);
    for (size_t i = 0; i < n; i++)
        has |= strcmp(v[i].decl->name, name) == 0;
    return has;
}

/* Rules, signals and configuration are all of policy `name` ("old", "new"). */
static bool is_whole(const char *name, const char *path)
{
    const struct view_policy *p = &node_look(w.node)->policy;

    return p->engine && p->n_rules == 1 && strcmp(p->rule[0].name, name) == 0 &&
           strcmp(p->file, path) == 0 && has_signal("room.old") == (name[0] == 'o') &&
           has_signal("room.new") == (name[0] == 'n');
}

static bool take_policy(const char *path)
{
    struct node_config config = w.config;
    uw_error err = {""};

    (void)snprintf(config.policy_file, sizeof config.policy_file, "%s", path);
    int r = node_configure(w.node, &config, &err);
    if (r < 0 && r != -ENOMEM)
        printf("# %d: %s\n", r, err.text);
    return r == 0;
}

/* A reload is of the old policy or of the new one, whatever fails. */
static void reloads(void)
{
    static const char format[] =
        "policy: 1\n"
        "signals: [{name: room.%s, unit: W, age: 1 h, file: %s/room}]\n"
        "rules: [{name: %s, when: room.%s > 1 W, cap: 200 W}]\n"
        "limits: [{boards: all, temperature: 83 °C}]\n";
    static const char *const names[] = {"old", "new"};
    char path[2][80], text[400];
    unsigned n = 1, bad = 0, refused = 0;

    for (size_t i = 0; i < 2; i++) {
        int len =
            snprintf(text, sizeof text, format, names[i], w.dir, names[i], names[i]);
        (void)snprintf(path[i], sizeof path[i], "%s/%s.yaml", w.dir, names[i]);
        ok(file_write(path[i], text, (size_t)len, 0600, NULL) == 0, "%s", names[i]);
    }
    ok(start_node() && take_policy(path[0]) && is_whole("old", path[0]), "a policy");
    for (bool more = true; more && n < 20 * MOST; n++) {
        oom_fail_at(n);
        bool taken = take_policy(path[1]);
        more = oom_count() >= n;
        oom_fail_at(0);
        refused += !taken;
        bad += !is_whole(names[taken], path[taken]);
        run_s(2);
        bad += !is_whole(names[taken], path[taken]);
        if (taken && more)
            bad += !take_policy(path[0]);
    }
    ok(bad == 0 && refused > 50 && is_whole("new", path[1]),
       "%u allocations of a reload fail, one at a time: %u refusals, %u halves", n - 2,
       refused, bad);
    for (size_t i = 0; i < 2; i++)
        (void)unlink(path[i]);
    node_free(take(w.node));
}

int main(void)
{
    static void (*const parts[])(void) = {meters, searches, books, policies, reloads};

    log_set_level((enum log_level)0);
    rosters();
    for (size_t i = 0; i < n_elements(parts); i++) {
        if (!ok(open_world(), "a world"))
            break;
        parts[i]();
        close_world();
    }
    return done();
}
