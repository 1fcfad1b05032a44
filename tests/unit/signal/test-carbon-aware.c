/* The web API of the Carbon Aware SDK: past values and forecasts. */
#include "source-play.h"

/* clang-format off */
static const struct answer_case now[] = {
    {"past values", "[{\"location\":\"westeurope\",\"time\":\"2026-11-26T11:00:00+00:00\",\"rating\":416,\"duration\":\"01:00:00\"},"
     "{\"location\":\"westeurope\",\"time\":\"2026-11-26T12:00:00.5092741+00:00\",\"rating\":402.5,\"duration\":\"01:00:00\"}]",
     SOURCE_VALUES, "carbon.sdk g/kWh: 11:00+60 416, 12:00+60 402.5"},
    {"under the name of its source", "[{\"location\":\"DE\",\"time\":\"2026-11-26T12:00:00Z\",\"rating\":70,\"duration\":\"00:05:00\"}]",
     SOURCE_VALUES, "carbon.sdk g/kWh: 12:00+5 70"},
    {"without a duration", "[{\"time\":\"2026-11-26T12:00:00Z\",\"rating\":70}]", SOURCE_VALUES, "carbon.sdk g/kWh: 12:00+60 70"},
    {"a duration of no time", "[{\"time\":\"2026-11-26T12:00:00Z\",\"rating\":70,\"duration\":\"00:00:00\"}]", SOURCE_BAD, "'duration' of a value is not valid"},
    {"a duration of no form", "[{\"time\":\"2026-11-26T12:00:00Z\",\"rating\":70,\"duration\":\"1 hour\"}]", SOURCE_BAD, "'duration'"},
    {"a duration of years", "[{\"time\":\"2026-11-26T12:00:00Z\",\"rating\":70,\"duration\":99999999}]", SOURCE_BAD, "'duration'"},
    {"null", "[{\"time\":\"2026-11-26T12:00:00Z\",\"rating\":null}]", SOURCE_NO_DATA, "no value is known"},
    {"a text", "[{\"time\":\"2026-11-26T12:00:00Z\",\"rating\":\"x\"}]", SOURCE_BAD, "'rating' is not a number"},
    {"no time", "[{\"rating\":70}]", SOURCE_BAD, "'time' of a value is not a time"},
    {"nothing", "[]", SOURCE_NO_DATA, "no value is known"},
    {"no list", "{}", SOURCE_BAD, "the answer is not a list"},
    {"half", "[{\"ti", SOURCE_BAD, "not JSON"},
};
static const struct answer_case ahead[] = {
    {"a forecast", "[{\"generatedAt\":\"2026-11-26T12:30:00+00:00\",\"location\":\"westeurope\",\"windowSize\":5,\"optimalDataPoints\":[],"
     "\"forecastData\":[{\"location\":\"westeurope\",\"timestamp\":\"2026-11-26T12:30:00+00:00\",\"duration\":5,\"value\":380.99},"
     "{\"location\":\"westeurope\",\"timestamp\":\"2026-11-26T12:35:00+00:00\",\"duration\":5,\"value\":359.23}]}]",
     SOURCE_VALUES, "carbon.sdk.forecast g/kWh: 12:30+5 ~380.99, 12:35+5 ~359.23"},
    {"all filtered out", "[{\"generatedAt\":\"2026-11-26T12:30:00+00:00\",\"forecastData\":[]}]", SOURCE_NO_DATA, "no value is known"},
    {"nothing", "[]", SOURCE_NO_DATA, "no value is known"},
    {"no points", "[{\"generatedAt\":\"2026-11-26T12:30:00+00:00\"}]", SOURCE_BAD, "'forecastData' is not a list"},
    {"no time", "[{\"forecastData\":[{\"value\":1}]}]", SOURCE_BAD, "'timestamp' of a value is not a time"},
};
/* clang-format on */

static struct play begin(unsigned provides)
{
    struct play p = {.secret = NULL};

    (void)snprintf(p.c.url, sizeof p.c.url, "https://cas.example/");
    (void)snprintf(p.c.location, sizeof p.c.location, "westeurope");
    (void)snprintf(p.c.as, sizeof p.c.as, "carbon.sdk");
    p.c.given = KEY_URL | KEY_LOCATION;
    p.c.provides = provides;
    (void)checked(&p, "carbon-aware-sdk");
    return p;
}

int main(void)
{
    struct play p = begin(1);

    for (size_t i = 0; i < n_elements(now); i++)
        play_case(&p, &now[i]);
    ok(ask_next(&p), "values of now");
    is_str(p.asked,
           "https://cas.example/emissions/bylocation?location=westeurope&"
           "time=2026-11-26T10%3A34Z&toTime=2026-11-26T12%3A34Z",
           "… of the last two hours");
    ok(answer(&p, 204, NULL, "") == SOURCE_NO_DATA, "without content there is no value");
    p = begin(2);
    for (size_t i = 0; i < n_elements(ahead); i++)
        play_case(&p, &ahead[i]);
    ok(ask_next(&p), "the forecast");
    is_str(p.asked,
           "https://cas.example/emissions/forecasts/current?location=westeurope&"
           "dataEndAt=2026-11-27T12%3A34Z",
           "… of a day");
    ok(answer(&p, 501, NULL, "{\"title\":\"Not Implemented\"}") == SOURCE_BAD,
       "no forecasts");
    is_str(p.why, "grid: status 501: Not Implemented", "… in one line");
    return done();
}
