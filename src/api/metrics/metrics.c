/* /metrics: families in the table's order, each with its known series. */
#include "api/metrics/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/metrics/metrics-inside.h"
#include "base/error.h"
#include "base/names.h"
#include "base/units.h"
#include "policy/engine.h"
#include "policy/limits.h"
#include "signal/facts.h"

static const struct {
    const char *name, *type, *help;
} family[] = {
#define X(id, name, type, help) {name, type, help},
    METRICS_TABLE(X)
#undef X
};

const char *metrics_family(size_t i, const char **ret_type, const char **ret_help)
{
    if (i >= n_elements(family))
        return NULL;
    *ret_type = family[i].type;
    *ret_help = family[i].help;
    return family[i].name;
}

int metrics_new(struct metrics **ret, uw_error *err)
{
    *ret = calloc(1, sizeof **ret);
    return *ret ? 0 : fail(err, -ENOMEM, "metrics: no memory");
}

void metrics_free(struct metrics *m)
{
    if (!m)
        return;
    text_free(&m->out);
    text_free(&m->label);
    free(m);
}

/* ---- series ---- */

static void metrics_head(struct metrics_render *r)
{
    struct text *t = &r->m->out;

    text_put(t, "# HELP ");
    text_put(t, family[r->id].name);
    text_add(t, " ", 1);
    text_put(t, family[r->id].help); /* constants of the table: no escaping needed */
    text_put(t, "\n# TYPE ");
    text_put(t, family[r->id].name);
    text_add(t, " ", 1);
    text_put(t, family[r->id].type);
    text_add(t, "\n", 1);
    r->headed = true;
}

void metrics_begin(struct metrics_render *r, enum metrics_id id)
{
    r->id = id;
    r->headed = false;
}

static void put_name(struct metrics_render *r, struct metrics_slice labels)
{
    struct text *t = &r->m->out;

    if (!r->headed)
        metrics_head(r);
    text_put(t, family[r->id].name);
    text_add(t, "{", 1);
    text_add(t, labels.at, labels.len);
}

void metrics_put(struct metrics_render *r, struct metrics_slice labels, const char *key,
                 const char *value)
{
    struct text *t = &r->m->out;

    put_name(r, labels);
    if (key) {
        if (labels.len > 0)
            text_add(t, ",", 1);
        text_put(t, key);
        text_put(t, "=\"");
        text_put_label(t, value);
        text_add(t, "\"", 1);
    }
    text_put(t, "} ");
}

static void put_value(struct metrics_render *r, double v, unsigned places)
{
    text_put_fixed(&r->m->out, v, places);
    text_add(&r->m->out, "\n", 1);
}

void metrics_series(struct metrics_render *r, struct metrics_slice labels,
                    const char *key, const char *value, double v)
{
    if (!isfinite(v))
        return;
    metrics_put(r, labels, key, value);
    put_value(r, v, 6);
}

void metrics_series_u64(struct metrics_render *r, struct metrics_slice labels,
                        const char *key, const char *value, uint64_t v)
{
    metrics_put(r, labels, key, value);
    text_put_u64(&r->m->out, v);
    text_add(&r->m->out, "\n", 1);
}

/* ---- label sets ---- */

void metrics_label(struct text *t, const char *key, const char *value)
{
    text_put(t, key);
    text_put(t, "=\"");
    text_put_label(t, value);
    text_add(t, "\"", 1);
}

void metrics_label_u64(struct text *t, const char *key, uint64_t value)
{
    text_put(t, key);
    text_put(t, "=\"");
    text_put_u64(t, value);
    text_add(t, "\"", 1);
}

struct metrics_slice metrics_labels(struct metrics_render *r, const char *key,
                                    const char *value)
{
    struct text *t = &r->m->label;

    text_clear(t);
    metrics_label(t, key, value);
    metrics_label(t, ",hostname", r->v->hostname);
    if (r->v->simulated)
        text_put(t, ",simulated=\"1\"");
    return t->failed ? (struct metrics_slice){"", 0}
                     : (struct metrics_slice){t->at, t->len};
}

/* The UUID without the letters of a prefix ("…-422ea740-…"). */
static const char *bare_uuid(const struct view_board *b)
{
    const char *uuid = b->info->uuid;
    size_t letters = strspn(uuid, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return letters > 0 && uuid[letters] == '-' ? uuid + letters + 1 : uuid;
}

/* The number of characters that distinguish the UUIDs of these boards: 8, or more if two
 * have the same first 8.
 */
static size_t short_length(const struct view_board *b, size_t n)
{
    size_t len = 8;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++) {
            const char *x = bare_uuid(&b[i]), *y = bare_uuid(&b[k]);
            while (strncmp(x, y, len) == 0 && strcmp(x, y) != 0)
                len++;
        }
    return len;
}

/* The labels of every series of a board. `gpu`, the index, may belong to another board
 * after a restart; `board` is a part of the UUID, so that a counter never continues as
 * another board's.
 */
static void board_labels(struct text *t, const struct view_board *b, size_t len,
                         const char *hostname)
{
    char part[sizeof b->info->uuid];

    (void)snprintf(part, sizeof part, "%.*s", (int)len, bare_uuid(b));
    metrics_label_u64(t, "gpu", b->info->index);
    metrics_label(t, ",board", part);
    metrics_label(t, ",hostname", hostname);
    if (b->info->simulated)
        text_put(t, ",simulated=\"1\"");
}

void metrics_info(struct metrics_render *r, const struct view_board *b,
                  struct metrics_slice l)
{
    struct text *t = &r->m->out;

    put_name(r, l);
    metrics_label(t, ",UUID", b->info->uuid);
    if (b->info->pci_bus_id[0])
        metrics_label(t, ",pci_bus_id", b->info->pci_bus_id);
    metrics_label(t, ",modelName", b->info->name);
    text_put(t, "} 1\n");
}

static bool sees(const struct metrics_opts *opts, const struct job_entry *job)
{
    if (opts->all)
        return true;
    return job->uid == opts->uid && (!opts->only_job || job->id == opts->only_job);
}

static void job_labels(const struct metrics_render *r, struct text *t,
                       const struct job_entry *job)
{
    metrics_label_u64(t, "job_id", job->id);
    if (job->user[0])
        metrics_label(t, ",user", job->user);
    else
        metrics_label_u64(t, ",user", job->uid);
    metrics_label(t, ",source", names_word(NAMES_JOB_SOURCE, job->source));
    if (sees(r->opts, job) && job->name[0])
        metrics_label(t, ",name", job->name);
    metrics_label(t, ",hostname", r->v->hostname);
    if (r->v->simulated)
        text_put(t, ",simulated=\"1\"");
}

static int put_labels(struct metrics_render *r)
{
    struct metrics *m = r->m;
    struct text *t = &m->label;

    size_t len = short_length(r->v->board, r->v->n_boards);

    text_clear(t);
    for (size_t i = 0; i < r->v->n_boards; i++) {
        m->board_at[i] = t->len;
        board_labels(t, &r->v->board[i], len, r->v->hostname);
    }
    m->board_at[r->v->n_boards] = t->len;
    for (size_t i = 0; i < r->jobs; i++) {
        m->job_at[i] = t->len;
        job_labels(r, t, r->v->job[i].job);
    }
    m->job_at[r->jobs] = t->len;
    metrics_label(t, "job_id", "other");
    metrics_label(t, ",hostname", r->v->hostname);
    if (r->v->simulated)
        text_put(t, ",simulated=\"1\"");
    m->job_at[r->jobs + 1] = t->len;
    return t->failed;
}

struct metrics_slice metrics_board(const struct metrics_render *r, size_t i)
{
    const struct metrics *m = r->m;
    return (struct metrics_slice){m->label.at + m->board_at[i],
                                  m->board_at[i + 1] - m->board_at[i]};
}

struct metrics_slice metrics_job(const struct metrics_render *r, size_t i)
{
    const struct metrics *m = r->m;
    return (struct metrics_slice){m->label.at + m->job_at[i],
                                  m->job_at[i + 1] - m->job_at[i]};
}

/* ---- the node ---- */

static void put_build(struct metrics_render *r)
{
    struct text *t = &r->m->out;

    metrics_begin(r, METRICS_BUILD_INFO);
    metrics_head(r);
    text_put(t, family[r->id].name);
    text_add(t, "{", 1);
    metrics_label(t, "version", r->v->version);
    metrics_label(t, ",hostname", r->v->hostname);
    text_put(t, r->v->simulated ? ",simulated=\"1\"} 1\n" : ",simulated=\"0\"} 1\n");
}

static void put_plain(struct metrics_render *r, enum metrics_id id, double v)
{
    static const struct metrics_slice none = {"", 0};

    metrics_begin(r, id);
    metrics_series(r, none, "hostname", r->v->hostname, v);
}

static void put_jobs(struct metrics_render *r)
{
    struct text *t = &r->m->out;

    metrics_begin(r, METRICS_JOBS);
    metrics_head(r);
    for (enum job_source k = JOB_RUN; k <= JOB_FOUND; k++) {
        uint64_t n = 0;
        for (size_t i = 0; i < r->v->n_jobs; i++)
            n += r->v->job[i].job->source == k && !r->v->job[i].job->ended_ns;
        text_put(t, family[r->id].name);
        text_add(t, "{", 1);
        metrics_label(t, "source", names_word(NAMES_JOB_SOURCE, k));
        metrics_label(t, ",hostname", r->v->hostname);
        text_put(t, "} ");
        text_put_u64(t, n);
        text_add(t, "\n", 1);
    }
}

static void put_firing(struct metrics_render *r)
{
    const struct view_policy *p = &r->v->policy;
    uint64_t acts[POLICY_RULES_MAX] = {0}; /* boards */
    struct engine_row row;

    for (size_t i = 0; p->engine && policy_engine_row(p->engine, i, &row); i++)
        if (row.state == RULE_ACTS)
            acts[row.rule - p->rule] |= UINT64_C(1) << row.board;
    metrics_begin(r, METRICS_RULE_FIRING);
    for (size_t i = 0; i < p->n_rules; i++)
        for (size_t b = 0; b < r->v->n_boards; b++)
            metrics_series_u64(r, metrics_board(r, b), "rule", p->rule[i].name,
                               acts[i] >> b & 1);
}

static void put_limit(struct metrics_render *r, const struct limits_view *l,
                      enum limit_kind kind, const char *word)
{
    for (size_t i = 0; i < l->n_boards && i < r->v->n_boards; i++) {
        const struct limits_row *row = &l->row[kind][i];
        metrics_series_u64(r, metrics_board(r, i), "limit", word,
                           row->cap_mw && row->state != LIMIT_BEHIND);
    }
}

static void put_limits(struct metrics_render *r)
{
    struct limits_view l;

    if (!r->v->policy.limits)
        return;
    limits_look(r->v->policy.limits, &l);
    metrics_begin(r, METRICS_LIMIT_ACTING);
    if (l.ask.temperature_c > 0)
        put_limit(r, &l, LIMIT_TEMPERATURE, "temperature");
    if (l.ask.rise_w_s > 0)
        put_limit(r, &l, LIMIT_RISE, "rise");
    metrics_begin(r, METRICS_LIMIT_MARGIN);
    for (size_t i = 0; i < l.n_boards && i < r->v->n_boards; i++)
        if (l.ask.temperature_c > 0 && l.row[LIMIT_TEMPERATURE][i].margin_known)
            metrics_series(r, metrics_board(r, i), NULL, NULL,
                           l.row[LIMIT_TEMPERATURE][i].margin_k);
    if (l.ask.rise_w_s > 0) {
        put_plain(r, METRICS_LIMIT_FIRST_STEP, l.first_w);
        put_plain(r, METRICS_LIMIT_FALL, l.fall_w);
    }
}

static void put_policy(struct metrics_render *r)
{
    const struct view_policy *p = &r->v->policy;

    put_plain(r, METRICS_POLICY_LOADS, (double)p->loads);
    put_plain(r, METRICS_POLICY_FAILURES, (double)p->failures);
    put_plain(r, METRICS_POLICY_EVALUATIONS, (double)p->evaluations);
    put_plain(r, METRICS_POLICY_REFUSED, (double)p->refused);
    put_firing(r);
    put_limits(r);
}

static void put_node(struct metrics_render *r)
{
    const struct node_view *v = r->v;
    const struct metrics_http *http = r->opts->http;

    put_build(r);
    double up = s_of_ns(v->now_ns - v->began_ns);
    put_plain(r, METRICS_START_TIME, (double)v->utc_ns * 1e-9 - up);
    put_plain(r, METRICS_DRY_RUN, v->dry_run);
    put_plain(r, METRICS_ACTUATOR_UP, !v->read_only);
    if (v->budget.budget_mw) {
        put_plain(r, METRICS_BUDGET, w_of_mw(v->budget.budget_mw));
        if (!v->budget.unknown)
            put_plain(r, METRICS_BUDGET_COUNTED, (double)v->budget.counted_mw / MW_PER_W);
    }
    put_plain(r, METRICS_CONFIG_LOADS, (double)v->config_loads);
    put_plain(r, METRICS_CONFIG_FAILURES, (double)v->config_failures);
    put_policy(r);
    put_plain(r, METRICS_LEDGER_UP, v->ledger_up);
    put_plain(r, METRICS_LEDGER_WAITING, (double)v->ledger_waiting);
    put_plain(r, METRICS_LEDGER_LOST, (double)v->ledger_lost);
    put_plain(r, METRICS_LEDGER_ROWS, (double)v->ledger_rows);
    put_plain(r, METRICS_LEDGER_FAILURES, (double)v->ledger_failures);
    if (http) {
        put_plain(r, METRICS_HTTP_REQUESTS, (double)http->requests);
        put_plain(r, METRICS_HTTP_REFUSED, (double)http->refused);
        put_plain(r, METRICS_HTTP_CONNECTIONS, http->connections);
        put_plain(r, METRICS_HTTP_FOLLOWERS, http->followers);
    }
    put_jobs(r);
}

/* ---- CPU and memory ---- */

static void cpu_series(struct metrics_render *r, size_t i, double v)
{
    struct text *t = &r->m->label;

    text_clear(t);
    metrics_label(t, "domain", r->v->rapl[i].name);
    metrics_label(t, ",hostname", r->v->hostname);
    if (!t->failed)
        metrics_series(r, (struct metrics_slice){t->at, t->len}, NULL, NULL, v);
}

static void put_cpu(struct metrics_render *r)
{
    const struct node_view *v = r->v;

    metrics_begin(r, METRICS_CPU_POWER);
    for (size_t i = 0; i < v->n_rapl; i++)
        if (v->rapl[i].power_w.known)
            cpu_series(r, i, v->rapl[i].power_w.v);
    metrics_begin(r, METRICS_CPU_ENERGY);
    for (size_t i = 0; i < v->n_rapl; i++)
        cpu_series(r, i, v->rapl[i].energy_j);
}

/* ---- changes of booked figures by later values ---- */

static void put_revised(struct metrics_render *r)
{
    static const char *const signal[LEDGER_CHARGES] = {"carbon", "carbon.marginal",
                                                       "price"};
    const struct ledger_revised *v = &r->v->ledger_revised;

    metrics_begin(r, METRICS_REVISIONS);
    for (int i = 0; i < LEDGER_CHARGES; i++)
        metrics_series_u64(r, metrics_labels(r, "signal", signal[i]), NULL, NULL,
                           v->rows[i]);
    if (v->rows[LEDGER_CO2])
        put_plain(r, METRICS_REVISED_CO2E, (double)v->amount[LEDGER_CO2] * 1e-3);
    if (v->rows[LEDGER_MARGINAL])
        put_plain(r, METRICS_REVISED_MARGINAL, (double)v->amount[LEDGER_MARGINAL] * 1e-3);
    metrics_begin(r, METRICS_REVISED_COST);
    if (v->rows[LEDGER_COST])
        metrics_series(r, metrics_labels(r, "currency", v->currency), NULL, NULL,
                       (double)v->amount[LEDGER_COST] * 1e-6);
}

/* ---- signals from outside ---- */

/* The labels `signal`, another one if key is given, and `hostname`. */
static struct metrics_slice signal_labels(struct metrics_render *r,
                                          const struct signal_view *s, const char *key,
                                          const char *value)
{
    struct text *t = &r->m->label;

    text_clear(t);
    metrics_label(t, "signal", s->decl->name);
    if (key)
        metrics_label(t, key, value);
    metrics_label(t, ",hostname", r->v->hostname);
    return t->failed ? (struct metrics_slice){"", 0}
                     : (struct metrics_slice){t->at, t->len};
}

static void signal_series(struct metrics_render *r, const struct signal_view *s,
                          const char *key, const char *value, double v)
{
    struct metrics_slice l = signal_labels(r, s, key, value);

    if (l.len > 0)
        metrics_series(r, l, NULL, NULL, v);
}

/* The signals of the site: declared ones, and those that have had a value. */
static void put_values(struct metrics_render *r)
{
    const struct node_view *v = r->v;

    metrics_begin(r, METRICS_SIGNAL_VALUE);
    for (size_t i = 0; i < v->n_signals; i++)
        if (v->signal[i].value && v->signal[i].value->type != POLICY_TEXT)
            signal_series(r, &v->signal[i], ",unit", v->signal[i].decl->unit,
                          v->signal[i].value->type == POLICY_NUMBER
                              ? v->signal[i].value->number
                              : v->signal[i].value->truth);
    metrics_begin(r, METRICS_SIGNAL_AGE);
    for (size_t i = 0; i < v->n_signals; i++)
        if (v->signal[i].used && v->signal[i].utc_ns)
            signal_series(r, &v->signal[i], NULL, NULL, v->signal[i].age_s);
    metrics_begin(r, METRICS_SIGNAL_KNOWN);
    for (size_t i = 0; i < v->n_signals; i++)
        if (v->signal[i].used)
            signal_series(r, &v->signal[i], NULL, NULL, v->signal[i].known);
    metrics_begin(r, METRICS_SIGNAL_ESTIMATED);
    for (size_t i = 0; i < v->n_signals; i++)
        if (v->signal[i].value)
            signal_series(r, &v->signal[i], NULL, NULL, v->signal[i].estimated);
    metrics_begin(r, METRICS_SIGNAL_INFO);
    for (size_t i = 0; i < v->n_signals; i++)
        if (v->signal[i].used && v->signal[i].source[0])
            signal_series(r, &v->signal[i], ",source", v->signal[i].source, 1);
}

/* ---- sources of underwatt-signals ---- */

/* A source may provide several signals: its series are written for the first one. */
static bool is_first(const struct node_view *v, size_t i)
{
    const struct signal_facts *f = v->signal[i].facts;

    if (!f || !f->asked.by[0])
        return false;
    for (size_t k = 0; k < i; k++)
        if (v->signal[k].facts && strcmp(v->signal[k].facts->asked.by, f->asked.by) == 0)
            return false;
    return true;
}

static double of_source(const struct signal_asked *a, enum metrics_id id)
{
    return id == METRICS_SOURCE_REQUESTS   ? (double)a->requests
           : id == METRICS_SOURCE_FAILURES ? (double)a->failures
                                           : (double)a->success_utc_s;
}

static void put_sources(struct metrics_render *r, enum metrics_id id)
{
    struct text *t = &r->m->label;

    metrics_begin(r, id);
    for (size_t i = 0; i < r->v->n_signals; i++) {
        const struct signal_facts *f = r->v->signal[i].facts;
        if (!is_first(r->v, i) ||
            (id == METRICS_SOURCE_SUCCESS && f->asked.success_utc_s == 0))
            continue;
        text_clear(t);
        metrics_label(t, "source", f->asked.by);
        metrics_label(t, ",hostname", r->v->hostname);
        if (!t->failed)
            metrics_series(r, (struct metrics_slice){t->at, t->len}, NULL, NULL,
                           of_source(&f->asked, id));
    }
}

/* ---- forecasts ---- */

static double of_forecast(const struct signal_judged *j, enum metrics_id id)
{
    switch (id) {
    case METRICS_FORECAST_ERROR:
        return j->score.forecast;
    case METRICS_FORECAST_PERSISTENCE:
        return j->score.last;
    case METRICS_FORECAST_YESTERDAY:
        return j->score.yesterday; /* NaN, unknown: no line */
    case METRICS_FORECAST_WORSE:
        return j->worse;
    default:
        return (double)j->score.n;
    }
}

static void put_forecasts(struct metrics_render *r, enum metrics_id id)
{
    metrics_begin(r, id);
    for (size_t i = 0; i < r->v->n_signals; i++) {
        const struct signal_facts *f = r->v->signal[i].facts;
        for (size_t h = 0; f && h < f->n_judged; h++) {
            const struct signal_judged *j = &f->judged[h];
            char horizon[24];
            (void)snprintf(horizon, sizeof horizon, "%.6gh", (double)j->horizon_s / 3600);
            if (j->score.n > 0)
                signal_series(r, &r->v->signal[i], ",horizon", horizon,
                              of_forecast(j, id));
        }
    }
}

static void put_signals(struct metrics_render *r)
{
    put_values(r);
    put_sources(r, METRICS_SOURCE_REQUESTS);
    put_sources(r, METRICS_SOURCE_FAILURES);
    put_sources(r, METRICS_SOURCE_SUCCESS);
    put_forecasts(r, METRICS_FORECAST_ERROR);
    put_forecasts(r, METRICS_FORECAST_PERSISTENCE);
    put_forecasts(r, METRICS_FORECAST_YESTERDAY);
    put_forecasts(r, METRICS_FORECAST_JUDGED);
    put_forecasts(r, METRICS_FORECAST_WORSE);
}

int metrics_render(struct metrics *m, const struct node_view *view,
                   const struct metrics_opts *opts, const char **ret, size_t *ret_len,
                   uw_error *err)
{
    struct metrics_render r = {.m = m, .v = view, .opts = opts};

    if (view->n_boards > METRICS_BOARDS)
        return fail(err, -E2BIG, "metrics: %zu boards, %d at most", view->n_boards,
                    METRICS_BOARDS);
    if (opts->per_job)
        r.jobs = view->n_jobs < opts->max_jobs ? view->n_jobs : opts->max_jobs;
    if (r.jobs > VIEW_JOBS_MAX)
        r.jobs = VIEW_JOBS_MAX;
    text_clear(&m->out);
    int x = put_labels(&r);
    if (x == 0) {
        put_node(&r);
        metrics_put_boards(&r);
        if (opts->per_job)
            metrics_put_jobs(&r);
        put_cpu(&r); /* last, with what follows: they overwrite the label buffer */
        if (opts->per_job)
            metrics_put_waste(&r);
        put_revised(&r);
        put_signals(&r);
        x = m->out.failed ? m->out.failed : m->label.failed;
    }
    if (x < 0)
        return fail(err, x, "metrics: no room for the text");
    *ret = m->out.at;
    *ret_len = m->out.len;
    return 0;
}
