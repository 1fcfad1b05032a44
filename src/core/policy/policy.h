/* A policy (rules, classes of jobs, presets) and its checks as a whole.  Pure. Explained
 * in docs/policies.md.
 */
#ifndef CORE_POLICY_POLICY_H
#define CORE_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/policy/rule.h"

enum { POLICY_RULES_MAX = 256, POLICY_CLASSES_MAX = 64, POLICY_PRESETS_MAX = 32 };

/* A class of jobs.  Its goal or preset applies if the job requested nothing itself. */
struct policy_class {
    const char *name;
    struct policy_match match;
    bool critical;
    bool has_goal, has_preset; /* at most one of them */
    struct goal goal;
    struct policy_preset preset;
    bool rule_goals; /* a rule's goal may replace the job's requested goal */
    double floor;    /* of demand; 0: none */
    struct policy_ramp ramp;
};
/* The class of jobs that no class matches. */
#define POLICY_CLASS_OTHER "other"

struct policy {
    const struct policy_catalogue *catalogue;
    struct policy_reads reads;
    struct policy_rule *rule;
    size_t n_rules;
    struct policy_class *cls;
    size_t n_classes;
    struct policy_preset preset[POLICY_PRESETS_MAX];
    size_t n_presets;
    bool hard; /* hard rules are allowed */
};

/* The first class that matches; -1: none, its class is POLICY_CLASS_OTHER. */
int policy_class_of(const struct policy *p, const struct policy_facts *facts);

/* Whether a rule's goal may become the job's goal; cls -1: the job has no class. */
bool policy_goal_may(const struct policy *p, int cls, bool job_asked);

/* Whether x of policy a and y of policy b are the same condition over the same signals.
 */
bool policy_same_condition(const struct policy *a, const struct policy_condition *x,
                           const struct policy *b, const struct policy_condition *y);

/* The subject of a finding. */
enum policy_about { POLICY_ABOUT_RULE, POLICY_ABOUT_CLASS };
/* error: the policy is refused; else a warning.  text: one line, borrowed. */
typedef void (*policy_finding_fn)(enum policy_about about, size_t i, bool error,
                                  const char *text, void *user);

/* Calls fn for each finding, rules first; returns how many are errors. */
size_t policy_check(const struct policy *p, policy_finding_fn fn, void *user);

#endif
