#include "minimum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"

struct simplex {
    minimum_fn fn;
    void *user;
    size_t n;
    double *at;    /* n + 1 corners with n coordinates each */
    double *value; /* n + 1 */
    double *mid, *one, *two;
    unsigned calls;
};

static double *corner(struct simplex *s, size_t i)
{
    return s->at + i * s->n;
}

static double call(struct simplex *s, const double *v)
{
    s->calls++;
    return s->fn(v, s->user);
}

/* to = mid + f (worst - mid); returns its value. */
static double move(struct simplex *s, size_t worst, double f, double *to)
{
    for (size_t k = 0; k < s->n; k++)
        to[k] = s->mid[k] + f * (corner(s, worst)[k] - s->mid[k]);
    return call(s, to);
}

static void put(struct simplex *s, size_t i, const double *v, double value)
{
    memcpy(corner(s, i), v, s->n * sizeof *v);
    s->value[i] = value;
}

static void shrink(struct simplex *s, size_t best)
{
    for (size_t i = 0; i <= s->n; i++) {
        if (i == best)
            continue;
        for (size_t k = 0; k < s->n; k++)
            corner(s, i)[k] = 0.5 * (corner(s, i)[k] + corner(s, best)[k]);
        s->value[i] = call(s, corner(s, i));
    }
}

static void rank(const struct simplex *s, size_t *best, size_t *worst, size_t *next)
{
    *best = *worst = 0;
    for (size_t i = 1; i <= s->n; i++) {
        if (s->value[i] < s->value[*best])
            *best = i;
        if (s->value[i] >= s->value[*worst])
            *worst = i;
    }
    *next = *best;
    for (size_t i = 0; i <= s->n; i++)
        if (i != *worst && s->value[i] > s->value[*next])
            *next = i;
}

static void step_once(struct simplex *s, size_t best, size_t worst, size_t next)
{
    memset(s->mid, 0, s->n * sizeof *s->mid);
    for (size_t i = 0; i <= s->n; i++)
        for (size_t k = 0; k < s->n && i != worst; k++)
            s->mid[k] += corner(s, i)[k] / (double)s->n;

    double a = move(s, worst, -1, s->one);
    if (a < s->value[best]) {
        double b = move(s, worst, -2, s->two);
        put(s, worst, b < a ? s->two : s->one, b < a ? b : a);
    } else if (a < s->value[next]) {
        put(s, worst, s->one, a);
    } else {
        double b = move(s, worst, a < s->value[worst] ? -0.5 : 0.5, s->two);
        if (b < a && b < s->value[worst])
            put(s, worst, s->two, b);
        else
            shrink(s, best);
    }
}

int minimum(minimum_fn fn, void *user, double *v, size_t n, double step, unsigned calls)
{
    auto_(mem_free) double *room = calloc((n + 1) * (n + 1) + 3 * n, sizeof *room);
    if (!room)
        return -ENOMEM;
    struct simplex s = {.fn = fn, .user = user, .n = n, .at = room};
    size_t best, worst, next;

    s.value = room + n * (n + 1);
    s.mid = s.value + n + 1;
    s.one = s.mid + n;
    s.two = s.one + n;
    for (size_t i = 0; i <= n; i++) {
        memcpy(corner(&s, i), v, n * sizeof *v);
        if (i < n)
            corner(&s, i)[i] += step;
        s.value[i] = call(&s, corner(&s, i));
    }
    do {
        rank(&s, &best, &worst, &next);
        step_once(&s, best, worst, next);
    } while (s.calls < calls);
    rank(&s, &best, &worst, &next);
    memcpy(v, corner(&s, best), n * sizeof *v);
    return 0;
}
