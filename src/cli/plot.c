#include "cli/plot.h"

#include <math.h>
#include <stdio.h>

enum { TICKS_MAX = 1000 };

/* 1, 2 or 5 times a power of ten, so that span holds about n. */
static double nice_step(double span, unsigned n)
{
    double raw = span / n, unit = pow(10, floor(log10(raw))), f = raw / unit;

    return unit * (f < 1.5 ? 1 : f < 3.5 ? 2 : f < 7.5 ? 5 : 10);
}

struct axis axis_over(double lo, double hi, unsigned ticks, bool loose)
{
    struct axis a = {.lo = lo, .hi = hi};

    if (!(hi > lo)) {
        double pad = lo != 0 ? fabs(lo) * 0.05 : 1; /* NOLINT */
        a.lo = lo - pad;
        a.hi = lo + pad;
    }
    a.step = nice_step(a.hi - a.lo, ticks);
    if (!loose) {
        a.lo = floor(a.lo / a.step + 1e-9) * a.step;
        a.hi = ceil(a.hi / a.step - 1e-9) * a.step;
    }
    return a;
}

double axis_at(const struct axis *a, double value)
{
    return a->at_lo + (value - a->lo) / (a->hi - a->lo) * (a->at_hi - a->at_lo);
}

struct spot frame_spot(const struct frame *f, double x, double y)
{
    return (struct spot){axis_at(&f->x, x), axis_at(&f->y, y)};
}

static int decimals(double step)
{
    int n = (int)ceil(-log10(step) - 1e-9);
    return n > 0 ? n : 0;
}

static double tick(const struct axis *a, int i)
{
    return (ceil(a->lo / a->step - 1e-6) + i) * a->step;
}

/* None where the axis is none: its figures are not finite, or its step is lost in them.
 */
static int n_ticks(const struct axis *a)
{
    double n = floor((a->hi - tick(a, 0)) / a->step + 1e-6) + 1;

    return n > 0 && n <= TICKS_MAX ? (int)n : 0;
}

static void x_ticks(struct canvas *c, const struct frame *f)
{
    static const struct pen grid = {INK_GRID, INK_NONE, 1, 0, 0};
    double bottom = f->box.y + f->box.h;
    char text[32];

    for (int i = 0; i < n_ticks(&f->x); i++) {
        double v = tick(&f->x, i), x = axis_at(&f->x, v);
        canvas_line(c, (struct spot){x, f->box.y}, (struct spot){x, bottom}, &grid);
        if (!f->x_ticks)
            continue;
        (void)snprintf(text, sizeof text, "%.*f", decimals(f->x.step), v);
        canvas_text(c, (struct spot){x, bottom + 18}, text,
                    &(struct type){12, INK_MUTED, ALIGN_MIDDLE, false, false});
    }
}

static void y_ticks(struct canvas *c, const struct frame *f)
{
    static const struct pen grid = {INK_GRID, INK_NONE, 1, 0, 0};
    char text[32];

    for (int i = 0; i < n_ticks(&f->y); i++) {
        double v = tick(&f->y, i), y = axis_at(&f->y, v);
        canvas_line(c, (struct spot){f->box.x, y}, (struct spot){f->box.x + f->box.w, y},
                    &grid);
        (void)snprintf(text, sizeof text, "%.*f", decimals(f->y.step), v);
        canvas_text(c, (struct spot){f->box.x - 8, y + 4}, text,
                    &(struct type){12, INK_MUTED, ALIGN_RIGHT, false, false});
    }
}

void frame_draw(struct canvas *c, struct frame *f)
{
    static const struct pen panel = {INK_NONE, INK_PANEL, 0, 0, 0};
    static const struct pen edge = {INK_AXIS, INK_NONE, 1, 0, 0};
    struct box b = f->box;

    f->x.at_lo = b.x;
    f->x.at_hi = b.x + b.w;
    f->y.at_lo = b.y + b.h;
    f->y.at_hi = b.y;
    canvas_box(c, b, 0, &panel);
    x_ticks(c, f);
    y_ticks(c, f);
    canvas_path(c, (struct spot[]){{b.x, b.y}, {b.x, b.y + b.h}, {b.x + b.w, b.y + b.h}},
                3, false, &edge);
    if (f->title) {
        canvas_text(c, (struct spot){b.x, b.y - 12}, f->title,
                    &(struct type){15, INK_TEXT, ALIGN_LEFT, true, false});
        double w = canvas_text_width(c, f->title, 15, true);
        if (f->note)
            canvas_text(c, (struct spot){b.x + w + 12, b.y - 12}, f->note,
                        &(struct type){12, INK_MUTED, ALIGN_LEFT, false, false});
    }
    if (f->x_name)
        canvas_text(c, (struct spot){b.x + b.w / 2, b.y + b.h + 40}, f->x_name,
                    &(struct type){13, INK_TEXT, ALIGN_MIDDLE, false, false});
    if (f->y_name)
        canvas_text(c, (struct spot){b.x - 54, b.y + b.h / 2}, f->y_name,
                    &(struct type){13, INK_TEXT, ALIGN_MIDDLE, false, true});
}

void mark_draw(struct canvas *c, enum mark mark, struct spot at, double size,
               enum ink ink)
{
    struct pen pen = {INK_PAPER, ink, 1.5, 0, 0};
    double s = size, d = size * 1.3, x = at.x, y = at.y;

    switch (mark) {
    case MARK_CIRCLE:
        canvas_circle(c, at, s, &pen);
        break;
    case MARK_SQUARE:
        canvas_box(c, (struct box){x - s * 0.9, y - s * 0.9, s * 1.8, s * 1.8}, 0, &pen);
        break;
    case MARK_TRIANGLE:
        canvas_path(c,
                    (struct spot[]){
                        {x, y - d * 0.95}, {x + d, y + s * 0.8}, {x - d, y + s * 0.8}},
                    3, true, &pen);
        break;
    case MARK_DIAMOND:
        canvas_path(c, (struct spot[]){{x, y - d}, {x + d, y}, {x, y + d}, {x - d, y}}, 4,
                    true, &pen);
        break;
    case MARK_RING:
    default:
        canvas_circle(c, at, s, &(struct pen){ink, INK_PAPER, 2.5, 0, 0});
    }
}

void bar_draw(struct canvas *c, struct spot at, double half, bool horizontal,
              enum ink ink)
{
    struct pen pen = {ink, INK_NONE, 1.2, 0, 0.8};
    double dx = horizontal ? half : 0, dy = horizontal ? 0 : half;
    double ex = horizontal ? 0 : 3, ey = horizontal ? 3 : 0;

    if (half < 1)
        return;
    canvas_line(c, (struct spot){at.x - dx, at.y - dy},
                (struct spot){at.x + dx, at.y + dy}, &pen);
    for (int side = -1; side <= 1; side += 2) {
        double x = at.x + side * dx, y = at.y + side * dy;
        canvas_line(c, (struct spot){x - ex, y - ey}, (struct spot){x + ex, y + ey},
                    &pen);
    }
}
