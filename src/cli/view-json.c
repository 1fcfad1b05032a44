#include "cli/view.h"
#include "io/json.h"

static void put_points(const struct sweep *s, struct json_out *o)
{
    json_out_array(o, "points");
    for (size_t i = 0; i < s->n; i++) {
        const struct sweep_point *p = &s->point[i];
        json_out_object(o, NULL);
        json_out_int(o, "cap_mw", p->cap_mw);
        json_out_double(o, "time_s", p->time_s);
        json_out_double(o, "energy_j", p->energy_j);
        json_out_double(o, "power_w", p->power_w);
        json_out_int(o, "runs", p->runs);
        json_out_end(o);
    }
    json_out_end(o);
}

static void put_point(const struct sweep *s, size_t i, struct json_out *o)
{
    const struct sweep_point *p = &s->point[i];

    json_out_int(o, "cap_mw", p->cap_mw);
    json_out_double(o, "time_s", p->time_s);
    json_out_double(o, "energy_j", p->energy_j);
    json_out_double(o, "power_w", p->power_w);
}

static void put_optima(const struct sweep *s, struct json_out *o)
{
    char name[GOAL_TEXT_MAX];

    json_out_object(o, "optima");
    for (size_t g = 0; g < SWEEP_OPTIMA; g++) {
        const struct sweep_optimum *best = &s->optimum[g];
        json_out_object(o, goal_text(&best->goal, name));
        put_point(s, best->point, o);
        json_out_double(o, "value", best->value);
        json_out_double(o, "value_se", sweep_value_se(s, &best->goal, best->point));
        json_out_double(o, "energy_change", best->energy_change);
        json_out_double(o, "time_change", best->time_change);
        json_out_end(o);
    }
    json_out_end(o);
}

static void put_buys(const struct sweep *s, struct json_out *o)
{
    const struct sweep_point *ref = &s->point[s->ref];

    json_out_array(o, "time_buys");
    for (size_t i = 0; i < SWEEP_BUYS; i++) {
        const struct sweep_point *p = &s->point[s->buy[i].point];
        json_out_object(o, NULL);
        json_out_double(o, "at_most", s->buy[i].time);
        json_out_int(o, "cap_mw", p->cap_mw);
        json_out_double(o, "energy_change", p->energy_j / ref->energy_j - 1);
        json_out_double(o, "time_change", p->time_s / ref->time_s - 1);
        json_out_end(o);
    }
    json_out_end(o);
}

/* Standard deviations and the Pareto front, in the order of points. */
static void put_spread(const struct sweep *s, struct json_out *o)
{
    json_out_object(o, "spread");
    json_out_array(o, "time_sd_s");
    for (size_t i = 0; i < s->n; i++)
        json_out_double(o, NULL, s->point[i].time_sd_s);
    json_out_end(o);
    json_out_array(o, "energy_sd_j");
    for (size_t i = 0; i < s->n; i++)
        json_out_double(o, NULL, s->point[i].energy_sd_j);
    json_out_end(o);
    json_out_end(o);
    json_out_array(o, "pareto_cap_mw");
    for (size_t i = 0; i < s->n; i++)
        if (s->point[i].pareto)
            json_out_int(o, NULL, s->point[i].cap_mw);
    json_out_end(o);
}

static void put_drift(const struct view *v, struct json_out *o)
{
    const struct sweep_drift *d = v->drift;

    if (!d || !d->known) {
        json_out_null(o, "drift");
        return;
    }
    json_out_object(o, "drift");
    json_out_int(o, "reference_runs", d->refs);
    json_out_double(o, "span_s", d->span_s);
    json_out_double(o, "time_change", d->time_change);
    json_out_double(o, "time_half", d->time_half);
    json_out_double(o, "energy_change", d->energy_change);
    json_out_double(o, "energy_half", d->energy_half);
    json_out_bool(o, "drifts", d->drifts);
    json_out_bool(o, "corrected", v->corrected);
    json_out_end(o);
}

static void put_runs(const struct view *v, struct json_out *o)
{
    json_out_array(o, "runs");
    for (size_t i = 0; v->runs && i < v->n_runs; i++) {
        json_out_object(o, NULL);
        json_out_int(o, "cap_mw", v->runs[i].cap_mw);
        json_out_counter(o, "at_s", v->runs[i].at_s);
        json_out_double(o, "time_s", v->runs[i].time_s);
        json_out_double(o, "energy_j", v->runs[i].energy_j);
        json_out_end(o);
    }
    json_out_end(o);
}

int view_json(const struct view *v, FILE *to, uw_error *err)
{
    auto_(json_out_free) struct json_out *o = json_out_new();

    json_out_object(o, NULL);
    json_out_bool(o, "simulated", v->simulated);
    json_out_text(o, "board", v->board);
    json_out_text(o, "workload", v->workload);
    json_out_int(o, "boards", (int64_t)v->boards);
    json_out_text(o, "work_unit", v->work_unit);
    json_out_text(o, "method", v->method);
    json_out_object(o, "reference");
    put_point(v->sweep, v->sweep->ref, o);
    json_out_end(o);
    put_points(v->sweep, o);
    put_optima(v->sweep, o);
    put_buys(v->sweep, o);
    put_spread(v->sweep, o);
    put_drift(v, o);
    put_runs(v, o);
    json_out_end(o);
    return json_out_line(o, to, err);
}
