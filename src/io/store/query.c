/* The parameters of a report, from a URL or a command line. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/moment.h"
#include "base/names.h"
#include "base/nearest.h"
#include "base/units.h"
#include "io/ledger-report.h"

#define NS_S INT64_C(1000000000)
#define DAY_S INT64_C(86400)

void ledger_query_init(struct ledger_query *q, int64_t now_utc_ns)
{
    *q = (struct ledger_query){.n_keys = 1, .to_utc_ns = now_utc_ns};
}

/* ---- times ---- */

int64_t ledger_query_wall_s(const struct ledger_query *q, const struct zone *zone,
                            int64_t utc_s)
{
    time_t at = (time_t)utc_s;
    struct zone_now now;
    struct tm tm;

    if (zone) {
        zone_at(zone, utc_s, &now);
        return utc_s + now.offset_s;
    }
    return q->local && localtime_r(&at, &tm) ? utc_s + tm.tm_gmtoff : utc_s;
}

/* When the query's wall clock shows wall_s. */
static int64_t utc_of(const struct ledger_query *q, const struct zone *zone,
                      int64_t wall_s)
{
    time_t at = (time_t)wall_s;
    struct tm tm;

    if (zone)
        return zone_utc_s(zone, wall_s);
    if (!q->local || !gmtime_r(&at, &tm))
        return wall_s;
    tm.tm_isdst = -1;
    return (int64_t)mktime(&tm);
}

/* The beginning of the day of now_s, or of one `days` behind it. */
static int64_t day_s(const struct ledger_query *q, const struct zone *zone, int64_t now_s,
                     int64_t days)
{
    int64_t wall_s = ledger_query_wall_s(q, zone, now_s);

    return utc_of(q, zone, (wall_s / DAY_S + days) * DAY_S);
}

/* "7d": this many days back. */
static bool read_back(const char *text, int64_t *ret)
{
    char number[8];
    size_t n = strlen(text);
    uint64_t v = 0;

    if (n < 2 || n > sizeof number || text[n - 1] != 'd' ||
        !isdigit((unsigned char)*text))
        return false;
    memcpy(number, text, n - 1);
    number[n - 1] = '\0';
    if (parse_u64(number, &v, NULL) < 0 || v > 36500)
        return false;
    *ret = (int64_t)v;
    return true;
}

static int read_time(const struct ledger_query *q, const char *key, const char *text,
                     int64_t now_ns, int64_t *ret_ns, uw_error *err)
{
    auto_(zone_free) struct zone *zone = NULL;
    struct moment m = {0};
    int64_t s = 0, back = 0, now_s = now_ns / NS_S;
    bool to = strcmp(key, "to") == 0, day = true;

    int r = q->zone[0] ? zone_read(q->zone, &zone, err) : 0;
    if (r < 0)
        return fail_in(err, r, "zone");
    if (strcmp(text, "today") == 0) {
        s = day_s(q, zone, now_s, 0);
    } else if (strcmp(text, "yesterday") == 0) {
        s = day_s(q, zone, now_s, -1);
    } else if (strcmp(text, "now") == 0) {
        s = now_s;
        day = false;
    } else if (read_back(text, &back)) {
        s = now_s - back * DAY_S;
        day = false;
    } else if (moment_read(text, &m)) {
        s = m.has_zone ? moment_utc_s(&m) : utc_of(q, zone, moment_utc_s(&m));
        day = m.date_only;
    } else {
        return fail(err, -EINVAL,
                    "%s: '%.40s' is not a time: 2026-11-21, 2026-11-21T14:30, "
                    "2026-11-21T14:30:00Z, today, yesterday or 7d",
                    key, text);
    }
    if (to && day) /* the day is included: up to the beginning of the next */
        s = day_s(q, zone, s, 1);
    if (s < 0 || s > INT64_MAX / NS_S - 2 * DAY_S)
        return fail(err, -ERANGE, "%s: '%.40s' is outside 1970 to 2200", key, text);
    *ret_ns = s * NS_S;
    return 0;
}

/* ---- ---- */

static bool good_label(const char *key)
{
    size_t n = strlen(key);

    if (n == 0 || n >= sizeof((struct ledger_key *)0)->label)
        return false;
    for (; *key; key++)
        if (!isalnum((unsigned char)*key) && !strchr("_-./", *key))
            return false;
    return true;
}

static int read_key(const char *value, struct ledger_key *ret, uw_error *err)
{
    int by = names_number(NAMES_REPORT_BY, value);
    struct nearest near = {0};
    char hint[NEAREST_TEXT];

    if (by >= 0 && by != LEDGER_BY_LABEL) {
        *ret = (struct ledger_key){.by = (enum ledger_by)by};
        return 0;
    }
    if (strncmp(value, "label:", 6) == 0 && good_label(value + 6)) {
        *ret = (struct ledger_key){.by = LEDGER_BY_LABEL};
        (void)snprintf(ret->label, sizeof ret->label, "%.63s", value + 6);
        return 0;
    }
    for (size_t i = 0; i < names_lists[NAMES_REPORT_BY].n; i++)
        if (i != LEDGER_BY_LABEL) /* it needs a KEY */
            nearest_try(&near, value, strlen(value),
                        names_word(NAMES_REPORT_BY, (unsigned)i));
    return fail(
        err, -EINVAL,
        "by: '%.30s' is none of: job, user, group, project, class, partition, "
        "account, qos, array, gpu, cpu, day, label:KEY (up to 63 letters, digits, "
        "_-./)%s",
        value, nearest_text(&near, hint));
}

static bool stands_alone(const struct ledger_key *k)
{
    return k->by == LEDGER_BY_BOARD || k->by == LEDGER_BY_DOMAIN;
}

/* "user", "label:team", "user,day" */
static int set_by(struct ledger_query *q, const char *value, uw_error *err)
{
    struct ledger_key key[LEDGER_KEYS] = {{.label = ""}};
    char words[160];
    const char *comma = strchr(value, ',');
    size_t n = comma ? 2 : 1;

    (void)snprintf(words, sizeof words, "%.*s", comma ? (int)(comma - value) : 159,
                   value);
    if (comma && strchr(comma + 1, ','))
        return fail(err, -EINVAL, "by: '%.40s' has more than two keys", value);
    int r = read_key(words, &key[0], err);
    if (r == 0 && comma)
        r = read_key(comma + 1, &key[1], err);
    if (r < 0)
        return r;
    if (comma && (stands_alone(&key[0]) || stands_alone(&key[1])))
        return fail(err, -EINVAL, "by: '%.40s': gpu and cpu are not combined", value);
    if (comma && key[0].by == key[1].by)
        return fail(err, -EINVAL, "by: '%.40s' has two keys of one kind", value);
    memcpy(q->key, key, sizeof q->key);
    q->n_keys = n;
    return 0;
}

/* ---- filters ---- */

static int set_user(struct ledger_query *q, const char *value, uw_error *err)
{
    size_t n = strlen(value);

    if (n == 0 || n >= sizeof q->of_user)
        return fail(err, -EINVAL, "user: '%.40s' has %zu bytes, 1 to %zu are allowed",
                    value, n, sizeof q->of_user - 1);
    memcpy(q->of_user, value, n + 1);
    return 0;
}

static int set_job(struct ledger_query *q, const char *value, uw_error *err)
{
    uint64_t v = 0;

    int r = parse_u64(value, &v, err);
    if (r < 0)
        return fail_in(err, r, "job");
    if (v == 0 || v > INT64_MAX)
        return fail(err, -ERANGE, "job: '%.40s' is outside 1..2^63-1", value);
    q->of_job = v;
    return 0;
}

/* "team=vision" */
static int set_label(struct ledger_query *q, const char *value, uw_error *err)
{
    char key[sizeof q->of_label] = "";
    const char *is = strchr(value, '=');
    size_t n = is ? (size_t)(is - value) : 0, left = is ? strlen(is + 1) : 0;

    if (n < sizeof key)
        memcpy(key, value, n);
    if (!good_label(key))
        return fail(err, -EINVAL,
                    "label: '%.40s' is not KEY=VALUE (KEY: letters, digits, _-./, 63 at "
                    "most)",
                    value);
    if (left == 0 || left >= sizeof q->of_value)
        return fail(err, -EINVAL,
                    "label: the value of '%.40s' has %zu bytes, 1 to %zu are allowed",
                    key, left, sizeof q->of_value - 1);
    memcpy(q->of_label, key, sizeof key);
    memcpy(q->of_value, is + 1, left + 1);
    return 0;
}

static int set_zone(struct ledger_query *q, const char *value, uw_error *err)
{
    bool local = strcmp(value, "local") == 0;
    bool named = !local && strcmp(value, "utc") != 0;
    auto_(zone_free) struct zone *zone = NULL;

    int r = named ? zone_read(value, &zone, err) : 0;
    if (r == -ENOENT || r == -EINVAL)
        return fail(err, -EINVAL,
                    "zone: '%.40s' is none of: utc, local and the zones of " ZONE_FOLDER,
                    value);
    if (r < 0)
        return fail_in(err, r, "zone");
    q->local = local;
    (void)snprintf(q->zone, sizeof q->zone, "%s", named ? value : "");
    return 0;
}

static int set_waste(struct ledger_query *q, const char *value, uw_error *err)
{
    if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
        return fail(err, -EINVAL, "waste: '%.40s' is neither true nor false", value);
    q->waste = value[0] == 't';
    return 0;
}

static int set_carbon(struct ledger_query *q, const char *value, uw_error *err)
{
    double v = 0;

    int r = parse_double(value, &v, err);
    if (r < 0)
        return fail_in(err, r, "gco2e_kwh");
    if (!(v >= 0 && v <= 10000))
        return fail(err, -ERANGE, "gco2e_kwh: '%.40s' is outside 0..10000", value);
    q->has_carbon = true;
    q->gco2e_kwh = v;
    return 0;
}

/* "0.30 EUR" */
static int set_price(struct ledger_query *q, const char *value, uw_error *err)
{
    char currency[CURRENCY];
    double v = 0;

    int r = parse_price(value, &v, currency, err);
    if (r < 0)
        return fail_in(err, r, "price_kwh");
    if (!currency[0])
        return fail(err, -EINVAL, "price_kwh: '%.40s' has no currency: '0.30 EUR'",
                    value);
    if (!(v >= 0 && v <= 1e6))
        return fail(err, -ERANGE, "price_kwh: '%.40s' is outside 0..1000000", value);
    q->has_price = true;
    q->price_kwh = v;
    memcpy(q->currency, currency, sizeof q->currency);
    return 0;
}

int ledger_query_set(struct ledger_query *q, const char *key, const char *value,
                     int64_t now_utc_ns, uw_error *err)
{
    static const struct {
        const char *key;
        int (*set)(struct ledger_query *q, const char *value, uw_error *err);
    } keys[] = {{"by", set_by},
                {"user", set_user},
                {"job", set_job},
                {"label", set_label},
                {"from", NULL}, /* from and to: read_time() */
                {"to", NULL},
                {"zone", set_zone},
                {"gco2e_kwh", set_carbon},
                {"price_kwh", set_price},
                {"waste", set_waste}};
    const char *known[n_elements(keys) + 1] = {NULL};
    char none[NEAREST_NONE];

    for (size_t i = 0; i < n_elements(keys); i++) {
        known[i] = keys[i].key;
        if (strcmp(key, keys[i].key) != 0)
            continue;
        if (keys[i].set)
            return keys[i].set(q, value, err);
        return read_time(q, key, value, now_utc_ns,
                         strcmp(key, "to") == 0 ? &q->to_utc_ns : &q->from_utc_ns, err);
    }
    return fail(err, -ENOENT, "%s", nearest_none_of(key, known, none));
}

struct utc {
    char t[32];
};

static struct utc utc_text(int64_t utc_ns)
{
    struct utc u = {"?"};
    struct tm tm;
    time_t s = (time_t)(utc_ns / (int64_t)NS_PER_S);

    if (gmtime_r(&s, &tm))
        (void)strftime(u.t, sizeof u.t, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return u;
}

int ledger_query_check(const struct ledger_query *q, uw_error *err)
{
    if (q->from_utc_ns >= q->to_utc_ns)
        return fail(err, -EINVAL, "from (%s) is not before to (%s)",
                    utc_text(q->from_utc_ns).t, utc_text(q->to_utc_ns).t);
    if (stands_alone(&q->key[0]) && (q->of_user[0] || q->of_job || q->of_label[0]))
        return fail(err, -EINVAL,
                    "by %s has no jobs: it goes with none of user, job and label",
                    names_word(NAMES_REPORT_BY, q->key[0].by));
    return 0;
}
