#include "tuner/regimes.h"

#include <stdlib.h>

#include "base/units.h"

struct stretch_ask {
    struct stretch_ask *next;
    struct regimes *of;
    struct stretch_done d;
    double least_w, most_w;
    size_t regime; /* counted from the job's first */
};

void regimes_init(struct regimes *r, struct energy_sum *meters,
                  int (*on_energy)(void *user), void *user)
{
    *r = (struct regimes){.meters = meters, .on_energy = on_energy, .user = user, .n = 1};
}

static void drop_ask(struct stretch_ask *ask)
{
    struct stretch_ask **p = &ask->of->asks;

    while (*p != ask)
        p = &(*p)->next;
    *p = ask->next;
    free(ask);
}

void regimes_fini(struct regimes *r)
{
    while (r->asks)
        drop_ask(r->asks);
}

struct savings *regimes_savings(struct regimes *r)
{
    return &r->savings[r->n - 1];
}

void regimes_add(struct regimes *r)
{
    if (r->n == TUNER_REGIMES_MAX) {
        savings_merge(r->savings, TUNER_REGIMES_MAX);
        r->n--;
        r->merged++;
    }
    r->savings[r->n++] = (struct savings){0};
    r->n_caps = 0;
}

void regimes_mean_add(struct savings_mean *m, const struct search_window *w)
{
    savings_mean_add(m, w->time_s, w->energy_j, w->time_rse, w->energy_rse);
}

void regimes_on_cap(struct regimes *r, const struct search_window *w)
{
    size_t i = 0;

    while (i < r->n_caps && r->cap[i].cap_mw != w->cap_mw)
        i++;
    if (i == TUNER_CAPS_MAX)
        return;
    if (i == r->n_caps)
        r->cap[r->n_caps++] = (struct tuner_cap){.cap_mw = w->cap_mw};
    regimes_mean_add(&r->cap[i].mean, w);
}

/* ---- stretches ---- */

/* The savings to which a stretch is booked; those of a merged regime are the oldest. */
static struct savings *savings_of(struct regimes *r, size_t regime)
{
    return &r->savings[regime > r->merged ? regime - r->merged : 0];
}

static bool in_bounds(const struct stretch_ask *ask, const struct energy_sum_window *w)
{
    double power_w = w->energy_j / s_between(w->begin_ns, w->end_ns);

    return power_w >= ask->least_w && (ask->most_w <= 0 || power_w <= ask->most_w);
}

static int on_stretch_energy(const struct energy_sum_window *w, void *user)
{
    struct stretch_ask *ask = user;
    struct regimes *r = ask->of;

    if (w->r == 0 && in_bounds(ask, w)) {
        struct savings_sum *sum = &savings_of(r, ask->regime)->sum[ask->d.kind];
        sum->steps += ask->d.steps;
        sum->time_s += s_between(w->begin_ns, w->end_ns);
        sum->energy_j += w->energy_j;
        sum->half2_j2 += w->half_j * w->half_j;
    }
    drop_ask(ask);
    r->pending--;
    return r->on_energy(r->user);
}

void regimes_book(struct regimes *r, const struct stretch_done *d, double least_w,
                  double most_w)
{
    struct stretch_ask *ask = malloc(sizeof *ask);

    if (!ask)
        return; /* the stretch's steps are lost together with its energy */
    *ask = (struct stretch_ask){r->asks, r, *d, least_w, most_w, r->merged + r->n - 1};
    r->asks = ask;
    if (energy_sum_window(r->meters, d->begin_ns, d->end_ns, on_stretch_energy, ask) < 0)
        drop_ask(ask);
    else
        r->pending++;
}

static void turn(struct regimes *r, enum stretch_kind kind)
{
    struct stretch_done d;

    if (stretch_turn(&r->stretch, kind, &d))
        regimes_book(r, &d, 0, 0);
}

void regimes_turn(struct regimes *r, enum stretch_kind kind)
{
    const struct savings *a = regimes_savings(r);

    if (kind == STRETCH_SEARCH && (a->hold.windows > 0 || a->past.sum.steps > 0))
        kind = STRETCH_SEARCH_AGAIN;
    r->after = kind;
    if (!r->rests)
        turn(r, kind);
}

void regimes_on_steps(struct regimes *r, const struct steps *steps)
{
    struct stretch_done d;

    if (stretch_feed(&r->stretch, steps, &d))
        regimes_book(r, &d, 0, 0);
}

void regimes_rest(struct regimes *r, bool rests)
{
    if (rests == r->rests)
        return;
    if (rests)
        r->after = r->stretch.kind;
    r->rests = rests;
    turn(r, rests ? STRETCH_RULED : r->after);
}

void regimes_close(struct regimes *r)
{
    struct stretch_done d;

    if (stretch_end(&r->stretch, &d))
        regimes_book(r, &d, 0, 0);
}

static void more_add(struct whole_job_more *m, const struct stretch_done *d)
{
    double s = s_between(d->begin_ns, d->end_ns);

    if (d->kind == STRETCH_REFERENCE || d->kind == STRETCH_REFERENCE_CHECK) {
        m->own_s += s;
    } else if (d->kind != STRETCH_RULED) {
        m->time_s += s;
        m->steps += d->steps;
    }
}

struct whole_job_more regimes_more(const struct regimes *r)
{
    struct whole_job_more more = {0};
    struct stretch open = r->stretch;
    struct stretch_done d;

    for (const struct stretch_ask *ask = r->asks; ask; ask = ask->next)
        if (ask->regime == r->merged + r->n - 1)
            more_add(&more, &ask->d);
    if (open.open && stretch_turn(&open, STRETCH_KINDS, &d))
        more_add(&more, &d);
    return more;
}
