/* What the engine shows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "policy/engine-inside.h"

/* ---- what a rule reads ---- */

/* Whose value it is; NULL: nobody's. */
static const struct subject *subject_of(const struct policy_engine *e,
                                        const struct engine_of *of, size_t slot)
{
    const struct engine_job_state *j;
    const struct subject *s = &e->node;

    switch (e->policy->catalogue->signal[e->policy->reads.read[slot].signal].scope) {
    case POLICY_OF_NODE:
        break;
    case POLICY_OF_BOARD:
        s = &e->board[of->board];
        break;
    case POLICY_OF_JOB:
        j = of->job ? engine_job_find(e, of->job) : NULL;
        s = j ? &j->values : NULL;
        break;
    }
    return s && s->value ? s : NULL;
}

/* "price.mean(24 h) 0.31 EUR/kWh" */
static void write_read(const struct policy_engine *e, const struct policy_value *v,
                       size_t slot, char ret[static ENGINE_VALUE])
{
    static const char *const folds[] = {[POLICY_MEAN] = "mean",
                                        [POLICY_MIN] = "min",
                                        [POLICY_MAX] = "max",
                                        [POLICY_PERCENTILE] = "percentile"};
    const struct policy_read *read = &e->policy->reads.read[slot];
    const struct policy_signal *signal = &e->policy->catalogue->signal[read->signal];
    char value[ENGINE_VALUE], percent[24] = "";

    (void)subject_value_text(signal, v, value);
    if (read->fold == POLICY_PERCENTILE)
        (void)snprintf(percent, sizeof percent, "%g, ", read->percent);
    if (read->fold == POLICY_NOW)
        (void)snprintf(ret, ENGINE_VALUE, "%.40s %.50s", signal->name, value);
    else
        (void)snprintf(ret, ENGINE_VALUE, "%.32s.%s(%s%g h) %.24s", signal->name,
                       folds[read->fold], percent, read->window_s / 3600, value);
}

/* Numbers are written once for each value: many rules may begin with it. */
static const char *read_text(const struct policy_engine *e, const struct engine_of *of,
                             size_t slot, char buf[static ENGINE_VALUE])
{
    static const struct policy_value unknown = {.known = false};
    const struct subject *s = subject_of(e, of, slot);
    bool is_text =
        e->policy->catalogue->signal[e->policy->reads.read[slot].signal].type ==
        POLICY_TEXT;

    if (!s || is_text) {
        write_read(e, s ? &s->value[slot] : &unknown, slot, buf);
        return buf;
    }
    if (!s->text[slot][0])
        write_read(e, &s->value[slot], slot, s->text[slot]);
    return s->text[slot];
}

void engine_why(const struct policy_engine *e, const struct policy_rule *rule,
                const struct engine_of *of, char ret[static ENGINE_WHY])
{
    char value[ENGINE_VALUE];
    size_t len = 0;

    (void)snprintf(ret, ENGINE_WHY, "%s",
                   rule->has_schedule ? "its hours" : "no condition");
    for (size_t i = 0; rule->has_when && i < e->policy->reads.n && len < ENGINE_WHY;
         i++) {
        if (!policy_condition_uses(&rule->when, i))
            continue;
        int n = snprintf(ret + len, ENGINE_WHY - len, "%s%s", len ? ", " : "",
                         read_text(e, of, i, value));
        len += n > 0 ? (size_t)n : 0;
    }
}

/* ---- rows ---- */

static const struct unit *unit_of(const struct policy_engine *e, size_t i, size_t *rule)
{
    size_t n = e->policy ? e->policy->n_rules : 0;

    if (n == 0 || i / n >= e->n_units)
        return NULL;
    *rule = i % n;
    return &e->unit[i / n];
}

bool policy_engine_row(const struct policy_engine *e, size_t i, struct engine_row *ret)
{
    size_t rule = 0;
    const struct unit *u = unit_of(e, i, &rule);

    if (!u)
        return false;
    const struct rule_state *state = &u->rule[rule];
    const struct policy_verdict *v = &state->verdict;
    bool named = v->state == RULE_UNKNOWN && v->slot != POLICY_NO_SLOT;
    *ret = (struct engine_row){
        .rule = &e->policy->rule[rule],
        .board = u->board,
        .job = u->job,
        .state = v->state,
        .on = v->on,
        .since_ns = v->since_ns,
        .unknown =
            named
                ? e->policy->catalogue->signal[e->policy->reads.read[v->slot].signal].name
                : NULL,
        .why = state->why ? state->why : "",
    };
    const struct engine_job_state *j = u->job ? engine_job_find(e, u->job) : NULL;
    if (j)
        ret->phase = j->phase;
    return true;
}

bool policy_engine_read(const struct policy_engine *e, size_t i, size_t n,
                        char ret[static ENGINE_VALUE])
{
    char value[ENGINE_VALUE];
    size_t rule = 0;
    const struct unit *u = unit_of(e, i, &rule);

    for (size_t slot = 0; u && slot < e->policy->reads.n; slot++) {
        const struct engine_of of = {.board = u->board, .job = u->job};
        if (!(e->reads[rule].word[slot / 64] >> (slot % 64) & 1) || n-- > 0)
            continue;
        (void)snprintf(ret, ENGINE_VALUE, "%s", read_text(e, &of, slot, value));
        return true;
    }
    return false;
}

void policy_engine_counts(const struct policy_engine *e, struct engine_counts *ret)
{
    *ret = e->counts;
}
