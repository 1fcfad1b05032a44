#include "node/account.h"

#include <math.h>

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
    /* a step that ended before this phase was seen may hold the pause before it */
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

void account_mean_add(struct account_mean *m, double time_s, double energy_j,
                      double time_rse, double energy_rse)
{
    double rse = fmax(fmax(time_rse, energy_rse), LEAST_RSE);
    double w = 1 / (rse * rse);

    m->windows++;
    m->sum_w += w;
    m->sum_wt += w * time_s;
    m->sum_we += w * energy_j;
    m->sum_wt2 += w * time_s * time_s;
    m->sum_we2 += w * energy_j * energy_j;
}

double account_mean_time(const struct account_mean *m)
{
    return m->sum_w > 0 ? m->sum_wt / m->sum_w : 0;
}

double account_mean_energy(const struct account_mean *m)
{
    return m->sum_w > 0 ? m->sum_we / m->sum_w : 0;
}

/* Claimed: 1/sqrt(sum of weights).  Seen: weighted scatter of the windows. */
static double mean_rse(const struct account_mean *m, double mean, double mean2)
{
    if (m->windows == 0 || mean <= 0)
        return 0;
    double claimed = 1 / sqrt(m->sum_w);
    if (m->windows < 2)
        return claimed;
    double variance = fmax(mean2 - mean * mean, 0);
    return fmax(claimed, sqrt(variance / (m->windows - 1)) / mean);
}

double account_mean_time_rse(const struct account_mean *m)
{
    return mean_rse(m, account_mean_time(m), m->sum_w > 0 ? m->sum_wt2 / m->sum_w : 0);
}

double account_mean_energy_rse(const struct account_mean *m)
{
    return mean_rse(m, account_mean_energy(m), m->sum_w > 0 ? m->sum_we2 / m->sum_w : 0);
}

static struct account_sum add(const struct account_sum *a, const struct account_sum *b)
{
    return (struct account_sum){a->steps + b->steps, a->time_s + b->time_s,
                                a->energy_j + b->energy_j, a->half2_j2 + b->half2_j2};
}

/* What regime a adds: energy and time that its steps would have taken. */
static void add_regime(const struct account *a, struct account_saved *ret,
                       double *would_j, double *would_s, double *half2)
{
    struct account_sum search = add(&a->sum[STRETCH_REFERENCE], &a->sum[STRETCH_SEARCH]);
    struct account_sum all = add(&search, &a->sum[STRETCH_HOLD]);

    ret->search_s += search.time_s;
    ret->search_steps += search.steps;
    if (a->reference.windows == 0 || all.steps <= 0)
        return;
    double e_would = all.steps * account_mean_energy(&a->reference);
    double t_would = all.steps * account_mean_time(&a->reference);
    double e_err = Z95 * account_mean_energy_rse(&a->reference) * e_would;
    double t_err = Z95 * account_mean_time_rse(&a->reference) * t_would;
    ret->known = true;
    ret->steps += all.steps;
    ret->energy_j += e_would - all.energy_j;
    ret->slowdown += all.time_s;
    ret->slowdown_half += t_err * t_err;
    *would_j += e_would;
    *would_s += t_would;
    *half2 += e_err * e_err + all.half2_j2;
    if (a->hold.windows > 0) {
        ret->cost_known = true;
        ret->cost_j += search.energy_j - search.steps * account_mean_energy(&a->hold);
        ret->cost_s += search.time_s - search.steps * account_mean_time(&a->hold);
    }
}

void account_saved(const struct account *a, size_t n, struct account_saved *ret)
{
    struct account_saved out = {0};
    double would_j = 0, would_s = 0, half2 = 0;

    for (size_t i = 0; i < n; i++)
        add_regime(&a[i], &out, &would_j, &would_s, &half2);
    if (out.known) {
        out.half_j = sqrt(half2);
        out.fraction = out.energy_j / would_j;
        out.half = out.half_j / would_j;
        out.slowdown /= would_s;
        out.slowdown_half = sqrt(out.slowdown_half) / would_s * out.slowdown;
    }
    *ret = out;
}
