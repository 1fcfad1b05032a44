/* The policy as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/show.h"
#include "base/names.h"
#include "config/config.h"
#include "core/policy/policy.h"
#include "node/policy-trial.h"
#include "policy/engine.h"
#include "policy/limits.h"

/* Rows of one answer: each rule fits alone, as it has one row for each unit of the
 * engine.
 */
enum { ROWS_MAX = ENGINE_UNITS_MAX };

/* Values of another user's job are visible only to that user. */
static bool may_see(const struct node_view *v, const struct node_who *who, uint64_t job)
{
    if (!job || show_all(who))
        return true;
    for (size_t i = 0; i < v->n_jobs; i++)
        if (v->job[i].job->id == job)
            return show_mine(who, v->job[i].job);
    return false;
}

static void put_reads(struct json_out *o, const struct policy_engine *e, size_t row,
                      bool may)
{
    char value[ENGINE_VALUE];

    json_out_array(o, "reads");
    for (size_t n = 0; may && policy_engine_read(e, row, n, value); n++)
        json_out_text(o, NULL, value);
    json_out_end(o);
}

/* Compares caps of phases with one static cap of the same time. */
static void compare_text(const struct engine_row *row, char *text, size_t size)
{
    const struct engine_phase *p = &row->phase;

    if (!p->saved.known)
        (void)snprintf(text, size,
                       "%s; the saving compared with a static cap is not known yet",
                       names_text(NAMES_RULE_STATE, row->state));
    else
        (void)snprintf(
            text, size,
            "%s; compared with a static cap of %.0f W (same time), phase caps %s "
            "%.1f %% of energy",
            names_text(NAMES_RULE_STATE, row->state), p->static_w,
            p->saved.v < 0 ? "cost" : "save", 100 * fabs(p->saved.v));
}

static void state_text(const struct engine_row *row, char *text, size_t size)
{
    const struct engine_phase *p = &row->phase;
    const char *is = names_text(NAMES_RULE_STATE, row->state);

    if (row->state == RULE_UNKNOWN)
        (void)snprintf(text, size, "%s%s", row->unknown ? row->unknown : "a result",
                       row->unknown ? " is unknown" : " is not a number");
    else if (row->state == RULE_SHORT)
        (void)snprintf(text, size,
                       "phases of this kind take %.2g s in this job, less than %.2g s",
                       p->length_s.v, policy_rule_least_s(row->rule, p->break_even_s));
    else if (row->state == RULE_COSTLY)
        (void)snprintf(text, size, "%s: %.2g %%, the longest after %.0f ms", is,
                       100 * p->lost, 1000 * p->worst_s);
    else if (row->rule->phase && row->job)
        compare_text(row, text, size);
    else
        (void)snprintf(text, size, "%s", is);
}

static void put_text(struct json_out *o, const struct engine_row *row)
{
    char text[200];

    state_text(row, text, sizeof text);
    json_out_text(o, "text", text);
}

/* The part of a policy that is shown, and the client. */
struct shown {
    const struct node_view *v;
    const struct node_who *who;
    const struct view_policy *p;
};

static void put_row(struct json_out *o, const struct shown *s, size_t i,
                    const struct engine_row *row)
{
    const struct node_view *v = s->v;
    bool may = may_see(v, s->who, row->job);

    json_out_object(o, NULL);
    json_out_int(o, "gpu", v->board[row->board].info->index);
    json_out_text(o, "uuid", v->board[row->board].info->uuid);
    json_out_known_int(o, "job", row->job, (int64_t)row->job);
    json_out_text(o, "state", names_word(NAMES_RULE_STATE, row->state));
    json_out_bool(o, "on", row->on);
    show_utc(o, "since",
             v->utc_ns -
                 (int64_t)(v->now_ns - (row->since_ns ? row->since_ns : v->began_ns)));
    put_text(o, row);
    json_out_text(o, "why", may && row->why[0] ? row->why : NULL);
    put_reads(o, s->p->engine, i, may);
    json_out_end(o);
}

/* Returns how many rows the rule has. */
static size_t put_rule(struct json_out *o, const struct shown *s, size_t at)
{
    const struct policy_rule *rule = &s->p->rule[at];
    char cap[POLICY_CAP_TEXT], goal[GOAL_TEXT_MAX];
    struct engine_row row;
    size_t rows = 0;

    json_out_object(o, NULL);
    json_out_text(o, "name", rule->name);
    json_out_text(o, "doc", rule->doc);
    json_out_bool(o, "dry_run", rule->dry_run);
    json_out_text(o, "kind", rule->has_goal ? "goal" : rule->asks.hard ? "hard" : "soft");
    json_out_text(o, "asks",
                  rule->has_goal ? goal_text(&rule->goal, goal)
                                 : policy_cap_text(&rule->asks.cap, cap));
    json_out_array(o, "boards");
    for (size_t i = at; policy_engine_row(s->p->engine, i, &row);
         i += s->p->n_rules, rows++)
        if (row.board < s->v->n_boards)
            put_row(o, s, i, &row);
    json_out_end(o);
    json_out_end(o);
    return rows;
}

/* Only whole rules: all rows of each. */
static void put_rules(struct json_out *o, const struct shown *s, uint64_t from)
{
    size_t n = s->p->engine ? s->p->n_rules : 0, rows = 0, each = 0;

    json_out_int(o, "rules_total", (int64_t)n);
    json_out_array(o, "rules");
    for (size_t i = from < n ? (size_t)from : n; i < n && rows + each <= ROWS_MAX; i++) {
        each = put_rule(o, s, i);
        rows += each;
    }
    json_out_end(o);
}

/* The claims that the policy would make on a board. */
static void put_would(struct json_out *o, const struct node_view *v, size_t i,
                      const struct engine_claim claim[static 2])
{
    json_out_object(o, NULL);
    json_out_int(o, "gpu", v->board[i].info->index);
    json_out_text(o, "uuid", v->board[i].info->uuid);
    json_out_array(o, "claims");
    for (int hard = 0; hard < 2; hard++) {
        if (!claim[hard].mw)
            continue;
        json_out_object(o, NULL);
        json_out_text(o, "kind",
                      names_word(NAMES_CLAIM_KIND, hard ? CLAIM_HARD : CLAIM_SOFT));
        json_out_int(o, "cap_mw", claim[hard].mw);
        json_out_text(o, "who", claim[hard].who);
        json_out_text(o, "why", claim[hard].why);
        json_out_end(o);
    }
    json_out_end(o);
    json_out_end(o);
}

void show_policy_trial(struct json_out *o, const struct node_view *v,
                       const struct node_who *who, const struct policy_trial *t,
                       uint64_t from)
{
    const struct shown s = {v, who, &t->policy};

    json_out_object(o, NULL);
    json_out_bool(o, "simulated", v->simulated);
    json_out_array(o, "boards");
    for (size_t i = 0; i < v->n_boards && i < BOARDS_MAX; i++)
        put_would(o, v, i, t->claim[i]);
    json_out_end(o);
    put_rules(o, &s, from);
    json_out_end(o);
}

static void put_limit_board(struct json_out *o, const struct node_view *v, size_t i,
                            const struct limits_row *row)
{
    uint64_t since_ns = row->since_ns ? row->since_ns : v->began_ns;

    json_out_object(o, NULL);
    json_out_int(o, "gpu", v->board[i].info->index);
    json_out_text(o, "uuid", v->board[i].info->uuid);
    json_out_text(o, "state", names_word(NAMES_LIMIT_STATE, row->state));
    show_utc(o, "since", v->utc_ns - (int64_t)(v->now_ns - since_ns));
    json_out_text(o, "text", names_text(NAMES_LIMIT_STATE, row->state));
    show_mw(o, "cap_mw", row->cap_mw);
    json_out_text(o, "why", row->why[0] ? row->why : NULL);
    json_out_known_double(o, "margin_k", row->margin_known, row->margin_k);
    json_out_end(o);
}

static void put_limit(struct json_out *o, const struct node_view *v,
                      const struct limits_view *l, enum limit_kind kind)
{
    char asks[LIMIT_TEXT];

    if (!limit_asks(&l->ask, kind, asks)[0])
        return;
    json_out_object(o, NULL);
    json_out_text(o, "name", limit_word(kind));
    json_out_text(o, "asks", asks);
    json_out_known_double(o, "first_step_w", kind == LIMIT_RISE, l->first_w);
    json_out_known_double(o, "largest_fall_w", kind == LIMIT_RISE, l->fall_w);
    json_out_array(o, "boards");
    for (size_t i = 0; i < l->n_boards && i < v->n_boards; i++)
        put_limit_board(o, v, i, &l->row[kind][i]);
    json_out_end(o);
    json_out_end(o);
}

/* Only in the first of several answers. */
static void put_limits(struct json_out *o, const struct node_view *v, bool first)
{
    struct limits_view l;

    json_out_array(o, "limits");
    if (v->policy.limits && first) {
        limits_look(v->policy.limits, &l);
        for (enum limit_kind kind = 0; kind < LIMIT_KINDS; kind++)
            put_limit(o, v, &l, kind);
    }
    json_out_end(o);
}

static bool is_of_caps(const struct view_policy *p, const char *name)
{
    for (size_t i = 0; i < p->n_caps_classes; i++)
        if (strcmp(p->caps_cls[i].name, name) == 0)
            return true;
    return false;
}

/* The classes of caps.classes, then the policy's; only in the first of several answers.
 */
static void put_classes(struct json_out *o, const struct view_policy *p, bool first)
{
    json_out_array(o, "classes");
    for (size_t i = 0; i < p->n_caps_classes && first; i++)
        json_out_text(o, NULL, p->caps_cls[i].name);
    for (size_t i = 0; i < p->n_classes && first; i++)
        if (!is_of_caps(p, p->cls[i].name))
            json_out_text(o, NULL, p->cls[i].name);
    json_out_end(o);
}

void show_policy(struct json_out *o, const struct node_view *v,
                 const struct node_who *who, uint64_t from)
{
    const struct view_policy *p = &v->policy;

    json_out_object(o, NULL);
    json_out_bool(o, "simulated", v->simulated);
    json_out_text(o, "file", p->file ? p->file : "");
    json_out_bool(o, "in_force", p->engine != NULL);
    json_out_text(o, "error", p->error && p->error[0] ? p->error : NULL);
    json_out_int(o, "loads", (int64_t)p->loads);
    json_out_int(o, "failures", (int64_t)p->failures);
    json_out_int(o, "evaluations", (int64_t)p->evaluations);
    json_out_array(o, "presets"); /* only in the first of several answers */
    for (size_t i = 0; i < p->n_presets && from == 0; i++) {
        json_out_object(o, NULL);
        json_out_text(o, "name", p->preset[i].name);
        json_out_double(o, "share", p->preset[i].share);
        json_out_end(o);
    }
    json_out_end(o);
    put_classes(o, p, from == 0);
    put_rules(o, &(struct shown){v, who, p}, from);
    put_limits(o, v, from == 0);
    json_out_end(o);
}
