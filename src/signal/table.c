/* The yearly carbon intensity of a country, from the table in signal/factors.h: for
 * sites without a better source.  Each day has the value as an estimate.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "signal/factors.h"
#include "signal/grid-zone.h"
#include "signal/kind.h"

#define DAY_S INT64_C(86400)

static int check(const struct source_config *c, const char *countries, uw_error *err)
{
    unsigned year = c->year, newest = 0;
    double g = 0;
    uw_error why = {""};

    if (grid_zone_check(c->zone, countries, &why) < 0)
        return fail(err, -EINVAL, "%s: zone: %s", c->name, why.text);
    if (strchr(c->zone, '-'))
        return fail(err, -EINVAL, "%s: zone: '%s' is a part of a country: give '%.2s'",
                    c->name, c->zone, c->zone);
    if (!factor_find(c->zone, &newest, &g))
        return fail(err, -EINVAL, "%s: zone: the table of factors has no '%s'", c->name,
                    c->zone);
    if (!factor_find(c->zone, &year, &g))
        return fail(
            err, -EINVAL,
            "%s: year: the table has no factor of %u for '%s', the newest is of %u",
            c->name, c->year, c->zone, newest);
    return 0;
}

static int read_answer(struct taking *t)
{
    unsigned year = t->c->year;
    struct source_point p = {.estimated = true};

    if (!factor_find(t->c->zone, &year, &p.v))
        return SOURCE_NO_DATA;
    p.from_utc_s = t->a->utc_s - t->a->utc_s % DAY_S;
    p.to_utc_s = p.from_utc_s + 2 * DAY_S;
    return take_point(t, take_series(t, 0, "g/kWh", 0), &p);
}

static void origin(const struct source_config *c, char ret[SOURCE_ORIGIN])
{
    unsigned year = c->year;
    double g = 0;

    if (factor_find(c->zone, &year, &g))
        (void)snprintf(ret, SOURCE_ORIGIN, "%s: %.2s %u, %s", FACTORS_ORIGIN, c->zone,
                       year, FACTORS_BOUND);
}

const struct source_kind kind_static = {
    .type = "static",
    .licence = FACTORS_LICENCE,
    .gives = {"carbon"},
    .must = KEY_ZONE,
    .may = KEY_YEAR,
    .way = SOURCE_TABLE,
    .least_s = 3600,
    .usual_s = 86400,
    .steps = 1,
    .check = check,
    .read = read_answer,
    .origin = origin,
};
