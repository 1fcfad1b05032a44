#include "tuner/savings.h"

#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "base/units.h"

#define LEAST_RSE 0.001
#define Z95 1.96

static bool stretch_close(struct stretch *s, struct stretch_done *ret)
{
    double steps, seconds;

    s->open = false;
    if (!steps_between(&s->from, &s->to, &steps, &seconds) || seconds <= 0)
        return false;
    *ret = (struct stretch_done){s->kind, s->from.at_ns, s->to.at_ns, steps};
    return true;
}

bool stretch_feed(struct stretch *s, const struct steps *steps, struct stretch_done *ret)
{
    const struct step_mark *mark = &steps->mark;
    bool usable = steps_known(steps) && steps_training(steps);
    bool ended = false;

    if (s->open && (!steps_known(steps) || mark->generation != s->to.generation))
        return stretch_close(s, ret);
    if (s->open) {
        s->to = *mark;
        if (!usable || s_between(s->from.at_ns, s->to.at_ns) >= STRETCH_MOST_S)
            ended = stretch_close(s, ret);
    }
    /* A step that ended before the phase began may include the pause before it. */
    if (!s->open && usable && mark->at_ns > steps->phase_ns) {
        s->open = true;
        s->from = s->to = *mark;
    }
    return ended;
}

bool stretch_turn(struct stretch *s, enum stretch_kind kind, struct stretch_done *ret)
{
    if (s->kind == kind)
        return false;
    bool was = s->open;
    struct step_mark at = s->to;
    bool ended = was && stretch_close(s, ret);
    s->kind = kind;
    if (was) {
        s->open = true;
        s->from = s->to = at;
    }
    return ended;
}

bool stretch_end(struct stretch *s, struct stretch_done *ret)
{
    return s->open && stretch_close(s, ret);
}

static double weight(double rse)
{
    return 1 / (fmax(rse, LEAST_RSE) * fmax(rse, LEAST_RSE));
}

void savings_mean_add(struct savings_mean *m, double time_s, double energy_j,
                      double time_rse, double energy_rse)
{
    double wt = weight(time_rse), we = weight(energy_rse);

    m->windows++;
    m->sum_wt += wt;
    m->sum_t += wt * time_s;
    m->sum_t2 += wt * time_s * time_s;
    m->sum_we += we;
    m->sum_e += we * energy_j;
    m->sum_e2 += we * energy_j * energy_j;
}

double savings_mean_time(const struct savings_mean *m)
{
    return m->sum_wt > 0 ? m->sum_t / m->sum_wt : 0;
}

double savings_mean_energy(const struct savings_mean *m)
{
    return m->sum_we > 0 ? m->sum_e / m->sum_we : 0;
}

/* The larger of 1/sqrt(sum of weights) and the weighted scatter of the windows. */
static double mean_rse(unsigned windows, double sum_w, double sum, double sum2)
{
    if (windows == 0 || !(sum > 0))
        return 0;
    double claimed = 1 / sqrt(sum_w), mean = sum / sum_w;
    if (windows < 2)
        return claimed;
    double variance = fmax(sum2 / sum_w - mean * mean, 0);
    return fmax(claimed, sqrt(variance / (windows - 1)) / mean);
}

double savings_mean_time_rse(const struct savings_mean *m)
{
    return mean_rse(m->windows, m->sum_wt, m->sum_t, m->sum_t2);
}

double savings_mean_energy_rse(const struct savings_mean *m)
{
    return mean_rse(m->windows, m->sum_we, m->sum_e, m->sum_e2);
}

static struct savings_sum add(const struct savings_sum *a, const struct savings_sum *b)
{
    return (struct savings_sum){a->steps + b->steps, a->time_s + b->time_s,
                                a->energy_j + b->energy_j, a->half2_j2 + b->half2_j2};
}

static double squared(double v)
{
    return v * v;
}

/* The hold under way, and its cost at the reference cap. */
static struct savings_past hold_of(const struct savings *a)
{
    const struct savings_sum *hold = &a->sum[STRETCH_HOLD];
    struct savings_past out = {.sum = *hold};
    struct counterfactual_said said = counterfactual_said(&a->pairs);

    if (!said.known) {
        out.mean_steps = hold->steps;
        return out;
    }
    out.would_s = hold->time_s * said.time;
    out.would_j = hold->energy_j * said.energy;
    out.would_half2_s2 = squared(hold->time_s * said.time_half);
    out.would_half2_j2 = squared(hold->energy_j * said.energy_half);
    return out;
}

static void past_add(struct savings_past *to, const struct savings_past *p)
{
    to->sum = add(&to->sum, &p->sum);
    to->mean_steps += p->mean_steps;
    to->would_s += p->would_s;
    to->would_j += p->would_j;
    to->would_half2_s2 += p->would_half2_s2;
    to->would_half2_j2 += p->would_half2_j2;
}

/* The same within one regime, where the references have errors in common. */
static void past_add_own(struct savings_past *to, const struct savings_past *p)
{
    double half_s = sqrt(to->would_half2_s2) + sqrt(p->would_half2_s2);
    double half_j = sqrt(to->would_half2_j2) + sqrt(p->would_half2_j2);

    past_add(to, p);
    to->would_half2_s2 = squared(half_s);
    to->would_half2_j2 = squared(half_j);
}

/* Compares mean_steps with the mean of the reference windows; the error is common to all
 * of these steps.
 */
static void compare_with_mean(const struct savings *a, struct savings_past *p)
{
    double time_s = p->mean_steps * savings_mean_time(&a->reference);
    double energy_j = p->mean_steps * savings_mean_energy(&a->reference);
    struct wander_vars wander = wander_over(&a->pairs.wander, time_s / 2);
    double var_t = squared(savings_mean_time_rse(&a->reference)) + wander.t;
    double var_e = squared(savings_mean_energy_rse(&a->reference)) + wander.e;
    struct savings_past mean = {
        .would_s = time_s,
        .would_j = energy_j,
        .would_half2_s2 = squared(Z95 * time_s) * var_t,
        .would_half2_j2 = squared(Z95 * energy_j) * var_e,
    };

    past_add_own(p, &mean);
    p->mean_steps = 0;
}

void savings_hold_anew(struct savings *a)
{
    struct savings_past p = hold_of(a);

    if (a->reference.windows > 0)
        past_add_own(&a->past, &p);
    a->past_pairs += a->pairs.pairs;
    counterfactual_hold_anew(&a->pairs);
    a->sum[STRETCH_HOLD] = (struct savings_sum){0};
    a->hold = (struct savings_mean){0};
}

void savings_reference_anew(struct savings *a)
{
    savings_hold_anew(a);
    compare_with_mean(a, &a->past);
    a->reference = (struct savings_mean){0};
    a->pairs.reference.known = false;
}

void savings_reference_lost(struct savings *a)
{
    savings_reference_anew(a);
    a->past = (struct savings_past){.sum = a->past.sum};
}

static double own_time_s(const struct savings *a)
{
    double s = a->past.sum.time_s;

    for (size_t k = 0; k < STRETCH_KINDS; k++)
        s += a->sum[k].time_s;
    return s;
}

double savings_time_s(const struct savings *a, size_t n)
{
    double s = 0;

    for (size_t i = 0; i < n; i++)
        s += own_time_s(&a[i]) + a[i].older.booked_s;
    return s;
}

static void totals_add(struct savings_totals *to, const struct savings_totals *t)
{
    to->regimes += t->regimes;
    to->compared += t->compared;
    to->held += t->held;
    to->pairs += t->pairs;
    to->booked_s += t->booked_s;
    to->search_s += t->search_s;
    to->search_steps += t->search_steps;
    to->visits_s += t->visits_s;
    to->back_s += t->back_s;
    to->cost_j += t->cost_j;
    to->cost_s += t->cost_s;
    to->visits_cost_j += t->visits_cost_j;
    past_add(&to->past, &t->past);
}

/* Adds steps between holds, assuming the reference cost of a step in the holds. */
static void compare_with_holds(const struct savings *a, struct savings_past *p)
{
    struct savings_sum again = add(&a->sum[STRETCH_SEARCH_AGAIN], &a->sum[STRETCH_BACK]);
    double more = p->sum.steps > 0 ? 1 + again.steps / p->sum.steps : 1;

    p->mean_steps = more > 1 ? p->mean_steps * more : p->mean_steps + again.steps;
    p->sum = add(&p->sum, &again);
    p->would_s *= more;
    p->would_j *= more;
    p->would_half2_s2 *= more * more;
    p->would_half2_j2 *= more * more;
}

/* Adds regime a and the older ones merged into it. */
static void add_regime(const struct savings *a, struct savings_totals *to)
{
    struct savings_sum first = add(&a->sum[STRETCH_REFERENCE], &a->sum[STRETCH_SEARCH]);
    struct savings_sum search = add(&first, &a->sum[STRETCH_SEARCH_AGAIN]);
    const struct savings_sum *check = &a->sum[STRETCH_REFERENCE_CHECK];

    totals_add(to, &a->older);
    to->regimes++;
    to->booked_s += own_time_s(a);
    to->search_s += search.time_s;
    to->search_steps += search.steps;
    to->visits_s += check->time_s;
    to->back_s += a->sum[STRETCH_BACK].time_s;
    to->pairs += a->pairs.pairs + a->past_pairs;
    if (a->reference.windows == 0 || own_time_s(a) <= 0)
        return;
    to->compared++;
    struct savings_past regime = hold_of(a);
    struct savings_past before = {.sum = first, .mean_steps = first.steps};
    struct savings_sum alone = {check->steps, check->time_s, check->energy_j, 0};
    struct savings_past checked = {.sum = alone, /* compared with its own cost */
                                   .would_s = check->time_s,
                                   .would_j = check->energy_j};
    past_add_own(&regime, &a->past);
    compare_with_holds(a, &regime);
    past_add_own(&regime, &before);
    past_add_own(&regime, &checked);
    compare_with_mean(a, &regime);
    past_add(&to->past, &regime);
    to->held += a->hold.windows > 0 || a->past.sum.steps > 0;
    if (a->hold.windows > 0) {
        to->cost_j += search.energy_j - search.steps * savings_mean_energy(&a->hold);
        to->cost_s += search.time_s - search.steps * savings_mean_time(&a->hold);
        to->visits_cost_j +=
            check->energy_j - check->steps * savings_mean_energy(&a->hold);
    }
}

void savings_merge(struct savings *a, size_t n)
{
    struct savings_totals older = {0};

    add_regime(&a[0], &older);
    totals_add(&a[1].older, &older);
    memmove(a, a + 1, (n - 1) * sizeof *a);
}

/* The slowdown of the hold under way. */
static double held_slowdown(const struct savings *a)
{
    struct counterfactual_said said = counterfactual_said(&a->pairs);

    if (a->hold.windows == 0 || a->reference.windows == 0)
        return 0;
    return said.known ? 1 / said.time
                      : savings_mean_time(&a->hold) / savings_mean_time(&a->reference);
}

void savings_saved(const struct savings *a, size_t n, struct savings_saved *ret)
{
    struct savings_totals t = {0};
    const struct savings_past *all = &t.past;

    for (size_t i = 0; i < n; i++)
        add_regime(&a[i], &t);
    *ret = (struct savings_saved){
        .known = t.compared > 0 && t.held > 0,
        .cost_known = t.held > 0,
        .search_s = t.search_s,
        .search_steps = t.search_steps,
        .cost_j = t.cost_j,
        .cost_s = t.cost_s,
        .pairs = t.pairs,
        .visits_s = t.visits_s,
        .visits_cost_j = t.visits_cost_j,
        .back_s = t.back_s,
        .held_slowdown = n > 0 ? held_slowdown(&a[n - 1]) : 0,
    };
    if (!ret->known)
        return;
    ret->steps = all->sum.steps;
    ret->energy_j = all->would_j - all->sum.energy_j;
    ret->half_j = sqrt(all->would_half2_j2 + all->sum.half2_j2);
    ret->fraction = ret->energy_j / all->would_j;
    ret->half = ret->half_j / all->would_j;
    ret->slowdown = all->sum.time_s / all->would_s;
    ret->slowdown_half = sqrt(all->would_half2_s2) / all->would_s * ret->slowdown;
}

/* Adds the part of regime a that can be compared. */
static void add_whole(const struct savings *a, struct savings_past *to)
{
    const struct savings_sum *search = &a->sum[STRETCH_SEARCH];
    struct savings_sum own =
        add(&a->sum[STRETCH_REFERENCE], &a->sum[STRETCH_REFERENCE_CHECK]);
    struct savings_past first = {.sum = *search, .mean_steps = search->steps};
    struct savings_past at_own = {.sum = own, .would_s = own.time_s};

    if (a->reference.windows == 0) {
        past_add(to, &at_own);
        return;
    }
    struct savings_past regime = hold_of(a);
    past_add_own(&regime, &a->past);
    compare_with_holds(a, &regime);
    past_add_own(&regime, &first);
    past_add_own(&regime, &at_own);
    compare_with_mean(a, &regime);
    past_add(to, &regime);
}

struct savings_whole savings_whole(const struct savings *a, size_t n)
{
    struct savings_past all = {.would_s = 0};

    for (size_t i = 0; i < n; i++) {
        past_add(&all, &a[i].older.past);
        add_whole(&a[i], &all);
    }
    return (struct savings_whole){all.sum.time_s, all.would_s, sqrt(all.would_half2_s2)};
}
