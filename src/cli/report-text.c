#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "cli/figures.h"
#include "cli/report.h"
#include "cli/take.h"
#include "cli/view.h"

enum { SHOWN = 1000 };

/* Text in a field of so many columns, whatever its bytes. */
static void put(FILE *to, const char *text, int width, bool right)
{
    int pad = width - (int)text_columns(text);

    if (right)
        (void)fprintf(to, "%*s%s", pad > 0 ? pad : 0, "", text);
    else
        (void)fprintf(to, "%s%*s", text, pad > 0 ? pad : 0, "");
}

static void put_parts(const struct json_value *report, struct report_unit unit, FILE *to)
{
    const struct json_value *rows = json_get(report, "rows");
    static const char *const keys[] = {"attributed_j", "idle_j", "unattributed_j",
                                       "energy_j", "meter_j"};

    (void)fprintf(to, "%-22s %10s %10s %12s %10s %10s\n", report_by(report), "to jobs",
                  "idle", "unattributed", "sum", "meter");
    for (size_t i = 0; i < json_count(rows) && i < SHOWN; i++) {
        const struct json_value *row = json_at(rows, i);
        char name[24], text[REPORT_TEXT];
        report_name(report, row, name, 23);
        put(to, name, 22, false);
        for (size_t k = 0; k < n_elements(keys); k++) {
            (void)fputc(' ', to);
            put(to, report_energy(take_number(row, keys[k]), unit, text),
                k == 2 ? 12 : 10, true);
        }
        (void)fputc('\n', to);
    }
}

static void put_hours(const struct json_value *row, FILE *to)
{
    double h = take_number(row, "gpu_s") / 3600, w = take_number(row, "mean_w");

    (void)fprintf(to, " %9.*f", h >= 100 ? 0 : 2, h);
    if (isnan(w))
        (void)fprintf(to, " %8s", "-");
    else
        (void)fprintf(to, " %8.1f", w);
}

/* Jobs and groups of them. */
static void put_users(const struct json_value *report, struct report_unit unit, FILE *to)
{
    const struct json_value *rows = json_get(report, "rows");
    bool job = strcmp(take_text(report, "by"), "job") == 0;
    char text[REPORT_TEXT], name[101], saved[32];

    (void)snprintf(saved, sizeof saved, "saved%s%s", job ? "" : " ",
                   job ? "" : unit.name);
    (void)fprintf(to, "%-20s %-12s %9s %8s %11s %15s\n", job ? "job" : "",
                  job ? "user" : "jobs", "GPU hours", "mean W", unit.name, saved);
    for (size_t i = 0; i < json_count(rows) && i < SHOWN; i++) {
        const struct json_value *row = json_at(rows, i);
        char who[33];
        report_name(report, row, name, 21);
        put(to, name, 20, false);
        (void)fputc(' ', to);
        if (job)
            view_label(take_text(row, "user"), who, 13);
        else
            (void)snprintf(who, sizeof who, "%llu",
                           (unsigned long long)take_u64(row, "jobs"));
        put(to, who, 12, false);
        put_hours(row, to);
        (void)fputc(' ', to);
        put(to, report_energy(take_number(row, "energy_j"), unit, text), 11, true);
        (void)fputc(' ', to);
        if (job) {
            put(to, report_saved(row, text), 15, true);
        } else {
            put(to, report_energy(take_number(row, "saved_j"), unit, text), 15, true);
        }
        (void)fputc('\n', to);
    }
}

static void put_share(const char *name, double j, double of, struct report_unit unit,
                      FILE *to)
{
    char text[REPORT_TEXT];

    (void)fprintf(to, "  %-14s", name);
    put(to, report_energy(j, unit, text), 12, true);
    if (of > 0 && !isnan(j))
        (void)fprintf(to, " %s  %5.1f %%\n", unit.name, 100 * j / of);
    else
        (void)fprintf(to, " %s\n", unit.name);
}

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

static void put_totals(const struct json_value *report, FILE *to)
{
    const struct json_value *t = json_get(report, "totals");
    double all = take_number(t, "energy_j");
    struct report_unit unit = report_unit_of(all);
    char text[200];

    (void)fputc('\n', to);
    put_share("to jobs", take_number(t, "attributed_j"), all, unit, to);
    put_share("idle", take_number(t, "idle_j"), all, unit, to);
    put_share("unattributed", take_number(t, "unattributed_j"), all, unit, to);
    put_share("sum", all, 0, unit, to);
    put_share("meters", take_number(t, "meter_j"), 0, unit, to);
    put_costs(report, to);
    report_sum(t, text, sizeof text);
    (void)fprintf(to, "%s\n", text);
}

/* Beside the boards, in no sum of theirs. */
static void put_cpu(const struct json_value *report, FILE *to)
{
    const struct json_value *cpu = report_cpu(report);
    double all = take_number(cpu, "energy_j");
    struct report_unit unit = report_unit_of(all);
    char text[200];

    if (!cpu)
        return;
    (void)fprintf(to, "\nProcessors and their memory, beside the GPUs:\n");
    put_share("to jobs", take_number(cpu, "attributed_j"), all, unit, to);
    put_share("idle", take_number(cpu, "idle_j"), all, unit, to);
    put_share("unattributed", take_number(cpu, "unattributed_j"), all, unit, to);
    put_share("sum", all, 0, unit, to);
    report_sum(cpu, text, sizeof text);
    (void)fprintf(to, "%s\n", text);
}

int report_text(const struct json_value *report, FILE *to, uw_error *err)
{
    struct report_unit unit = report_unit(report);
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
        (void)fprintf(to, "No energy is booked there.\n");
    else if (report_has_parts(report))
        put_parts(report, unit, to);
    else
        put_users(report, unit, to);
    if (n > SHOWN)
        (void)fprintf(to, "… and %zu more: --format csv has them\n", n - SHOWN);
    put_totals(report, to);
    put_cpu(report, to);
    return ferror(to) ? fail(err, -EIO, "cannot write the report") : 0;
}

/* ---- CSV ---- */

/* RFC 4180.  A spreadsheet takes a field with one of these in front for a formula; fields
 * also begin where its own separator is another.
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

struct column {
    const char *key;
    bool text;
};

static const struct column *columns_of(const char *by, size_t *ret_n)
{
    static const struct column job[] = {
        {"job", false},           {"name", true},           {"user", true},
        {"uid", false},           {"source", true},         {"began", true},
        {"ended", true},          {"energy_j", false},      {"half_j", false},
        {"gpu_s", false},         {"mean_w", false},        {"goal", true},
        {"cap_mw", false},        {"saved_j", false},       {"saved_half_j", false},
        {"saved", false},         {"saved_half", false},    {"slowdown", false},
        {"slowdown_half", false}, {"cpu_j", false},         {"looks", false},
        {"model_saved", false},   {"model_slowdown", false}};
    static const struct column user[] = {
        {"user", true},          {"uid", false},   {"jobs", false},   {"energy_j", false},
        {"half_j", false},       {"gpu_s", false}, {"mean_w", false}, {"saved_j", false},
        {"saved_half_j", false}, {"cpu_j", false}};
    static const struct column label[] = {
        {"value", true},    {"jobs", false},         {"energy_j", false},
        {"half_j", false},  {"gpu_s", false},        {"mean_w", false},
        {"saved_j", false}, {"saved_half_j", false}, {"cpu_j", false}};
    static const struct column gpu[] = {{"gpu", false},      {"uuid", true},
                                        {"name", true},      {"attributed_j", false},
                                        {"idle_j", false},   {"unattributed_j", false},
                                        {"energy_j", false}, {"meter_j", false}};
    static const struct column day[] = {{"day", true},       {"attributed_j", false},
                                        {"idle_j", false},   {"unattributed_j", false},
                                        {"energy_j", false}, {"meter_j", false},
                                        {"cpu_j", false}};
    static const struct column cpu[] = {{"domain", true},          {"kind", true},
                                        {"attributed_j", false},   {"idle_j", false},
                                        {"unattributed_j", false}, {"energy_j", false},
                                        {"meter_j", false}};
    static const struct {
        const char *by;
        const struct column *column;
        size_t n;
    } all[] = {{"job", job, n_elements(job)},       {"user", user, n_elements(user)},
               {"label", label, n_elements(label)}, {"gpu", gpu, n_elements(gpu)},
               {"cpu", cpu, n_elements(cpu)},       {"day", day, n_elements(day)}};

    for (size_t i = 0; i < n_elements(all); i++) {
        if (strcmp(by, all[i].by) == 0) {
            *ret_n = all[i].n;
            return all[i].column;
        }
    }
    *ret_n = 0;
    return NULL;
}

static void put_csv_row(const struct json_value *row, const struct column *column,
                        size_t n, bool carbon, bool price, FILE *to)
{
    for (size_t k = 0; k < n; k++) {
        double v = take_number(row, column[k].key);
        if (k > 0)
            (void)fputc(',', to);
        if (column[k].text)
            put_quoted(to, take_text(row, column[k].key));
        else if (!isnan(v))
            (void)fprintf(to, "%.12g", v);
    }
    if (carbon)
        (void)fprintf(to, ",%.6g", take_number(row, "gco2e"));
    if (price)
        (void)fprintf(to, ",%.6g", take_number(row, "cost"));
}

int report_csv(const struct json_value *report, FILE *to, uw_error *err)
{
    const struct json_value *rows = json_get(report, "rows");
    bool carbon = json_get(report, "gco2e_kwh"), price = json_get(report, "price_kwh");
    size_t n = 0;
    const struct column *column = columns_of(take_text(report, "by"), &n);

    for (size_t k = 0; k < n; k++)
        (void)fprintf(to, "%s%s", k ? "," : "", column[k].key);
    (void)fprintf(to, "%s%s,simulated\n", carbon ? ",gco2e" : "", price ? ",cost" : "");
    for (size_t i = 0; i < json_count(rows); i++) {
        put_csv_row(json_at(rows, i), column, n, carbon, price, to);
        (void)fprintf(to, ",%d\n", take_bool(report, "simulated"));
    }
    return ferror(to) ? fail(err, -EIO, "cannot write the CSV") : 0;
}
