/* Electricity Maps, versions 3 and 4 of its API: average carbon intensity of a zone.
 *
 * For an unknown zone, the service uses the caller's address, unless a parameter forbids
 * this, whose name differs between the versions; the zone of the answer is compared as
 * well.  A key of the sandbox gets invented values.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "signal/grid-zone.h"
#include "signal/kind.h"

enum { GIVES_NOW, GIVES_FORECAST };
enum {
    GAP_S = 2 * 3600, /* after a longer time without a value, the last day is queried */
    PAST_S = 3600,    /* and at least this often: it replaces its estimates */
};

static int check(const struct source_config *c, const char *countries, uw_error *err)
{
    uw_error why = {""};

    if (c->api && c->api != 3 && c->api != 4)
        return fail(err, -EINVAL, "%s: api: %u is none of: 3, 4", c->name, c->api);
    if (grid_zone_check(c->zone, countries, &why) < 0)
        return fail(err, -EINVAL, "%s: zone: %s", c->name, why.text);
    return 0;
}

static bool wants(const struct source_config *c, unsigned step)
{
    return take_gives(c, step);
}

static void ask(struct asking *a)
{
    unsigned api = a->c->api ? a->c->api : 4;
    bool gap =
        a->utc_s - a->s->known_utc_s > GAP_S || a->utc_s - a->s->past_utc_s >= PAST_S;

    ask_put(a, api == 3 ? "/v3" : "/v4");
    ask_put(a, "/carbon-intensity/");
    ask_put(a, a->s->step == GIVES_FORECAST ? "forecast" : gap ? "history" : "latest");
    ask_query(a, "zone", a->c->zone);
    if (api == 3)
        ask_query(a, "shouldUseFallbackCallerLookup", "false");
    else
        ask_query(a, "disableCallerLookup", "true");
    if (a->s->step == GIVES_FORECAST)
        ask_query(a, "horizonHours", "24");
    ask_secret_header(a, "auth-token", "", a->secret);
}

/* The duration of a point; 0: the word is unknown. */
static int64_t length_s(const struct json_value *v)
{
    static const struct {
        const char *word;
        int64_t s;
    } words[] = {
        {"5_minutes", 300}, {"15_minutes", 900}, {"hourly", 3600}, {"daily", 86400}};
    const char *text = json_as_text(v);

    for (size_t i = 0; text && i < n_elements(words); i++)
        if (strcmp(words[i].word, text) == 0)
            return words[i].s;
    return text ? 0 : 3600;
}

static bool is_sandbox(const struct json_value *v)
{
    const char *method = json_as_text(json_get(v, "estimationMethod"));
    const char *disclaimer = json_as_text(json_get(v, "_disclaimer"));

    return (method && strcmp(method, "SANDBOX_MODE_DATA") == 0) ||
           (disclaimer && strstr(disclaimer, "SANDBOX MODE"));
}

static int fail_sandbox(const struct taking *t)
{
    return fail(t->why, SOURCE_REFUSED,
                "the key is of the sandbox: its values are made up");
}

static int take_one(struct taking *t, struct source_series *series,
                    const struct json_value *v, int64_t s)
{
    struct source_point p = {.estimated = t->step == GIVES_FORECAST};
    const struct json_value *zone = json_get(v, "zone");

    if (zone && (!json_as_text(zone) || strcmp(json_as_text(zone), t->c->zone) != 0))
        return fail(t->why, SOURCE_BAD, "the answer is of another zone than %s",
                    t->c->zone);
    if (is_sandbox(v))
        return fail_sandbox(t);
    if (!json_time(json_get(v, "datetime"), &p.from_utc_s))
        return fail(t->why, SOURCE_BAD, "'datetime' of a value is not a time");
    if (!take_number(json_get(v, "carbonIntensity"), &p.v))
        return fail(t->why, SOURCE_BAD, "'carbonIntensity' is not a number");
    p.to_utc_s = p.from_utc_s + s;
    int64_t issued = 0;
    if (json_time(json_get(v, "updatedAt"), &issued) && series &&
        issued > series->issued_utc_s)
        series->issued_utc_s = issued;
    if (t->step != GIVES_FORECAST)
        (void)json_as_bool(json_get(v, "isEstimated"), &p.estimated);
    return take_point(t, series, &p);
}

static int read_answer(struct taking *t)
{
    auto_(json_free) struct json *doc = NULL;
    const struct json_value *root, *list;
    int64_t issued = 0;
    int r = take_json(t, &doc);

    if (r != 0)
        return r;
    root = json_root(doc);
    const struct json_value *zone = json_get(root, "zone");
    if (!zone || !json_as_text(zone) || strcmp(json_as_text(zone), t->c->zone) != 0)
        return fail(t->why, SOURCE_BAD, "the answer is of another zone than %s",
                    t->c->zone);
    if (is_sandbox(root))
        return fail_sandbox(t);
    int64_t s = length_s(json_get(root, "temporalGranularity"));
    if (s == 0)
        return fail(t->why, SOURCE_BAD, "its 'temporalGranularity' is not known");
    (void)json_time(json_get(root, "updatedAt"), &issued);
    struct source_series *series = take_series(t, t->step, "g/kWh", issued);
    list = json_get(root, "forecast");
    if (!list)
        list = json_get(root, "history");
    if (!list)
        list = json_get(root, "data");
    if (!list)
        return take_one(t, series, root, s);
    if (!json_is_list(list))
        return fail(t->why, SOURCE_BAD, "its values are not a list");
    for (size_t i = 0; r == 0 && i < json_count(list); i++)
        r = take_one(t, series, json_at(list, i), s);
    return r;
}

const struct source_kind kind_electricitymaps = {
    .type = "electricitymaps",
    .gives = {"carbon", "carbon.forecast"},
    .ahead = 1 << GIVES_FORECAST,
    .must = KEY_ZONE | KEY_KEY_FILE,
    .may = KEY_API | KEY_URL,
    .least_s = 60,
    .usual_s = 900,
    .steps = 2,
    .url = "https://api.electricitymaps.com",
    .check = check,
    .wants = wants,
    .ask = ask,
    .read = read_answer,
};
