#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "io/json.h"
#include "tuner/searches-inside.h"

void searches_ask_text(const struct searches_ask *ask, char *ret, size_t size)
{
    bool named = ask->preset && ask->preset[0];
    char goal[GOAL_TEXT_MAX];

    if (ask->search)
        (void)snprintf(ret, size, "%s", goal_text(&ask->goal, goal));
    else if (ask->cap.mw)
        (void)snprintf(ret, size, "cap %.6g W", w_of_mw(ask->cap.mw));
    else
        (void)snprintf(ret, size, "cap %.6g%%%s%s%s", ask->cap.percent, named ? " (" : "",
                       named ? ask->preset : "", named ? ")" : "");
}

enum { VERSION = 1 };

void searches_memory_take(struct searches_memory *m, const struct tuner_report *report)
{
    m->known = (struct tuner_known){
        .regime = m->regime,
        .n_regimes = report->n_regimes,
        .cap = m->cap,
        .n_caps = report->n_caps,
        .reference_mw = report->reference_mw,
        .allowed_mw = report->allowed_mw,
        .lifted_mw = report->lifted_mw,
        .demand_w = report->demand_w,
        .peak_w = report->peak_w,
        .windows = report->windows,
        .changes = report->changes,
        .stalls = report->stalls,
        .stopped_s = report->stopped_s,
        .waited_s = report->waited_s,
        .searching = report->searching,
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

/* clang-format off */
#define AT(type, field) offsetof(struct type, field)
#define SUMS_OF(...) \
    .sums = (const size_t[]){__VA_ARGS__}, .n = sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t)
#define FIELDS_OF(table) .fields = (table), .n = n_elements(table)
#define STRETCH(kind) \
    SUMS, AT(savings, sum[kind]), SUMS_OF(AT(savings_sum, steps), AT(savings_sum, time_s), \
        AT(savings_sum, energy_j), AT(savings_sum, half2_j2))
#define PAST(at) \
    SUMS, at, SUMS_OF(AT(savings_past, sum.steps), AT(savings_past, sum.time_s), \
        AT(savings_past, sum.energy_j), AT(savings_past, sum.half2_j2), AT(savings_past, mean_steps), \
        AT(savings_past, would_s), AT(savings_past, would_j), AT(savings_past, would_half2_s2), \
        AT(savings_past, would_half2_j2))
#define LINK(member) \
    SIGNED, AT(savings, pairs.link.member), .when = AT(savings, pairs.link.windows), \
        SUMS_OF(AT(pair_window, at_s), AT(pair_window, log_t), AT(pair_window, log_e), \
        AT(pair_window, var_t), AT(pair_window, var_e))

static const struct saved_field mean_fields[] = {
    {"windows", COUNT, .at = AT(savings_mean, windows)},
    {"sums", SUMS, 0, SUMS_OF(AT(savings_mean, sum_wt), AT(savings_mean, sum_t),
        AT(savings_mean, sum_e), AT(savings_mean, sum_t2), AT(savings_mean, sum_e2))},
    {"weight_e", NUMBER, .at = AT(savings_mean, sum_we), "weight_e"},
};
static const struct saved_field older_fields[] = { /* regimes that were merged into one */
    {"regimes", COUNT, .at = AT(savings_totals, regimes)},
    {"compared", COUNT, .at = AT(savings_totals, compared)},
    {"held", COUNT, .at = AT(savings_totals, held)},
    {"pairs", COUNT, .at = AT(savings_totals, pairs)},
    {"sums", SUMS, 0, SUMS_OF(AT(savings_totals, booked_s), AT(savings_totals, search_s),
        AT(savings_totals, search_steps), AT(savings_totals, visits_s))},
    {"costs", SIGNED, 0, SUMS_OF(AT(savings_totals, cost_j), AT(savings_totals, cost_s),
        AT(savings_totals, visits_cost_j))},
    {"back_s", NUMBER, .at = AT(savings_totals, back_s), "back_s"},
    {"past", PAST(AT(savings_totals, past))},
};
static const struct saved_field regime_fields[] = {
    {"reference_steps", STRETCH(STRETCH_REFERENCE)},
    {"search_steps", STRETCH(STRETCH_SEARCH)},
    {"hold_steps", STRETCH(STRETCH_HOLD)},
    {"visit_steps", STRETCH(STRETCH_REFERENCE_CHECK), .since = "visit_steps"},
    {"away_steps", STRETCH(STRETCH_SEARCH_AGAIN), .since = "away_steps"},
    {"back_steps", STRETCH(STRETCH_BACK), .since = "back_steps"},
    {"ruled_steps", STRETCH(STRETCH_RULED), .since = "ruled_steps"},
    {"reference", OBJECT, AT(savings, reference), FIELDS_OF(mean_fields)},
    {"hold", OBJECT, AT(savings, hold), FIELDS_OF(mean_fields)},
    {"pairs", COUNT, .at = AT(savings, pairs.pairs), "pairs"},
    {"pair_sums", SIGNED, AT(savings, pairs), "pairs", SUMS_OF(AT(counterfactual, t.w),
        AT(counterfactual, t.wd), AT(counterfactual, t.wdd), AT(counterfactual, e.w),
        AT(counterfactual, e.wd), AT(counterfactual, e.wdd))},
    {"holds", COUNT, .at = AT(savings, pairs.holds), "holds"},
    {"hold_sums", SIGNED, AT(savings, pairs), "holds", SUMS_OF(AT(counterfactual, t.wh),
        AT(counterfactual, e.wh), AT(counterfactual, lag_s), AT(counterfactual, hold_t),
        AT(counterfactual, hold_e))},
    {"link_windows", COUNT, .at = AT(savings, pairs.link.windows), "holds"},
    {"link_reference", LINK(reference)},
    {"link_hold", LINK(hold)},
    {"past_pairs", COUNT, .at = AT(savings, past_pairs), "pairs"},
    {"past", PAST(AT(savings, past)), .since = "pairs"},
    {"older", OBJECT, AT(savings, older), "older", AT(savings, older.regimes),
        FIELDS_OF(older_fields)},
};
static const struct saved_field lag_fields[] = { /* the sums exist after n windows only */
    {"n", COUNT, .at = AT(wander_lag, n)},
    {"sums", SUMS, 0, SUMS_OF(AT(wander_lag, t), AT(wander_lag, e), AT(wander_lag, claimed_t),
        AT(wander_lag, claimed_e))},
};
static const struct saved_field cap_fields[] = {
    {"cap_mw", COUNT, .at = AT(tuner_cap, cap_mw)},
    {"mean", OBJECT, AT(tuner_cap, mean), FIELDS_OF(mean_fields)},
};
static const struct saved_field class_field = {
    "class", SUMS, 0, SUMS_OF(AT(cap_class, first), AT(cap_class, floor), AT(cap_class, rate))};
static const struct saved_field memory_fields[] = {
    {"held_mw", COUNT, .at = AT(searches_memory, held_mw)},
    {"reference_mw", COUNT, .at = AT(searches_memory, known.reference_mw)},
    {"demand_w", NUMBER, .at = AT(searches_memory, known.demand_w)},
    {"peak_w", NUMBER, .at = AT(searches_memory, known.peak_w)},
    {"windows", COUNT, .at = AT(searches_memory, known.windows)},
    {"changes", COUNT, .at = AT(searches_memory, known.changes)},
    {"stalls", COUNT, .at = AT(searches_memory, known.stalls)},
    {"by_period", FLAG, .at = AT(searches_memory, known.by_period), "by_period"},
    {"searching", FLAG, .at = AT(searches_memory, known.searching), "searching"},
    {"stopped_s", NUMBER, .at = AT(searches_memory, known.stopped_s), "stopped_s"},
    {"waited_s", NUMBER, .at = AT(searches_memory, known.waited_s), "waited_s"},
    {"allowed_mw", COUNT, .at = AT(searches_memory, known.allowed_mw), "lifted_mw"},
    {"lifted_mw", COUNT, .at = AT(searches_memory, known.lifted_mw), "lifted_mw"},
};
/* clang-format on */

/* ---- writing ---- */

static void put_regime(struct json_out *o, const struct savings *a)
{
    json_out_object(o, NULL);
    saved_fields_put(o, regime_fields, n_elements(regime_fields), a);
    json_out_array(o, "wander");
    for (unsigned i = 0; i < WANDER_LAGS; i++) {
        const struct wander_lag *lag = &a->pairs.wander.lag[i];
        json_out_object(o, NULL);
        saved_fields_put(o, lag_fields, lag->n > 0 ? 2 : 1, lag);
        json_out_end(o);
    }
    json_out_end(o);
    json_out_end(o);
}

static void put_ask(struct json_out *o, const struct searches_ask *ask)
{
    char goal[GOAL_TEXT_MAX];

    if (ask->search)
        json_out_text(o, "goal", goal_text(&ask->goal, goal));
    json_out_int(o, "cap_mw", ask->cap.mw);
    json_out_exact_double(o, "cap_percent", ask->cap.percent);
    if (ask->cls)
        saved_fields_put(o, &class_field, 1, ask->cls);
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
        saved_fields_put(o, cap_fields, n_elements(cap_fields), &m->cap[i]);
        json_out_end(o);
    }
    json_out_end(o);
    json_out_end(o);
    return one_line(o, ret, err);
}

/* ---- reading ---- */

/* Older states have no weights of their own for the energies: the weights of the times
 * are used.
 */
static int check_mean(struct savings_mean *m, uw_error *err)
{
    if (!(m->sum_we > 0))
        m->sum_we = m->sum_wt;
    if (m->windows > 0 && !(m->sum_wt > 0 && m->sum_t > 0 && m->sum_e > 0))
        return fail(err, -EINVAL, "windows without a weight");
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

static int check_link(struct pair_window *w, uw_error *err)
{
    w->known = w->var_t > 0 && w->var_e > 0;
    return w->known ? 0
                    : fail(err, -EINVAL, "a link with variances of %g and %g", w->var_t,
                           w->var_e);
}

static int check_regime(struct savings *a, uw_error *err)
{
    struct counterfactual *c = &a->pairs;
    const struct savings_totals *older = &a->older;

    int r = check_mean(&a->reference, err);
    if (r >= 0)
        r = check_mean(&a->hold, err);
    if (r >= 0 && c->link.windows > 0)
        r = check_link(&c->link.reference, err);
    if (r >= 0 && c->link.windows > 0)
        r = check_link(&c->link.hold, err);
    if (r >= 0 && c->pairs > 0 && !(c->t.w > 0 && c->e.w > 0))
        r = fail(err, -EINVAL, "pairs without a weight");
    if (r >= 0 && (older->held > older->compared || older->compared > older->regimes))
        r = fail(err, -EINVAL, "older: %u held, %u compared, %u in all", older->held,
                 older->compared, older->regimes);
    return r;
}

static int get_regime(const struct json_value *v, struct savings *ret, uw_error *err)
{
    const struct json_value *wander = json_get(v, "wander");
    bool holds = json_get(v, "holds") != NULL;

    int r = saved_fields_get(v, regime_fields, n_elements(regime_fields), ret, err);
    for (unsigned i = 0; i < WANDER_LAGS && r >= 0 && holds; i++) {
        struct wander_lag *lag = &ret->pairs.wander.lag[i];
        r = saved_fields_get(json_at(wander, i), lag_fields, 1, lag, err);
        if (r >= 0 && lag->n > 0)
            r = saved_fields_get(json_at(wander, i), lag_fields + 1, 1, lag, err);
    }
    if (r >= 0)
        r = check_regime(ret, err);
    if (r >= 0 && !holds && json_get(v, "pairs")) /* of an older state */
        guess_holds(ret);
    return r;
}

static int get_cap(const struct json_value *v, struct tuner_cap *ret, uw_error *err)
{
    int r = saved_fields_get(v, cap_fields, n_elements(cap_fields), ret, err);

    if (r >= 0)
        r = check_mean(&ret->mean, err);
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
        r = saved_fields_get(root, &class_field, 1, cls, err);
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
