/* The pictures of a report: energy by day, who used it, caps over time. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/auto.h"
#include "cli/plot.h"
#include "cli/report.h"
#include "cli/take.h"
#include "cli/view.h"

enum { LEFT = 64, RIGHT = 16, TOP = 64, NARROW = 600, BARS = 12, BAR = 26 };

static const struct {
    const char *key, *name;
    enum ink ink;
} parts[] = {
    {"attributed_j", "to jobs", INK_ENERGY},
    {"unattributed_j", "unattributed", INK_EDS15},
    {"idle_j", "idle", INK_AXIS},
};

static void put_title(struct canvas *c, const char *title, const char *note)
{
    canvas_text(c, (struct spot){LEFT, 22}, title,
                &(struct type){16, INK_TEXT, ALIGN_LEFT, true, false});
    canvas_text(c, (struct spot){LEFT, 44}, note,
                &(struct type){12, INK_MUTED, ALIGN_LEFT, false, false});
}

/* ---- energy by day ---- */

static double days_height(const struct json_value *report, double width)
{
    if (json_count(json_get(report, "days")) == 0)
        return 0;
    return width < NARROW ? 300 : 340;
}

static double day_sum(const struct json_value *day)
{
    double sum = 0;

    for (size_t k = 0; k < n_elements(parts); k++)
        sum += fmax(0, take_number(day, parts[k].key));
    return sum;
}

/* Squares with their names, in a row. */
static void put_key(struct canvas *c)
{
    double x = LEFT;

    for (size_t k = 0; k < n_elements(parts); k++) {
        canvas_box(c, (struct box){x, 35, 10, 10}, 2,
                   &(struct pen){INK_NONE, parts[k].ink, 0, 0, 0});
        canvas_text(c, (struct spot){x + 15, 44}, parts[k].name,
                    &(struct type){12, INK_MUTED, ALIGN_LEFT, false, false});
        x += 15 + canvas_text_width(c, parts[k].name, 12, false) + 18;
    }
}

static void put_day(struct canvas *c, const struct json_value *day, struct box bar,
                    const struct axis *y, double scale)
{
    double sum = 0;

    for (size_t k = 0; k < n_elements(parts); k++) {
        double v = fmax(0, take_number(day, parts[k].key)) * scale;
        double bottom = axis_at(y, sum), top = axis_at(y, sum + v);
        sum += v;
        if (bottom - top > 0)
            canvas_box(c, (struct box){bar.x, top, bar.w, bottom - top}, 0,
                       &(struct pen){INK_NONE, parts[k].ink, 0, 0, 0});
    }
}

/* Names of days below, as many as there is room for. */
static void put_dates(struct canvas *c, const struct json_value *days, double x0,
                      double step, double y)
{
    size_t n = json_count(days), every = (size_t)ceil(52 / step);

    for (size_t i = 0; i < n; i += every) {
        const char *day = take_text(json_at(days, i), "day");
        canvas_text(c, (struct spot){x0 + step * ((double)i + 0.5), y},
                    strlen(day) == 10 ? day + 5 : day,
                    &(struct type){12, INK_MUTED, ALIGN_MIDDLE, false, false});
    }
}

static void days_draw(struct canvas *c, const struct json_value *report, double width)
{
    const struct json_value *days = json_get(report, "days");
    struct report_unit unit = report_unit(report);
    size_t n = json_count(days);
    double most = 0, height = days_height(report, width);

    for (size_t i = 0; i < n; i++)
        most = fmax(most, day_sum(json_at(days, i)));
    struct frame f = {
        .box = {LEFT, TOP, width - LEFT - RIGHT, height - TOP - 36},
        .x = {.lo = 0, .hi = (double)n, .step = 2.0 * (double)n + 1}, /* no ticks */
        .y = axis_over(0, most * unit.scale, 5, false),
        .y_name = unit.name,
    };
    frame_draw(c, &f);
    put_title(c, "Energy by day", "");
    put_key(c);
    double step = f.box.w / (double)n, air = step > 6 ? step * 0.14 : 0;
    for (size_t i = 0; i < n; i++)
        put_day(c, json_at(days, i),
                (struct box){f.box.x + step * (double)i + air, 0, step - 2 * air, 0},
                &f.y, unit.scale);
    put_dates(c, days, f.box.x, step, f.box.y + f.box.h + 20);
}

/* ---- who used it ---- */

static size_t bars_of(const struct json_value *report)
{
    size_t n = json_count(json_get(report, "rows"));
    return n < BARS ? n : BARS;
}

static double bars_height(const struct json_value *report, double width)
{
    (void)width;
    if (bars_of(report) == 0 || strcmp(take_text(report, "by"), "day") == 0)
        return 0;
    return TOP + (double)bars_of(report) * BAR + 12;
}

static void put_bar(struct canvas *c, const struct json_value *report, size_t i,
                    double most, struct box bar)
{
    const struct json_value *row = json_at(json_get(report, "rows"), i);
    char name[64], text[REPORT_TEXT], figure[REPORT_TEXT + 64], saved[REPORT_TEXT];
    struct report_unit unit = report_unit(report);
    double x = bar.x, j = take_number(row, "energy_j");
    bool whole = report_has_parts(report);

    report_name(report, row, name, bar.x < 200 ? 22 : 32);
    canvas_text(c, (struct spot){bar.x - 8, bar.y + 17}, name,
                &(struct type){12, INK_TEXT, ALIGN_RIGHT, false, false});
    for (size_t k = 0; k < (whole ? n_elements(parts) : 1); k++) {
        double v = whole ? take_number(row, parts[k].key) : j;
        double w = most > 0 ? fmax(0, v) / most * bar.w : 0;
        canvas_box(c, (struct box){x, bar.y + 4, w, BAR - 8}, whole ? 0 : 2,
                   &(struct pen){INK_NONE, parts[k].ink, 0, 0, 0});
        x += w;
    }
    (void)snprintf(figure, sizeof figure, "%s %s", report_energy(j, unit, text),
                   unit.name);
    if (bar.x >= 200 && !isnan(take_number(row, "saved"))) /* room for it */
        (void)snprintf(figure + strlen(figure), sizeof figure - strlen(figure),
                       ", saved %s", report_saved(row, saved));
    canvas_text(c, (struct spot){x + 6, bar.y + 17}, figure,
                &(struct type){12, INK_MUTED, ALIGN_LEFT, false, false});
}

static void bars_draw(struct canvas *c, const struct json_value *report, double width)
{
    const struct json_value *rows = json_get(report, "rows");
    double left = width < NARROW ? 150 : 230, most = 0, room = width < NARROW ? 90 : 220;
    size_t n = bars_of(report);
    char title[200], note[80] = "";

    for (size_t i = 0; i < n; i++)
        most = fmax(most, take_number(json_at(rows, i), "energy_j"));
    view_label(take_text(report, "label"), note, sizeof note);
    (void)snprintf(title, sizeof title, "Energy by %s %s", report_by(report), note);
    note[0] = '\0';
    if (json_count(rows) > n)
        (void)snprintf(note, sizeof note, "the %zu that used most, of %zu", n,
                       json_count(rows));
    put_title(c, title, note);
    if (report_has_parts(report))
        put_key(c);
    for (size_t i = 0; i < n; i++)
        put_bar(c, report, i, most,
                (struct box){left, TOP + (double)i * BAR, width - left - room, BAR});
}

/* ---- caps over time ---- */

enum { STRIP = 66, STRIPS = 16, STRIP_AIR = 16 };

static size_t strips_of(const struct json_value *report)
{
    size_t n = json_count(json_get(report, "caps"));
    return n < STRIPS ? n : STRIPS;
}

/* Item i of a point [seconds, mean, least, most]. */
static double point_at(const struct json_value *point, size_t i)
{
    uint64_t v = 0;

    return json_as_u64(json_at(point, i), &v) ? (double)v : (double)NAN;
}

struct span {
    double from, to, least, most; /* seconds, W */
};

/* False: there are no caps, or at no time that a calendar has. */
static bool caps_span(const struct json_value *report, struct span *ret)
{
    static const double LAST_S = 253402300800.0; /* the year 10000 */
    const struct json_value *caps = json_get(report, "caps");
    struct span s = {INFINITY, -INFINITY, INFINITY, -INFINITY};

    for (size_t k = 0; k < json_count(caps); k++) {
        const struct json_value *points = json_get(json_at(caps, k), "points");
        for (size_t i = 0; i < json_count(points); i++) {
            const struct json_value *p = json_at(points, i);
            s.from = fmin(s.from, point_at(p, 0));
            s.to = fmax(s.to, point_at(p, 0));
            s.least = fmin(s.least, point_at(p, 2) / 1000);
            s.most = fmax(s.most, point_at(p, 3) / 1000);
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

/* One board: a band from least to most, the mean as a line; gaps stay gaps. */
static void put_strip(struct canvas *c, const struct json_value *board,
                      const struct frame *f, double piece_s)
{
    const struct json_value *points = json_get(board, "points");
    const struct pen band = {INK_NONE, INK_ENERGY, 0, 0, 0.25};
    const struct pen line = {INK_ENERGY, INK_NONE, 1.8, 0, 0};
    struct spot last = {0, 0};
    double until = -INFINITY;

    for (size_t i = 0; i < json_count(points); i++) {
        const struct json_value *p = json_at(points, i);
        double s = point_at(p, 0), w = point_at(p, 1) / 1000;
        double low = point_at(p, 2) / 1000, high = point_at(p, 3) / 1000;
        if (isnan(s) || isnan(w) || isnan(low) || isnan(high))
            continue;
        struct spot a = frame_spot(f, s, w), b = frame_spot(f, s + piece_s, w);
        double top = frame_spot(f, s, high).y, bottom = frame_spot(f, s, low).y;
        if (bottom - top > 1)
            canvas_box(c, (struct box){a.x, top, b.x - a.x, bottom - top}, 0, &band);
        if (s <= until + piece_s * 0.01)
            canvas_line(c, last, a, &line);
        canvas_line(c, a, b, &line);
        last = b;
        until = s + piece_s;
    }
}

static void put_times(struct canvas *c, const struct span *s, struct box box)
{
    unsigned n = box.w < NARROW ? 3 : 6;
    bool hours = s->to - s->from < 3 * 86400;

    for (unsigned i = 0; i <= n; i++) {
        double at = s->from + (s->to - s->from) * i / n;
        time_t t = (time_t)at;
        struct tm tm;
        char text[32];
        enum align align = i == 0 ? ALIGN_LEFT : i == n ? ALIGN_RIGHT : ALIGN_MIDDLE;
        if (!gmtime_r(&t, &tm) ||
            !strftime(text, sizeof text, hours ? "%m-%d %H:%M" : "%m-%d", &tm))
            continue;
        canvas_text(c, (struct spot){box.x + box.w * i / n, box.y + box.h + 18}, text,
                    &(struct type){12, INK_MUTED, align, false, false});
    }
}

static void caps_draw(struct canvas *c, const struct json_value *report, double width)
{
    const struct json_value *caps = json_get(report, "caps");
    struct span s;
    double piece_s = take_number(report, "caps_piece_s");
    struct box box = {LEFT + 24, TOP, width - LEFT - 24 - RIGHT, STRIP - STRIP_AIR};
    char text[64];

    if (!caps_span(report, &s))
        return;
    (void)snprintf(text, sizeof text, "W, %s; the band is from least to most",
                   piece_s >= 3600 ? "means of hours" : "means of minutes");
    put_title(c, "Caps in force over time (UTC)", text);
    for (size_t i = 0; i < strips_of(report); i++) {
        const struct json_value *board = json_at(caps, i);
        struct axis y = axis_over(fmin(s.least, s.most - 1), s.most, 2, false);
        struct frame f = {.box = box,
                          .x = {.lo = s.from, .hi = s.to, .step = 2 * (s.to - s.from)},
                          .y = y};
        f.box.y = TOP + (double)i * STRIP;
        f.x.lo -= 1; /* the one tick, at 0 s, is outside */
        frame_draw(c, &f);
        (void)snprintf(text, sizeof text, "GPU %llu",
                       (unsigned long long)take_u64(board, "gpu"));
        canvas_text(c, (struct spot){8, f.box.y + (STRIP - STRIP_AIR) / 2.0 + 4}, text,
                    &(struct type){12, INK_TEXT, ALIGN_LEFT, true, false});
        put_strip(c, board, &f, piece_s);
        box.y = f.box.y;
    }
    put_times(c, &s, box);
}

const struct report_picture report_pictures[REPORT_PICTURES] = {
    {"Energy by day", days_height, days_draw},
    {"Who used it", bars_height, bars_draw},
    {"Caps over time", caps_height, caps_draw},
};
