/* The store of signals from outside: values, age limits, hands, series, what is told. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "policy/signals.h"
#include "tap.h"

enum { UTC_S = 1700000000 };

/* The moment s seconds after the beginning. */
static struct signal_time at(double s)
{
    return (struct signal_time){ns_of_s(1000 + s),
                                UTC_S * (int64_t)NS_PER_S + (int64_t)(s * 1e9)};
}

static char told[400];
static size_t changes;

static void on_event(enum signal_event event, size_t i, void *user)
{
    struct signals **s = user;
    size_t n = strlen(told);

    (void)snprintf(told + n, sizeof told - n, "%s %s;", signals_at(*s, i)->name,
                   names_word(NAMES_SIGNAL_EVENT, event));
}

static void on_change(size_t i, void *user)
{
    (void)i;
    (void)user;
    changes++;
}

static struct signals *s;

static void begin(void)
{
    struct signals_opts opts = {on_change, on_event, &s};

    signals_free(s);
    s = NULL;
    told[0] = '\0';
    changes = 0;
    ok(signals_new(&opts, &s) == 0, "a store");
}

static size_t find(const char *name)
{
    int i = signals_find(s, name);

    ok(i >= 0, "there is %s", name);
    return i < 0 ? 0 : (size_t)i;
}

static const struct signal_value *number(double v)
{
    static struct signal_value value;

    value = (struct signal_value){.type = POLICY_NUMBER, .number = v};
    return &value;
}

static int put(const char *name, double v, const char *unit, double s_at, double s_now)
{
    struct signal_put p = {.unit = unit, .source = "test", .utc_ns = at(s_at).utc_ns};

    return signals_put(s, find(name), &p, number(v), at(s_now), NULL);
}

static int set(const char *name, double v, const char *unit, double for_s, double s_now,
               uw_error *err)
{
    struct signal_put p = {.unit = unit, .source = "user anna"};

    return signals_set(s, find(name), &p, number(v), ns_of_s(for_s), at(s_now), err);
}

/* The value now in W, s, …; NaN: unknown. */
static double value(const char *name, double s_now)
{
    struct policy_read read = {.fold = POLICY_NOW};
    struct policy_value v;

    signals_read(s, find(name), &read, at(s_now), &v);
    return v.known ? v.number : (double)NAN;
}

static double folded(const char *name, enum policy_fold fold, double window_s,
                     double s_now)
{
    struct policy_read read = {.fold = fold, .window_s = window_s, .percent = 50};
    struct policy_value v;

    signals_read(s, find(name), &read, at(s_now), &v);
    ok(v.until_ns > at(s_now).now_ns, "… to be read again later");
    return v.known ? v.number : (double)NAN;
}

static void tells(const char *want, const char *name)
{
    is_str(told, want, name);
    told[0] = '\0';
}

static void ages(void)
{
    struct policy_read read = {.fold = POLICY_NOW};
    struct policy_value v;

    begin();
    ok(isnan(value("carbon", 0)), "unknown at first");
    is_int(signals_due(s, at(0)), -1, "nothing is due");
    is_int(put("carbon", 0.4, "kg/kWh", -100, 0), 0, "a value of 100 s ago");
    tells("carbon known;", "is told");
    is_near(value("carbon", 0), 400 / 3.6e6, 1e-12, "in g/J");
    signals_read(s, find("carbon"), &read, at(0), &v);
    is_int(v.until_ns, at(7100).now_ns, "until its age limit");
    is_int(signals_due(s, at(0)), at(7100).now_ns, "when the store is due");
    is_int(put("carbon", 0.4, "kg/kWh", -50, 0), 0, "the same again, newer");
    is_int(changes, 1, "is no change");
    signals_step(s, at(7149));
    tells("", "nothing ends before its time");
    ok(!isnan(value("carbon", 7149)), "known until then");
    ok(isnan(value("carbon", 7150)), "unknown from then on, whoever steps");
    signals_step(s, at(7150));
    tells("carbon unknown;", "is told once");
    signals_step(s, at(7151));
    tells("", "… once");
    is_int(changes, 2, "and is a change");
    is_int(put("carbon", 1, "g/kWh", 0, 8000), 0, "a value that is too old already");
    ok(isnan(value("carbon", 8000)), "is unknown");
    is_int(put("carbon", 1, "g/kWh", 8006, 8000), -ERANGE,
           "one of the future is refused");
    is_int(put("price", -0.02, "EUR/kWh", 0, 0), 0, "a negative price");
    is_near(value("price", 0), -0.02 / 3.6e6, 1e-15, "is a value");
    is_int(put("price", 0, "EUR/MWh", 0, 0), 0, "so is 0");
    is_near(value("price", 0), 0, 0, "…");
    is_int(put("price", 1, "USD/kWh", 0, 0), -EINVAL, "another currency is none");
    is_int(put("price", INFINITY, "", 0, 0), -ERANGE, "nor is infinity");
    is_near(value("price", 0), 0, 0, "and nothing changed");
}

static void estimates(void)
{
    struct signal_put p = {.unit = "g/kWh", .source = "grid", .estimated = true};
    struct signal_view v;
    uw_error err = {""};

    begin();
    p.utc_ns = at(0).utc_ns;
    is_int(signals_put(s, find("carbon"), &p, number(400), at(0), NULL), 0, "estimated");
    signals_look(s, find("carbon"), at(0), &v);
    ok(v.known && v.estimated, "is shown so");
    is_int(set("carbon", 300, "g/kWh", 60, 10, &err), 0, "set by hand");
    signals_look(s, find("carbon"), at(10), &v);
    ok(v.by_hand && !v.estimated, "is no estimate");
    is_int(put("carbon", 390, "g/kWh", 100, 100), 0, "and a newer value");
    signals_look(s, find("carbon"), at(100), &v);
    ok(v.known && !v.estimated, "need not be one");
}

static void hands(void)
{
    struct signal_view v;
    uw_error err = {""};

    begin();
    is_int(put("queue.depth", 3, "", 0, 0), 0, "a queue");
    is_int(set("queue.depth", 17, "", 60, 10, &err), 0, "set by hand");
    is_near(value("queue.depth", 10), 17, 0, "the hand wins");
    is_int(put("queue.depth", 4, "", 20, 20), 0, "the source goes on");
    is_near(value("queue.depth", 20), 17, 0, "… behind it");
    signals_look(s, find("queue.depth"), at(20), &v);
    ok(v.by_hand && v.value && v.value->number == 17 && v.ends_s == 50 && v.age_s == 10,
       "shown with who, age and end");
    is_str(v.source, "set by user anna", "who");
    is_int(signals_due(s, at(20)), at(70).now_ns, "due at its end");
    told[0] = '\0';
    signals_step(s, at(70));
    tells("queue.depth over;", "its end is told");
    is_near(value("queue.depth", 70), 4, 0, "the source's value is back");
    is_int(set("queue.depth", 0, "", 0, 100, &err), 0, "0, for the usual time");
    is_near(value("queue.depth", 999), 0, 0, "is 0");
    is_int(signals_unset(s, find("queue.depth"), at(400), &err), 0, "taken back");
    ok(isnan(value("queue.depth", 400)), "the source's is too old by then");
    is_int(signals_unset(s, find("queue.depth"), at(400), &err), -ENOENT, "only once");
    is_int(set("carbon", 400, "", 60, 0, &err), -EINVAL, "no unit");
    is_str(err.text, "carbon needs its unit: '400 g/kWh'", "is said so");
    is_int(set("carbon", 400, "W", 60, 0, &err), -EINVAL, "a wrong one");
    is_str(err.text, "carbon is in g/kWh, W is not", "is said so");
    is_int(set("carbon", -5, "g/kWh", 60, 0, &err), -ERANGE, "below 0");
    is_str(err.text, "carbon: -5 is outside 0..10000 g/kWh", "is said so");
    is_int(set("carbon", 10.1, "kg/kWh", 60, 0, &err), -ERANGE, "too large");
    is_int(put("carbon", -1, "g/kWh", 0, 0), -ERANGE, "so from a source");
    is_int(put("price", -1, "EUR/kWh", 0, 0), 0, "a price may be negative");
    is_int(set("carbon", 400, "g/kWh", 86401, 0, &err), -ERANGE, "too long");
    is_int(set("carbon.forecast", 400, "g/kWh", 60, 0, &err), -EINVAL, "a forecast");
    ok(isnan(value("carbon", 0)), "nothing was set");
    struct signal_put p = {.source = "x"};
    struct signal_value text = {.type = POLICY_TEXT, .text = "high"};
    is_int(signals_set(s, find("carbon"), &p, &text, 0, at(0), &err), -EINVAL, "a text");
    is_str(err.text, "carbon is a number, not a text", "is said so");
}

static void histories(void)
{
    begin();
    for (int i = 0; i < 10; i++)
        is_int(put("queue.wait", i, "min", 60.0 * i, 60.0 * i), 0, "minute %d", i);
    is_near(folded("queue.wait", POLICY_MEAN, 300, 600), 420, 1e-9, "mean");
    is_near(folded("queue.wait", POLICY_MIN, 300, 600), 300, 1e-9, "minimum");
    is_near(folded("queue.wait", POLICY_MAX, 600, 600), 540, 1e-9, "maximum");
    ok(isnan(folded("queue.wait", POLICY_MEAN, 3600, 600)), "no mean of an hour yet");
    /* its age limit is 300 s: known until 840 */
    is_near(folded("queue.wait", POLICY_MEAN, 600, 1000), 223200.0 / 440, 1e-9,
            "… ends with the last value");
    signals_step(s, at(2000)); /* late: the machine slept */
    ok(isnan(folded("queue.wait", POLICY_MEAN, 600, 2000)), "a late step adds nothing");
    is_int(set("queue.wait", 30, "s", 3600, 2000, NULL), 0, "by hand");
    is_near(folded("queue.wait", POLICY_MEAN, 600, 2600), 30, 1e-9, "counts, too");
}

static void folds_stay(void)
{
    bool right = true;

    begin();
    for (int i = 0; i < 3; i++)
        (void)put("queue.wait", i < 2 ? 60 : 120, "s", 250.0 * i, 250.0 * i);
    is_near(folded("queue.wait", POLICY_MEAN, 600, 600), 70, 1e-9, "of ten minutes");
    is_near(folded("queue.wait", POLICY_MEAN, 600, 605.5), 70, 1e-9,
            "stays for a hundredth of them");
    is_near(folded("queue.wait", POLICY_MAX, 600, 605.5), 120, 1e-9, "by itself");
    is_near(folded("queue.wait", POLICY_MEAN, 600, 606), 70.6, 1e-9, "and no longer");
    (void)put("queue.wait", 180, "s", 608, 608);
    is_near(folded("queue.wait", POLICY_MEAN, 600, 610), 71.2, 1e-9,
            "a new value counts at once");
    is_near(folded("queue.wait", POLICY_MEAN, 600, 600), 70, 1e-9, "a clock set back");
    size_t wait = find("queue.wait");
    for (int i = 0; i < 2 * POLICY_READS_MAX; i++) {
        struct policy_read read = {.fold = POLICY_MEAN, .window_s = 100 + i % 300};
        struct policy_value v;
        double s_new = 10, s_old = fmax(read.window_s - 118, 0);
        signals_read(s, wait, &read, at(618), &v);
        double sum = s_new * 180 + (read.window_s - s_new - s_old) * 120 + s_old * 60;
        right = right && v.known && fabs(v.number - sum / read.window_s) < 1e-9;
    }
    ok(right, "more reads than are kept");
}

static int series(const char *name, const struct policy_point *p, size_t n, double s_now)
{
    struct signal_put put = {.source = "file", .utc_ns = at(0).utc_ns};

    return signals_put_series(s, find(name), &put, p, n, at(s_now), NULL);
}

static void rows(void)
{
    static const struct policy_point price[] = {
        {UTC_S - 3600, 0.30},        {UTC_S, 0.20},        {UTC_S + 3600, -0.05},
        {UTC_S + 7200, (double)NAN}, {UTC_S + 10800, 0.1}, {UTC_S + 36000, 0.2}};
    const double unit = 3.6e6; /* J of a kWh */
    struct signal_view v;

    begin();
    is_int(series("price", price, 6, 0), 0, "a day's prices");
    tells("price known;", "known");
    is_near(value("price", 0) * unit, 0.20, 1e-12, "the row of now");
    is_int(signals_due(s, at(0)), at(3600).now_ns, "until the next one");
    signals_step(s, at(3600));
    is_near(value("price", 3600) * unit, -0.05, 1e-12, "then that");
    signals_step(s, at(7200));
    ok(isnan(value("price", 7200)), "an empty row is unknown");
    tells("price unknown;", "which is told");
    is_int(signals_due(s, at(7200)), at(10800).now_ns, "until a value comes");
    signals_step(s, at(10800));
    is_near(value("price", 10800) * unit, 0.1, 1e-12, "as it does");
    signals_step(s, at(18000));
    ok(isnan(value("price", 18000)), "a row holds for its age limit at most");
    is_near(folded("price", POLICY_MEAN, 7200, 3600) * unit, 0.25, 1e-9, "history");
    is_int(series("price.forecast", price, 6, 0), 0, "the same as a forecast");
    ok(isnan(value("price.forecast", 0)), "has no value now");
    is_near(folded("price.forecast", POLICY_MEAN, 7200, 0) * unit, 0.075, 1e-9,
            "but one of what comes");
    is_near(folded("price.forecast", POLICY_MIN, 10800, 0) * unit, -0.05, 1e-9,
            "minimum");
    ok(isnan(folded("price.forecast", POLICY_MEAN, 86400, 0)), "not of what it lacks");
    signals_look(s, find("price.forecast"), at(0), &v);
    ok(v.known && !v.value && v.ends_s == 43200, "shown as known, with its end");
    told[0] = '\0';
    signals_step(s, at(43200));
    tells("price unknown;price.forecast unknown;" + strlen("price unknown;"),
          "the end of a forecast is told");
    is_int(series("price.forecast", price, SIGNAL_POINTS + 1, 0), -E2BIG, "too many");
    is_int(series("price", NULL, 0, 43200), 0, "an empty series");
    ok(isnan(value("price", 43200)), "is unknown");
}

/* Points of a series are estimated one by one. */
static void estimated_rows(void)
{
    static const struct policy_point p[] = {{UTC_S, 300},
                                            {UTC_S + 1800, 300},
                                            {UTC_S + 3600, (double)NAN},
                                            {UTC_S + 5400, 310}};
    static const bool estimates[] = {false, true, true, false};
    struct signal_put put = {
        .source = "signals gb", .utc_ns = at(0).utc_ns, .estimates = estimates};
    struct signal_view v;

    static const struct policy_point below[] = {{UTC_S, 300}, {UTC_S + 1800, -1}};

    begin();
    is_int(signals_put_series(s, find("carbon"), &put, below, 2, at(0), NULL), -ERANGE,
           "a series with a carbon intensity below 0");
    is_int(signals_put_series(s, find("carbon"), &put, p, 4, at(0), NULL), 0, "a series");
    signals_look(s, find("carbon"), at(0), &v);
    ok(v.known && !v.estimated, "a measured value");
    size_t before = changes;
    signals_step(s, at(1800));
    signals_look(s, find("carbon"), at(1800), &v);
    ok(v.known && v.estimated && v.value && v.value->number > 299,
       "the same as an estimate");
    is_int(changes, before + 1, "is a change");
    signals_step(s, at(3600));
    signals_step(s, at(5400));
    signals_look(s, find("carbon"), at(5400), &v);
    ok(v.known && !v.estimated, "and back, over a gap");
    is_int(series("carbon", p, 4, 1800), 0, "a series that says nothing of it");
    signals_look(s, find("carbon"), at(1800), &v);
    ok(v.known && !v.estimated, "is none");
}

static void unlisted(void)
{
    static const struct policy_point p[] = {{UTC_S, 0.2}, {UTC_S + 600, 0.3}};
    struct signal_put put_p = {.source = "file /x", .listed = true};
    struct signal_view v;

    begin();
    put_p.utc_ns = at(0).utc_ns;
    is_int(signals_put(s, find("carbon"), &put_p, number(300), at(0), NULL), 0,
           "of a file");
    is_int(signals_put_series(s, find("price.forecast"), &put_p, p, 2, at(0), NULL), 0,
           "a forecast");
    is_int(signals_put_series(s, find("price"), &put_p, p, 2, at(0), NULL), 0,
           "a series");
    is_int(put("queue.depth", 5, "", 0, 0), 0, "of a program");
    is_int(set("price", 0.5, "EUR/kWh", 0, 0, NULL), 0, "by hand");
    signals_fail(s, find("queue.gpus"), "file /x", "/x: no such file");
    told[0] = '\0';
    for (size_t i = 0; i < signals_count(s); i++)
        signals_unlist(s, i);
    signals_look(s, find("carbon"), at(1), &v);
    ok(!v.known && !v.value, "a file's value is unknown at once");
    is_str(v.why, "the source is no longer in policy.yaml", "and why");
    signals_step(s, at(1));
    tells("carbon unknown;price.forecast unknown;", "told with the next step");
    ok(isnan(value("carbon", 2)) && isnan(value("price.forecast", 2)), "rules, too");
    is_near(value("queue.depth", 2), 5, 1e-9, "a program's value stays");
    signals_look(s, find("price"), at(2), &v);
    ok(v.known && v.by_hand && v.value->number == 0.5, "one by hand, too");
    signals_look(s, find("price"), at(900), &v);
    ok(!v.known, "and has no series behind it");
    signals_look(s, find("queue.gpus"), at(2), &v);
    is_str(v.why, "no source has given a value yet", "a failure is forgotten");
    is_int(put("carbon", 200, "", 3, 3), 0, "another source");
    signals_look(s, find("carbon"), at(3), &v);
    ok(v.known && !v.why[0], "counts");
}

static void failures(void)
{
    struct signal_view v;

    begin();
    signals_fail(s, find("carbon"), "file /x", "/x: no such file");
    signals_fail(s, find("carbon"), "file /x", "/x: no such file");
    tells("carbon fails;", "a reason is told once");
    signals_look(s, find("carbon"), at(0), &v);
    is_str(v.why, "/x: no such file", "and shown");
    is_int(put("carbon", 1, "g/kWh", 0, 0), 0, "it works");
    tells("carbon known;carbon works;", "is told");
    signals_fail(s, find("carbon"), "file /x", "/x: torn");
    tells("carbon fails;", "and fails");
    is_near(value("carbon", 100) * 3.6e6, 1, 1e-9, "the value stays until its age limit");
    signals_step(s, at(7200));
    tells("carbon unknown;", "then it is unknown");
    signals_look(s, find("carbon"), at(7200), &v);
    ok(!v.known && !v.value && v.age_s == 7200, "shown so, with its age");
    is_str(v.why, "/x: torn", "and why");
}

static void declarations(void)
{
    struct signal_decl d[3] = {
        {.name = "rack3.power", .unit = "kW", .age_ns = 60 * NS_PER_S},
        {.name = "carbon", .unit = "g/kWh", .age_ns = 60 * NS_PER_S},
        {.name = "grid", .type = POLICY_TEXT, .age_ns = 60 * NS_PER_S}};
    struct policy_read now = {.fold = POLICY_NOW};
    struct signal_put p = {.source = "x", .utc_ns = at(0).utc_ns};
    struct signal_value text = {.type = POLICY_TEXT, .text = "tense"};
    struct policy_value v;
    uw_error err = {""};

    begin();
    size_t well_known = signals_count(s);
    is_int(put("carbon", 5, "", 0, 0), 0, "a value");
    is_int(signals_declare(s, d, 3, "EUR", &err), 0, "declared");
    is_int(signals_count(s), well_known + 2, "two more");
    is_near(value("carbon", 0) * 3.6e6, 5, 1e-9, "values stay");
    is_int(put("rack3.power", 38, "", 0, 0), 0, "a site's own");
    is_near(value("rack3.power", 0), 38000, 1e-9, "in W");
    ok(isnan(value("rack3.power", 60)), "for its own age limit");
    is_int(signals_put(s, find("grid"), &p, &text, at(0), &err), 0, "a text");
    signals_read(s, find("grid"), &now, at(0), &v);
    is_str(v.text, "tense", "is read");
    d[2].name[0] = 'r';
    memcpy(d[1].name, d[0].name, sizeof d[1].name);
    is_int(signals_declare(s, d, 2, "EUR", &err), -EINVAL, "twice the same");
    is_near(value("rack3.power", 0), 38000, 1e-9, "and nothing changed");
    (void)snprintf(d[0].unit, sizeof d[0].unit, "W");
    is_int(signals_declare(s, d, 1, "EUR", &err), 0, "another unit");
    ok(isnan(value("rack3.power", 0)), "forgets the values");
    is_int(signals_find(s, "grid"), -1, "what is not declared is gone");
    is_str(signals_at(s, find("rack3.power"))->unit, "W", "as a catalogue has it");
    is_int(signals_at(s, find("carbon.forecast"))->series, POLICY_FORECAST, "a forecast");
}

int main(void)
{
    ages();
    estimates();
    estimated_rows();
    hands();
    histories();
    folds_stay();
    rows();
    unlisted();
    failures();
    declarations();
    signals_free(s);
    return done();
}
