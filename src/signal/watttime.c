/* WattTime, version 3: the marginal intensity (MOER) of a region and its forecast, and
 * the average one (AOER).
 *
 * A login gives a token for 30 min.  Values are pounds of CO2 a MWh; the free index of
 * other regions is a percentile, which is no intensity.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "signal/kind.h"

enum { GIVES_MARGINAL, GIVES_MARGINAL_FORECAST, GIVES_AVERAGE };
enum { STEP_MARGINAL, STEP_AVERAGE };
enum { TOKEN_S = 29 * 60, PERIOD_S = 300, PERIOD_MAX_S = 3600 };

static int check(const struct source_config *c, const char *countries, uw_error *err)
{
    (void)countries;
    if (strspn(c->region, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != strlen(c->region) ||
        !c->region[0])
        return fail(err, -EINVAL,
                    "%s: region: capital letters, digits and _, as in CAISO_NORTH",
                    c->name);
    return 0;
}

static bool wants(const struct source_config *c, unsigned step)
{
    return step == STEP_AVERAGE
               ? take_gives(c, GIVES_AVERAGE)
               : take_gives(c, GIVES_MARGINAL) || take_gives(c, GIVES_MARGINAL_FORECAST);
}

static const char *signal_type(unsigned step)
{
    return step == STEP_AVERAGE ? "co2_aoer" : "co2_moer";
}

static void ask_login(struct asking *a)
{
    ask_put(a, "/login");
    a->request->basic = a->secret;
}

static void ask(struct asking *a)
{
    bool ahead = a->s->step == STEP_MARGINAL && take_gives(a->c, GIVES_MARGINAL_FORECAST);

    ask_put(a, "/v3/forecast");
    ask_query(a, "region", a->c->region);
    ask_query(a, "signal_type", signal_type(a->s->step));
    ask_query(a, "horizon_hours", ahead ? "24" : "1");
    ask_secret_header(a, "Authorization", "Bearer ", a->s->token);
}

static bool is_token(const char *text)
{
    size_t n = strlen(text);

    for (const char *p = text; *p; p++)
        if (*p <= ' ' || *p > '~')
            return false;
    return n > 0 && n < SOURCE_TOKEN;
}

static int read_login(struct taking *t, struct source_state *s)
{
    auto_(json_free) struct json *doc = NULL;
    int r = take_json(t, &doc);

    if (r != 0)
        return r;
    const char *token = json_as_text(json_get(json_root(doc), "token"));
    if (!token || !is_token(token))
        return fail(t->why, SOURCE_BAD, "the login gave no token");
    (void)snprintf(s->token, sizeof s->token, "%s", token);
    s->token_ends_utc_s = t->a->utc_s + TOKEN_S;
    return 0;
}

/* Checks that the answer's metadata match the request. */
static int check_meta(struct taking *t, const struct json_value *meta,
                      struct source_point *p)
{
    const char *units = json_as_text(json_get(meta, "units"));
    const char *region = json_as_text(json_get(meta, "region"));
    const char *type = json_as_text(json_get(meta, "signal_type"));
    uint64_t period_s = PERIOD_S;

    if (units && strcmp(units, "percentile") == 0)
        return fail(t->why, SOURCE_BAD, "its values are percentiles, not intensities");
    if (!units || strcmp(units, "lbs_co2_per_mwh") != 0)
        return fail(t->why, SOURCE_BAD, "its values are not in lbs_co2_per_mwh");
    if (!region || strcmp(region, t->c->region) != 0)
        return fail(t->why, SOURCE_BAD, "the answer is of another region than %s",
                    t->c->region);
    if (type && strcmp(type, signal_type(t->step)) != 0)
        return fail(t->why, SOURCE_BAD, "the answer is not of %s", signal_type(t->step));
    const struct json_value *period = json_get(meta, "data_point_period_seconds");
    if (period &&
        (!json_as_u64(period, &period_s) || period_s < 1 || period_s > PERIOD_MAX_S))
        return fail(t->why, SOURCE_BAD,
                    "its 'data_point_period_seconds' is outside 1..%d", PERIOD_MAX_S);
    p->to_utc_s = (int64_t)period_s;
    return 0;
}

static int read_answer(struct taking *t)
{
    auto_(json_free) struct json *doc = NULL;
    struct source_point like = {0};
    int64_t issued = 0;
    int r = take_json(t, &doc);

    if (r != 0)
        return r;
    const struct json_value *meta = json_get(json_root(doc), "meta");
    const struct json_value *list = json_get(json_root(doc), "data");
    r = check_meta(t, meta, &like);
    if (r == 0 && !json_is_list(list))
        r = fail(t->why, SOURCE_BAD, "'data' is not a list");
    if (r != 0)
        return r;
    (void)json_time(json_get(meta, "generated_at"), &issued);
    bool average = t->step == STEP_AVERAGE;
    struct source_series *now =
        take_series(t, average ? GIVES_AVERAGE : GIVES_MARGINAL, "g/kWh", issued);
    struct source_series *ahead =
        average ? NULL : take_series(t, GIVES_MARGINAL_FORECAST, "g/kWh", issued);
    for (size_t i = 0; r == 0 && i < json_count(list); i++) {
        struct source_point p = {0};
        if (!json_time(json_get(json_at(list, i), "point_time"), &p.from_utc_s))
            return fail(t->why, SOURCE_BAD, "'point_time' of a value is not a time");
        if (!take_number(json_get(json_at(list, i), "value"), &p.v))
            return fail(t->why, SOURCE_BAD, "'value' is not a number");
        p.v *= G_PER_LB / 1000;
        p.to_utc_s = p.from_utc_s + like.to_utc_s;
        p.estimated = p.from_utc_s > (issued ? issued : t->a->utc_s);
        r = take_point(t, now, &p);
        if (r == 0)
            r = take_point(t, ahead, &p);
    }
    return r;
}

const struct source_kind kind_watttime = {
    .type = "watttime",
    .gives = {"carbon.marginal", "carbon.marginal.forecast", "carbon"},
    .ahead = 1 << GIVES_MARGINAL_FORECAST,
    .must = KEY_REGION | KEY_LOGIN_FILE,
    .may = KEY_URL,
    .least_s = 60,
    .usual_s = 300,
    .steps = 2,
    .url = "https://api.watttime.org",
    .check = check,
    .wants = wants,
    .ask = ask,
    .ask_login = ask_login,
    .read_login = read_login,
    .read = read_answer,
};
