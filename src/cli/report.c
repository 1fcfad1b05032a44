#include "cli/report.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "cli/figures.h"
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

bool report_has_beside(const struct json_value *report, const char *key)
{
    bool cpu = strcmp(take_text(report, "by"), "cpu") == 0;

    return json_get(json_get(report, cpu ? "cpu" : "totals"), key) != NULL;
}

int report_digits(double v)
{
    double a = fabs(v);

    if (!(a > 0) || a >= 1)
        return view_digits(a);
    return (int)fmin(6, fmax(3, ceil(-log10(a)) + 1));
}

const char *report_amount(double v, int digits, char ret[REPORT_TEXT])
{
    if (fabs(v) * pow(10, digits) < 0.5)
        v = 0;
    (void)snprintf(ret, REPORT_TEXT, "%.*f", digits, v);
    return ret;
}

const char *report_energy(double j, struct report_unit unit, char ret[REPORT_TEXT])
{
    double v = j * unit.scale;

    if (isnan(j))
        (void)snprintf(ret, REPORT_TEXT, "-");
    else
        (void)report_amount(v, view_digits(fabs(v)), ret);
    return ret;
}

const char *report_saved(const struct json_value *row, char ret[REPORT_TEXT])
{
    double saved = take_number(row, "saved"), half = take_number(row, "saved_half");

    (void)snprintf(ret, REPORT_TEXT, "%s", figure_saved(saved * 100, half * 100, "%").t);
    return ret;
}

const struct report_line report_lines[REPORT_LINES] = {
    {"attributed_j", "to jobs", true},
    {"idle_j", "idle", true},
    {"unattributed_j", "unattributed", true},
    {"energy_j", "sum", false},
    {"meter_j", "meters", false},
};

bool report_has_parts(const struct json_value *report)
{
    const char *by = take_text(report, "by");

    return strcmp(by, "gpu") == 0 || strcmp(by, "cpu") == 0 ||
           (strcmp(by, "day") == 0 && !json_get(report, "rest"));
}

bool report_is_pair(const struct json_value *report)
{
    return strchr(take_text(report, "by"), ',') != NULL;
}

/* The first or second key: "user" of "user,day". */
static const char *key_of(const struct json_value *report, bool second, char ret[32])
{
    const char *by = take_text(report, "by"), *comma = strchr(by, ',');

    if (second && comma)
        (void)snprintf(ret, 32, "%.31s", comma + 1);
    else
        (void)snprintf(ret, 32, "%.*s", comma ? (int)(comma - by) % 32 : 31, by);
    return ret;
}

/* A job without the fact by which rows are grouped has "-". */
static void name_of(const struct json_value *row, const char *by, char *ret, size_t size)
{
    const char *word = take_text(row, strcmp(by, "label") == 0 ? "value"
                                      : strcmp(by, "gpu") == 0 ? "uuid"
                                      : strcmp(by, "cpu") == 0 ? "domain"
                                      : strcmp(by, "job") == 0 ? "name"
                                                               : by);
    char raw[300];

    if (strcmp(by, "job") == 0 || strcmp(by, "gpu") == 0)
        (void)snprintf(raw, sizeof raw, "%llu %.200s",
                       (unsigned long long)take_u64(row, by), word);
    else if (*word)
        (void)snprintf(raw, sizeof raw, "%.200s", word);
    else if (strcmp(by, "user") == 0 && json_get(row, "uid"))
        (void)snprintf(raw, sizeof raw, "uid %llu",
                       (unsigned long long)take_u64(row, "uid"));
    else
        (void)snprintf(raw, sizeof raw, "-");
    view_label(raw, ret, size);
}

void report_name(const struct json_value *report, const struct json_value *row, char *ret,
                 size_t size)
{
    char by[32];

    name_of(row, key_of(report, false, by), ret, size);
}

void report_row_name(const struct json_value *report, const struct json_value *row,
                     char *ret, size_t size)
{
    char by[32], first[100], second[100], both[210];

    name_of(row, key_of(report, false, by), first, sizeof first);
    name_of(row, key_of(report, true, by), second, sizeof second);
    bool pair = report_is_pair(report);
    bool date = strcmp(by, "day") == 0 && strlen(second) == 10;
    (void)snprintf(both, sizeof both, "%s%s%s", first, pair ? ", " : "",
                   !pair  ? ""
                   : date ? second + 5
                          : second); /* without the year */
    view_label(both, ret, size);
}

void report_stack_name(const struct json_value *report, const struct json_value *of,
                       char *ret, size_t size)
{
    char by[32];
    bool day = strcmp(key_of(report, false, by), "day") == 0;

    name_of(of, key_of(report, day, by), ret, size);
}

struct report_unit report_saved_unit(const struct json_value *report)
{
    const struct json_value *rows = json_get(report, "rows");
    double most = 0;

    for (size_t i = 0; i < json_count(rows); i++) {
        const struct json_value *row = json_at(rows, i);
        most = fmax(most, fabs(take_number(row, "saved_j"))); /* fmax() ignores NaN */
        most = fmax(most, take_number(row, "saved_half_j"));
    }
    return report_unit_of(most);
}

enum {
    PARTS = 1,
    JOBS = 2,
    GROUPS = 4,
    PAIRS = 8,
    WHO = JOBS | GROUPS | PAIRS,
    ALL = PARTS | WHO,
    CHARGES = 16,
    DAYS = 32,
    BESIDE = 64
};

/* clang-format off */
static const struct report_column columns[] = {
    {.key = "", .kind = CELL_NAME, .width = -22, .rows = PARTS},
    {"to jobs", "attributed_j", CELL_ENERGY, .width = 10, .rows = PARTS},
    {"idle", "idle_j", CELL_ENERGY, .width = 10, .rows = PARTS},
    {"unattributed", "unattributed_j", CELL_ENERGY, .width = 12, .rows = PARTS},
    {"sum", "energy_j", CELL_ENERGY, .width = 10, .rows = PARTS},
    {"meter", "meter_j", CELL_ENERGY, .width = 10, .rows = PARTS},
    {"saved, %s", "saved_j", CELL_WITHIN, .half = "saved_half_j", .rows = DAYS},
    {.key = "", .kind = CELL_NAME, .width = -20, .rows = WHO},
    {.key = "", .kind = CELL_SECOND, .width = -12, .rows = PAIRS},
    {"user", "user", CELL_TEXT, .width = -12, .rows = JOBS},
    {"jobs", "jobs", CELL_NUMBER, .width = 12, .scale = 1, .rows = GROUPS},
    {"jobs", "jobs", CELL_NUMBER, .scale = 1, .rows = PAIRS},
    {"GPU hours", "gpu_s", CELL_NUMBER, .width = 9, .digits = 2, .scale = 1 / 3600.0, .rows = WHO},
    {"mean W", "mean_w", CELL_NUMBER, .width = 8, .digits = 1, .scale = 1, .rows = WHO},
    {"%s", "energy_j", CELL_ENERGY, .width = 11, .rows = WHO},
    {"\u00b1 %s", "half_j", CELL_ENERGY, .rows = WHO},
    {"saved, %s", "saved_j", CELL_WITHIN, .half = "saved_half_j", .rows = JOBS},
    {"saved, %s", "saved_j", CELL_WITHIN, .half = "saved_half_j", .width = 15, .rows = GROUPS | PAIRS},
    {"saved, measured", "saved", CELL_SAVED, .width = 15, .rows = JOBS},
    {"the model says", "model_saved", CELL_PERCENT, .rows = JOBS},
    {"processors, %s", "cpu_j", CELL_ENERGY, .rows = WHO, .needs = "cpu"},
    {"g CO2e", "co2_g", CELL_AMOUNT, .width = 9, .rows = ALL | CHARGES, .needs = "co2_covered"},
    {"covered", "co2_covered", CELL_COVERED, .width = 7, .rows = ALL | CHARGES, .needs = "co2_covered"},
    {"marg. g", "marginal_g", CELL_AMOUNT, .width = 8, .rows = (ALL & ~PAIRS) | CHARGES, .needs = "marginal_covered"},
    {"covered", "marginal_covered", CELL_COVERED, .width = 7, .rows = (ALL & ~PAIRS) | CHARGES, .needs = "marginal_covered"},
    {"marg. g", "marginal_g", CELL_AMOUNT, .rows = PAIRS | CHARGES, .needs = "marginal_covered"},
    {"covered", "marginal_covered", CELL_COVERED, .rows = PAIRS | CHARGES, .needs = "marginal_covered"},
    {"money", "money", CELL_AMOUNT, .width = 8, .rows = ALL | CHARGES, .needs = "money_covered"},
    {"covered", "money_covered", CELL_COVERED, .width = 7, .rows = ALL | CHARGES, .needs = "money_covered"},
    {"saved g", "saved_co2_g", CELL_AMOUNT, .half = "saved_co2_half_g", .width = 7, .text = true, .rows = WHO | CHARGES, .needs = "co2_covered"},
    {"saved g CO2e", "saved_co2_g", CELL_WITHIN, .half = "saved_co2_half_g", .scale = 1, .rows = WHO | DAYS | CHARGES, .needs = "co2_covered"},
    {"saved marg. g", "saved_marginal_g", CELL_WITHIN, .half = "saved_marginal_half_g", .scale = 1, .rows = WHO | DAYS | CHARGES, .needs = "marginal_covered"},
    {"saved %m", "saved_money", CELL_WITHIN, .half = "saved_money_half", .scale = 1, .rows = WHO | DAYS | CHARGES, .needs = "money_covered"},
    {"g CO2e", "gco2e", CELL_NUMBER, .digits = 1, .scale = 1, .rows = ALL, .needs = "gco2e_kwh"},
    {"", "cost", CELL_AMOUNT, .rows = ALL, .needs = "price_kwh"},
    {"facility", "facility_j", CELL_ENERGY, .width = 9, .rows = (ALL & ~PAIRS) | BESIDE, .needs = "facility_j"},
    {"fac. g", "facility_co2_g", CELL_AMOUNT, .width = 8, .rows = (ALL & ~PAIRS) | BESIDE, .needs = "facility_co2_g"},
    {"facility", "facility_j", CELL_ENERGY, .rows = PAIRS | BESIDE, .needs = "facility_j"},
    {"fac. g", "facility_co2_g", CELL_AMOUNT, .rows = PAIRS | BESIDE, .needs = "facility_co2_g"},
    {"market g", "market_g", CELL_AMOUNT, .width = 8, .rows = ALL | BESIDE, .needs = "market_covered"},
    {"covered", "market_covered", CELL_COVERED, .width = 7, .rows = ALL | BESIDE, .needs = "market_covered"},
    {"embodied g", "embodied_g", CELL_AMOUNT, .width = 10, .rows = ALL | BESIDE, .needs = "embodied_covered"},
    {"covered", "embodied_covered", CELL_COVERED, .width = 7, .rows = ALL | BESIDE, .needs = "embodied_covered"},
};
/* clang-format on */

enum report_table report_table(const struct report_column *column)
{
    return column->rows & CHARGES  ? TABLE_CHARGES
           : column->rows & BESIDE ? TABLE_BESIDE
                                   : TABLE_ENERGY;
}

static bool is_there(const struct json_value *report, const struct report_column *c)
{
    if (!c->needs)
        return true;
    if (strcmp(c->needs, "cpu") == 0)
        return report_cpu(report) != NULL;
    if (c->rows & BESIDE)
        return report_has_beside(report, c->needs);
    return c->rows & CHARGES ? report_has_charge(report, c->needs)
                             : json_get(report, c->needs) != NULL;
}

const struct report_column *report_column(const struct json_value *report,
                                          const struct report_column *before)
{
    const char *by = take_text(report, "by");
    unsigned rows = report_has_parts(report)
                        ? strcmp(by, "day") == 0 ? PARTS | DAYS : PARTS
                    : report_is_pair(report) ? PAIRS
                    : strcmp(by, "job") == 0 ? JOBS
                                             : GROUPS;

    for (size_t i = before ? (size_t)(before - columns) + 1 : 0; i < n_elements(columns);
         i++)
        if (columns[i].rows & rows && is_there(report, &columns[i]))
            return &columns[i];
    return NULL;
}

/* Names a key: "GPU"; a label by its own key. */
static void head_of(const struct json_value *report, const char *by, char *ret,
                    size_t size)
{
    view_label(strcmp(by, "label") == 0 ? take_text(report, "label")
               : strcmp(by, "gpu") == 0 ? "GPU"
               : strcmp(by, "cpu") == 0 ? "processor"
               : strcmp(by, "qos") == 0 ? "QoS"
                                        : by,
               ret, size);
}

bool report_named(const struct json_value *report, const char *key, size_t len,
                  const struct report_column **ret)
{
    const struct report_column *c = NULL;

    while ((c = report_column(report, c)) != NULL)
        if (!c->text && c->key[0] && strlen(c->key) == len &&
            strncmp(c->key, key, len) == 0) {
            *ret = c;
            return true;
        }
    return false;
}

void report_head(const struct json_value *report, const struct report_column *column,
                 char ret[REPORT_TEXT])
{
    const char *head = column->head, *unit = head ? strchr(head, '%') : NULL;
    char by[32];

    if (!head)
        head_of(report, key_of(report, column->kind == CELL_SECOND, by), ret,
                REPORT_TEXT);
    else if (unit)
        (void)snprintf(ret, REPORT_TEXT, "%.*s%.20s", (int)(unit - head), head,
                       unit[1] == 's' ? report_unit(report).name
                                      : take_text(report, "money_currency"));
    else
        (void)snprintf(ret, REPORT_TEXT, "%.60s",
                       !*head                       ? take_text(report, "currency")
                       : strcmp(head, "money") == 0 ? take_text(report, "money_currency")
                                                    : head);
}

/* "1.234 ± 0.056": the savings, with half of their interval. */
static void put_within(const struct json_value *report, const struct json_value *row,
                       const struct report_column *column, char ret[REPORT_TEXT])
{
    double scale = column->scale > 0 ? column->scale : report_unit(report).scale;
    double v = take_number(row, column->key) * scale;
    double half = take_number(row, column->half) * scale;

    (void)snprintf(ret, REPORT_TEXT, "%s", figure_saved(v, half, "").t);
}

bool report_has_halves(const struct json_value *report, bool *ret_untold)
{
    static const char *const of[][2] = {{"saved", "saved_half"},
                                        {"saved_j", "saved_half_j"}};
    const struct json_value *rows = json_get(report, "rows"),
                            *jobs = json_get(report, "jobs");
    bool has = false;

    *ret_untold = false;
    for (size_t i = 0; i <= json_count(rows); i++) {
        const struct json_value *row = i < json_count(rows) ? json_at(rows, i) : jobs;
        for (size_t k = 0; k < n_elements(of); k++) {
            double v = take_number(row, of[k][0]), half = take_number(row, of[k][1]);
            bool known = !isnan(v) && !isnan(half);
            has |= known;
            *ret_untold |= known && !figure_told(v, half);
        }
    }
    return has;
}

void report_cell(const struct json_value *report, const struct json_value *row,
                 const struct report_column *column, char ret[REPORT_TEXT])
{
    double v = take_number(row, column->key);
    char by[32];

    if (column->kind == CELL_NAME)
        report_name(report, row, ret, REPORT_TEXT);
    else if (column->kind == CELL_SECOND)
        name_of(row, key_of(report, true, by), ret, REPORT_TEXT);
    else if (column->kind == CELL_WITHIN)
        put_within(report, row, column, ret);
    else if (column->kind == CELL_TEXT)
        view_label(take_text(row, column->key), ret, REPORT_TEXT);
    else if (column->kind == CELL_SAVED)
        (void)report_saved(row, ret);
    else if (isnan(v))
        (void)snprintf(ret, REPORT_TEXT, "-");
    else if (column->kind == CELL_ENERGY)
        (void)report_energy(v, report_unit(report), ret);
    else if (column->kind == CELL_AMOUNT && column->half &&
             !figure_told(v, take_number(row, column->half)))
        (void)snprintf(ret, REPORT_TEXT, "~0");
    else if (column->kind == CELL_AMOUNT)
        (void)report_amount(v, report_digits(v), ret);
    else if (column->kind == CELL_COVERED)
        (void)snprintf(ret, REPORT_TEXT, "%.1f %%", floor(1e3 * v + 1e-9) / 10);
    else if (column->kind == CELL_PERCENT)
        (void)snprintf(ret, REPORT_TEXT, "%.1f %%", 100 * v);
    else
        (void)snprintf(ret, REPORT_TEXT, "%.*f", column->digits, v * column->scale);
}

/* "2026-11-21T14:30:00Z" as "2026-11-21 14:30" */
static void put_moment(const char *iso, bool seconds, char ret[24])
{
    if (strncmp(iso, "1970-01-01T00:00", 16) == 0)
        (void)snprintf(ret, 24, "the beginning");
    else
        (void)snprintf(ret, 24, "%.10s %.*s", iso, seconds ? 8 : 5,
                       strlen(iso) > 11 ? iso + 11 : "");
}

void report_by(const struct json_value *report, char ret[REPORT_TEXT])
{
    char key[32], first[40], second[40];
    bool label = strcmp(key_of(report, false, key), "label") == 0,
         pair = report_is_pair(report);

    head_of(report, key, first, sizeof first);
    head_of(report, key_of(report, true, key), second, sizeof second);
    (void)snprintf(ret, REPORT_TEXT, "%s%s%s%s", label ? "label " : "", first,
                   pair ? " and " : "", pair ? second : "");
}

void report_title(const struct json_value *report, char *ret, size_t size)
{
    char from[24], to[24], by[REPORT_TEXT];

    const char *begin = take_text(report, "from"), *end = take_text(report, "to");
    bool seconds = strlen(begin) >= 19 && strncmp(begin, end, 16) == 0;
    put_moment(begin, seconds, from);
    put_moment(end, seconds, to);
    report_by(report, by);
    (void)snprintf(ret, size, "Energy by %s from %s to %s UTC", by, from, to);
}

bool report_saved_sum(const struct json_value *report, char ret[REPORT_ONLY])
{
    const struct json_value *jobs = json_get(report, "jobs");
    double j = take_number(jobs, "saved_j"), half = take_number(jobs, "saved_half_j");
    struct report_unit unit = report_unit_of(fmax(fabs(j), half));
    const struct {
        double v, half;
        const char *unit;
    } also[] = {{take_number(jobs, "saved_co2_g"), take_number(jobs, "saved_co2_half_g"),
                 "g CO2e"},
                {take_number(jobs, "saved_money"), take_number(jobs, "saved_money_half"),
                 take_text(report, "money_currency")}};
    size_t n = 0;

    if (isnan(j) || isnan(half))
        return false;
    n += (size_t)snprintf(ret, REPORT_ONLY, "%s",
                          figure_saved(j * unit.scale, half * unit.scale, unit.name).t);
    for (size_t i = 0; i < n_elements(also) && n < REPORT_ONLY; i++) {
        if (!isnan(also[i].v) && !isnan(also[i].half))
            n += (size_t)snprintf(ret + n, REPORT_ONLY - n, ", %s %.20s",
                                  figure_saved(also[i].v, also[i].half, "").t,
                                  also[i].unit);
    }
    return true;
}

bool report_only(const struct json_value *report, char ret[REPORT_ONLY])
{
    const struct json_value *only = json_get(report, "only");
    char user[REPORT_TEXT], label[REPORT_TEXT], value[REPORT_TEXT], job[32] = "";
    bool own = json_get(report, "only_uid") && !isnan(take_number(report, "only_uid"));

    view_label(take_text(only, "user"), user, sizeof user);
    view_label(take_text(only, "label"), label, sizeof label);
    view_label(take_text(only, "value"), value, sizeof value);
    if (!isnan(take_number(only, "job")))
        (void)snprintf(job, sizeof job, "job %llu",
                       (unsigned long long)take_u64(only, "job"));
    if (!own && !user[0] && !label[0] && !job[0])
        return false;
    if (own && !user[0])
        (void)snprintf(user, sizeof user, "uid %llu",
                       (unsigned long long)take_u64(report, "only_uid"));
    (void)snprintf(ret, REPORT_ONLY,
                   "%s%s%s%s%s%s%s%s alone; all sums but savings are of the whole node.",
                   job[0] ? "Only " : "Jobs", job, user[0] ? " of " : "", user,
                   label[0] ? " with " : "", label, label[0] ? "=" : "", value);
    return true;
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

bool report_factor(const struct json_value *report, size_t i, char ret[REPORT_ONLY])
{
    const struct json_value *f = json_at(json_get(report, "factors"), i);
    char source[256];

    if (!f)
        return false;
    view_label(take_text(f, "source"), source, sizeof source);
    (void)snprintf(ret, REPORT_ONLY, "%.32s: %s%s", take_text(f, "signal"), source,
                   take_bool(f, "estimated") ? ", estimated" : "");
    return true;
}
