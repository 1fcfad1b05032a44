/* Rules on boards and jobs: the units of the rules, and the state of each rule. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/names.h"
#include "io/loop.h"
#include "policy/engine-inside.h"

/* ---- events ---- */

static void tell(const struct policy_engine *e, const struct unit *u, size_t rule,
                 const char *how)
{
    const struct rule_state *state = &u->rule[rule];
    const struct engine_event event = {.rule = &e->policy->rule[rule],
                                       .board = u->board,
                                       .job = u->job,
                                       .begins = how == NULL,
                                       .how = how ? how : "",
                                       .why = state->why ? state->why : ""};

    if (e->o.event)
        e->o.event(&event, e->o.user);
}

static void end_all(const struct policy_engine *e, struct unit *u, const char *how)
{
    for (size_t i = 0; i < e->policy->n_rules; i++) {
        if (u->rule[i].verdict.on)
            tell(e, u, i, how);
        free(u->rule[i].why);
    }
    free(u->rule);
    u->rule = NULL;
}

/* ---- jobs ---- */

struct engine_job_state *engine_job_find(const struct policy_engine *e, uint64_t id)
{
    for (size_t i = 0; i < e->n_jobs; i++)
        if (e->job[i].id == id)
            return &e->job[i];
    return NULL;
}

/* All rules of the job's units have to be stepped. */
static void refresh_units(struct policy_engine *e, uint64_t job)
{
    for (size_t i = 0; i < e->n_units; i++)
        e->unit[i].fresh |= e->unit[i].job == job;
}

/* Derives what depends on the job's facts, which change rarely while it runs. */
static int set_up_job(struct policy_engine *e, struct engine_job_state *j,
                      const struct engine_job *job)
{
    const struct policy *p = e->policy;

    if (j->values.value && j->edition == job->edition)
        return 0;
    if (!j->values.value && subject_init(&j->values, p) < 0)
        return -ENOMEM;
    refresh_units(e, job->id);
    j->edition = job->edition;
    j->cls = policy_class_of(p, &job->facts);
    const char *cls = j->cls < 0 ? POLICY_CLASS_OTHER : p->cls[j->cls].name;
    j->phase_ruled = false;
    for (size_t i = 0; i < p->n_rules; i++) {
        j->is_for[i] = policy_rule_is_for(&p->rule[i], cls, &job->facts);
        j->phase_ruled |= j->is_for[i] && p->rule[i].phase;
    }
    return 0;
}

static struct engine_job_state *add_job(struct policy_engine *e, uint64_t id)
{
    if (array_grow(&e->job, &e->cap_jobs, e->n_jobs, ENGINE_JOBS_MAX) < 0)
        return NULL;
    struct engine_job_state *j = &e->job[e->n_jobs++];
    *j = (struct engine_job_state){.id = id, .cls = -1, .choice_due_ns = UINT64_MAX};
    return j;
}

static bool is_same_phase(const struct engine_phase *a, const struct engine_phase *b)
{
    return a->told == b->told && a->costly == b->costly && a->no_gain == b->no_gain &&
           a->confidence >= b->confidence && a->confidence <= b->confidence &&
           a->length_s.known == b->length_s.known && a->length_s.v >= b->length_s.v &&
           a->length_s.v <= b->length_s.v && a->break_even_s >= b->break_even_s &&
           a->break_even_s <= b->break_even_s;
}

static void take_job(struct policy_engine *e, const struct engine_job *job)
{
    struct engine_of of = {.job = job->id};
    struct engine_job_state *j = engine_job_find(e, job->id);

    if (!j)
        j = add_job(e, job->id);
    if (!j || set_up_job(e, j, job) < 0)
        return; /* tried again by the next evaluation */
    j->there = true;
    j->has_goal = job->has_goal;
    j->has_cap = job->has_cap;
    j->phase_moved = !is_same_phase(&j->phase, &job->phase);
    j->phase = job->phase;
    of.cls = j->cls < 0 ? NULL : &e->policy->cls[j->cls];
    subject_read(&j->values, e->policy, POLICY_OF_JOB, &of, e->o.value, e->o.user);
}

static void take_jobs(struct policy_engine *e, const struct engine_world *world)
{
    size_t n = 0;

    for (size_t i = 0; i < e->n_jobs; i++)
        e->job[i].there = false;
    for (size_t i = 0; i < world->n_jobs; i++)
        take_job(e, &world->job[i]);
    for (size_t i = 0; i < e->n_jobs; i++) {
        if (e->job[i].there)
            e->job[n++] = e->job[i];
        else
            subject_fini(&e->job[i].values);
    }
    e->n_jobs = n;
}

/* ---- units ---- */

/* Units are in the same order each time: the search begins after the last one found. */
static struct unit *find_unit(const struct policy_engine *e, size_t board, uint64_t job,
                              size_t *next)
{
    for (size_t i = 0; i < e->n_units; i++) {
        size_t at = (*next + i) % e->n_units;
        if (e->unit[at].board != board || e->unit[at].job != job)
            continue;
        *next = at + 1;
        return &e->unit[at];
    }
    return NULL;
}

static void add_unit(struct policy_engine *e, size_t board, uint64_t job)
{
    struct rule_state *rule = calloc(e->policy->n_rules + 1, sizeof *rule);

    if (!rule || array_grow(&e->unit, &e->cap_units, e->n_units, ENGINE_UNITS_MAX) < 0) {
        e->counts.left_out++;
        free(rule);
        return;
    }
    e->unit[e->n_units++] = (struct unit){
        .board = board, .job = job, .there = true, .fresh = true, .rule = rule};
}

static void take_unit(struct policy_engine *e, size_t board, uint64_t job, size_t *next)
{
    struct unit *u = find_unit(e, board, job, next);

    if (u)
        u->there = true;
    else
        add_unit(e, board, job);
}

static void drop_units(struct policy_engine *e)
{
    size_t n = 0;

    for (size_t i = 0; i < e->n_units; i++) {
        if (e->unit[i].there)
            e->unit[n++] = e->unit[i];
        else
            end_all(e, &e->unit[i], "job gone");
    }
    e->n_units = n;
}

static void take_units(struct policy_engine *e, const struct engine_world *world)
{
    size_t next = 0;

    for (size_t i = 0; i < e->n_units; i++)
        e->unit[i].there = false;
    for (size_t b = 0; b < e->n_boards; b++) {
        bool idle = true;
        for (size_t i = 0; i < world->n_jobs; i++) {
            const struct engine_job *job = &world->job[i];
            if (!(job->boards >> b & 1) || !engine_job_find(e, job->id))
                continue;
            take_unit(e, b, job->id, &next);
            idle = false;
        }
        if (idle)
            take_unit(e, b, 0, &next);
    }
    drop_units(e);
}

static void take_boards(struct policy_engine *e, const struct engine_world *world)
{
    struct engine_of of = {0};

    e->n_boards = world->n_boards < ENGINE_BOARDS ? world->n_boards : ENGINE_BOARDS;
    for (of.board = 0; of.board < e->n_boards; of.board++) {
        struct subject *s = &e->board[of.board];
        if (s->value || subject_init(s, e->policy) == 0)
            subject_read(s, e->policy, POLICY_OF_BOARD, &of, e->o.value, e->o.user);
        else
            e->n_boards = of.board; /* out of memory */
    }
}

int engine_take_world(struct policy_engine *e, const struct engine_world *world)
{
    const struct engine_of nobody = {0};

    if (!e->node.value && subject_init(&e->node, e->policy) < 0)
        return -ENOMEM;
    subject_read(&e->node, e->policy, POLICY_OF_NODE, &nobody, e->o.value, e->o.user);
    take_boards(e, world);
    take_jobs(e, world);
    take_units(e, world);
    return 0;
}

/* ---- steps ---- */

/* Whether the rule's schedule is on, and when that changes. */
static const struct hours *hours_of(struct policy_engine *e, size_t rule, uint64_t now_ns)
{
    const struct policy_rule *r = &e->policy->rule[rule];
    int64_t utc_ns = loop_utc_ns(e->o.loop), utc_s = utc_ns / (int64_t)NS_PER_S;
    struct hours *h = &e->hours[rule];
    struct policy_zone zone;
    struct policy_hours at;

    if (h->known && now_ns < h->edge_ns)
        return h;
    *h = (struct hours){.known = true, .edge_ns = UINT64_MAX};
    e->o.zone(rule, utc_s, &zone, e->o.user);
    policy_schedule_at(&r->schedule, &zone, utc_s, &at);
    h->inside = at.inside;
    if (at.edge_utc_s != INT64_MAX)
        h->edge_ns = now_ns + (uint64_t)(at.edge_utc_s * (int64_t)NS_PER_S - utc_ns);
    return h;
}

static void note_turn(const struct policy_engine *e, const struct unit *u, size_t rule,
                      bool was)
{
    struct rule_state *state = &u->rule[rule];
    const struct engine_of of = {.board = u->board, .job = u->job};
    char why[ENGINE_WHY];

    if (state->verdict.on == was)
        return;
    if (state->verdict.on) {
        engine_why(e, &e->policy->rule[rule], &of, why);
        state->why = strdup(why);
    }
    tell(e, u, rule, was ? names_word(NAMES_RULE_STATE, state->verdict.state) : NULL);
    if (was) {
        free(state->why);
        state->why = NULL;
    }
}

/* The answers shared in this evaluation by all units with the same values; NULL: the
 * rule's values are specific to this board and this job.
 */
static struct policy_answers *answers_of(struct policy_engine *e, const struct unit *u,
                                         struct engine_job_state *j, size_t rule)
{
    bool board = e->of_board[rule], job = e->of_job[rule];
    struct subject *s = board ? &e->board[u->board] : job && j ? &j->values : &e->node;
    struct kept_answers *kept = &s->kept[rule];

    if (job && (board || !j))
        return NULL;
    if (kept->evaluation != e->counts.evaluations)
        memset(kept->answers.has, 0, sizeof kept->answers.has);
    kept->evaluation = e->counts.evaluations;
    return &kept->answers;
}

static void step_rule(struct policy_engine *e, struct unit *u, size_t rule,
                      struct engine_job_state *j, struct policy_instant *at)
{
    const struct policy_rule *r = &e->policy->rule[rule];
    struct rule_state *state = &u->rule[rule];
    bool was = state->verdict.on;

    at->no_job = !j;
    at->is_for_job = j ? j->is_for[rule] : r->idle_boards && !r->has_goal;
    at->answers = answers_of(e, u, j, rule);
    at->inside = true;
    at->edge_ns = UINT64_MAX;
    if (r->has_schedule) {
        const struct hours *h = hours_of(e, rule, at->now_ns);
        at->inside = h->inside;
        at->edge_ns = h->edge_ns;
    }
    policy_rule_step(r, &state->progress, at, &state->verdict);
    e->counts.steps++;
    note_turn(e, u, rule, was);
}

/* Whether the rule's values have changed, its clock was set, or it is due. */
static bool has_news(const struct policy_engine *e, const struct unit *u, size_t rule,
                     const struct slots *changed, bool phase_moved, uint64_t now_ns)
{
    return u->fresh || now_ns >= u->rule[rule].verdict.due_ns ||
           (e->clock_set && e->policy->rule[rule].has_schedule) ||
           (phase_moved && e->policy->rule[rule].phase) ||
           slots_meet(&e->reads[rule], changed);
}

static void step_unit(struct policy_engine *e, struct unit *u, uint64_t now_ns)
{
    struct policy_value values[POLICY_READS_MAX];
    struct engine_job_state *j = u->job ? engine_job_find(e, u->job) : NULL;
    struct policy_instant at = {.now_ns = now_ns, .values = values};
    struct slots changed = e->node.changed;

    memset(values, 0, e->policy->reads.n * sizeof values[0]);
    subject_copy(&e->node, e->policy, POLICY_OF_NODE, values);
    subject_copy(&e->board[u->board], e->policy, POLICY_OF_BOARD, values);
    slots_add(&changed, &e->board[u->board].changed);
    if (j) {
        subject_copy(&j->values, e->policy, POLICY_OF_JOB, values);
        slots_add(&changed, &j->values.changed);
        at.phase_told = j->phase.told;
        at.confidence = j->phase.confidence;
        at.phase_s = j->phase.length_s;
        at.break_even_s = j->phase.break_even_s;
        at.costly = j->phase.costly;
        at.no_gain = j->phase.no_gain;
    }
    for (size_t i = 0; i < e->policy->n_rules; i++)
        if (has_news(e, u, i, &changed, j && j->phase_moved, now_ns))
            step_rule(e, u, i, j, &at);
    u->fresh = false;
}

uint64_t engine_step_units(struct policy_engine *e, uint64_t now_ns)
{
    uint64_t due_ns = UINT64_MAX;

    for (size_t i = 0; i < e->n_units; i++) {
        struct unit *u = &e->unit[i];
        step_unit(e, u, now_ns);
        for (size_t k = 0; k < e->policy->n_rules; k++)
            if (u->rule[k].verdict.due_ns < due_ns)
                due_ns = u->rule[k].verdict.due_ns;
    }
    return due_ns;
}

/* ---- another policy ---- */

/* The old policy's rule that continues as this one; -1: none. */
static int goes_on(const struct policy *old, const struct policy *new, size_t rule)
{
    const struct policy_rule *r = &new->rule[rule];

    for (size_t i = 0; old && i < old->n_rules; i++) {
        const struct policy_rule *was = &old->rule[i];
        if (strcmp(was->name, r->name) == 0)
            return was->has_when == r->has_when &&
                           (!r->has_when ||
                            policy_same_condition(old, &was->when, new, &r->when))
                       ? (int)i
                       : -1;
    }
    return -1;
}

static void free_rules(struct rule_state **rule, size_t n)
{
    for (size_t i = 0; rule && i < n; i++)
        free(rule[i]);
    free(rule);
}

/* Moves the states of rules that continue out of the old ones, and ends the others. */
static void move_rules(struct policy_engine *e, const struct policy *policy,
                       const int *from, struct rule_state **rule)
{
    for (size_t i = 0; i < e->n_units; i++) {
        struct unit *u = &e->unit[i];
        for (size_t k = 0; k < policy->n_rules; k++) {
            if (from[k] < 0)
                continue;
            rule[i][k] = u->rule[from[k]];
            u->rule[from[k]] = (struct rule_state){.why = NULL};
        }
        end_all(e, u, "policy gone");
        u->rule = rule[i];
        u->fresh = true;
        rule[i] = NULL;
    }
}

/* A chosen goal stays for its rule's hold if the rule continues. */
static void move_choices(struct policy_engine *e, const struct policy *policy,
                         const int *from)
{
    for (size_t i = 0; i < e->n_jobs; i++) {
        struct policy_goal_choice *c = &e->job[i].choice;
        const struct policy_rule *was = c->rule;
        c->rule = NULL;
        for (size_t k = 0; was && k < policy->n_rules; k++)
            if (from[k] >= 0 && &e->policy->rule[from[k]] == was)
                c->rule = &policy->rule[k];
    }
}

static void forget_values(struct policy_engine *e)
{
    subject_fini(&e->node);
    for (size_t i = 0; i < ENGINE_BOARDS; i++)
        subject_fini(&e->board[i]);
    for (size_t i = 0; i < e->n_jobs; i++)
        subject_fini(&e->job[i].values);
}

int engine_change_rules(struct policy_engine *e, const struct policy *policy)
{
    struct rule_state **rule = calloc(e->n_units + 1, sizeof *rule);
    int from[POLICY_RULES_MAX];
    bool full = rule != NULL;

    for (size_t i = 0; full && i < e->n_units; i++) {
        rule[i] = calloc(policy->n_rules + 1, sizeof *rule[i]);
        full = rule[i] != NULL;
    }
    if (!full) {
        free_rules(rule, e->n_units);
        return -ENOMEM;
    }
    for (size_t k = 0; k < policy->n_rules; k++)
        from[k] = goes_on(e->policy, policy, k);
    move_rules(e, policy, from, rule);
    move_choices(e, policy, from);
    forget_values(e);
    free_rules(rule, e->n_units);
    return 0;
}

void engine_clear(struct policy_engine *e)
{
    for (size_t i = 0; i < e->n_units; i++)
        end_all(e, &e->unit[i], "policy gone");
    forget_values(e);
    free(e->unit);
    free(e->job);
    e->unit = NULL;
    e->job = NULL;
    e->n_units = e->cap_units = e->n_jobs = e->cap_jobs = e->n_boards = 0;
}
