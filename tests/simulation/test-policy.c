/* A node with a policy in virtual time: what rules cap and when they let go, over
 * restarts, reloads of a wrong file and jobs that end; goals that a policy gives.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#include "base/error.h"
#include "base/names.h"
#include "io/progress.h"
#include "policy/signal-files.h"
#include "simulation/policy-scene.h"
#include "tuner/tuner.h"

/* The sites' rules are tested with what the node itself knows: jobs' ages, its budget. */
#define AGED                                                            \
    "policy: 1\nrules:\n"                                               \
    "  - name: aged\n    when: job.age > 10 min and job.age < 30 min\n" \
    "    for: 10 s\n    release: 0 s\n    hysteresis: 0 %\n    cap: -25 %\n"

/* ---- a job without a search ---- */

static void caps_and_lets_go(void)
{
    if (!begin_policy_scene("a rule over a job's life", AGED))
        return;
    struct loop_child *child = train("0", ANNA);
    run_s(500);
    ok(!rule_claim(CLAIM_SOFT) && in_force(0) == ORIGINAL_MW &&
           state_of("aged") == RULE_FALSE,
       "not yet");
    run_s(200);
    const struct claim *c = rule_claim(CLAIM_SOFT);
    ok(c && c->mw == 225000 && strcmp(c->who, "rule aged") == 0,
       "a quarter less, of %s: %s", c ? c->who : "nobody", c ? c->why : "");
    char why[CLAIM_TEXT];
    (void)snprintf(why, sizeof why, "%s", c ? c->why : "");
    run_s(100);
    ok(in_force(0) == 225000 && in_force(1) == ORIGINAL_MW, "in force on its board: %u",
       in_force(0));
    run_s(600);
    c = rule_claim(CLAIM_SOFT);
    ok(c && c->mw == 225000 && strcmp(c->why, why) == 0,
       "renewed, with the reason of then, and no lower: %s", c ? c->why : "");
    ok(w.told[NODE_EVENT_RULE] == 1, "told once");

    node_leave_caps(w.node);
    node_free(take(w.node));
    if (!ok(start_node(), "a new daemon"))
        return;
    run_s(15);
    c = rule_claim(CLAIM_SOFT);
    ok(c && c->mw == 225000, "makes the claim again");
    run_s(600);
    ok(!rule_claim(CLAIM_SOFT) && in_force(0) == ORIGINAL_MW, "30 min: the original");
    (void)loop_child_kill(child, SIGKILL);
    run_s(20);
    loop_child_free(child);
    end_node();
    end_policy_scene();
}

static void wrong_files(void)
{
    uw_error err;

    if (!begin_policy_scene(
            "a wrong file, another one, none",
            "policy: 1\nhard: true\nrules:\n"
            "  - {name: now, when: job.age > 5 s, for: 10 s, kind: hard, cap: 200 W}\n"))
        return;
    struct loop_child *child = train("0", ANNA);
    run_s(60);
    const struct claim *c = rule_claim(CLAIM_HARD);
    ok(c && c->mw == 200000 && in_force(0) == 200000, "a hard claim");
    write_policy("policy: 1\nrules:\n  - {name: now, when: job.aeg > 5 s, cap: 200 W}\n");
    ok(reload(&err) < 0 && strstr(err.text, "policy.yaml:3: ") &&
           strstr(err.text, "job.age"),
       "refused: %s", err.text);
    run_s(60);
    const struct view_policy *p = &node_look(w.node)->policy;
    ok(rule_claim(CLAIM_HARD) && p->failures == 1 && p->loads == 1 && p->error[0],
       "the old one stays in force: %s", p->error);
    write_policy(
        "policy: 1\nhard: true\nrules:\n"
        "  - {name: other, when: job.age > 1 h, cap: 50 %}\n"
        "  - {name: now, when: job.age > 5 s, for: 10 s, kind: hard, cap: 220 W}\n");
    ok(reload(&err) == 0, "another one: %s", err.text);
    run_s(2);
    c = rule_claim(CLAIM_HARD);
    ok(c && c->mw == 220000, "the rule goes on with its new cap");
    (void)unlink(w.config.policy_file);
    ok(reload(&err) == -EINVAL && strstr(err.text, "the file is missing"),
       "the file is gone: %s", err.text);
    run_s(20);
    c = rule_claim(CLAIM_HARD);
    ok(c && c->mw == 220000 && in_force(0) == 220000, "the policy stays, and its cap");
    char file[sizeof w.config.policy_file];
    memcpy(file, w.config.policy_file, sizeof file);
    w.config.policy_file[0] = '\0';
    ok(reload(&err) == 0, "none is wanted any more: %s", err.text);
    memcpy(w.config.policy_file, file, sizeof file);
    run_s(20);
    ok(!rule_claim(CLAIM_HARD) && in_force(0) == ORIGINAL_MW &&
           !node_look(w.node)->policy.engine,
       "nothing stays capped");
    (void)loop_child_kill(child, SIGKILL);
    run_s(20);
    loop_child_free(child);
    end_node();
    end_policy_scene();
}

/* The pasted names are reserved ones; the linker's option --wrap gives them. */
#define JOIN(a, b) a##b
#define WRAPPED(name) JOIN(__wrap_, name)
#define REAL(name) JOIN(__real_, name)
int REAL(signal_files_new)(struct loop *loop, struct signals *store,
                           const struct signal_sources *sources,
                           void (*changed)(void *user), void *user,
                           struct signal_files **ret, uw_error *err);
int WRAPPED(signal_files_new)(struct loop *loop, struct signals *store,
                              const struct signal_sources *sources,
                              void (*changed)(void *user), void *user,
                              struct signal_files **ret, uw_error *err);

static bool no_threads;

int WRAPPED(signal_files_new)(struct loop *loop, struct signals *store,
                              const struct signal_sources *sources,
                              void (*changed)(void *user), void *user,
                              struct signal_files **ret, uw_error *err)
{
    if (no_threads)
        return fail(err, -EAGAIN, "worker signals: no thread");
    return REAL(signal_files_new)(loop, store, sources, changed, user, ret, err);
}

/* The signals of a right file cannot be had: the reload is refused, the old rules act on,
 * and the next reload has all.
 */
static void no_signals(void)
{
    static const char right[] =
        "policy: 1\nhard: true\n"
        "signals: [{name: room, unit: W, age: 1 h, file: /nowhere/room.json}]\n"
        "rules:\n"
        "  - {name: warm, when: room > 1 W, cap: 50 %}\n"
        "  - {name: now, when: job.age > 5 s, for: 10 s, kind: hard, cap: 220 W}\n";
    uw_error err;

    if (!begin_policy_scene(
            "a file whose signals cannot be had",
            "policy: 1\nhard: true\nrules:\n"
            "  - {name: now, when: job.age > 5 s, for: 10 s, kind: hard, cap: 200 W}\n"))
        return;
    struct loop_child *child = train("0", ANNA);
    run_s(60);
    write_policy(right);
    no_threads = true;
    ok(reload(&err) < 0 && strstr(err.text, "no thread"), "refused: %s", err.text);
    no_threads = false;
    run_s(60);
    const struct view_policy *p = &node_look(w.node)->policy;
    const struct claim *c = rule_claim(CLAIM_HARD);
    ok(p->n_rules == 1 && p->loads == 1 && p->failures == 1 &&
           strstr(p->error, "no thread"),
       "the old policy stays, and says why: %s", p->error);
    ok(c && c->mw == 200000 && in_force(0) == 200000, "its rule acts on");
    ok(reload(&err) == 0, "the same file again: %s", err.text);
    run_s(60);
    p = &node_look(w.node)->policy;
    c = rule_claim(CLAIM_HARD);
    ok(p->n_rules == 2 && c && c->mw == 220000 && state_of("warm") == RULE_UNKNOWN &&
           !p->error[0],
       "is taken now");
    (void)loop_child_kill(child, SIGKILL);
    run_s(20);
    loop_child_free(child);
    end_node();
    end_policy_scene();
}

static bool makes_signals(void)
{
    const struct signal_view *signal = NULL;
    size_t n = 0, before = node_look(w.node)->n_signals;

    return before == 0 && node_signals(w.node, &signal, &n, NULL) == 0 && n > 0 &&
           node_look(w.node)->n_signals == n && node_look(w.node)->signal == signal;
}

static void unknown_and_jobs_end(void)
{
    uw_error err;

    if (!begin_policy_scene("an unknown signal, a job that ends, the daemon's end", NULL))
        return;
    ok(makes_signals(), "without a policy signals are there once they are asked for");
    w.config.budget_mw = 1200000;
    write_policy(
        "policy: 1\nrules:\n"
        "  - {name: room, when: node.headroom > -1 W, until: node.headroom < -10 W,\n"
        "     for: 5 s, cap: 60 %}\n");
    ok(reload(&err) == 0, "a policy and a budget: %s", err.text);
    struct loop_child *child = train("0", ANNA);
    run_s(120);
    ok(rule_claim(CLAIM_SOFT) && rule_claim(CLAIM_SOFT)->mw == 180000, "acts");
    w.config.budget_mw = 0;
    ok(reload(&err) == 0, "no budget");
    run_s(3);
    ok(!rule_claim(CLAIM_SOFT) && state_of("room") == RULE_UNKNOWN, "unknown ends it");
    w.config.budget_mw = 1200000;
    (void)reload(&err);
    run_s(60);
    ok(rule_claim(CLAIM_SOFT), "known again");
    (void)loop_child_kill(child, SIGKILL);
    run_s(30);
    loop_child_free(child);
    ok(!rule_claim(CLAIM_SOFT) && in_force(0) == ORIGINAL_MW, "its job has ended");
    child = train("0", ANNA);
    run_s(120);
    ok(rule_claim(CLAIM_SOFT) && in_force(0) < ORIGINAL_MW, "another one");
    end_node();
    write_policy("policy: 1\n");
    ok(start_node(), "a daemon with an empty policy");
    run_s(30);
    ok(!rule_claim(CLAIM_SOFT) && in_force(0) == ORIGINAL_MW, "nothing is capped");
    (void)loop_child_kill(child, SIGKILL);
    run_s(20);
    loop_child_free(child);
    end_node();
    end_policy_scene();
}

static void board_is_silent(void)
{
    if (!begin_policy_scene("a board that answers no more",
                            "policy: 1\nrules:\n"
                            "  - {name: warm, when: board.temperature > 5 °C, for: 0 s,\n"
                            "     until: board.temperature < 1 °C, cap: 60 %}\n"))
        return;
    struct loop_child *child = train("0", ANNA);
    run_s(60);
    ok(rule_claim(CLAIM_SOFT) && state_of("warm") == RULE_ACTS, "its temperature");
    fault("0 lost for 60s");
    run_s(30);
    ok(!rule_claim(CLAIM_SOFT) && state_of("warm") == RULE_UNKNOWN,
       "its last one is not its temperature for ever");
    run_s(90);
    ok(rule_claim(CLAIM_SOFT) && state_of("warm") == RULE_ACTS, "it answers again");
    (void)loop_child_kill(child, SIGKILL);
    run_s(20);
    loop_child_free(child);
    end_node();
    end_policy_scene();
}

/* ---- a job with a search ---- */

struct searched {
    struct progress_page *page;
    struct loop_child *child;
    uint64_t id;
};

static void begin_search(struct searched *s, const char *goal)
{
    const char *argv[] = {"underwatt-sim", "train",  "--workload",
                          "resnet50",      "--gpus", "0",
                          "--epochs",      "100000", NULL};
    char owner[40], path[300];
    const char *env[] = {owner, path, NULL};
    struct loop_child_opts opts = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    struct node_job ask = {
        .reg = {.source = JOB_REGISTERED, .name = "train", .uid = ANNA, .boards = 1},
        .search = true,
        .page_fd = -1};
    uw_error err = {""};

    if (progress_page_new("/dev/shm", &s->page, NULL) < 0)
        abort();
    (void)snprintf(owner, sizeof owner, VIRTUAL_UID "=%u", (unsigned)ANNA);
    (void)snprintf(path, sizeof path, "UNDERWATT_PROGRESS=%s",
                   progress_page_path(s->page));
    (void)loop_child_new(w.loop, &opts, nobody_cares, NULL, &s->child, NULL);
    (void)goal_parse(goal, &ask.goal, NULL);
    ask.page_fd = open(progress_page_path(s->page), O_RDONLY | O_CLOEXEC);
    if (node_job_begin(w.node, &root, &ask, &s->id, &err) < 0)
        ok(false, "a job: %s", err.text);
}

static void end_search(struct searched *s)
{
    (void)node_job_end(w.node, &root, s->id, NULL);
    (void)loop_child_kill(s->child, SIGKILL);
    run_s(20);
    loop_child_free(s->child);
    progress_page_free(s->page);
}

static const struct searches_view *search_of(uint64_t id)
{
    const struct node_view *v = node_look(w.node);

    for (size_t i = 0; i < v->n_jobs; i++)
        if (v->job[i].job->id == id)
            return &v->job[i].search;
    return NULL;
}

static void wait_hold(uint64_t id)
{
    for (int i = 0; i < 300 && !search_of(id)->report->holding; i++)
        run_s(5);
}

static void search_rests(void)
{
    struct searched s;

    if (!begin_policy_scene(
            "a quarter less than what a search holds",
            "policy: 1\nrules:\n"
            "  - {name: dirty, when: job.age > 50 min and job.age < 110 min,\n"
            "     for: 0 s, release: 0 s, hysteresis: 0 %, cap: -25 %}\n"))
        return;
    begin_search(&s, "slowdown:1.05");
    wait_hold(s.id);
    run_s(1200);
    uint32_t held = search_of(s.id)->report->held_mw;
    ok(search_of(s.id)->report->holding && !rule_claim(CLAIM_SOFT), "holds %u mW", held);
    unsigned windows = search_of(s.id)->report->windows;
    for (int i = 0; i < 300 && !rule_claim(CLAIM_SOFT); i++)
        run_s(10);
    run_s(300);
    const struct claim *c = rule_claim(CLAIM_SOFT);
    const struct searches_view *v = search_of(s.id);
    held = v->report->held_mw; /* a look may have found a better one since */
    ok(c && c->mw >= 150000 && c->mw < held, "the rule: %u mW", c ? c->mw : 0);
    uint32_t ruled = c ? c->mw : 0;
    ok(v->status == SEARCH_IS_RULED && v->report->ruled, "the search rests: %s",
       v->state);
    windows = v->report->windows;
    double saved_steps = v->report->saved.steps;
    run_s(2400);
    c = rule_claim(CLAIM_SOFT);
    v = search_of(s.id);
    ok(c && c->mw == ruled && v->report->held_mw == held,
       "neither ratchets: %u mW of %u mW", c ? c->mw : 0, v->report->held_mw);
    ok(v->report->windows == windows && v->report->saved.steps <= saved_steps + 1,
       "nothing is measured or compared");
    ok(v->report->ruled_s > 2000, "the books have %.0f s of it apart",
       v->report->ruled_s);
    ok(in_force(0) <= ruled, "in force: %u mW", in_force(0));
    for (int i = 0; i < 300 && rule_claim(CLAIM_SOFT); i++)
        run_s(10);
    run_s(200);
    v = search_of(s.id);
    ok(!v->report->ruled && v->report->holding && v->report->changes == 0 &&
           v->report->windows > windows && in_force(0) >= held - 1000,
       "it goes on where it was: %s, %u mW in force", v->state, in_force(0));
    end_search(&s);
    end_node();
    end_policy_scene();
}

/* A rule above the cap that a search holds, and below the reference. */
static void search_holds_below(void)
{
    struct searched s;
    unsigned above = 0, ruled = 0;

    if (!begin_policy_scene(
            "a rule between a hold and its reference",
            "policy: 1\nrules:\n"
            "  - {name: warm, when: job.age > 30 min and job.age < 120 min,\n"
            "     for: 0 s, release: 0 s, hysteresis: 0 %, cap: 280 W}\n"))
        return;
    begin_search(&s, "edp");
    wait_hold(s.id);
    for (int i = 0; i < 300 && !rule_claim(CLAIM_SOFT); i++)
        run_s(10);
    run_s(120);
    uint32_t held = search_of(s.id)->report->held_mw;
    unsigned windows = search_of(s.id)->report->windows;
    for (int i = 0; i < 480; i++) {
        run_s(10);
        above += in_force(0) > held;
        ruled += search_of(s.id)->report->ruled;
    }
    ok(rule_claim(CLAIM_SOFT) && held < 280000, "holds %u mW", held);
    ok(!above && !ruled && search_of(s.id)->report->windows > windows + 100,
       "no check goes above the rule: %u, %u of 480", above, ruled);
    end_search(&s);
    end_node();
    end_policy_scene();
}

static void gives_goals(void)
{
    struct searched s;

    if (!begin_policy_scene(
            "a rule's goal, and the job's own again",
            "policy: 1\n"
            "classes:\n  - {name: all, match: {}, rule_goals: true}\n"
            "rules:\n"
            "  - {name: hurry, when: job.age > 20 min and job.age < 25 min,\n"
            "     for: 0 s, release: 0 s, hysteresis: 0 %, goal: time,\n"
            "     hold: 30 min}\n"))
        return;
    begin_search(&s, "edp");
    run_s(1100);
    ok(strcmp(search_of(s.id)->goal, "edp") == 0, "its own: %s", search_of(s.id)->goal);
    run_s(160);
    ok(strcmp(search_of(s.id)->goal, "time") == 0, "the rule's: %s",
       search_of(s.id)->goal);
    run_s(1700);
    ok(strcmp(search_of(s.id)->goal, "time") == 0 && state_of("hurry") == RULE_FALSE,
       "as long as its hold, though the rule has ended");
    run_s(200);
    ok(strcmp(search_of(s.id)->goal, "edp") == 0, "its own again: %s",
       search_of(s.id)->goal);
    wait_hold(s.id);
    ok(search_of(s.id)->report->holding && search_of(s.id)->report->n_caps > 1,
       "and holds what it had measured");
    end_search(&s);
    end_node();
    end_policy_scene();
}

static void gives_a_search(void)
{
    if (!begin_policy_scene(
            "a class's goal for a job that asked for none",
            "policy: 1\nclasses:\n  - {name: all, match: {}, goal: edp}\n"))
        return;
    struct loop_child *child = train("0", ANNA);
    run_s(120);
    const struct node_view *v = node_look(w.node);
    uint64_t id = v->n_jobs ? v->job[0].job->id : 0;
    ok(id && search_of(id)->on && strcmp(search_of(id)->goal, "edp") == 0, "a search");
    fault("reload");
    run_s(120);
    v = node_look(w.node);
    id = v->n_jobs ? v->job[0].job->id : 0;
    ok(id && search_of(id)->on && strcmp(search_of(id)->goal, "edp") == 0,
       "again after a reload of the driver");
    uw_error err;
    write_policy("policy: 1\n");
    ok(reload(&err) == 0, "a policy without the class");
    run_s(20);
    ok(search_of(id)->status == SEARCH_IS_OFF && in_force(0) == ORIGINAL_MW,
       "no goal, no search: %s", search_of(id)->state);
    (void)loop_child_kill(child, SIGKILL);
    run_s(20);
    loop_child_free(child);
    end_node();
    end_policy_scene();
}

int main(void)
{
    log_set_level(LOG_LEVEL_ERROR);
    caps_and_lets_go();
    wrong_files();
    no_signals();
    unknown_and_jobs_end();
    board_is_silent();
    search_rests();
    search_holds_below();
    gives_goals();
    gives_a_search();
    return done();
}
