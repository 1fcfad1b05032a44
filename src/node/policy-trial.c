#include "node/policy-trial.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "policy/file.h"

static void on_look(struct engine_world *ret, void *user)
{
    const struct policy_trial *t = user;

    t->o.look(ret, t->o.user);
}

static void on_value(const struct policy_signal *signal, const struct policy_read *read,
                     const struct engine_of *of, struct policy_value *ret, void *user)
{
    const struct policy_trial *t = user;

    t->o.value(signal, read, of, ret, t->o.user);
}

static void on_zone(size_t rule, int64_t utc_s, struct policy_zone *ret, void *user)
{
    const struct policy_trial *t = user;

    policy_file_zone(t->file, rule, utc_s, ret);
}

static void on_claim(size_t board, bool hard, const struct engine_claim *claim,
                     void *user)
{
    struct policy_trial *t = user;

    if (claim && board < BOARDS_MAX)
        t->claim[board][hard] = *claim;
}

static void on_goal(uint64_t job, const struct goal *goal, const char *by, void *user)
{
    (void)job;
    (void)goal;
    (void)by;
    (void)user;
}

int policy_trial_new(const struct policy_trial_opts *opts, struct policy_file *file,
                     struct policy_trial **ret, uw_error *err)
{
    auto_(policy_trial_free) struct policy_trial *t = calloc(1, sizeof *t);

    if (!t) {
        policy_file_free(file);
        return fail(err, -ENOMEM, "out of memory");
    }
    t->o = *opts;
    t->file = file;
    const struct engine_opts engine = {.loop = opts->loop,
                                       .look = on_look,
                                       .value = on_value,
                                       .zone = on_zone,
                                       .claim = on_claim,
                                       .goal = on_goal,
                                       .user = t};
    for (size_t i = 0; i < file->policy.n_rules; i++)
        file->policy.rule[i].for_ns = 0;
    int r = policy_engine_new(&engine, &t->engine, err);
    if (r == 0)
        r = policy_engine_use(t->engine, &file->policy, file->every_ns, err);
    if (r < 0)
        return r;
    policy_engine_step(t->engine);
    t->policy = (struct view_policy){.engine = t->engine,
                                     .rule = file->policy.rule,
                                     .n_rules = file->policy.n_rules,
                                     .preset = file->policy.preset,
                                     .n_presets = file->policy.n_presets};
    *ret = take(t);
    return 0;
}

void policy_trial_free(struct policy_trial *t)
{
    if (!t)
        return;
    policy_engine_free(t->engine);
    policy_file_free(t->file);
    free(t);
}
