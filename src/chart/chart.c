#include "chart/chart.h"

#include <math.h>

#include "base/auto.h"

enum { TICKS_MAX = 1000 };
/* Ends with a smaller relative difference are equal: rounding errors of sums. */
static const double SAME = 1e-9;

static const struct type small = {12, INK_MUTED, false};

/* ---- axes and frames ---- */

struct axis axis_over(double lo, double hi, unsigned ticks, bool exact)
{
    struct axis a = {.lo = lo, .hi = hi};

    if (!(hi - lo > SAME * fmax(fabs(lo), fabs(hi)))) {
        double pad = lo != 0 ? fabs(lo) * 0.05 : 1; /* NOLINT */
        a.lo = lo - pad;
        a.hi = lo + pad;
    }
    double raw = (a.hi - a.lo) / ticks, unit = pow(10, floor(log10(raw))), f = raw / unit;
    a.step = unit * (f < 1.5 ? 1 : f < 3.5 ? 2 : f < 7.5 ? 5 : 10);
    if (!exact) {
        a.lo = floor(a.lo / a.step + 1e-9) * a.step;
        a.hi = ceil(a.hi / a.step - 1e-9) * a.step;
    }
    return a;
}

double axis_at(const struct axis *a, double value)
{
    return a->at_lo + (value - a->lo) / (a->hi - a->lo) * (a->at_hi - a->at_lo);
}

/* The decimal exponent of v > 0. */
static int exponent_of(double v)
{
    return (int)floor(log10(v) + 1e-9);
}

const char *axis_text(const struct axis *a, double value, char ret[AXIS_TEXT])
{
    static const double least = 1e-6, most = 1e7; /* range that is written out */
    double v = fabs(value) < a->step / 2 ? 0 : value;
    int last = exponent_of(a->step);

    if (a->step >= least && fmax(fabs(a->lo), fabs(a->hi)) < most)
        (void)snprintf(ret, AXIS_TEXT, "%.*f", last < 0 ? -last : 0, v);
    else
        (void)snprintf(ret, AXIS_TEXT, "%.*g",
                       v != 0 ? exponent_of(fabs(v)) - last + 1 : 1, v);
    return ret;
}

struct spot frame_spot(const struct frame *f, double x, double y)
{
    return (struct spot){axis_at(&f->x, x), axis_at(&f->y, y)};
}

/* Grid and numbers of one axis.  An axis whose values are not finite, or whose step is
 * lost in them, has no ticks.
 */
static void draw_ticks(struct canvas *c, const struct frame *f, bool is_x)
{
    const struct axis *a = is_x ? &f->x : &f->y;
    const struct box b = f->box;
    double first = ceil(a->lo / a->step - 1e-6);
    double n = floor((a->hi - first * a->step) / a->step + 1e-6) + 1;
    char text[AXIS_TEXT];

    if (!(a->step > 0 && n > 0 && n <= TICKS_MAX))
        return;
    for (int i = 0; i < (int)n; i++) {
        double v = (first + i) * a->step, at = axis_at(a, v);
        struct spot from = {is_x ? at : b.x, is_x ? b.y : at};
        struct spot to = {is_x ? at : b.x + b.w, is_x ? b.y + b.h : at};
        canvas_line(c, from, to, pen_line(INK_GRID, 1));
        if (!is_x)
            canvas_text(c, b.x - 8, at + 4, ALIGN_RIGHT, &small, axis_text(a, v, text));
        else if (f->x_ticks)
            canvas_text(c, at, b.y + b.h + 18, ALIGN_MIDDLE, &small,
                        axis_text(a, v, text));
    }
}

void frame_draw(struct canvas *c, struct frame *f)
{
    static const struct type title = {15, INK_TEXT, true}, name = {13, INK_TEXT, false};
    struct labels *l = canvas_labels(c);
    struct box b = f->box;

    l->n = 0;
    l->bounds = (struct box){b.x + 3, b.y + 3, b.w - 6, b.h - 6};
    f->x.at_lo = b.x;
    f->x.at_hi = b.x + b.w;
    f->y.at_lo = b.y + b.h;
    f->y.at_hi = b.y;
    canvas_box(c, b, 0, pen_fill(INK_PANEL));
    draw_ticks(c, f, true);
    draw_ticks(c, f, false);
    canvas_to(c, (struct spot){b.x, b.y});
    canvas_to(c, (struct spot){b.x, b.y + b.h});
    canvas_to(c, (struct spot){b.x + b.w, b.y + b.h});
    canvas_stroke(c, false, pen_line(INK_AXIS, 1));
    if (f->title)
        canvas_text(c, b.x, b.y - 12, ALIGN_LEFT, &title, f->title);
    if (f->note)
        canvas_text(c, b.x + canvas_text_width(c, &title, f->title) + 12, b.y - 12,
                    ALIGN_LEFT, &small, f->note);
    if (f->x_name)
        canvas_text(c, b.x + b.w / 2, b.y + b.h + 40, ALIGN_MIDDLE, &name, f->x_name);
    if (f->y_name)
        canvas_text(c, b.x - 54, b.y + b.h / 2, ALIGN_UPWARD, &name, f->y_name);
}

/* ---- series, marks, legends ---- */

static void draw_shape(struct canvas *c, struct spot at, double size,
                       const struct spot *corners, size_t n, struct pen pen)
{
    for (size_t i = 0; i < n; i++)
        canvas_to(c,
                  (struct spot){at.x + size * corners[i].x, at.y + size * corners[i].y});
    canvas_stroke(c, true, pen);
}

void mark_draw(struct canvas *c, enum mark mark, struct spot at, double size,
               enum ink ink)
{
    static const struct spot triangle[] = {{0, -1.235}, {1.3, 0.8}, {-1.3, 0.8}};
    static const struct spot diamond[] = {{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}};
    static const struct spot pentagon[] = {
        {0, -1.2}, {1.14, -0.37}, {0.71, 0.97}, {-0.71, 0.97}, {-1.14, -0.37}};
    struct pen pen = {INK_PAPER, ink, 1.5, 0, 0}; /* the rim separates the mark */
    double s = size;

    if (mark == MARK_CIRCLE)
        canvas_circle(c, at, s, pen);
    else if (mark == MARK_RING)
        canvas_circle(c, at, s, (struct pen){ink, INK_PAPER, 2.5, 0, 0});
    else if (mark == MARK_SQUARE)
        canvas_box(c, (struct box){at.x - s * 0.9, at.y - s * 0.9, s * 1.8, s * 1.8}, 0,
                   pen);
    else if (mark == MARK_TRIANGLE)
        draw_shape(c, at, s, triangle, n_elements(triangle), pen);
    else if (mark == MARK_DIAMOND)
        draw_shape(c, at, s, diamond, n_elements(diamond), pen);
    else
        draw_shape(c, at, s, pentagon, n_elements(pentagon), pen);
}

/* One end of a bar, in the direction (dx, dy): a stroke across it, or an arrow where the
 * bar goes on.
 */
static void draw_end(struct canvas *c, struct spot end, double dx, double dy, bool on,
                     struct pen pen)
{
    enum { HALF = 3, ARROW = 6 };
    double x = end.x - (on ? dx * ARROW : 0), y = end.y - (on ? dy * ARROW : 0);

    canvas_to(c, (struct spot){x - dy * HALF, y - dx * HALF});
    canvas_to(c, end);
    canvas_to(c, (struct spot){x + dy * HALF, y + dx * HALF});
    canvas_stroke(c, false, pen);
}

/* A line of +-half pixels in the direction (1, 0) or (0, 1), as far as the frame goes. */
static void draw_bar(struct canvas *c, const struct frame *f, struct spot at, double half,
                     double dx, double dy, enum ink ink)
{
    const struct box b = f->box;
    struct pen pen = {ink, INK_NONE, 1.2, 0, 0.8};
    double before = dx > 0 ? at.x - b.x : at.y - b.y;
    double after = dx > 0 ? b.x + b.w - at.x : b.y + b.h - at.y;
    double lo = fmin(half, before), hi = fmin(half, after);

    if (!(half >= 1))
        return;
    struct spot from = {at.x - dx * lo, at.y - dy * lo};
    struct spot to = {at.x + dx * hi, at.y + dy * hi};
    canvas_line(c, from, to, pen);
    draw_end(c, from, -dx, -dy, half > before, pen);
    draw_end(c, to, dx, dy, half > after, pen);
    labels_take(c, (struct box){from.x - dy * 3, from.y - dx * 3, to.x - from.x + dy * 6,
                                to.y - from.y + dx * 6});
}

void chart_dot(struct canvas *c, const struct frame *f, struct value x, struct value y,
               double radius, struct pen pen)
{
    struct spot at = frame_spot(f, x.v, y.v);

    draw_bar(c, f, at, axis_at(&f->x, x.v + x.half) - at.x, 1, 0, pen.stroke);
    draw_bar(c, f, at, at.y - axis_at(&f->y, y.v + y.half), 0, 1, pen.stroke);
    canvas_circle(c, at, radius, pen);
}

double chart_stack(struct canvas *c, const struct axis *axis, struct box bar, bool upward,
                   const double *values, const enum ink *inks, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        double from = axis_at(axis, sum);
        sum += fmax(0, values[i]);
        double to = axis_at(axis, sum);
        struct box piece = upward ? (struct box){bar.x, to, bar.w, from - to}
                                  : (struct box){from, bar.y, to - from, bar.h};
        if (piece.w > 0 && piece.h > 0)
            canvas_box(c, piece, n > 1 ? 0 : 2, pen_fill(inks[i]));
    }
    return axis_at(axis, sum);
}

double chart_key(struct canvas *c, double x, double y, const struct key *key)
{
    double left = x - (key->form == KEY_SQUARE ? 15 : 30);

    if (key->form == KEY_LINE)
        canvas_line(c, (struct spot){left, y - 4}, (struct spot){left + 22, y - 4},
                    key->pen);
    else if (key->form == KEY_DOT)
        canvas_circle(c, (struct spot){left + 11, y - 4}, 3.2, key->pen);
    else
        canvas_box(c, (struct box){left, y - 9, 10, 10}, 2, key->pen);
    canvas_text(c, x, y, ALIGN_LEFT, &small, key->text);
    return x + canvas_text_width(c, &small, key->text);
}

/* ---- labels ---- */

void labels_take(struct canvas *c, struct box box)
{
    struct labels *l = canvas_labels(c);

    if (l->n < TAKEN_MAX)
        l->taken[l->n++] = box;
}

void labels_take_spot(struct canvas *c, struct spot at, double radius)
{
    labels_take(c, (struct box){at.x - radius, at.y - radius, 2 * radius, 2 * radius});
}

/* A line is taken as a row of small boxes. */
void labels_take_line(struct canvas *c, struct spot a, struct spot b, double width)
{
    int pieces = (int)fmin(400, ceil(hypot(b.x - a.x, b.y - a.y) / 4) + 1);

    for (int i = 0; i <= pieces; i++) {
        double f = (double)i / pieces;
        labels_take_spot(c, (struct spot){a.x + (b.x - a.x) * f, a.y + (b.y - a.y) * f},
                         width / 2);
    }
}

/* The occupied area of b; INFINITY if b is not in the frame. */
static double badness(const struct labels *l, struct box b)
{
    const struct box in = l->bounds;
    double bad = 0;

    if (b.x < in.x || b.y < in.y || b.x + b.w > in.x + in.w || b.y + b.h > in.y + in.h)
        return INFINITY;
    for (size_t i = 0; i < l->n; i++) {
        const struct box a = l->taken[i];
        double w = fmin(a.x + a.w, b.x + b.w) - fmax(a.x, b.x);
        double h = fmin(a.y + a.h, b.y + b.h) - fmax(a.y, b.y);
        bad += w > 0 && h > 0 ? w * h : 0;
    }
    return bad;
}

static const struct {
    double x, y; /* direction to the middle of the text */
} ways[] = {{1, -0.6}, {-1, -0.6}, {1, 0.6},  {-1, 0.6},  {1, 0},   {-1, 0},
            {0, -1},   {0, 1},     {0.5, -1}, {-0.5, -1}, {0.5, 1}, {-0.5, 1}};
enum { RINGS = 13 };

static void draw_leader(struct canvas *c, struct spot at, double off, struct box label)
{
    double ex = fmax(label.x, fmin(at.x, label.x + label.w));
    double ey = fmax(label.y, fmin(at.y, label.y + label.h));
    double d = hypot(ex - at.x, ey - at.y), s = d > 0 ? off * 0.8 / d : 0;

    struct spot from = {at.x + (ex - at.x) * s, at.y + (ey - at.y) * s}, to = {ex, ey};
    canvas_line(c, from, to, pen_line(INK_AXIS, 1));
    labels_take_line(c, from, to, 1);
}

bool labels_put(struct canvas *c, struct spot at, double off, const struct type *type,
                bool must, const char *text)
{
    const size_t n_ways = n_elements(ways), tries = n_ways * (must ? RINGS : 1);
    double w = canvas_text_width(c, type, text) + 4;
    double h = type->size + 2, least = INFINITY, far = 0;
    struct box best = {0};

    for (size_t k = 0; k < tries && least > 0; k++) {
        double more = 9.0 * (double)(k / n_ways), ring = off + more; /* NOLINT: rings */
        double x = at.x + ways[k % n_ways].x * (ring + w / 2);
        double y = at.y + ways[k % n_ways].y * (ring + h / 2);
        struct box b = {x - w / 2, y - h / 2, w, h};
        double bad = badness(canvas_labels(c), b);
        if (bad < least) {
            least = bad;
            best = b;
            far = more;
        }
    }
    if (isinf(least) || (least > 0 && !must))
        return false;
    if (far > 12)
        draw_leader(c, at, off, best);
    labels_take(c, best);
    canvas_text(c, best.x + best.w / 2, best.y + h - 4, ALIGN_MIDDLE, type, text);
    return true;
}
