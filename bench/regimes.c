#include "regimes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "base/units.h"
#include "core/optimum/search.h"

#define FREEZE_WORK 0.6   /* share of a step's work that is left … */
#define FREEZE_MEMORY 0.5 /* … share of it that does not depend on the clock … */
#define FREEZE_POWER 0.6  /* … at this part of the reference's power, or the cap */
#define WAIT_SHARE 0.25   /* of a step at the reference … */
#define WAIT_POWER 0.25   /* … at this part of its power */
#define HEAT_LEAST 0.03
#define HEAT_MOST 0.08
#define HEAT_S 600.0 /* time constant */
#define AWAY_S 300.0 /* least time of quiet and of waits, … */
#define AWAY_MORE_S 900.0
#define THERE_S 120.0
#define THERE_MORE_S 480.0 /* … and their largest addition */

const char *const regime_names[REGIME_KINDS] = {"batch", "freeze", "network",
                                                "heat",  "comes",  "steady"};

double regimes_batch(const char *name)
{
    for (int i = 0; i < 4 && name; i++) {
        name = strchr(name, '/');
        name = name ? name + 1 : NULL;
    }
    char text[16];
    double batch = 0;
    if (!name || strcspn(name, "/") >= sizeof text)
        return 0;
    (void)snprintf(text, sizeof text, "%.*s", (int)strcspn(name, "/"), name);
    return parse_double(text, &batch, NULL) == 0 ? batch : 0;
}

int regimes_are_pair(const struct record *a, const struct record *b)
{
    const char *p = a->name, *q = b->name;
    double x = regimes_batch(p), y = regimes_batch(q);

    for (int i = 0; i < 4; i++) { /* board, source, model, data set */
        size_t n = strcspn(p, "/") + 1;
        if (strncmp(p, q, n) != 0)
            return 0;
        p += n;
        q += n;
    }
    p += strcspn(p, "/"); /* optimizer, GPUs */
    q += strcspn(q, "/");
    return x > 0 && y > 0 && fabs(x - y) > 0.5 && strcmp(p, q) == 0 &&
           fabs(a->min_w - b->min_w) < 0.5 && fabs(a->max_w - b->max_w) < 0.5;
}

void regimes_init(struct regimes *r, enum regime_kind kind, const struct record *before,
                  const struct record *after, const struct goal *goal, double at_s,
                  uint64_t seed)
{
    struct rng g;

    *r = (struct regimes){.kind = kind, .before = before, .after = after, .goal = *goal};
    rng_init(&g, seed);
    r->heat = HEAT_LEAST + (HEAT_MOST - HEAT_LEAST) * rng_uniform(&g);
    if (kind == REGIME_BATCH)
        r->scale = regimes_batch(after->name) / regimes_batch(before->name);
    for (int i = 0; i < REGIME_TURNS; i++) {
        r->turn_s[i] =
            kind == REGIME_STEADY || (i > 0 && kind != REGIME_COMES) ? INFINITY : at_s;
        at_s += i % 2 ? AWAY_S + AWAY_MORE_S * rng_uniform(&g)
                      : THERE_S + THERE_MORE_S * rng_uniform(&g);
    }
}

double regimes_part(const struct regimes *r, double now_s)
{
    int turns = 0;

    while (turns < REGIME_TURNS && now_s >= r->turn_s[turns])
        turns++;
    if (r->kind == REGIME_HEAT && turns)
        return 1 - exp(-(now_s - r->turn_s[0]) / HEAT_S);
    return turns % 2;
}

static struct curve_value of(double time_s, double energy_j)
{
    return (struct curve_value){time_s, energy_j / time_s, energy_j};
}

struct curve_value regimes_at(const struct regimes *r, double cap_w, double part)
{
    struct curve_value v = curve_at(r->before->curve, cap_w);
    const struct curve_value *ref = &r->before->reference;
    double rest_s, wait_s = WAIT_SHARE * ref->time_s, hot = 1 + r->heat * part;

    if (!(part > 0))
        return v;
    switch (r->kind) {
    case REGIME_BATCH:
        v = curve_at(r->after->curve, cap_w);
        return of(r->scale * v.time_s, r->scale * v.energy_j);
    case REGIME_FREEZE:
        rest_s = FREEZE_WORK * FREEZE_MEMORY * ref->time_s;
        return of(rest_s + FREEZE_WORK * (1 - FREEZE_MEMORY) * v.time_s,
                  rest_s * fmin(FREEZE_POWER * ref->power_w, cap_w) +
                      FREEZE_WORK * (1 - FREEZE_MEMORY) * v.energy_j);
    case REGIME_NETWORK:
    case REGIME_COMES:
        return of(v.time_s + wait_s,
                  v.energy_j + wait_s * fmin(WAIT_POWER * ref->power_w, cap_w));
    case REGIME_HEAT: /* a cap now allows the clock that a lower cap allowed before */
        v = curve_at(r->before->curve, cap_w / hot);
        return of(v.time_s, hot * v.energy_j);
    default:
        return v;
    }
}

double regimes_slowdown(const struct regimes *r, double cap_w, double part)
{
    return regimes_at(r, cap_w, part).time_s /
           regimes_at(r, r->before->max_w, part).time_s;
}

static double value(const struct regimes *r, const struct goal *g, double cap_w,
                    double part)
{
    struct curve_value v = regimes_at(r, cap_w, part);
    struct curve_value ref = regimes_at(r, r->before->max_w, part);
    struct goal_ref gr = {ref.energy_j, ref.time_s, r->before->max_w};

    return goal_relative(g, v.energy_j, v.time_s, &gr);
}

/* The oracle is computed once in each of REGIME_PARTS parts of the change. */
static int find_oracle(struct regimes *r, double part)
{
    int k = (int)lround(part * REGIME_PARTS);
    double best = INFINITY, at = (double)k / REGIME_PARTS;
    struct curve_value ref = regimes_at(r, r->before->max_w, at);
    double floor_w = fmax(r->before->min_w, SEARCH_FLOOR * ref.power_w);

    if (r->oracle_w[k] > 0)
        return k;
    for (unsigned below = 0; floor(r->before->max_w) - below >= floor_w; below++) {
        double w = floor(r->before->max_w) - below;
        double v = value(r, &r->goal, w, at);
        if (v < best) {
            best = v;
            r->oracle_w[k] = w;
            r->oracle[k] = v;
        }
    }
    return k;
}

double regimes_oracle_w(struct regimes *r, double part)
{
    return r->oracle_w[find_oracle(r, part)];
}

double regimes_worth(struct regimes *r, double cap_w, double part)
{
    struct goal energy = {.kind = GOAL_ENERGY};
    const struct goal *g = r->goal.kind == GOAL_SLOWDOWN ? &energy : &r->goal;

    return value(r, g, cap_w, part) / value(r, g, regimes_oracle_w(r, part), part);
}
