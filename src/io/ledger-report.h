/* Reports out of the ledger: who used what, when; sums that are checked against the
 * meters.
 */
#ifndef IO_LEDGER_REPORT_H
#define IO_LEDGER_REPORT_H

#include "base/names.h"
#include "io/json.h"
#include "io/ledger.h"

enum ledger_by { REPORT_KEYS(NAME_ENUM) };

/* All 0: exactly.  Else energies in whole steps, and of whole periods of UTC alone, none
 * that ends after until_utc_ns: however often it is asked and with whatever from and to,
 * nothing finer can be had.
 */
struct ledger_coarse {
    double step_j;
    uint64_t period_ns;
    int64_t until_utc_ns;
};

struct ledger_query {
    enum ledger_by by;
    char label[64]; /* LEDGER_BY_LABEL's key */
    bool local;     /* days and dates in this machine's time zone, not UTC */
    int64_t from_utc_ns, to_utc_ns; /* to: not included */
    /* Whose jobs may be seen.  Boards' totals are everybody's. */
    bool one_user;
    uid_t uid;
    struct ledger_coarse domains; /* how finely RAPL domains are told */
    /* Only where they are configured: grams of CO2 equivalent and money a kWh. */
    bool has_carbon, has_price;
    double gco2e_kwh, price_kwh;
    char currency[8];
};

/* By job, everything up to now. */
void ledger_query_init(struct ledger_query *q, int64_t now_utc_ns);
/* One parameter as it comes in a URL or on a command line: "by" (job, user, gpu, cpu,
 * day, label:KEY), "zone" (utc, local), "from", "to".  Times: 2026-11-21,
 * 2026-11-21T14:30, 2026-11-21T14:30:00Z or with +01:00, "today", "yesterday", "7d" (so
 * many days ago). A date alone, or a time without a zone, is in the query's zone: set
 * "zone" first. "to" a date alone includes that day.  -EINVAL, -ERANGE (text names key
 * and value), -ENOENT (no such key): nothing changed.
 */
int ledger_query_set(struct ledger_query *q, const char *key, const char *value,
                     int64_t now_utc_ns, uw_error *err);
/* from < to, and so on: before it is used. */
int ledger_query_check(const struct ledger_query *q, uw_error *err);

/* The report as JSON (docs/ledger.md names the keys), an object into `o` under `key`
 * (NULL for the root).  Of a ledger opened read_only or not.  -errno: `o` is then
 * broken off in the middle.
 */
int ledger_report(struct ledger *l, const struct ledger_query *q, struct json_out *o,
                  const char *key, uw_error *err);

#endif
