/* The web API of the Carbon Aware SDK, which a site runs with a data source of its own:
 * whether values are marginal or average depends on that source.
 *
 * Past values have `time`, `rating` and a duration as hh:mm:ss, forecasts `timestamp`,
 * `value` and a duration in minutes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "base/utf8.h"
#include "signal/kind.h"

enum { GIVES_NOW, GIVES_FORECAST };
enum { BACK_S = 2 * 3600, AHEAD_S = 24 * 3600, LONGEST_S = 86400, UNKNOWN_S = 3600 };

static int check(const struct source_config *c, const char *countries, uw_error *err)
{
    (void)countries;
    if (!c->location[0] || !utf8_is_plain(c->location))
        return fail(err, -EINVAL, "%s: location: a name, as in westeurope", c->name);
    return 0;
}

static bool wants(const struct source_config *c, unsigned step)
{
    return take_gives(c, step);
}

static void ask(struct asking *a)
{
    bool ahead = a->s->step == GIVES_FORECAST;
    int64_t now = a->utc_s - a->utc_s % 60;
    char from[MINUTE_TEXT], to[MINUTE_TEXT];

    ask_put(a, ahead ? "/emissions/forecasts/current" : "/emissions/bylocation");
    ask_query(a, "location", a->c->location);
    if (ahead) {
        ask_query(a, "dataEndAt", minute_iso(now + AHEAD_S, to));
        return;
    }
    ask_query(a, "time", minute_iso(now - BACK_S, from));
    ask_query(a, "toTime", minute_iso(now, to));
}

/* Minutes, or "01:00:00"; a missing one is an hour.  0: neither. */
static int64_t length_s(const struct json_value *v)
{
    const char *text = json_as_text(v);
    unsigned h = 0, m = 0, s = 0;
    uint64_t minutes = 0;
    int64_t r = UNKNOWN_S;

    if (text && strlen(text) == 8 && text[2] == ':' && text[5] == ':') {
        for (int i = 0; i < 8; i++)
            if (i != 2 && i != 5 && (text[i] < '0' || text[i] > '9'))
                return 0;
        h = (unsigned)((text[0] - '0') * 10 + text[1] - '0');
        m = (unsigned)((text[3] - '0') * 10 + text[4] - '0');
        s = (unsigned)((text[6] - '0') * 10 + text[7] - '0');
        r = INT64_C(3600) * h + INT64_C(60) * m + s;
    } else if (json_as_u64(v, &minutes)) {
        r = minutes > LONGEST_S / 60 ? 0 : (int64_t)minutes * 60;
    } else if (v && !json_is_none(v)) {
        return 0;
    }
    return r > LONGEST_S ? 0 : r;
}

static int take_one(struct taking *t, struct source_series *series,
                    const struct json_value *v)
{
    bool ahead = t->step == GIVES_FORECAST;
    struct source_point p = {.estimated = ahead};
    int64_t s = length_s(json_get(v, "duration"));

    if (!json_time(json_get(v, ahead ? "timestamp" : "time"), &p.from_utc_s))
        return fail(t->why, SOURCE_BAD, "'%s' of a value is not a time",
                    ahead ? "timestamp" : "time");
    if (!take_number(json_get(v, ahead ? "value" : "rating"), &p.v))
        return fail(t->why, SOURCE_BAD, "'%s' is not a number",
                    ahead ? "value" : "rating");
    if (s <= 0)
        return fail(t->why, SOURCE_BAD, "'duration' of a value is not valid");
    p.to_utc_s = p.from_utc_s + s;
    return take_point(t, series, &p);
}

static int read_answer(struct taking *t)
{
    auto_(json_free) struct json *doc = NULL;
    int64_t issued = 0;
    int r = take_json(t, &doc);

    if (r != 0)
        return r;
    const struct json_value *list = json_root(doc);
    if (!json_is_list(list))
        return fail(t->why, SOURCE_BAD, "the answer is not a list");
    if (t->step == GIVES_FORECAST) {
        const struct json_value *forecast = json_at(list, 0);
        (void)json_time(json_get(forecast, "generatedAt"), &issued);
        list = json_get(forecast, "forecastData");
        if (forecast && !json_is_list(list))
            return fail(t->why, SOURCE_BAD, "'forecastData' is not a list");
    }
    struct source_series *series = take_series(t, t->step, "g/kWh", issued);
    for (size_t i = 0; r == 0 && i < json_count(list); i++)
        r = take_one(t, series, json_at(list, i));
    return r;
}

const struct source_kind kind_carbon_aware = {
    .type = "carbon-aware-sdk",
    .gives = {"carbon", "carbon.forecast"},
    .ahead = 1 << GIVES_FORECAST,
    .must = KEY_URL | KEY_LOCATION,
    .least_s = 60,
    .usual_s = 900,
    .steps = 2,
    .check = check,
    .wants = wants,
    .ask = ask,
    .read = read_answer,
};
