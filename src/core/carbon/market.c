#include "core/carbon/market.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"

#define UJ_PER_KWH 3.6e12
#define MG_PER_G 1e3

/* A stretch of time in which the same contracts apply. */
struct slot {
    int64_t from_ms, to_ms;
    double used_uj, left_uj; /* left: not covered */
    double mg;
};

struct market {
    struct market_contract *contract;
    size_t n_contracts;
    struct slot *slot; /* in the order of time, without gaps */
    size_t n_slots;
};

void market_free(struct market *m)
{
    if (!m)
        return;
    free(m->contract);
    free(m->slot);
    free(m);
}
DEFINE_AUTO(struct market *, market_free);

static int by_time(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Slots between all moments at which a contract begins or ends. */
static void make_slots(struct market *m, int64_t *moment)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_contracts; i++) {
        moment[n++] = m->contract[i].from_ms;
        moment[n++] = m->contract[i].to_ms;
    }
    qsort(moment, n, sizeof *moment, by_time);
    for (size_t i = 0; i + 1 < n; i++)
        if (moment[i] < moment[i + 1])
            m->slot[m->n_slots++] =
                (struct slot){.from_ms = moment[i], .to_ms = moment[i + 1]};
}

int market_new(const struct market_contract *contract, size_t n, struct market **ret)
{
    auto_(market_free) struct market *m = NULL;

    if (n > MARKET_CONTRACTS)
        return -E2BIG;
    m = calloc(1, sizeof *m);
    int64_t *moment = calloc(2 * n + 1, sizeof *moment);
    if (m) {
        m->contract = calloc(n + 1, sizeof *m->contract);
        m->slot = calloc(2 * n + 1, sizeof *m->slot);
    }
    if (!m || !moment || !m->contract || !m->slot) {
        free(moment);
        return -ENOMEM;
    }
    m->n_contracts = n;
    if (n > 0)
        memcpy(m->contract, contract, n * sizeof *contract);
    make_slots(m, moment);
    free(moment);
    *ret = take(m);
    return 0;
}

/* The first slot that ends after ms; n_slots: none. */
static size_t slot_at(const struct market *m, int64_t ms)
{
    size_t low = 0, high = m->n_slots;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (m->slot[mid].to_ms > ms)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* The part of the time that is in the slot. */
static double part_in(const struct slot *s, int64_t from_ms, int64_t to_ms)
{
    int64_t from = from_ms > s->from_ms ? from_ms : s->from_ms;
    int64_t to = to_ms < s->to_ms ? to_ms : s->to_ms;

    if (to_ms <= from_ms)
        return from_ms >= s->from_ms && from_ms < s->to_ms;
    return to > from ? (double)(to - from) / (double)(to_ms - from_ms) : 0;
}

void market_use(struct market *m, int64_t from_ms, int64_t to_ms, int64_t energy_uj)
{
    for (size_t i = slot_at(m, from_ms); i < m->n_slots; i++) {
        struct slot *s = &m->slot[i];
        double part = part_in(s, from_ms, to_ms);
        if (part <= 0)
            break;
        s->used_uj += part * (double)energy_uj;
    }
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static void apply(struct market *m, const struct market_contract *c)
{
    size_t first = slot_at(m, c->from_ms), end = slot_at(m, c->to_ms);
    double left = 0, taken = 0;

    for (size_t i = first; i < end; i++)
        left += m->slot[i].left_uj;
    double of_left = left > 0 ? smaller(c->amount * UJ_PER_KWH / left, 1) : 0;
    for (size_t i = first; i < end; i++) {
        struct slot *s = &m->slot[i];
        if (c->kind == MARKET_ENERGY)
            taken = of_left * s->left_uj;
        else if (c->kind == MARKET_SHARE)
            taken = smaller(c->amount * s->used_uj, s->left_uj);
        else
            taken = s->left_uj;
        s->left_uj -= taken;
        s->mg += taken / UJ_PER_KWH * c->g_kwh * MG_PER_G;
    }
}

void market_settle(struct market *m)
{
    for (size_t i = 0; i < m->n_slots; i++)
        m->slot[i].left_uj = m->slot[i].used_uj;
    for (int last = 0; last <= 1; last++)
        for (size_t i = 0; i < m->n_contracts; i++)
            if ((m->contract[i].kind == MARKET_RESIDUAL) == (last == 1))
                apply(m, &m->contract[i]);
}

struct market_part market_part(const struct market *m, int64_t from_ms, int64_t to_ms,
                               int64_t energy_uj)
{
    struct market_part sum = {0, 0};

    for (size_t i = slot_at(m, from_ms); i < m->n_slots; i++) {
        const struct slot *s = &m->slot[i];
        double part = part_in(s, from_ms, to_ms);
        if (part <= 0)
            break;
        if (!(s->used_uj > 0))
            continue;
        double of_used = part * (double)energy_uj / s->used_uj;
        sum.covered_uj += of_used * (s->used_uj - s->left_uj);
        sum.mg += of_used * s->mg;
    }
    return sum;
}
