#include "core/carbon/stretch.h"

/* The index behind the last point that begins at or before utc_s. */
static size_t behind(const struct stretch_point *point, size_t n, int64_t utc_s)
{
    size_t from = 0, to = n;

    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (point[mid].from_utc_s <= utc_s)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

bool stretch_mean(const struct stretch_point *point, size_t n, int64_t from_utc_s,
                  int64_t to_utc_s, double *ret)
{
    size_t i = behind(point, n, from_utc_s);
    int64_t at = from_utc_s;
    double sum = 0;

    for (i = i ? i - 1 : 0; i < n && at < to_utc_s; i++) {
        const struct stretch_point *p = &point[i];
        if (p->from_utc_s > at || p->to_utc_s <= at)
            return false;
        int64_t end = p->to_utc_s < to_utc_s ? p->to_utc_s : to_utc_s;
        sum += p->v * (double)(end - at);
        at = end;
    }
    if (at < to_utc_s || to_utc_s <= from_utc_s)
        return false;
    *ret = sum / (double)(to_utc_s - from_utc_s);
    return true;
}

struct best {
    bool has;
    int64_t begin;
    double mean;
};

static void try(const struct stretch_point *point, size_t n, int64_t from, int64_t begin,
                int64_t length_s, struct best *b)
{
    double mean;

    if (begin < from || !stretch_mean(point, n, begin, begin + length_s, &mean))
        return;
    if (!b->has || mean < b->mean || (mean <= b->mean && begin < b->begin))
        *b = (struct best){true, begin, mean};
}

bool stretch_lowest(const struct stretch_point *point, size_t n, int64_t from_utc_s,
                    int64_t length_s, int64_t *ret_begin_utc_s, double *ret_mean)
{
    struct best b = {.has = false};

    /* The mean is linear between these times: its lowest value lies at one of them. */
    try(point, n, from_utc_s, from_utc_s, length_s, &b);
    for (size_t i = 0; i < n; i++) {
        try(point, n, from_utc_s, point[i].from_utc_s, length_s, &b);
        try(point, n, from_utc_s, point[i].to_utc_s - length_s, length_s, &b);
    }
    if (!b.has)
        return false;
    *ret_begin_utc_s = b.begin;
    *ret_mean = b.mean;
    return true;
}
