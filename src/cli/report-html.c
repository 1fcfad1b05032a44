#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "cli/figures.h"
#include "cli/html.h"
#include "cli/report.h"
#include "cli/take.h"
#include "cli/view.h"

/* Two widths of each picture: the wide one is unreadable on a phone. */
enum { WIDE = 1000, SMALL = 420, ROWS = 1000 };

static const char style[] =
    "body{max-width:1040px}svg{margin:20px 0}\n"
    ".small{display:none}\n"
    "@media(max-width:640px){.wide{display:none}.small{display:block}}\n"
    "h1{font-size:22px;margin:24px 0 4px}\n";

static int put_picture(const struct report_picture *p, const struct json_value *report,
                       double width, FILE *to, uw_error *err)
{
    struct sheet sheet = {CANVAS_INLINE, width, p->height(report, width), p->title};

    if (!(sheet.h > 0))
        return 0;
    (void)fprintf(to, "<div class=\"%s\">\n", width < WIDE ? "small" : "wide");
    int r = canvas_write(to, &sheet, p->draw, report, err);
    (void)fputs("</div>\n", to);
    return r;
}

/* The next column of a table after c (NULL: the first one); NULL: no more columns. */
static const struct report_column *next_of(const struct json_value *report,
                                           enum report_table table,
                                           const struct report_column *c)
{
    while ((c = report_column(report, c)) != NULL) {
        bool name = c->kind == CELL_NAME || c->kind == CELL_SECOND;
        if (!c->text && (report_table(c) == table || name))
            return c;
    }
    return NULL;
}

static void put_row(const struct json_value *report, const struct json_value *row,
                    enum report_table table, FILE *to)
{
    const struct report_column *c = NULL;
    char text[REPORT_TEXT];

    (void)fputs("<tr>", to);
    while ((c = next_of(report, table, c)) != NULL) {
        report_cell(report, row, c, text);
        html_put(to, "td", "%s", text);
    }
    (void)fputs("</tr>\n", to);
}

static void put_heads(const struct json_value *report, enum report_table table, FILE *to)
{
    const struct report_column *c = NULL;
    char heads[HTML_HEADS] = "", text[REPORT_TEXT];
    size_t n = 0;

    while ((c = next_of(report, table, c)) != NULL) {
        report_head(report, c, text);
        if (n + strlen(text) + 2 > sizeof heads)
            break;
        n += (size_t)snprintf(heads + n, sizeof heads - n, "%s%s", n ? "|" : "", text);
    }
    html_table(to, heads);
}

static bool has_table(const struct json_value *report, enum report_table table)
{
    const struct report_column *c = NULL;

    while ((c = report_column(report, c)) != NULL)
        if (!c->text && report_table(c) == table)
            return true;
    return false;
}

static void put_table(const struct json_value *report, enum report_table table, FILE *to)
{
    const struct json_value *rows = json_get(report, "rows");

    put_heads(report, table, to);
    for (size_t i = 0; i < json_count(rows) && i < ROWS; i++)
        put_row(report, json_at(rows, i), table, to);
    html_table_end(to);
    if (json_count(rows) > ROWS)
        html_put(to, "p", "and %zu more: the CSV has them.", json_count(rows) - ROWS);
}

/* All columns together do not fit on a page: each kind has a table of its own. */
static void put_tables(const struct json_value *report, FILE *to)
{
    static const char *const titles[] = {[TABLE_ENERGY] = "Figures",
                                         [TABLE_CHARGES] = "Emissions and cost",
                                         [TABLE_BESIDE] = "Beside what is booked"};
    bool parts = report_has_parts(report),
         none = json_count(json_get(report, "rows")) == 0;

    for (unsigned i = 0; i < n_elements(titles); i++) {
        if (i > 0 && (none || !has_table(report, i)))
            continue;
        bool unit = i == TABLE_ENERGY && parts;
        html_put(to, "h2", "%s%s%s", titles[i], unit ? ", " : "",
                 unit ? report_unit(report).name : "");
        if (none)
            html_put(to, "p", "No energy%s was recorded.", parts ? "" : " of jobs");
        else
            put_table(report, i, to);
    }
}

/* Sums of boards, or of processors. */
static void put_sums(const char *title, const struct json_value *t, FILE *to)
{
    double all = take_number(t, "energy_j");
    struct report_unit unit = report_unit_of(all);
    char text[200];

    html_put(to, "h2", "%s", title);
    (void)snprintf(text, sizeof text, "|%s|share", unit.name);
    html_table(to, text);
    for (size_t i = 0; i < REPORT_LINES; i++) {
        double j = take_number(t, report_lines[i].key);
        (void)fputs("<tr>", to);
        html_put(to, "td", "%s", report_lines[i].name);
        html_put(to, "td", "%s", report_energy(j, unit, text));
        if (report_lines[i].share && all > 0 && !isnan(j))
            html_put(to, "td", "%.1f %%", 100 * j / all);
        else
            (void)fputs("<td></td>", to);
        (void)fputs("</tr>\n", to);
    }
    html_table_end(to);
    report_sum(t, text, sizeof text);
    html_put(to, "p", "%s", text);
}

struct charge {
    const char *name, *key, *covered, *booked, *revised;
};
static const struct charge charges[] = {
    {"emissions, g CO2e", "co2_g", "co2_covered", "co2_booked_g", "co2_revised_g"},
    {"marginal emissions, g CO2e", "marginal_g", "marginal_covered", "marginal_booked_g",
     "marginal_revised_g"},
    {"cost, ", "money", "money_covered", "money_booked", "money_revised"},
};

static bool is_revised(const struct json_value *totals)
{
    for (size_t i = 0; i < n_elements(charges); i++) {
        double by = take_number(totals, charges[i].revised);
        if (!isnan(by) && by != 0)
            return true;
    }
    return false;
}

/* revised: with the booked amount, and the change by later values. */
static void put_charge(const struct json_value *t, const struct charge *c,
                       const char *currency, bool revised, FILE *to)
{
    double v = take_number(t, c->key), part = take_number(t, c->covered);
    double booked = take_number(t, c->booked), by = take_number(t, c->revised);
    int digits = report_digits(v);
    char text[REPORT_TEXT];

    if (isnan(v))
        return;
    (void)fputs("<tr>", to);
    html_put(to, "td", "%s%s", c->name, currency);
    html_put(to, "td", "%s", report_amount(v, digits, text));
    html_put(to, "td", "%.1f %%", floor(1e3 * part + 1e-9) / 10);
    if (revised && !isnan(booked) && !isnan(by)) {
        html_put(to, "td", "%.*f", digits, booked);
        html_put(to, "td", "%+.*f", digits, by);
    } else if (revised)
        (void)fputs("<td></td><td></td>", to);
    (void)fputs("</tr>\n", to);
}

/* Emissions and money of all boards, and the part of the energy that they cover. */
static void put_charges(const struct json_value *report, FILE *to)
{
    const struct json_value *t = json_get(report, "totals");
    bool revised = is_revised(t);

    if (!report_has_charge(report, "co2_covered") &&
        !report_has_charge(report, "marginal_covered") &&
        !report_has_charge(report, "money_covered"))
        return;
    html_table(to, revised ? "||of the energy|booked|revised by" : "||of the energy");
    for (size_t i = 0; i < n_elements(charges); i++)
        put_charge(t, &charges[i], i == 2 ? take_text(report, "money_currency") : "",
                   revised, to);
    html_table_end(to);
    if (revised)
        html_put(to, "p",
                 "What was booked with the energy stays; where the source had "
                 "another value of that time later, the difference is its own "
                 "figure. The first column has both.");
}

/* Figures under CC BY may be shown with their author's name and the licence. */
void report_html_factors(const struct json_value *report, FILE *to)
{
    static const char by[] = "CC BY 4.0";
    char text[REPORT_ONLY];
    bool cc = false;

    if (!report_factor(report, 0, text))
        return;
    html_put(to, "h2", "Factors of emissions and cost");
    (void)fputs("<ul>\n", to);
    for (size_t i = 0; report_factor(report, i, text); i++) {
        html_put(to, "li", "%s", text);
        cc = cc || strstr(text, by);
    }
    (void)fputs("</ul>\n", to);
    if (cc)
        (void)fprintf(to,
                      "<p class=\"muted\">%s: <a href=\"https://creativecommons.org/"
                      "licenses/by/4.0/\">creativecommons.org/licenses/by/4.0</a></p>\n",
                      by);
}

static void put_beside(const struct json_value *report, FILE *to)
{
    const char *name = NULL;
    char text[REPORT_ONLY];

    for (size_t i = 0; report_beside(report, i, &name, text); i++)
        if (name)
            html_put(to, "p", "Beside these, %s: %s.", name, text);
}

static void put_method(const struct json_value *report, FILE *to)
{
    const struct json_value *method = json_get(json_get(report, "totals"), "method");

    html_method(to, take_bool(report, "simulated"));
    (void)fputs("Energy of the boards, measured by ", to);
    for (size_t i = 0; i < json_count(method); i++) {
        (void)fputs(i ? ", " : "", to);
        const char *word = json_as_text(json_at(method, i));
        canvas_escape(to, word ? word : "");
    }
    (void)fputs(
        ". Half widths are of 95 % intervals, added as if all errors had the same "
        "sign. Savings are of the part of a job that is shown, against the original cap "
        "of the board: "
        "measured, and beside it as the model of the search predicts. "
        "Unattributed energy cannot be charged to one job on a shared board.",
        to);
    if (report_cpu(report))
        (void)fputs(
            " Energy of processors (RAPL) is that of the node: it belongs to a job only "
            "while the job had the whole node, and it is in no sum of boards.",
            to);
    (void)fputs("</p>\n", to);
}

static int put_body(const struct json_value *report, FILE *to, uw_error *err)
{
    const struct report_picture *picture = NULL;
    char title[200], only[REPORT_ONLY], saved[REPORT_ONLY];
    bool untold = false;

    report_title(report, title, sizeof title);
    html_put(to, "h1", "%s", title);
    (void)fputs("<p class=\"muted\">", to);
    if (take_bool(report, "simulated"))
        html_stamp(to);
    if (report_only(report, only))
        canvas_escape(to, only);
    (void)fputs("</p>\n", to);
    for (size_t i = 0; (picture = report_picture(i)) != NULL; i++) {
        int r = put_picture(picture, report, WIDE, to, err);
        if (r >= 0)
            r = put_picture(picture, report, SMALL, to, err);
        if (r < 0)
            return r;
    }
    put_tables(report, to);
    put_sums("Sums", json_get(report, "totals"), to);
    put_charges(report, to);
    put_beside(report, to);
    if (report_saved_sum(report, saved))
        html_put(to, "p", "Saved by these jobs: %s.", saved);
    if (report_has_halves(report, &untold) && untold)
        html_put(to, "p", "%s.", FIGURE_UNTOLD);
    if (report_cpu(report))
        put_sums("Processors and their memory, beside the GPUs", report_cpu(report), to);
    report_html_factors(report, to);
    put_method(report, to);
    return 0;
}

int report_html(const struct json_value *report, FILE *to, uw_error *err)
{
    char title[200];

    report_title(report, title, sizeof title);
    html_begin(to, take_bool(report, "simulated"), title, style);
    (void)fputs("<main>\n", to);
    int r = put_body(report, to, err);
    (void)fputs("</main>\n", to);
    return r < 0 ? r : html_end(to, err);
}
