/* Parameters of a report: every form of a time, and what is refused. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/auto.h"
#include "io/ledger-report.h"
#include "tap.h"

#define S INT64_C(1000000000)
/* 2026-11-21T15:30:10Z, a Saturday */
#define NOW (INT64_C(1795275010) * S)

static void test_times(void)
{
    static const struct {
        const char *key, *text, *zone;
        int64_t want_s;
    } cases[] = {
        {"from", "2026-11-21", "utc", 1795219200},
        {"to", "2026-11-21", "utc", 1795219200 + 86400},
        {"from", "2026-11-21T14:30", "utc", 1795219200 + 52200},
        {"to", "2026-11-21T14:30", "utc", 1795219200 + 52200},
        {"from", "2026-11-21T14:30:05Z", "local", 1795219200 + 52205},
        {"from", "2026-11-21 14:30:05Z", "local", 1795219200 + 52205},
        {"from", "2026-11-21T14:30:05+01:00", "utc", 1795219200 + 48605},
        {"from", "2026-11-21T14:30:05 01:00", "utc", 1795219200 + 48605},
        {"from", "2026-11-21T14:30:05-0230", "utc", 1795219200 + 61205},
        {"from", "today", "utc", 1795219200},
        {"to", "today", "utc", 1795219200 + 86400},
        {"from", "yesterday", "utc", 1795219200 - 86400},
        {"to", "yesterday", "utc", 1795219200},
        {"from", "7d", "utc", 1795275010 - 7 * 86400},
        {"to", "now", "utc", 1795275010},
        {"from", "2024-02-29", "utc", 1709164800},
        {"from", "1970-01-01", "utc", 0},
        /* Europe/Berlin: +1 h in winter, +2 h in summer; 25 h on 2026-10-25 */
        {"from", "2026-11-21", "local", 1795219200 - 3600},
        {"from", "2026-07-01", "local", 1782856800},
        {"from", "2026-10-25", "local", 1792879200},
        {"to", "2026-10-25", "local", 1792879200 + 25 * 3600},
        {"from", "today", "local", 1795219200 - 3600},
        {"to", "yesterday", "local", 1795219200 - 3600},
        /* the process's zone is another: it is 05:30 of the next day in Auckland */
        {"from", "today", "Pacific/Auckland", 1795219200 + 11 * 3600},
        {"from", "yesterday", "Pacific/Auckland", 1795219200 - 13 * 3600},
        {"to", "2026-11-21", "Pacific/Auckland", 1795219200 + 11 * 3600},
        {"from", "2026-11-21T14:30", "Asia/Kolkata", 1795219200 + 52200 - 19800},
        {"from", "2026-11-21T14:30Z", "Asia/Kolkata", 1795219200 + 52200},
        {"to", "2026-10-25", "Europe/Berlin", 1792879200 + 25 * 3600},
        {"from", "2026-11-21", "UTC", 1795219200},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct ledger_query q;
        uw_error err = {{0}};
        ledger_query_init(&q, NOW);
        (void)ledger_query_set(&q, "zone", cases[i].zone, NOW, &err);
        is_int(ledger_query_set(&q, cases[i].key, cases[i].text, NOW, &err), 0,
               "%s=%s %s", cases[i].key, cases[i].text, err.text);
        is_int((cases[i].key[0] == 'f' ? q.from_utc_ns : q.to_utc_ns) / S,
               cases[i].want_s, "in seconds (%s)", cases[i].zone);
    }
}

static void test_refused(void)
{
    static const struct {
        const char *key, *text;
        int r;
    } cases[] = {
        {"from", "", -EINVAL},
        {"from", "2026", -EINVAL},
        {"from", "2026-13-01", -EINVAL},
        {"from", "2026-02-29", -EINVAL},
        {"from", "2026-11-31", -EINVAL},
        {"from", "2026-00-10", -EINVAL},
        {"from", "1969-12-31", -EINVAL},
        {"from", "9999-01-01", -EINVAL},
        {"from", "2026-11-21T24:00", -EINVAL},
        {"from", "2026-11-21T14:60", -EINVAL},
        {"from", "2026-11-21T14:30:60", -EINVAL},
        {"from", "2026-11-21T14:30Zx", -EINVAL},
        {"from", "2026-11-21T14:30+15:00", -EINVAL},
        {"from", "2026-11-21T", -EINVAL},
        {"from", "-1d", -EINVAL},
        {"from", "d", -EINVAL},
        {"from", "99999d", -EINVAL},
        {"from", "36500d", -ERANGE},
        {"from", "1970-01-01T00:00+01:00", -ERANGE},
        {"to", "tomorrow", -EINVAL},
        {"by", "", -EINVAL},
        {"by", "gpus", -EINVAL},
        {"by", "label:", -EINVAL},
        {"by", "label:a'b", -EINVAL},
        {"by", "user,", -EINVAL},
        {"by", ",user", -EINVAL},
        {"by", "user,day,job", -EINVAL},
        {"by", "user,user", -EINVAL},
        {"by", "label:a,label:b", -EINVAL},
        {"by", "user,gpu", -EINVAL},
        {"by", "cpu,day", -EINVAL},
        {"user", "", -EINVAL},
        {"user", "0123456789012345678901234567890123456789012345678901234567890123",
         -EINVAL},
        {"job", "0", -ERANGE},
        {"job", "9223372036854775808", -ERANGE},
        {"job", "slurm:1", -EINVAL},
        {"label", "team", -EINVAL},
        {"label", "team=", -EINVAL},
        {"label", "=vision", -EINVAL},
        {"label", "a'b=c", -EINVAL},
        {"by",
         "label:0123456789012345678901234567890123456789012345678901234567890123456789",
         -EINVAL},
        {"zone", "Europe/Berln", -EINVAL},
        {"zone", "CET-1CEST,M3.5.0", -EINVAL},
        {"zone", "../UTC", -EINVAL},
        {"gco2e_kwh", "much", -EINVAL},
        {"gco2e_kwh", "-1", -ERANGE},
        {"gco2e_kwh", "nan", -EINVAL},
        {"price_kwh", "0.30", -EINVAL},
        {"price_kwh", "0.30 <b>", -EINVAL},
        {"price_kwh", "-1 EUR", -ERANGE},
        {"price_kwh", "0.30 EURO", -EINVAL},
        {"price_kwh", "0.30 eu", -EINVAL},
        {"price_kwh", "0.30 XX", -EINVAL},
        {"waste", "yes", -EINVAL},
        {"By", "job", -ENOENT},
        {"", "", -ENOENT},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct ledger_query q, before;
        uw_error err = {{0}};
        ledger_query_init(&q, NOW);
        before = q;
        is_int(ledger_query_set(&q, cases[i].key, cases[i].text, NOW, &err), cases[i].r,
               "%s=%s: %s", cases[i].key, cases[i].text, err.text);
        ok(err.text[0] && memcmp(&q, &before, sizeof q) == 0,
           "says why, changes nothing");
    }
}

static void test_three_keys(void)
{
    struct ledger_query q;
    uw_error err = {{0}};

    ledger_query_init(&q, NOW);
    is_int(ledger_query_set(&q, "by", "user,day,job", NOW, &err), -EINVAL, "three keys");
    is_str(err.text, "by: 'user,day,job' has more than two keys", "and all are named");
    is_int(ledger_query_set(&q, "by", "label", NOW, &err), -EINVAL, "no label's key");
    ok(strstr(err.text, "label:KEY") && !strstr(err.text, "did you mean"), "%s",
       err.text);
}

static void test_good(void)
{
    struct ledger_query q;
    uw_error err = {{0}};

    ledger_query_init(&q, NOW);
    ok(ledger_query_check(&q, &err) == 0, "everything up to now is a report");
    is_int(ledger_query_set(&q, "by", "label:k8s.io/name", NOW, &err), 0, "a label");
    is_str(q.key[0].label, "k8s.io/name", "its key");
    is_int(ledger_query_set(&q, "by", "gpu", NOW, &err), 0, "by GPU");
    ok(q.key[0].by == LEDGER_BY_BOARD && !q.key[0].label[0], "forgets the label");
    is_int(ledger_query_set(&q, "by", "user,label:team", NOW, &err), 0, "two keys");
    ok(q.n_keys == 2 && q.key[0].by == LEDGER_BY_USER && q.key[1].by == LEDGER_BY_LABEL,
       "in their order");
    is_str(q.key[1].label, "team", "with its label");
    is_int(ledger_query_set(&q, "label", "team=a=b", NOW, &err), 0, "a filter");
    ok(strcmp(q.of_label, "team") == 0 && strcmp(q.of_value, "a=b") == 0,
       "up to the first =");
    ok(ledger_query_check(&q, &err) == 0, "goes with it");
    is_int(ledger_query_set(&q, "by", "gpu", NOW, &err), 0, "by GPU");
    is_int(ledger_query_check(&q, &err), -EINVAL, "does not: %s", err.text);
    is_int(ledger_query_set(&q, "price_kwh", "0.30 EUR", NOW, &err), 0, "a price");
    ok(q.has_price && q.price_kwh == 0.30 && strcmp(q.currency, "EUR") == 0, "is kept");
    is_int(ledger_query_set(&q, "gco2e_kwh", "380", NOW, &err), 0, "an intensity");
    ok(q.has_carbon && q.gco2e_kwh == 380, "is kept");
    q.from_utc_ns = q.to_utc_ns = 1763812800 * 1000000000ll;
    is_int(ledger_query_check(&q, &err), -EINVAL, "nothing between from and to");
    is_str(err.text,
           "from (2025-11-22T12:00:00Z) is not before to (2025-11-22T12:00:00Z)",
           "both are told");
}

int main(void)
{
    (void)setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    test_times();
    test_refused();
    test_three_keys();
    test_good();
    return done();
}
