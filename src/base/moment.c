#include "base/moment.h"

#include <string.h>
#include <time.h>

/* Exactly n digits; moves *at on. */
static bool digits(const char **at, int n, int *ret)
{
    int v = 0;

    for (int i = 0; i < n; i++) {
        char c = (*at)[i];
        if (c < '0' || c > '9')
            return false;
        v = v * 10 + (c - '0');
    }
    *at += n;
    *ret = v;
    return true;
}

static bool letter(const char **at, char c)
{
    if (**at != c)
        return false;
    (*at)++;
    return true;
}

static bool read_zone(const char **at, struct moment *m)
{
    int hour = 0, minute = 0;
    bool west = **at == '-';

    if (letter(at, 'Z')) {
        m->has_zone = true;
        return true;
    }
    if (**at != '+' && **at != '-' && **at != ' ') /* '+' of a URL is a blank */
        return true;
    (*at)++;
    if (!digits(at, 2, &hour))
        return false;
    (void)letter(at, ':');
    if (!digits(at, 2, &minute) || hour > 14 || minute > 59)
        return false;
    m->has_zone = true;
    m->zone_min = (west ? -1 : 1) * (hour * 60 + minute);
    return true;
}

static bool read_clock(const char **at, struct moment *m)
{
    if (!letter(at, 'T') && !letter(at, ' '))
        return false;
    if (!digits(at, 2, &m->hour) || !letter(at, ':') || !digits(at, 2, &m->minute))
        return false;
    if (letter(at, ':') && !digits(at, 2, &m->second))
        return false;
    if (letter(at, '.')) /* parts of a second do not count */
        *at += strspn(*at, "0123456789");
    return m->hour < 24 && m->minute < 60 && m->second < 60 && read_zone(at, m);
}

static int month_days(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

bool moment_read(const char *text, struct moment *ret)
{
    struct moment m = {0};
    const char *at = text;

    if (!digits(&at, 4, &m.year) || !letter(&at, '-') || !digits(&at, 2, &m.month) ||
        !letter(&at, '-') || !digits(&at, 2, &m.day))
        return false;
    if (m.year < 1970 || m.year > 2200 || m.month < 1 || m.month > 12 || m.day < 1 ||
        m.day > month_days(m.year, m.month))
        return false;
    m.date_only = *at == '\0';
    if (!m.date_only && (!read_clock(&at, &m) || *at != '\0'))
        return false;
    *ret = m;
    return true;
}

int64_t moment_utc_s(const struct moment *m)
{
    struct tm tm = {.tm_year = m->year - 1900,
                    .tm_mon = m->month - 1,
                    .tm_mday = m->day,
                    .tm_hour = m->hour,
                    .tm_min = m->minute,
                    .tm_sec = m->second};

    return (int64_t)timegm(&tm) - (int64_t)m->zone_min * 60;
}
