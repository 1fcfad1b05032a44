#include "core/optimum/goal.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/names.h"
#include "base/nearest.h"
#include "base/units.h"

enum { NAME_MAX_LEN = 16 };

/* The parameter of each kind; name NULL: none. */
static const struct param {
    const char *name;
    double least, most;
} params[] = {
    [GOAL_EDS] = {"K", 1, 1000},
    [GOAL_COST] = {"ETA", 0, 1},
    [GOAL_SLOWDOWN] = {"F", 1, 2},
    [GOAL_TIME] = {NULL, 0, 0},
};

static int no_goal(const char *text, const char *name, uw_error *err)
{
    struct nearest nearest = {0};
    char near[NEAREST_TEXT];

    for (unsigned i = 0; i < n_elements(params); i++)
        nearest_try(&nearest, name, strlen(name), names_word(NAMES_GOAL, i));
    return fail(err, -EINVAL, "goal '%s' is none of %s%s", text, GOAL_FORMS,
                nearest_text(&nearest, near));
}

/* Stores the name before the colon in lower case; returns its kind; < 0: unknown name. */
static int kind_of(const char *text, const char *colon, char name[NAME_MAX_LEN])
{
    int n = snprintf(name, NAME_MAX_LEN, "%.*s",
                     colon ? (int)(colon - text) : NAME_MAX_LEN, text);

    for (char *p = name; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return n < NAME_MAX_LEN ? names_number(NAMES_GOAL, name) : -1;
}

/* "slowdown:5%" is "slowdown:1.05". */
static int parse_param(enum goal_kind kind, const char *text, double *ret)
{
    char number[32];
    size_t len = strlen(text);

    if (kind != GOAL_SLOWDOWN || len == 0 || text[len - 1] != '%' || len > sizeof number)
        return parse_double(text, ret, NULL);
    (void)snprintf(number, sizeof number, "%.*s", (int)len - 1, text);
    int r = parse_double(number, ret, NULL);
    if (r == 0)
        *ret = 1 + *ret / 100;
    return r;
}

int goal_parse(const char *text, struct goal *ret, uw_error *err)
{
    const char *colon = strchr(text, ':');
    char name[NAME_MAX_LEN];
    double v = 0;

    int kind = kind_of(text, colon, name);
    if (kind < 0)
        return no_goal(text, name, err);
    const struct param *p = &params[kind];
    if (!p->name && colon)
        return fail(err, -EINVAL, "goal '%s': %s takes no parameter", text, name);
    if (p->name && !colon)
        return fail(err, -EINVAL, "goal '%s': %s needs %s in %g..%g, as in %s:%s", text,
                    name, p->name, p->least, p->most, name, p->name);
    if (colon && parse_param((enum goal_kind)kind, colon + 1, &v) < 0)
        return fail(err, -EINVAL, "goal '%s': '%s' is not a number in %g..%g", text,
                    colon + 1, p->least, p->most);
    if (colon && !(v >= p->least && v <= p->most))
        return fail(err, -ERANGE, "goal '%s': %s = %g is outside %g..%g%s", text, p->name,
                    v, p->least, p->most,
                    kind == GOAL_SLOWDOWN
                        ? ": 5 % more time is slowdown:5% or slowdown:1.05"
                        : "");
    *ret = (struct goal){(enum goal_kind)kind, v};
    return 0;
}

const char *goal_text(const struct goal *g, char buf[GOAL_TEXT_MAX])
{
    bool known = (size_t)g->kind < n_elements(params);
    const char *name = known ? names_word(NAMES_GOAL, g->kind) : "unknown";

    (void)snprintf(buf, GOAL_TEXT_MAX, "%s", name);
    for (int digits = 6; known && params[g->kind].name && digits <= 17; digits++) {
        struct goal back = {0};
        (void)snprintf(buf, GOAL_TEXT_MAX, "%s:%.*g", name, digits, g->param);
        if (goal_parse(buf, &back, NULL) == 0 && !(back.param < g->param) &&
            !(back.param > g->param))
            break;
    }
    return buf;
}

const char *goal_noun(enum goal_kind kind)
{
    switch (kind) {
    case GOAL_ENERGY:
    case GOAL_SLOWDOWN:
        return "energy";
    case GOAL_EDP:
        return "EDP";
    case GOAL_EDS:
        return "EDS";
    case GOAL_COST:
        return "cost";
    case GOAL_TIME:
        return "time";
    }
    return "goal";
}

double goal_relative(const struct goal *g, double energy_j, double time_s,
                     const struct goal_ref *ref)
{
    struct goal_shape s = goal_shape_of(g, ref);
    return goal_shape_value(&s, energy_j / ref->energy_j, time_s / ref->time_s);
}

/* The parts of energy and of time in the cost of a step at the reference, J. */
static double cost_of_energy(const struct goal *g, const struct goal_ref *ref)
{
    return g->param * ref->energy_j;
}

static double cost_of_time(const struct goal *g, const struct goal_ref *ref)
{
    return (1 - g->param) * ref->pmax_w * ref->time_s;
}

struct goal_value goal_value_of(const struct goal *g, const struct goal_step *step,
                                const struct goal_ref *ref)
{
    struct goal_shape s = goal_shape_of(g, ref);
    double e = step->energy_j / ref->energy_j, t = step->time_s / ref->time_s;

    if (s.product)
        return (struct goal_value){step->energy_j * step->time_s,
                                   hypot(step->energy_rse, step->time_rse)};
    if (g->kind != GOAL_EDS && g->kind != GOAL_COST)
        return (struct goal_value){NAN, NAN};
    double v = goal_shape_value(&s, e, t);
    double error = hypot(s.we * e * step->energy_rse, s.wt * t * step->time_rse);
    double of_ref =
        g->kind == GOAL_COST ? cost_of_energy(g, ref) + cost_of_time(g, ref) : 1;
    return (struct goal_value){of_ref * v, error / v};
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
    case GOAL_COST:
        s.we = cost_of_energy(g, ref) / (cost_of_energy(g, ref) + cost_of_time(g, ref));
        break;
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
