#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/meter/state.h"

/* Doubles the room of the ring, its oldest entry first. */
static bool grow(struct ring *r, void **items, size_t size)
{
    if (r->room == 0 || size == 0)
        return false;
    size_t first = ring_at(r, 0), tail = r->room - first;
    char *more = malloc(2 * r->room * size), *old = *items;

    if (!more)
        return false;
    memcpy(more, old + first * size, tail * size);
    memcpy(more + tail * size, old, first * size);
    free(old);
    *items = more;
    r->head = r->n;
    r->room *= 2;
    return true;
}

size_t ring_next(struct ring *r, void **items, size_t size, double oldest_s)
{
    bool may_grow = r->room < POINTS && (!r->full || oldest_s <= r->keep_s);

    if (r->n == r->room && !(may_grow && grow(r, items, size)))
        r->full = true;
    size_t at = r->head;
    if (++r->head >= r->room)
        r->head = 0;
    if (r->n < r->room)
        r->n++;
    if (r->n == r->room && (r->room >= POINTS || oldest_s > r->keep_s))
        r->full = true; /* set before the oldest is lost, so that it can be settled */
    return at;
}

bool series_init(struct series *s, double keep_s)
{
    s->p = malloc(FEW * sizeof *s->p);
    s->at = (struct ring){.room = FEW, .keep_s = keep_s};
    return s->p;
}

/* Number of points at or before t. */
static size_t before(const struct series *s, double t)
{
    size_t lo = 0, hi = s->at.n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (series_at(s, mid)->t <= t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Mean power between points i - 1 and i. */
static double mean_w(const struct series *s, size_t i)
{
    const struct point *a = series_at(s, i - 1), *b = series_at(s, i);
    double len = b->t - a->t;
    return (b->e - a->e) / (len > 1e-9 ? len : 1e-9);
}

/* The extremes of the mean powers that end at points first to last - 1; from the blocks
 * as far as these are complete.
 */
static struct extremes extremes(const struct series *s, size_t first, size_t last,
                                bool blocks)
{
    struct extremes all = {.lo = HUGE_VAL, .hi = 0};

    for (size_t i = first < 1 ? 1 : first; i < last;) {
        size_t at = ring_at(&s->at, i);
        struct extremes e;
        if (blocks && at % BLOCK == 0 && i + BLOCK <= last) {
            e = s->block[at / BLOCK];
            i += BLOCK;
        } else {
            e.lo = e.hi = mean_w(s, i++);
        }
        all.lo = e.lo < all.lo ? e.lo : all.lo;
        all.hi = e.hi > all.hi ? e.hi : all.hi;
    }
    return all;
}

/* Computes the blocks that end within the newest n points. */
static void sum_up(struct series *s, size_t n)
{
    for (size_t i = s->at.n - n; i < s->at.n; i++) {
        size_t at = ring_at(&s->at, i);
        if (at % BLOCK == BLOCK - 1 && i + 1 >= BLOCK)
            s->block[at / BLOCK] = extremes(s, i + 1 - BLOCK, i + 1, false);
    }
}

void series_add(struct series *s, struct point p)
{
    if (s->at.n && p.t <= s->last.t) { /* replace it */
        s->at.head = (s->at.head ? s->at.head : s->at.room) - 1;
        s->at.n--;
        p.t = s->last.t;
    }
    double old = s->at.n ? p.t - series_at(s, 0)->t : 0;
    size_t room = s->at.room;
    void *items = s->p;
    size_t at = ring_next(&s->at, &items, sizeof p, old);
    s->p = items;
    s->p[at] = s->last = p;
    sum_up(s, s->at.room == room ? 1 : s->at.n);
}

void series_range(const struct series *s, double a, double b, double *ret_lo,
                  double *ret_hi)
{
    size_t end = before(s, b);
    struct extremes e =
        extremes(s, before(s, a), end < s->at.n ? end + 1 : s->at.n, true);

    *ret_lo = e.hi > 0 ? e.lo : 0;
    *ret_hi = e.hi;
}

double series_var(const struct series *s, double t)
{
    size_t i = before(s, t);

    if (s->at.n == 0 || i == s->at.n)
        return s->at.n ? s->last.var : 0;
    const struct point *b = series_at(s, i), *a = i > 0 ? series_at(s, i - 1) : b;
    double x = i > 0 ? (t - a->t) / (b->t - a->t) : 1;
    return a->var + x * (b->var - a->var);
}

void series_doubt(struct series *s, double from, double var)
{
    double len = s->last.t - from;

    for (size_t i = s->at.n; len > 0 && i-- > 0;) {
        struct point *p = &s->p[ring_at(&s->at, i)];
        if (p->t <= from)
            break;
        p->var += var * (p->t - from) / len;
        s->last.var = fmax(s->last.var, p->var);
    }
}

bool series_energy(const struct series *s, double t, const struct levels *may,
                   double *ret_j, double *ret_sd)
{
    size_t i = before(s, t);

    if (s->at.n < 2 || i == 0 || (i == s->at.n && t > s->last.t))
        return false;
    if (i == s->at.n)
        i--;

    /* The part of the tick's energy before t is bounded by the power that the board may
     * draw before t and after it.  A straight line is nearest to it on average.
     */
    const struct point *a = series_at(s, i - 1), *b = series_at(s, i);
    double len = b->t - a->t, x = t - a->t, e = b->e - a->e, p = mean_w(s, i);
    double lo = fmin(may->lo, p), hi = fmax(may->hi, p), line = p * x;
    double least = fmax(lo * x, e - hi * (len - x));
    double most = fmax(fmin(hi * x, e - lo * (len - x)), least);
    double off = line - (least + most) / 2;
    double place = fmax(a->dt, b->dt) * (0.3 * p + 0.5 * (hi - lo));
    double own = hypot(p, 0.5 * (hi - lo)) * hypot(a->own * (len - x), b->own * x) / len;

    *ret_j = a->e + line;
    *ret_sd = hypot(hypot((most - least) / sqrt(12), off), hypot(place, own));
    return true;
}
