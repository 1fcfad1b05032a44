#include "io/zone.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/file.h"

enum {
    HEAD = 44,
    TYPE = 6,
    TIMES_MAX = 4000,
    DAY_S = 86400,
    HOUR_S = 3600,
    TYPES_MAX = 256
};
/* Rules are followed for this many days from 1970 on. */
#define DAYS_MAX INT64_C(100000000)
#define DAYS_OF_400_YEARS 146097

/* A day of a year: Mm.w.d, Jn or n, and a second of it (may be of other days). */
struct day_rule {
    char form; /* 'M', 'J', 'N' */
    int month, week, day;
    int second;
};

struct change {
    int64_t utc_s;
    int32_t offset_s;
};

struct zone {
    int32_t first_s; /* before the first change */
    /* after the last change: two rules a year, or one offset */
    bool has_rule, has_summer;
    int32_t winter_s, summer_s;
    struct day_rule to_summer, to_winter;
    size_t n;
    struct change change[];
};

void zone_free(struct zone *z)
{
    free(z);
}

/* ---- the file ---- */

struct bytes {
    const unsigned char *at;
    size_t left;
};

static bool skip(struct bytes *b, size_t n)
{
    if (n > b->left)
        return false;
    b->at += n;
    b->left -= n;
    return true;
}

static uint32_t be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t be64(const unsigned char *p)
{
    return (int64_t)((uint64_t)be32(p) << 32 | be32(p + 4));
}

/* Counts of a header, in the file's order. */
struct head {
    uint32_t utc, standard, leaps, times, types, chars;
};

static bool read_head(struct bytes *b, struct head *ret)
{
    const unsigned char *p = b->at;

    if (b->left < HEAD || memcmp(p, "TZif", 4) != 0 || p[4] < '2')
        return false;
    *ret = (struct head){be32(p + 20), be32(p + 24), be32(p + 28),
                         be32(p + 32), be32(p + 36), be32(p + 40)};
    return skip(b, HEAD) && ret->times <= TIMES_MAX && ret->types > 0 &&
           ret->types <= TYPES_MAX && ret->chars <= ZONE_FILE_MAX &&
           ret->leaps <= ZONE_FILE_MAX && ret->standard <= TYPES_MAX &&
           ret->utc <= TYPES_MAX;
}

static size_t size_of(const struct head *h, size_t time_size)
{
    return h->times * (time_size + 1) + (size_t)h->types * TYPE + h->chars +
           h->leaps * (time_size + 4) + h->standard + h->utc;
}

/* ---- the rule after the last change (TZ of POSIX) ---- */

static bool read_number(const char **p, int most, int *ret)
{
    int v = 0;

    if (!isdigit((unsigned char)**p))
        return false;
    for (; isdigit((unsigned char)**p) && v <= most; (*p)++)
        v = v * 10 + (**p - '0');
    *ret = v;
    return v <= most;
}

/* [+-]hh[:mm[:ss]] in seconds. */
static bool read_time(const char **p, int *ret)
{
    int sign = **p == '-' ? -1 : 1, h = 0, m = 0, s = 0;

    if (**p == '-' || **p == '+')
        (*p)++;
    if (!read_number(p, 167, &h))
        return false;
    if (**p == ':' && (++*p, !read_number(p, 59, &m)))
        return false;
    if (**p == ':' && (++*p, !read_number(p, 59, &s)))
        return false;
    *ret = sign * (h * HOUR_S + m * 60 + s);
    return true;
}

static bool skip_name(const char **p)
{
    const char *from = *p;

    if (**p == '<') {
        *p += strcspn(*p, ">");
        return *(*p)++ == '>';
    }
    while (isalpha((unsigned char)**p))
        (*p)++;
    return *p - from >= 3;
}

static bool read_day(const char **p, struct day_rule *ret)
{
    struct day_rule r = {.form = 'N', .second = 2 * HOUR_S};

    if (*(*p)++ != ',')
        return false;
    if (**p == 'M' || **p == 'J')
        r.form = *(*p)++;
    if (r.form == 'M') {
        if (!read_number(p, 12, &r.month) || *(*p)++ != '.' ||
            !read_number(p, 5, &r.week) || *(*p)++ != '.' || !read_number(p, 6, &r.day) ||
            r.month < 1 || r.week < 1)
            return false;
    } else if (!read_number(p, 365, &r.day) || (r.form == 'J' && r.day < 1)) {
        return false;
    }
    if (**p == '/' && (++*p, !read_time(p, &r.second)))
        return false;
    *ret = r;
    return true;
}

static bool read_rule(const char *text, struct zone *z)
{
    int west_s = 0;

    if (!skip_name(&text) || !read_time(&text, &west_s))
        return false;
    z->has_rule = true;
    z->winter_s = -west_s;
    if (!*text)
        return true;
    z->has_summer = true;
    z->summer_s = z->winter_s + HOUR_S;
    if (!skip_name(&text))
        return false;
    if (*text && *text != ',') {
        if (!read_time(&text, &west_s))
            return false;
        z->summer_s = -west_s;
    }
    return read_day(&text, &z->to_summer) && read_day(&text, &z->to_winter) && !*text;
}

/* Days from 1970-01-01 to a day of the Gregorian calendar (Howard Hinnant's formula). */
static int64_t days_to(int64_t year, int month, int day)
{
    int64_t y = year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * DAYS_OF_400_YEARS + of_era * 365 + of_era / 4 - of_era / 100 + of_year -
           719468;
}

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* The second of the wall clock at which the rule takes effect in that year, as if it
 * were UTC.
 */
static int64_t rule_in(const struct day_rule *r, int64_t year)
{
    int64_t day = days_to(year, 1, 1);

    if (r->form == 'J') {
        day += r->day - 1 + (is_leap(year) && r->day > 59);
    } else if (r->form == 'N') {
        day += r->day;
    } else {
        int64_t first = days_to(year, r->month, 1);
        int64_t next =
            r->month == 12 ? days_to(year + 1, 1, 1) : days_to(year, r->month + 1, 1);
        int64_t weekday = ((first + 4) % 7 + 7) % 7; /* 0: Sunday */
        day = first + (r->day - weekday + 7) % 7 + (int64_t)(r->week - 1) * 7;
        while (day >= next)
            day -= 7;
    }
    return day * DAY_S + r->second;
}

/* ---- all parts ---- */

/* The block of 8-byte times. */
static int read_changes(struct bytes *b, const struct head *h, struct zone *z)
{
    const unsigned char *times = b->at, *index = times + (size_t)h->times * 8;
    const unsigned char *types = index + h->times;

    z->first_s = (int32_t)be32(types);
    for (uint32_t i = 0; i < h->times; i++) {
        int64_t utc_s = be64(times + (size_t)i * 8);
        if (index[i] >= h->types || (i && utc_s <= z->change[i - 1].utc_s))
            return -EINVAL;
        z->change[i] =
            (struct change){utc_s, (int32_t)be32(types + (size_t)index[i] * TYPE)};
    }
    for (uint32_t i = 0; i < h->types; i++) {
        int32_t offset_s = (int32_t)be32(types + (size_t)i * TYPE);
        if (offset_s < -DAY_S || offset_s > DAY_S * 7)
            return -EINVAL;
    }
    z->n = h->times;
    return skip(b, size_of(h, 8)) ? 0 : -EINVAL;
}

static int read_footer(struct bytes *b, struct zone *z)
{
    char text[100];

    if (b->left < 2 || b->at[0] != '\n')
        return -EINVAL;
    const unsigned char *end = memchr(b->at + 1, '\n', b->left - 1);
    size_t n = end ? (size_t)(end - b->at) - 1 : sizeof text;
    if (n >= sizeof text)
        return -EINVAL;
    memcpy(text, b->at + 1, n);
    text[n] = '\0';
    return n == 0 || read_rule(text, z) ? 0 : -EINVAL;
}

int zone_parse(const void *bytes, size_t len, struct zone **ret, uw_error *err)
{
    struct bytes b = {bytes, len};
    struct head h;

    if (!read_head(&b, &h) || !skip(&b, size_of(&h, 4)) || !read_head(&b, &h) ||
        b.left < size_of(&h, 8))
        return fail(err, -EINVAL, "not a zone file of version 2 or above");
    auto_(zone_free) struct zone *z =
        calloc(1, sizeof *z + h.times * sizeof z->change[0]);
    if (!z)
        return fail(err, -ENOMEM, "out of memory");
    if (read_changes(&b, &h, z) < 0 || read_footer(&b, z) < 0)
        return fail(err, -EINVAL, "a damaged zone file");
    *ret = take(z);
    return 0;
}

static bool is_name(const char *name)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                               "0123456789_+-/";

    return *name && *name != '/' && strlen(name) <= ZONE_NAME_MAX &&
           strspn(name, good) == strlen(name);
}

/* The part after "zoneinfo/" in a path; NULL: the path does not contain it. */
static const char *in_folder(const char *path)
{
    const char *at = strstr(path, "/zoneinfo/");

    return at ? at + strlen("/zoneinfo/") : NULL;
}

int zone_own_name(const char *tz, const char *local_time, char ret[ZONE_NAME_MAX + 1],
                  uw_error *err)
{
    const char *name = !tz          ? (local_time ? in_folder(local_time) : "UTC")
                       : *tz == ':' ? tz + 1
                                    : tz;

    if (tz && *name == '/')
        name = in_folder(name);
    else if (tz && !*name)
        name = "UTC"; /* as the C library does */
    if (!name || !is_name(name))
        return tz ? fail(err, -EINVAL,
                         "TZ=%.40s is not the name of a time zone (Europe/Berlin)", tz)
                  : fail(err, -EINVAL, "/etc/localtime is no link to a time zone's file");
    (void)snprintf(ret, ZONE_NAME_MAX + 1, "%s", name);
    return 0;
}

int zone_read(const char *name, struct zone **ret, uw_error *err)
{
    char path[sizeof ZONE_FOLDER + ZONE_NAME_MAX + 1];
    auto_(mem_free) char *text = NULL;
    size_t len = 0;

    if (!is_name(name))
        return fail(err, -EINVAL, "'%.40s' is no time zone (Europe/Berlin)", name);
    if (strcmp(name, "UTC") == 0) {
        *ret = calloc(1, sizeof **ret);
        return *ret ? 0 : fail(err, -ENOMEM, "out of memory");
    }
    (void)snprintf(path, sizeof path, "%s/%s", ZONE_FOLDER, name);
    int r = file_read(path, ZONE_FILE_MAX, &text, &len, err);
    if (r == -ENOENT || r == -EISDIR)
        return fail(err, -ENOENT, "'%s' is no time zone known here (%s)", name,
                    ZONE_FOLDER);
    if (r >= 0)
        r = zone_parse(text, len, ret, err);
    return r < 0 ? fail_in(err, r, "%s", name) : 0;
}

/* By the rule: the last change up to utc_s and the first one after it. */
static void by_rule(const struct zone *z, int64_t utc_s, struct zone_now *ret)
{
    int64_t days = utc_s / DAY_S - (utc_s % DAY_S < 0);

    *ret = (struct zone_now){z->winter_s, z->winter_s, INT64_MAX};
    if (!z->has_summer || days > DAYS_MAX || days < -DAYS_MAX)
        return;
    int64_t year = 1970 + days * 400 / DAYS_OF_400_YEARS - 1;
    while (days_to(year + 1, 1, 1) <= days)
        year++;
    int64_t last = INT64_MIN;
    for (int64_t y = year - 1; y <= year + 1; y++) {
        const struct change both[] = {
            {rule_in(&z->to_summer, y) - z->winter_s, z->summer_s},
            {rule_in(&z->to_winter, y) - z->summer_s, z->winter_s}};
        for (size_t i = 0; i < n_elements(both); i++) {
            if (both[i].utc_s <= utc_s && both[i].utc_s > last) {
                last = both[i].utc_s;
                ret->offset_s = both[i].offset_s;
            }
            if (both[i].utc_s > utc_s && both[i].utc_s < ret->change_utc_s) {
                ret->change_utc_s = both[i].utc_s;
                ret->after_s = both[i].offset_s;
            }
        }
    }
}

void zone_at(const struct zone *z, int64_t utc_s, struct zone_now *ret)
{
    size_t low = 0, high = z->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (z->change[mid].utc_s <= utc_s)
            low = mid + 1;
        else
            high = mid;
    }
    /* low: the first change after utc_s */
    if (low == z->n && z->has_rule) {
        by_rule(z, utc_s, ret);
        return;
    }
    int32_t offset_s = low ? z->change[low - 1].offset_s : z->first_s;
    *ret = (struct zone_now){offset_s, offset_s, INT64_MAX};
    while (low < z->n && z->change[low].offset_s == offset_s)
        low++;
    if (low < z->n)
        *ret = (struct zone_now){offset_s, z->change[low].offset_s, z->change[low].utc_s};
    else if (z->has_rule && z->n)
        by_rule(z, z->change[z->n - 1].utc_s,
                ret); /* its offset is that of the last change */
}

int64_t zone_utc_s(const struct zone *z, int64_t wall_s)
{
    struct zone_now before, now;

    zone_at(z, wall_s - DAY_S, &before);
    zone_at(z, wall_s + DAY_S, &now);
    const int32_t offset_s[] = {before.offset_s, now.offset_s};
    for (size_t i = 0; i < n_elements(offset_s); i++) {
        zone_at(z, wall_s - offset_s[i], &now);
        if (now.offset_s == offset_s[i])
            return wall_s - offset_s[i];
    }
    return wall_s - before.offset_s;
}
