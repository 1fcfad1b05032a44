#include "core/policy/rule.h"

#include <math.h>
#include <string.h>

bool policy_rule_is_for(const struct policy_rule *rule, const char *cls,
                        const struct policy_facts *facts)
{
    bool of_class = rule->n_cls == 0;

    for (size_t i = 0; i < rule->n_cls && !of_class; i++)
        of_class = strcmp(rule->cls[i], cls) == 0;
    return of_class && policy_matches(&rule->jobs, facts);
}

static void due(struct policy_verdict *v, uint64_t at_ns)
{
    if (at_ns < v->due_ns)
        v->due_ns = at_ns;
}

static uint64_t later(uint64_t at_ns, uint64_t by_ns)
{
    return by_ns < UINT64_MAX - at_ns ? at_ns + by_ns : UINT64_MAX;
}

double policy_rule_least_s(const struct policy_rule *rule, double break_even_s)
{
    return fmax(rule->least_auto ? break_even_s : rule->least_s, POLICY_LEAST_S);
}

/* The reason why the rule cannot act whatever its condition says; RULE_ACTS: none. */
static enum policy_state barred(const struct policy_rule *rule,
                                const struct policy_instant *at)
{
    double least_s = policy_rule_least_s(rule, at->break_even_s);

    if (!at->is_for_job)
        return at->no_job ? RULE_NO_JOB : RULE_OTHER_JOB;
    if (rule->has_schedule && !at->inside)
        return RULE_OUT_OF_HOURS;
    if (!rule->phase)
        return RULE_ACTS;
    if (at->costly)
        return RULE_COSTLY;
    if (!at->phase_told && at->confidence < rule->confidence)
        return RULE_UNSURE;
    if (at->no_gain && !rule->always)
        return RULE_NO_GAIN;
    return at->phase_s.known && at->phase_s.v < least_s ? RULE_SHORT : RULE_ACTS;
}

static enum policy_truth ask(const struct policy_rule *rule, enum policy_asked what,
                             const struct policy_instant *at, struct policy_answers *a,
                             struct policy_verdict *v)
{
    struct policy_result *result = &a->result[what];

    if (!a->has[what])
        policy_evaluate(what == POLICY_UNTIL ? &rule->until : &rule->when, at->values,
                        what == POLICY_WHEN_WIDENED ? rule->hysteresis : 0, at->now_ns,
                        result);
    a->has[what] = true;
    due(v, result->due_ns);
    v->slot = result->unknown;
    return result->truth;
}

static enum policy_state off(const struct policy_instant *at, struct policy_progress *p,
                             enum policy_state why)
{
    if (p->stage != POLICY_OFF || p->why != why)
        *p = (struct policy_progress){
            .stage = POLICY_OFF, .why = why, .since_ns = at->now_ns};
    return why;
}

/* Whether a rule that is on stays on. */
static enum policy_state stay(const struct policy_rule *rule,
                              const struct policy_instant *at, struct policy_progress *p,
                              struct policy_answers *a, struct policy_verdict *v)
{
    enum policy_truth truth = POLICY_TRUE;

    if (rule->has_until) {
        truth = ask(rule, POLICY_UNTIL, at, a, v);
        if (truth == POLICY_FALSE)
            return RULE_ACTS;
        return off(at, p, truth == POLICY_TRUE ? RULE_UNTIL : RULE_UNKNOWN);
    }
    if (rule->has_when)
        truth = ask(rule, POLICY_WHEN_WIDENED, at, a, v);
    if (truth == POLICY_UNKNOWN)
        return off(at, p, RULE_UNKNOWN);
    if (truth == POLICY_TRUE) {
        p->releases = false;
        return RULE_ACTS;
    }
    if (!p->releases)
        p->released_ns = at->now_ns;
    p->releases = true;
    uint64_t end_ns = later(p->released_ns, rule->release_ns);
    if (at->now_ns >= end_ns)
        return off(at, p, RULE_FALSE);
    due(v, end_ns);
    return RULE_ACTS;
}

/* Whether a rule that is off begins. */
static enum policy_state begin(const struct policy_rule *rule,
                               const struct policy_instant *at, struct policy_progress *p,
                               struct policy_answers *a, struct policy_verdict *v)
{
    enum policy_truth truth = POLICY_TRUE;

    if (rule->has_when)
        truth = ask(rule, POLICY_WHEN, at, a, v);
    if (truth != POLICY_TRUE)
        return off(at, p, truth == POLICY_FALSE ? RULE_FALSE : RULE_UNKNOWN);
    truth = rule->has_until ? ask(rule, POLICY_UNTIL, at, a, v) : POLICY_FALSE;
    if (truth != POLICY_FALSE)
        return off(at, p, truth == POLICY_TRUE ? RULE_UNTIL : RULE_UNKNOWN);
    if (p->stage == POLICY_OFF)
        *p = (struct policy_progress){.stage = POLICY_WAITS, .since_ns = at->now_ns};
    uint64_t begin_ns = later(p->since_ns, rule->for_ns);
    if (at->now_ns < begin_ns) {
        due(v, begin_ns);
        return RULE_WAITS;
    }
    *p = (struct policy_progress){.stage = POLICY_ON, .since_ns = at->now_ns};
    return RULE_ACTS;
}

/* Writes *ret member by member: a copy of the whole would wait for each member. */
void policy_rule_step(const struct policy_rule *rule, struct policy_progress *p,
                      const struct policy_instant *at, struct policy_verdict *ret)
{
    enum policy_state state = barred(rule, at);
    struct policy_answers own, *a = at->answers ? at->answers : &own;

    memset(own.has, 0, sizeof own.has);
    ret->slot = POLICY_NO_SLOT;
    ret->due_ns = UINT64_MAX;
    if (state != RULE_ACTS)
        (void)off(at, p, state);
    else if (p->stage == POLICY_ON)
        state = stay(rule, at, p, a, ret);
    else
        state = begin(rule, at, p, a, ret);
    if (rule->has_schedule && at->is_for_job)
        due(ret, at->edge_ns);
    if (state != RULE_UNKNOWN)
        ret->slot = POLICY_NO_SLOT;
    ret->on = p->stage == POLICY_ON;
    ret->since_ns = p->since_ns;
    ret->state = ret->on && rule->dry_run ? RULE_DRY_RUN : state;
}

enum policy_state policy_rule_unmeasured(const struct policy_rule *rule)
{
    return rule->asks.cap.measure == POLICY_OF_DEMAND ? RULE_NO_DEMAND : RULE_NO_DEFAULT;
}

uint64_t policy_goal_choose(const struct policy_rule *rules, const bool *acts, size_t n,
                            struct policy_goal_choice *choice, uint64_t now_ns)
{
    const struct policy_rule *best = NULL;

    for (size_t i = 0; i < n; i++)
        if (acts[i] && rules[i].has_goal && (!best || rules[i].priority > best->priority))
            best = &rules[i];
    if (best == choice->rule)
        return UINT64_MAX;
    if (choice->rule) {
        uint64_t end_ns = later(choice->since_ns, choice->rule->hold_ns);
        if (now_ns < end_ns)
            return end_ns;
    }
    *choice = (struct policy_goal_choice){best, now_ns};
    return UINT64_MAX;
}
