#include "signal/signal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/units.h"
#include "base/utf8.h"

static const char forecast[] = ".forecast";

/* ---- well-known signals ---- */

/* clang-format off */
static const struct {
    const char *name, *unit; /* "/kWh": of the site's currency */
    unsigned age_s;
    bool by_name;            /* "queue.depth.NAME" matches, too */
} well_known[] = {
    {"carbon",                   "g/kWh", 7200, false},
    {"carbon.forecast",          "g/kWh", 7200, false},
    {"carbon.marginal",          "g/kWh", 7200, false},
    {"price",                    "/kWh",  7200, false},
    {"price.forecast",           "/kWh",  7200, false},
    {"queue.depth",              "",       300, true},
    {"queue.wait",               "s",      300, true},
    {"queue.gpus",               "",       300, true},
    {"rack.power",               "kW",      60, false},
};
/* First words of the node's own signals, and words of conditions. */
static const char *const reserved[] = {"job", "board", "node", "rule", "and", "or", "not",
                                       "true", "false", "min", "max", "abs", "known"};
/* Last words that are functions of a series. */
static const char *const functions[] = {"mean", "min", "max", "percentile"};
/* clang-format on */

static void fill(size_t i, const char *currency, struct signal_decl *ret)
{
    bool price = well_known[i].unit[0] == '/';

    *ret = (struct signal_decl){.type = POLICY_NUMBER,
                                .age_ns = well_known[i].age_s * NS_PER_S};
    (void)snprintf(ret->name, sizeof ret->name, "%s", well_known[i].name);
    (void)snprintf(ret->unit, sizeof ret->unit, "%.3s%s", price ? currency : "",
                   well_known[i].unit);
}

bool signal_well_known(size_t i, const char *currency, struct signal_decl *ret)
{
    if (i >= n_elements(well_known))
        return false;
    fill(i, currency, ret);
    return true;
}

/* The well-known signal of this name, or of its queue; false: a signal of the site. */
static bool is_well_known(const char *name, const char *currency, struct signal_decl *ret)
{
    for (size_t i = 0; i < n_elements(well_known); i++) {
        size_t n = strlen(well_known[i].name);
        if (strcmp(name, well_known[i].name) != 0 &&
            (!well_known[i].by_name || strncmp(name, well_known[i].name, n) != 0 ||
             name[n] != '.'))
            continue;
        fill(i, currency, ret);
        return true;
    }
    return false;
}

bool signal_is_forecast(const char *name)
{
    size_t n = strlen(name), m = sizeof forecast - 1;

    return n > m && strcmp(name + n - m, forecast) == 0;
}

/* ---- declarations ---- */

static bool is_one_of(const char *const *words, size_t n, const char *text, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(words[i]) == len && memcmp(words[i], text, len) == 0)
            return true;
    return false;
}

/* Letters, digits and underscores with single dots between them; a letter first. */
static bool is_dotted(const char *name)
{
    bool dot = true;

    if (!isalpha((unsigned char)name[0]))
        return false;
    for (const char *p = name; *p; p++) {
        if (*p != '_' && !isalnum((unsigned char)*p) && (*p != '.' || dot))
            return false;
        dot = *p == '.';
    }
    return !dot;
}

static int check_name(const char *name, uw_error *err)
{
    const char *last = strrchr(name, '.');
    size_t first = strcspn(name, ".");

    if (!utf8_is_plain(name) || !is_dotted(name))
        return fail(
            err, -EINVAL,
            "'%.63s' is not the name of a signal: letters, digits and _, with dots "
            "between words, as in rack.power",
            utf8_is_plain(name) ? name : "?");
    if (is_one_of(reserved, n_elements(reserved), name, first))
        return fail(err, -EINVAL,
                    "'%.63s': names that begin with '%.*s' are the node's own", name,
                    (int)first, name);
    if (last && is_one_of(functions, n_elements(functions), last + 1, strlen(last + 1)))
        return fail(err, -EINVAL, "'%.63s': '%s' is a function of a series", name,
                    last + 1);
    return 0;
}

static int fail_unit(const char *unit, uw_error *err)
{
    struct nearest near = {0};
    char hint[NEAREST_TEXT];
    const char *known;

    for (size_t i = 0; (known = policy_unit_known(i)); i++)
        nearest_try(&near, unit, strlen(unit), known);
    return fail(err, -EINVAL, "'%.31s' is no unit%s", unit, nearest_text(&near, hint));
}

static int read_unit(const char *unit, struct policy_unit *ret, double *ret_factor,
                     uw_error *err)
{
    *ret = (struct policy_unit){0};
    *ret_factor = 1;
    if (!*unit)
        return 0;
    if (policy_unit_read(unit, strlen(unit), ret, ret_factor) != strlen(unit))
        return fail_unit(unit, err);
    return 0;
}

/* Removes the rounding of the two factors: 1000 for kg in g, 1/1000 the other way. */
static double whole(double factor)
{
    double up = round(factor), down = round(1 / factor);

    if (up > 0 && fabs(factor - up) < 1e-12 * up)
        return up;
    return down > 0 && fabs(1 / factor - down) < 1e-12 * down ? 1 / down : factor;
}

int signal_factor(const struct signal_decl *d, const char *unit, double *ret,
                  uw_error *err)
{
    struct policy_unit own, other;
    double from = 1, to = 1;

    if (!*unit) {
        *ret = 1;
        return 0;
    }
    int r = read_unit(unit, &other, &from, err);
    if (r == 0)
        r = read_unit(d->unit, &own, &to, err);
    if (r < 0)
        return r;
    if (!policy_unit_same(&own, &other))
        return d->unit[0]
                   ? fail(err, -EINVAL, "%s is in %s, %s is not", d->name, d->unit, unit)
                   : fail(err, -EINVAL, "%s is a plain number, without %s", d->name,
                          unit);
    *ret = whole(from / to);
    return 0;
}

static int check_type(const struct signal_decl *d, uw_error *err)
{
    struct policy_unit unit;
    double factor;

    if (d->type != POLICY_NUMBER && d->unit[0])
        return fail(err, -EINVAL, "%s is %s: it has no unit", d->name,
                    signal_type_name(d->type));
    if (d->type != POLICY_NUMBER && signal_is_forecast(d->name))
        return fail(err, -EINVAL, "%s: only numbers have a forecast", d->name);
    return read_unit(d->unit, &unit, &factor, err);
}

static int check_age(const struct signal_decl *d, uw_error *err)
{
    if (!d->age_ns)
        return fail(err, -EINVAL, "%s needs 'age': for how long a value holds, at most",
                    d->name);
    if (d->age_ns < NS_PER_S || d->age_ns > SIGNAL_AGE_MAX_S * NS_PER_S)
        return fail(err, -ERANGE, "%s: an age of %g s is outside 1 s..14 d", d->name,
                    s_of_ns(d->age_ns));
    return 0;
}

int signal_declared(struct signal_decl *d, const char *currency, uw_error *err)
{
    struct signal_decl own, known;
    double factor = 1;
    int r = check_name(d->name, err);

    if (r < 0)
        return r;
    own = *d;
    if (is_well_known(d->name, currency, &known)) {
        r = d->type == POLICY_NUMBER ? signal_factor(&known, d->unit, &factor, err)
                                     : fail(err, -EINVAL, "%s is a number", d->name);
        memcpy(own.unit, known.unit, sizeof own.unit);
        if (!own.age_ns)
            own.age_ns = known.age_ns;
    }
    if (r == 0)
        r = check_type(&own, err);
    if (r == 0)
        r = check_age(&own, err);
    if (r == 0)
        *d = own;
    return r;
}

/* ---- values ---- */

const char *signal_type_name(enum policy_type type)
{
    return type == POLICY_NUMBER ? "a number"
           : type == POLICY_TEXT ? "a text"
                                 : "true or false";
}

int signal_in_range(const char *name, double number, uw_error *err)
{
    if ((strcmp(name, "carbon") != 0 && strcmp(name, "carbon.forecast") != 0) ||
        isnan(number) || (number >= 0 && number <= SIGNAL_CARBON_MAX))
        return 0;
    return fail(err, -ERANGE, "%s: %g is outside 0..%d g/kWh", name, number,
                SIGNAL_CARBON_MAX);
}

/* Length of [+-]digits[.digits][e[+-]digits] at text; 0: there is no number. */
static size_t number_length(const char *text)
{
    size_t n = text[0] == '-' || text[0] == '+', digits = strspn(text + n, "0123456789.");

    if (digits == 0)
        return 0;
    n += digits;
    if (text[n] == 'e' || text[n] == 'E') {
        size_t sign = text[n + 1] == '-' || text[n + 1] == '+';
        size_t power = strspn(text + n + 1 + sign, "0123456789");
        n += power ? 1 + sign + power : 0;
    }
    return n;
}

static int read_number(const char *text, size_t n, struct signal_value *ret,
                       char unit[SIGNAL_UNIT], uw_error *err)
{
    char number[40];
    const char *rest = text + n + strspn(text + n, " ");
    size_t len = strlen(rest);

    if (n >= sizeof number)
        return fail(err, -EINVAL, "'%.40s': a number has %zu characters at most", text,
                    sizeof number - 1);
    while (len > 0 && rest[len - 1] == ' ')
        len--;
    if (len >= SIGNAL_UNIT)
        return fail(err, -EINVAL, "'%.40s' is no unit", rest);
    memcpy(number, text, n);
    number[n] = '\0';
    int r = parse_double(number, &ret->number, err);
    if (r < 0)
        return r;
    ret->type = POLICY_NUMBER;
    memcpy(unit, rest, len);
    unit[len] = '\0';
    return 0;
}

int signal_value_read(const char *text, struct signal_value *ret, char unit[SIGNAL_UNIT],
                      uw_error *err)
{
    struct signal_value v = {.type = POLICY_TEXT};
    bool is_true = strcmp(text, "true") == 0;
    int r = 0;

    text += strspn(text, " ");
    unit[0] = '\0';
    size_t n = number_length(text);
    if (n > 0) {
        r = read_number(text, n, &v, unit, err);
    } else if (is_true || strcmp(text, "false") == 0) {
        v = (struct signal_value){.type = POLICY_TRUTH, .truth = is_true};
    } else if (!*text || strlen(text) >= sizeof v.text || !utf8_is_plain(text)) {
        r = fail(err, -EINVAL, "a text has 1 to %d bytes that can be shown",
                 SIGNAL_TEXT - 1);
    } else {
        (void)snprintf(v.text, sizeof v.text, "%s", text);
    }
    if (r == 0)
        *ret = v;
    return r;
}

const char *signal_value_show(const struct signal_value *v, const char *unit,
                              char ret[SIGNAL_SHOWN])
{
    if (v->type == POLICY_NUMBER)
        (void)snprintf(ret, SIGNAL_SHOWN, "%.6g%s%s", v->number, *unit ? " " : "", unit);
    else if (v->type == POLICY_TRUTH)
        (void)snprintf(ret, SIGNAL_SHOWN, "%s", v->truth ? "true" : "false");
    else
        (void)snprintf(ret, SIGNAL_SHOWN, "%s", v->text);
    return ret;
}

bool signal_value_same(const struct signal_value *a, const struct signal_value *b)
{
    if (a->type != b->type)
        return false;
    return a->type == POLICY_NUMBER  ? a->number == b->number
           : a->type == POLICY_TRUTH ? a->truth == b->truth
                                     : strcmp(a->text, b->text) == 0;
}
