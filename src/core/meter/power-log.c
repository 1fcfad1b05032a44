#include "core/meter/power-log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"

void power_log_fini(struct power_log *l)
{
    free(l->at);
    *l = (struct power_log){.n = 0};
}

static void drop(struct power_log *l, size_t i)
{
    memmove(&l->at[i], &l->at[i + 1], (l->n - i - 1) * sizeof *l->at);
    l->n--;
}

/* Joins the two neighbours that are shortest for their age, or drops the oldest. */
static void shorten(struct power_log *l)
{
    uint64_t now = l->at[l->n - 1].end_ns;
    double least = HUGE_VAL;
    size_t best = l->n;

    for (size_t i = 0; i + 2 < l->n; i++) {
        if (l->at[i].end_ns != l->at[i + 1].begin_ns)
            continue;
        double age = s_between(l->at[i].begin_ns, now);
        double share = s_between(l->at[i].begin_ns, l->at[i + 1].end_ns) / age;
        if (share < least) {
            least = share;
            best = i;
        }
    }
    if (best == l->n) {
        drop(l, 0);
        return;
    }
    l->at[best + 1].begin_ns = l->at[best].begin_ns;
    l->at[best + 1].j += l->at[best].j;
    drop(l, best);
}

void power_log_add(struct power_log *l, uint64_t begin_ns, uint64_t end_ns, double j)
{
    if (end_ns <= begin_ns || (l->n > 0 && begin_ns < l->at[l->n - 1].end_ns))
        return;
    if (l->n == POWER_LOG_MAX)
        shorten(l);
    int r = array_grow(&l->at, &l->room, l->n, POWER_LOG_MAX);
    if (r < 0 && l->n == 0)
        return;
    if (r < 0)
        drop(l, 0);
    l->at[l->n].begin_ns = begin_ns;
    l->at[l->n].end_ns = end_ns;
    l->at[l->n++].j = j;
}

size_t power_log_between(const struct power_log *l, uint64_t begin_ns, uint64_t upto_ns,
                         struct meter_power *buf)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n && l->at[i].begin_ns < upto_ns; i++) {
        uint64_t begin = l->at[i].begin_ns, end = l->at[i].end_ns;
        uint64_t to = end < upto_ns ? end : upto_ns;
        if (to <= begin_ns)
            continue;
        buf[n++] = (struct meter_power){.end_s = s_between(begin_ns, to),
                                        .over_s = s_between(begin, to),
                                        .power_w = l->at[i].j / s_between(begin, end)};
    }
    return n;
}

uint64_t power_log_end_from(const struct power_log *l, uint64_t at_ns)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i].end_ns >= at_ns)
            return l->at[i].end_ns;
    return 0;
}
