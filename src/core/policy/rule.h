/* A rule over time: when it begins to act and when it ends.  Pure: time is an argument.
 * Explained in docs/policies.md.
 *
 *     off -> waits      `when` is true, its schedule and its job are right
 *     waits -> on       for `for`
 *     on -> off         `until` is true or unknown; without `until`: `when`, widened by
 * the hysteresis, is false for `release`, or unknown; or the schedule ends, or the job is
 * another one
 */
#ifndef CORE_POLICY_RULE_H
#define CORE_POLICY_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/names.h"
#include "base/units.h"
#include "core/optimum/goal.h"
#include "core/policy/cap.h"
#include "core/policy/condition.h"
#include "core/policy/match.h"
#include "core/policy/schedule.h"

enum policy_state { RULE_STATES(NAME_ENUM) };

struct policy_rule {
    const char *name, *doc; /* borrowed, as all texts; doc NULL: none */
    /* for which jobs: of one of these classes (n 0: of any) that match */
    const char *const *cls;
    size_t n_cls;
    struct policy_match jobs;
    /* when */
    bool has_when, has_until, has_schedule;
    struct policy_condition when, until;
    struct policy_schedule schedule;
    const char *zone; /* of the schedule */
    uint64_t for_ns, release_ns;
    double hysteresis;
    /* of phase rules */
    bool phase;
    double confidence;
    bool least_auto; /* least length from the cost of a change of cap */
    double least_s;  /* otherwise; use policy_rule_least_s() */
    bool always;     /* also if a static cap would save as much */
    /* what */
    bool dry_run;
    bool idle_boards; /* acts on boards without a job, too */
    bool has_goal;    /* a goal, or what it asks of boards */
    struct goal goal;
    int priority;
    uint64_t hold_ns;
    struct policy_asks asks;
};

struct policy_progress {
    enum { POLICY_OFF, POLICY_WAITS, POLICY_ON } stage;
    uint64_t since_ns;     /* of the stage; off: of the reason, too … */
    enum policy_state why; /* … which is this one */
    uint64_t released_ns;  /* on: `when` is false since then … */
    bool releases;         /* … or is not */
};

/* The results of a rule's conditions.  Steps with the same values at the same time may
 * share them, so that each condition is evaluated only once.
 */
enum policy_asked {
    POLICY_WHEN,
    POLICY_WHEN_WIDENED, /* by the hysteresis */
    POLICY_UNTIL,
    POLICY_ASKED,
};
struct policy_answers {
    bool has[POLICY_ASKED]; /* all false at first */
    struct policy_result result[POLICY_ASKED];
};

/* The job, its phase and the time; values is as for policy_evaluate(). */
struct policy_instant {
    uint64_t now_ns;
    const struct policy_value *values;
    struct policy_answers *answers; /* shared results for these values; NULL: none */
    bool is_for_job;                /* policy_rule_is_for() */
    bool no_job;                    /* the board has no job */
    bool inside;                    /* the time is within the rule's schedule */
    uint64_t edge_ns;               /* when that changes; UINT64_MAX: never */
    bool phase_told;                /* reported by the job; else recognised, with … */
    double confidence;              /* 0..1 */
    struct maybe phase_s;           /* how long such a phase of this job is */
    double break_even_s; /* phases that are shorter do not pay for a change of cap */
    bool costly;         /* raises after phase caps have cost the job too much time */
    bool no_gain;        /* a static cap would save as much in the same time */
};

struct policy_verdict {
    enum policy_state
        state;         /* RULE_ACTS: the rule acts; else the reason that it does not */
    bool on;           /* acts, or would without dry_run */
    uint16_t slot;     /* RULE_UNKNOWN: of the signal; POLICY_NO_SLOT: a division */
    uint64_t since_ns; /* begin of the present stage and reason */
    uint64_t due_ns;   /* time of the next step even if no value changes */
};

/* No rule acts on phases known to be shorter: a job that reports phases must not cause
 * writes of limits as often as its page is read.
 */
#define POLICY_LEAST_S 0.3

/* The length of a phase from which a phase rule acts; break_even_s: of the job's boards.
 */
double policy_rule_least_s(const struct policy_rule *rule, double break_even_s);

/* Whether the rule applies to jobs of this class with these facts. */
bool policy_rule_is_for(const struct policy_rule *rule, const char *cls,
                        const struct policy_facts *facts);

/* p: {0} at first, one for each board and job. */
void policy_rule_step(const struct policy_rule *rule, struct policy_progress *p,
                      const struct policy_instant *at, struct policy_verdict *ret);

/* The state of a rule that is on and whose each_mw of policy_claims_of() is 0. */
enum policy_state policy_rule_unmeasured(const struct policy_rule *rule);

/* The goal of a job, from the acting rule of the highest priority.  A chosen goal stays
 * for its hold time, even if its rule ends or a rule of higher priority acts.
 */
struct policy_goal_choice {
    const struct policy_rule *rule; /* NULL: no rule; the job's own goal */
    uint64_t since_ns;
};
/* acts: one per rule.  Returns when the choice must be repeated; UINT64_MAX: when rules
 * change.
 */
uint64_t policy_goal_choose(const struct policy_rule *rules, const bool *acts, size_t n,
                            struct policy_goal_choice *choice, uint64_t now_ns);

#endif
