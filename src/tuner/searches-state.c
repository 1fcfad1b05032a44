#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/json.h"
#include "tuner/searches-inside.h"

enum {
    VERSION = 1,
    SUM_VALUES = 4,
    MEAN_VALUES = 5,
    PAIR_VALUES = 6,
    NEXT_VALUES = 5, /* to the pairs' windows of the hold */
    WINDOW_VALUES = 5,
    LAG_VALUES = 4,
    PAST_VALUES = 9,
    OLDER_VALUES = 4,
    COST_VALUES = 3
};

static const char *const stretch_names[STRETCH_KINDS] = {
    [STRETCH_REFERENCE] = "reference_steps", [STRETCH_SEARCH] = "search_steps",
    [STRETCH_HOLD] = "hold_steps",           [STRETCH_REFERENCE_CHECK] = "visit_steps",
    [STRETCH_AWAY] = "away_steps",
};

void searches_memory_take(struct searches_memory *m, const struct tuner_report *report)
{
    m->known = (struct tuner_known){
        .regime = m->regime,
        .n_regimes = report->n_regimes,
        .cap = m->cap,
        .n_caps = report->n_caps,
        .reference_mw = report->reference_mw,
        .demand_w = report->demand_w,
        .peak_w = report->peak_w,
        .windows = report->windows,
        .changes = report->changes,
        .stalls = report->stalls,
        .visits = report->visits,
        .looks = report->looks,
        .by_period = report->by == TUNER_BY_PERIOD,
    };
    memcpy(m->regime, report->account, report->n_regimes * sizeof *m->regime);
    memcpy(m->cap, report->cap, report->n_caps * sizeof *m->cap);
    if (report->holding || report->started) /* else what was held before is known still */
        m->held_mw = report->holding ? report->held_mw : 0;
    if (report->by == TUNER_BY_LAUNCHES) { /* their units are this tuner's alone */
        m->held_mw = 0;
        m->known.n_caps = 0;
    }
}

/* ---- writing ---- */

static void put_values(struct json_out *o, const char *key, const double *v, size_t n)
{
    json_out_object(o, key);
    for (size_t i = 0; i < n; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "%zu", i);
        json_out_double(o, name, v[i]);
    }
    json_out_end(o);
}

static void put_mean(struct json_out *o, const char *key, const struct savings_mean *m)
{
    const double v[MEAN_VALUES] = {m->sum_w, m->sum_wt, m->sum_we, m->sum_wt2,
                                   m->sum_we2};

    json_out_object(o, key);
    json_out_int(o, "windows", m->windows);
    put_values(o, "sums", v, MEAN_VALUES);
    json_out_end(o);
}

static void put_past(struct json_out *o, const struct savings_past *p)
{
    const double past[PAST_VALUES] = {
        p->steps,   p->time_s,  p->energy_j,       p->half2_j2,       p->mean_steps,
        p->would_s, p->would_j, p->would_half2_s2, p->would_half2_j2,
    };

    put_values(o, "past", past, PAST_VALUES);
}

static void put_window(struct json_out *o, const char *key, const struct pair_window *w)
{
    const double v[WINDOW_VALUES] = {w->at_s, w->log_t, w->log_e, w->var_t, w->var_e};

    put_values(o, key, v, WINDOW_VALUES);
}

/* What the pairs' own sums do not say: the hold beside them, the reference of before it,
 * how far the job wanders.
 */
static void put_link(struct json_out *o, const struct counterfactual *c)
{
    const double next[NEXT_VALUES] = {c->t.wh, c->e.wh, c->lag_s, c->hold_t, c->hold_e};

    json_out_int(o, "holds", c->holds);
    put_values(o, "hold_sums", next, NEXT_VALUES);
    json_out_int(o, "link_windows", c->link.windows);
    if (c->link.windows > 0) {
        put_window(o, "link_reference", &c->link.reference);
        put_window(o, "link_hold", &c->link.hold);
    }
    json_out_array(o, "wander");
    for (unsigned i = 0; i < WANDER_LAGS; i++) {
        const struct wander_lag *l = &c->wander.lag[i];
        const double v[LAG_VALUES] = {l->t, l->e, l->claimed_t, l->claimed_e};
        json_out_object(o, NULL);
        json_out_int(o, "n", l->n);
        if (l->n > 0)
            put_values(o, "sums", v, LAG_VALUES);
        json_out_end(o);
    }
    json_out_end(o);
}

/* Reference windows out of holds, and holds that are over. */
static void put_pairs(struct json_out *o, const struct savings *a)
{
    const struct counterfactual *c = &a->pairs;
    const double sums[PAIR_VALUES] = {c->t.w, c->t.wd, c->t.wdd,
                                      c->e.w, c->e.wd, c->e.wdd};

    json_out_int(o, "pairs", c->pairs);
    put_values(o, "pair_sums", sums, PAIR_VALUES);
    put_link(o, c);
    json_out_int(o, "past_pairs", a->past_pairs);
    put_past(o, &a->past);
}

/* Regimes of before that were merged into this one. */
static void put_older(struct json_out *o, const struct savings_totals *t)
{
    const double sums[OLDER_VALUES] = {t->booked_s, t->search_s, t->search_steps,
                                       t->visits_s};
    const double costs[COST_VALUES] = {t->cost_j, t->cost_s, t->visits_cost_j};

    if (t->regimes == 0)
        return;
    json_out_object(o, "older");
    json_out_int(o, "regimes", t->regimes);
    json_out_int(o, "compared", t->compared);
    json_out_int(o, "held", t->held);
    json_out_int(o, "pairs", t->pairs);
    put_values(o, "sums", sums, OLDER_VALUES);
    put_values(o, "costs", costs, COST_VALUES);
    put_past(o, &t->past);
    json_out_end(o);
}

static void put_regime(struct json_out *o, const struct savings *a)
{
    json_out_object(o, NULL);
    for (size_t k = 0; k < STRETCH_KINDS; k++) {
        const double v[SUM_VALUES] = {a->sum[k].steps, a->sum[k].time_s,
                                      a->sum[k].energy_j, a->sum[k].half2_j2};
        put_values(o, stretch_names[k], v, SUM_VALUES);
    }
    put_mean(o, "reference", &a->reference);
    put_mean(o, "hold", &a->hold);
    put_pairs(o, a);
    put_older(o, &a->older);
    json_out_end(o);
}

static void put_ask(struct json_out *o, const struct searches_ask *ask)
{
    char goal[GOAL_TEXT_MAX];

    if (ask->search)
        json_out_text(o, "goal", goal_text(&ask->goal, goal));
    json_out_int(o, "cap_mw", ask->cap.mw);
    json_out_double(o, "cap_percent", ask->cap.percent);
    if (ask->cls) {
        const double v[3] = {ask->cls->first, ask->cls->floor, ask->cls->rate};
        put_values(o, "class", v, 3);
    }
}

static int one_line(const struct json_out *o, char **ret, uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    if (!file)
        return fail(err, -ENOMEM, "out of memory");
    int r = json_out_line(o, file, err);
    if (fclose(file) != 0 && r >= 0)
        r = fail(err, -ENOMEM, "out of memory");
    if (r < 0)
        return r;
    if (size > 0 && text[size - 1] == '\n')
        text[size - 1] = '\0';
    *ret = take(text);
    return 0;
}

int searches_state_write(const struct searches_ask *ask, const struct searches_memory *m,
                         char **ret, uw_error *err)
{
    auto_(json_out_free) struct json_out *o = json_out_new();

    json_out_object(o, NULL);
    json_out_int(o, "underwatt_tuning", VERSION);
    put_ask(o, ask);
    json_out_int(o, "held_mw", m->held_mw);
    json_out_int(o, "reference_mw", m->known.reference_mw);
    json_out_double(o, "demand_w", m->known.demand_w);
    json_out_double(o, "peak_w", m->known.peak_w);
    json_out_int(o, "windows", m->known.windows);
    json_out_int(o, "changes", m->known.changes);
    json_out_int(o, "stalls", m->known.stalls);
    json_out_int(o, "visits", m->known.visits.n);
    json_out_double(o, "visits_s", m->known.visits.spent_s);
    json_out_double(o, "visit_s", m->known.visits.last_s);
    json_out_int(o, "looks", m->known.looks.n);
    json_out_double(o, "look_s", m->known.looks.last_s);
    json_out_bool(o, "by_period", m->known.by_period);
    json_out_array(o, "boards");
    for (size_t i = 0; i < m->n_uuids; i++)
        json_out_text(o, NULL, m->uuid[i]);
    json_out_end(o);
    json_out_array(o, "regimes");
    for (size_t i = 0; i < m->known.n_regimes; i++)
        put_regime(o, &m->regime[i]);
    json_out_end(o);
    json_out_array(o, "caps");
    for (size_t i = 0; i < m->known.n_caps; i++) {
        json_out_object(o, NULL);
        json_out_int(o, "cap_mw", m->cap[i].cap_mw);
        put_mean(o, "mean", &m->cap[i].mean);
        json_out_end(o);
    }
    json_out_end(o);
    json_out_end(o);
    return one_line(o, ret, err);
}

/* ---- reading ---- */

static int get_signed_values(const struct json_value *v, const char *key, double *ret,
                             size_t n, uw_error *err)
{
    const struct json_value *o = json_get(v, key);
    int r = 0;

    for (size_t i = 0; i < n && r >= 0; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "%zu", i);
        r = json_get_double(o, name, &ret[i], err);
        if (r >= 0 && !isfinite(ret[i]))
            r = fail(err, -ERANGE, "%g is no sum", ret[i]);
        if (r < 0)
            r = fail_in(err, r, "%s", key);
    }
    return r;
}

static int get_values(const struct json_value *v, const char *key, double *ret, size_t n,
                      uw_error *err)
{
    int r = get_signed_values(v, key, ret, n, err);

    for (size_t i = 0; i < n && r >= 0; i++)
        if (ret[i] < 0)
            r = fail(err, -ERANGE, "%s: %g is no sum", key, ret[i]);
    return r;
}

static int get_unsigned(const struct json_value *v, const char *key, uint32_t *ret,
                        uw_error *err)
{
    uint64_t n;

    int r = json_get_u64(v, key, &n, err);
    if (r < 0)
        return r;
    if (n > UINT32_MAX)
        return fail(err, -ERANGE, "%s: %llu is too large", key, (unsigned long long)n);
    *ret = (uint32_t)n;
    return 0;
}

static int get_mean(const struct json_value *v, const char *key, struct savings_mean *ret,
                    uw_error *err)
{
    const struct json_value *o = json_get(v, key);
    double s[MEAN_VALUES] = {0};
    unsigned windows = 0;

    int r = get_unsigned(o, "windows", &windows, err);
    if (r >= 0)
        r = get_values(o, "sums", s, MEAN_VALUES, err);
    if (r >= 0 && windows > 0 && !(s[0] > 0 && s[1] > 0 && s[2] > 0))
        r = fail(err, -EINVAL, "windows that weigh nothing");
    if (r < 0)
        return fail_in(err, r, "%s", key);
    *ret = (struct savings_mean){windows, s[0], s[1], s[2], s[3], s[4]};
    return 0;
}

static int get_past(const struct json_value *v, struct savings_past *ret, uw_error *err)
{
    double p[PAST_VALUES] = {0};

    int r = get_values(v, "past", p, PAST_VALUES, err);
    if (r < 0)
        return r;
    *ret = (struct savings_past){p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8]};
    return 0;
}

/* In states of before these were kept: the hold beside the pairs was as it was on the
 * whole.
 */
static void guess_holds(struct savings *a)
{
    struct counterfactual *c = &a->pairs;

    if (a->hold.windows == 0)
        return;
    c->holds = a->hold.windows;
    c->hold_t = c->holds * log(savings_mean_time(&a->hold));
    c->hold_e = c->holds * log(savings_mean_energy(&a->hold));
    c->t.wh = c->t.w * log(savings_mean_time(&a->hold));
    c->e.wh = c->e.w * log(savings_mean_energy(&a->hold));
}

static int get_window(const struct json_value *v, const char *key,
                      struct pair_window *ret, uw_error *err)
{
    double w[WINDOW_VALUES] = {0};
    int r = get_signed_values(v, key, w, WINDOW_VALUES, err);

    if (r >= 0 && !(w[3] > 0 && w[4] > 0))
        r = fail(err, -EINVAL, "%s: a variance of %g", key, fmin(w[3], w[4]));
    if (r >= 0)
        *ret = (struct pair_window){true, w[0], w[1], w[2], w[3], w[4]};
    return r;
}

static int get_lag(const struct json_value *v, struct wander_lag *ret, uw_error *err)
{
    double s[LAG_VALUES] = {0};
    unsigned n = 0;
    int r = get_unsigned(v, "n", &n, err);

    if (r >= 0 && n > 0)
        r = get_values(v, "sums", s, LAG_VALUES, err);
    if (r >= 0)
        *ret = (struct wander_lag){n, s[0], s[1], s[2], s[3]};
    return r;
}

static int get_link(const struct json_value *v, struct counterfactual *c, uw_error *err)
{
    const struct json_value *wander = json_get(v, "wander");
    double next[NEXT_VALUES] = {0};

    int r = get_unsigned(v, "holds", &c->holds, err);
    if (r >= 0)
        r = get_signed_values(v, "hold_sums", next, NEXT_VALUES, err);
    if (r >= 0)
        r = get_unsigned(v, "link_windows", &c->link.windows, err);
    if (r >= 0 && c->link.windows > 0)
        r = get_window(v, "link_reference", &c->link.reference, err);
    if (r >= 0 && c->link.windows > 0)
        r = get_window(v, "link_hold", &c->link.hold, err);
    for (unsigned i = 0; i < WANDER_LAGS && r >= 0; i++)
        r = get_lag(json_at(wander, i), &c->wander.lag[i], err);
    c->t.wh = next[0];
    c->e.wh = next[1];
    c->lag_s = next[2];
    c->hold_t = next[3];
    c->hold_e = next[4];
    return r;
}

/* None in states of before they were kept. */
static int get_pairs(const struct json_value *v, struct savings *ret, uw_error *err)
{
    struct counterfactual *c = &ret->pairs;
    double s[PAIR_VALUES] = {0};

    if (!json_get(v, "pairs"))
        return 0;
    int r = get_unsigned(v, "pairs", &c->pairs, err);
    if (r >= 0)
        r = get_unsigned(v, "past_pairs", &ret->past_pairs, err);
    if (r >= 0)
        r = get_signed_values(v, "pair_sums", s, PAIR_VALUES, err);
    if (r >= 0 && c->pairs > 0 && !(s[0] > 0 && s[3] > 0))
        r = fail(err, -EINVAL, "pairs that weigh nothing");
    if (r >= 0)
        r = get_past(v, &ret->past, err);
    if (r < 0)
        return r;
    c->t = (struct pair_sums){.w = s[0], .wd = s[1], .wdd = s[2]};
    c->e = (struct pair_sums){.w = s[3], .wd = s[4], .wdd = s[5]};
    if (json_get(v, "holds"))
        return get_link(v, c, err);
    guess_holds(ret);
    return 0;
}

/* None where none was merged. */
static int get_older(const struct json_value *v, struct savings_totals *ret,
                     uw_error *err)
{
    const struct json_value *o = json_get(v, "older");
    struct savings_totals t = {0};
    double s[OLDER_VALUES] = {0}, c[COST_VALUES] = {0};

    if (!o)
        return 0;
    int r = get_unsigned(o, "regimes", &t.regimes, err);
    if (r >= 0)
        r = get_unsigned(o, "compared", &t.compared, err);
    if (r >= 0)
        r = get_unsigned(o, "held", &t.held, err);
    if (r >= 0 && (t.held > t.compared || t.compared > t.regimes))
        r = fail(err, -EINVAL, "%u of %u of %u regimes", t.held, t.compared, t.regimes);
    if (r >= 0)
        r = get_unsigned(o, "pairs", &t.pairs, err);
    if (r >= 0)
        r = get_values(o, "sums", s, OLDER_VALUES, err);
    if (r >= 0)
        r = get_signed_values(o, "costs", c, COST_VALUES, err);
    if (r >= 0)
        r = get_past(o, &t.past, err);
    if (r < 0)
        return fail_in(err, r, "older");
    t.booked_s = s[0];
    t.search_s = s[1];
    t.search_steps = s[2];
    t.visits_s = s[3];
    t.cost_j = c[0];
    t.cost_s = c[1];
    t.visits_cost_j = c[2];
    *ret = t;
    return 0;
}

static int get_regime(const struct json_value *v, struct savings *ret, uw_error *err)
{
    int r = 0;

    for (size_t k = 0; k < STRETCH_KINDS && r >= 0; k++) {
        double s[SUM_VALUES] = {0};
        if (k >= STRETCH_REFERENCE_CHECK && !json_get(v, stretch_names[k]))
            continue; /* of before there were visits */
        r = get_values(v, stretch_names[k], s, SUM_VALUES, err);
        ret->sum[k] = (struct savings_sum){s[0], s[1], s[2], s[3]};
    }
    if (r >= 0)
        r = get_mean(v, "reference", &ret->reference, err);
    if (r >= 0)
        r = get_mean(v, "hold", &ret->hold, err);
    if (r >= 0)
        r = get_pairs(v, ret, err);
    if (r >= 0)
        r = get_older(v, &ret->older, err);
    return r;
}

static int get_cap(const struct json_value *v, struct tuner_cap *ret, uw_error *err)
{
    int r = get_unsigned(v, "cap_mw", &ret->cap_mw, err);

    if (r >= 0)
        r = get_mean(v, "mean", &ret->mean, err);
    if (r >= 0 && (ret->cap_mw == 0 || ret->mean.windows == 0))
        r = fail(err, -EINVAL, "a cap without a window");
    return r;
}

static int get_ask(const struct json_value *root, struct searches_ask *ret,
                   struct cap_class *cls, uw_error *err)
{
    const char *goal;
    double c[3];

    *ret = (struct searches_ask){0};
    int r = get_unsigned(root, "cap_mw", &ret->cap.mw, err);
    if (r >= 0)
        r = json_get_double(root, "cap_percent", &ret->cap.percent, err);
    if (r >= 0 && json_get(root, "goal")) {
        ret->search = true;
        r = json_get_text(root, "goal", &goal, err);
        if (r >= 0)
            r = goal_parse(goal, &ret->goal, err);
    }
    if (r >= 0 && !ret->search && ret->cap.mw == 0 &&
        !(ret->cap.percent > 0 && ret->cap.percent <= 100))
        r = fail(err, -EINVAL, "neither a goal nor a cap");
    if (r >= 0 && json_get(root, "class")) {
        r = get_values(root, "class", c, 3, err);
        *cls = (struct cap_class){c[0], c[1], c[2]};
        ret->cls = cls;
    }
    return r;
}

static int get_visits(const struct json_value *root, struct visits *ret, uw_error *err)
{
    if (!json_get(root, "visits")) /* of before there were any */
        return 0;
    int r = get_unsigned(root, "visits", &ret->n, err);
    if (r >= 0)
        r = json_get_double(root, "visits_s", &ret->spent_s, err);
    if (r >= 0)
        r = json_get_double(root, "visit_s", &ret->last_s, err);
    if (r >= 0 && !(ret->spent_s >= 0 && ret->last_s >= 0))
        r = fail(err, -ERANGE, "visits_s: %g s and visit_s: %g s cannot be", ret->spent_s,
                 ret->last_s);
    return r;
}

static int get_looks(const struct json_value *root, struct gap_probes *ret, uw_error *err)
{
    if (!json_get(root, "looks")) /* of before there were any */
        return 0;
    int r = get_unsigned(root, "looks", &ret->n, err);
    if (r >= 0)
        r = json_get_double(root, "look_s", &ret->last_s, err);
    if (r >= 0 && !(ret->last_s >= 0))
        r = fail(err, -ERANGE, "look_s: %g s cannot be", ret->last_s);
    return r;
}

static int get_lists(const struct json_value *root, struct searches_memory *m,
                     uw_error *err)
{
    const struct json_value *regimes = json_get(root, "regimes");
    const struct json_value *caps = json_get(root, "caps");
    const struct json_value *boards = json_get(root, "boards");
    int r = 0;

    m->known.n_regimes = json_count(regimes);
    m->known.n_caps = json_count(caps);
    m->n_uuids = json_count(boards);
    if (m->known.n_regimes > TUNER_REGIMES_MAX || m->known.n_caps > TUNER_CAPS_MAX ||
        m->n_uuids > BOARDS_MAX)
        return fail(err, -E2BIG, "more regimes, caps or boards than there can be");
    for (size_t i = 0; i < m->known.n_regimes && r >= 0; i++)
        r = get_regime(json_at(regimes, i), &m->regime[i], err);
    for (size_t i = 0; i < m->known.n_caps && r >= 0; i++)
        r = get_cap(json_at(caps, i), &m->cap[i], err);
    for (size_t i = 0; i < m->n_uuids && r >= 0; i++) {
        const char *uuid = json_as_text(json_at(boards, i));
        if (!uuid || strlen(uuid) >= sizeof m->uuid[i])
            return fail(err, -EINVAL, "boards: no UUID");
        (void)snprintf(m->uuid[i], sizeof m->uuid[i], "%s", uuid);
    }
    return r;
}

int searches_state_read(const char *text, struct searches_ask *ret_ask,
                        struct cap_class *ret_cls, struct searches_memory *ret,
                        uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    auto_(mem_free) struct searches_memory *m = calloc(1, sizeof *m);
    struct cap_class cls = {0};
    struct searches_ask ask;
    uint64_t version = 0;

    if (!m)
        return fail(err, -ENOMEM, "out of memory");
    int r = json_read("state", text, strlen(text), &doc, err);
    if (r < 0)
        return r;
    const struct json_value *root = json_root(doc);
    r = json_get_u64(root, "underwatt_tuning", &version, err);
    if (r >= 0 && version != VERSION)
        r = fail(err, -EINVAL, "state of version %llu", (unsigned long long)version);
    if (r >= 0)
        r = get_ask(root, &ask, &cls, err);
    if (r >= 0)
        r = get_unsigned(root, "held_mw", &m->held_mw, err);
    if (r >= 0)
        r = get_unsigned(root, "reference_mw", &m->known.reference_mw, err);
    if (r >= 0)
        r = json_get_double(root, "demand_w", &m->known.demand_w, err);
    if (r >= 0)
        r = json_get_double(root, "peak_w", &m->known.peak_w, err);
    if (r >= 0)
        r = get_unsigned(root, "windows", &m->known.windows, err);
    if (r >= 0)
        r = get_unsigned(root, "changes", &m->known.changes, err);
    if (r >= 0)
        r = get_unsigned(root, "stalls", &m->known.stalls, err);
    if (r >= 0)
        r = get_visits(root, &m->known.visits, err);
    if (r >= 0)
        r = get_looks(root, &m->known.looks, err);
    if (r >= 0 && json_get(root, "by_period")) /* of before there was another way */
        r = json_get_bool(root, "by_period", &m->known.by_period, err);
    if (r >= 0)
        r = get_lists(root, m, err);
    if (r < 0)
        return fail_in(err, r, "state of a search");
    *ret = *m;
    ret->known.regime = ret->regime;
    ret->known.cap = ret->cap;
    *ret_cls = cls;
    *ret_ask = ask;
    if (ask.cls)
        ret_ask->cls = ret_cls;
    return 0;
}
