/* Reports from the ledger: who used what, when; the sums are checked against the meters.
 */
#ifndef IO_LEDGER_REPORT_H
#define IO_LEDGER_REPORT_H

#include "base/names.h"
#include "base/units.h"
#include "io/json.h"
#include "io/ledger.h"
#include "io/zone.h"

enum ledger_by { REPORT_KEYS(NAME_ENUM) };

/* All 0: exact.  Else energies are in whole steps, of whole periods of UTC, none of which
 * ends after until_utc_ns: no series of queries, whatever their from and to, can give a
 * finer result.
 */
struct ledger_coarse {
    double step_j;
    uint64_t period_ns;
    int64_t until_utc_ns;
};

struct accounting; /* core/carbon/accounting.h */

/* What rows are of. */
struct ledger_key {
    enum ledger_by by;
    char label[64]; /* LEDGER_BY_LABEL's key */
};
enum { LEDGER_KEYS = 2 };

struct ledger_query {
    struct ledger_key key[LEDGER_KEYS];
    size_t n_keys;
    /* Of days and dates.  local: this process's zone; else a zone's name; "": UTC. */
    bool local;
    char zone[ZONE_NAME_MAX + 1];
    int64_t from_utc_ns, to_utc_ns; /* to: not included */
    bool waste; /* what boards did for their jobs, in place of the usual report */
    /* Show only uid's jobs.  Boards' totals include all users. */
    bool one_user;
    uid_t uid;
    /* Filters: show only jobs of this user (a name or a uid), this job, jobs with this
     * value of a label.  Boards' totals include all jobs.
     */
    char of_user[64];
    uint64_t of_job;
    char of_label[64], of_value[LEDGER_TEXT];
    struct ledger_coarse domains; /* resolution of RAPL domains */
    /* If configured: grams of CO2 equivalent and money a kWh. */
    bool has_carbon, has_price;
    double gco2e_kwh, price_kwh;
    char currency[CURRENCY];
    /* Figures beside what is booked; NULL: none.  Borrowed, for the time
     * of ledger_report() or ledger_queue_report().
     */
    const struct accounting *accounting;
};

/* The default query: by job, everything up to now. */
void ledger_query_init(struct ledger_query *q, int64_t now_utc_ns);
/* Sets one parameter from a URL or a command line: "by" (a word of REPORT_KEYS,
 * label:KEY, or two of them with a comma between them), "user", "job", "label"
 * (KEY=VALUE), "zone" (utc, local, or the name of a zone that this machine has), "from",
 * "to".  Times: 2026-11-21, 2026-11-21T14:30, 2026-11-21T14:30:00Z or with +01:00,
 * "today", "yesterday", "7d" (days ago).  A date, or a time without a zone, is in the
 * query's zone: set "zone" first.  A date as "to" includes that day.  -EINVAL, -ERANGE
 * (text names key and value), -ENOENT (no such key): nothing changes.
 */
int ledger_query_set(struct ledger_query *q, const char *key, const char *value,
                     int64_t now_utc_ns, uw_error *err);
/* Seconds of the query's wall clock, as if it were UTC, at utc_s.  zone: of q->zone, NULL
 * where that is "".
 */
int64_t ledger_query_wall_s(const struct ledger_query *q, const struct zone *zone,
                            int64_t utc_s);
/* Checks a query before its use: from < to, and so on. */
int ledger_query_check(const struct ledger_query *q, uw_error *err);

/* Writes the report as JSON (underwatt-report(1) names the keys), the root object of
 * `o`.  The ledger may be read_only.  On -errno `o` is incomplete.
 */
int ledger_report(struct ledger *l, const struct ledger_query *q, struct json_out *o,
                  uw_error *err);

#endif
