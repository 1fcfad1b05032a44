#include "base/units.h"

#include <errno.h>

#include "base/auto.h"
#include "tap.h"

enum { KEPT = 77 };

/* clang-format off */
static const struct { const char *text; int r; uint32_t mw; } powers[] = {
    {"300 W", 0, 300000}, {"300W", 0, 300000}, {" 0.3 kW ", 0, 300000}, {"300000 mW", 0, 300000},
    {"1e2 W", 0, 100000}, {".5 W", 0, 500}, {"0 W", 0, 0},
    {"300", -EINVAL, KEPT}, {"", -EINVAL, KEPT}, {"W", -EINVAL, KEPT}, {"300 V", -EINVAL, KEPT},
    {"0x10 W", -EINVAL, KEPT}, {"inf W", -EINVAL, KEPT}, {"nan W", -EINVAL, KEPT},
    {"300 W x", -EINVAL, KEPT}, {"-1 W", -ERANGE, KEPT}, {"1e9 W", -ERANGE, KEPT},
    {"1e999 W", -ERANGE, KEPT},
};
static const struct { const char *text; int r; uint64_t ns; } durations[] = {
    {"5 s", 0, 5000000000}, {"500ms", 0, 500000000}, {"2 min", 0, 120000000000},
    {"1h", 0, 3600000000000}, {"1 d", 0, 86400000000000}, {"10 us", 0, 10000}, {"7 ns", 0, 7},
    {"10m", 0, 600000000000}, {"10 sec", 0, 10000000000}, {"1 second", 0, 1000000000}, {"90 seconds", 0, 90000000000},
    {"1 minute", 0, 60000000000}, {"10 minutes", 0, 600000000000}, {"1hour", 0, 3600000000000}, {"2 hours", 0, 7200000000000},
    {"1 day", 0, 86400000000000}, {"1.5 days", 0, 129600000000000},
    {"10 m 5 s", 0, 605000000000}, {"1h30m", 0, 5400000000000}, {" 1 h 30 min ", 0, 5400000000000}, {"2d4h", 0, 187200000000000},
    {"1 hour 1 minute 1 second 1 ms", 0, 3661001000000}, {"0h 5s", 0, 5000000000},
    {"1h30", -EINVAL, KEPT}, {"30m1h", -EINVAL, KEPT}, {"1h 2h", -EINVAL, KEPT}, {"1h -5m", -ERANGE, KEPT}, {"1hm", -EINVAL, KEPT},
    {"", -EINVAL, KEPT}, {"h", -EINVAL, KEPT}, {"1 h, 5 m", -EINVAL, KEPT}, {"36500 d 366 d", -EINVAL, KEPT}, {"36524 d 24 h", 0, 3155760000000000000},
    {"36525 d 1 s", -ERANGE, KEPT},
    {"10M", -EINVAL, KEPT}, {"10 mi", -EINVAL, KEPT}, {"10ms x", -EINVAL, KEPT},
    {"5", -EINVAL, KEPT}, {"5 fortnights", -EINVAL, KEPT}, {"-5 s", -ERANGE, KEPT},
    {"1e12 s", -ERANGE, KEPT},
};
static const struct { const char *text; int r; uint32_t mhz; } clocks[] = {
    {"1200 MHz", 0, 1200}, {"1200MHz", 0, 1200}, {" 1.2 GHz ", 0, 1200}, {"1200000 kHz", 0, 1200},
    {"1200", -EINVAL, KEPT}, {"1200 W", -EINVAL, KEPT}, {"", -EINVAL, KEPT}, {"0 MHz", -ERANGE, KEPT},
    {"-5 MHz", -ERANGE, KEPT}, {"11 GHz", -ERANGE, KEPT}, {"1200 mhz", -EINVAL, KEPT},
};
static const struct { const char *text; int r; uint32_t mw; double percent; } caps[] = {
    {"250", 0, 250000, 0}, {"250 W", 0, 250000, 0}, {"85%", 0, 0, 85}, {"85 %", 0, 0, 85},
    {"100%", 0, 0, 100}, {"99.5%", 0, 0, 99.5},
    {"0%", -ERANGE, KEPT, KEPT}, {"101%", -ERANGE, KEPT, KEPT}, {"-3%", -ERANGE, KEPT, KEPT},
    {"0", -ERANGE, KEPT, KEPT}, {"0.0001", -ERANGE, KEPT, KEPT}, {"-5", -ERANGE, KEPT, KEPT},
    {"-5W", -ERANGE, KEPT, KEPT}, {"5000 kW", -ERANGE, KEPT, KEPT},
    {"250 V", -EINVAL, KEPT, KEPT}, {"much", -EINVAL, KEPT, KEPT},
};
static const struct { const char *text; int r; uint64_t v; } numbers[] = {
    {"0", 0, 0}, {" 12 ", 0, 12}, {"18446744073709551615", 0, UINT64_MAX},
    {"18446744073709551616", -ERANGE, KEPT}, {"-1", -EINVAL, KEPT}, {"1.5", -EINVAL, KEPT},
    {"", -EINVAL, KEPT}, {"1x", -EINVAL, KEPT}, {"0x10", -EINVAL, KEPT},
};
static const struct { const char *text; int r; double v; } doubles[] = {
    {"1.5", 0, 1.5}, {"-2e3", 0, -2000}, {" 7 ", 0, 7}, {"1.", 0, 1},
    {"1,5", -EINVAL, KEPT}, {"0x1p3", -EINVAL, KEPT}, {"nan", -EINVAL, KEPT}, {"1e", -EINVAL, KEPT},
    {"1e400", -ERANGE, KEPT},
    {"1111111111111111111111111111111111111111111111111111111111111111111", -ERANGE, KEPT},
};
/* clang-format on */

static void test_watts_typed(void)
{
    static const struct {
        const char *typed;
        uint32_t mw;
        const char *want;
    } cases[] = {
        {NULL, 300000, "300 W"},
        {"", 300500, "300.5 W"},
        {"300", 300000, "'300'"},
        {"300W", 300000, "'300W'"},
        {"300 W ", 300000, "'300 W '"},
        {"300.5", 300500, "'300.5'"},
        {"0.3kW", 300000, "'0.3kW' (300 W)"},
        {"300000 mW", 300000, "'300000 mW' (300 W)"},
        {"300.0W", 300000, "'300.0W' (300 W)"},
        {"30", 300000, "'30' (300 W)"},
        {"3000", 300000, "'3000' (300 W)"},
        {"85%", 255000, "'85%' (255 W)"},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        char text[WATTS_TEXT];
        is_str(watts_typed(cases[i].typed, cases[i].mw, text), cases[i].want,
               "watts in a message");
    }
}

/* A cap outside 150..300 W. */
static void test_cap_outside(void)
{
    static const struct {
        const char *text, *what, *want;
    } cases[] = {
        {"80", "", "'80' is outside 150..300 W: did you mean '80%'?"},
        {"80.0", "", "'80.0' (80 W) is outside 150..300 W: did you mean '80%'?"},
        {"80 W", ", the range for users",
         "'80 W' is outside 150..300 W, the range for users: did you mean '80%'?"},
        {"100", "", "'100' is outside 150..300 W: did you mean '100%'?"},
        {"80W", "", "'80W' is outside 150..300 W"},
        {"80000mW", "", "'80000mW' (80 W) is outside 150..300 W"},
        {"101", "", "'101' is outside 150..300 W"},
        {"301", "", "'301' is outside 150..300 W"},
    };
    char text[CAP_OUTSIDE_TEXT];

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct cap_arg cap = {.mw = 0};
        ok(parse_cap(cases[i].text, &cap, NULL) == 0, "'%s' is a cap", cases[i].text);
        is_str(cap_outside(&cap, cap.mw, 150000, 300000, cases[i].what, text),
               cases[i].want, "… outside the range");
    }
    is_str(cap_outside(&(struct cap_arg){.percent = 20, .typed = "20%"}, 60000, 150000,
                       300000, "", text),
           "'20%' (60 W) is outside 150..300 W", "a percentage");
    is_str(cap_outside(&(struct cap_arg){.mw = 90000}, 90000, 60000, 70000, "", text),
           "90 W is outside 60..70 W", "above the range");
}

static void test_limits(void)
{
    static const struct {
        const char *text;
        uint32_t mw;
        double percent;
        const char *error;
    } cases[] = {
        {"250 W", 250000, 0, NULL},
        {"0.25kW ", 250000, 0, NULL},
        {"85 %", 0, 85, NULL},
        {"80", KEPT, KEPT,
         "'80' has no unit: write '80 W', or a percentage such as '85 %'"},
        {"0", KEPT, KEPT, "'0' has no unit: write '0 W', or a percentage such as '85 %'"},
        {"80 V", KEPT, KEPT, "'80 V' has no unit known here (W, mW, kW, %)"},
        {"0 W", KEPT, KEPT, "'0 W': a cap is more than 0 W"},
        {"120 %", KEPT, KEPT, "'120 %' must be above 0 % and at most 100 %"},
        {"W", KEPT, KEPT, "'W' is not a number"},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct cap_arg c = {KEPT, KEPT, "kept"};
        uw_error err = {""};
        int r = parse_limit(cases[i].text, &c, &err);
        ok((r < 0) == (cases[i].error != NULL) && c.mw == cases[i].mw &&
               c.percent == cases[i].percent,
           "limit '%s': %d", cases[i].text, r);
        is_str(r < 0 ? err.text : c.typed,
               cases[i].error ? cases[i].error : cases[i].text, "… and its text");
    }
}

int main(void)
{
    test_watts_typed();
    test_cap_outside();
    uw_error err;

    for (size_t i = 0; i < n_elements(powers); i++) {
        uint32_t mw = KEPT;
        int r = parse_power(powers[i].text, &mw, &err);
        ok(r == powers[i].r && mw == powers[i].mw, "power '%s': %d", powers[i].text, r);
    }
    for (size_t i = 0; i < n_elements(durations); i++) {
        uint64_t ns = KEPT;
        int r = parse_duration(durations[i].text, &ns, &err);
        ok(r == durations[i].r && ns == durations[i].ns, "duration '%s': %d",
           durations[i].text, r);
    }
    for (size_t i = 0; i < n_elements(clocks); i++) {
        uint32_t mhz = KEPT;
        int r = parse_clock(clocks[i].text, &mhz, &err);
        ok(r == clocks[i].r && mhz == clocks[i].mhz, "clock '%s': %d", clocks[i].text, r);
    }
    for (size_t i = 0; i < n_elements(caps); i++) {
        struct cap_arg c = {KEPT, KEPT, "kept"};
        int r = parse_cap(caps[i].text, &c, &err);
        ok(r == caps[i].r && c.mw == caps[i].mw && c.percent == caps[i].percent,
           "cap '%s': %d", caps[i].text, r);
        is_str(c.typed,
               r < 0                              ? "kept"
               : strlen(caps[i].text) < CAP_TYPED ? caps[i].text
                                                  : "",
               "… as it was typed");
    }
    test_limits();
    for (size_t i = 0; i < n_elements(numbers); i++) {
        uint64_t v = KEPT;
        int r = parse_u64(numbers[i].text, &v, &err);
        ok(r == numbers[i].r && v == numbers[i].v, "number '%s': %d", numbers[i].text, r);
    }
    for (size_t i = 0; i < n_elements(doubles); i++) {
        double v = KEPT;
        int r = parse_double(doubles[i].text, &v, &err);
        ok(r == doubles[i].r && v == doubles[i].v, "double '%s': %d", doubles[i].text, r);
    }
    static const struct {
        const char *text;
        int r;
        const char *currency;
    } prices[] = {
        {"0.30", 0, ""},
        {"0.30 EUR", 0, "EUR"},
        {"-1 USD", 0, "USD"},
        {"0.30 ", -EINVAL, "?"},
        {"0.30 XX", -EINVAL, "?"},
        {"0.30 eur", 0, "EUR"},
        {"0.30 Eur", 0, "EUR"},
        {"0.30 e1r", -EINVAL, "?"},
        {"0.30  EUR", -EINVAL, "?"},
        {"0.30 EURO", -EINVAL, "?"},
        {"EUR", -EINVAL, "?"},
        {"x EUR", -EINVAL, "?"},
        {"", -EINVAL, "?"},
    };
    for (size_t i = 0; i < n_elements(prices); i++) {
        char currency[CURRENCY] = "?";
        double v = KEPT;
        int r = parse_price(prices[i].text, &v, currency, &err);
        ok(r == prices[i].r && strcmp(currency, prices[i].currency) == 0 &&
               (r == 0) == (v != KEPT),
           "price '%s': %d", prices[i].text, r);
    }
    int64_t i64 = KEPT;
    is_int(parse_u64("-3", &(uint64_t){0}, &err), -EINVAL, "a number below 0");
    is_str(err.text, "'-3' is below 0", "its text says that");
    ok(parse_i64("-12", &i64, &err) == 0 && i64 == -12, "negative whole numbers");
    ok(parse_i64("- 12", &i64, &err) == -EINVAL && i64 == -12,
       "a sign stands at its number");
    ok(parse_i64("99999999999999999999", &i64, &err) == -ERANGE, "too large for 64 bits");
    (void)parse_power("300", &(uint32_t){0}, &err);
    is_str(err.text, "'300' has no unit: write '300 W'", "the error says what to write");
    (void)parse_duration("1mo", &(uint64_t){0}, &err);
    is_str(err.text,
           "'1mo' has no unit known here (s, sec, second, seconds, ms, us, ns, m, min, "
           "minute, minutes, h, hour, hours, d, day, days)",
           "… and which units there are");
    (void)parse_duration("1h30", &(uint64_t){0}, &err);
    is_str(err.text, "'1h30': '30' has no unit: write '30 s'", "… of each part");
    (void)parse_duration("1h 30 ", &(uint64_t){0}, &err);
    is_str(err.text, "'1h 30 ': '30 ' has no unit: write '30  s'", "… and of what");
    (void)parse_duration("30m1h", &(uint64_t){0}, &err);
    is_str(err.text, "'30m1h': units go from the largest to the smallest, as in 1h30m",
           "… in their order");
    ok(ns_of_s(-1) == 0 && ns_of_s(NAN) == 0 && ns_of_s(1e300) == UINT64_MAX,
       "seconds saturate");
    ok(mw_of_w(-1) == 0 && mw_of_w(NAN) == 0 && mw_of_w(1e300) == UINT32_MAX,
       "watts saturate");
    ok(s_between(5, 3) < 0, "time between may be negative");
    return done();
}
