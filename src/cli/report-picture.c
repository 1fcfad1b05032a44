/* The pictures of a report: energy by row, caps over time; the list of all. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/auto.h"
#include "chart/chart.h"
#include "cli/report.h"
#include "cli/take.h"
#include "cli/view.h"

enum { LEFT = 72, RIGHT = 16, TOP = 64, NARROW = 600, BARS = 12, BAR = 26 };
enum { PARTS = 3 };

static const char *const part_keys[PARTS] = {"attributed_j", "unattributed_j", "idle_j"};
static const struct key parts[PARTS] = {
    {"to jobs", KEY_SQUARE, {INK_NONE, INK_ENERGY, 0, 0, 0}},
    {"unattributed", KEY_SQUARE, {INK_NONE, INK_EDS15, 0, 0, 0}},
    {"idle", KEY_SQUARE, {INK_NONE, INK_AXIS, 0, 0, 0}},
};
static const enum ink part_inks[PARTS] = {INK_ENERGY, INK_EDS15, INK_AXIS};
static const struct type small = {12, INK_MUTED, false},
                         name_type = {12, INK_TEXT, false};

static void draw_title(struct canvas *c, const char *title, const char *note, bool keys)
{
    static const struct type head = {16, INK_TEXT, true};
    double x = LEFT;

    canvas_text(c, LEFT, 22, ALIGN_LEFT, &head, title);
    canvas_text(c, LEFT, 44, ALIGN_LEFT, &small, note);
    for (size_t k = 0; keys && k < PARTS; k++)
        x = chart_key(c, x + 15, 44, &parts[k]) + 18;
}

/* The three parts of a row in J; returns their sum. */
static double parts_of(const struct json_value *row, double ret[PARTS])
{
    double sum = 0;

    for (size_t k = 0; k < PARTS; k++) {
        ret[k] = fmax(0, take_number(row, part_keys[k]));
        sum += ret[k];
    }
    return sum;
}

/* ---- energy by row ---- */

static size_t bars_of(const struct json_value *report)
{
    size_t n = json_count(json_get(report, "rows"));

    return n < BARS ? n : BARS;
}

static double bars_height(const struct json_value *report, double width)
{
    (void)width;
    if (bars_of(report) == 0 || strstr(take_text(report, "by"), "day"))
        return 0;
    return TOP + (double)bars_of(report) * BAR + 12;
}

static void draw_bar(struct canvas *c, const struct json_value *report,
                     const struct axis *x, size_t i)
{
    const struct json_value *row = json_at(json_get(report, "rows"), i);
    char name[64], text[REPORT_TEXT], figure[2 * REPORT_TEXT + 64], saved[REPORT_TEXT];
    double y = TOP + (double)i * BAR, e = take_number(row, "energy_j"), j[PARTS] = {e};
    struct report_unit unit = report_unit(report);
    bool whole = report_has_parts(report), wide = canvas_width(c) >= NARROW;

    if (whole)
        (void)parts_of(row, j);
    report_row_name(report, row, name, wide ? 32 : 22);
    canvas_text(c, x->at_lo - 8, y + 17, ALIGN_RIGHT, &name_type, name);
    double end = chart_stack(c, x, (struct box){0, y + 4, 0, BAR - 8}, false, j,
                             part_inks, whole ? PARTS : 1);
    bool with_saved = wide && !isnan(take_number(row, "saved"));
    (void)snprintf(figure, sizeof figure, "%s %s%s%s", report_energy(e, unit, text),
                   unit.name, with_saved ? ", saved " : "",
                   with_saved ? report_saved(row, saved) : "");
    canvas_text(c, end + 6, y + 17, ALIGN_LEFT, &small, figure);
}

static void bars_draw(struct canvas *c, const void *user)
{
    const struct json_value *report = user, *rows = json_get(report, "rows");
    double width = canvas_width(c), most = 0;
    struct axis x = {.at_lo = width < NARROW ? 150 : 230,
                     .at_hi = width - (width < NARROW ? 90 : 220)};
    size_t n = bars_of(report);
    char title[200], by[REPORT_TEXT], note[80] = "";

    for (size_t i = 0; i < n; i++)
        most = fmax(most, take_number(json_at(rows, i), "energy_j"));
    x.hi = most > 0 ? most : 1;
    report_by(report, by);
    (void)snprintf(title, sizeof title, "Energy by %s", by);
    if (json_count(rows) > n)
        (void)snprintf(note, sizeof note, "the %zu that used most, of %zu", n,
                       json_count(rows));
    draw_title(c, title, note, report_has_parts(report));
    for (size_t i = 0; i < n; i++)
        draw_bar(c, report, &x, i);
}

/* ---- caps over time ---- */

enum { STRIP = 66, STRIPS = 16, STRIP_AIR = 16 };

static size_t strips_of(const struct json_value *report)
{
    size_t n = json_count(json_get(report, "caps"));

    return n < STRIPS ? n : STRIPS;
}

/* Reads [seconds, mean, least, most], the latter three in mW.  False: one of them is
 * unknown.
 */
static bool point_of(const struct json_value *point, double ret[4])
{
    for (size_t i = 0; i < 4; i++) {
        uint64_t v = 0;
        if (!json_as_u64(json_at(point, i), &v))
            return false;
        ret[i] = i == 0 ? (double)v : (double)v / 1000;
    }
    return true;
}

struct span {
    double from, to, least, most; /* seconds, W */
};

/* False: no caps, or times outside the calendar. */
static bool caps_span(const struct json_value *report, struct span *ret)
{
    static const double LAST_S = 253402300800.0; /* the year 10000 */
    const struct json_value *caps = json_get(report, "caps");
    struct span s = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    double p[4];

    for (size_t k = 0; k < json_count(caps); k++) {
        const struct json_value *points = json_get(json_at(caps, k), "points");
        for (size_t i = 0; i < json_count(points); i++) {
            if (!point_of(json_at(points, i), p))
                continue;
            s.from = fmin(s.from, p[0]);
            s.to = fmax(s.to, p[0]);
            s.least = fmin(s.least, p[2]);
            s.most = fmax(s.most, p[3]);
        }
    }
    s.to += take_number(report, "caps_piece_s");
    *ret = s;
    return isfinite(s.least) && isfinite(s.most) && s.from < s.to && s.to < LAST_S;
}

static double caps_height(const struct json_value *report, double width)
{
    struct span s;

    (void)width;
    return caps_span(report, &s) ? TOP + (double)strips_of(report) * STRIP + 16 : 0;
}

/* Draws one board: a band from least to most, the mean as a line, gaps as gaps. */
static void draw_strip(struct canvas *c, const struct json_value *board,
                       const struct frame *f, double piece_s)
{
    const struct json_value *points = json_get(board, "points");
    const struct pen band = {INK_NONE, INK_ENERGY, 0, 0, 0.25};
    double until = -INFINITY, p[4];
    struct spot last = {0, 0};

    for (size_t i = 0; i < json_count(points); i++) {
        if (!point_of(json_at(points, i), p))
            continue;
        struct spot a = frame_spot(f, p[0], p[1]),
                    b = frame_spot(f, p[0] + piece_s, p[1]);
        double top = axis_at(&f->y, p[3]), bottom = axis_at(&f->y, p[2]);
        if (bottom - top > 1)
            canvas_box(c, (struct box){a.x, top, b.x - a.x, bottom - top}, 0, band);
        if (p[0] <= until + piece_s * 0.01)
            canvas_line(c, last, a, pen_line(INK_ENERGY, 1.8));
        canvas_line(c, a, b, pen_line(INK_ENERGY, 1.8));
        last = b;
        until = p[0] + piece_s;
    }
}

/* With the precision that n labels of this interval need to differ. */
static size_t put_time(char *ret, size_t size, double span_s, unsigned n,
                       const struct tm *tm)
{
    if (span_s < 60.0 * n)
        return strftime(ret, size, "%H:%M:%S", tm);
    if (span_s < 3 * 86400.0)
        return strftime(ret, size, "%m-%d %H:%M", tm);
    return strftime(ret, size, "%m-%d", tm);
}

static void draw_times(struct canvas *c, const struct span *s, struct box box)
{
    unsigned n = box.w < NARROW ? 2 : 6;
    for (unsigned i = 0; i <= n; i++) {
        time_t t = (time_t)(s->from + (s->to - s->from) * i / n);
        enum align align = i == 0 ? ALIGN_LEFT : i == n ? ALIGN_RIGHT : ALIGN_MIDDLE;
        struct tm tm;
        char text[32];
        if (gmtime_r(&t, &tm) && put_time(text, sizeof text, s->to - s->from, n, &tm))
            canvas_text(c, box.x + box.w * i / n, box.y + box.h + 18, align, &small,
                        text);
    }
}

static void caps_draw(struct canvas *c, const void *user)
{
    static const struct type name = {12, INK_TEXT, true};
    const struct json_value *report = user, *caps = json_get(report, "caps");
    double piece_s = take_number(report, "caps_piece_s");
    struct span s;
    char text[64];

    if (!caps_span(report, &s))
        return;
    (void)snprintf(text, sizeof text, "W, %s; the band is from least to most",
                   piece_s >= 3600 ? "means of hours" : "means of minutes");
    draw_title(c, "Caps in force over time (UTC)", text, false);
    struct frame f = {
        .box = {LEFT + 24, TOP, canvas_width(c) - LEFT - 24 - RIGHT, STRIP - STRIP_AIR},
        .x = {.lo = s.from, .hi = s.to},
        .y = axis_over(fmin(s.least, s.most - 1), s.most, 2, false)};
    for (size_t i = 0; i < strips_of(report); i++) {
        const struct json_value *board = json_at(caps, i);
        f.box.y = TOP + (double)i * STRIP;
        frame_draw(c, &f);
        (void)snprintf(text, sizeof text, "GPU %llu",
                       (unsigned long long)take_u64(board, "gpu"));
        canvas_text(c, 8, f.box.y + f.box.h / 2 + 4, ALIGN_LEFT, &name, text);
        draw_strip(c, board, &f, piece_s);
    }
    draw_times(c, &s, f.box);
}

static const struct report_picture bars = {"Who used it", bars_height, bars_draw},
                                   strips = {"Caps over time", caps_height, caps_draw};

const struct report_picture *report_picture(size_t i)
{
    const struct report_picture *const all[] = {
        &report_days_pictures[0], &bars,
        &report_days_pictures[1], &report_days_pictures[2],
        &report_saved_picture,    &strips};

    return i < n_elements(all) ? all[i] : NULL;
}
