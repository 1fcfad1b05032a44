/* The picture of the savings: a row's energy, with half of its interval. */
#include <math.h>

#include "base/auto.h"
#include "chart/chart.h"
#include "cli/figures.h"
#include "cli/report.h"
#include "cli/take.h"
#include "cli/view.h"

enum { TOP = 60, ROW = 26, ROWS = 12, FOOT = 34, NARROW = 600, LEFT = 72 };

static const struct type small = {12, INK_MUTED, false},
                         name_type = {12, INK_TEXT, false};

/* Rows with known savings, ROWS at most. */
static size_t saved_rows(const struct json_value *report,
                         const struct json_value *ret[ROWS])
{
    const struct json_value *rows = json_get(report, "rows");
    size_t n = 0;

    for (size_t i = 0; i < json_count(rows) && n < ROWS; i++) {
        const struct json_value *row = json_at(rows, i);
        if (!isnan(take_number(row, "saved_j")) &&
            !isnan(take_number(row, "saved_half_j")))
            ret[n++] = row;
    }
    return n;
}

static double saved_height(const struct json_value *report, double width)
{
    const struct json_value *rows[ROWS];
    size_t n = saved_rows(report, rows);

    (void)width;
    return n ? TOP + ROW * (double)n + FOOT : 0;
}

static void draw_row(struct canvas *c, const struct json_value *report,
                     const struct json_value *row, const struct frame *f, double y)
{
    struct report_unit unit = report_saved_unit(report);
    double v = take_number(row, "saved_j") * unit.scale;
    double half = take_number(row, "saved_half_j") * unit.scale;
    double g = take_number(row, "saved_co2_g");
    bool wide = canvas_width(c) >= NARROW;
    char name[64], text[REPORT_TEXT + 80], grams[REPORT_TEXT] = "", figure[REPORT_TEXT];

    report_row_name(report, row, name, wide ? 34 : 20);
    canvas_text(c, f->box.x - 8, y + 4, ALIGN_RIGHT, &name_type, name);
    struct spot a = {axis_at(&f->x, v - half), y}, b = {axis_at(&f->x, v + half), y};
    canvas_line(c, a, b, pen_line(INK_ENERGY, 2));
    for (int i = 0; i < 2; i++) {
        double x = i ? b.x : a.x;
        canvas_line(c, (struct spot){x, y - 5}, (struct spot){x, y + 5},
                    pen_line(INK_ENERGY, 1.5));
    }
    canvas_circle(c, (struct spot){axis_at(&f->x, v), y}, 4, pen_fill(INK_ENERGY));
    if (wide && !isnan(g) && figure_told(v, half))
        (void)snprintf(grams, sizeof grams, ", %s g CO2e",
                       report_amount(g, view_digits(fabs(g)), figure));
    (void)snprintf(text, sizeof text, "%s%s",
                   figure_saved(v, half, wide ? unit.name : "").t, grams);
    canvas_text(c, f->box.x + f->box.w + 10, y + 4, ALIGN_LEFT, &small, text);
}

static void saved_draw(struct canvas *c, const void *user)
{
    static const struct type head = {16, INK_TEXT, true};
    const struct json_value *report = user, *rows[ROWS];
    size_t n = saved_rows(report, rows);
    struct report_unit unit = report_saved_unit(report);
    double width = canvas_width(c), least = 0, most = 0;
    bool wide = width >= NARROW;
    char by[REPORT_TEXT], text[REPORT_TEXT + 40];

    for (size_t i = 0; i < n; i++) {
        double v = take_number(rows[i], "saved_j") * unit.scale;
        double half = take_number(rows[i], "saved_half_j") * unit.scale;
        least = fmin(least, v - half);
        most = fmax(most, v + half);
    }
    double left = wide ? 230 : 140, right = wide ? 230 : 106;
    struct frame f = {.box = {left, TOP, width - left - right, ROW * (double)n},
                      .x = axis_over(least, most, wide ? 5 : 3, false),
                      .y = {.lo = 0, .hi = 1},
                      .x_ticks = true};
    frame_draw(c, &f);
    report_by(report, by);
    (void)snprintf(text, sizeof text, "Saved by %s, %s", by, unit.name);
    canvas_text(c, LEFT, 22, ALIGN_LEFT, &head, text);
    canvas_text(c, LEFT, 44, ALIGN_LEFT, &small,
                wide ? "against the original cap, with the 95 % interval; errors of "
                       "several jobs are added as if of one sign"
                     : "against the original cap, with 95 % intervals");
    if (least < 0)
        canvas_line(c, (struct spot){axis_at(&f.x, 0), f.box.y},
                    (struct spot){axis_at(&f.x, 0), f.box.y + f.box.h},
                    pen_line(INK_AXIS, 1));
    for (size_t i = 0; i < n; i++)
        draw_row(c, report, rows[i], &f, TOP + ROW * ((double)i + 0.5));
}

const struct report_picture report_saved_picture = {"What was saved, with intervals",
                                                    saved_height, saved_draw};
