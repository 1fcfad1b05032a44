#include "core/policy/policy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "core/policy/code.h"
#include "core/policy/never.h"

int policy_class_of(const struct policy *p, const struct policy_facts *facts)
{
    for (size_t i = 0; i < p->n_classes; i++)
        if (policy_matches(&p->cls[i].match, facts))
            return (int)i;
    return -1;
}

bool policy_goal_may(const struct policy *p, int cls, bool job_asked)
{
    return !job_asked || (cls >= 0 && p->cls[cls].rule_goals);
}

static bool is_same_number(double a, double b)
{
    return a >= b && a <= b;
}

static bool is_same_read(const struct policy *a, uint16_t slot, const struct policy *b,
                         uint16_t other)
{
    const struct policy_read *x = &a->reads.read[slot], *y = &b->reads.read[other];

    return strcmp(a->catalogue->signal[x->signal].name,
                  b->catalogue->signal[y->signal].name) == 0 &&
           x->fold == y->fold && is_same_number(x->percent, y->percent) &&
           is_same_number(x->window_s, y->window_s);
}

bool policy_same_condition(const struct policy *a, const struct policy_condition *x,
                           const struct policy *b, const struct policy_condition *y)
{
    if (x->n_ops != y->n_ops || x->n_literals != y->n_literals ||
        memcmp(x->literals, y->literals, x->n_literals) != 0)
        return false;
    for (size_t i = 0; i < x->n_ops; i++) {
        const struct policy_op *p = &x->op[i], *q = &y->op[i];
        if (p->code != q->code || p->way != q->way || p->text != q->text ||
            !is_same_number(p->number, q->number))
            return false;
        if (policy_code_reads(p->code) && !is_same_read(a, p->slot, b, q->slot))
            return false;
    }
    return true;
}

struct finder {
    const struct policy *p;
    policy_finding_fn fn;
    void *user;
    enum policy_about about;
    size_t at; /* the current rule or class */
    size_t errors;
};

static void say(struct finder *f, bool error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void say(struct finder *f, bool error, const char *format, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    f->errors += error;
    f->fn(f->about, f->at, error, text, f->user);
}

static const struct policy_class *find_class(const struct policy *p, const char *name)
{
    for (size_t i = 0; i < p->n_classes; i++)
        if (strcmp(p->cls[i].name, name) == 0)
            return &p->cls[i];
    return NULL;
}

static void check_classes_of(struct finder *f, const struct policy_rule *rule)
{
    const char *known[POLICY_CLASSES_MAX + 2] = {NULL};
    size_t n =
        f->p->n_classes < POLICY_CLASSES_MAX ? f->p->n_classes : POLICY_CLASSES_MAX;
    char none[NEAREST_NONE];

    for (size_t k = 0; k < n; k++)
        known[k] = f->p->cls[k].name;
    known[n] = POLICY_CLASS_OTHER;
    for (size_t i = 0; i < rule->n_cls; i++) {
        const char *name = rule->cls[i];
        if (!find_class(f->p, name) && strcmp(name, POLICY_CLASS_OTHER) != 0)
            say(f, true, "%s: class %s", rule->name, nearest_none_of(name, known, none));
    }
}

/* Compares the rule with the rules before it. */
static void check_earlier(struct finder *f, const struct policy_rule *rule)
{
    for (const struct policy_rule *other = f->p->rule; other < rule; other++) {
        if (strcmp(other->name, rule->name) == 0)
            say(f, true, "%s: an earlier rule has this name", rule->name);
        if (rule->has_goal && other->has_goal && rule->priority == other->priority)
            say(f, true,
                "%s: its goal has priority %d, as that of %s: one has to be higher",
                rule->name, rule->priority, other->name);
    }
}

/* The first signal that the condition reads and that caps influence; NULL: none. */
static const char *moved_signal(const struct policy *p, const struct policy_condition *c)
{
    for (size_t i = 0; i < p->reads.n; i++) {
        const struct policy_signal *s = &p->catalogue->signal[p->reads.read[i].signal];
        if (policy_condition_uses(c, i) && s->moves)
            return s->name;
    }
    return NULL;
}

/* Whether no values make the rule act, although its conditions depend on values. */
static void check_never(struct finder *f, const struct policy_rule *rule)
{
    const struct policy_catalogue *catalogue = f->p->catalogue;
    const struct policy_reads *reads = &f->p->reads;

    if (policy_never(&rule->when, NULL, catalogue, reads))
        say(f, true, "%s: never acts: no values of its signals make its condition true",
            rule->name);
    else if (rule->has_until && policy_condition_constant(&rule->until) != POLICY_TRUE &&
             policy_never(&rule->when, &rule->until, catalogue, reads))
        say(f, true,
            "%s: never acts: its `until` is true or unknown wherever its condition is "
            "true",
            rule->name);
}

static void check_when(struct finder *f, const struct policy_rule *rule)
{
    enum policy_truth when =
        rule->has_when ? policy_condition_constant(&rule->when) : POLICY_TRUE;
    const char *moved = rule->has_when ? moved_signal(f->p, &rule->when) : NULL;

    if (when == POLICY_FALSE)
        say(f, true, "%s: never acts: its condition is false whatever the signals are",
            rule->name);
    else if (when == POLICY_TRUE && rule->has_when)
        say(f, false, "%s: its condition is true whatever the signals are", rule->name);
    if (rule->has_until && policy_condition_constant(&rule->until) == POLICY_TRUE)
        say(f, true, "%s: never acts: its `until` is true whatever the signals are",
            rule->name);
    if (when == POLICY_UNKNOWN)
        check_never(f, rule);
    if (moved && !rule->has_until && !rule->phase)
        say(f, true, "%s: reads %s, which caps change: it needs an `until`", rule->name,
            moved);
}

static void check_time(struct finder *f, const struct policy_rule *rule)
{
    uint32_t longest_s =
        rule->has_schedule ? policy_schedule_longest_s(&rule->schedule) : UINT32_MAX;

    if (longest_s != UINT32_MAX && rule->for_ns >= longest_s * NS_PER_S)
        say(f, true, "%s: never acts: `for` is %.0f s, its schedule lasts %u s at most",
            rule->name, s_of_ns(rule->for_ns), longest_s);
}

static bool floor_above(const struct policy_cap *cap, double floor)
{
    return cap->measure == POLICY_OF_DEMAND && floor > cap->share;
}

static void check_cap(struct finder *f, const struct policy_rule *rule)
{
    const struct policy_asks *asks = &rule->asks;

    if (rule->has_goal)
        return;
    if (asks->hard && !f->p->hard)
        say(f, true, "%s: a hard rule needs `hard: true` in the file", rule->name);
    if (floor_above(&asks->cap, asks->floor))
        say(f, true, "%s: its floor, %g %% of demand, is above its cap, %g %% of demand",
            rule->name, asks->floor * 100, asks->cap.share * 100);
    for (size_t i = 0; i < f->p->n_classes && !asks->hard; i++)
        if (floor_above(&asks->cap, f->p->cls[i].floor))
            say(f, false, "%s: has no effect in class %s, whose floor is %g %% of demand",
                rule->name, f->p->cls[i].name, f->p->cls[i].floor * 100);
}

/* A class after one that matches each of its jobs, and one with a duplicate name. */
static void check_class(struct finder *f, const struct policy_class *cls)
{
    for (const struct policy_class *other = f->p->cls; other < cls; other++) {
        if (strcmp(other->name, cls->name) == 0) {
            say(f, true, "%s: an earlier class has this name", cls->name);
            return;
        }
        if (policy_match_covers(&other->match, &cls->match)) {
            say(f, false, "%s: no job is of this class: %s before it matches %s",
                cls->name, other->name,
                other->match.n == 0 ? "every job" : "each of its jobs");
            return;
        }
    }
}

size_t policy_check(const struct policy *p, policy_finding_fn fn, void *user)
{
    struct finder f = {.p = p, .fn = fn, .user = user, .about = POLICY_ABOUT_RULE};

    for (f.at = 0; f.at < p->n_rules; f.at++) {
        const struct policy_rule *rule = &p->rule[f.at];
        check_earlier(&f, rule);
        check_classes_of(&f, rule);
        check_when(&f, rule);
        check_time(&f, rule);
        check_cap(&f, rule);
    }
    f.about = POLICY_ABOUT_CLASS;
    for (f.at = 0; f.at < p->n_classes; f.at++)
        check_class(&f, &p->cls[f.at]);
    return f.errors;
}
