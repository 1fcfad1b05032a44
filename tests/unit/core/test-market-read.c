/* The file of market-based figures: what is read, and what is refused. */
#include "core/carbon/market-read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/auto.h"
#include "tap.h"

#define HEADER "from,to,kwh,share,g_per_kwh,origin\n"
#define DAY_MS INT64_C(86400000)

static int get(const char *text, struct market_contract **ret, size_t *ret_n,
               uw_error *err)
{
    return market_read("m.csv", text, strlen(text), false, ret, ret_n, err);
}

static void good(void)
{
    static const char text[] =
        "# the site's contracts\r\n\r\n" HEADER
        "1970-01-02,1970-01-03,1200.5,,0,GO 17\r\n"
        "1970-01-01T10:00Z,1970-01-01T12:00+01:00,,0.25,41,\"solar, \"\"roof\"\"\"\n"
        "1970-01-01,1970-12-31,,,521,residual mix";
    auto_(mem_free) struct market_contract *c = NULL;
    size_t n = 0;
    uw_error err = {""};

    is_int(get(text, &c, &n, &err), 0, "a file: %s", err.text);
    is_int(n, 3, "has three contracts");
    ok(c[0].kind == MARKET_ENERGY && c[0].amount == 1200.5 && c[0].g_kwh == 0, "energy");
    ok(c[0].from_ms == DAY_MS && c[0].to_ms == 3 * DAY_MS, "a date as end has its day");
    is_str(c[0].origin, "GO 17", "its origin");
    ok(c[1].kind == MARKET_SHARE && c[1].amount == 0.25 && c[1].g_kwh == 41, "a share");
    ok(c[1].from_ms == 36000000 && c[1].to_ms == 39600000, "times, with zones");
    is_str(c[1].origin, "solar, \"roof\"", "a quoted text");
    ok(c[2].kind == MARKET_RESIDUAL && c[2].g_kwh == 521, "a residual factor");
    free(take(c));
    is_int(get(HEADER, &c, &n, &err), 0, "a header alone");
    is_int(n, 0, "is no contract");
}

static void bad(void)
{
    static const struct {
        const char *text;
        int r;
        const char *say;
    } cases[] = {
        {"", -EINVAL, "m.csv: no header from,to,kwh,share,g_per_kwh,origin"},
        {"from,to\n", -EINVAL,
         "m.csv:1: 'from,to' is not the header from,to,kwh,share,g_per_kwh,origin"},
        {HEADER "2026-01-01,2026-01-02,1,,0\n", -EINVAL,
         "m.csv:2: 5 fields, not the 6 of from,to,kwh,share,g_per_kwh,origin"},
        {HEADER "2026-01-01,2026-01-02,1,,0,a,b\n", -EINVAL,
         "m.csv:2: more than the 6 fields of from,to,kwh,share,g_per_kwh,origin"},
        {HEADER "\n#\n1 May,2026-01-02,1,,0,a\n", -EINVAL,
         "m.csv:4: from: '1 May' is no time as 2026-11-21 or 2026-11-21T14:30:00Z"},
        {HEADER "2026-01-02,2026-01-01,1,,0,a\n", -EINVAL,
         "m.csv:2: from (2026-01-02) is not before to (2026-01-01)"},
        {HEADER "2026-01-01,2026-01-02,1,0.5,0,a\n", -EINVAL,
         "m.csv:2: kwh '1' and share '0.5': one of them is empty"},
        {HEADER "2026-01-01,2026-01-02,-1,,0,a\n", -ERANGE,
         "m.csv:2: kwh: '-1' is outside 0..1e+09"},
        {HEADER "2026-01-01,2026-01-02,nan,,0,a\n", -EINVAL, NULL},
        {HEADER "2026-01-01,2026-01-02,,50,0,a\n", -ERANGE,
         "m.csv:2: share: '50' is outside 0..1"},
        {HEADER "2026-01-01,2026-01-02,1,,,a\n", -EINVAL, NULL},
        {HEADER "2026-01-01,2026-01-02,1,,10001,a\n", -ERANGE,
         "m.csv:2: g_per_kwh: '10001' is outside 0..10000"},
        {HEADER "2026-01-01,2026-01-02,1,,0,\n", -EINVAL,
         "m.csv:2: origin: '' is no plain text of 1 to 63 bytes"},
        {HEADER "2026-01-01,2026-01-02,1,,0,\"a\n", -EINVAL,
         "m.csv:2: origin: no text of up to 127 bytes, in double quotes where it has a "
         "comma"},
        {HEADER "2026-01-01,2026-01-02,1,,0,a\x1b[2J\n", -EINVAL, NULL},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct market_contract *c = NULL;
        size_t n = 7;
        uw_error err = {""};
        int r = get(cases[i].text, &c, &n, &err);
        is_int(r, cases[i].r, "%zu is refused: %s", i, err.text);
        ok(!c && n == 7, "and nothing is given");
        if (cases[i].say)
            is_str(err.text, cases[i].say, "with one line");
    }
}

/* Of a file that not every user may read: what it is, and where it is wrong. */
static void hidden(void)
{
    static const struct {
        const char *text;
        size_t len;
        const char *say;
    } cases[] = {
        {"secret\n", 7,
         "m.csv:1 is wrong (its text is not shown: not every user may read it)"},
        {HEADER "#\n2026-01-01,2026-01-02,secret,,0,a\n", 71,
         "m.csv:3 is wrong (its text is not shown: not every user may read it)"},
        {"", 0, "m.csv: no header from,to,kwh,share,g_per_kwh,origin"},
        {"a\0b", 3, "m.csv: byte 2 is NUL: it is no text"},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct market_contract *c = NULL;
        size_t n = 7;
        uw_error err = {""};
        is_int(market_read("m.csv", cases[i].text, cases[i].len, true, &c, &n, &err),
               -EINVAL, "hidden %zu is refused", i);
        is_str(err.text, cases[i].say, "without its text");
    }
}

static void many(void)
{
    static const char line[] = "2026-01-01,2026-01-02,1,,0,a\n";
    size_t n = 0, len = strlen(HEADER);
    auto_(mem_free) char *text = malloc(len + (MARKET_CONTRACTS + 1) * sizeof line);
    struct market_contract *c = NULL;
    uw_error err = {""};

    if (!ok(text != NULL, "memory"))
        return;
    memcpy(text, HEADER, len);
    for (size_t i = 0; i <= MARKET_CONTRACTS; i++)
        memcpy(text + len + i * (sizeof line - 1), line, sizeof line);
    is_int(get(text, &c, &n, &err), -E2BIG, "%s", err.text);
}

int main(void)
{
    good();
    bad();
    hidden();
    many();
    return done();
}
