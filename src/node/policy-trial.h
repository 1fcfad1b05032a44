/* A trial of a policy: evaluates it once, in addition to the one in force, on the present
 * boards, jobs and signals; `for` counts as elapsed.  It causes no claim, goal or event.
 *
 * Owns the tried policy and an engine for it.  Thread: the loop's.
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
    /* Internal. */
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
