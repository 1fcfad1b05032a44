#include "policy/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/loop.h"
#include "policy/engine-inside.h"

#define HURRY_NS (20 * NS_PER_MS)

/* ---- claims ---- */

/* The rules and class presets that act on a board, and the owner of each. */
struct acting {
    struct policy_asks asks[POLICY_RULES_MAX + POLICY_CLASSES_MAX];
    struct rule_state *of[POLICY_RULES_MAX + POLICY_CLASSES_MAX]; /* NULL: a class's */
    const struct policy_rule *rule[POLICY_RULES_MAX + POLICY_CLASSES_MAX];
    size_t n;
};

/* Adds the acting rules of one unit that no earlier unit of the board has added. */
static void add_rules(const struct policy_engine *e, struct unit *u, bool *taken,
                      struct acting *ret)
{
    for (size_t i = 0; i < e->policy->n_rules; i++) {
        const struct policy_rule *r = &e->policy->rule[i];
        if (r->has_goal || taken[i] || !rule_acts(r, &u->rule[i]))
            continue;
        taken[i] = true;
        ret->asks[ret->n] = r->asks;
        ret->asks[ret->n].name = r->name;
        ret->rule[ret->n] = r;
        ret->of[ret->n++] = &u->rule[i];
    }
}

static const struct policy_class *class_of(const struct policy_engine *e,
                                           const struct engine_job_state *j)
{
    return j && j->cls >= 0 ? &e->policy->cls[j->cls] : NULL;
}

/* The highest floor and the first ramp of its jobs' classes count. */
static void add_class(const struct policy_class *cls, struct policy_board *board)
{
    if (cls->floor > board->floor)
        board->floor = cls->floor;
    if (board->ramp.pace == POLICY_AS_CLASS)
        board->ramp = cls->ramp;
}

static void add_preset(const struct policy_class *cls, struct acting *ret)
{
    for (size_t i = 0; i < ret->n; i++)
        if (!ret->of[i] && ret->asks[i].name == cls->name)
            return;
    ret->asks[ret->n] = (struct policy_asks){.name = cls->name,
                                             .cap = {.measure = POLICY_OF_DEFAULT,
                                                     .share = cls->preset.share,
                                                     .preset = cls->preset.name}};
    ret->rule[ret->n] = NULL;
    ret->of[ret->n++] = NULL;
}

static void gather(const struct policy_engine *e, size_t board, struct policy_board *on,
                   struct acting *ret)
{
    bool taken[POLICY_RULES_MAX] = {false};

    ret->n = 0;
    for (size_t i = 0; i < e->n_units; i++) {
        struct unit *u = &e->unit[i];
        if (u->board == board)
            add_rules(e, u, taken, ret);
    }
    for (size_t i = 0; i < e->n_units; i++) {
        const struct unit *u = &e->unit[i];
        if (u->board != board)
            continue;
        const struct engine_job_state *j = engine_job_find(e, u->job);
        const struct policy_class *cls = class_of(e, j);
        if (!cls)
            continue;
        add_class(cls, on);
        if (cls->has_preset && !j->has_goal && !j->has_cap)
            add_preset(cls, ret);
    }
}

static void give_claim(const struct policy_engine *e, size_t board, bool hard,
                       const struct acting *acting, const struct policy_won *won)
{
    struct engine_claim claim = {.mw = won->mw, .way = won->way};

    if (won->asks < 0) {
        e->o.claim(board, hard, NULL, e->o.user);
        return;
    }
    const struct rule_state *of = acting->of[won->asks];
    const struct policy_asks *asks = &acting->asks[won->asks];
    char preset[POLICY_CAP_TEXT];
    (void)snprintf(claim.who, sizeof claim.who, "%s %.80s", of ? "rule" : "class",
                   asks->name);
    (void)snprintf(claim.why, sizeof claim.why, "%s%s%s%s%s",
                   asks->cap.preset ? "preset " : "",
                   asks->cap.preset ? policy_cap_text(&asks->cap, preset) : "",
                   asks->cap.preset && of ? ": " : "", of && of->why ? of->why : "",
                   won->floored ? " (floor)" : "");
    e->o.claim(board, hard, &claim, e->o.user);
}

/* Logs that a rule whose cap is relative to an unknown value has no effect. */
static void say_unknown(const struct policy_rule *rule, struct rule_state *of,
                        uint32_t mw)
{
    if (of)
        of->verdict.state = mw > 0 ? RULE_ACTS : policy_rule_unmeasured(rule);
}

static void claim_board(struct policy_engine *e, size_t board,
                        const struct policy_board *as)
{
    uint32_t each_mw[POLICY_RULES_MAX + POLICY_CLASSES_MAX];
    struct acting acting;
    struct policy_board on = *as;
    struct policy_claims claims;

    on.floor = 0;
    on.ramp = (struct policy_ramp){.pace = POLICY_AS_CLASS};
    gather(e, board, &on, &acting);
    policy_claims_of(&on, acting.asks, acting.n, each_mw, &claims);
    for (size_t i = 0; i < acting.n; i++)
        say_unknown(acting.rule[i], acting.of[i], each_mw[i]);
    give_claim(e, board, false, &acting, &claims.soft);
    give_claim(e, board, true, &acting, &claims.hard);
}

/* ---- goals ---- */

static void note_acting(const struct policy_engine *e, struct engine_job_state *j,
                        bool may, bool *acts)
{
    for (size_t i = 0; i < e->n_units; i++) {
        struct unit *u = &e->unit[i];
        for (size_t k = 0; u->job == j->id && k < e->policy->n_rules; k++) {
            const struct policy_rule *r = &e->policy->rule[k];
            if (!r->has_goal || !rule_acts(r, &u->rule[k]))
                continue;
            acts[k] |= may;
            u->rule[k].verdict.state = may ? RULE_ACTS : RULE_OWN_GOAL;
        }
    }
}

static bool is_goal(const struct goal *a, const struct goal *b)
{
    return a->kind == b->kind && a->param >= b->param && a->param <= b->param;
}

static void give_goal(const struct policy_engine *e, struct engine_job_state *j,
                      const struct goal *goal, const char *kind, const char *name)
{
    char by[ENGINE_WHO];

    if (goal ? j->told && is_goal(goal, &j->goal) : !j->told)
        return;
    j->told = goal != NULL;
    if (goal)
        j->goal = *goal;
    (void)snprintf(by, sizeof by, "%s %.80s", kind, name);
    e->o.goal(j->id, goal, goal ? by : "", e->o.user);
}

/* Returns when the goal must be chosen again. */
static uint64_t choose_goal(const struct policy_engine *e, struct engine_job_state *j,
                            uint64_t now_ns)
{
    bool acts[POLICY_RULES_MAX] = {false};
    const struct policy_class *cls = class_of(e, j);
    bool may = !j->has_cap && policy_goal_may(e->policy, j->cls, j->has_goal);

    if (e->gives_goals)
        note_acting(e, j, may, acts);
    uint64_t due_ns =
        policy_goal_choose(e->policy->rule, acts, e->policy->n_rules, &j->choice, now_ns);
    if (j->choice.rule && may)
        give_goal(e, j, &j->choice.rule->goal, "rule", j->choice.rule->name);
    else if (cls && cls->has_goal && !j->has_goal && !j->has_cap)
        give_goal(e, j, &cls->goal, "class", cls->name);
    else
        give_goal(e, j, NULL, "", "");
    return due_ns;
}

/* ---- time ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void arm(struct policy_engine *e, uint64_t due_ns)
{
    uint64_t soonest = e->last_ns ? e->last_ns + e->every_ns : 0;

    if (e->policy && !e->rests && due_ns != UINT64_MAX)
        loop_timer_set(e->timer, due_ns > soonest ? due_ns : soonest, 0);
    else
        loop_timer_set(e->timer, UINT64_MAX, 0);
}

/* Looks up the schedules again if UTC has moved against the loop's time. */
static void look_at_clock(struct policy_engine *e, uint64_t now_ns)
{
    int64_t ahead_ns = loop_utc_ns(e->o.loop) - (int64_t)now_ns;

    e->clock_set = llabs(ahead_ns - e->ahead_ns) >= (int64_t)NS_PER_S;
    if (!e->clock_set)
        return;
    e->ahead_ns = ahead_ns;
    memset(e->hours, 0, sizeof e->hours);
}

static void tell_phases(const struct policy_engine *e, bool on)
{
    for (size_t i = 0; e->o.phases && i < e->n_jobs; i++)
        e->o.phases(e->job[i].id, on && e->job[i].phase_ruled, e->o.user);
}

static void evaluate(struct policy_engine *e)
{
    uint64_t now_ns = loop_now_ns(e->o.loop);
    struct engine_world world = {.n_boards = 0};

    e->changed = false;
    e->last_ns = now_ns;
    e->counts.evaluations++;
    e->o.look(&world, e->o.user);
    if (engine_take_world(e, &world) < 0) {
        arm(e, now_ns); /* tried again later */
        return;
    }
    look_at_clock(e, now_ns);
    uint64_t due_ns = engine_step_units(e, now_ns);
    for (size_t i = 0; i < e->n_boards; i++)
        claim_board(e, i, &world.board[i]);
    for (size_t i = 0; i < e->n_jobs; i++)
        due_ns = earlier(due_ns, choose_goal(e, &e->job[i], now_ns));
    tell_phases(e, true);
    arm(e, e->changed ? now_ns : due_ns);
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;

    policy_engine_step(user);
    return 0;
}

void policy_engine_step(struct policy_engine *e)
{
    if (e->policy && !e->rests)
        evaluate(e);
}

void policy_engine_rest(struct policy_engine *e, bool rests)
{
    for (size_t i = 0; rests && i < e->n_jobs; i++)
        e->job[i].told = false;
    e->rests = rests;
    e->changed = false;
    if (rests)
        arm(e, UINT64_MAX);
    else
        policy_engine_changed(e);
}

void policy_engine_changed(struct policy_engine *e)
{
    if (!e->policy || e->rests || e->changed)
        return;
    e->changed = true;
    arm(e, loop_now_ns(e->o.loop));
}

void policy_engine_hurry(struct policy_engine *e, uint64_t job)
{
    uint64_t now_ns = loop_now_ns(e->o.loop), soonest = e->last_ns + HURRY_NS;
    const struct engine_job_state *j = engine_job_find(e, job);

    if (!j || !j->phase_ruled)
        policy_engine_changed(e);
    if (!j || !j->phase_ruled || e->rests)
        return;
    e->changed = true;
    loop_timer_set(e->timer, now_ns > soonest ? now_ns : soonest, 0);
}

/* ---- life ---- */

int policy_engine_new(const struct engine_opts *opts, struct policy_engine **ret,
                      uw_error *err)
{
    auto_(policy_engine_free) struct policy_engine *e = calloc(1, sizeof *e);

    if (!e)
        return fail(err, -ENOMEM, "out of memory");
    e->o = *opts;
    int r = loop_timer_new(opts->loop, UINT64_MAX, 0, on_timer, e, &e->timer, err);
    if (r < 0)
        return r;
    *ret = take(e);
    return 0;
}

void policy_engine_free(struct policy_engine *e)
{
    if (!e)
        return;
    e->o.event = NULL;
    engine_clear(e);
    loop_timer_free(e->timer);
    free(e);
}

/* Withdraws everything that was requested. */
static void stop(struct policy_engine *e)
{
    for (size_t i = 0; i < e->n_boards; i++) {
        e->o.claim(i, false, NULL, e->o.user);
        e->o.claim(i, true, NULL, e->o.user);
    }
    for (size_t i = 0; i < e->n_jobs; i++)
        give_goal(e, &e->job[i], NULL, "", "");
    tell_phases(e, false);
    engine_clear(e);
}

/* Notes the scopes of the rule's slots. */
static void note_scopes(struct policy_engine *e, size_t rule)
{
    const struct policy *p = e->policy;

    e->of_board[rule] = e->of_job[rule] = false;
    for (size_t i = 0; i < p->reads.n; i++) {
        enum policy_scope scope = p->catalogue->signal[p->reads.read[i].signal].scope;
        bool reads = e->reads[rule].word[i / 64] >> (i % 64) & 1;
        e->of_board[rule] |= reads && scope == POLICY_OF_BOARD;
        e->of_job[rule] |= reads && scope == POLICY_OF_JOB;
    }
}

static void note_reads(struct policy_engine *e)
{
    e->gives_goals = false;
    for (size_t i = 0; i < e->policy->n_rules; i++) {
        const struct policy_rule *r = &e->policy->rule[i];
        e->gives_goals |= r->has_goal;
        e->reads[i] = (struct slots){{0}};
        for (size_t k = 0; k < SLOT_WORDS; k++)
            e->reads[i].word[k] = (r->has_when ? r->when.reads[k] : 0) |
                                  (r->has_until ? r->until.reads[k] : 0);
        note_scopes(e, i);
    }
    memset(e->hours, 0, sizeof e->hours);
}

int policy_engine_use(struct policy_engine *e, const struct policy *policy,
                      uint64_t every_ns, uw_error *err)
{
    if (!policy) {
        if (e->policy)
            stop(e);
        e->policy = NULL;
        arm(e, UINT64_MAX);
        return 0;
    }
    if (engine_change_rules(e, policy) < 0)
        return fail(err, -ENOMEM, "out of memory");
    e->policy = policy;
    e->every_ns = every_ns;
    note_reads(e);
    e->changed = false;
    policy_engine_changed(e);
    return 0;
}
