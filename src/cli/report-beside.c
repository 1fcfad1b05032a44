/* Sums of figures shown in addition to the booked ones (docs/emissions.md). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "cli/report.h"
#include "cli/take.h"
#include "cli/view.h"

/* ", of 62.5 % of the energy" if that is not all. */
static void put_covered(double part, const char *of, char *ret, size_t size)
{
    if (part < 1)
        (void)snprintf(ret, size, ", of %.1f %% of %s", floor(1e3 * part + 1e-9) / 10,
                       of);
}

/* "385 g CO2e, of 62.5 % of the energy" */
static size_t put_amount(const struct json_value *t, const char *key, const char *covered,
                         const char *of, char ret[REPORT_ONLY])
{
    double v = take_number(t, key), part = take_number(t, covered);
    size_t n = 0;

    if (isnan(v))
        n = (size_t)snprintf(ret, REPORT_ONLY, "unknown");
    else
        n = (size_t)snprintf(ret, REPORT_ONLY, "%.*f g CO2e", view_digits(fabs(v)), v);
    put_covered(part, of, ret + n, REPORT_ONLY - n);
    return strlen(ret);
}

static void facility(const struct json_value *report, const struct json_value *t,
                     char ret[REPORT_ONLY])
{
    double j = take_number(t, "facility_j"), g = take_number(t, "facility_co2_g");
    struct report_unit unit = report_unit_of(j);
    char energy[REPORT_TEXT];

    size_t n = (size_t)snprintf(ret, REPORT_ONLY, "%s %s at a PUE of %g",
                                report_energy(j, unit, energy), unit.name,
                                take_number(report, "pue"));
    if (!isnan(g))
        n += (size_t)snprintf(ret + n, REPORT_ONLY - n, ", %.*f g CO2e",
                              view_digits(fabs(g)), g);
    if (!isnan(g))
        put_covered(take_number(t, "co2_covered"), "the energy", ret + n,
                    REPORT_ONLY - n);
}

static void market(const struct json_value *report, const struct json_value *t,
                   char ret[REPORT_ONLY])
{
    (void)report;
    (void)put_amount(t, "market_g", "market_covered", "the energy", ret);
}

static void embodied(const struct json_value *report, const struct json_value *t,
                     char ret[REPORT_ONLY])
{
    double jobs = take_number(t, "embodied_attributed_g");
    double idle = take_number(t, "embodied_idle_g");
    double rest = take_number(t, "embodied_unattributed_g");

    (void)report;
    size_t n = put_amount(t, "embodied_g", "embodied_covered", "the boards' time", ret);
    if (isnan(take_number(t, "embodied_g")))
        return;
    (void)snprintf(ret + n, REPORT_ONLY - n,
                   "; to jobs %.*f, idle %.*f, unattributed %.*f",
                   view_digits(fabs(jobs)), jobs, view_digits(fabs(idle)), idle,
                   view_digits(fabs(rest)), rest);
}

static const struct {
    const char *name, *needs;
    void (*put)(const struct json_value *report, const struct json_value *t,
                char ret[REPORT_ONLY]);
} lines[] = {{"facility", "facility_j", facility},
             {"market-based", "market_covered", market},
             {"embodied", "embodied_covered", embodied}};

bool report_beside(const struct json_value *report, size_t i, const char **ret_name,
                   char ret[REPORT_ONLY])
{
    const struct json_value *t = json_get(report, "totals");

    if (i >= n_elements(lines))
        return false;
    *ret_name = json_get(t, lines[i].needs) ? lines[i].name : NULL;
    if (*ret_name)
        lines[i].put(report, t, ret);
    return true;
}
