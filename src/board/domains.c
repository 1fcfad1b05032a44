#include "board/domains.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "core/meter/points.h"

enum {
    LOOK_MS = 1000,
    READ_MS = 200,  /* least time between two values */
    RETRY_S = 60,   /* after a failed read */
    FRESH_S = 5,    /* time after the last value for which its power is valid */
    HISTORY_S = 60, /* history of a meter; stretches are queried sooner */
};

struct domain {
    struct domains *of;
    struct domain_view view;
    char name[32];
    bool busy;        /* without a sampler: a read is under way */
    uint64_t wait_ns; /* without a sampler: earliest next read */
    bool has_first;
    uint64_t last_mj;           /* value of the counter at view.last_ns */
    uint64_t shown_at_ns;       /* time of the shown value */
    struct points exact, shown; /* their values over time */
};

struct domains {
    struct domains_opts opts;
    struct boards *set;
    struct loop_timer *timer;
    struct domain domain[DOMAINS_MAX];
    size_t n;
};

/* ---- values ---- */

static void take_sample(struct domain *d, const struct gpu_sample *s, double least_s)
{
    struct domain_view *v = &d->view;
    double dt = s_between(v->last_ns, s->energy_at_ns);

    if (!(s->has & GPU_HAS_ENERGY) || (d->has_first && s->energy_at_ns <= v->last_ns))
        return;
    if (d->has_first && dt < least_s)
        return;
    v->power_w.known = d->has_first && s->energy_mj >= d->last_mj; /* else a reset */
    if (v->power_w.known) {
        double j = (double)(s->energy_mj - d->last_mj) * 1e-3;
        v->energy_j += j;
        v->power_w.v = j / dt;
    }
    d->has_first = true;
    d->last_mj = s->energy_mj;
    v->last_ns = s->energy_at_ns;
    points_add(&d->exact, v->last_ns, v->energy_j);
}

/* Computes power from whole joules as well, so that it reveals no finer energy. */
static void renew_shown(struct domain *d, uint64_t now_ns, uint64_t period_ns)
{
    struct domain_view *v = &d->view;
    double j = floor(v->energy_j / DOMAINS_STEP_J) * DOMAINS_STEP_J;
    double wait_s = s_of_ns(period_ns) - LOOK_MS * 1e-3 / 4;

    if (!d->has_first || (v->shown_ns && s_between(v->shown_ns, now_ns) < wait_s))
        return;
    double dt = s_between(d->shown_at_ns, v->last_ns);
    v->shown_w.known = v->shown_ns && dt > 0;
    v->shown_w.v = v->shown_w.known ? (j - v->shown_j) / dt : 0;
    v->shown_j = j;
    v->shown_ns = now_ns;
    d->shown_at_ns = v->last_ns;
    points_add(&d->shown, v->last_ns, j);
}

size_t domains_count(const struct domains *d)
{
    return d ? d->n : 0;
}

const struct domain_view *domains_at(const struct domains *d, size_t i)
{
    return &d->domain[i].view;
}

bool domains_between(const struct domains *d, size_t i, bool exact, uint64_t begin_ns,
                     uint64_t end_ns, double *ret_j, double *ret_half_j)
{
    const struct domain *one = &d->domain[i];

    return points_between(exact ? &one->exact : &one->shown, begin_ns, end_ns,
                          exact ? 0 : DOMAINS_STEP_J,
                          d->opts.shown_ns + FRESH_S * NS_PER_S, ret_j, ret_half_j);
}

/* ---- the counters ---- */

static void refused(struct domain *d, int r, const uw_error *err)
{
    const struct domains_opts *o = &d->of->opts;

    d->view.r = r;
    d->view.error = *err;
    if (o->on_refused)
        o->on_refused(err, o->user);
}

static void looked(struct domain *d)
{
    const struct domains_opts *o = &d->of->opts;

    if (o->on_look)
        o->on_look((size_t)(d - d->of->domain), o->user);
}

/* Starts the sampler, once the counter has proved readable. */
static void begin_sampling(struct domain *d, struct board *board)
{
    struct sampler_opts opts = {.rest_ns = LOOK_MS * NS_PER_MS,
                                .seed = (uint64_t)(d - d->of->domain) + 1,
                                .history_s = HISTORY_S};
    uw_error err = {""};

    int r = sampler_new(d->of->opts.loop, &board, 1, &opts, &d->view.sampler, &err);
    if (r < 0) {
        refused(d, r, &err);
        return;
    }
    sampler_rate(d->view.sampler, 0, SAMPLER_REST, false);
    looked(d);
}

static int on_sample(struct board *b, int r, const struct gpu_sample *s,
                     const uw_error *err, void *user)
{
    struct domains *c = user;
    size_t i = board_view(b)->at;

    if (r == -ECANCELED || i >= c->n)
        return 0;
    struct domain *d = &c->domain[i];
    d->busy = false;
    if (r == 0) {
        take_sample(d, s, READ_MS * 1e-3);
        if (!d->view.sampler)
            begin_sampling(d, b);
    } else if (!d->view.sampler) {
        d->wait_ns = loop_now_ns(c->opts.loop) + RETRY_S * NS_PER_S;
        refused(d, r, err);
    }
    return 0;
}

static void read_one(struct domain *d, size_t i)
{
    struct domains *c = d->of;

    if (!d->busy)
        d->busy = board_sample(boards_at(c->set, i), GPU_HAS_ENERGY, on_sample, c) == 0;
}

void domains_read(struct domains *c)
{
    for (size_t i = 0; c && i < c->n; i++) {
        struct domain *d = &c->domain[i];
        uint64_t now = loop_now_ns(c->opts.loop);
        if (d->view.sampler && s_between(d->view.last_ns, now) >= READ_MS * 1e-3)
            read_one(d, i);
    }
}

static void look_at(struct domain *d, size_t i, uint64_t now_ns)
{
    if (!d->view.sampler) {
        if (now_ns >= d->wait_ns)
            read_one(d, i);
        return;
    }
    const struct sampler_now *now = sampler_board(d->view.sampler, 0);
    if (now->failures == 0)
        take_sample(d, &now->last, LOOK_MS * 1e-3 / 2);
    looked(d);
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct domains *c = user;
    (void)timer;

    for (size_t i = 0; i < c->n; i++) {
        look_at(&c->domain[i], i, now_ns);
        renew_shown(&c->domain[i], now_ns, c->opts.shown_ns);
    }
    return 0;
}

static void take_domains(struct domains *c, struct boards *set)
{
    c->n = boards_count(set) < DOMAINS_MAX ? boards_count(set) : DOMAINS_MAX;
    for (size_t i = 0; i < c->n; i++) {
        const struct board_view *v = board_view(boards_at(set, i));
        struct domain *d = &c->domain[i];
        d->of = c;
        memcpy(d->name, v->info->domain, sizeof d->name);
        d->view.name = d->name;
        d->view.uuid = v->info->uuid;
        if (v->has_first)
            take_sample(d, &v->first, 0);
    }
    if (c->n > 0)
        loop_timer_set(c->timer, loop_now_ns(c->opts.loop), LOOK_MS * NS_PER_MS);
}

static int on_open(struct boards *set, int r, const uw_error *err, void *user)
{
    struct domains *c = user;

    if (r == 0)
        take_domains(c, set);
    return c->opts.on_open(r, err, c->opts.user);
}

int domains_new(const struct domains_opts *opts, struct domains **ret, uw_error *err)
{
    auto_(domains_free) struct domains *c = calloc(1, sizeof *c);

    if (!c)
        return fail(err, -ENOMEM, "out of memory");
    c->opts = *opts;
    int r = loop_timer_new(opts->loop, UINT64_MAX, 0, on_timer, c, &c->timer, err);
    if (r == 0)
        r = boards_open(opts->loop, opts->backend, &opts->gpu, on_open, c, &c->set, err);
    if (r < 0)
        return r;
    *ret = take(c);
    return 0;
}

void domains_free(struct domains *c)
{
    if (!c)
        return;
    loop_timer_free(c->timer);
    for (size_t i = 0; i < c->n; i++)
        sampler_free(c->domain[i].view.sampler);
    boards_free(c->set);
    free(c);
}

void domains_period(struct domains *c, uint64_t shown_ns)
{
    if (c)
        c->opts.shown_ns = shown_ns;
}

void domains_retry(struct domains *c)
{
    for (size_t i = 0; c && i < c->n; i++)
        c->domain[i].wait_ns = 0;
}
