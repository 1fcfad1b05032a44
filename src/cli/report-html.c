#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "cli/canvas-inside.h"
#include "cli/html.h"
#include "cli/report.h"
#include "cli/take.h"

/* Pictures come in two widths: a wide one shrunk to a telephone cannot be read. */
enum { WIDE = 1000, SMALL = 420, ROWS = 1000 };

static const char style[] =
    "body{margin:0 auto;max-width:1040px;padding:0 16px 48px;background:var(--i0);"
    "color:var(--i5);font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,"
    "'Helvetica Neue',Arial,sans-serif}\n"
    "svg{display:block;width:100%;height:auto;margin:20px 0}\n"
    ".small{display:none}\n"
    "@media(max-width:640px){.wide{display:none}.small{display:block}}\n"
    "h1{font-size:22px;margin:24px 0 4px}h2{font-size:18px;margin:32px 0 8px}\n"
    ".scroll{overflow-x:auto}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}\n"
    "th,td{padding:6px 12px;text-align:right;border-bottom:1px solid var(--i2);"
    "white-space:nowrap}\n"
    "th:first-child,td:first-child{text-align:left}\n"
    "th{color:var(--i4);font-weight:600}\n"
    "p{max-width:75ch}.muted{color:var(--i4)}\n"
    ".stamp{color:var(--i13);font-weight:700;letter-spacing:.04em}\n";

static int put_picture(const struct report_picture *p, const struct json_value *report,
                       double width, FILE *to, uw_error *err)
{
    auto_(canvas_free) struct canvas *c = NULL;
    double height = p->height(report, width);

    if (!(height > 0))
        return 0;
    (void)fprintf(to, "<div class=\"%s\">\n", width < WIDE ? "small" : "wide");
    int r = canvas_new_svg(to, width, height, p->title, true, &c, err);
    if (r < 0)
        return r;
    p->draw(c, report, width);
    r = canvas_finish(c, err);
    (void)fputs("</div>\n", to);
    return r;
}

static void put_cell(const char *text, FILE *to)
{
    (void)fputs("<td>", to);
    (void)canvas_escape(to, text);
    (void)fputs("</td>", to);
}

static void put_energy(const struct json_value *row, const char *key,
                       struct report_unit unit, FILE *to)
{
    char text[REPORT_TEXT];

    put_cell(report_energy(take_number(row, key), unit, text), to);
}

static void put_number(double v, int digits, FILE *to)
{
    char text[64];

    (void)snprintf(text, sizeof text, isnan(v) ? "-" : "%.*f", digits, v); /* NOLINT */
    put_cell(text, to);
}

static void put_percent(double part, FILE *to)
{
    char text[32] = "-";

    if (!isnan(part))
        (void)snprintf(text, sizeof text, "%.1f %%", 100 * part);
    put_cell(text, to);
}

static void put_row(const struct json_value *report, const struct json_value *row,
                    struct report_unit unit, FILE *to)
{
    char name[96], text[REPORT_TEXT];
    bool job = strcmp(take_text(report, "by"), "job") == 0;

    report_name(report, row, name, sizeof name);
    (void)fputs("<tr>", to);
    put_cell(name, to);
    if (report_has_parts(report)) {
        static const char *const keys[] = {"attributed_j", "idle_j", "unattributed_j",
                                           "energy_j", "meter_j"};
        for (size_t k = 0; k < n_elements(keys); k++)
            put_energy(row, keys[k], unit, to);
    } else {
        if (job)
            put_cell(take_text(row, "user"), to);
        else
            put_number(take_number(row, "jobs"), 0, to);
        put_number(take_number(row, "gpu_s") / 3600, 2, to);
        put_number(take_number(row, "mean_w"), 1, to);
        put_energy(row, "energy_j", unit, to);
        put_energy(row, "half_j", unit, to);
        put_energy(row, "saved_j", unit, to);
        if (job)
            put_cell(report_saved(row, text), to);
        if (job)
            put_percent(take_number(row, "model_saved"), to);
        if (report_cpu(report))
            put_energy(row, "cpu_j", unit, to);
    }
    if (json_get(report, "gco2e_kwh"))
        put_number(take_number(row, "gco2e"), 1, to);
    if (json_get(report, "price_kwh"))
        put_number(take_number(row, "cost"), 2, to);
    (void)fputs("</tr>\n", to);
}

static void put_head_row(const struct json_value *report, struct report_unit unit,
                         FILE *to)
{
    const char *by = take_text(report, "by");
    bool job = strcmp(by, "job") == 0;

    (void)fputs("<tr><th>", to);
    (void)canvas_escape(to, strcmp(by, "label") == 0 ? take_text(report, "label")
                                                     : report_by(report));
    (void)fputs("</th>", to);
    if (report_has_parts(report))
        (void)fprintf(to,
                      "<th>to jobs, %s</th><th>idle</th><th>unattributed</th>"
                      "<th>sum</th><th>meter</th>",
                      unit.name);
    else
        (void)fprintf(to,
                      "<th>%s</th><th>GPU hours</th><th>mean W</th><th>%s</th>"
                      "<th>&plusmn; %s</th><th>saved, %s</th>%s",
                      job ? "user" : "jobs", unit.name, unit.name, unit.name,
                      job ? "<th>saved, measured</th><th>the model says</th>" : "");
    if (!report_has_parts(report) && report_cpu(report))
        (void)fprintf(to, "<th>processors, %s</th>", unit.name);
    if (json_get(report, "gco2e_kwh"))
        (void)fputs("<th>g CO2e</th>", to);
    if (json_get(report, "price_kwh")) {
        (void)fputs("<th>", to);
        (void)canvas_escape(to, take_text(report, "currency"));
        (void)fputs("</th>", to);
    }
    (void)fputs("</tr>\n", to);
}

static void put_table(const struct json_value *report, FILE *to)
{
    const struct json_value *rows = json_get(report, "rows");
    struct report_unit unit = report_unit(report);

    if (json_count(rows) == 0) {
        (void)fputs("<p>No energy is booked there.</p>\n", to);
        return;
    }
    (void)fputs("<div class=\"scroll\"><table>\n", to);
    put_head_row(report, unit, to);
    for (size_t i = 0; i < json_count(rows) && i < ROWS; i++)
        put_row(report, json_at(rows, i), unit, to);
    (void)fputs("</table></div>\n", to);
    if (json_count(rows) > ROWS)
        (void)fprintf(to, "<p>and %zu more: the CSV has them.</p>\n",
                      json_count(rows) - ROWS);
}

/* Sums of boards, or of processors. */
static void put_sums(const char *title, const struct json_value *t, FILE *to)
{
    static const struct {
        const char *key, *name;
    } lines[] = {{"attributed_j", "to jobs"},
                 {"idle_j", "idle"},
                 {"unattributed_j", "unattributed"},
                 {"energy_j", "sum"},
                 {"meter_j", "meters"}};
    double all = take_number(t, "energy_j");
    struct report_unit unit = report_unit_of(all);
    char text[200];

    (void)fprintf(to,
                  "<h2>%s</h2>\n<table>\n<tr><th></th><th>%s</th><th>share</th></tr>\n",
                  title, unit.name);
    for (size_t i = 0; i < n_elements(lines); i++) {
        double j = take_number(t, lines[i].key);
        (void)fprintf(to, "<tr><td>%s</td>", lines[i].name);
        put_energy(t, lines[i].key, unit, to);
        if (i < 3 && all > 0)
            (void)fprintf(to, "<td>%.1f %%</td></tr>\n", 100 * j / all);
        else
            (void)fputs("<td></td></tr>\n", to);
    }
    (void)fputs("</table>\n<p>", to);
    report_sum(t, text, sizeof text);
    (void)canvas_escape(to, text);
    (void)fputs("</p>\n", to);
}

static void put_method(const struct json_value *report, FILE *to)
{
    const struct json_value *method = json_get(json_get(report, "totals"), "method");

    (void)fputs("<h2>Method</h2>\n<p>", to);
    if (take_bool(report, "simulated"))
        (void)fputs("<span class=\"stamp\">SIMULATED.</span> ", to);
    (void)fputs("Energy is the boards' own: by ", to);
    for (size_t i = 0; i < json_count(method); i++) {
        (void)fputs(i ? ", " : "", to);
        const char *word = json_as_text(json_at(method, i));
        (void)canvas_escape(to, word ? word : "");
    }
    (void)fputs(". Half widths are of 95 % intervals, added up as if all errors had one "
                "sign. What was saved is of whole jobs, against the cap that the board "
                "had before: measured, and beside it the word of the search's model. "
                "Unattributed is what no job on a shared board can be "
                "charged with.",
                to);
    if (report_cpu(report))
        (void)fputs(
            " Processors' energy (RAPL) is the node's: a job's only while that job "
            "alone had all of the node, and in no sum of boards.",
            to);
    (void)fputs("</p>\n", to);
}

static int put_body(const struct json_value *report, FILE *to, uw_error *err)
{
    char title[200];

    report_title(report, title, sizeof title);
    (void)fputs("<h1>", to);
    (void)canvas_escape(to, title);
    (void)fputs("</h1>\n<p class=\"muted\">", to);
    if (take_bool(report, "simulated"))
        (void)fputs("<span class=\"stamp\">SIMULATED.</span> ", to);
    if (!isnan(take_number(report, "only_uid")))
        (void)fprintf(to, "Jobs of uid %llu alone; sums are of the whole node.",
                      (unsigned long long)take_u64(report, "only_uid"));
    (void)fputs("</p>\n", to);
    for (size_t i = 0; i < REPORT_PICTURES; i++) {
        int r = put_picture(&report_pictures[i], report, WIDE, to, err);
        if (r >= 0)
            r = put_picture(&report_pictures[i], report, SMALL, to, err);
        if (r < 0)
            return r;
    }
    (void)fputs("<h2>Figures</h2>\n", to);
    put_table(report, to);
    put_sums("Sums", json_get(report, "totals"), to);
    if (report_cpu(report))
        put_sums("Processors and their memory, beside the GPUs", report_cpu(report), to);
    put_method(report, to);
    return 0;
}

int report_html(const struct json_value *report, FILE *to, uw_error *err)
{
    char title[200];

    report_title(report, title, sizeof title);
    (void)fputs(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
        "<title>",
        to);
    if (take_bool(report, "simulated"))
        (void)fputs("Simulated: ", to);
    (void)canvas_escape(to, title);
    (void)fputs("</title>\n", to);
    html_put_style(style, to);
    (void)fputs("</head>\n<body>\n<main>\n", to);
    int r = put_body(report, to, err);
    if (r < 0)
        return r;
    (void)fputs("</main>\n</body>\n</html>\n", to);
    return ferror(to) ? fail(err, -EIO, "cannot write the page") : 0;
}
