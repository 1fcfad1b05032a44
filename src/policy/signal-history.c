#include "policy/signal-history.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { FINE_S = 3600, BUCKET_S = 300, LONGEST_S = 14 * 86400 };

void signal_history_fini(struct signal_history *h)
{
    free(h->point);
    *h = (struct signal_history){0};
}

static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static int64_t floor_to(int64_t utc_s, int64_t step)
{
    int64_t rest = utc_s % step;

    return utc_s - (rest < 0 ? rest + step : rest);
}

/* Appends a point, unless the value is unchanged. */
static void put(struct policy_point *point, size_t *n, int64_t utc_s, double v)
{
    if (*n == 0 || !is_same(point[*n - 1].v, v))
        point[(*n)++] = (struct policy_point){utc_s, v};
}

/* The mean from `from` to `to`; NaN where less than half of it is known.  *i: the point
 * in force at `from`, then the one in force at `to`.
 */
static double mean(const struct signal_history *h, size_t *i, int64_t from, int64_t to)
{
    double sum = 0, known = 0;

    for (int64_t at = from; at < to;) {
        bool more = *i + 1 < h->n;
        int64_t next = more && h->point[*i + 1].utc_s < to ? h->point[*i + 1].utc_s : to;
        if (isfinite(h->point[*i].v)) {
            sum += h->point[*i].v * (double)(next - at);
            known += (double)(next - at);
        }
        at = next;
        *i += more && h->point[*i + 1].utc_s <= at;
    }
    return 2 * known >= (double)(to - from) ? sum / known : (double)NAN;
}

/* Keeps five-minute means of values older than an hour, and the later values as they
 * are.
 */
static size_t thin(const struct signal_history *h, int64_t utc_s,
                   struct policy_point *ret)
{
    int64_t from = floor_to(h->point[0].utc_s, BUCKET_S) + BUCKET_S;
    int64_t oldest = floor_to(utc_s - LONGEST_S, BUCKET_S);
    int64_t until = floor_to(utc_s - FINE_S, BUCKET_S);
    size_t i = 0, n = 0;

    if (from < oldest)
        from = oldest;
    while (i + 1 < h->n && h->point[i + 1].utc_s <= from)
        i++;
    for (int64_t at = from; at < until; at += BUCKET_S)
        put(ret, &n, at, mean(h, &i, at, at + BUCKET_S));
    put(ret, &n, from < until ? until : h->point[i].utc_s, h->point[i].v);
    for (i++; i < h->n; i++)
        put(ret, &n, h->point[i].utc_s, h->point[i].v);
    return n;
}

enum { BUCKETS = LONGEST_S / BUCKET_S + 2, DROP = SIGNAL_HISTORY_MAX / 4 };

/* Makes room for another point in a full history; all points may be within the last
 * hour.
 */
static void make_room(struct signal_history *h, int64_t utc_s)
{
    struct policy_point *thinned = malloc((h->n + BUCKETS) * sizeof *thinned);
    size_t n = thinned ? thin(h, utc_s, thinned) : h->n;
    const struct policy_point *all = thinned ? thinned : h->point;
    size_t skip = n > SIGNAL_HISTORY_MAX - DROP ? n - (SIGNAL_HISTORY_MAX - DROP) : 0;

    h->n = n - skip;
    memmove(h->point, all + skip, h->n * sizeof *h->point);
    free(thinned);
}

void signal_history_add(struct signal_history *h, int64_t utc_s, double v)
{
    while (h->n > 0 && h->point[h->n - 1].utc_s >= utc_s)
        h->n--;
    if (h->n == SIGNAL_HISTORY_MAX)
        make_room(h, utc_s);
    if (array_grow(&h->point, &h->cap, h->n, SIGNAL_HISTORY_MAX) < 0)
        h->n = 0;
    else
        put(h->point, &h->n, utc_s, v);
}
