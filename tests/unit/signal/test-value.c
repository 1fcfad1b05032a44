/* CSV and JSON of files and servers, and the table of factors. */
#include "signal/factors.h"
#include "source-play.h"

static struct play begin(const char *type, const char *as, const char *unit,
                         const char *file, const char *url, const char *path)
{
    struct play p = {.secret = NULL};

    (void)snprintf(p.c.name, sizeof p.c.name, "rack3");
    (void)snprintf(p.c.as, sizeof p.c.as, "%s", as);
    (void)snprintf(p.c.unit, sizeof p.c.unit, "%s", unit);
    (void)snprintf(p.c.file, sizeof p.c.file, "%s", file);
    (void)snprintf(p.c.url, sizeof p.c.url, "%s", url);
    (void)snprintf(p.c.path, sizeof p.c.path, "%s", path);
    p.c.given =
        KEY_UNIT | (*file ? KEY_FILE : 0) | (*url ? KEY_URL : 0) | (*path ? KEY_PATH : 0);
    (void)checked(&p, type);
    return p;
}

/* clang-format off */
static const struct answer_case json[] = {
    {"a number", "{\"data\":[{\"kw\":38.25}]}", SOURCE_VALUES, "rack.power kW: 12:34+0 38.25"},
    {"null", "{\"data\":[{\"kw\":null}]}", SOURCE_NO_DATA, "rack3: the answer: data.0.kw is null"},
    {"a text", "{\"data\":[{\"kw\":\"38\"}]}", SOURCE_BAD, "data.0.kw is not a number"},
    {"nothing there", "{\"data\":[]}", SOURCE_NO_DATA, "there is no data.0.kw"},
    {"far too large", "{\"data\":[{\"kw\":1e9}]}", SOURCE_BAD, "is no value"},
    {"half an answer", "{\"data\":[{\"kw\":38", SOURCE_BAD, "not JSON"},
};
static const struct answer_case csv[] = {
    {"a tariff", "time,price\n2026-11-26T12:00Z,80\n2026-11-26T13:00Z,-20.5\n2026-11-26T14:00Z,\n", SOURCE_VALUES,
     "price.retail EUR/kWh: 12:00+60 0.08, 13:00+60 -0.0205, 14:00+0 ?"},
    {"one value", "price\n80.5\n", SOURCE_VALUES, "price.retail EUR/kWh: 12:33+0 0.0805"},
    {"a torn line", "time,price\n2026-11-26T12:00Z,80\n2026-11", SOURCE_BAD, "it may be torn"},
    {"no line", "", SOURCE_NO_DATA, "there is no line with a value"},
    {"German dates", "26.11.2026 23:00,0.20\n27.11.2026 18:00,0.99\n", SOURCE_BAD, "/srv/t.csv:1: '26.11.2026 23:00' is not a time as 2026-11-25T14:00Z or 2026-11-25 14:00"},
    {"… behind names", "time,price\n26.11.2026 23:00,0.20\n", SOURCE_BAD, "/srv/t.csv:2: '26.11.2026 23:00' is not a time as 2026-11-25T14:00Z or 2026-11-25 14:00"},
    {"slashes", "time,price\n2026/11/26 23:00,0.20\n", SOURCE_BAD, "/srv/t.csv:2: '2026/11/26 23:00' is not a time as 2026-11-25T14:00Z or 2026-11-25 14:00"},
    {"American dates", "time,price\n11/26/2026 11:00 PM,0.20\n", SOURCE_BAD, "/srv/t.csv:2: '11/26/2026 11:00 PM' is not a time as 2026-11-25T14:00Z or 2026-11-25 14:00"},
    {"no separators", "20261126T2300Z,0.20\n20261127T0000Z,0.20\n", SOURCE_BAD, "/srv/t.csv:1: '20261126T2300Z' is not a time as 2026-11-25T14:00Z or 2026-11-25 14:00"},
    {"names of months", "time,price\n26 Nov 2026,0.20\n", SOURCE_BAD, "/srv/t.csv:2: '26 Nov 2026' is not a time as 2026-11-25T14:00Z or 2026-11-25 14:00"},
    {"… in front", "time,price\nNov 26 2026,0.20\n", SOURCE_BAD, "/srv/t.csv:2: 'Nov 26 2026' is not a time as 2026-11-25T14:00Z or 2026-11-25 14:00"},
    {"times without dates", "hour,price\n23:00,0.20\n", SOURCE_BAD, "/srv/t.csv:2: '23:00' is not a time as 2026-11-25T14:00Z or 2026-11-25 14:00"},
    {"a day that is none", "time,price\n2026-11-31,0.20\n", SOURCE_BAD, "/srv/t.csv:2: '2026-11-31' is not a time as 2026-11-25T14:00Z or 2026-11-25 14:00"},
    {"… among times", "time,price\n2026-11-26T12:00Z,80\n26.11.2026 13:00,81\n", SOURCE_BAD, "/srv/t.csv:3: '26.11.2026 13:00' is not a time as 2026-11-25T14:00Z or 2026-11-25 14:00"},
    {"seconds since 1970", "1795734000,0.20\n1795737600,0.99\n", SOURCE_BAD, "/srv/t.csv:1: '1795734000' is not a time as 2026-11-25T14:00Z or 2026-11-25 14:00"},
    {"… behind names", "time,price\n1795734000,0.20\n1795737600,0.99\n", SOURCE_BAD, "/srv/t.csv:3: '1795737600' is not a time as 2026-11-25T14:00Z or 2026-11-25 14:00"},
    {"the key of one line", "row,price\n7,80.5\n", SOURCE_VALUES, "price.retail EUR/kWh: 12:33+0 0.0805"},
    {"words as keys", "zone,price\nDE,80\nmarket 1,80\n3-phase,80.5\n", SOURCE_VALUES, "price.retail EUR/kWh: 12:33+0 0.0805"},
    {"numbers alone", "price\n80\n80.5\n", SOURCE_VALUES, "price.retail EUR/kWh: 12:33+0 0.0805"},
    {"a word", "time,price\n2026-11-26T12:00Z,dear\n", SOURCE_BAD, "/srv/t.csv:2: the value is not a number"},
};
static const struct { const char *type, *as, *unit, *file, *url, *path, *says; } wrong[] = {
    {"json", "rack.power", "kW", "", "", "", "rack3: give one of url and file"},
    {"json", "rack.power", "kW", "/a", "https://a/", "", "give one of url and file"},
    {"json", "rack.power", "g", "/a", "", "", "unit: 'g' is none of energy, power, price or carbon"},
    {"json", "rack.power", "km", "/a", "", "", "unit: 'km' is none"},
    {"json", "rack.power", "kW x", "/a", "", "", "unit: 'kW x' is none"},
    {"json", "rack.power", "EUR", "/a", "", "", "unit: 'EUR' is none"},
    {"json", "rack.power", "\xc2\xb0""C", "/a", "", "", "is none of energy"},
    {"json", "rack.power", "g/kWh", "/a", "", "", "unit: rack.power is in kW, g/kWh is not"},
    {"json", "carbon", "EUR/kWh", "/a", "", "", "unit: carbon is in g/kWh, EUR/kWh is not"},
    {"json", "rack.power", "kW", "/a", "", "a..b", "path: 'a..b' is not a path"},
    {"json", "", "kW", "/a", "", "", "'as' is missing: the name of the signal"},
    {"json", "a-b", "kW", "/a", "", "", "is not the name of a signal"},
    {"json", "rack.power", "kW", "a.json", "", "", "'a.json' is not an absolute path"},
    {"csv", "rack.power", "kW", "", "", "", "'file' is missing"},
    {"csv", "rack.power", "kW", "/a", "", "b", "'path' is not a key of type csv"},
};
static const struct { const char *unit, *shows; } units[] = {
    {"kW", "x kW: 12:33+0 2"}, {"W", "x kW: 12:33+0 0.002"}, {"MW", "x kW: 12:33+0 2000"},
    {"kWh", "x kWh: 12:33+0 2"}, {"MJ", "x kWh: 12:33+0 0.555556"},
    {"g/kWh", "x g/kWh: 12:33+0 2"}, {"kg/MWh", "x g/kWh: 12:33+0 2"}, {"lb/MWh", "x g/kWh: 12:33+0 0.907184"},
    {"USD/MWh", "x USD/kWh: 12:33+0 0.002"}, {"EUR/kWh", "x EUR/kWh: 12:33+0 2"},
};
/* clang-format on */

static void check_wrong(void)
{
    for (size_t i = 0; i < n_elements(wrong); i++) {
        struct source_config c = {.name = "rack3",
                                  .kind = source_kind_find(wrong[i].type)};
        uw_error err = {""};
        (void)snprintf(c.as, sizeof c.as, "%s", wrong[i].as);
        (void)snprintf(c.unit, sizeof c.unit, "%s", wrong[i].unit);
        (void)snprintf(c.file, sizeof c.file, "%s", wrong[i].file);
        (void)snprintf(c.url, sizeof c.url, "%s", wrong[i].url);
        (void)snprintf(c.path, sizeof c.path, "%s", wrong[i].path);
        c.given = KEY_UNIT | (c.file[0] ? KEY_FILE : 0) | (c.url[0] ? KEY_URL : 0) |
                  (c.path[0] ? KEY_PATH : 0);
        if (!ok(source_check(&c, NULL, &err) == -EINVAL &&
                    strstr(err.text, wrong[i].says),
                "refused: %s", wrong[i].says))
            printf("# %s\n", err.text);
    }
}

static void check_units(void)
{
    for (size_t i = 0; i < n_elements(units); i++) {
        struct play p = begin("csv", "x", units[i].unit, "/srv/t.csv", "", "");
        (void)ask_next(&p);
        ok(answer(&p, 200, NULL, "v\n2\n") == SOURCE_VALUES, "2 %s", units[i].unit);
        is_str(p.shown, units[i].shows, "… in the unit of the house");
    }
}

static void servers(void)
{
    struct play p =
        begin("json", "rack.power", "kW", "", "https://dcim.example/rack/3/", "kw");

    ok(ask_next(&p) && p.request.way == SOURCE_HTTP, "a server is asked");
    is_str(p.asked, "https://dcim.example/rack/3/", "… at the URL as it is written");
    struct source_header h = {"Last-Modified", "Thu, 26 Nov 2026 12:30:00 GMT"};
    struct source_answer a = {.status = 200,
                              .header = &h,
                              .n_headers = 1,
                              .body = "{\"kw\":7}",
                              .len = 8,
                              .utc_s = p.utc_s};
    auto_(source_values_fini) struct source_values v = {.n = 0};
    enum source_outcome o = SOURCE_BAD;
    ok(source_take(&p.c, NULL, &p.s, &a, &o, &v, NULL) == 0 && o == SOURCE_VALUES,
       "it answers");
    is_int(v.series[0].point[0].from_utc_s, utc_of("2026-11-26T12:30:00Z"),
           "… with the time of the value, not of the fetch");
    p = begin("json", "rack.power", "kW", "/srv/r.json", "", "kw");
    ok(ask_next(&p) && p.request.way == SOURCE_FILE &&
           strcmp(p.asked, "/srv/r.json") == 0,
       "a file is read");
    ok(answer(&p, 200, NULL, "{\"kw\":7}") == SOURCE_VALUES, "… as JSON");
    is_str(p.shown, "rack.power kW: 12:33+0 7", "… with the file's time");
    (void)ask_next(&p);
    (void)ask_next(&p);
    ok(answer(&p, 200, NULL, "7") == SOURCE_BAD && strstr(p.why, "may be torn"),
       "a number without an end may be torn in a file");
}

static void table(void)
{
    struct play p = {.secret = NULL};
    uw_error err = {""};
    unsigned year = 0;
    double g = 0;
    char origin[SOURCE_ORIGIN];

    (void)snprintf(p.c.zone, sizeof p.c.zone, "DE");
    p.c.given = KEY_ZONE | KEY_YEAR;
    p.c.year = 2024;
    (void)snprintf(p.c.as, sizeof p.c.as, "carbon.static");
    (void)checked(&p, "static");
    ok(ask_next(&p) && p.request.way == SOURCE_TABLE, "a table is asked nothing");
    ok(answer(&p, 200, NULL, "") == SOURCE_VALUES, "… and answers");
    is_str(p.shown, "carbon.static g/kWh: 00:00+2880 ~336.38", "… with a year's mean");
    source_origin(&p.c, origin);
    is_str(origin, "Our World in Data: DE 2024, generation, life cycle",
           "… of whom, of when, and what it includes");
    p.c.year = 1999;
    ok(source_check(&p.c, NULL, &err) == -EINVAL, "no figure of 1999");
    is_str(err.text,
           "grid: year: the table has no factor of 1999 for 'DE', the newest is of 2025",
           "… in one line");
    p.c.year = 0;
    (void)snprintf(p.c.zone, sizeof p.c.zone, "US-CAL-CISO");
    ok(source_check(&p.c, NULL, &err) == -EINVAL && strstr(err.text, "give 'US'"),
       "parts of a country are not in the table");
    (void)snprintf(p.c.zone, sizeof p.c.zone, "AQ");
    ok(source_check(&p.c, NULL, &err) == -EINVAL && strstr(err.text, "has no 'AQ'"),
       "nor are all countries");
    ok(factor_find("DE", &year, &g) && year == 2025, "the newest year");
    is_near(g, 329.65, 1e-9, "… of Germany");
    year = 2025;
    ok(!factor_find("IS", &year, &g) && year == 2025, "not each country has the newest");
    for (size_t i = 1; factor_country(i); i++)
        ok(strcmp(factor_country(i - 1), factor_country(i)) < 0, "%s once, in order",
           factor_country(i));
    for (size_t i = 0; factor_country(i); i++) {
        year = 0;
        ok(factor_find(factor_country(i), &year, &g) && g > 0 && g < 1500,
           "%s has a figure", factor_country(i));
    }
}

int main(void)
{
    struct play p =
        begin("json", "rack.power", "kW", "", "https://dcim.example/rack/3", "data.0.kw");

    for (size_t i = 0; i < n_elements(json); i++)
        play_case(&p, &json[i]);
    p = begin("csv", "price.retail", "EUR/MWh", "/srv/t.csv", "", "");
    for (size_t i = 0; i < n_elements(csv); i++)
        play_case(&p, &csv[i]);
    check_wrong();
    check_units();
    servers();
    table();
    return done();
}
