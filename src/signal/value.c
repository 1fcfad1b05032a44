/* CSV files and JSON, from a file or a server: a value or a series given by the site
 * (signal/read.h has the forms).
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "core/policy/unit.h"
#include "signal/kind.h"

/* ---- units ---- */

enum measure { MEASURE_POWER, MEASURE_ENERGY, MEASURE_CARBON, MEASURE_PRICE, MEASURES };
static const struct {
    int8_t power[POLICY_BASES]; /* watt, second, gram, kelvin, money */
    const char *unit; /* unit in this program; for a price, the currency precedes it */
} measures[MEASURES] = {
    [MEASURE_POWER] = {{1, 0, 0, 0, 0}, "kW"},
    [MEASURE_ENERGY] = {{1, 1, 0, 0, 0}, "kWh"},
    [MEASURE_CARBON] = {{-1, -1, 1, 0, 0}, "g/kWh"},
    [MEASURE_PRICE] = {{-1, -1, 0, 0, 1}, "/kWh"},
};

/* The program's unit for the quantity of `unit`, and the factor to it; false: unknown. */
static bool house_unit(const char *unit, char ret[SIGNAL_UNIT], double *ret_factor)
{
    struct signal_decl house = {.name = "", .type = POLICY_NUMBER};
    struct policy_unit u = {.point = false};
    double factor = 1;

    if (strcmp(unit, "lb/MWh") == 0) {
        (void)snprintf(ret, SIGNAL_UNIT, "g/kWh");
        *ret_factor = G_PER_LB / 1000;
        return true;
    }
    if (policy_unit_read(unit, strlen(unit), &u, &factor) != strlen(unit) || u.point)
        return false;
    for (size_t i = 0; i < MEASURES; i++) {
        if (memcmp(measures[i].power, u.power, sizeof u.power) != 0)
            continue;
        (void)snprintf(house.unit, sizeof house.unit, "%s%s", u.money, measures[i].unit);
        (void)snprintf(ret, SIGNAL_UNIT, "%s", house.unit);
        return signal_factor(&house, unit, ret_factor, NULL) == 0;
    }
    return false;
}

/* Checks that a well-known signal has the unit of its quantity. */
static int check_signal(const struct source_config *c, const char *house, uw_error *err)
{
    struct signal_decl d;
    double factor = 1;
    uw_error why = {""};

    for (size_t i = 0; signal_well_known(i, house, &d); i++)
        if (strcmp(d.name, c->as) == 0 && signal_factor(&d, house, &factor, &why) < 0)
            return fail(err, -EINVAL, "%s: unit: %s", c->name, why.text);
    return 0;
}

static int check(const struct source_config *c, const char *countries, uw_error *err)
{
    char house[SIGNAL_UNIT];
    double factor = 1;
    bool url = (c->given & KEY_URL) != 0, file = (c->given & KEY_FILE) != 0;
    (void)countries;

    if (url == file)
        return fail(err, -EINVAL, "%s: give one of url and file", c->name);
    if (!house_unit(c->unit, house, &factor))
        return fail(
            err, -EINVAL,
            "%s: unit: '%.31s' is none of energy, power, price or carbon: kWh, kW, "
            "EUR/MWh, g/kWh, lb/MWh",
            c->name, c->unit);
    return check_signal(c, house, err);
}

/* ---- requests and answers ---- */

static void ask(struct asking *a)
{
    (void)a; /* the URL is the whole request */
}

/* The time of a value without a time. */
static int64_t value_time(const struct taking *t)
{
    const char *modified = answer_header(t->a, "Last-Modified");
    int64_t at = 0;

    if (t->a->modified_utc_s)
        return t->a->modified_utc_s;
    return modified && http_date(modified, &at) && at <= t->now_utc_s ? at : t->a->utc_s;
}

static int put_reading(struct taking *t, const struct signal_reading *r)
{
    char house[SIGNAL_UNIT] = "";
    double factor = 1;
    struct source_point p = {0};
    int x = 0;

    (void)house_unit(t->c->unit, house, &factor);
    struct source_series *s = take_series(t, 0, house, t->a->modified_utc_s);
    if (!r->is_series) {
        p = (struct source_point){value_time(t), value_time(t), r->value.number * factor,
                                  false};
        return take_point(t, s, &p);
    }
    for (size_t i = 0; x == 0 && i < r->n; i++) {
        p.from_utc_s = r->point[i].utc_s;
        p.to_utc_s = i + 1 < r->n ? r->point[i + 1].utc_s : p.from_utc_s;
        p.v = r->point[i].v * factor;
        x = take_point(t, s, &p);
    }
    return x;
}

static int read_answer(struct taking *t)
{
    char name[SIGNAL_NAME];
    struct signal_reading reading = {.n = 0};
    struct signal_format format = {.name = t->c->file[0] ? t->c->file : "the answer",
                                   .type = POLICY_NUMBER,
                                   .csv = t->c->kind == &kind_csv,
                                   .is_forecast =
                                       signal_is_forecast(source_signal(t->c, 0, name)),
                                   .whole = !t->c->file[0],
                                   .path = t->c->path,
                                   .column = t->c->column};
    int r = signal_read(&format, t->a->body ? t->a->body : "", t->a->len, t->a->utc_s,
                        &reading, t->why);

    if (r < 0)
        return r == -ENOMEM ? r : r == -ENODATA ? SOURCE_NO_DATA : SOURCE_BAD;
    r = put_reading(t, &reading);
    signal_reading_fini(&reading);
    return r;
}

const struct source_kind kind_csv = {
    .type = "csv",
    .gives = {"value"},
    .ahead = 1,
    .must = KEY_FILE | KEY_UNIT,
    .may = KEY_COLUMN,
    .way = SOURCE_FILE,
    .least_s = 1,
    .usual_s = 60,
    .steps = 1,
    .check = check,
    .read = read_answer,
};

const struct source_kind kind_json = {
    .type = "json",
    .gives = {"value"},
    .must = KEY_UNIT,
    .may = KEY_URL | KEY_FILE | KEY_PATH,
    .least_s = 1,
    .usual_s = 60,
    .steps = 1,
    .whole_url = true,
    .check = check,
    .ask = ask,
    .read = read_answer,
};
