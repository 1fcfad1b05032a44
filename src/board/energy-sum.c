#include "board/energy-sum.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct ask {
    struct ask *next;
    struct energy_sum *meters;
    size_t pending; /* samplers without an answer */
    double half2;
    struct energy_sum_window out;
    energy_sum_fn fn;
    void *user;
};

struct energy_sum {
    struct sampler **sampler;
    size_t n;
    struct ask *asks;
};

static void drop(struct energy_sum *m, struct ask *a)
{
    for (struct ask **p = &m->asks; *p; p = &(*p)->next)
        if (*p == a) {
            *p = a->next;
            break;
        }
    free(a);
}

static int on_window(struct sampler *s, const struct sampler_window *w, void *user)
{
    struct ask *a = user;
    size_t first = 0;

    for (size_t k = 0; k < a->meters->n && a->meters->sampler[k] != s; k++)
        first += sampler_count(a->meters->sampler[k]);
    for (size_t i = 0; w->r == 0 && i < w->n && first + i < BOARDS_MAX; i++)
        a->out.board_j[first + i] = w->board[i].energy_j;
    if (w->r < 0) {
        a->out.r = w->r;
        a->out.error = w->error;
    }
    a->out.energy_j += w->energy_j;
    a->half2 += w->half_j * w->half_j;
    a->out.why |= w->why;
    a->out.binding = binding_both(a->out.binding, w->binding);
    if (w->peak_w > a->out.peak_w)
        a->out.peak_w = w->peak_w;
    if (--a->pending > 0)
        return 0;

    struct energy_sum_window out = a->out;
    energy_sum_fn fn = a->fn;
    void *told = a->user;
    out.half_j = sqrt(a->half2);
    drop(a->meters, a);
    return fn(&out, told);
}

int energy_sum_window(struct energy_sum *m, uint64_t begin_ns, uint64_t end_ns,
                      energy_sum_fn fn, void *user)
{
    struct ask *a = calloc(1, sizeof *a);

    if (!a)
        return -ENOMEM;
    *a = (struct ask){
        .next = m->asks,
        .meters = m,
        .out = {.begin_ns = begin_ns, .end_ns = end_ns, .binding = BINDING_NONE},
        .fn = fn,
        .user = user};
    m->asks = a;
    for (size_t i = 0; i < m->n; i++) {
        int r = sampler_window(m->sampler[i], begin_ns, end_ns, on_window, a);
        if (r < 0) {
            for (size_t k = 0; k < i; k++)
                sampler_forget(m->sampler[k], a);
            drop(m, a);
            return r;
        }
        a->pending++;
    }
    return 0;
}

void energy_sum_mark(struct energy_sum *m, uint64_t at_ns)
{
    for (size_t i = 0; i < m->n; i++)
        sampler_mark(m->sampler[i], at_ns);
}

bool energy_sum_hides(const struct energy_sum *m, double step_s, double length_s)
{
    for (size_t k = 0; k < m->n; k++)
        for (size_t i = 0; i < sampler_count(m->sampler[k]); i++)
            if (meter_hides(sampler_meter(m->sampler[k], i), step_s, length_s))
                return true;
    return false;
}

int energy_sum_new(struct sampler *const *samplers, size_t n, struct energy_sum **ret,
                   uw_error *err)
{
    auto_(energy_sum_free) struct energy_sum *m = calloc(1, sizeof *m);

    if (n == 0)
        return fail(err, -EINVAL, "no board to measure");
    if (!m)
        return fail(err, -ENOMEM, "out of memory");
    m->sampler = calloc(n, sizeof *m->sampler);
    if (!m->sampler)
        return fail(err, -ENOMEM, "out of memory");
    memcpy(m->sampler, samplers, n * sizeof *m->sampler);
    m->n = n;
    *ret = take(m);
    return 0;
}

void energy_sum_free(struct energy_sum *m)
{
    if (!m)
        return;
    while (m->asks) {
        for (size_t i = 0; i < m->n; i++)
            sampler_forget(m->sampler[i], m->asks);
        drop(m, m->asks);
    }
    free(m->sampler);
    free(m);
}
