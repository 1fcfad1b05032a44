/* A report as CSV. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "cli/report.h"
#include "cli/take.h"

/* RFC 4180.  Spreadsheets read a field that begins with one of FORMULA as a formula, and
 * may use another separator.
 */
#define FORMULA "=+-@\t\r\n"
#define APART ",;\t\"\r\n"

static void put_quoted(FILE *to, const char *text)
{
    bool formula = text[0] && strchr(FORMULA, text[0]);
    bool plain = strcspn(text, APART) == strlen(text) && !formula;

    if (plain) {
        (void)fputs(text, to);
        return;
    }
    (void)fputc('"', to);
    if (formula)
        (void)fputc('\'', to);
    for (; *text; text++) {
        if (*text == '"')
            (void)fputc('"', to);
        (void)fputc(*text, to);
    }
    (void)fputc('"', to);
}

/* The keys and columns of the rows of a report. */
static const struct {
    const char *by, *keys;
} rows_of[] = {
    {"job", "job,name,user,uid,source,began,ended,energy_j,half_j,gpu_s,mean_w,goal,"
            "cap_mw,saved_j,saved_half_j,saved,saved_half,slowdown,slowdown_half,"
            "cpu_j,looks,model_saved,model_slowdown"},
    {"gpu", "gpu,uuid,name,attributed_j,idle_j,unattributed_j,energy_j,meter_j"},
    {"cpu", "domain,kind,attributed_j,idle_j,unattributed_j,energy_j,meter_j"},
    {"day", "day,attributed_j,idle_j,unattributed_j,energy_j,meter_j,cpu_j,"
            "saved_j,saved_half_j"}};

/* The columns that identify a row. */
static const struct {
    const char *by, *keys;
} names_of[] = {{"user", "user,uid"}, {"label", "value"}, {"job", "job,name"}};

static const char *name_keys(const char *by)
{
    for (size_t i = 0; i < n_elements(names_of); i++)
        if (strcmp(by, names_of[i].by) == 0)
            return names_of[i].keys;
    return by;
}

/* The columns of all rows, "user,uid,jobs,…". */
static void keys_of(const struct json_value *report, char *ret, size_t size)
{
    const char *by = take_text(report, "by"), *comma = strchr(by, ',');
    char first[32];

    for (size_t i = 0; i < n_elements(rows_of); i++)
        if (strcmp(by, rows_of[i].by) == 0 && (i == 0 || report_has_parts(report))) {
            (void)snprintf(ret, size, "%s", rows_of[i].keys);
            return;
        }
    (void)snprintf(first, sizeof first, "%.*s", comma ? (int)(comma - by) % 32 : 31, by);
    (void)snprintf(ret, size,
                   "%.31s%s%.31s,jobs,energy_j,half_j,gpu_s,mean_w,saved_j,saved_half_j,"
                   "cpu_j",
                   name_keys(first), comma ? "," : "", comma ? name_keys(comma + 1) : "");
}

#define CHARGES "co2_g,co2_covered,marginal_g,marginal_covered,money,money_covered"
#define REVISED ",co2_revised_g,marginal_revised_g,money_revised"

void report_csv_row(const struct json_value *row, const char *keys, FILE *to)
{
    char key[32];

    for (const char *at = keys; *at;) {
        size_t len = strcspn(at, ",");
        (void)snprintf(key, sizeof key, "%.*s", (int)len, at);
        double v = take_number(row, key);
        if (!isnan(v))
            (void)fprintf(to, "%.12g", v);
        else
            put_quoted(to, take_text(row, key));
        at += len;
        if (*at)
            (void)fputc(*at++, to);
    }
}

#define SAVED                                                               \
    ",saved_co2_g,saved_co2_half_g,saved_marginal_g,saved_marginal_half_g," \
    "saved_money,saved_money_half"

/* Jobs without a row are in the last one: its first field is "(others)". */
static void put_rest(const struct json_value *report, const char *keys, FILE *to)
{
    const struct json_value *rest = json_get(report, "rest");
    size_t first = strcspn(keys, ",");

    if (!(take_number(rest, "jobs") > 0))
        return;
    (void)fputs("(others)", to);
    report_csv_row(rest, keys + first, to);
}

/* The additional figures, if the report has them. */
static void add_beside(const struct json_value *report, char *keys, size_t size)
{
    static const struct {
        const char *has, *keys;
    } beside[] = {{"facility_j", ",facility_j,facility_co2_g"},
                  {"market_covered", ",market_g,market_covered"},
                  {"embodied_covered", ",embodied_g,embodied_covered"}};

    for (size_t i = 0; i < n_elements(beside); i++) {
        size_t n = strlen(keys);
        if (report_has_beside(report, beside[i].has))
            (void)snprintf(keys + n, size - n, "%s", beside[i].keys);
    }
}

int report_csv(const struct json_value *report, FILE *to, uw_error *err)
{
    const struct json_value *rows = json_get(report, "rows");
    bool carbon = json_get(report, "gco2e_kwh"), price = json_get(report, "price_kwh");
    bool rest = take_number(json_get(report, "rest"), "jobs") > 0;
    char names[300], keys[900];
    bool saved = !report_has_parts(report) || strcmp(take_text(report, "by"), "day") == 0;
    size_t n = json_count(rows);

    keys_of(report, names, sizeof names);
    (void)snprintf(keys, sizeof keys, "%s%s%s," CHARGES "%s" REVISED, names,
                   carbon ? ",gco2e" : "", price ? ",cost" : "", saved ? SAVED : "");
    add_beside(report, keys, sizeof keys);
    (void)fprintf(to, "%s,money_currency,simulated\n", keys);
    for (size_t i = 0; i < n + rest; i++) {
        if (i < n)
            report_csv_row(json_at(rows, i), keys, to);
        else
            put_rest(report, keys, to);
        (void)fputc(',', to);
        put_quoted(to, take_text(report, "money_currency"));
        (void)fprintf(to, ",%d\n", take_bool(report, "simulated"));
    }
    return ferror(to) ? fail(err, -EIO, "cannot write the CSV") : 0;
}
