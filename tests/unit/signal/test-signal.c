/* Declarations of signals from outside, and their values as words. */
#include <errno.h>
#include <string.h>

#include "base/auto.h"
#include "base/units.h"
#include "signal/signal.h"
#include "tap.h"

/* clang-format off */
static const struct {
    const char *name, *unit;
    enum policy_type type;
    double age_s;
    int r;
    const char *says; /* the error, or the unit */
} declarations[] = {
    {"rack3.power", "kW", POLICY_NUMBER, 60, 0, "kW"},
    {"outside", "°C", POLICY_NUMBER, 600, 0, "°C"},
    {"grid.alert", "", POLICY_TRUTH, 600, 0, ""},
    {"carbon", "", POLICY_NUMBER, 0, 0, "g/kWh"},
    {"carbon", "kg/MWh", POLICY_NUMBER, 0, 0, "g/kWh"},
    {"price.forecast", "EUR/MWh", POLICY_NUMBER, 0, 0, "EUR/kWh"},
    {"queue.wait.gpu_long", "min", POLICY_NUMBER, 0, 0, "s"},
    {"queue.depth.4gpu", "", POLICY_NUMBER, 0, 0, ""},
    {"price", "USD/kWh", POLICY_NUMBER, 0, -EINVAL, "price is in EUR/kWh, USD/kWh is not"},
    {"carbon", "W", POLICY_NUMBER, 0, -EINVAL, "carbon is in g/kWh, W is not"},
    {"carbon", "", POLICY_TRUTH, 0, -EINVAL, "carbon is a number"},
    {"queue.depth", "s", POLICY_NUMBER, 0, -EINVAL, "queue.depth is a plain number, without s"},
    {"rack3.power", "kw", POLICY_NUMBER, 60, -EINVAL, "'kw' is no unit: did you mean 'kW'?"},
    {"rack3.power", "kW", POLICY_NUMBER, 0, -EINVAL, "rack3.power needs 'age'"},
    {"rack3.power", "kW", POLICY_NUMBER, 0.5, -ERANGE, "an age of 0.5 s is outside 1 s..14 d"},
    {"rack3.power", "kW", POLICY_NUMBER, 15 * 86400, -ERANGE, "outside"},
    {"grid.alert", "W", POLICY_TRUTH, 60, -EINVAL, "grid.alert is true or false: it has no unit"},
    {"grid.forecast", "", POLICY_TEXT, 60, -EINVAL, "only numbers have a forecast"},
    {"job.phase", "", POLICY_TEXT, 60, -EINVAL, "names that begin with 'job' are the node's own"},
    {"board.power", "W", POLICY_NUMBER, 60, -EINVAL, "'board'"},
    {"rack.mean", "kW", POLICY_NUMBER, 60, -EINVAL, "'mean' is a function of a series"},
    {"not", "", POLICY_NUMBER, 60, -EINVAL, "the node's own"},
    {"rack-power", "kW", POLICY_NUMBER, 60, -EINVAL, "'rack-power' is not the name of a signal"},
    {"rack..power", "kW", POLICY_NUMBER, 60, -EINVAL, "is not the name"},
    {"rack.", "kW", POLICY_NUMBER, 60, -EINVAL, "is not the name"},
    {".rack", "kW", POLICY_NUMBER, 60, -EINVAL, "is not the name"},
    {"3rack", "kW", POLICY_NUMBER, 60, -EINVAL, "is not the name"},
    {"", "kW", POLICY_NUMBER, 60, -EINVAL, "is not the name"},
    {"räck", "kW", POLICY_NUMBER, 60, -EINVAL, "is not the name"},
};
static const struct {
    const char *text;
    int r;
    struct signal_value v;
    const char *unit, *shown;
} values[] = {
    {"420 g/kWh", 0, {.number = 420}, "g/kWh", "420 g/kWh"},
    {"-0.02 EUR/kWh", 0, {.number = -0.02}, "EUR/kWh", "-0.02 EUR/kWh"},
    {"17", 0, {.number = 17}, "", "17"},
    {"0", 0, {.number = 0}, "", "0"},
    {" 21.5°C ", 0, {.number = 21.5}, "°C", "21.5 °C"},
    {"1e3 W", 0, {.number = 1000}, "W", "1000 W"},
    {"5 EUR/kWh", 0, {.number = 5}, "EUR/kWh", "5 EUR/kWh"},
    {"5EUR/kWh", 0, {.number = 5}, "EUR/kWh", "5 EUR/kWh"},
    {"-1.5e-3", 0, {.number = -0.0015}, "", "-0.0015"},
    {"90 %", 0, {.number = 90}, "%", "90 %"},
    {"true", 0, {.type = POLICY_TRUTH, .truth = true}, "", "true"},
    {"false", 0, {.type = POLICY_TRUTH}, "", "false"},
    {"alert", 0, {.type = POLICY_TEXT, .text = "alert"}, "", "alert"},
    {"nan", 0, {.type = POLICY_TEXT, .text = "nan"}, "", "nan"},
    {"", -EINVAL, {0}, "", NULL},
    {"  ", -EINVAL, {0}, "", NULL},
    {"1.2.3", -EINVAL, {0}, "", NULL},
    {"1e999", -ERANGE, {0}, "", NULL},
    {"a\tb", -EINVAL, {0}, "", NULL},
    {"1 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", -EINVAL, {0}, "", NULL},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", -EINVAL, {0}, "", NULL},
};
/* clang-format on */

static void declare(void)
{
    for (size_t i = 0; i < n_elements(declarations); i++) {
        struct signal_decl d = {.type = declarations[i].type,
                                .age_ns = ns_of_s(declarations[i].age_s)};
        uw_error err = {""};
        (void)snprintf(d.name, sizeof d.name, "%s", declarations[i].name);
        (void)snprintf(d.unit, sizeof d.unit, "%s", declarations[i].unit);
        struct signal_decl before = d;
        int r = signal_declared(&d, "EUR", &err);
        ok(r == declarations[i].r, "'%s' in '%s': %d", before.name, before.unit, r);
        if (r < 0) {
            if (!ok(strstr(err.text, declarations[i].says), "… because of %s",
                    declarations[i].says))
                printf("# %s\n", err.text);
            ok(memcmp(&d, &before, sizeof d) == 0, "… and is unchanged");
        } else {
            is_str(d.unit, declarations[i].says, "… has the unit");
            ok(d.age_ns > 0, "… and an age limit");
        }
    }
}

static void read_values(void)
{
    for (size_t i = 0; i < n_elements(values); i++) {
        struct signal_value v = {.type = POLICY_NUMBER, .number = -7};
        char unit[SIGNAL_UNIT], shown[SIGNAL_SHOWN];
        int r = signal_value_read(values[i].text, &v, unit, NULL);
        ok(r == values[i].r, "'%s': %d", values[i].text, r);
        if (r < 0) {
            ok(v.number == -7, "… and nothing is written");
            continue;
        }
        ok(signal_value_same(&v, &values[i].v), "… is the value");
        is_str(unit, values[i].unit, "… its unit");
        is_str(signal_value_show(&v, unit, shown), values[i].shown, "… is shown so");
    }
}

static void factors(void)
{
    struct signal_decl d = {.name = "carbon", .unit = "g/kWh"};
    double factor = 0;

    is_int(signal_factor(&d, "kg/MWh", &factor, NULL), 0, "kg/MWh is g/kWh");
    is_near(factor, 1, 1e-12, "… as it is");
    is_int(signal_factor(&d, "kg/kWh", &factor, NULL), 0, "kg/kWh");
    is_near(factor, 1000, 0, "… a thousand times, exactly");
    is_int(signal_factor(&d, "", &factor, NULL), 0, "none");
    is_near(factor, 1, 0, "… is its own");
    ok(signal_is_forecast("carbon.forecast") && !signal_is_forecast("carbon") &&
           !signal_is_forecast(".forecast"),
       "forecasts are known by name");
}

int main(void)
{
    declare();
    read_values();
    factors();
    return done();
}
