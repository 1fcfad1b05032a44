/* The answer of a source of signals, of any content: values in the order of time, or one
 * line that says why there are none, and never the secret.  The first byte says which
 * source and which of its requests, the second one the status.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "fuzz.h"
#include "signal/source.h"

#define SECRET "anna:secret-word"
#define TOKEN "token-1234"
enum { NOW_S = 1795696496 }; /* 2026-11-26T12:34:56Z */

static const struct {
    const char *type;
    unsigned given, provides, step;
    bool no_token; /* the answer to a login */
    const char *zone, *region, *unit, *as, *path, *file, *url, *location;
} sources[] = {
    /* clang-format off */
    {"electricitymaps", KEY_ZONE | KEY_KEY_FILE, 3, 0, false, "DE", "", "", "", "", "", "", ""},
    {"electricitymaps", KEY_ZONE | KEY_KEY_FILE, 3, 1, false, "DE", "", "", "", "", "", "", ""},
    {"watttime", KEY_REGION | KEY_LOGIN_FILE, 7, 0, true, "", "CAISO_NORTH", "", "", "", "", "", ""},
    {"watttime", KEY_REGION | KEY_LOGIN_FILE, 7, 0, false, "", "CAISO_NORTH", "", "", "", "", "", ""},
    {"watttime", KEY_REGION | KEY_LOGIN_FILE, 7, 1, false, "", "CAISO_NORTH", "", "", "", "", "", ""},
    {"uk", 0, 3, 0, false, "", "", "", "", "", "", "", ""},
    {"uk", KEY_REGION, 3, 0, false, "", "13", "", "carbon.uk", "", "", "", ""},
    {"csv", KEY_FILE | KEY_UNIT, 1, 0, false, "", "", "EUR/MWh", "price.retail", "", "/t.csv", "", ""},
    {"csv", KEY_FILE | KEY_UNIT, 1, 0, false, "", "", "lb/MWh", "carbon.forecast", "", "/t.csv", "", ""},
    {"json", KEY_URL | KEY_UNIT | KEY_PATH, 1, 0, false, "", "", "W", "rack.power", "data.0.w", "", "https://a/", ""},
    {"carbon-aware-sdk", KEY_URL | KEY_LOCATION, 3, 0, false, "", "", "", "", "", "", "https://a/", "eastus"},
    {"carbon-aware-sdk", KEY_URL | KEY_LOCATION, 3, 1, false, "", "", "", "", "", "", "https://a/", "eastus"},
    {"entsoe", KEY_ZONE | KEY_KEY_FILE, 3, 0, false, "10YFR-RTE------C", "", "", "", "", "", "", ""},
    {"static", KEY_ZONE, 1, 0, false, "FR", "", "", "", "", "", "", ""},
    /* clang-format on */
};
static const unsigned statuses[] = {200, 200, 400, 401, 403, 404, 429, 503, 304, 302};

static void check_series(const struct source_series *s)
{
    must(s->signal[0] && s->unit[0] && s->n > 0 && s->n <= SIGNAL_POINTS);
    for (size_t i = 0; i < s->n; i++) {
        const struct source_point *p = &s->point[i];
        must(!isinf(p->v) && p->to_utc_s >= p->from_utc_s);
        must(p->from_utc_s >= NOW_S - SIGNAL_DAYS * 86400 &&
             p->from_utc_s <= NOW_S + SIGNAL_DAYS * 86400);
        must(i == 0 || (s->point[i - 1].from_utc_s < p->from_utc_s &&
                        s->point[i - 1].to_utc_s <= p->from_utc_s));
    }
}

static void check_why(const struct source_config *c, bool has_token, const char *why)
{
    must(strncmp(why, c->name, strlen(c->name)) == 0 && utf8_is_plain(why));
    must(!strstr(why, "secret-word") && !(has_token && strstr(why, TOKEN)));
}

static void configure(struct source_config *c, size_t i)
{
    *c = (struct source_config){.name = "grid",
                                .kind = source_kind_find(sources[i].type),
                                .given = sources[i].given,
                                .provides = sources[i].provides};
    (void)snprintf(c->zone, sizeof c->zone, "%s", sources[i].zone);
    (void)snprintf(c->region, sizeof c->region, "%s", sources[i].region);
    (void)snprintf(c->unit, sizeof c->unit, "%s", sources[i].unit);
    (void)snprintf(c->as, sizeof c->as, "%s", sources[i].as);
    (void)snprintf(c->path, sizeof c->path, "%s", sources[i].path);
    (void)snprintf(c->file, sizeof c->file, "%s", sources[i].file);
    (void)snprintf(c->url, sizeof c->url, "%s", sources[i].url);
    (void)snprintf(c->location, sizeof c->location, "%s", sources[i].location);
    must(source_check(c, NULL, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_(source_values_fini) struct source_values v = {.n = 0};
    struct source_state s = {.step = 0};
    struct source_request request;
    struct source_config c;
    enum source_outcome outcome = SOURCE_OUTCOMES;
    uw_error why = {""};

    if (size < 2)
        return fuzz_say("skipped", "empty");
    size_t i = data[0] % (sizeof sources / sizeof *sources);
    configure(&c, i);
    s.step = sources[i].step;
    if (!sources[i].no_token) {
        memcpy(s.token, TOKEN, sizeof TOKEN);
        s.token_ends_utc_s = NOW_S + 60;
    }
    must(source_next(&c, SECRET, &s, NOW_S, &request, NULL) == 0);
    must(!strstr(request.url, "secret-word") && !strstr(request.url, TOKEN));
    struct source_answer a = {
        .status = statuses[data[1] % (sizeof statuses / sizeof *statuses)],
        .body = (const char *)data + 2,
        .len = size - 2,
        .utc_s = NOW_S};
    if (source_take(&c, SECRET, &s, &a, &outcome, &v, &why) < 0)
        return fuzz_say("memory", "none");
    must(outcome < SOURCE_OUTCOMES && (outcome == SOURCE_VALUES) == (v.n > 0));
    if (outcome != SOURCE_VALUES) {
        check_why(&c, !sources[i].no_token, why.text);
        return fuzz_say(source_outcome_name(outcome), "%s", why.text);
    }
    for (size_t k = 0; k < v.n; k++)
        check_series(&v.series[k]);
    return fuzz_say("values", "%zu signals, the first %g %s", v.n, v.series[0].point[0].v,
                    v.series[0].unit);
}
