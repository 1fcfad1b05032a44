#include "node/policy-facts.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "policy/catalogue.h"

struct asked {
    const struct node_view *v;
    const struct view_board *board;
    const struct view_job *job;
};
typedef void (*fact_fn)(const struct asked *a, struct policy_value *ret);

static void number(struct policy_value *ret, double v)
{
    ret->known = true;
    ret->number = v;
}

static void text(struct policy_value *ret, const char *v)
{
    ret->known = v[0] != '\0';
    ret->text = v;
}

/* ---- the node and its boards ---- */

static void node_power(const struct asked *a, struct policy_value *ret)
{
    double sum = 0;

    for (size_t i = 0; i < a->v->n_boards; i++) {
        if (!a->v->board[i].power_w.known)
            return;
        sum += a->v->board[i].power_w.v;
    }
    number(ret, sum);
}

static void node_headroom(const struct asked *a, struct policy_value *ret)
{
    const struct caps_budget_view *b = &a->v->budget;

    if (b->budget_mw && !b->unknown)
        number(ret, ((double)b->budget_mw - (double)b->counted_mw) / MW_PER_W);
}

static void board_power(const struct asked *a, struct policy_value *ret)
{
    if (a->board->power_w.known)
        number(ret, a->board->power_w.v);
}

/* Whether the board's last answer has this value and is not stale. */
static bool has(const struct asked *a, uint32_t what)
{
    const struct gpu_sample *last = &a->board->last;

    return last->has & what && a->v->now_ns - last->at_ns <= a->v->fresh_ns;
}

static void board_limit(const struct asked *a, struct policy_value *ret)
{
    if (has(a, GPU_HAS_ENFORCED))
        number(ret, w_of_mw(a->board->last.enforced_mw));
}

static void board_temperature(const struct asked *a, struct policy_value *ret)
{
    if (has(a, GPU_HAS_TEMP))
        number(ret, a->board->last.temp_c);
}

static void board_clock(const struct asked *a, struct policy_value *ret)
{
    if (has(a, GPU_HAS_CLOCKS))
        number(ret, a->board->last.sm_mhz * 1e6);
}

static void board_utilization(const struct asked *a, struct policy_value *ret)
{
    if (has(a, GPU_HAS_UTIL))
        number(ret, a->board->last.util_gpu / 100.0);
}

/* Whether heat lowers the board's clock. */
static void board_hot(const struct asked *a, struct policy_value *ret)
{
    ret->known = has(a, GPU_HAS_REASONS);
    ret->truth = ret->known && (a->board->last.reasons &
                                (GPU_REASON_SW_THERMAL | GPU_REASON_HW_THERMAL)) != 0;
}

/* ---- jobs ---- */

const struct view_job *policy_outer(const struct node_view *v, const struct view_job *job)
{
    for (size_t i = 0; job->job->within && i < v->n_jobs; i++)
        if (v->job[i].job->id == job->job->within)
            return &v->job[i];
    return NULL;
}

/* NULL: the job has no label of this key. */
static const char *label_of(const struct view_job *job, const char *key)
{
    for (size_t i = 0; job && i < job->job->n_labels; i++)
        if (strcmp(job->job->label[i].key, key) == 0)
            return job->job->label[i].value;
    return NULL;
}

/* The job whose label of this key counts for the job: the job itself, or the outer job.
 */
static const struct view_job *labelled(const struct node_view *v,
                                       const struct view_job *job, const char *key)
{
    const struct view_job *outer = policy_outer(v, job);

    return !label_of(outer, key) || (label_of(job, key) && !roster_scheduler_key(key))
               ? job
               : outer;
}

static const char *label(const struct asked *a, const char *key)
{
    const char *value = label_of(labelled(a->v, a->job, key), key);

    return value ? value : "";
}

static void job_phase(const struct asked *a, struct policy_value *ret)
{
    if (a->job->phase.by != PHASE_BY_NOBODY)
        text(ret, names_word(NAMES_JOB_PHASE, a->job->phase.phase));
}

static void job_confidence(const struct asked *a, struct policy_value *ret)
{
    if (a->job->phase.by == PHASE_BY_JOB)
        number(ret, 1);
    else if (a->job->phase.confidence.known)
        number(ret, a->job->phase.confidence.v);
}

static void job_kind(const struct asked *a, struct policy_value *ret)
{
    const char *kind = label(a, FACT_LABEL_KIND);

    text(ret, kind[0] ? kind : "unknown");
}

static void job_user(const struct asked *a, struct policy_value *ret)
{
    text(ret, a->job->job->user);
}

static void job_name(const struct asked *a, struct policy_value *ret)
{
    text(ret, a->job->job->name);
}

static void job_boards(const struct asked *a, struct policy_value *ret)
{
    number(ret, __builtin_popcountll(a->job->job->boards));
}

static void job_age(const struct asked *a, struct policy_value *ret)
{
    number(ret, a->job->time_s);
}

static void job_left(const struct asked *a, struct policy_value *ret)
{
    uint64_t limit_ns = 0;

    if (parse_duration(label(a, FACT_LABEL_LIMIT), &limit_ns, NULL) == 0)
        number(ret, s_of_ns(limit_ns) - labelled(a->v, a->job, FACT_LABEL_LIMIT)->time_s);
}

static void job_deadline(const struct asked *a, struct policy_value *ret)
{
    uint64_t utc_s = 0;

    if (parse_u64(label(a, FACT_LABEL_DEADLINE), &utc_s, NULL) == 0)
        number(ret, (double)utc_s - (double)a->v->utc_ns * 1e-9);
}

/* Whether the job has the board, and no inner job has taken it over. */
static bool is_on(const struct view_job *job, size_t board)
{
    return !job->job->ended_ns && (job->job->boards & ~job->job->passed) >> board & 1;
}

static bool is_alone(const struct asked *a, size_t board)
{
    size_t n = 0;

    for (size_t i = 0; i < a->v->n_jobs; i++)
        n += is_on(&a->v->job[i], board);
    return n == 1 && is_on(a->job, board);
}

/* The job's power, if no other job is on its boards. */
static void job_power(const struct asked *a, struct policy_value *ret)
{
    double sum = 0;

    if (!a->job->job->boards)
        return;
    for (size_t i = 0; i < a->v->n_boards; i++) {
        const struct view_board *b = &a->v->board[i];
        if (!(a->job->job->boards >> i & 1))
            continue;
        if (!b->power_w.known || !is_alone(a, i))
            return;
        sum += b->power_w.v;
    }
    number(ret, sum);
}

static void job_demand(const struct asked *a, struct policy_value *ret)
{
    const struct tuner_report *r = a->job->search.report;

    if (a->job->search.on && r && r->demand_w > 0)
        number(ret, r->demand_w);
}

static void job_energy(const struct asked *a, struct policy_value *ret)
{
    number(ret, a->job->energy_j);
}

static const fact_fn facts[CATALOGUE_BUILT_IN] = {
    [CATALOGUE_NODE_POWER] = node_power,
    [CATALOGUE_NODE_HEADROOM] = node_headroom,
    [CATALOGUE_BOARD_POWER] = board_power,
    [CATALOGUE_BOARD_LIMIT] = board_limit,
    [CATALOGUE_BOARD_TEMPERATURE] = board_temperature,
    [CATALOGUE_BOARD_CLOCK] = board_clock,
    [CATALOGUE_BOARD_UTILIZATION] = board_utilization,
    [CATALOGUE_BOARD_HOT] = board_hot,
    [CATALOGUE_JOB_PHASE] = job_phase,
    [CATALOGUE_JOB_CONFIDENCE] = job_confidence,
    [CATALOGUE_JOB_KIND] = job_kind,
    [CATALOGUE_JOB_USER] = job_user,
    [CATALOGUE_JOB_NAME] = job_name,
    [CATALOGUE_JOB_BOARDS] = job_boards,
    [CATALOGUE_JOB_AGE] = job_age,
    [CATALOGUE_JOB_LEFT] = job_left,
    [CATALOGUE_JOB_DEADLINE] = job_deadline,
    [CATALOGUE_JOB_POWER] = job_power,
    [CATALOGUE_JOB_DEMAND] = job_demand,
    [CATALOGUE_JOB_ENERGY] = job_energy,
};

void policy_fact(size_t signal, const struct node_view *v, const struct view_board *board,
                 const struct view_job *job, struct policy_value *ret)
{
    const struct asked a = {v, board, job};
    fact_fn fn = signal < CATALOGUE_BUILT_IN ? facts[signal] : NULL;

    if (fn)
        fn(&a, ret);
}

/* ---- matches ---- */

static void put(struct job_facts *ret, const char *key, const char *value)
{
    if (value[0])
        ret->fact[ret->all.n++] = (struct policy_fact){key, value};
}

/* Adds the labels of this job that count for `a`. */
static void put_labels(const struct asked *a, const struct view_job *of,
                       struct job_facts *ret)
{
    const struct job_entry *e = of->job;
    bool trusted = e->firm || e->source == JOB_REGISTERED;

    for (size_t i = 0; i < e->n_labels; i++) {
        const struct label *l = &e->label[i];
        if (labelled(a->v, a->job, l->key) != of)
            continue;
        char *key = ret->key[ret->n_keys++];
        (void)snprintf(key, sizeof ret->key[0], "label.%s", l->key);
        put(ret, key, l->value);
        if (trusted && roster_scheduler_key(l->key))
            put(ret, l->key, l->value);
    }
}

void policy_job_facts(const struct node_view *v, const struct view_job *job,
                      struct job_facts *ret)
{
    const struct asked a = {.v = v, .job = job};

    ret->all = (struct policy_facts){ret->fact, 0};
    ret->n_keys = 0;
    if (!job)
        return;
    const struct view_job *outer = policy_outer(v, job);
    put(ret, "user", job->job->user);
    put(ret, "name", job->job->name);
    put(ret, "kind", label(&a, FACT_LABEL_KIND));
    put_labels(&a, job, ret);
    if (outer)
        put_labels(&a, outer, ret);
}

/* ---- boards ---- */

static uint32_t lowest_claim(const struct claims *claims)
{
    uint32_t mw = 0;

    for (size_t i = 0; claims && i < claims->n; i++) {
        const struct claim *c = &claims->claim[i];
        bool counts = c->mw && c->kind != CLAIM_SOFT && c->source != CLAIM_OF_RULE &&
                      c->source != CLAIM_OF_LIMIT; /* these move on their own */
        if (counts && (!mw || c->mw < mw))
            mw = c->mw;
    }
    return mw;
}

static uint32_t lowest_limit(const struct caps_view *cap)
{
    return cap->limits.min_mw > cap->range.min_mw ? cap->limits.min_mw
                                                  : cap->range.min_mw;
}

/* Whether the search has a tuner: otherwise the report is that of its last hold. */
static bool has_tuner(enum search_status status)
{
    return (status >= SEARCH_WAITS_PROGRESS && status <= SEARCH_IS_PAUSED) ||
           status == SEARCH_IS_RULED;
}

static void take_search(const struct searches_view *s, struct policy_board *ret,
                        bool *ret_measures)
{
    const struct tuner_report *r = s->report;

    if (!s->on || !r)
        return;
    ret->demand_mw = mw_of_w(r->demand_w);
    ret->peak_mw = mw_of_w(r->peak_w);
    if (r->holding && has_tuner(s->status))
        ret->hold_mw = r->held_mw;
    else
        *ret_measures = s->status == SEARCH_WALKS || s->status == SEARCH_MEASURES;
}

/* The lowest cap under which the phases of the board's job ran; of several jobs, the
 * highest such cap.  0: some job's phase ran under none.
 */
static uint32_t ran_under(const struct node_view *v, size_t board)
{
    uint32_t mw = 0;

    for (size_t i = 0; i < v->n_jobs; i++) {
        const struct view_job *job = &v->job[i];
        if (!is_on(job, board))
            continue;
        uint32_t ran_mw = job->phases.book ? phase_book_ran(job->phases.book, board) : 0;
        if (!ran_mw)
            return 0;
        mw = ran_mw > mw ? ran_mw : mw;
    }
    return mw;
}

void policy_board_of(const struct node_view *v, size_t board, struct policy_board *ret,
                     bool *ret_measures)
{
    const struct caps_view *cap = &v->board[board].cap;

    *ret = (struct policy_board){.original_mw = cap->bounds.original_mw,
                                 .default_mw = cap->limits.default_mw,
                                 .max_mw = cap->limits.max_mw,
                                 .min_mw = lowest_limit(cap),
                                 .lowest_mw = lowest_claim(cap->claims),
                                 .ran_mw = ran_under(v, board),
                                 .class_rate = cap->cls.rate};
    *ret_measures = false;
    for (size_t i = 0; i < v->n_jobs; i++) {
        const struct view_job *job = &v->job[i];
        if (job->job->boards >> board & 1 && !job->job->ended_ns)
            take_search(&job->search, ret, ret_measures);
    }
}

/* ---- limits ---- */

/* An older temperature counts as unknown: boards without a job are read at least every
 * 10 s.
 */
#define TEMP_AGE_NS (15 * NS_PER_S)

void policy_limits_board(const struct view_board *b, uint64_t now_ns,
                         struct limits_board *ret)
{
    const struct caps_view *cap = &b->cap;
    uint64_t age_ns = now_ns > b->last.at_ns ? now_ns - b->last.at_ns : 0;
    bool tells = b->last.has & GPU_HAS_REASONS;

    *ret = (struct limits_board){
        .can_cap = cap->can_cap && cap->state != CAPS_RELEASED,
        .temp_known = (b->last.has & GPU_HAS_TEMP) && age_ns <= TEMP_AGE_NS,
        .power_known = b->power_w.known,
        .has_job = b->n_jobs > 0,
        .temp_c = b->last.temp_c,
        .power_w = b->power_w.known ? b->power_w.v : 0,
        .slowed = tells && (b->last.reasons & GPU_REASON_SW_POWER_CAP),
        .tells = tells,
        .in_force_mw = cap->enforced_mw ? cap->enforced_mw : cap->bounds.original_mw,
        .min_mw = lowest_limit(cap),
        .default_mw = cap->limits.default_mw,
        .bounds = cap->bounds,
        .claims = cap->claims};
}
