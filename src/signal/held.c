#include "signal/held.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"

enum { AGE_S = 7200 }; /* for a signal that is not well known */

static struct source_series *find(struct source_values *v, const char *signal)
{
    for (size_t i = 0; i < v->n; i++)
        if (strcmp(v->series[i].signal, signal) == 0)
            return &v->series[i];
    return NULL;
}

const struct source_series *held_find(const struct source_values *held,
                                      const char *signal)
{
    for (size_t i = 0; i < held->n; i++)
        if (strcmp(held->series[i].signal, signal) == 0)
            return &held->series[i];
    return NULL;
}

/* The number of old points before the new ones. */
static size_t before(const struct source_series *old, const struct source_series *new)
{
    size_t n = 0;

    if (signal_is_forecast(new->signal) || strcmp(old->unit, new->unit) != 0)
        return 0;
    while (n<old->n &&new->n> 0 && old->point[n].from_utc_s < new->point[0].from_utc_s)
        n++;
    return n;
}

int held_join(const struct source_series *old, struct source_series *new)
{
    size_t n = before(old, new), left = 0;

    if (n + new->n > SIGNAL_POINTS)
        left = n + new->n - SIGNAL_POINTS < n ? n + new->n - SIGNAL_POINTS : n;
    if (n == left)
        return 0;
    struct source_point *p = calloc(n - left + new->n, sizeof *p);
    if (!p)
        return -ENOMEM;
    memcpy(p, old->point + left, (n - left) * sizeof *p);
    memcpy(p + n - left, new->point, new->n * sizeof *p);
    struct source_point *last = &p[n - left - 1];
    if (last->to_utc_s > new->point[0].from_utc_s)
        last->to_utc_s = new->point[0].from_utc_s;
    free(new->point);
    new->point = p;
    new->n += n - left;
    new->cap = new->n;
    return 0;
}

int held_add(struct source_values *held, struct source_values *from)
{
    for (size_t i = 0; i < from->n; i++) {
        struct source_series *old = find(held, from->series[i].signal);
        if (old && held_join(old, &from->series[i]) < 0)
            return -ENOMEM;
    }
    for (size_t i = 0; i < from->n; i++) {
        struct source_series *old = find(held, from->series[i].signal);
        if (!old && held->n == SOURCE_GIVES)
            continue;
        if (!old)
            old = &held->series[held->n++];
        else
            free(old->point);
        *old = from->series[i];
        from->series[i].point = NULL;
    }
    source_values_fini(from);
    return 0;
}

/* ---- valid points ---- */

/* The age of a signal's values if its source does not give one. */
static int64_t own_age_s(const char *signal)
{
    struct signal_decl d;

    for (size_t i = 0; signal_well_known(i, "EUR", &d); i++)
        if (strcmp(d.name, signal) == 0)
            return (int64_t)(d.age_ns / NS_PER_S);
    return AGE_S;
}

int64_t held_end(const struct signals_source *s, const struct source_series *series,
                 const struct source_point *p)
{
    int64_t end = p->to_utc_s, age_s = (int64_t)(s->age_ns / NS_PER_S);

    if (end <= p->from_utc_s)
        end = p->from_utc_s + (age_s ? age_s : own_age_s(series->signal));
    if (age_s && end > p->from_utc_s + age_s)
        end = p->from_utc_s + age_s;
    size_t i = (size_t)(p - series->point);
    if (i + 1 < series->n && end > p[1].from_utc_s)
        end = p[1].from_utc_s;
    return end;
}

const struct source_point *held_now(const struct signals_source *s,
                                    const struct source_series *series, int64_t utc_s)
{
    bool ahead = series && signal_is_forecast(series->signal);

    for (size_t i = 0; series && i < series->n; i++) {
        const struct source_point *p = &series->point[i];
        if (isnan(p->v) || held_end(s, series, p) <= utc_s)
            continue;
        return ahead || p->from_utc_s <= utc_s ? p : NULL;
    }
    return NULL;
}
