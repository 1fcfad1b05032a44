/* The Carbon Intensity API of Great Britain's system operator: national, by region, by
 * postcode.  Half hours; times have no seconds.  A region has only forecasts, so its
 * present values are estimates; so is a half hour whose actual value is not known yet.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "signal/kind.h"

enum { GIVES_NOW, GIVES_FORECAST };
enum {
    HALF_HOUR_S = 1800,
    BACK_S = 2 * 3600, /* actual values come late, and are corrected */
    GAP_S = 24 * 3600, /* queried if no value came for longer than BACK_S */
    REGIONS = 17,
};

/* The first part of a postcode: "RG10", "EC1A". */
static bool is_outward(const char *text)
{
    size_t letters = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"), n = strlen(text);

    return letters >= 1 && letters <= 2 && n > letters && n <= letters + 2 &&
           isdigit((unsigned char)text[letters]) &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == n;
}

static int check(const struct source_config *c, const char *countries, uw_error *err)
{
    uint64_t region = 0;
    (void)countries;

    if (c->region[0] && c->postcode[0])
        return fail(err, -EINVAL, "%s: give one of region and postcode", c->name);
    if (c->region[0] && (strspn(c->region, "0123456789") != strlen(c->region) ||
                         parse_u64(c->region, &region, NULL) < 0 || region < 1 ||
                         region > REGIONS || c->region[0] == '0'))
        return fail(err, -EINVAL, "%s: region: '%.40s' is outside 1..%d", c->name,
                    c->region, REGIONS);
    if (c->postcode[0] && !is_outward(c->postcode))
        return fail(err, -EINVAL,
                    "%s: postcode: '%.40s' is not its first part, as in RG10", c->name,
                    c->postcode);
    return 0;
}

static void ask(struct asking *a)
{
    bool gap = a->utc_s - a->s->known_utc_s > BACK_S;
    int64_t from = a->utc_s - (gap ? GAP_S : BACK_S);
    char time[MINUTE_TEXT];

    if (a->c->region[0] || a->c->postcode[0])
        ask_put(a, "/regional");
    ask_put(a, "/intensity/");
    ask_put(a, minute_iso(from - from % HALF_HOUR_S, time));
    ask_put(a, "/fw48h");
    if (a->c->region[0])
        ask_put(a, "/regionid/");
    if (a->c->postcode[0])
        ask_put(a, "/postcode/");
    ask_put_encoded(a, a->c->region[0] ? a->c->region : a->c->postcode);
}

static int take_one(struct taking *t, struct source_series *now,
                    struct source_series *ahead, const struct json_value *v)
{
    const struct json_value *intensity = json_get(v, "intensity");
    struct source_point p = {.estimated = true}, actual;
    int r = 0;

    if (!json_time(json_get(v, "from"), &p.from_utc_s) ||
        !json_time(json_get(v, "to"), &p.to_utc_s))
        return fail(t->why, SOURCE_BAD, "'from' or 'to' of a value is not a time");
    actual = p;
    if (!intensity || !take_number(json_get(intensity, "forecast"), &p.v) ||
        !take_number(json_get(intensity, "actual"), &actual.v))
        return fail(t->why, SOURCE_BAD, "'intensity' of a value is not a number");
    if (p.to_utc_s > t->now_utc_s)
        r = take_point(t, ahead, &p);
    actual.estimated = isnan(actual.v);
    if (r == 0)
        r = take_point(t, now, isnan(actual.v) ? &p : &actual);
    return r;
}

/* The list of half hours: national at the top, else within the region. */
static int find_list(struct taking *t, const struct json_value *root,
                     const struct json_value **ret)
{
    const struct json_value *v = json_get(root, "data");
    uint64_t asked = 0, region = 0;

    if (json_is_list(v) && json_get(json_at(v, 0), "data"))
        v = json_at(v, 0);
    if (t->c->region[0] && parse_u64(t->c->region, &asked, NULL) == 0 &&
        (!json_as_u64(json_get(v, "regionid"), &region) || region != asked))
        return fail(t->why, SOURCE_BAD, "the answer is of another region than %s",
                    t->c->region);
    const struct json_value *code = json_get(v, "postcode");
    if (t->c->postcode[0] && code &&
        (!json_as_text(code) || strcmp(json_as_text(code), t->c->postcode) != 0))
        return fail(t->why, SOURCE_BAD, "the answer is of another postcode than %s",
                    t->c->postcode);
    *ret = json_is_list(v) ? v : json_get(v, "data");
    if (!json_is_list(*ret))
        return fail(t->why, SOURCE_BAD, "'data' is not a list of half hours");
    return 0;
}

static int read_answer(struct taking *t)
{
    auto_(json_free) struct json *doc = NULL;
    const struct json_value *list = NULL;
    int r = take_json(t, &doc);

    if (r == 0)
        r = find_list(t, json_root(doc), &list);
    if (r != 0)
        return r;
    struct source_series *now = take_series(t, GIVES_NOW, "g/kWh", 0);
    struct source_series *ahead = take_series(t, GIVES_FORECAST, "g/kWh", 0);
    for (size_t i = 0; r == 0 && i < json_count(list); i++)
        r = take_one(t, now, ahead, json_at(list, i));
    return r;
}

static void origin(const struct source_config *c, char ret[SOURCE_ORIGIN])
{
    (void)c;
    (void)snprintf(ret, SOURCE_ORIGIN,
                   "Carbon Intensity API, National Energy System "
                   "Operator");
}

const struct source_kind kind_uk = {
    .type = "uk",
    .licence = "CC BY 4.0",
    .gives = {"carbon", "carbon.forecast"},
    .ahead = 1 << GIVES_FORECAST,
    .may = KEY_REGION | KEY_POSTCODE | KEY_URL,
    .least_s = 60,
    .usual_s = 1800,
    .steps = 1,
    .url = "https://api.carbonintensity.org.uk",
    .check = check,
    .ask = ask,
    .read = read_answer,
    .origin = origin,
};
