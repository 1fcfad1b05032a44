/* Zones of the grid: their form, their countries, what was probably meant. */
#include "signal/grid-zone.h"

#include <errno.h>

#include "base/auto.h"
#include "io/file.h"
#include "io/zone.h"
#include "tap.h"

static const char countries[] = "# a comment\n"
                                "#code\tname\n"
                                "AT\tAustria\n"
                                "AU\tAustralia\n"
                                "DE\tGermany\n"
                                "DK\tDenmark\n"
                                "FR\tFrance\n"
                                "GB\tBritain (UK)\n"
                                "GR\tGreece\n"
                                "NO\tNorway\n"
                                "US\tUnited States\n"
                                "A\n"
                                "ZZ no tab\n"
                                "NL\tNetherlands"; /* no newline behind the last */

#define FORM "a country in two capital letters and parts of it (DE, US-CAL-CISO)"
#define NONE "no country has this code"
/* clang-format off */
static const struct {
    const char *zone, *error; /* NULL: good */
    bool formed;              /* good without the table */
} cases[] = {
    {"DE", NULL, true}, {"FR", NULL, true}, {"GB", NULL, true}, {"NL", NULL, true},
    {"NO-NO1", NULL, true}, {"US-CAL-CISO", NULL, true}, {"XK", NULL, true},
    {"UK", NONE "; did you mean 'GB'?", true},
    {"UK-NIR", NONE "; did you mean 'GB-NIR'?", true},
    {"EL", NONE "; did you mean 'GR'?", true},
    {"ZZ", NONE, true},
    {"A", FORM, false},
    {"", FORM, false},
    {"GER", FORM "; did you mean 'DE'?", false},
    {"germany", FORM "; did you mean 'DE'?", false},
    {"Grmany", FORM "; did you mean 'DE'?", false},
    {"Aust", FORM, false},
    {"USA", FORM "; did you mean 'US'?", false},
    {"us-cal-ciso", FORM "; did you mean 'US-CAL-CISO'?", false},
    {"US-", FORM, false},
    {"US--CAL", FORM, false},
    {"US-CAL_CISO", FORM, false},
    {"CAISO_NORTH", FORM, false},
    {"10Y1001A1001A82H", FORM, false},
    {"13", FORM, false},
    {"Europe/Berlin", FORM, false},
    {"US-A234567890123456789012345678", NULL, true},
    {"US-A2345678901234567890123456789", FORM, false},
};
/* clang-format on */

static void test_cases(void)
{
    for (size_t i = 0; i < n_elements(cases); i++) {
        char want[200] = "";
        uw_error err = {{0}};
        int r = grid_zone_check(cases[i].zone, countries, &err);
        if (cases[i].error)
            (void)snprintf(want, sizeof want, "'%s' is not a zone of the grid: %s",
                           cases[i].zone, cases[i].error);
        is_int(r, cases[i].error ? -EINVAL : 0, "'%s'", cases[i].zone);
        is_str(err.text, want, cases[i].zone);
        is_int(grid_zone_check(cases[i].zone, NULL, &err), cases[i].formed ? 0 : -EINVAL,
               "'%s' without a table", cases[i].zone);
    }
}

/* The machine's table, which the daemon reads. */
static void test_machine(void)
{
    static const char *const good[] = {"DE", "FR", "GB", "NO-NO1", "US-CAL-CISO", "AX"};
    auto_(mem_free) char *table = NULL;
    uw_error err = {{0}};

    if (file_read(ZONE_FOLDER "/iso3166.tab", ZONE_FILE_MAX, &table, NULL, &err) < 0) {
        skip_one("countries of this machine", err.text);
        return;
    }
    for (size_t i = 0; i < n_elements(good); i++)
        ok(grid_zone_check(good[i], table, &err) == 0, "%s is known here", good[i]);
    ok(grid_zone_check("UK", table, &err) == -EINVAL && strstr(err.text, "'GB'"), "%s",
       err.text);
    ok(grid_zone_check("GER", table, &err) == -EINVAL && strstr(err.text, "'DE'"), "%s",
       err.text);
}

int main(void)
{
    uw_error err;

    test_cases();
    test_machine();
    ok(grid_zone_check("D\xc2\xad", countries, &err) == -EINVAL &&
           !strstr(err.text, "\xc2"),
       "what is not plain is not shown: %s", err.text);
    return done();
}
