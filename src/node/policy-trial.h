/* What a policy would do now: evaluated once, beside the one in force, on the boards,
 * jobs and signals as they are; `for` counts as over.  No claim, goal or event follows.
 *
 * Owns the policy that is tried and an engine for it.  Thread: the loop's.
 */
#ifndef NODE_POLICY_TRIAL_H
#define NODE_POLICY_TRIAL_H

#include "board/boards.h"
#include "node/view.h"
#include "policy/engine.h"

struct loop;
struct policy_file;

/* The world of the policy in force. */
struct policy_trial_opts {
    struct loop *loop;
    void (*look)(struct engine_world *ret, void *user);
    engine_value_fn value;
    void *user;
};
struct policy_trial {
    struct view_policy policy;                /* its rules */
    struct engine_claim claim[BOARDS_MAX][2]; /* [1]: hard; mw 0: none */
    /* Inside. */
    struct policy_trial_opts o;
    struct policy_file *file;
    struct policy_engine *engine;
};
/* Takes file, also on failure: -ENOMEM. */
int policy_trial_new(const struct policy_trial_opts *opts, struct policy_file *file,
                     struct policy_trial **ret, uw_error *err);
void policy_trial_free(struct policy_trial *t);
DEFINE_AUTO(struct policy_trial *, policy_trial_free);

#endif
