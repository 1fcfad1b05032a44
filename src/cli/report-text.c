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

static void put_rows(const struct json_value *report, enum report_table table, FILE *to)
{
    const struct json_value *rows = json_get(report, "rows");
    char text[REPORT_TEXT], fitted[REPORT_TEXT];

    for (size_t i = 0; i <= json_count(rows) && i <= SHOWN; i++) {
        const struct report_column *c = NULL;
        bool first = true;
        while ((c = report_column(report, c)) != NULL) {
            int width = abs(c->width);
            if (width == 0 || (report_table(c) != table && c->kind != CELL_NAME &&
                               c->kind != CELL_SECOND))
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

struct charge {
    const char *name, *key, *booked, *revised, *covered, *unit;
};

/* "  emissions    123.4 g CO2e, of 87.5 % of the energy" and, if later values changed
 * it, "  booked 120.1, revised by +3.3".
 */
static void put_charge(const struct json_value *sums, const struct charge *c, FILE *to)
{
    double v = take_number(sums, c->key), part = take_number(sums, c->covered);
    double booked = take_number(sums, c->booked), by = take_number(sums, c->revised);
    char text[REPORT_TEXT];

    if (isnan(v))
        return;
    int digits = report_digits(v);
    (void)fprintf(to, "  %-14s%12s %s", c->name, report_amount(v, digits, text), c->unit);
    if (part < 1)
        (void)fprintf(to, ", of %.1f %% of the energy", floor(1e3 * part) / 10);
    (void)fputc('\n', to);
    if (!isnan(by) && by != 0)
        (void)fprintf(to, "  %14s%12.*f booked, revised by %+.*f\n", "", digits, booked,
                      digits, by);
}

static void put_charges(const struct json_value *report, const struct json_value *sums,
                        FILE *to)
{
    char currency[16];

    view_label(take_text(report, "money_currency"), currency, sizeof currency);
    const struct charge charges[] = {
        {"emissions", "co2_g", "co2_booked_g", "co2_revised_g", "co2_covered", "g CO2e"},
        {"marginal", "marginal_g", "marginal_booked_g", "marginal_revised_g",
         "marginal_covered", "g CO2e"},
        {"cost", "money", "money_booked", "money_revised", "money_covered", currency},
    };
    for (size_t i = 0; i < n_elements(charges); i++)
        put_charge(sums, &charges[i], to);
}

/* By the factors of --carbon and --price. */
static void put_costs(const struct json_value *report, FILE *to)
{
    const struct json_value *t = json_get(report, "totals");
    double cost = take_number(t, "cost");
    char currency[16], text[REPORT_TEXT];

    if (json_get(report, "gco2e_kwh"))
        (void)fprintf(to, "  %-14s%12.1f g CO2e at %g g/kWh\n", "emissions",
                      take_number(t, "gco2e"), take_number(report, "gco2e_kwh"));
    view_label(take_text(report, "currency"), currency, sizeof currency);
    if (json_get(report, "price_kwh"))
        (void)fprintf(to, "  %-14s%12s %s at %g %s/kWh\n", "cost",
                      report_amount(cost, report_digits(cost), text), currency,
                      take_number(report, "price_kwh"), currency);
}

static void put_beside(const struct json_value *report, FILE *to)
{
    const char *name = NULL;
    char text[REPORT_ONLY];

    for (size_t i = 0; report_beside(report, i, &name, text); i++) {
        if (!name)
            continue;
        (void)fprintf(to, "  %-14s ", name);
        text_wrap(to, 17, 17, text);
    }
}

/* Sums of boards, or of processors. */
static void put_sums(const struct json_value *report, const struct json_value *sums,
                     FILE *to)
{
    bool boards = sums == json_get(report, "totals");
    double all = take_number(sums, "energy_j");
    struct report_unit unit = report_unit_of(all);
    char text[200], saved[REPORT_ONLY];
    bool untold = false;

    for (size_t i = 0; i < REPORT_LINES; i++) {
        double j = take_number(sums, report_lines[i].key);
        (void)fprintf(to, "  %-14s%12s %s", report_lines[i].name,
                      report_energy(j, unit, text), unit.name);
        if (report_lines[i].share && all > 0 && !isnan(j))
            (void)fprintf(to, "  %5.1f %%", 100 * j / all);
        (void)fputc('\n', to);
    }
    put_charges(report, sums, to);
    if (boards && report_saved_sum(report, saved)) {
        (void)fprintf(to, "  %-14s ", "saved");
        text_wrap(to, 17, 17, saved);
    }
    if (boards && report_has_halves(report, &untold))
        figure_put_signs(to, 2, untold);
    if (boards)
        put_costs(report, to);
    if (boards)
        put_beside(report, to);
    report_sum(sums, text, sizeof text);
    (void)fprintf(to, "%s\n", text);
}

void report_text_factors(const struct json_value *report, FILE *to)
{
    char text[REPORT_ONLY];

    for (size_t i = 0; report_factor(report, i, text); i++) {
        (void)fputs(i == 0 ? "\nFactors:\n  " : "  ", to);
        text_wrap(to, 2, 4, text);
    }
}

/* ---- requested columns ---- */

enum { COLUMNS = 60 };
struct table {
    const struct report_column *column[COLUMNS];
    int width[COLUMNS];
    size_t n;
};

static int add_column(const struct json_value *report, const struct report_column *c,
                      struct table *t)
{
    const struct json_value *rows = json_get(report, "rows");
    char text[REPORT_TEXT];

    if (t->n == COLUMNS)
        return -E2BIG;
    report_head(report, c, text);
    int width = (int)text_columns(text);
    for (size_t i = 0; i < json_count(rows) && i < SHOWN; i++) {
        report_cell(report, json_at(rows, i), c, text);
        int is = (int)text_columns(text);
        width = is > width ? is : width;
    }
    t->width[t->n] = width;
    t->column[t->n++] = c;
    return 0;
}

/* The names, then the columns of "energy_j,co2_g" in that order. */
static int read_columns(const struct json_value *report, const char *columns,
                        struct table *t, uw_error *err)
{
    const struct report_column *c = NULL;
    bool all = strcmp(columns, "all") == 0;
    int r = 0;

    while (r >= 0 && (c = report_column(report, c)) != NULL)
        if (c->kind == CELL_NAME || c->kind == CELL_SECOND || (all && !c->text))
            r = add_column(report, c, t);
    for (const char *at = all ? "" : columns; r >= 0 && *at;) {
        size_t len = strcspn(at, ",");
        if (!report_named(report, at, len, &c))
            return fail(err, -EINVAL,
                        "--columns: no column '%.*s' to choose (names are always "
                        "shown): all, or keys of its JSON as energy_j, co2_g, "
                        "saved_money",
                        (int)len, at);
        r = add_column(report, c, t);
        at += len + (at[len] == ',');
    }
    return r < 0 ? fail(err, r, "--columns: more than %d", COLUMNS) : 0;
}

static void put_wide(const struct json_value *report, const struct table *t, FILE *to)
{
    const struct json_value *rows = json_get(report, "rows");
    char text[REPORT_TEXT];

    for (size_t i = 0; i <= json_count(rows) && i <= SHOWN; i++) {
        for (size_t k = 0; k < t->n; k++) {
            const struct report_column *c = t->column[k];
            if (i == 0)
                report_head(report, c, text);
            else
                report_cell(report, json_at(rows, i - 1), c, text);
            (void)fputs(k ? "  " : "", to);
            put(to, text, t->width[k], c->width >= 0);
        }
        (void)fputc('\n', to);
    }
}

/* ---- ---- */

static void put_tables(const struct json_value *report, const struct table *t, FILE *to)
{
    bool charges = report_has_charge(report, "co2_covered") ||
                   report_has_charge(report, "marginal_covered") ||
                   report_has_charge(report, "money_covered");

    if (t) {
        put_wide(report, t, to);
        return;
    }
    put_rows(report, TABLE_ENERGY, to);
    if (charges) {
        (void)fputc('\n', to);
        put_rows(report, TABLE_CHARGES, to);
    }
    if (report_has_beside(report, "facility_j") ||
        report_has_beside(report, "market_covered") ||
        report_has_beside(report, "embodied_covered")) {
        (void)fputc('\n', to);
        put_rows(report, TABLE_BESIDE, to);
    }
}

/* t: the requested columns; NULL: those of 80 columns. */
static int put_report(const struct json_value *report, const struct table *t, FILE *to,
                      uw_error *err)
{
    size_t n = json_count(json_get(report, "rows"));
    char title[200], only[REPORT_ONLY];

    report_title(report, title, sizeof title);
    (void)fprintf(to, "%s\n", title);
    if (take_bool(report, "simulated"))
        (void)fprintf(to, "SIMULATED boards: all figures are simulated.\n");
    if (report_only(report, only))
        text_wrap(to, 0, 0, only);
    (void)fputc('\n', to);
    if (n == 0)
        (void)fprintf(to, "No energy%s was recorded.\n",
                      strcmp(take_text(report, "by"), "cpu") == 0 ? " of processors"
                      : report_has_parts(report)                  ? ""
                                                                  : " of jobs");
    else
        put_tables(report, t, to);
    if (n > SHOWN)
        (void)fprintf(to, "… and %zu more: --format csv has them\n", n - SHOWN);
    (void)fputc('\n', to);
    put_sums(report, json_get(report, "totals"), to);
    if (report_cpu(report)) {
        (void)fprintf(to, "\nProcessors and their memory, beside the GPUs:\n");
        put_sums(report, report_cpu(report), to);
    }
    report_text_factors(report, to);
    return ferror(to) ? fail(err, -EIO, "cannot write the report") : 0;
}

int report_text(const struct json_value *report, FILE *to, uw_error *err)
{
    return put_report(report, NULL, to, err);
}

int report_text_of(const struct json_value *report, const char *columns, FILE *to,
                   uw_error *err)
{
    struct table t = {.n = 0};

    int r = read_columns(report, columns, &t, err);
    return r < 0 ? r : put_report(report, &t, to, err);
}
