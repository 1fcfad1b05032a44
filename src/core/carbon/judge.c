#include "core/carbon/judge.h"

#include <math.h>
#include <string.h>

enum { DAY_S = 86400, AHEAD_S = 300 };
#define BETTER 0.95 /* of persistence's error: "worse" ends at or below it */

static const int64_t horizons_s[JUDGE_HORIZONS] = {3600, 10800, 21600, 43200, 86400};

int64_t judge_horizon_s(size_t i)
{
    return i < JUDGE_HORIZONS ? horizons_s[i] : 0;
}

/* ---- series ---- */

/* The last point that begins at or before utc_s; NULL: none. */
static const struct judge_point *before(const struct judge_series *s, int64_t utc_s)
{
    size_t from = 0, to = s->n;

    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (s->point[mid].from_utc_s <= utc_s)
            from = mid + 1;
        else
            to = mid;
    }
    return from ? &s->point[from - 1] : NULL;
}

/* The point that has a value at this time. */
static const struct judge_point *at(const struct judge_series *s, int64_t utc_s)
{
    const struct judge_point *p = before(s, utc_s);

    return p && p->to_utc_s > utc_s && isfinite(p->v) ? p : NULL;
}

/* The last known value, if it is not too old. */
static bool last_known(const struct judge_series *s, int64_t utc_s, double *ret)
{
    const struct judge_point *p = before(s, utc_s);

    while (p && p > s->point && !isfinite(p->v))
        p--;
    if (!p || !isfinite(p->v) || p->to_utc_s <= utc_s - JUDGE_LAST_S)
        return false;
    *ret = p->v;
    return true;
}

static uint64_t hash_of(const struct judge_series *s, int64_t issued_utc_s)
{
    uint64_t h = 0xcbf29ce484222325u ^ (uint64_t)issued_utc_s;

    for (size_t i = 0; i < s->n; i++) {
        uint64_t v;
        memcpy(&v, &s->point[i].v, sizeof v);
        h = (h ^ (uint64_t)s->point[i].from_utc_s) * 0x100000001b3u;
        h = (h ^ v) * 0x100000001b3u;
    }
    return h ? h : 1;
}

/* ---- known values ---- */

static struct judge_sum *sum_of(struct judge *j, int64_t day, unsigned horizon)
{
    struct judge_day *oldest = &j->day[0];

    for (size_t i = 0; i < JUDGE_DAYS; i++) {
        if (j->day[i].day == day)
            return &j->day[i].sum[horizon];
        if (j->day[i].day < oldest->day)
            oldest = &j->day[i];
    }
    *oldest = (struct judge_day){.day = day};
    return &oldest->sum[horizon];
}

static int64_t target_of(const struct judge_case *c)
{
    return c->issued_utc_s + horizons_s[c->horizon];
}

/* Compares a forecast with the value that came.  False: the value is not known yet. */
static bool settle(struct judge *j, const struct judge_case *c, int64_t utc_s,
                   const struct judge_series *actual)
{
    int64_t target = target_of(c);
    const struct judge_point *came = target <= utc_s ? at(actual, target) : NULL;
    bool known = came && !came->estimated;

    if (!known && utc_s - target < JUDGE_WAIT_S)
        return false;
    struct judge_sum *sum = sum_of(j, target / DAY_S, c->horizon);
    if (!known) {
        sum->missed++;
        return true;
    }
    sum->n++;
    sum->forecast += fabs(c->forecast - came->v);
    sum->last += fabs(c->last - came->v);
    if (isfinite(c->yesterday)) {
        sum->n_yesterday++;
        sum->yesterday += fabs(c->yesterday - came->v);
    }
    return true;
}

static void settle_all(struct judge *j, int64_t utc_s, const struct judge_series *actual)
{
    size_t to = 0;

    for (size_t i = 0; i < j->n; i++)
        if (j->open[i].issued_utc_s <= utc_s + AHEAD_S &&
            !settle(j, &j->open[i], utc_s, actual))
            j->open[to++] = j->open[i];
    j->n = to;
    for (size_t i = 0; i < JUDGE_DAYS; i++)
        if (j->day[i].day > (utc_s + AHEAD_S) / DAY_S)
            j->day[i] = (struct judge_day){0};
    if (j->issued_utc_s > utc_s + AHEAD_S)
        j->issued_utc_s = 0;
}

/* ---- a new issue ---- */

static void keep(struct judge *j, int64_t issued_utc_s, int64_t utc_s,
                 const struct judge_series *forecast, const struct judge_series *actual)
{
    double last;

    if (!last_known(actual, issued_utc_s, &last))
        return;
    j->issued_utc_s = issued_utc_s;
    for (unsigned h = 0; h < JUDGE_HORIZONS && j->n < JUDGE_OPEN; h++) {
        int64_t target = issued_utc_s + horizons_s[h];
        const struct judge_point *p = at(forecast, target);
        const struct judge_point *day_before = at(actual, target - DAY_S);
        if (!p || target <= utc_s)
            continue;
        j->open[j->n++] = (struct judge_case){issued_utc_s, h, p->v, last,
                                              day_before ? day_before->v : (double)NAN};
    }
}

void judge_step(struct judge *j, int64_t issued_utc_s, int64_t utc_s,
                const struct judge_series *forecast, const struct judge_series *actual)
{
    settle_all(j, utc_s, actual);
    if (forecast->n == 0)
        return;
    uint64_t seen = hash_of(forecast, issued_utc_s);
    if (seen == j->seen)
        return;
    j->seen = seen;
    int64_t made =
        issued_utc_s > 0 && issued_utc_s <= utc_s + AHEAD_S ? issued_utc_s : utc_s;
    if (j->issued_utc_s == 0 || made >= j->issued_utc_s + JUDGE_EVERY_S)
        keep(j, made, utc_s, forecast, actual);
}

bool judge_is_over(const struct judge *j, int64_t utc_s)
{
    for (size_t i = 0; i < j->n; i++)
        if (utc_s - target_of(&j->open[i]) < JUDGE_WAIT_S)
            return false;
    for (size_t i = 0; i < JUDGE_DAYS; i++)
        if (j->day[i].day > utc_s / DAY_S - JUDGE_DAYS)
            return false;
    return true;
}

/* ---- scores ---- */

bool judge_score(const struct judge *j, size_t horizon, int64_t utc_s,
                 struct judge_score *ret)
{
    struct judge_score s = {.yesterday = (double)NAN};
    double yesterday = 0;

    for (size_t i = 0; horizon < JUDGE_HORIZONS && i < JUDGE_DAYS; i++) {
        const struct judge_sum *sum = &j->day[i].sum[horizon];
        if (j->day[i].day <= utc_s / DAY_S - JUDGE_DAYS)
            continue;
        s.n += sum->n;
        s.n_yesterday += sum->n_yesterday;
        s.missed += sum->missed;
        s.days += sum->n > 0;
        s.forecast += sum->forecast;
        s.last += sum->last;
        yesterday += sum->yesterday;
    }
    if (s.n == 0 && s.missed == 0)
        return false;
    s.forecast /= s.n ? (double)s.n : 1;
    s.last /= s.n ? (double)s.n : 1;
    if (s.n_yesterday)
        s.yesterday = yesterday / (double)s.n_yesterday;
    *ret = s;
    return true;
}

bool judge_verdict(struct judge *j, int64_t utc_s)
{
    unsigned was = j->worse;
    struct judge_score s;

    for (unsigned h = 0; h < JUDGE_HORIZONS; h++) {
        if (!judge_score(j, h, utc_s, &s) || s.n < JUDGE_ENOUGH ||
            s.days < JUDGE_ENOUGH_DAYS)
            continue; /* nothing new is known: the verdict stays */
        bool worse = s.forecast > s.last * (was >> h & 1 ? BETTER : 1);
        j->worse = (j->worse & ~(1u << h)) | (unsigned)worse << h;
    }
    return j->worse != was;
}
