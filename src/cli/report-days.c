/* The pictures of a report by day: energy, emissions with their intensity, cost. */
#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "chart/chart.h"
#include "cli/report.h"
#include "cli/take.h"
#include "cli/view.h"

enum { LEFT = 72, RIGHT = 20, AXIS_RIGHT = 60, NARROW = 600, HEAD = 52, FOOT = 30 };
enum { PLOT = 240, LANE = 16, LANE_AIR = 8, KEY_LINE_H = 20, BAR_MAX = 56 };
enum { STACK = 5, PIECES = STACK + 3 };

static const struct type small = {12, INK_MUTED, false}, head = {16, INK_TEXT, true};
static const enum ink stack_inks[STACK] = {INK_ENERGY, INK_EDP, INK_EDS2, INK_EDS15,
                                           INK_STAMP};

/* Positions of the bars of days. */
struct plot {
    const struct json_value *days;
    size_t n;
    struct frame f;
    double step, bar; /* from day to day; width of a bar */
};

static const struct json_value *days_of(const struct json_value *report)
{
    return json_get(report, "days");
}

static void plot_begin(struct canvas *c, const struct json_value *report, double top,
                       double right, struct plot *p)
{
    const double width = canvas_width(c) - LEFT - right;

    p->days = days_of(report);
    p->n = json_count(p->days);
    p->f.box = (struct box){LEFT, top, width, PLOT};
    p->f.x = (struct axis){.lo = 0, .hi = (double)p->n};
    p->step = width / (double)p->n;
    p->bar = fmin(p->step > 6 ? p->step * 0.72 : p->step, BAR_MAX);
    frame_draw(c, &p->f);
}

/* The left edge of a day's bar. */
static double left_of(const struct plot *p, size_t day)
{
    return p->f.box.x + p->step * ((double)day + 0.5) - p->bar / 2;
}

/* Dates below y, as many as have room. */
static void draw_dates(struct canvas *c, const struct plot *p, double y)
{
    size_t every = (size_t)ceil(52 / p->step);

    for (size_t i = 0; i < p->n; i += every) {
        const char *day = take_text(json_at(p->days, i), "day");
        double x = p->f.box.x + p->step * ((double)i + 0.5);
        canvas_text(c, fmax(x, p->f.box.x + 16), y + 18, ALIGN_MIDDLE, &small,
                    strlen(day) == 10 ? day + 5 : day);
    }
}

/* ---- energy ---- */

/* The pieces of a day's bar. */
struct pieces {
    size_t n, stack; /* stack: of the largest rows */
    bool others;     /* some jobs are in none of these */
    char name[PIECES][40];
    enum ink ink[PIECES];
};

static void add_piece(struct pieces *p, const char *name, enum ink ink)
{
    view_label(name, p->name[p->n], 24);
    p->ink[p->n++] = ink;
}

static bool has_others(const struct json_value *report)
{
    const struct json_value *days = days_of(report);
    double jobs = 0, stack = 0, v = 0;

    for (size_t i = 0; i < json_count(days); i++) {
        const struct json_value *j = json_get(json_at(days, i), "stack_j");
        double sum = take_number(json_at(days, i), "attributed_j");
        jobs += isnan(sum) ? 0 : sum;
        for (size_t k = 0; k < json_count(j) && k < STACK; k++)
            stack += json_as_double(json_at(j, k), &v) ? v : 0;
    }
    return json_count(json_get(report, "stack")) == 0 || jobs > stack * (1 + 1e-6);
}

/* The largest rows, other jobs, and the unattributed rest. */
static void pieces_of(const struct json_value *report, struct pieces *ret)
{
    const struct json_value *stack = json_get(report, "stack");
    char name[40];

    ret->n = ret->stack = 0;
    for (size_t i = 0; i < json_count(stack) && i < STACK; i++) {
        report_stack_name(report, json_at(stack, i), name, sizeof name);
        add_piece(ret, name, stack_inks[i]);
        ret->stack++;
    }
    ret->others = has_others(report);
    if (ret->others)
        add_piece(ret, ret->stack ? "other jobs" : "to jobs",
                  ret->stack ? INK_POINT : INK_ENERGY);
    add_piece(ret, "unattributed", ret->stack ? INK_FRONT : INK_EDS15);
    add_piece(ret, "idle", INK_AXIS);
}

/* A day's pieces in J; returns their sum. */
static double read_pieces(const struct json_value *day, const struct pieces *p,
                          double ret[PIECES])
{
    const struct json_value *stack = json_get(day, "stack_j");
    double jobs = fmax(0, take_number(day, "attributed_j")), sum = jobs, v = 0;

    for (size_t i = 0; i < p->stack; i++) {
        ret[i] = json_as_double(json_at(stack, i), &v) ? fmax(0, v) : 0;
        jobs -= ret[i];
    }
    if (p->others)
        ret[p->stack] = fmax(0, jobs);
    ret[p->n - 2] = fmax(0, take_number(day, "unattributed_j"));
    ret[p->n - 1] = fmax(0, take_number(day, "idle_j"));
    return sum + ret[p->n - 2] + ret[p->n - 1];
}

/* Names are in cells of equal width, so that the height does not depend on them. */
static size_t keys_in_line(double width)
{
    return width < NARROW ? 2 : 5;
}

static double keys_height(const struct json_value *report, double width)
{
    struct pieces p;

    pieces_of(report, &p);
    size_t per = keys_in_line(width), lines = (p.n + per - 1) / per;
    return KEY_LINE_H * (double)lines;
}

static double energy_height(const struct json_value *report, double width)
{
    if (json_count(days_of(report)) == 0)
        return 0;
    return HEAD + keys_height(report, width) + PLOT + FOOT;
}

static void draw_keys(struct canvas *c, const struct pieces *p)
{
    size_t per = keys_in_line(canvas_width(c));
    double cell = (canvas_width(c) - LEFT - RIGHT) / (double)per;

    for (size_t i = 0; i < p->n; i++) {
        const struct key key = {p->name[i], KEY_SQUARE, {INK_NONE, p->ink[i], 0, 0, 0}};
        size_t line = i / per;
        (void)chart_key(c, LEFT + 15 + cell * (double)(i % per),
                        44 + KEY_LINE_H * (double)line, &key);
    }
}

static void energy_draw(struct canvas *c, const void *user)
{
    const struct json_value *report = user, *days = days_of(report);
    struct report_unit unit =
        report_unit_of(take_number(json_get(report, "totals"), "energy_j"));
    struct plot p = {.f = {.y_name = unit.name}};
    struct pieces pieces;
    double most = 0, j[PIECES];

    pieces_of(report, &pieces);
    for (size_t i = 0; i < json_count(days); i++)
        most = fmax(most, read_pieces(json_at(days, i), &pieces, j));
    p.f.y = axis_over(0, most * unit.scale, 5, false);
    plot_begin(c, report, HEAD + keys_height(report, canvas_width(c)), RIGHT, &p);
    canvas_text(c, LEFT, 22, ALIGN_LEFT, &head, "Energy by day");
    draw_keys(c, &pieces);
    for (size_t i = 0; i < p.n; i++) {
        (void)read_pieces(json_at(days, i), &pieces, j);
        for (size_t k = 0; k < pieces.n; k++)
            j[k] *= unit.scale;
        (void)chart_stack(c, &p.f.y, (struct box){left_of(&p, i), 0, p.bar, 0}, true, j,
                          pieces.ink, pieces.n);
    }
    draw_dates(c, &p, p.f.box.y + p.f.box.h);
}

/* ---- emissions and cost ---- */

/* The content of a picture of amounts. */
struct amounts {
    const char *title, *key, *covered, *unit;
    enum ink ink;
    double scale;
};

/* Emissions from this amount on are in kg. */
#define KG_FROM 10e3

static struct amounts emissions_of(const struct json_value *report)
{
    bool kg = take_number(json_get(report, "totals"), "co2_g") >= KG_FROM;

    return (struct amounts){"Emissions by day",        "co2_g",  "co2_covered",
                            kg ? "kg CO2e" : "g CO2e", INK_EDS2, kg ? 1e-3 : 1};
}

static struct amounts cost_of(const struct json_value *report)
{
    return (struct amounts){"Cost by day",   "money",
                            "money_covered", take_text(report, "money_currency"),
                            INK_EDS15,       1};
}

/* Draws diagonals in a box: no factor is known here. */
static void draw_hatch(struct canvas *c, struct box b)
{
    static const double GAP = 5;

    canvas_box(c, b, 0, pen_fill(INK_PANEL));
    for (unsigned i = 0; GAP * i < b.w + b.h; i++) {
        double x = b.x - b.h + GAP * i;
        double from = fmax(x, b.x), to = fmin(x + b.h, b.x + b.w);
        canvas_line(c, (struct spot){from, b.y + b.h - (from - x)},
                    (struct spot){to, b.y + b.h - (to - x)}, pen_line(INK_MUTED, 1));
    }
}

/* Below the plot: each day's share of the energy for which a factor was known. */
static void draw_coverage(struct canvas *c, const struct plot *p, const struct amounts *a)
{
    double y = p->f.box.y + p->f.box.h + LANE_AIR;

    draw_hatch(c, (struct box){p->f.box.x, y, p->f.box.w, LANE});
    for (size_t i = 0; i < p->n; i++) {
        double v = take_number(json_at(p->days, i), a->covered);
        double h = isnan(v) ? 0 : LANE * fmin(1, fmax(0, v));
        if (h > 0)
            canvas_box(c,
                       (struct box){p->f.box.x + p->step * (double)i, y + LANE - h,
                                    p->step + 0.4, h},
                       0, pen_fill(a->ink));
    }
    canvas_text(c, p->f.box.x - 8, y + LANE - 4, ALIGN_RIGHT, &small, "covered");
}

static struct axis amounts_axis(const struct json_value *days, const struct amounts *a)
{
    double least = 0, most = 0;

    for (size_t i = 0; i < json_count(days); i++) {
        double v = take_number(json_at(days, i), a->key) * a->scale;
        least = fmin(least, isnan(v) ? 0 : v);
        most = fmax(most, isnan(v) ? 0 : v);
    }
    return axis_over(least, most, 5, false);
}

/* lines: other figures are drawn above the bars. */
static void draw_amounts(struct canvas *c, const struct plot *p, const struct amounts *a,
                         bool lines)
{
    struct pen pen = {INK_NONE, a->ink, 0, 0, lines ? 0.55 : 1};
    double zero = axis_at(&p->f.y, 0);

    for (size_t i = 0; i < p->n; i++) {
        double v = take_number(json_at(p->days, i), a->key) * a->scale;
        if (isnan(v))
            continue;
        double at = axis_at(&p->f.y, v);
        canvas_box(c,
                   (struct box){left_of(p, i), fmin(at, zero), p->bar, fabs(at - zero)},
                   0, pen);
    }
    canvas_line(c, (struct spot){p->f.box.x, zero},
                (struct spot){p->f.box.x + p->f.box.w, zero}, pen_line(INK_AXIS, 1));
}

static double amounts_height(const struct json_value *report, const char *covered)
{
    const struct json_value *totals = json_get(report, "totals");

    if (json_count(days_of(report)) == 0 || !(take_number(totals, covered) > 0))
        return 0;
    return HEAD + KEY_LINE_H + PLOT + LANE_AIR + LANE + FOOT;
}

/* The title, and the part of the energy that the picture covers. */
static void draw_note(struct canvas *c, const struct json_value *report,
                      const struct amounts *a)
{
    double covered = take_number(json_get(report, "totals"), a->covered);
    double also = take_number(json_get(report, "totals"), "marginal_covered");
    bool all = covered >= 1, wide = canvas_width(c) >= NARROW;
    char text[160], marginal[40] = "";

    if (strcmp(a->key, "co2_g") == 0 && also > 0)
        (void)snprintf(marginal, sizeof marginal, ", marginal %.1f %%",
                       floor(1e3 * also + 1e-9) / 10);
    (void)snprintf(text, sizeof text, "%.1f %% of the energy covered%s%s",
                   floor(1e3 * covered + 1e-9) / 10, marginal,
                   all         ? ""
                   : wide      ? "; hatched below: energy without a known factor"
                   : *marginal ? ""
                               : "; hatched: no factor");
    canvas_text(c, LEFT, 22, ALIGN_LEFT, &head, a->title);
    canvas_text(c, LEFT, 44, ALIGN_LEFT, &small, text);
}

/* ---- the line of intensities ---- */

/* g/kWh of a day's covered energy; NaN: none was covered. */
static double intensity_of(const struct json_value *day, bool marginal)
{
    double g = take_number(day, marginal ? "marginal_g" : "co2_g");
    double kwh = take_number(day, "energy_j") / 3.6e6 *
                 take_number(day, marginal ? "marginal_covered" : "co2_covered");

    return kwh > 0 ? g / kwh : (double)NAN;
}

/* False: there is no such axis.  Its zero is that of the bars, if that is at the bottom.
 */
static bool intensity_axis(const struct plot *p, struct axis *ret)
{
    double least = 0, most = -INFINITY;

    for (size_t i = 0; i < 2 * p->n; i++) {
        double v = intensity_of(json_at(p->days, i / 2), i % 2);
        least = isnan(v) ? least : fmin(least, v);
        most = isnan(v) ? most : fmax(most, v);
    }
    if (!isfinite(most))
        return false;
    *ret = axis_over(least, fmax(most, least + 1), 5, false);
    ret->at_lo = p->f.box.y + p->f.box.h;
    ret->at_hi = p->f.box.y;
    return true;
}

static void draw_intensity(struct canvas *c, const struct plot *p, const struct axis *y,
                           bool marginal)
{
    struct pen pen = pen_line(marginal ? INK_EDP : INK_TEXT, 1.8);
    struct spot last = {NAN, NAN};

    pen.dash = marginal ? 4 : 0;
    for (size_t i = 0; i < p->n; i++) {
        double v = intensity_of(json_at(p->days, i), marginal);
        struct spot at = {p->f.box.x + p->step * ((double)i + 0.5), axis_at(y, v)};
        if (!isnan(v) && !isnan(last.y))
            canvas_line(c, last, at, pen);
        if (!isnan(v) && p->step > 12)
            canvas_circle(c, at, 2.5, pen_fill(pen.stroke));
        last = at;
    }
}

/* Numbers on the right, and the legend of the lines. */
static void draw_intensities(struct canvas *c, const struct json_value *report,
                             const struct plot *p, const struct amounts *a)
{
    const struct key keys[] = {
        {a->unit, KEY_SQUARE, {INK_NONE, a->ink, 0, 0, 0.55}},
        {"g/kWh", KEY_LINE, pen_line(INK_TEXT, 1.8)},
        {"marginal g/kWh", KEY_LINE, {INK_EDP, INK_NONE, 1.8, 4, 0}}};
    bool marginal = report_has_charge(report, "marginal_covered");
    double x = LEFT + 15, right = p->f.box.x + p->f.box.w + 8;
    struct axis y;
    char text[AXIS_TEXT];

    if (!intensity_axis(p, &y))
        return;
    for (unsigned i = 0; y.lo + y.step * i <= y.hi + y.step / 2; i++) {
        double v = y.lo + y.step * i;
        canvas_text(c, right, axis_at(&y, v) + 4, ALIGN_LEFT, &small,
                    axis_text(&y, v, text));
    }
    draw_intensity(c, p, &y, false);
    if (marginal)
        draw_intensity(c, p, &y, true);
    for (size_t i = 0; i < 2u + marginal; i++)
        x = chart_key(c, x + (i ? 30 : 0), 44 + KEY_LINE_H, &keys[i]) + 16;
}

static double emissions_height(const struct json_value *report, double width)
{
    (void)width;
    return amounts_height(report, "co2_covered");
}

static void emissions_draw(struct canvas *c, const void *user)
{
    const struct json_value *report = user;
    const struct amounts a = emissions_of(report);
    struct plot p = {.f = {.y = amounts_axis(days_of(report), &a), .y_name = a.unit}};

    plot_begin(c, report, HEAD + KEY_LINE_H, AXIS_RIGHT, &p);
    draw_note(c, report, &a);
    draw_amounts(c, &p, &a, true);
    draw_intensities(c, report, &p, &a);
    draw_coverage(c, &p, &a);
    draw_dates(c, &p, p.f.box.y + p.f.box.h + LANE_AIR + LANE);
}

static double cost_height(const struct json_value *report, double width)
{
    double h = amounts_height(report, "money_covered");

    (void)width;
    return h > 0 ? h - KEY_LINE_H : 0;
}

static void cost_draw(struct canvas *c, const void *user)
{
    const struct json_value *report = user;
    const struct amounts a = cost_of(report);
    struct plot p = {.f = {.y = amounts_axis(days_of(report), &a), .y_name = a.unit}};

    plot_begin(c, report, HEAD, RIGHT, &p);
    draw_note(c, report, &a);
    draw_amounts(c, &p, &a, false);
    draw_coverage(c, &p, &a);
    draw_dates(c, &p, p.f.box.y + p.f.box.h + LANE_AIR + LANE);
}

const struct report_picture report_days_pictures[REPORT_DAYS] = {
    {"Energy by day", energy_height, energy_draw},
    {"Emissions by day, their intensity, and how much of the energy is covered",
     emissions_height, emissions_draw},
    {"Cost by day, and how much of the energy is covered", cost_height, cost_draw},
};
