/* Electricity Maps: requests and answers of both versions. */
#include "source-play.h"

#define KEY "k-123456"
#define LATEST(value, estimated)                                                      \
    "{\"zone\":\"DE\",\"carbonIntensity\":" value                                     \
    ",\"datetime\":\"2026-11-26T12:00:00.000Z\",\"updatedAt\":\"2026-11-26T12:20:31." \
    "002Z\","                                                                         \
    "\"emissionFactorType\":\"lifecycle\",\"isEstimated\":" estimated                 \
    ",\"estimationMethod\":null,\"temporalGranularity\":\"hourly\"}"

/* clang-format off */
static const struct answer_case latest[] = {
    {"latest", LATEST("322", "false"), SOURCE_VALUES, "carbon g/kWh: 12:00+60 322"},
    {"an estimate", LATEST("322.25", "true"), SOURCE_VALUES, "carbon g/kWh: 12:00+60 ~322.25"},
    {"a negative value", LATEST("-3", "false"), SOURCE_BAD, "carbon: -3 is outside 0..10000 g/kWh"},
    {"a granularity of its own", "{\"zone\":\"DE\",\"carbonIntensity\":80,\"datetime\":\"2026-11-26T12:30:00.000Z\","
     "\"temporalGranularity\":\"15_minutes\"}", SOURCE_VALUES, "carbon g/kWh: 12:30+15 80"},
    {"null", LATEST("null", "false"), SOURCE_NO_DATA, "grid: no value is known"},
    {"a text for a value", LATEST("\"322\"", "false"), SOURCE_BAD, "'carbonIntensity' is not a number"},
    {"far too large", LATEST("1e300", "false"), SOURCE_BAD, "1e+300 g/kWh is no value"},
    {"the zone of the caller", "{\"zone\":\"FR\",\"carbonIntensity\":40,\"datetime\":\"2026-11-26T12:00:00.000Z\"}",
     SOURCE_BAD, "of another zone than DE"},
    {"no zone", "{\"carbonIntensity\":40,\"datetime\":\"2026-11-26T12:00:00.000Z\"}", SOURCE_BAD, "another zone"},
    {"no data of the old service", "{\"status\":\"no-data\",\"countryCode\":\"DE\",\"data\":{}}", SOURCE_BAD, "another zone"},
    {"an unknown granularity", "{\"zone\":\"DE\",\"carbonIntensity\":40,\"datetime\":\"2026-11-26T12:00:00.000Z\","
     "\"temporalGranularity\":\"weekly\"}", SOURCE_BAD, "'temporalGranularity' is not known"},
    {"a value of the future", "{\"zone\":\"DE\",\"carbonIntensity\":40,\"datetime\":\"2026-11-26T13:00:00.000Z\"}",
     SOURCE_BAD, "its values lie in the future, by 1504 s"},
    {"a day without its time", "{\"zone\":\"DE\",\"carbonIntensity\":40,\"datetime\":\"2026-11-26\"}", SOURCE_BAD,
     "'datetime' of a value is not a time"},
    {"made up", "{\"zone\":\"DE\",\"carbonIntensity\":40,\"datetime\":\"2026-11-26T12:00:00.000Z\",\"isEstimated\":true,"
     "\"estimationMethod\":\"SANDBOX_MODE_DATA\"}", SOURCE_REFUSED, "the key is of the sandbox"},
    {"a history made up", "{\"zone\":\"DE\",\"history\":[{\"carbonIntensity\":40,\"datetime\":\"2026-11-26T12:00:00.000Z\","
     "\"estimationMethod\":\"SANDBOX_MODE_DATA\"}]}", SOURCE_REFUSED, "its values are made up"},
    {"made up, it says at its top", "{\"_disclaimer\":\"SANDBOX MODE: not real\",\"zone\":\"DE\",\"history\":[]}",
     SOURCE_REFUSED, "its values are made up"},
    {"half an answer", "{\"zone\":\"DE\",\"carbonInten", SOURCE_BAD, "not JSON"},
    {"a page for people", "<html>", SOURCE_BAD, "not JSON"},
    {"nothing", "", SOURCE_BAD, "not JSON"},
    {"history", "{\"zone\":\"DE\",\"history\":["
     "{\"zone\":\"DE\",\"carbonIntensity\":310,\"datetime\":\"2026-11-26T10:00:00.000Z\",\"isEstimated\":false},"
     "{\"zone\":\"DE\",\"carbonIntensity\":null,\"datetime\":\"2026-11-26T11:00:00.000Z\",\"isEstimated\":false},"
     "{\"zone\":\"DE\",\"carbonIntensity\":330,\"datetime\":\"2026-11-26T12:00:00.000Z\",\"isEstimated\":true}]}",
     SOURCE_VALUES, "carbon g/kWh: 10:00+60 310, 11:00+60 ?, 12:00+60 ~330"},
    {"history out of order and twice", "{\"zone\":\"DE\",\"history\":["
     "{\"carbonIntensity\":330,\"datetime\":\"2026-11-26T12:00:00.000Z\"},"
     "{\"carbonIntensity\":310,\"datetime\":\"2026-11-26T11:00:00.000Z\"},"
     "{\"carbonIntensity\":330,\"datetime\":\"2026-11-26T12:00:00.000Z\"}]}",
     SOURCE_VALUES, "carbon g/kWh: 11:00+60 310, 12:00+60 330"},
    {"two values for one time", "{\"zone\":\"DE\",\"history\":["
     "{\"carbonIntensity\":330,\"datetime\":\"2026-11-26T12:00:00.000Z\"},"
     "{\"carbonIntensity\":331,\"datetime\":\"2026-11-26T12:00:00.000Z\"}]}", SOURCE_BAD, "two values for one time"},
    {"an empty history", "{\"zone\":\"DE\",\"history\":[]}", SOURCE_NO_DATA, "no value is known"},
    {"a history that is none", "{\"zone\":\"DE\",\"history\":{}}", SOURCE_BAD, "its values are not a list"},
};
/* clang-format on */

static struct play begin(unsigned api, unsigned provides)
{
    struct play p = {.secret = KEY};

    (void)snprintf(p.c.zone, sizeof p.c.zone, "DE");
    p.c.given = KEY_ZONE | KEY_KEY_FILE;
    p.c.api = api;
    p.c.provides = provides;
    (void)checked(&p, "electricitymaps");
    return p;
}

static void requests(void)
{
    static const char forecast[] =
        "{\"zone\":\"DE\",\"temporalGranularity\":\"hourly\",\"updatedAt\":\"2026-11-"
        "26T12:10:00Z\","
        "\"forecast\":[{\"carbonIntensity\":326,\"datetime\":\"2026-11-26T12:00:00."
        "000Z\"},"
        "{\"carbonIntensity\":297,\"datetime\":\"2026-11-26T13:00:00.000Z\"}]}";
    static const char day[] =
        "{\"zone\":\"DE\",\"temporalGranularity\":\"hourly\",\"history\":["
        "{\"carbonIntensity\":300,\"datetime\":\"2026-11-25T13:00:00.000Z\","
        "\"isEstimated\":true},"
        "{\"carbonIntensity\":322,\"datetime\":\"2026-11-26T12:00:00.000Z\"}]}";
    struct play p = begin(4, 3);

    ok(ask_next(&p), "the first request");
    is_str(p.asked,
           "https://api.electricitymaps.com/v4/carbon-intensity/history?zone=DE&"
           "disableCallerLookup=true auth-token: " KEY,
           "… is for the last day, and not for the caller's place");
    ok(p.request.header[0].is_secret, "… with the key as a secret");
    ok(answer(&p, 200, NULL, day) == SOURCE_VALUES, "its values");
    ok(ask_next(&p), "the second request");
    is_str(p.asked,
           "https://api.electricitymaps.com/v4/carbon-intensity/forecast?zone=DE&"
           "disableCallerLookup=true&horizonHours=24 auth-token: " KEY,
           "… is for the forecast");
    ok(answer(&p, 200, NULL, forecast) == SOURCE_VALUES, "a forecast");
    is_str(p.shown, "carbon.forecast g/kWh: 12:00+60 ~326, 13:00+60 ~297",
           "… its values");
    ok(!ask_next(&p) && strcmp(p.asked, "done") == 0, "the round is over");
    ok(ask_next(&p) && strstr(p.asked, "/latest?"),
       "the next one asks for the last value");
    p.s.past_utc_s -= 3600;
    p.s.step = 0;
    ok(ask_next(&p) && strstr(p.asked, "/history?"),
       "after an hour the day is asked for again: estimates are replaced");

    p = begin(3, 1);
    ok(ask_next(&p), "version 3");
    is_str(p.asked,
           "https://api.electricitymaps.com/v3/carbon-intensity/history?zone=DE&"
           "shouldUseFallbackCallerLookup=false auth-token: " KEY,
           "… forbids the caller's place in its own way");
}

static void plan(void)
{
    struct play p = begin(4, 3);

    (void)ask_next(&p);
    (void)answer(&p, 200, NULL, LATEST("322", "false"));
    (void)ask_next(&p);
    ok(answer(&p, 403, NULL, "{\"message\":\"Endpoint not available\"}") ==
           SOURCE_REFUSED,
       "a plan without forecasts is refused");
    is_str(p.why, "grid: the key is refused (status 403): Endpoint not available",
           "… in one line");
    ok(!ask_next(&p), "… and the round is over");
}

static void issued(void)
{
    struct play p = begin(4, 1);
    struct source_answer a = {.status = 200, .utc_s = p.utc_s};
    auto_(source_values_fini) struct source_values v = {.n = 0};
    enum source_outcome o = SOURCE_BAD;

    a.body = LATEST("322", "false");
    a.len = strlen(a.body);
    (void)ask_next(&p);
    ok(source_take(&p.c, KEY, &p.s, &a, &o, &v, NULL) == 0 && o == SOURCE_VALUES,
       "a value");
    is_int(v.series[0].issued_utc_s, utc_of("2026-11-26T12:20:31Z"), "… as of updatedAt");
}

static void wrong(void)
{
    struct play p = begin(4, 1);
    uw_error err = {""};

    p.c.api = 5;
    ok(source_check(&p.c, NULL, &err) == -EINVAL, "no version 5");
    is_str(err.text, "grid: api: 5 is none of: 3, 4", "… in one line");
    p.c.api = 4;
    (void)snprintf(p.c.zone, sizeof p.c.zone, "UK");
    ok(source_check(&p.c, "DE\tGermany\nGB\tBritain\n", &err) == -EINVAL, "no zone UK");
    is_str(
        err.text,
        "grid: zone: 'UK' is not a zone of the grid: no country has this code; did you "
        "mean 'GB'?",
        "… in one line");
}

int main(void)
{
    struct play p = begin(4, 1);

    for (size_t i = 0; i < n_elements(latest); i++)
        play_case(&p, &latest[i]);
    requests();
    plan();
    issued();
    wrong();
    return done();
}
