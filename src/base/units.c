#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"

uint64_t ns_of_s(double s)
{
    if (!(s > 0))
        return 0;
    if (s >= 1.8e10)
        return UINT64_MAX;
    return (uint64_t)(s * 1e9 + 0.5);
}

uint32_t mw_of_w(double w)
{
    if (!(w > 0))
        return 0;
    if (w >= 4294967.0)
        return UINT32_MAX;
    return (uint32_t)(w * 1e3 + 0.5);
}

/* True if only blanks follow. */
static bool at_end(const char *p)
{
    while (isspace((unsigned char)*p))
        p++;
    return *p == '\0';
}

static const char *skip_blank(const char *p)
{
    while (isspace((unsigned char)*p))
        p++;
    return p;
}

int parse_u64(const char *text, uint64_t *ret, uw_error *err)
{
    const char *p = skip_blank(text);
    char *end;

    if (*p == '-' && parse_i64(text, &(int64_t){0}, NULL) == 0)
        return fail(err, -EINVAL, "'%s' is below 0", text);
    if (!isdigit((unsigned char)*p))
        return fail(err, -EINVAL, "'%s' is not a whole number", text);
    errno = 0;
    unsigned long long v = strtoull(p, &end, 10);
    if (!at_end(end))
        return fail(err, -EINVAL, "'%s' is not a whole number", text);
    if (errno == ERANGE)
        return fail(err, -ERANGE, "'%s' is too large", text);
    *ret = v;
    return 0;
}

int parse_i64(const char *text, int64_t *ret, uw_error *err)
{
    const char *p = skip_blank(text);
    const char *digits = *p == '-' || *p == '+' ? p + 1 : p;
    char *end;

    if (!isdigit((unsigned char)*digits))
        return fail(err, -EINVAL, "'%s' is not a whole number", text);
    errno = 0;
    long long v = strtoll(p, &end, 10);
    if (!at_end(end))
        return fail(err, -EINVAL, "'%s' is not a whole number", text);
    if (errno == ERANGE)
        return fail(err, -ERANGE, "'%s' is out of range", text);
    *ret = v;
    return 0;
}

/* Length of the longest prefix of the form [+-]digits[.digits][e[+-]digits], or 0.
 * Unlike strtod() it rejects hexadecimal, "inf" and "nan".
 */
static size_t number_length(const char *p)
{
    const char *q = p;
    size_t digits = 0;

    if (*q == '+' || *q == '-')
        q++;
    for (; isdigit((unsigned char)*q); q++)
        digits++;
    if (*q == '.')
        q++;
    for (; isdigit((unsigned char)*q); q++)
        digits++;
    if (digits == 0)
        return 0;
    if (*q == 'e' || *q == 'E') {
        const char *x = q + 1;
        if (*x == '+' || *x == '-')
            x++;
        if (isdigit((unsigned char)*x)) {
            while (isdigit((unsigned char)*x))
                x++;
            q = x;
        }
    }
    return (size_t)(q - p);
}

/* Parses a leading number; *ret_rest points behind it. */
static int leading_number(const char *text, double *ret, const char **ret_rest,
                          uw_error *err)
{
    const char *p = skip_blank(text);
    char buf[64];
    size_t n = number_length(p);

    if (n == 0)
        return fail(err, -EINVAL, "'%s' is not a number", text);
    if (n >= sizeof buf)
        return fail(err, -ERANGE, "'%.40s…' has too many digits", text);
    memcpy(buf, p, n);
    buf[n] = '\0';
    double v = strtod(buf, NULL);
    if (!isfinite(v))
        return fail(err, -ERANGE, "'%s' is too large", text);
    *ret = v;
    *ret_rest = p + n;
    return 0;
}

int parse_double(const char *text, double *ret, uw_error *err)
{
    const char *rest = text;
    double v = 0;

    int r = leading_number(text, &v, &rest, err);
    if (r < 0)
        return r;
    if (!at_end(rest))
        return fail(err, -EINVAL, "'%s' is not a number", text);
    *ret = v;
    return 0;
}

bool is_iso_currency(const char *text)
{
    return strlen(text) == CURRENCY - 1 &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == CURRENCY - 1;
}

int parse_price(const char *text, double *ret_per_kwh, char ret_currency[CURRENCY],
                uw_error *err)
{
    const char *space = strchr(text, ' ');
    size_t n = space ? (size_t)(space - text) : strlen(text);
    char number[32], currency[CURRENCY] = "";
    double v = 0;

    bool good = n < sizeof number && (!space || strlen(space + 1) == CURRENCY - 1);
    for (size_t i = 0; good && space && i < CURRENCY - 1; i++)
        currency[i] = (char)toupper((unsigned char)space[1 + i]);
    good = good && (!space || is_iso_currency(currency));
    if (good) {
        memcpy(number, text, n);
        number[n] = '\0';
        good = parse_double(number, &v, NULL) == 0;
    }
    if (!good)
        return fail(err, -EINVAL,
                    "'%.40s' is not of the form '0.30 EUR': a number and three letters",
                    text);
    *ret_per_kwh = v;
    (void)snprintf(ret_currency, CURRENCY, "%s", currency);
    return 0;
}

struct unit {
    const char *name;
    double factor;
};

/* Parses a number with a unit of the table; -EINVAL names the known units. */
static int with_unit(const char *text, const struct unit *units, size_t n, double *ret,
                     uw_error *err)
{
    const char *rest = text;
    double v = 0;

    int r = leading_number(text, &v, &rest, err);
    if (r < 0)
        return r;
    rest = skip_blank(rest);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(units[i].name);
        if (strncmp(rest, units[i].name, len) == 0 && at_end(rest + len)) {
            *ret = v * units[i].factor;
            return 0;
        }
    }
    if (*rest == '\0')
        return fail(err, -EINVAL, "'%s' has no unit: write '%s %s'", text, text,
                    units[0].name);
    char names[120] = "";
    size_t used = 0;
    for (size_t i = 0; i < n && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 units[i].name);
    return fail(err, -EINVAL, "'%s' has no unit known here (%s)", text, names);
}

/* The first POWERS are of power; errors of parse_cap() name the last one, too. */
static const struct unit cap_units[] = {{"W", 1}, {"mW", 1e-3}, {"kW", 1e3}, {"%", 0}};
enum { POWERS = 3 };

static int read_power(const char *text, size_t n_units, uint32_t *ret_mw, uw_error *err)
{
    double w = 0;

    int r = with_unit(text, cap_units, n_units, &w, err);
    if (r < 0)
        return r;
    if (w < 0 || w > 4e6)
        return fail(err, -ERANGE, "'%s' is outside 0 W..4000 kW", text);
    *ret_mw = mw_of_w(w);
    return 0;
}

int parse_power(const char *text, uint32_t *ret_mw, uw_error *err)
{
    return read_power(text, POWERS, ret_mw, err);
}

int parse_clock(const char *text, uint32_t *ret_mhz, uw_error *err)
{
    static const struct unit units[] = {{"MHz", 1}, {"GHz", 1e3}, {"kHz", 1e-3}};
    double mhz = 0;

    int r = with_unit(text, units, n_elements(units), &mhz, err);
    if (r < 0)
        return r;
    if (mhz < 1 || mhz > 1e4)
        return fail(err, -ERANGE, "'%s' is outside 1 MHz..10 GHz", text);
    *ret_mhz = (uint32_t)(mhz + 0.5);
    return 0;
}

static const struct unit *unit_of_time(const char *word, size_t len)
{
    /* clang-format off */
    static const struct unit units[] = {
        {"s", 1}, {"sec", 1}, {"second", 1}, {"seconds", 1},
        {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9},
        {"m", 60}, {"min", 60}, {"minute", 60}, {"minutes", 60},
        {"h", 3600}, {"hour", 3600}, {"hours", 3600},
        {"d", 86400}, {"day", 86400}, {"days", 86400},
    };
    /* clang-format on */
    for (size_t i = 0; i < n_elements(units); i++)
        if (strlen(units[i].name) == len && memcmp(units[i].name, word, len) == 0)
            return &units[i];
    return NULL;
}

/* One number with its unit; *ret_rest points behind it. */
static int time_part(const char *text, double *ret_s, double *ret_unit_s,
                     const char **ret_rest, uw_error *err)
{
    const char *rest = text;
    double v = 0;

    int r = leading_number(text, &v, &rest, err);
    if (r < 0)
        return r;
    rest = skip_blank(rest);
    size_t len = 0;
    while (isalpha((unsigned char)rest[len]))
        len++;
    if (rest[len] == '\0' && len == 0)
        return fail(err, -EINVAL, "'%s' has no unit: write '%s s'", text, text);
    const struct unit *unit = unit_of_time(rest, len);
    if (!unit)
        return fail(err, -EINVAL,
                    "'%s' has no unit known here (s, sec, second, seconds, ms, us, ns, "
                    "m, min, minute, minutes, h, hour, hours, d, day, days)",
                    text);
    *ret_s = v * unit->factor;
    *ret_unit_s = unit->factor;
    *ret_rest = rest + len;
    return 0;
}

int parse_duration(const char *text, uint64_t *ret_ns, uw_error *err)
{
    const char *rest = text;
    double s = 0, smallest_s = INFINITY;

    do {
        double part_s = 0, unit_s = 0;
        const char *at = skip_blank(rest);
        int r = time_part(at, &part_s, &unit_s, &rest, err);
        if (r < 0 && at > skip_blank(text))
            return fail_in(err, r, "'%s'", text);
        if (r < 0)
            return r;
        if (unit_s >= smallest_s)
            return fail(err, -EINVAL,
                        "'%s': units go from the largest to the smallest, as in 1h30m",
                        text);
        if (part_s < 0)
            return fail(err, -ERANGE, "'%s' is below 0 s", text);
        if (s + part_s > DURATION_MAX_S)
            return fail(err, -ERANGE, "'%s' is outside 0 s..100 years", text);
        smallest_s = unit_s;
        s += part_s;
    } while (!at_end(rest));
    *ret_ns = ns_of_s(s);
    return 0;
}

static void cap_typed(struct cap_arg *cap, const char *text)
{
    if (strlen(text) < sizeof cap->typed)
        (void)snprintf(cap->typed, sizeof cap->typed, "%s", text);
}

int parse_cap(const char *text, struct cap_arg *ret, uw_error *err)
{
    const char *rest = text;
    double v = 0;

    int r = leading_number(text, &v, &rest, err);
    if (r < 0)
        return r;
    rest = skip_blank(rest);
    if (*rest == '%' && at_end(rest + 1)) {
        if (!(v > 0 && v <= 100))
            return fail(err, -ERANGE, "'%s' must be above 0 %% and at most 100 %%", text);
        *ret = (struct cap_arg){.percent = v};
        cap_typed(ret, text);
        return 0;
    }
    uint32_t mw = 0;
    if (*rest == '\0') {
        if (!(v > 0 && v <= 4e6))
            return fail(err, -ERANGE, "'%s' must be above 0 W and at most 4000 kW", text);
        mw = mw_of_w(v);
    } else if (v > 0) {
        r = read_power(text, n_elements(cap_units), &mw, err);
        if (r < 0)
            return r;
    }
    if (mw == 0)
        return fail(err, -ERANGE, "'%s': a cap is more than 0 W", text);
    *ret = (struct cap_arg){.mw = mw};
    cap_typed(ret, text);
    return 0;
}

int parse_limit(const char *text, struct cap_arg *ret, uw_error *err)
{
    const char *rest = text;
    double v = 0;

    if (leading_number(text, &v, &rest, NULL) < 0 || !at_end(rest))
        return parse_cap(text, ret, err);
    return fail(err, -EINVAL,
                "'%s' has no unit: write '%s W', or a percentage such as '85 %%'", text,
                text);
}

/* Whether the text is these watts as messages print them, with or without a unit. */
static bool says_watts(const char *typed, const char *watts)
{
    size_t n = strlen(watts);

    if (strncmp(typed, watts, n) != 0)
        return false;
    typed = skip_blank(typed + n);
    return at_end(typed + (*typed == 'W'));
}

const char *watts_typed(const char *typed, uint32_t mw, char ret[WATTS_TEXT])
{
    char watts[24];

    (void)snprintf(watts, sizeof watts, "%g", w_of_mw(mw));
    if (!typed || !*typed)
        (void)snprintf(ret, WATTS_TEXT, "%s W", watts);
    else if (says_watts(typed, watts))
        (void)snprintf(ret, WATTS_TEXT, "'%.32s'", typed);
    else
        (void)snprintf(ret, WATTS_TEXT, "'%.24s' (%s W)", typed, watts);
    return ret;
}

const char *percent_hint(const char *typed, uint32_t mw, uint32_t low_mw,
                         char ret[PERCENT_HINT])
{
    const char *rest = typed;
    double v = 0;

    ret[0] = '\0';
    if (!typed || mw >= low_mw || leading_number(typed, &v, &rest, NULL) < 0 || v > 100)
        return ret;
    if (at_end(rest) || strcmp(rest, " W") == 0)
        (void)snprintf(ret, PERCENT_HINT, ": did you mean '%g%%'?", v);
    return ret;
}

const char *cap_outside(const struct cap_arg *cap, uint32_t mw, uint32_t low_mw,
                        uint32_t high_mw, const char *what, char ret[CAP_OUTSIDE_TEXT])
{
    char watts[WATTS_TEXT], hint[PERCENT_HINT];

    (void)snprintf(ret, CAP_OUTSIDE_TEXT, "%s is outside %g..%g W%s%s",
                   watts_typed(cap->typed, mw, watts), w_of_mw(low_mw), w_of_mw(high_mw),
                   what, percent_hint(cap->typed, mw, low_mw, hint));
    return ret;
}
