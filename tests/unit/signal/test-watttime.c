/* WattTime: login, expired tokens, answers. */
#include "source-play.h"

#define LOGIN "anna:secret-word"
#define META(units)                                                           \
    "\"meta\":{\"data_point_period_seconds\":300,\"region\":\"CAISO_NORTH\"," \
    "\"signal_type\":\"co2_moer\",\"units\":\"" units "\",\"warnings\":[],"   \
    "\"generated_at\":\"2026-11-26T12:30:00+00:00\"}"
#define POINT(time, v) "{\"point_time\":\"2026-11-26T" time ":00+00:00\",\"value\":" v "}"
#define ANSWER(list) "{\"data\":[" list "]," META("lbs_co2_per_mwh") "}"
#define FORECAST \
    ANSWER(POINT("12:30", "1000") "," POINT("12:35", "900") "," POINT("12:40", "null"))

/* clang-format off */
static const struct answer_case cases[] = {
    {"a forecast", FORECAST, SOURCE_VALUES,
     "carbon.marginal g/kWh: 12:30+5 453.592, 12:35+5 ~408.233; "
     "carbon.marginal.forecast g/kWh: 12:30+5 453.592, 12:35+5 ~408.233, 12:40+5 ?"},
    {"a percentile", "{\"data\":[" POINT("12:30", "96.0") "]," META("percentile") "}", SOURCE_BAD,
     "its values are percentiles, not intensities"},
    {"dollars", "{\"data\":[" POINT("12:30", "96.0") "]," META("dollars_per_mwh") "}", SOURCE_BAD, "not in lbs_co2_per_mwh"},
    {"no meta", "{\"data\":[" POINT("12:30", "96.0") "]}", SOURCE_BAD, "not in lbs_co2_per_mwh"},
    {"another region", "{\"data\":[],\"meta\":{\"region\":\"PJM\",\"units\":\"lbs_co2_per_mwh\"}}", SOURCE_BAD,
     "of another region than CAISO_NORTH"},
    {"another signal", "{\"data\":[],\"meta\":{\"region\":\"CAISO_NORTH\",\"signal_type\":\"co2_aoer\",\"units\":\"lbs_co2_per_mwh\"}}",
     SOURCE_BAD, "not of co2_moer"},
    {"a period of no time", "{\"data\":[],\"meta\":{\"region\":\"CAISO_NORTH\",\"units\":\"lbs_co2_per_mwh\",\"data_point_period_seconds\":0}}",
     SOURCE_BAD, "outside 1..3600"},
    {"no points", ANSWER(""), SOURCE_NO_DATA, "no value is known"},
    {"a text for a value", ANSWER(POINT("12:30", "\"x\"")), SOURCE_BAD, "'value' is not a number"},
    {"no list", "{\"data\":{}," META("lbs_co2_per_mwh") "}", SOURCE_BAD, "'data' is not a list"},
    {"half an answer", "{\"data\":[{\"point", SOURCE_BAD, "not JSON"},
};
/* clang-format on */

static struct play begin(unsigned provides)
{
    struct play p = {.secret = LOGIN};

    (void)snprintf(p.c.region, sizeof p.c.region, "CAISO_NORTH");
    p.c.given = KEY_REGION | KEY_LOGIN_FILE;
    p.c.provides = provides;
    (void)checked(&p, "watttime");
    return p;
}

static void log_in(struct play *p, const char *token)
{
    char body[100];

    ok(ask_next(p) && p->request.is_login, "a login comes first");
    is_str(p->asked, "https://api.watttime.org/login basic " LOGIN,
           "… with name and password");
    (void)snprintf(body, sizeof body, "{\"token\":\"%s\"}", token);
    ok(answer(p, 200, NULL, body) == SOURCE_LOGGED_IN && !strstr(p->why, token),
       "… gives a token, which is not shown");
}

static void requests(void)
{
    struct play p = begin(1);

    log_in(&p, "jwt1");
    ok(ask_next(&p) && !p.request.is_login, "then the values");
    is_str(p.asked,
           "https://api.watttime.org/v3/forecast?region=CAISO_NORTH&signal_type=co2_moer&"
           "horizon_hours=1 Authorization: Bearer jwt1",
           "… with the token");
    ok(p.request.header[0].is_secret, "… as a secret");
    ok(answer(&p, 200, NULL, FORECAST) == SOURCE_VALUES, "… come");
    is_str(p.shown, "carbon.marginal g/kWh: 12:30+5 453.592, 12:35+5 ~408.233",
           "… in grams, up to 5 s ahead");
    ok(!ask_next(&p), "the round is over");
    p.utc_s += 28 * 60;
    ok(ask_next(&p) && !p.request.is_login, "the token holds for half an hour");
    p.utc_s += 2 * 60;
    ok(ask_next(&p) && p.request.is_login, "… then there is another login");

    p = begin(7);
    log_in(&p, "jwt1");
    ok(ask_next(&p) && strstr(p.asked, "horizon_hours=24"), "with the forecast of a day");
    (void)answer(&p, 200, NULL, FORECAST);
    ok(ask_next(&p) && strstr(p.asked, "signal_type=co2_aoer"), "… and the average one");
    ok(answer(
           &p, 200, NULL,
           "{\"data\":[" POINT(
               "12:30",
               "500") "],\"meta\":{\"region\":\"CAISO_NORTH\","
                      "\"signal_type\":\"co2_aoer\",\"units\":\"lbs_co2_per_mwh\"}}") ==
           SOURCE_VALUES,
       "… comes");
    is_str(p.shown, "carbon g/kWh: 12:30+5 226.796", "… as carbon");
}

static void expired(void)
{
    struct play p = begin(1);

    log_in(&p, "jwt1");
    (void)ask_next(&p);
    (void)answer(&p, 200, NULL, FORECAST);
    (void)ask_next(&p);
    ok(ask_next(&p) && strstr(p.asked, "jwt1"), "a later round");
    ok(answer(&p, 401, NULL, "{\"error\":\"token expired\"}") == SOURCE_LOGGED_IN,
       "a token that is refused");
    log_in(&p, "jwt2");
    ok(ask_next(&p) && strstr(p.asked, "jwt2"), "… is renewed once");
    ok(answer(&p, 401, NULL, "{\"error\":\"no jwt2\"}") == SOURCE_REFUSED,
       "… and no more");
    is_str(p.why, "grid: the login is refused (status 401)", "… said without the token");
    ok(!ask_next(&p), "the round is over");
}

/* clang-format off */
static const struct { const char *name; unsigned status; const char *body; enum source_outcome outcome; const char *says; } logins[] = {
    {"a wrong password", 401, "{\"error\":\"bad\"}", SOURCE_REFUSED, "grid: the login is refused (status 401): bad"},
    {"a wrong password, shown", 403, "{\"error\":\"bad secret-word\"}", SOURCE_REFUSED, "grid: the login is refused (status 403)"},
    {"no token", 200, "{}", SOURCE_BAD, "the login gave no token"},
    {"an empty token", 200, "{\"token\":\"\"}", SOURCE_BAD, "the login gave no token"},
    {"a token for headers of others", 200, "{\"token\":\"a\\r\\nX: y\"}", SOURCE_BAD, "the login gave no token"},
    {"half a token", 200, "{\"token\":\"a", SOURCE_BAD, "not JSON"},
    {"too many logins", 429, "", SOURCE_WAIT, "too many requests"},
};
/* clang-format on */

int main(void)
{
    struct play p = begin(3);
    uw_error err = {""};

    log_in(&p, "jwt1");
    for (size_t i = 0; i < n_elements(cases); i++)
        play_case(&p, &cases[i]);
    for (size_t i = 0; i < n_elements(logins); i++) {
        struct play q = begin(1);
        (void)ask_next(&q);
        enum source_outcome o = answer(&q, logins[i].status, NULL, logins[i].body);
        if (!ok(o == logins[i].outcome && strstr(q.why, logins[i].says) &&
                    !strstr(q.why, "secret-word"),
                "%s", logins[i].name))
            printf("# %s: %s\n", source_outcome_name(o), q.why);
        ok(!q.s.token[0], "… leaves no token");
    }
    requests();
    expired();
    (void)snprintf(p.c.region, sizeof p.c.region, "a b");
    ok(source_check(&p.c, NULL, &err) == -EINVAL && strstr(err.text, "as in CAISO_NORTH"),
       "a region has no blanks");
    (void)snprintf(p.c.region, sizeof p.c.region, "CAISO_NORTH");
    (void)snprintf(p.c.as, sizeof p.c.as, "mine");
    ok(source_check(&p.c, NULL, &err) == 0, "`as` names one signal and its forecast");
    p.c.provides = 5;
    ok(source_check(&p.c, NULL, &err) == -EINVAL && strstr(err.text, "it provides two"),
       "… not two");
    return done();
}
