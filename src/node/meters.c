#include "node/meters.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"

enum {
    ASKS_MAX = 32,
    POLL_MS = 50,   /* between looks whether the samples have come */
    LATE_MS = 2000, /* a window is answered at last (the wall's time) */
};

/* One board's window, computed in the shop's thread on a copy of its meter. */
struct piece_work {
    struct meters_shop *shop;
    struct meters *meters; /* NULL: freed meanwhile */
    struct meter *copy;
    uint64_t begin_ns, end_ns;
    struct meter_result result;
    double peak_w;
    uw_error error;
};

struct ask {
    struct ask *next; /* in the order in which they came */
    uint64_t late_ns;
    size_t at; /* place of the next board: sampler, and board of it */
    size_t board;
    double half2;
    struct meters_window out;
    meters_fn fn;
    void *user;
    struct meters *meters;
};

struct meters {
    struct loop *loop;
    struct meters_shop *shop;
    struct meters *next; /* of the shop's */
    struct sampler **sampler;
    size_t n;
    struct ask *asks;
    size_t n_asks;
    struct loop_timer *timer;
    struct piece_work *work; /* in the shop */
};

struct meters_shop {
    struct loop_worker *worker;
    struct meters *all; /* the one that was served last goes to the end */
    bool busy;
};

static int serve(struct meters_shop *shop);

/* ---- the shop ---- */

int meters_shop_new(struct loop *loop, struct meters_shop **ret, uw_error *err)
{
    struct meters_shop *shop = calloc(1, sizeof *shop);

    if (!shop)
        return fail(err, -ENOMEM, "out of memory");
    int r = loop_worker_new(loop, "meters", &shop->worker, err);
    if (r < 0) {
        free(shop);
        return r;
    }
    *ret = shop;
    return 0;
}

void meters_shop_free(struct meters_shop *shop)
{
    if (!shop)
        return;
    loop_worker_free(shop->worker);
    free(shop);
}

static void shop_join(struct meters_shop *shop, struct meters *m)
{
    struct meters **p = &shop->all;
    while (*p)
        p = &(*p)->next;
    m->next = NULL;
    *p = m;
}

static void shop_leave(struct meters_shop *shop, struct meters *m)
{
    for (struct meters **p = &shop->all; *p; p = &(*p)->next)
        if (*p == m) {
            *p = m->next;
            return;
        }
}

static void piece_free(struct piece_work *p)
{
    meter_free(p->copy);
    free(p);
}

static int piece_compute(struct loop *loop, void *work)
{
    struct piece_work *p = work;
    (void)loop;

    int r = meter_window(p->copy, p->begin_ns, p->end_ns, &p->result, &p->error);
    if (r >= 0)
        (void)meter_peak(p->copy, p->begin_ns, p->end_ns, &p->peak_w, NULL);
    return r;
}

/* ---- windows ---- */

static int answer(struct meters *m, struct ask *a)
{
    struct meters_window out = a->out;
    meters_fn fn = a->fn;
    void *user = a->user;

    for (struct ask **p = &m->asks; *p; p = &(*p)->next)
        if (*p == a) {
            *p = a->next;
            break;
        }
    m->n_asks--;
    free(a);
    out.half_j = sqrt(out.half_j);
    return fn(&out, user);
}

static int piece_done(struct loop *loop, void *work, int r)
{
    struct piece_work *p = work;
    struct meters_shop *shop = p->shop;
    struct meters *m = p->meters;
    (void)loop;

    if (r == -ECANCELED) { /* the shop closes */
        piece_free(p);
        return 0;
    }
    shop->busy = false;
    if (m) {
        struct ask *a = m->asks;
        m->work = NULL;
        a->out.r = r;
        a->out.error = p->error;
        a->out.energy_j += p->result.energy_j;
        a->out.half_j += p->result.half_j * p->result.half_j; /* squared until told */
        a->out.why |= p->result.why;
        if (p->peak_w > a->out.peak_w)
            a->out.peak_w = p->peak_w;
    }
    piece_free(p);
    return serve(shop);
}

/* The next board of the first window of m, if there is one left. */
static struct meter *next_meter(struct meters *m, struct ask *a)
{
    while (a->at < m->n && a->board >= sampler_count(m->sampler[a->at])) {
        a->at++;
        a->board = 0;
    }
    if (a->at >= m->n || a->out.r < 0)
        return NULL;
    return sampler_meter(m->sampler[a->at], a->board++);
}

static bool samples_came(const struct meters *m, const struct ask *a, uint64_t now)
{
    if (now >= a->late_ns || a->at > 0 || a->board > 0)
        return true;
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < sampler_count(m->sampler[i]); k++) {
            struct meter *meter = sampler_meter(m->sampler[i], k);
            struct meter_state state;
            meter_state(meter, &state);
            if (state.last_ns < meter_ready(meter, a->out.end_ns))
                return false;
        }
    return true;
}

/* A copy of the next board's meter goes to the thread.  Returns 1 when it did. */
static int hand_in(struct meters *m, struct ask *a, struct meter *meter)
{
    struct piece_work *p = calloc(1, sizeof *p);

    if (p)
        p->copy = meter_clone(meter);
    if (!p || !p->copy) {
        free(p);
        a->out.r = fail(&a->out.error, -ENOMEM, "out of memory");
        return 0;
    }
    p->shop = m->shop;
    p->meters = m;
    p->begin_ns = a->out.begin_ns;
    p->end_ns = a->out.end_ns;
    struct loop_work work = {.fn = piece_compute, .done = piece_done, .work = p};
    int r = loop_worker_submit(m->shop->worker, &work);
    if (r < 0) {
        piece_free(p);
        a->out.r = fail(&a->out.error, r, "the thread that computes is not there");
        return 0;
    }
    m->work = p;
    m->shop->busy = true;
    return 1;
}

/* The shop is free: whose turn is it?  Answers windows that are whole. */
static int serve(struct meters_shop *shop)
{
    struct meters *m = shop->all;

    while (m && !shop->busy) {
        struct meters *next = m->next;
        struct ask *a = m->asks;
        if (a && samples_came(m, a, loop_now_ns(m->loop))) {
            struct meter *meter = next_meter(m, a);
            if (meter && hand_in(m, a, meter)) {
                shop_leave(shop, m);
                shop_join(shop, m);
                return 0;
            }
            /* who is told may free any of us: begin again from the timer */
            loop_timer_set(m->timer, loop_now_ns(m->loop), 0);
            return answer(m, a);
        }
        m = next;
    }
    return 0;
}

static int meters_on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct meters *m = user;

    if (m->asks)
        loop_timer_set(timer, now_ns + POLL_MS * NS_PER_MS, 0);
    return m->shop->busy ? 0 : serve(m->shop);
}

static uint64_t late_of(const struct meters *m, uint64_t end_ns)
{
    uint64_t ready = end_ns;

    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < sampler_count(m->sampler[i]); k++) {
            uint64_t at = meter_ready(sampler_meter(m->sampler[i], k), end_ns);
            if (at > ready)
                ready = at;
        }
    return ready + (uint64_t)(LATE_MS * 1e6 * fmax(1, loop_speed(m->loop)));
}

/* ---- without a shop: the sampler's own windows ---- */

static int on_sampler_window(struct sampler *s, const struct sampler_window *w,
                             void *user)
{
    struct ask *a = user;
    struct meters *m = a->meters;
    (void)s;

    a->out.r = w->r;
    a->out.error = w->error;
    a->out.energy_j = w->energy_j;
    a->out.half_j = w->half_j * w->half_j;
    a->out.peak_w = w->peak_w;
    a->out.why = w->why;
    return answer(m, a);
}

static void add(struct meters *m, struct ask *a)
{
    struct ask **p = &m->asks;
    while (*p)
        p = &(*p)->next;
    *p = a;
    m->n_asks++;
}

int meters_window(struct meters *m, uint64_t begin_ns, uint64_t end_ns, meters_fn fn,
                  void *user)
{
    if (m->n_asks >= ASKS_MAX)
        return -EAGAIN;
    struct ask *a = calloc(1, sizeof *a);
    if (!a)
        return -ENOMEM;
    a->out.begin_ns = begin_ns;
    a->out.end_ns = end_ns;
    a->fn = fn;
    a->user = user;
    a->meters = m;
    if (!m->shop) {
        int r = sampler_window(m->sampler[0], begin_ns, end_ns, on_sampler_window, a);
        if (r < 0) {
            free(a);
            return r;
        }
        add(m, a);
        return 0;
    }
    a->late_ns = late_of(m, end_ns);
    add(m, a);
    if (m->n_asks == 1)
        loop_timer_set(m->timer, loop_now_ns(m->loop), 0);
    return 0;
}

void meters_mark(struct meters *m, uint64_t at_ns)
{
    for (size_t i = 0; i < m->n; i++)
        sampler_mark(m->sampler[i], at_ns);
}

/* ---- life ---- */

int meters_new(const struct meters_opts *opts, struct meters **ret, uw_error *err)
{
    if (opts->n == 0 || (!opts->shop && opts->n != 1))
        return fail(err, -EINVAL, "%zu samplers and no thread to add them up", opts->n);
    auto_(meters_free) struct meters *m = calloc(1, sizeof *m);
    if (!m)
        return fail(err, -ENOMEM, "out of memory");
    m->loop = opts->loop;
    m->sampler = calloc(opts->n, sizeof *m->sampler);
    if (!m->sampler)
        return fail(err, -ENOMEM, "out of memory");
    m->n = opts->n;
    memcpy(m->sampler, opts->sampler, opts->n * sizeof *m->sampler);
    if (opts->shop) {
        int r =
            loop_timer_new(opts->loop, UINT64_MAX, 0, meters_on_timer, m, &m->timer, err);
        if (r < 0)
            return r;
        m->shop = opts->shop;
        shop_join(m->shop, m);
    }
    *ret = take(m);
    return 0;
}

void meters_free(struct meters *m)
{
    if (!m)
        return;
    if (m->shop)
        shop_leave(m->shop, m);
    if (m->work)
        m->work->meters = NULL; /* its callback frees it */
    while (m->asks) {
        struct ask *a = m->asks;
        m->asks = a->next;
        free(a);
    }
    loop_timer_free(m->timer);
    free(m->sampler);
    free(m);
}
