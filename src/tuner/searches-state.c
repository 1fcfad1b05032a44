#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/json.h"
#include "tuner/searches-inside.h"

enum { VERSION = 1 };

static const char *const stretch_names[STRETCH_KINDS] = {
    [STRETCH_REFERENCE] = "reference_steps", [STRETCH_SEARCH] = "search_steps",
    [STRETCH_HOLD] = "hold_steps",           [STRETCH_REFERENCE_CHECK] = "visit_steps",
    [STRETCH_SEARCH_AGAIN] = "away_steps",
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
        .kept = {report->checks, report->gap_checks},
        .by_period = report->by == TUNER_BY_PERIOD,
    };
    memcpy(m->regime, report->account, report->n_regimes * sizeof *m->regime);
    memcpy(m->cap, report->cap, report->n_caps * sizeof *m->cap);
    if (report->holding || report->started) /* else keep the older held_mw */
        m->held_mw = report->holding ? report->held_mw : 0;
    if (report->by == TUNER_BY_LAUNCHES) { /* another tuner may choose another unit */
        m->held_mw = 0;
        m->known.n_caps = 0;
    }
}

/* ---- tables of the saved members, used for writing and reading ---- */

/* Members of type double, saved as an object with the keys "0", "1", "2" etc. */
struct sums {
    bool is_signed;
    size_t n;
    size_t at[9];
};

/* clang-format off */
#define AT(type, field) offsetof(struct type, field)
#define SUMS(is_signed, ...) \
    {is_signed, sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t), {__VA_ARGS__}}

static const struct sums stretch_sums = SUMS(false,
    AT(savings_sum, steps), AT(savings_sum, time_s), AT(savings_sum, energy_j),
    AT(savings_sum, half2_j2));
static const struct sums mean_sums = SUMS(false,
    AT(savings_mean, sum_w), AT(savings_mean, sum_wt), AT(savings_mean, sum_we),
    AT(savings_mean, sum_wt2), AT(savings_mean, sum_we2));
static const struct sums past_sums = SUMS(false,
    AT(savings_past, steps), AT(savings_past, time_s), AT(savings_past, energy_j),
    AT(savings_past, half2_j2), AT(savings_past, mean_steps), AT(savings_past, would_s),
    AT(savings_past, would_j), AT(savings_past, would_half2_s2),
    AT(savings_past, would_half2_j2));
static const struct sums window_sums = SUMS(true,
    AT(pair_window, at_s), AT(pair_window, log_t), AT(pair_window, log_e),
    AT(pair_window, var_t), AT(pair_window, var_e));
static const struct sums pair_sums = SUMS(true,
    AT(counterfactual, t.w), AT(counterfactual, t.wd), AT(counterfactual, t.wdd),
    AT(counterfactual, e.w), AT(counterfactual, e.wd), AT(counterfactual, e.wdd));
static const struct sums hold_sums = SUMS(true,
    AT(counterfactual, t.wh), AT(counterfactual, e.wh), AT(counterfactual, lag_s),
    AT(counterfactual, hold_t), AT(counterfactual, hold_e));
static const struct sums lag_sums = SUMS(false,
    AT(wander_lag, t), AT(wander_lag, e), AT(wander_lag, claimed_t),
    AT(wander_lag, claimed_e));
static const struct sums older_sums = SUMS(false,
    AT(savings_totals, booked_s), AT(savings_totals, search_s),
    AT(savings_totals, search_steps), AT(savings_totals, visits_s));
static const struct sums older_costs = SUMS(true,
    AT(savings_totals, cost_j), AT(savings_totals, cost_s),
    AT(savings_totals, visits_cost_j));
static const struct sums class_parts = SUMS(false,
    AT(cap_class, first), AT(cap_class, floor), AT(cap_class, rate));
/* clang-format on */

static const struct saved_field older_fields[] = {
    {"regimes", COUNT, AT(savings_totals, regimes), NULL},
    {"compared", COUNT, AT(savings_totals, compared), NULL},
    {"held", COUNT, AT(savings_totals, held), NULL},
    {"pairs", COUNT, AT(savings_totals, pairs), NULL},
};
static const struct saved_field memory_fields[] = {
    {"held_mw", COUNT, AT(searches_memory, held_mw), NULL},
    {"reference_mw", COUNT, AT(searches_memory, known.reference_mw), NULL},
    {"demand_w", NUMBER, AT(searches_memory, known.demand_w), NULL},
    {"peak_w", NUMBER, AT(searches_memory, known.peak_w), NULL},
    {"windows", COUNT, AT(searches_memory, known.windows), NULL},
    {"changes", COUNT, AT(searches_memory, known.changes), NULL},
    {"stalls", COUNT, AT(searches_memory, known.stalls), NULL},
    {"by_period", FLAG, AT(searches_memory, known.by_period), "by_period"},
};

/* ---- writing ---- */

static void put_sums(struct json_out *o, const char *key, const struct sums *s,
                     const void *of)
{
    json_out_object(o, key);
    for (size_t i = 0; i < s->n; i++) {
        const void *at = (const char *)of + s->at[i];
        json_out_double(o, (const char[]){(char)('0' + i), '\0'}, *(const double *)at);
    }
    json_out_end(o);
}

static void put_mean(struct json_out *o, const char *key, const struct savings_mean *m)
{
    json_out_object(o, key);
    json_out_int(o, "windows", m->windows);
    put_sums(o, "sums", &mean_sums, m);
    json_out_end(o);
}

/* Writes the rest of struct counterfactual: sums of the hold, the link, the variation of
 * the job's cost.
 */
static void put_link(struct json_out *o, const struct counterfactual *c)
{
    json_out_int(o, "holds", c->holds);
    put_sums(o, "hold_sums", &hold_sums, c);
    json_out_int(o, "link_windows", c->link.windows);
    if (c->link.windows > 0) {
        put_sums(o, "link_reference", &window_sums, &c->link.reference);
        put_sums(o, "link_hold", &window_sums, &c->link.hold);
    }
    json_out_array(o, "wander");
    for (unsigned i = 0; i < WANDER_LAGS; i++) {
        json_out_object(o, NULL);
        json_out_int(o, "n", c->wander.lag[i].n);
        if (c->wander.lag[i].n > 0)
            put_sums(o, "sums", &lag_sums, &c->wander.lag[i]);
        json_out_end(o);
    }
    json_out_end(o);
}

static void put_regime(struct json_out *o, const struct savings *a)
{
    json_out_object(o, NULL);
    for (size_t k = 0; k < STRETCH_KINDS; k++)
        put_sums(o, stretch_names[k], &stretch_sums, &a->sum[k]);
    put_mean(o, "reference", &a->reference);
    put_mean(o, "hold", &a->hold);
    json_out_int(o, "pairs", a->pairs.pairs);
    put_sums(o, "pair_sums", &pair_sums, &a->pairs);
    put_link(o, &a->pairs);
    json_out_int(o, "past_pairs", a->past_pairs);
    put_sums(o, "past", &past_sums, &a->past);
    if (a->older.regimes > 0) { /* regimes that were merged into this one */
        json_out_object(o, "older");
        saved_fields_put(o, older_fields, n_elements(older_fields), &a->older);
        put_sums(o, "sums", &older_sums, &a->older);
        put_sums(o, "costs", &older_costs, &a->older);
        put_sums(o, "past", &past_sums, &a->older.past);
        json_out_end(o);
    }
    json_out_end(o);
}

static void put_ask(struct json_out *o, const struct searches_ask *ask)
{
    char goal[GOAL_TEXT_MAX];

    if (ask->search)
        json_out_text(o, "goal", goal_text(&ask->goal, goal));
    json_out_int(o, "cap_mw", ask->cap.mw);
    json_out_double(o, "cap_percent", ask->cap.percent);
    if (ask->cls)
        put_sums(o, "class", &class_parts, ask->cls);
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
    saved_fields_put(o, memory_fields, n_elements(memory_fields), m);
    for (size_t i = 0; i < ACTIVITIES_N; i++)
        saved_fields_put(o, activities[i]->saved, activities[i]->n_saved, &m->known.kept);
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

static int get_sums(const struct json_value *v, const char *key, const struct sums *s,
                    void *ret, uw_error *err)
{
    const struct json_value *o = json_get(v, key);

    for (size_t i = 0; i < s->n; i++) {
        void *at = (char *)ret + s->at[i];
        double *sum = at;
        int r = json_get_double(o, (const char[]){(char)('0' + i), '\0'}, sum, err);
        if (r >= 0 && (!isfinite(*sum) || (!s->is_signed && *sum < 0)))
            r = fail(err, -ERANGE, "%g is not a valid sum", *sum);
        if (r < 0)
            return fail_in(err, r, "%s", key);
    }
    return 0;
}

static int get_mean(const struct json_value *v, const char *key, struct savings_mean *ret,
                    uw_error *err)
{
    const struct json_value *o = json_get(v, key);
    struct savings_mean m = {0};

    int r = saved_count_get(o, "windows", &m.windows, err);
    if (r >= 0)
        r = get_sums(o, "sums", &mean_sums, &m, err);
    if (r >= 0 && m.windows > 0 && !(m.sum_w > 0 && m.sum_wt > 0 && m.sum_we > 0))
        r = fail(err, -EINVAL, "windows without a weight");
    if (r < 0)
        return fail_in(err, r, "%s", key);
    *ret = m;
    return 0;
}

/* For older states without hold sums: derives them from the mean of the hold. */
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
    int r = get_sums(v, key, &window_sums, ret, err);

    if (r >= 0 && !(ret->var_t > 0 && ret->var_e > 0))
        r = fail(err, -EINVAL, "%s: a variance of %g", key, fmin(ret->var_t, ret->var_e));
    ret->known = r >= 0;
    return r;
}

static int get_link(const struct json_value *v, struct counterfactual *c, uw_error *err)
{
    const struct json_value *wander = json_get(v, "wander");

    int r = saved_count_get(v, "holds", &c->holds, err);
    if (r >= 0)
        r = get_sums(v, "hold_sums", &hold_sums, c, err);
    if (r >= 0)
        r = saved_count_get(v, "link_windows", &c->link.windows, err);
    if (r >= 0 && c->link.windows > 0)
        r = get_window(v, "link_reference", &c->link.reference, err);
    if (r >= 0 && c->link.windows > 0)
        r = get_window(v, "link_hold", &c->link.hold, err);
    for (unsigned i = 0; i < WANDER_LAGS && r >= 0; i++) {
        struct wander_lag *lag = &c->wander.lag[i];
        r = saved_count_get(json_at(wander, i), "n", &lag->n, err);
        if (r >= 0 && lag->n > 0)
            r = get_sums(json_at(wander, i), "sums", &lag_sums, lag, err);
    }
    return r;
}

/* Older states have no pairs. */
static int get_pairs(const struct json_value *v, struct savings *ret, uw_error *err)
{
    struct counterfactual *c = &ret->pairs;

    if (!json_get(v, "pairs"))
        return 0;
    int r = saved_count_get(v, "pairs", &c->pairs, err);
    if (r >= 0)
        r = saved_count_get(v, "past_pairs", &ret->past_pairs, err);
    if (r >= 0)
        r = get_sums(v, "pair_sums", &pair_sums, c, err);
    if (r >= 0 && c->pairs > 0 && !(c->t.w > 0 && c->e.w > 0))
        r = fail(err, -EINVAL, "pairs without a weight");
    if (r >= 0)
        r = get_sums(v, "past", &past_sums, &ret->past, err);
    if (r < 0)
        return r;
    if (json_get(v, "holds"))
        return get_link(v, c, err);
    guess_holds(ret);
    return 0;
}

/* Absent if no regime was merged. */
static int get_older(const struct json_value *v, struct savings_totals *ret,
                     uw_error *err)
{
    const struct json_value *o = json_get(v, "older");

    if (!o)
        return 0;
    int r = saved_fields_get(o, older_fields, n_elements(older_fields), ret, err);
    if (r >= 0 && (ret->held > ret->compared || ret->compared > ret->regimes))
        r = fail(err, -EINVAL, "%u held, %u compared, %u in all", ret->held,
                 ret->compared, ret->regimes);
    if (r >= 0)
        r = get_sums(o, "sums", &older_sums, ret, err);
    if (r >= 0)
        r = get_sums(o, "costs", &older_costs, ret, err);
    if (r >= 0)
        r = get_sums(o, "past", &past_sums, &ret->past, err);
    return r < 0 ? fail_in(err, r, "older") : 0;
}

static int get_regime(const struct json_value *v, struct savings *ret, uw_error *err)
{
    int r = 0;

    for (size_t k = 0; k < STRETCH_KINDS && r >= 0; k++)
        if (k < STRETCH_REFERENCE_CHECK || json_get(v, stretch_names[k]))
            r = get_sums(v, stretch_names[k], &stretch_sums, &ret->sum[k], err);
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
    int r = saved_count_get(v, "cap_mw", &ret->cap_mw, err);

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

    *ret = (struct searches_ask){0};
    int r = saved_count_get(root, "cap_mw", &ret->cap.mw, err);
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
        r = get_sums(root, "class", &class_parts, cls, err);
        ret->cls = cls;
    }
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
        return fail(err, -E2BIG, "too many regimes, caps or boards");
    for (size_t i = 0; i < m->known.n_regimes && r >= 0; i++)
        r = get_regime(json_at(regimes, i), &m->regime[i], err);
    for (size_t i = 0; i < m->known.n_caps && r >= 0; i++)
        r = get_cap(json_at(caps, i), &m->cap[i], err);
    for (size_t i = 0; i < m->n_uuids && r >= 0; i++) {
        const char *uuid = json_as_text(json_at(boards, i));
        if (!uuid || strlen(uuid) >= sizeof m->uuid[i])
            return fail(err, -EINVAL, "boards: invalid UUID");
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
        r = saved_fields_get(root, memory_fields, n_elements(memory_fields), m, err);
    for (size_t i = 0; i < ACTIVITIES_N && r >= 0; i++)
        r = saved_fields_get(root, activities[i]->saved, activities[i]->n_saved,
                             &m->known.kept, err);
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
