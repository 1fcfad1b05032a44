/* The API of Great Britain: national and regional answers. */
#include "source-play.h"

#define HALF(from, to, forecast, actual)                         \
    "{\"from\":\"2026-11-26T" from "Z\",\"to\":\"2026-11-26T" to \
    "Z\",\"intensity\":{\"forecast\":" forecast actual ",\"index\":\"moderate\"}}"
#define ACTUAL(v) ",\"actual\":" v
#define THREE                                                                           \
    HALF("12:00", "12:30", "266", ACTUAL("263"))                                        \
    "," HALF("12:30", "13:00", "250", ACTUAL("null")) "," HALF("13:00", "13:30", "240", \
                                                               ACTUAL("null"))
#define REGION(list)                                                                     \
    "{\"data\":{\"regionid\":13,\"dnoregion\":\"UKPN London\",\"shortname\":\"London\"," \
    "\"data\":[" list "]}}"

/* clang-format off */
static const struct answer_case national[] = {
    {"a forecast with what has come", "{\"data\":[" THREE "]}", SOURCE_VALUES,
     "carbon g/kWh: 12:00+30 263, 12:30+30 ~250; carbon.forecast g/kWh: 12:30+30 ~250, 13:00+30 ~240"},
    {"nothing known", "{\"data\":[" HALF("12:30", "13:00", "null", ACTUAL("null")) "]}", SOURCE_NO_DATA, "no value is known"},
    {"no data", "{\"data\":[]}", SOURCE_NO_DATA, "no value is known"},
    {"an error with status 200", "{\"error\":{\"code\":\"500\",\"message\":\"x\"}}", SOURCE_BAD, "'data' is not a list"},
    {"a text for a value", "{\"data\":[" HALF("12:30", "13:00", "\"low\"", ACTUAL("null")) "]}", SOURCE_BAD, "not a number"},
    {"no intensity", "{\"data\":[{\"from\":\"2026-11-26T12:30Z\",\"to\":\"2026-11-26T13:00Z\"}]}", SOURCE_BAD, "not a number"},
    {"no end", "{\"data\":[{\"from\":\"2026-11-26T12:30Z\",\"intensity\":{\"forecast\":1}}]}", SOURCE_BAD, "is not a time"},
    {"an end before the begin", "{\"data\":[" HALF("12:30", "12:00", "250", ACTUAL("260")) "]}", SOURCE_BAD, "ends before it begins"},
    {"half an answer", "{\"data\":[{\"from\":\"2026-", SOURCE_BAD, "not JSON"},
};
static const struct answer_case regional[] = {
    {"a region", REGION(HALF("12:30", "13:00", "250", "") "," HALF("13:00", "13:30", "240", "")), SOURCE_VALUES,
     "carbon.uk g/kWh: 12:30+30 ~250; carbon.uk.forecast g/kWh: 12:30+30 ~250, 13:00+30 ~240"},
    {"a region within a list", "{\"data\":[{\"regionid\":13,\"data\":[" HALF("12:30", "13:00", "250", "") "]}]}", SOURCE_VALUES,
     "carbon.uk g/kWh: 12:30+30 ~250; carbon.uk.forecast g/kWh: 12:30+30 ~250"},
    {"another region", "{\"data\":{\"regionid\":12,\"data\":[" HALF("12:30", "13:00", "250", "") "]}}", SOURCE_BAD,
     "of another region than 13"},
    {"no region", "{\"data\":[" THREE "]}", SOURCE_BAD, "of another region than 13"},
    {"a region without half hours", "{\"data\":{\"regionid\":13}}", SOURCE_BAD, "is not a list of half hours"},
};
static const struct { const char *region, *postcode, *says; } wrong[] = {
    {"13", "RG10", "grid: give one of region and postcode"},
    {"0", "", "region: '0' is outside 1..17"},
    {"18", "", "region: '18' is outside 1..17"},
    {"1a", "", "'1a' is outside"},
    {"-1", "", "'-1' is outside"},
    {"", "RG10 9NY", "postcode: 'RG10 9NY' is not its first part, as in RG10"},
    {"", "rg10", "is not its first part"},
    {"", "RG", "is not its first part"},
    {"", "10RG", "is not its first part"},
};
/* clang-format on */

static struct play begin(const char *region, const char *postcode, const char *as)
{
    struct play p = {.secret = NULL};

    (void)snprintf(p.c.region, sizeof p.c.region, "%s", region);
    (void)snprintf(p.c.postcode, sizeof p.c.postcode, "%s", postcode);
    (void)snprintf(p.c.as, sizeof p.c.as, "%s", as);
    p.c.given = (*region ? KEY_REGION : 0) | (*postcode ? KEY_POSTCODE : 0);
    p.c.provides = 3;
    (void)checked(&p, "uk");
    return p;
}

static void requests(void)
{
    struct play p = begin("", "", "");

    ok(ask_next(&p), "the whole country");
    is_str(p.asked,
           "https://api.carbonintensity.org.uk/intensity/2026-11-25T12:30Z/fw48h",
           "… from a day before");
    (void)answer(&p, 200, NULL, "{\"data\":[" THREE "]}");
    ok(!ask_next(&p) && ask_next(&p), "the next round");
    is_str(p.asked,
           "https://api.carbonintensity.org.uk/intensity/2026-11-26T10:30Z/fw48h",
           "… from two hours before");
    p = begin("13", "", "");
    ok(ask_next(&p) &&
           strstr(p.asked, "/regional/intensity/2026-11-25T12:30Z/fw48h/regionid/13"),
       "a region");
    p = begin("", "RG10", "");
    ok(ask_next(&p) && strstr(p.asked, "/fw48h/postcode/RG10"), "a postcode");
}

int main(void)
{
    struct play p = begin("", "", "");

    for (size_t i = 0; i < n_elements(national); i++)
        play_case(&p, &national[i]);
    p = begin("13", "", "carbon.uk");
    for (size_t i = 0; i < n_elements(regional); i++)
        play_case(&p, &regional[i]);
    p = begin("", "RG10", "carbon.uk");
    play_case(&p, &(struct answer_case){
                      "another postcode",
                      "{\"data\":{\"postcode\":\"SW1A\",\"data\":[" THREE "]}}",
                      SOURCE_BAD, "of another postcode than RG10"});
    for (size_t i = 0; i < n_elements(wrong); i++) {
        struct source_config c = {.name = "grid", .kind = source_kind_find("uk")};
        uw_error err = {""};
        (void)snprintf(c.region, sizeof c.region, "%s", wrong[i].region);
        (void)snprintf(c.postcode, sizeof c.postcode, "%s", wrong[i].postcode);
        if (!ok(source_check(&c, NULL, &err) == -EINVAL &&
                    strstr(err.text, wrong[i].says),
                "refused: %s", wrong[i].says))
            printf("# %s\n", err.text);
    }
    requests();
    return done();
}
