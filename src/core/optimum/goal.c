#include "core/optimum/goal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"

static const struct form {
    const char *name;
    enum goal_kind kind;
    const char *param; /* what the parameter is called; NULL: none */
    double least, most;
} forms[] = {
    {"energy", GOAL_ENERGY, NULL, 0, 0},      {"edp", GOAL_EDP, NULL, 0, 0},
    {"eds", GOAL_EDS, "K", 1, 1000},          {"cost", GOAL_COST, "ETA", 0, 1},
    {"slowdown", GOAL_SLOWDOWN, "F", 1, 100}, {"time", GOAL_TIME, NULL, 0, 0},
};

static const struct form *form_named(const char *text, size_t len)
{
    for (size_t i = 0; i < n_elements(forms); i++)
        if (strlen(forms[i].name) == len && strncmp(forms[i].name, text, len) == 0)
            return &forms[i];
    return NULL;
}

int goal_parse(const char *text, struct goal *ret, uw_error *err)
{
    const char *colon = strchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : strlen(text);
    const struct form *f = form_named(text, len);
    double v = 0;

    if (!f)
        return fail(err, -EINVAL, "goal '%s' is none of %s", text, GOAL_FORMS);
    if (!f->param && colon)
        return fail(err, -EINVAL, "goal '%s': %s takes no parameter", text, f->name);
    if (f->param && !colon)
        return fail(err, -EINVAL, "goal '%s': %s needs %s in %g..%g, as in %s:%s", text,
                    f->name, f->param, f->least, f->most, f->name, f->param);
    if (colon && parse_double(colon + 1, &v, NULL) < 0)
        return fail(err, -EINVAL, "goal '%s': '%s' is not a number in %g..%g", text,
                    colon + 1, f->least, f->most);
    if (colon && !(v >= f->least && v <= f->most))
        return fail(err, -ERANGE, "goal '%s': %s = %g is outside %g..%g", text, f->param,
                    v, f->least, f->most);
    *ret = (struct goal){f->kind, v};
    return 0;
}

const char *goal_text(const struct goal *g, char buf[GOAL_TEXT_MAX])
{
    for (size_t i = 0; i < n_elements(forms); i++) {
        if (forms[i].kind != g->kind)
            continue;
        if (!forms[i].param) {
            (void)snprintf(buf, GOAL_TEXT_MAX, "%s", forms[i].name);
            return buf;
        }
        for (int digits = 6; digits <= 17; digits++) {
            struct goal back = {0};
            (void)snprintf(buf, GOAL_TEXT_MAX, "%s:%.*g", forms[i].name, digits,
                           g->param);
            if (goal_parse(buf, &back, NULL) == 0 && !(back.param < g->param) &&
                !(back.param > g->param))
                return buf;
        }
        return buf;
    }
    (void)snprintf(buf, GOAL_TEXT_MAX, "unknown");
    return buf;
}

double goal_value(const struct goal *g, double energy_j, double time_s,
                  const struct goal_ref *ref)
{
    switch (g->kind) {
    case GOAL_EDP:
        return energy_j * time_s;
    case GOAL_EDS:
        return ((g->param - 1) * energy_j / ref->energy_j + time_s / ref->time_s) /
               g->param;
    case GOAL_COST:
        return g->param * energy_j + (1 - g->param) * ref->pmax_w * time_s;
    case GOAL_SLOWDOWN:
        return time_s <= g->param * ref->time_s ? energy_j : INFINITY;
    case GOAL_TIME:
        return time_s;
    case GOAL_ENERGY:
    default:
        return energy_j;
    }
}

double goal_relative(const struct goal *g, double energy_j, double time_s,
                     const struct goal_ref *ref)
{
    struct goal_shape s = goal_shape_of(g, ref);
    return goal_shape_value(&s, energy_j / ref->energy_j, time_s / ref->time_s);
}

struct goal_shape goal_shape_of(const struct goal *g, const struct goal_ref *ref)
{
    struct goal_shape s = {.we = 1, .bound = INFINITY};

    switch (g->kind) {
    case GOAL_EDP:
        s.product = true;
        break;
    case GOAL_EDS:
        s.we = (g->param - 1) / g->param;
        break;
    case GOAL_COST: {
        double e = g->param * ref->energy_j,
               t = (1 - g->param) * ref->pmax_w * ref->time_s;
        s.we = e / (e + t);
        break;
    }
    case GOAL_SLOWDOWN:
        s.bound = g->param;
        break;
    case GOAL_TIME:
        s.we = 0;
        break;
    case GOAL_ENERGY:
    default:
        break;
    }
    s.wt = 1 - s.we;
    return s;
}

double goal_shape_value(const struct goal_shape *s, double e, double t)
{
    if (t > s->bound)
        return INFINITY;
    return s->product ? e * t : s->we * e + s->wt * t;
}
