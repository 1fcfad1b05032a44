/* A node with a policy in virtual time: what rules cap and when they let go, over
 * restarts, reloads of a wrong file and jobs that end; goals that a policy gives.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#include "base/names.h"
#include "io/progress.h"
#include "policy/engine.h"
#include "tuner/tuner.h"
#include "unit/node/node-scene.h"

enum { ANNA = 1000 };

/* The sites' rules are tested with what the node itself knows: jobs' ages, its budget. */
#define AGED                                                            \
    "policy: 1\nrules:\n"                                               \
    "  - name: aged\n    when: job.age > 10 min and job.age < 30 min\n" \
    "    for: 10 s\n    release: 0 s\n    hysteresis: 0 %\n    cap: -25 %\n"

static void write_policy(const char *text)
{
    FILE *f = fopen(w.config.policy_file, "we");

    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        abort();
}

static int reload(uw_error *err)
{
    *err = (uw_error){""};
    return node_configure(w.node, &w.config, err);
}

/* The rule's claim on board 0; NULL: none. */
static const struct claim *rule_claim(enum claim_kind kind)
{
    const struct claims *c = node_look(w.node)->board[0].cap.claims;

    for (size_t i = 0; c && i < c->n; i++)
        if (c->claim[i].source == CLAIM_OF_RULE && c->claim[i].kind == kind)
            return &c->claim[i];
    return NULL;
}

static enum policy_state state_of(const char *rule)
{
    const struct view_policy *p = &node_look(w.node)->policy;
    struct engine_row row;

    for (size_t i = 0; p->engine && policy_engine_row(p->engine, i, &row); i++)
        if (strcmp(row.rule->name, rule) == 0 && row.board == 0)
            return row.state;
    return (enum policy_state)99;
}

static bool begin_scene(const char *name, const char *policy)
{
    printf("# %s\n", name);
    if (!open_world())
        return ok(false, "a world");
    (void)snprintf(w.config.policy_file, sizeof w.config.policy_file, "%s/policy.yaml",
                   w.dir);
    if (policy)
        write_policy(policy);
    return ok(start_node(), "a node");
}

static void end_scene(void)
{
    (void)unlink(w.config.policy_file);
    close_world();
}

static void end_node(void)
{
    if (node_end(w.node, on_node_end, NULL) < 0)
        ok(false, "the node ends");
    run_s(10);
    node_free(take(w.node));
}

/* ---- a job without a search ---- */

static void caps_and_lets_go(void)
{
    if (!begin_scene("a rule over a job's life", AGED))
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
    end_scene();
}

static void wrong_files(void)
{
    uw_error err;

    if (!begin_scene(
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
    ok(reload(&err) == 0, "the file is gone: %s", err.text);
    run_s(20);
    ok(!rule_claim(CLAIM_HARD) && in_force(0) == ORIGINAL_MW &&
           !node_look(w.node)->policy.engine,
       "nothing stays capped");
    (void)loop_child_kill(child, SIGKILL);
    run_s(20);
    loop_child_free(child);
    end_node();
    end_scene();
}

static void unknown_and_jobs_end(void)
{
    uw_error err;

    if (!begin_scene("an unknown signal, a job that ends, the daemon's end", NULL))
        return;
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
    end_scene();
}

int main(void)
{
    log_set_level(LOG_LEVEL_ERROR);
    caps_and_lets_go();
    wrong_files();
    unknown_and_jobs_end();
    return done();
}
