#include "core/policy/unit.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"

enum { POWER_MAX = 4 };

struct atom {
    const char *name;
    double factor;
    struct policy_unit unit;
};
#define IS(...)                                \
    {                                          \
        .power = {__VA_ARGS__}, .point = false \
    }
/* clang-format off */
static const struct atom atoms[] = {
    {"W",    1,     IS(1)},       {"kW",   1e3,   IS(1)},       {"MW",  1e6,   IS(1)},
    {"mW",   1e-3,  IS(1)},
    {"J",    1,     IS(1, 1)},    {"kJ",   1e3,   IS(1, 1)},    {"MJ",  1e6,   IS(1, 1)},
    {"Wh",   3600,  IS(1, 1)},    {"kWh",  3.6e6, IS(1, 1)},    {"MWh", 3.6e9, IS(1, 1)},
    {"s",    1,     IS(0, 1)},    {"ms",   1e-3,  IS(0, 1)},    {"min", 60,    IS(0, 1)},
    {"h",    3600,  IS(0, 1)},    {"d",    86400, IS(0, 1)},    {"day", 86400, IS(0, 1)},
    {"days", 86400, IS(0, 1)},    {"sec",  1,     IS(0, 1)},    {"m",   60,    IS(0, 1)},
    {"second", 1,   IS(0, 1)},    {"seconds", 1,  IS(0, 1)},    {"hour", 3600, IS(0, 1)},
    {"minute", 60,  IS(0, 1)},    {"minutes", 60, IS(0, 1)},    {"hours", 3600, IS(0, 1)},
    {"Hz",   1,     IS(0, -1)},   {"MHz",  1e6,   IS(0, -1)},   {"GHz", 1e9,   IS(0, -1)},
    {"g",    1,     IS(0, 0, 1)}, {"kg",   1e3,   IS(0, 0, 1)}, {"t",   1e6,   IS(0, 0, 1)},
    {"K",    1,     IS(0, 0, 0, 1)},
    {"°C",   1,     {.power = {0, 0, 0, 1}, .point = true}},
    {"%",    0.01,  IS(0)},
};
/* Names of composed units in messages; the first one that fits is used. */
static const char *const composed[] = {"g/kWh", "kWh", "W/s", "g/h", "K/s"};
/* clang-format on */

const char *policy_unit_known(size_t i)
{
    return i < n_elements(atoms) ? atoms[i].name : NULL;
}

/* Length of the run of letters, "°" and "%" at text. */
static size_t word_length(const char *text, size_t len)
{
    size_t n = 0;

    if (len > 0 && text[0] == '%')
        return 1;
    while (n < len && (isalpha((unsigned char)text[n]) || (text[n] & 0x80)))
        n++;
    /* kWh2 and s_1 are names, not units */
    return n < len && (isdigit((unsigned char)text[n]) || text[n] == '_') ? 0 : n;
}

static bool is_currency(const char *text, size_t len)
{
    return len == 3 && isupper((unsigned char)text[0]) &&
           isupper((unsigned char)text[1]) && isupper((unsigned char)text[2]);
}

static size_t read_atom(const char *text, size_t len, struct atom *ret)
{
    size_t n = word_length(text, len);

    for (size_t i = 0; n > 0 && i < n_elements(atoms); i++) {
        if (strlen(atoms[i].name) == n && memcmp(atoms[i].name, text, n) == 0) {
            *ret = atoms[i];
            return n;
        }
    }
    if (!is_currency(text, n))
        return 0;
    *ret = (struct atom){.factor = 1, .unit.power[POLICY_MONEY] = 1};
    memcpy(ret->unit.money, text, 3);
    return n;
}

size_t policy_unit_read(const char *text, size_t len, struct policy_unit *ret,
                        double *ret_factor)
{
    struct atom above = {0}, below = {0};
    struct policy_unit both = {0};
    size_t n = read_atom(text, len, &above);

    if (n == 0)
        return 0;
    *ret = above.unit;
    *ret_factor = above.factor;
    if (n + 1 >= len || text[n] != '/')
        return n;
    size_t m = read_atom(text + n + 1, len - n - 1, &below);
    size_t end = n + 1 + m;
    /* "W/s.x" and "W/s(": a name follows the slash */
    if (m == 0 || (end < len && (text[end] == '.' || text[end] == '(')))
        return n;
    if (!policy_unit_over(&above.unit, &below.unit, &both))
        return n;
    *ret = both;
    *ret_factor = above.factor / below.factor;
    return end;
}

bool policy_unit_same(const struct policy_unit *a, const struct policy_unit *b)
{
    return memcmp(a->power, b->power, sizeof a->power) == 0 && a->point == b->point &&
           strcmp(a->money, b->money) == 0;
}

bool policy_unit_is_plain(const struct policy_unit *unit)
{
    static const struct policy_unit plain;

    return policy_unit_same(unit, &plain);
}

static bool combine(const struct policy_unit *a, const struct policy_unit *b, int sign,
                    struct policy_unit *ret)
{
    struct policy_unit unit = {0};

    if (a->point || b->point ||
        (a->money[0] && b->money[0] && strcmp(a->money, b->money) != 0))
        return false;
    for (size_t i = 0; i < POLICY_BASES; i++) {
        int power = a->power[i] + sign * b->power[i];
        if (power > POWER_MAX || power < -POWER_MAX)
            return false;
        unit.power[i] = (int8_t)power;
    }
    if (unit.power[POLICY_MONEY])
        memcpy(unit.money, a->money[0] ? a->money : b->money, sizeof unit.money);
    *ret = unit;
    return true;
}

bool policy_unit_times(const struct policy_unit *a, const struct policy_unit *b,
                       struct policy_unit *ret)
{
    return combine(a, b, 1, ret);
}

bool policy_unit_over(const struct policy_unit *a, const struct policy_unit *b,
                      struct policy_unit *ret)
{
    return combine(a, b, -1, ret);
}

/* "EUR/kWh": a known unit with a currency before it. */
static bool money_name(const struct policy_unit *unit, char ret[POLICY_UNIT_NAME])
{
    static const char *const below[] = {"", "/kWh", "/h"};
    struct policy_unit other = {0};
    char text[POLICY_UNIT_NAME];
    double factor;

    for (size_t i = 0; i < n_elements(below); i++) {
        int n = snprintf(text, sizeof text, "%s%s", unit->money, below[i]);
        if (policy_unit_read(text, (size_t)n, &other, &factor) == (size_t)n &&
            policy_unit_same(unit, &other)) {
            memcpy(ret, text, (size_t)n + 1);
            return true;
        }
    }
    return false;
}

static bool known_name(const struct policy_unit *unit, char ret[POLICY_UNIT_NAME])
{
    struct policy_unit other = {0};
    double factor;

    for (size_t i = 0; i < n_elements(composed); i++) {
        (void)policy_unit_read(composed[i], strlen(composed[i]), &other, &factor);
        if (policy_unit_same(unit, &other)) {
            (void)snprintf(ret, POLICY_UNIT_NAME, "%s", composed[i]);
            return true;
        }
    }
    for (size_t i = 0; i < n_elements(atoms); i++) {
        if (policy_unit_same(unit, &atoms[i].unit)) {
            (void)snprintf(ret, POLICY_UNIT_NAME, "%s", atoms[i].name);
            return true;
        }
    }
    return unit->money[0] && money_name(unit, ret);
}

const char *policy_unit_name(const struct policy_unit *unit, char ret[POLICY_UNIT_NAME])
{
    static const char *const base[] = {"W", "s", "g", "K", ""};
    size_t used = 0;

    if (policy_unit_is_plain(unit)) {
        (void)snprintf(ret, POLICY_UNIT_NAME, "plain numbers");
        return ret;
    }
    if (known_name(unit, ret))
        return ret;
    ret[0] = '\0';
    for (size_t i = 0; i < POLICY_BASES && used < POLICY_UNIT_NAME; i++) {
        const char *name = i == POLICY_MONEY ? unit->money : base[i];
        if (unit->power[i] == 1)
            used += (size_t)snprintf(ret + used, POLICY_UNIT_NAME - used, "%s%s",
                                     used ? " " : "", name);
        else if (unit->power[i])
            used += (size_t)snprintf(ret + used, POLICY_UNIT_NAME - used, "%s%s^%d",
                                     used ? " " : "", name, unit->power[i]);
    }
    return ret;
}
