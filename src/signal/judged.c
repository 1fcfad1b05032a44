#include "signal/judged.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "io/json.h"

enum { VERSION = 1, CASE_FIELDS = 5, SUM_FIELDS = 6, VALUES_MAX = 1 << 20 };
#define LATEST_UTC_S INT64_C(7258118400) /* 2200 */
#define NUMBER_MAX 1e15                  /* sums of such numbers are finite */

/* ---- writing: rows without names, as there are many ---- */

/* Written values are within the bounds of reading. */
static void put_number(struct json_out *o, double v)
{
    json_out_exact_double(o, NULL,
                          v > NUMBER_MAX    ? NUMBER_MAX
                          : v < -NUMBER_MAX ? -NUMBER_MAX
                                            : v);
}

static void put_count(struct json_out *o, uint64_t n)
{
    json_out_int(o, NULL, (int64_t)(n < VALUES_MAX ? n : VALUES_MAX));
}

static void put_case(struct json_out *o, const struct judge_case *c)
{
    json_out_array(o, NULL);
    json_out_int(o, NULL, c->issued_utc_s);
    json_out_int(o, NULL, c->horizon);
    put_number(o, c->forecast);
    put_number(o, c->last);
    put_number(o, c->yesterday);
    json_out_end(o);
}

static void put_sum(struct json_out *o, const struct judge_sum *s)
{
    json_out_array(o, NULL);
    put_count(o, s->n);
    put_count(o, s->n_yesterday);
    put_count(o, s->missed);
    put_number(o, s->forecast);
    put_number(o, s->last);
    put_number(o, s->yesterday);
    json_out_end(o);
}

static void put_judge(struct json_out *o, const struct judge *j)
{
    char seen[24];

    (void)snprintf(seen, sizeof seen, "%016jx", (uintmax_t)j->seen);
    json_out_text(o, "seen", seen);
    json_out_int(o, "issued", j->issued_utc_s);
    json_out_int(o, "worse", j->worse);
    json_out_array(o, "open");
    for (size_t i = 0; i < j->n; i++)
        put_case(o, &j->open[i]);
    json_out_end(o);
    json_out_array(o, "days");
    for (size_t i = 0; i < JUDGE_DAYS; i++) {
        if (j->day[i].day <= 0)
            continue;
        json_out_object(o, NULL);
        json_out_int(o, "day", j->day[i].day);
        json_out_array(o, "sums");
        for (size_t h = 0; h < JUDGE_HORIZONS; h++)
            put_sum(o, &j->day[i].sum[h]);
        json_out_end(o);
        json_out_end(o);
    }
    json_out_end(o);
}

int judged_write(const struct judged *const *list, size_t n, char **ret, uw_error *err)
{
    auto_(json_out_free) struct json_out *o = json_out_new();

    json_out_object(o, NULL);
    json_out_int(o, "judged", VERSION);
    json_out_array(o, "forecasts");
    for (size_t i = 0; i < n; i++) {
        json_out_object(o, NULL);
        json_out_text(o, "signal", list[i]->signal);
        json_out_text(o, "source", list[i]->source);
        json_out_text(o, "unit", list[i]->unit);
        put_judge(o, &list[i]->judge);
        json_out_end(o);
    }
    json_out_end(o);
    json_out_end(o);
    return json_out_string(o, ret, err);
}

/* ---- reading ---- */

static bool read_word(const struct json_value *v, const char *key, char *ret, size_t size)
{
    const char *text = json_as_text(json_get(v, key));

    if (!text || strlen(text) >= size || !utf8_is_plain(text))
        return false;
    (void)snprintf(ret, size, "%s", text);
    return true;
}

static bool read_utc(const struct json_value *v, int64_t *ret)
{
    uint64_t u = 0;

    if (!json_as_u64(v, &u) || u > LATEST_UTC_S)
        return false;
    *ret = (int64_t)u;
    return true;
}

static bool read_number(const struct json_value *v, double *ret)
{
    return json_as_double(v, ret) && fabs(*ret) <= NUMBER_MAX;
}

static bool read_case(const struct json_value *v, struct judge_case *ret)
{
    uint64_t horizon = 0;

    ret->yesterday = (double)NAN;
    if (json_count(v) != CASE_FIELDS || !read_utc(json_at(v, 0), &ret->issued_utc_s) ||
        !json_as_u64(json_at(v, 1), &horizon) || horizon >= JUDGE_HORIZONS ||
        !read_number(json_at(v, 2), &ret->forecast) ||
        !read_number(json_at(v, 3), &ret->last) ||
        (!json_is_none(json_at(v, 4)) && !read_number(json_at(v, 4), &ret->yesterday)))
        return false;
    ret->horizon = (unsigned)horizon;
    return true;
}

static bool read_sum(const struct json_value *v, struct judge_sum *ret)
{
    double *const errors[] = {&ret->forecast, &ret->last, &ret->yesterday};

    uint64_t *const counts[] = {&ret->n, &ret->n_yesterday, &ret->missed};

    if (json_count(v) != SUM_FIELDS)
        return false;
    for (size_t i = 0; i < 3; i++)
        if (!json_as_u64(json_at(v, i), counts[i]) || *counts[i] > VALUES_MAX)
            return false;
    for (size_t i = 0; i < 3; i++)
        if (!read_number(json_at(v, 3 + i), errors[i]) || *errors[i] < 0)
            return false;
    return true;
}

static bool read_day(const struct json_value *v, struct judge_day *ret)
{
    const struct json_value *sums = json_get(v, "sums");

    if (!read_utc(json_get(v, "day"), &ret->day) || json_count(sums) != JUDGE_HORIZONS)
        return false;
    for (size_t h = 0; h < JUDGE_HORIZONS; h++)
        if (!read_sum(json_at(sums, h), &ret->sum[h]))
            return false;
    return true;
}

static bool read_seen(const struct json_value *v, uint64_t *ret)
{
    static const char digits[] = "0123456789abcdef";
    const char *text = json_as_text(v);

    *ret = 0;
    for (; text && *text; text++) {
        const char *at = strchr(digits, *text);
        if (!at)
            return false;
        *ret = *ret << 4 | (uint64_t)(at - digits);
    }
    return text != NULL;
}

static bool read_judge(const struct json_value *v, struct judge *ret)
{
    const struct json_value *open = json_get(v, "open"), *days = json_get(v, "days");
    uint64_t worse = 0;

    if (!read_seen(json_get(v, "seen"), &ret->seen) ||
        !read_utc(json_get(v, "issued"), &ret->issued_utc_s) ||
        !json_as_u64(json_get(v, "worse"), &worse) || worse >> JUDGE_HORIZONS ||
        json_count(open) > JUDGE_OPEN || json_count(days) > JUDGE_DAYS)
        return false;
    ret->worse = (unsigned)worse;
    for (; ret->n < json_count(open); ret->n++)
        if (!read_case(json_at(open, ret->n), &ret->open[ret->n]))
            return false;
    for (size_t i = 0; i < json_count(days); i++)
        if (!read_day(json_at(days, i), &ret->day[i]))
            return false;
    return true;
}

static bool read_judged(const struct json_value *v, struct judged *ret)
{
    return read_word(v, "signal", ret->signal, sizeof ret->signal) &&
           read_word(v, "source", ret->source, sizeof ret->source) &&
           read_word(v, "unit", ret->unit, sizeof ret->unit) &&
           read_judge(v, &ret->judge);
}

int judged_read(const char *name, const char *text, size_t len,
                struct judged *list[JUDGED_MAX], size_t *ret_n, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    const struct json_value *all;
    uint64_t version = 0;
    size_t n = 0;
    int r = 0;

    if (json_read_hidden(name, text, len, &doc, NULL) < 0 ||
        !json_as_u64(json_get(json_root(doc), "judged"), &version) || version != VERSION)
        return fail(err, -EINVAL, "%s: no judged forecasts, or damaged", name);
    all = json_get(json_root(doc), "forecasts");
    for (; r == 0 && n < json_count(all) && n < JUDGED_MAX; n++) {
        list[n] = calloc(1, sizeof *list[n]);
        r = !list[n] ? -ENOMEM : read_judged(json_at(all, n), list[n]) ? 0 : -EINVAL;
    }
    if (r == 0) {
        *ret_n = n;
        return 0;
    }
    while (n > 0)
        free(list[--n]);
    return fail(err, r, r == -ENOMEM ? "out of memory" : "%s: damaged", name);
}
