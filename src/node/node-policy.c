#include "node/node-policy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/names.h"
#include "core/carbon/accounting.h"
#include "io/file.h"
#include "node/ledger-writer.h"
#include "node/policy-facts.h"
#include "node/policy-trial.h"
#include "policy/catalogue.h"
#include "policy/file.h"
#include "policy/rule-claims.h"

/* The view of the node for the engine. */
struct seen {
    const struct node_view *view; /* valid during the evaluation */
    struct policy_board board[BOARDS_MAX];
    uint32_t hold_mw[BOARDS_MAX]; /* cap at which the search of its job settled last */
    struct engine_job job[VIEW_JOBS_MAX];
    struct job_facts facts[VIEW_JOBS_MAX];
};

struct node_policy {
    struct node_policy_opts o;
    struct policy_file *file;     /* NULL: no policy */
    struct policy_engine *engine; /* NULL: there was no policy yet */
    struct seen *seen;            /* made with the engine */
    struct caps *caps;            /* NULL: the boards are not open */
    size_t n_boards;
    struct rule_claims *claims; /* NULL: no engine, or no boards */
    struct limits *limits;      /* NULL: there was none yet */
    bool rests;
    char error[200]; /* why the last file was refused; "" */
    uint64_t loads, failures;
    uint64_t refused; /* refused claims, while other boards were open */
};

void node_rule_text(const struct node_rule_event *event, char ret[NODE_RULE_TEXT])
{
    const struct engine_event *e = event->rule;
    char job[32] = "";

    if (e->job)
        (void)snprintf(job, sizeof job, " for job %" PRIu64, e->job);
    (void)snprintf(ret, NODE_RULE_TEXT, "rule %s %s%s%s%s%s", e->rule->name,
                   e->begins ? "takes effect" : "is no longer in effect", job,
                   e->begins ? "" : ": ", e->how, event->dry_run ? " (dry run)" : "");
}

/* ---- the view for the engine ---- */

/* While a search measures again, relative caps refer to its last hold. */
static void look_at_board(struct seen *seen, size_t i)
{
    struct policy_board *b = &seen->board[i];
    bool measures = false;

    policy_board_of(seen->view, i, b, &measures);
    if (measures)
        b->hold_mw = seen->hold_mw[i];
    seen->hold_mw[i] = b->hold_mw;
}

static void look_at_job(const struct node_policy *p, size_t i, const struct view_job *job)
{
    struct engine_job *j = &p->seen->job[i];
    const struct view_job *outer = policy_outer(p->seen->view, job);

    policy_job_facts(p->seen->view, job, &p->seen->facts[i]);
    *j = (struct engine_job){
        .id = job->job->id,
        .boards = job->job->boards,
        .facts = p->seen->facts[i].all,
        .edition = job->job->edition + (outer ? outer->job->edition + 1 : 0),
        .phase = {.told = job->phase.by == PHASE_BY_JOB,
                  .confidence = job->phase.confidence.v,
                  .break_even_s = job->phases.break_even_s,
                  .costly = job->phases.costly,
                  .lost = job->phases.lost,
                  .worst_s = job->phases.worst_s,
                  .no_gain = job->phases.no_gain,
                  .saved = {job->phases.compared.known, job->phases.compared.saved},
                  .static_w = job->phases.compared.static_w}};
    if (job->phases.book)
        j->phase.length_s = phase_book_length(job->phases.book);
    p->o.asked(j->id, &j->has_goal, &j->has_cap, p->o.user);
}

static void on_look(struct engine_world *ret, void *user)
{
    const struct node_policy *p = user;
    const struct node_view *v = p->o.look(p->o.user);
    struct seen *seen = p->seen;
    size_t n = 0;

    seen->view = v;
    for (size_t i = 0; i < v->n_boards && i < BOARDS_MAX; i++)
        look_at_board(seen, i);
    for (size_t i = 0; i < v->n_jobs && n < VIEW_JOBS_MAX; i++)
        if (!v->job[i].job->ended_ns)
            look_at_job(p, n++, &v->job[i]);
    *ret = (struct engine_world){
        .board = seen->board, .n_boards = v->n_boards, .job = seen->job, .n_jobs = n};
}

static const struct view_job *find_job(const struct node_view *v, uint64_t id)
{
    for (size_t i = 0; i < v->n_jobs; i++)
        if (v->job[i].job->id == id)
            return &v->job[i];
    return NULL;
}

static void on_value(const struct policy_signal *signal, const struct policy_read *read,
                     const struct engine_of *of, struct policy_value *ret, void *user)
{
    const struct node_policy *p = user;
    const struct node_view *v = p->seen->view;
    const struct view_board *board =
        signal->scope == POLICY_OF_BOARD ? &v->board[of->board] : NULL;
    const struct view_job *job =
        signal->scope == POLICY_OF_JOB ? find_job(v, of->job) : NULL;

    if (read->signal < CATALOGUE_FACTS || read->signal >= CATALOGUE_BUILT_IN) {
        if (p->o.outside)
            p->o.outside(signal, read, ret, p->o.user);
    } else if (read->signal == CATALOGUE_JOB_CLASS) {
        ret->known = true;
        ret->text = of->cls ? of->cls->name : POLICY_CLASS_OTHER;
    } else if (read->signal == CATALOGUE_JOB_CRITICAL) {
        ret->known = true;
        ret->truth = of->cls && of->cls->critical;
    } else if (signal->scope != POLICY_OF_JOB || job) {
        policy_fact(read->signal, v, board, job, ret);
    }
}

static void on_zone(size_t rule, int64_t utc_s, struct policy_zone *ret, void *user)
{
    const struct node_policy *p = user;

    policy_file_zone(p->file, rule, utc_s, ret);
}

/* ---- consequences ---- */

static void on_claim(size_t board, bool hard, const struct engine_claim *claim,
                     void *user)
{
    struct node_policy *p = user;

    if (p->claims)
        rule_claims_state(p->claims, board, hard, claim);
}

static void on_goal(uint64_t job, const struct goal *goal, const char *by, void *user)
{
    struct node_policy *p = user;

    p->o.goal(job, goal, by, p->o.user);
}

static size_t on_limits_look(struct limits_board *ret, void *user)
{
    const struct node_policy *p = user;
    const struct node_view *v = p->o.look(p->o.user);
    size_t n = v->n_boards < LIMITS_BOARDS_MAX ? v->n_boards : LIMITS_BOARDS_MAX;

    for (size_t i = 0; i < n; i++)
        policy_limits_board(&v->board[i], v->now_ns, &ret[i]);
    return n;
}

static void on_limit(const struct limits_event *event, void *user)
{
    const struct node_policy *p = user;
    const struct node_view *v = p->o.look(p->o.user);
    bool bad = event->state == LIMIT_SHORT || event->state == LIMIT_UNKNOWN;

    if (event->board >= v->n_boards)
        return;
    log_event(bad ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE, LOG_EVENT_LIMIT,
              "gpu=%u state=%s text=%s", v->board[event->board].info->index,
              names_word(NAMES_LIMIT_STATE, event->state), log_quote(event->text).text);
    ledger_writer_event(p->o.writer, LEDGER_EVENT_LIMIT, event->board, (uid_t)-1,
                        event->text);
    p->o.limit(event, p->o.user);
}

static void on_event(const struct engine_event *event, void *user)
{
    struct node_policy *p = user;
    const struct node_rule_event told = {event, event->rule->dry_run};

    p->o.rule(&told, p->o.user);
}

static void on_phases(uint64_t job, bool ruled, void *user)
{
    struct node_policy *p = user;

    p->o.phases(job, ruled, p->o.user);
}

/* ---- the file ---- */

struct first {
    uw_error *err;
    bool told;
    bool tries; /* the file will not take effect: nothing is logged */
};

static void on_finding(bool error, const char *text, void *user)
{
    struct first *f = user;

    if (!error && !f->tries)
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_POLICY, "text=%s", log_quote(text).text);
    if (!error || f->told)
        return;
    f->told = true;
    (void)fail(f->err, -EINVAL, "%s", text);
}

static int read_text(const char *path, const char *text, size_t len, bool tries,
                     struct policy_file **ret, uw_error *err)
{
    auto_(policy_file_free) struct policy_file *file = NULL;
    struct first first = {.err = err, .tries = tries};
    int r = policy_file_read(path, text, len, false, &file, err);

    if (r < 0)
        return r;
    if (policy_file_check(file, on_finding, &first) > 0)
        return -EINVAL;
    *ret = take(file);
    return 0;
}

int node_policy_read(struct node_policy *p, const char *path, struct policy_file **ret,
                     uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    size_t len = 0;

    *ret = NULL;
    if (!path[0])
        return 0;
    int r =
        file_read_regular(path, POLICY_FILE_MAX, NODE_POLICY_READ_MS, &text, &len, err);
    if (r == -ENOENT && !p->file)
        return 0;
    if (r == -ENOENT)
        r = fail(err, -EINVAL,
                 "%s: the file is missing, and the policy stays in force; to end it, use "
                 "a file with `policy: 1` only, or an empty policy.file",
                 path);
    if (r == 0)
        r = read_text(path, text, len, false, ret, err);
    return r < 0 ? node_policy_refused(p, NULL, r, err) : 0;
}

int node_policy_refused(struct node_policy *p, struct policy_file *file, int r,
                        const uw_error *err)
{
    policy_file_free(file);
    p->failures++;
    (void)snprintf(p->error, sizeof p->error, "%s", err->text);
    return r;
}

/* ---- the first policy ---- */

static int make_seen(struct node_policy *p, uw_error *err)
{
    if (!p->seen)
        p->seen = calloc(1, sizeof *p->seen);
    return p->seen ? 0 : fail(err, -ENOMEM, "out of memory");
}

static int make_engine(struct node_policy *p, uw_error *err)
{
    const struct engine_opts opts = {.loop = p->o.loop,
                                     .look = on_look,
                                     .value = on_value,
                                     .zone = on_zone,
                                     .claim = on_claim,
                                     .goal = on_goal,
                                     .event = on_event,
                                     .phases = on_phases,
                                     .user = p};

    int r = make_seen(p, err);
    if (r == 0)
        r = policy_engine_new(&opts, &p->engine, err);
    if (r == 0)
        policy_engine_rest(p->engine, p->rests);
    return r;
}

/* Makes the parts that a node without a policy does not have. */
static int make_parts(struct node_policy *p, uw_error *err)
{
    int r = p->engine ? 0 : make_engine(p, err);

    if (r == 0 && p->caps && !p->claims)
        r = rule_claims_new(p->o.loop, p->caps, CLAIM_OF_RULE, p->n_boards, &p->claims,
                            err);
    return r;
}

/* Makes the parts that a policy without limits does not have. */
static int make_limits(struct node_policy *p, uw_error *err)
{
    const struct limits_opts opts = {
        .loop = p->o.loop, .look = on_limits_look, .event = on_limit, .user = p};
    int r = p->limits ? 0 : limits_new(&opts, &p->limits, err);

    if (r == 0)
        limits_rest(p->limits, p->rests);
    return r == 0 && p->caps ? limits_open(p->limits, p->caps, p->n_boards, err) : r;
}

int node_policy_use(struct node_policy *p, struct policy_file *file, uw_error *err)
{
    static const struct policy_limits none;
    struct policy_file *old = p->file;
    int r = file ? make_parts(p, err) : 0;

    if (r == 0 && file && policy_has_limits(&file->limits))
        r = make_limits(p, err);
    if (r == 0 && p->engine)
        r = policy_engine_use(p->engine, file ? &file->policy : NULL,
                              file ? file->every_ns : 0, err);
    if (r < 0)
        return node_policy_refused(p, file, r, err);
    p->loads += file != NULL;
    p->error[0] = '\0';
    p->file = file;
    if (p->limits)
        limits_use(p->limits, file ? &file->limits : &none);
    policy_file_free(old);
    return 0;
}

bool node_policy_in_force(const struct node_policy *p)
{
    return p->engine && p->file;
}

void node_policy_book(struct node_policy *p, bool was, const char *path)
{
    bool is = node_policy_in_force(p);

    if (!was && !is)
        return;
    log_event(LOG_LEVEL_NOTICE, LOG_EVENT_POLICY, "file=%s rules=%zu",
              log_quote(path).text, is ? p->file->policy.n_rules : 0);
    ledger_writer_event(p->o.writer, LEDGER_EVENT_POLICY, SIZE_MAX, (uid_t)-1,
                        is ? "loaded" : "removed");
}

int node_policy_try(struct node_policy *p, const char *text, size_t len,
                    struct policy_trial **ret, uw_error *err)
{
    const struct policy_trial_opts opts = {
        .loop = p->o.loop, .look = on_look, .value = on_value, .user = p};
    struct policy_file *file = NULL;
    int r = make_seen(p, err);

    if (r == 0)
        r = read_text("policy", text, len, true, &file, err);
    return r < 0 ? r : policy_trial_new(&opts, file, ret, err);
}

const struct policy_preset *node_policy_presets(const struct node_policy *p,
                                                size_t *ret_n)
{
    const struct policy *policy = p && p->file ? &p->file->policy : NULL;

    *ret_n = policy ? policy->n_presets : POLICY_PRESETS_BUILT_IN;
    return policy ? policy->preset : policy_presets;
}

const char *node_policy_class_at(const struct node_policy *p, size_t i)
{
    const struct policy *policy = p && p->file ? &p->file->policy : NULL;

    return policy && i < policy->n_classes ? policy->cls[i].name : NULL;
}

int node_policy_preset(const struct node_policy *p, const char *name, struct cap_arg *ret,
                       uw_error *err)
{
    struct policy_preset found = {NULL, 0};
    size_t n = 0;
    const struct policy_preset *presets = node_policy_presets(p, &n);
    int r = policy_preset_find(presets, n, name, &found, err);

    if (r < 0)
        return fail_in(err, r, "'preset'");
    *ret = (struct cap_arg){.percent = found.share * 100};
    return 0;
}

double node_policy_pue(const struct node_policy *p)
{
    static const struct policy_read now = {.fold = POLICY_NOW};
    const struct policy_facility *f = p && p->file ? &p->file->facility : NULL;
    struct policy_value v = {.known = false};

    if (!f || !f->pue_signal)
        return f ? f->pue : 0;
    if (p->o.outside)
        p->o.outside(f->pue_signal, &now, &v, p->o.user);
    return v.known && accounting_is_pue(v.number) ? v.number : 0;
}

/* ---- life ---- */

static void rest(struct node_policy *p, bool rests)
{
    p->rests = rests;
    if (p->engine)
        policy_engine_rest(p->engine, rests);
    if (p->limits)
        limits_rest(p->limits, rests);
}

int node_policy_open(struct node_policy *p, struct caps *caps, size_t n_boards,
                     uw_error *err)
{
    p->caps = caps;
    p->n_boards = n_boards;
    int r = p->engine ? make_parts(p, err) : 0;
    if (r == 0 && p->limits)
        r = limits_open(p->limits, caps, n_boards, err);
    if (r < 0)
        return r;
    rest(p, false);
    if (p->engine)
        policy_engine_step(p->engine);
    return 0;
}

void node_policy_rest(struct node_policy *p)
{
    rest(p, true);
}

void node_policy_close(struct node_policy *p)
{
    rest(p, true);
    if (p->claims)
        p->refused += rule_claims_refused(p->claims);
    rule_claims_free(take(p->claims));
    if (p->limits)
        limits_close(p->limits);
    p->caps = NULL;
}

void node_policy_changed(struct node_policy *p)
{
    if (p->engine)
        policy_engine_changed(p->engine);
}

void node_policy_hurry(struct node_policy *p, uint64_t job)
{
    if (p->engine)
        policy_engine_hurry(p->engine, job);
}

bool node_policy_is_hot(const struct node_policy *p)
{
    return p->file && p->file->limits.temperature_c > 0;
}

void node_policy_look(const struct node_policy *p, struct view_policy *ret)
{
    struct engine_counts counts = {0};

    *ret = (struct view_policy){.engine = NULL};
    ret->preset = node_policy_presets(p, &ret->n_presets);
    if (!p)
        return;
    if (p->engine)
        policy_engine_counts(p->engine, &counts);
    *ret = (struct view_policy){
        .engine = p->file ? p->engine : NULL,
        .n_rules = p->file ? p->file->policy.n_rules : 0,
        .rule = p->file ? p->file->policy.rule : NULL,
        .preset = ret->preset,
        .n_presets = ret->n_presets,
        .cls = p->file ? p->file->policy.cls : NULL,
        .n_classes = p->file ? p->file->policy.n_classes : 0,
        .error = p->error,
        .loads = p->loads,
        .failures = p->failures,
        .evaluations = counts.evaluations,
        .left_out = counts.left_out,
        .limits = p->file ? p->limits : NULL,
        .refused = p->refused + (p->claims ? rule_claims_refused(p->claims) : 0) +
                   (p->limits ? limits_refused(p->limits) : 0)};
}

int node_policy_new(const struct node_policy_opts *opts, struct node_policy **ret,
                    uw_error *err)
{
    struct node_policy *p = calloc(1, sizeof *p);

    if (!p)
        return fail(err, -ENOMEM, "out of memory");
    p->o = *opts;
    p->rests = true;
    *ret = p;
    return 0;
}

void node_policy_free(struct node_policy *p)
{
    if (!p)
        return;
    node_policy_close(p);
    limits_free(p->limits);
    policy_engine_free(p->engine);
    policy_file_free(p->file);
    free(p->seen);
    free(p);
}
