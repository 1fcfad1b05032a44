#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/figures.h"
#include "cli/report.h"
#include "cli/take.h"
#include "cli/view.h"

enum { SHOWN = 1000 };

/* Writes text in a field of `width` columns. */
static void put(FILE *to, const char *text, int width, bool right)
{
    int pad = width - (int)text_columns(text);

    if (right)
        (void)fprintf(to, "%*s%s", pad > 0 ? pad : 0, "", text);
    else
        (void)fprintf(to, "%s%*s", text, pad > 0 ? pad : 0, "");
}

/* charges: the table of emissions and money. */
static void put_rows(const struct json_value *report, bool charges, FILE *to)
{
    const struct json_value *rows = json_get(report, "rows");
    char text[REPORT_TEXT], fitted[REPORT_TEXT];

    for (size_t i = 0; i <= json_count(rows) && i <= SHOWN; i++) {
        const struct report_column *c = NULL;
        bool first = true;
        while ((c = report_column(report, c)) != NULL) {
            int width = abs(c->width);
            if (width == 0 || (report_is_charge(c) != charges && c->kind != CELL_NAME))
                continue;
            if (i == 0)
                report_head(report, c, text);
            else
                report_cell(report, json_at(rows, i - 1), c, text);
            view_label(text, fitted, c->width < 0 ? (size_t)width + 1 : sizeof fitted);
            (void)fputs(first ? "" : " ", to);
            first = false;
            put(to, fitted, width, c->width > 0);
        }
        (void)fputc('\n', to);
    }
}

/* "  emissions    123.4 g CO2e, of 87.5 % of the energy" */
static void put_charge(const struct json_value *sums, const char *name, const char *key,
                       const char *covered, const char *unit, FILE *to)
{
    double v = take_number(sums, key), part = take_number(sums, covered);

    if (isnan(v))
        return;
    (void)fprintf(to, "  %-14s%12.*f %s", name, view_digits(fabs(v)), v, unit);
    if (part < 1)
        (void)fprintf(to, ", of %.1f %% of the energy", floor(1e3 * part) / 10);
    (void)fputc('\n', to);
}

static void put_charges(const struct json_value *report, const struct json_value *sums,
                        FILE *to)
{
    char currency[16];

    view_label(take_text(report, "money_currency"), currency, sizeof currency);
    put_charge(sums, "emissions", "co2_g", "co2_covered", "g CO2e", to);
    put_charge(sums, "marginal", "marginal_g", "marginal_covered", "g CO2e", to);
    put_charge(sums, "cost", "money", "money_covered", currency, to);
}

/* By the factors of --gco2e-kwh and --price-kwh. */
static void put_costs(const struct json_value *report, FILE *to)
{
    const struct json_value *t = json_get(report, "totals");
    char currency[16];

    if (json_get(report, "gco2e_kwh"))
        (void)fprintf(to, "  %-14s%12.1f g CO2e at %g g/kWh\n", "emissions",
                      take_number(t, "gco2e"), take_number(report, "gco2e_kwh"));
    view_label(take_text(report, "currency"), currency, sizeof currency);
    if (json_get(report, "price_kwh"))
        (void)fprintf(to, "  %-14s%12.2f %s at %g %s/kWh\n", "cost",
                      take_number(t, "cost"), currency, take_number(report, "price_kwh"),
                      currency);
}

/* Sums of boards, or of processors. */
static void put_sums(const struct json_value *report, const struct json_value *sums,
                     FILE *to)
{
    bool boards = sums == json_get(report, "totals");
    double all = take_number(sums, "energy_j");
    struct report_unit unit = report_unit_of(all);
    char text[200];

    for (size_t i = 0; i < REPORT_LINES; i++) {
        double j = take_number(sums, report_lines[i].key);
        (void)fprintf(to, "  %-14s%12s %s", report_lines[i].name,
                      report_energy(j, unit, text), unit.name);
        if (report_lines[i].share && all > 0 && !isnan(j))
            (void)fprintf(to, "  %5.1f %%", 100 * j / all);
        (void)fputc('\n', to);
    }
    put_charges(report, sums, to);
    if (boards)
        put_costs(report, to);
    report_sum(sums, text, sizeof text);
    (void)fprintf(to, "%s\n", text);
}

int report_text(const struct json_value *report, FILE *to, uw_error *err)
{
    size_t n = json_count(json_get(report, "rows"));
    char title[200];

    report_title(report, title, sizeof title);
    (void)fprintf(to, "%s\n", title);
    if (take_bool(report, "simulated"))
        (void)fprintf(to, "SIMULATED boards: all figures are simulated.\n");
    if (json_get(report, "only_uid") && !isnan(take_number(report, "only_uid")))
        (void)fprintf(to, "Jobs of uid %llu alone; sums are of the whole node.\n",
                      (unsigned long long)take_u64(report, "only_uid"));
    (void)fputc('\n', to);
    if (n == 0)
        (void)fprintf(to, "No energy was recorded.\n");
    else
        put_rows(report, false, to);
    if (n > 0 && (report_has_charge(report, "co2_covered") ||
                  report_has_charge(report, "marginal_covered") ||
                  report_has_charge(report, "money_covered"))) {
        (void)fputc('\n', to);
        put_rows(report, true, to);
    }
    if (n > SHOWN)
        (void)fprintf(to, "… and %zu more: --format csv has them\n", n - SHOWN);
    (void)fputc('\n', to);
    put_sums(report, json_get(report, "totals"), to);
    if (report_cpu(report)) {
        (void)fprintf(to, "\nProcessors and their memory, beside the GPUs:\n");
        put_sums(report, report_cpu(report), to);
    }
    return ferror(to) ? fail(err, -EIO, "cannot write the report") : 0;
}

/* ---- CSV ---- */

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

/* The keys of a row. */
static const char *keys_of(const char *by)
{
    static const struct {
        const char *by, *keys;
    } all[] = {
        {"job", "job,name,user,uid,source,began,ended,energy_j,half_j,gpu_s,mean_w,goal,"
                "cap_mw,saved_j,saved_half_j,saved,saved_half,slowdown,slowdown_half,"
                "cpu_j,looks,model_saved,model_slowdown"},
        {"user", "user,uid,jobs,energy_j,half_j,gpu_s,mean_w,saved_j,saved_half_j,cpu_j"},
        {"label", "value,jobs,energy_j,half_j,gpu_s,mean_w,saved_j,saved_half_j,cpu_j"},
        {"gpu", "gpu,uuid,name,attributed_j,idle_j,unattributed_j,energy_j,meter_j"},
        {"cpu", "domain,kind,attributed_j,idle_j,unattributed_j,energy_j,meter_j"},
        {"day", "day,attributed_j,idle_j,unattributed_j,energy_j,meter_j,cpu_j"}};

    for (size_t i = 0; i < n_elements(all); i++)
        if (strcmp(by, all[i].by) == 0)
            return all[i].keys;
    return "";
}

#define CHARGES "co2_g,co2_covered,marginal_g,marginal_covered,money,money_covered"

static void put_csv_row(const struct json_value *row, const char *keys, FILE *to)
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

int report_csv(const struct json_value *report, FILE *to, uw_error *err)
{
    const struct json_value *rows = json_get(report, "rows");
    bool carbon = json_get(report, "gco2e_kwh"), price = json_get(report, "price_kwh");
    const char *currency = take_text(report, "money_currency");
    char keys[400];

    (void)snprintf(keys, sizeof keys, "%s%s%s," CHARGES "%s",
                   keys_of(take_text(report, "by")), carbon ? ",gco2e" : "",
                   price ? ",cost" : "",
                   report_has_parts(report) ? "" : ",saved_co2_g,saved_co2_half_g");
    (void)fprintf(to, "%s,money_currency,simulated\n", keys);
    for (size_t i = 0; i < json_count(rows); i++) {
        put_csv_row(json_at(rows, i), keys, to);
        (void)fputc(',', to);
        put_quoted(to, currency);
        (void)fprintf(to, ",%d\n", take_bool(report, "simulated"));
    }
    return ferror(to) ? fail(err, -EIO, "cannot write the CSV") : 0;
}
