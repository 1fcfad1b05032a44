/* A node with a policy of its own in virtual time: the file, the node and its rules. */
#ifndef POLICY_SCENE_H
#define POLICY_SCENE_H

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#include "io/progress.h"
#include "policy/engine.h"
#include "unit/node/node-scene.h"

enum { ANNA = 1000 };
static const struct node_who root = {.may_claim = true, .admin = true, .name = "root"};

static inline void write_policy(const char *text)
{
    FILE *f = fopen(w.config.policy_file, "we");

    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        abort();
}

static inline int reload(uw_error *err)
{
    *err = (uw_error){""};
    return node_configure(w.node, &w.config, err);
}

/* policy NULL: no file at first. */
static inline bool begin_policy_scene(const char *name, const char *policy)
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

static inline void end_node(void)
{
    if (node_end(w.node, on_node_end, NULL) < 0)
        ok(false, "the node ends");
    run_s(10);
    node_free(take(w.node));
}

static inline void end_policy_scene(void)
{
    (void)unlink(w.config.policy_file);
    close_world();
}

/* A rule's claim on board 0; NULL: none. */
static inline const struct claim *rule_claim(enum claim_kind kind)
{
    const struct claims *c = node_look(w.node)->board[0].cap.claims;

    for (size_t i = 0; c && i < c->n; i++)
        if (c->claim[i].source == CLAIM_OF_RULE && c->claim[i].kind == kind)
            return &c->claim[i];
    return NULL;
}

/* Of a rule on board 0. */
static inline enum policy_state state_of(const char *rule)
{
    const struct view_policy *p = &node_look(w.node)->policy;
    struct engine_row row;

    for (size_t i = 0; p->engine && policy_engine_row(p->engine, i, &row); i++)
        if (strcmp(row.rule->name, rule) == 0 && row.board == 0)
            return row.state;
    return (enum policy_state)99;
}

struct paged_job {
    struct progress_page *page;
    struct loop_child *child;
    uint64_t id;
};

/* A user's training program that tells its phases to a page of its own. */
static inline void start_paged(struct paged_job *job, const char *gpus, const char *steps,
                               const char *phases)
{
    const char *argv[] = {
        "underwatt-sim", "train",   "--workload", "resnet50", "--gpus", gpus, "--epochs",
        "100000",        "--steps", steps,        "--phases", phases,   NULL};
    char owner[40], path[300];
    const char *env[] = {owner, path, NULL};
    struct loop_child_opts opts = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};

    if (progress_page_new("/dev/shm", &job->page, NULL) < 0)
        abort();
    (void)snprintf(owner, sizeof owner, VIRTUAL_UID "=%d", ANNA);
    (void)snprintf(path, sizeof path, "UNDERWATT_PROGRESS=%s",
                   progress_page_path(job->page));
    (void)loop_child_new(w.loop, &opts, nobody_cares, NULL, &job->child, NULL);
}

static inline int page_fd_of(const struct paged_job *job)
{
    return open(progress_page_path(job->page), O_RDONLY | O_CLOEXEC);
}

static inline void stop_paged(struct paged_job *job)
{
    (void)loop_child_kill(job->child, SIGKILL);
    run_s(20);
    loop_child_free(job->child);
    progress_page_free(job->page);
}

#endif
