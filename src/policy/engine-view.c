/* The view of the engine. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "policy/engine-inside.h"

/* ---- values that a rule reads ---- */

/* The subject of the value; NULL: none. */
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

/* Appends the first bytes of text, at most `most`, to the len bytes in ret, as far as
 * size allows.  Returns the new length.
 */
static size_t put(char *ret, size_t size, size_t len, const char *text, size_t most)
{
    size_t room = size - 1 - len, n = strlen(text);

    n = n < most ? n : most;
    n = n < room ? n : room;
    memcpy(ret + len, text, n);
    ret[len + n] = '\0';
    return len + n;
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
    const char *text = v->known && signal->type == POLICY_TEXT
                           ? v->text
                           : subject_value_text(signal, v, value);

    if (read->fold == POLICY_PERCENTILE)
        (void)snprintf(percent, sizeof percent, "%g, ", read->percent);
    if (read->fold == POLICY_NOW) {
        size_t len = put(ret, ENGINE_VALUE, 0, signal->name, 40);
        len = put(ret, ENGINE_VALUE, len, " ", 1);
        (void)put(ret, ENGINE_VALUE, len, text, 50);
        return;
    }
    (void)snprintf(ret, ENGINE_VALUE, "%.32s.%s(%s%g h) %.24s", signal->name,
                   folds[read->fold], percent, read->window_s / 3600, text);
}

/* Numbers are formatted once for each value, because many rules may read it. */
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

    (void)put(ret, ENGINE_WHY, 0,
              rule->has_schedule ? "within its schedule" : "no condition", ENGINE_WHY);
    for (size_t i = 0; rule->has_when && i < e->policy->reads.n; i++) {
        if (!policy_condition_uses(&rule->when, i))
            continue;
        len = put(ret, ENGINE_WHY, len, len ? ", " : "", 2);
        len = put(ret, ENGINE_WHY, len, read_text(e, of, i, value), ENGINE_VALUE);
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
