#include "cli/report.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "cli/take.h"
#include "cli/view.h"

#define J_PER_KWH 3.6e6

int report_check(const struct json_value *report, uw_error *err)
{
    static const char *const arrays[] = {"rows", "gpus", "days", "caps"};

    for (size_t i = 0; i < n_elements(arrays); i++)
        if (!json_get(report, arrays[i]))
            return fail(err, -EINVAL, "the answer is not a report: it has no '%s'",
                        arrays[i]);
    if (!json_get(report, "totals") || !*take_text(report, "by"))
        return fail(err, -EINVAL, "the answer is not a report: it has no totals");
    return 0;
}

struct report_unit report_unit_of(double j)
{
    if (j >= J_PER_KWH)
        return (struct report_unit){1 / J_PER_KWH, "kWh"};
    if (j >= 3600)
        return (struct report_unit){1 / 3600.0, "Wh"};
    return (struct report_unit){1, "J"};
}

struct report_unit report_unit(const struct json_value *report)
{
    bool cpu = strcmp(take_text(report, "by"), "cpu") == 0;

    return report_unit_of(
        take_number(json_get(report, cpu ? "cpu" : "totals"), "energy_j"));
}

const struct json_value *report_cpu(const struct json_value *report)
{
    const struct json_value *cpu = json_get(report, "cpu");

    return take_number(cpu, "meter_j") > 0 ? cpu : NULL;
}

bool report_has_charge(const struct json_value *report, const char *covered)
{
    bool cpu = strcmp(take_text(report, "by"), "cpu") == 0;

    return take_number(json_get(report, cpu ? "cpu" : "totals"), covered) > 0;
}

const char *report_by(const struct json_value *report)
{
    const char *by = take_text(report, "by");

    return strcmp(by, "gpu") == 0 ? "GPU" : strcmp(by, "cpu") == 0 ? "processor" : by;
}

const char *report_energy(double j, struct report_unit unit, char ret[REPORT_TEXT])
{
    double v = j * unit.scale;

    if (isnan(j))
        (void)snprintf(ret, REPORT_TEXT, "-");
    else
        (void)snprintf(ret, REPORT_TEXT, "%.*f", view_digits(fabs(v)), v);
    return ret;
}

const char *report_saved(const struct json_value *row, char ret[REPORT_TEXT])
{
    double saved = take_number(row, "saved"), half = take_number(row, "saved_half");

    if (isnan(saved) || isnan(half))
        (void)snprintf(ret, REPORT_TEXT, "-");
    else
        (void)snprintf(ret, REPORT_TEXT, "%.1f \u00b1 %.1f %%", saved * 100, half * 100);
    return ret;
}

const struct report_line report_lines[REPORT_LINES] = {
    {"attributed_j", "to jobs", true},
    {"idle_j", "idle", true},
    {"unattributed_j", "unattributed", true},
    {"energy_j", "sum", false},
    {"meter_j", "meters", false},
};

enum { PARTS = 1, JOBS = 2, GROUPS = 4, ALL = PARTS | JOBS | GROUPS, CHARGES = 8 };

static const struct report_column columns[] = {
    {NULL, "", CELL_NAME, -22, 0, 0, PARTS, NULL},
    {"to jobs", "attributed_j", CELL_ENERGY, 10, 0, 0, PARTS, NULL},
    {"idle", "idle_j", CELL_ENERGY, 10, 0, 0, PARTS, NULL},
    {"unattributed", "unattributed_j", CELL_ENERGY, 12, 0, 0, PARTS, NULL},
    {"sum", "energy_j", CELL_ENERGY, 10, 0, 0, PARTS, NULL},
    {"meter", "meter_j", CELL_ENERGY, 10, 0, 0, PARTS, NULL},
    {NULL, "", CELL_NAME, -20, 0, 0, JOBS | GROUPS, NULL},
    {"user", "user", CELL_TEXT, -12, 0, 0, JOBS, NULL},
    {"jobs", "jobs", CELL_NUMBER, -12, 0, 1, GROUPS, NULL},
    {"GPU hours", "gpu_s", CELL_NUMBER, 9, 2, 1 / 3600.0, JOBS | GROUPS, NULL},
    {"mean W", "mean_w", CELL_NUMBER, 8, 1, 1, JOBS | GROUPS, NULL},
    {"%s", "energy_j", CELL_ENERGY, 11, 0, 0, JOBS | GROUPS, NULL},
    {"\u00b1 %s", "half_j", CELL_ENERGY, 0, 0, 0, JOBS | GROUPS, NULL},
    {"saved, %s", "saved_j", CELL_ENERGY, 0, 0, 0, JOBS, NULL},
    {"saved, %s", "saved_j", CELL_ENERGY, 15, 0, 0, GROUPS, NULL},
    {"saved, measured", "saved", CELL_SAVED, 15, 0, 0, JOBS, NULL},
    {"the model says", "model_saved", CELL_PERCENT, 0, 0, 0, JOBS, NULL},
    {"processors, %s", "cpu_j", CELL_ENERGY, 0, 0, 0, JOBS | GROUPS, "cpu"},
    {"g CO2e", "co2_g", CELL_AMOUNT, 9, 0, 0, ALL | CHARGES, "co2_covered"},
    {"covered", "co2_covered", CELL_COVERED, 7, 0, 0, ALL | CHARGES, "co2_covered"},
    {"marg. g", "marginal_g", CELL_AMOUNT, 8, 0, 0, ALL | CHARGES, "marginal_covered"},
    {"covered", "marginal_covered", CELL_COVERED, 7, 0, 0, ALL | CHARGES,
     "marginal_covered"},
    {"money", "money", CELL_AMOUNT, 8, 0, 0, ALL | CHARGES, "money_covered"},
    {"covered", "money_covered", CELL_COVERED, 7, 0, 0, ALL | CHARGES, "money_covered"},
    {"saved g", "saved_co2_g", CELL_AMOUNT, 7, 0, 0, JOBS | GROUPS | CHARGES,
     "co2_covered"},
    {"g CO2e", "gco2e", CELL_NUMBER, 0, 1, 1, PARTS | JOBS | GROUPS, "gco2e_kwh"},
    {"", "cost", CELL_NUMBER, 0, 2, 1, PARTS | JOBS | GROUPS, "price_kwh"},
};

bool report_is_charge(const struct report_column *column)
{
    return column->rows & CHARGES;
}

const struct report_column *report_column(const struct json_value *report,
                                          const struct report_column *before)
{
    unsigned rows = report_has_parts(report)                      ? PARTS
                    : strcmp(take_text(report, "by"), "job") == 0 ? JOBS
                                                                  : GROUPS;

    for (size_t i = before ? (size_t)(before - columns) + 1 : 0; i < n_elements(columns);
         i++) {
        const char *needs = columns[i].needs;
        bool there =
            !needs || (strcmp(needs, "cpu") == 0       ? report_cpu(report) != NULL
                       : report_is_charge(&columns[i]) ? report_has_charge(report, needs)
                                                       : json_get(report, needs) != NULL);
        if (columns[i].rows & rows && there)
            return &columns[i];
    }
    return NULL;
}

void report_head(const struct json_value *report, const struct report_column *column,
                 char ret[REPORT_TEXT])
{
    bool label = strcmp(take_text(report, "by"), "label") == 0;
    const char *unit = column->head ? strstr(column->head, "%s") : NULL;

    if (!column->head)
        view_label(label ? take_text(report, "label") : report_by(report), ret,
                   REPORT_TEXT);
    else if (unit)
        (void)snprintf(ret, REPORT_TEXT, "%.*s%s", (int)(unit - column->head),
                       column->head, report_unit(report).name);
    else
        (void)snprintf(ret, REPORT_TEXT, "%.60s",
                       !*column->head ? take_text(report, "currency")
                       : strcmp(column->head, "money") == 0
                           ? take_text(report, "money_currency")
                           : column->head);
}

void report_cell(const struct json_value *report, const struct json_value *row,
                 const struct report_column *column, char ret[REPORT_TEXT])
{
    double v = take_number(row, column->key);

    if (column->kind == CELL_NAME)
        report_name(report, row, ret, REPORT_TEXT);
    else if (column->kind == CELL_TEXT)
        view_label(take_text(row, column->key), ret, REPORT_TEXT);
    else if (column->kind == CELL_SAVED)
        (void)report_saved(row, ret);
    else if (isnan(v))
        (void)snprintf(ret, REPORT_TEXT, "-");
    else if (column->kind == CELL_ENERGY)
        (void)report_energy(v, report_unit(report), ret);
    else if (column->kind == CELL_AMOUNT)
        (void)snprintf(ret, REPORT_TEXT, "%.*f", view_digits(fabs(v)), v);
    else if (column->kind == CELL_COVERED)
        (void)snprintf(ret, REPORT_TEXT, "%.1f %%", floor(1e3 * v + 1e-9) / 10);
    else if (column->kind == CELL_PERCENT)
        (void)snprintf(ret, REPORT_TEXT, "%.1f %%", 100 * v);
    else
        (void)snprintf(ret, REPORT_TEXT, "%.*f", column->digits, v * column->scale);
}

bool report_has_parts(const struct json_value *report)
{
    const char *by = take_text(report, "by");

    return strcmp(by, "gpu") == 0 || strcmp(by, "cpu") == 0 || strcmp(by, "day") == 0;
}

void report_name(const struct json_value *report, const struct json_value *row, char *ret,
                 size_t size)
{
    const char *by = take_text(report, "by");
    char raw[300];

    if (strcmp(by, "job") == 0)
        (void)snprintf(raw, sizeof raw, "%llu %.200s",
                       (unsigned long long)take_u64(row, "job"), take_text(row, "name"));
    else if (strcmp(by, "gpu") == 0)
        (void)snprintf(raw, sizeof raw, "%llu %.200s",
                       (unsigned long long)take_u64(row, "gpu"), take_text(row, "uuid"));
    else if (strcmp(by, "cpu") == 0)
        (void)snprintf(raw, sizeof raw, "%.200s", take_text(row, "domain"));
    else if (strcmp(by, "day") == 0)
        (void)snprintf(raw, sizeof raw, "%.20s", take_text(row, "day"));
    else if (strcmp(by, "label") == 0)
        (void)snprintf(raw, sizeof raw, "%.200s",
                       *take_text(row, "value") ? take_text(row, "value")
                                                : "(without it)");
    else if (*take_text(row, "user"))
        (void)snprintf(raw, sizeof raw, "%.200s", take_text(row, "user"));
    else
        (void)snprintf(raw, sizeof raw, "uid %llu",
                       (unsigned long long)take_u64(row, "uid"));
    view_label(raw, ret, size);
}

/* "2026-11-21T14:30:00Z" as "2026-11-21 14:30" */
static void put_moment(const char *iso, char ret[24])
{
    if (strncmp(iso, "1970-01-01T00:00", 16) == 0)
        (void)snprintf(ret, 24, "the beginning");
    else
        (void)snprintf(ret, 24, "%.10s %.5s", iso, strlen(iso) > 11 ? iso + 11 : "");
}

void report_title(const struct json_value *report, char *ret, size_t size)
{
    char from[24], to[24], label[100];

    put_moment(take_text(report, "from"), from);
    put_moment(take_text(report, "to"), to);
    view_label(take_text(report, "label"), label, sizeof label);
    (void)snprintf(ret, size, "Energy by %s%s%s, %s to %s UTC", report_by(report),
                   label[0] ? " " : "", label, from, to);
}

void report_sum(const struct json_value *totals, char *ret, size_t size)
{
    double off = take_number(totals, "difference");

    if (isnan(off))
        (void)snprintf(ret, size, "The meters recorded nothing.");
    else
        (void)snprintf(
            ret, size, "The parts differ from the meters by %.4f %%: %s 0.1 %%.",
            100 * fabs(off), take_bool(totals, "holds") ? "within" : "MORE THAN");
}
