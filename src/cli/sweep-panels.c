#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "cli/sweep-picture.h"

/* The quantity on an axis; Q_GOAL + g: the metric of optimum g. */
enum quantity { Q_CAP, Q_POWER, Q_ENERGY, Q_TIME, Q_E_REL, Q_T_REL, Q_GOAL };

static struct value scaled(double v, double half, double scale)
{
    return (struct value){v * scale, half * scale};
}

static struct value value_of(const struct view *v, unsigned q, size_t i)
{
    const struct sweep *s = v->sweep;
    const struct sweep_point *p = &s->point[i], *ref = &s->point[s->ref];
    double half_e = sweep_half(p->energy_se_j, p->runs);
    double half_t = sweep_half(p->time_se_s, p->runs);
    double half_p = sweep_half(p->power_sd_w / sqrt(p->runs), p->runs);

    switch (q) {
    case Q_CAP:
        return (struct value){p->cap_mw / 1000.0, 0};
    case Q_POWER:
        return (struct value){p->power_w, half_p};
    case Q_ENERGY:
        return scaled(p->energy_j, half_e, view_energy_unit(v).scale);
    case Q_TIME:
        return scaled(p->time_s, half_t, view_time_unit(v).scale);
    case Q_E_REL:
        return scaled(p->energy_j, half_e, 1 / ref->energy_j);
    case Q_T_REL:
        return scaled(p->time_s, half_t, 1 / ref->time_s);
    default:
        return (struct value){
            sweep_value(s, &s->optimum[q - Q_GOAL].goal, i),
            sweep_half(sweep_value_se(s, &s->optimum[q - Q_GOAL].goal, i), p->runs)};
    }
}

static bool is_optimum(const struct sweep *s, size_t point)
{
    for (size_t g = 0; g < SWEEP_OPTIMA; g++)
        if (s->optimum[g].point == point)
            return true;
    return false;
}

/* ---- axes ---- */

/* Caps below the knee cost a multiple and would squeeze the others into a corner: the
 * axes do not extend to them.
 */
static bool in_view(const struct view *v, size_t point)
{
    double t = 1, e = 1;

    for (size_t g = 0; g < SWEEP_OPTIMA; g++) {
        t = fmax(t, value_of(v, Q_T_REL, v->sweep->optimum[g].point).v);
        e = fmin(e, value_of(v, Q_E_REL, v->sweep->optimum[g].point).v);
    }
    return value_of(v, Q_T_REL, point).v <= 1.05 + 2 * (t - 1) &&
           value_of(v, Q_E_REL, point).v <= 1.03 + (1 - e) / 3;
}

struct range {
    double lo, hi;
};

static struct range range_of(const struct view *v, unsigned q, struct range r)
{
    for (size_t i = 0; i < v->sweep->n; i++) {
        struct value value = value_of(v, q, i);
        double half = q < Q_E_REL ? value.half : 0;
        if (q != Q_CAP && !in_view(v, i))
            continue;
        r.lo = fmin(r.lo, value.v - half);
        r.hi = fmax(r.hi, value.v + half);
    }
    return r;
}

/* Extends the range on both sides by a part of its span, which counts as `least` or
 * more.
 */
static struct axis padded(struct range r, double least, double part, unsigned ticks)
{
    double pad = fmax(r.hi - r.lo, least) * part;

    return axis_over(r.lo - pad, r.hi + pad, ticks, true);
}

static struct axis cap_axis(const struct view *v)
{
    return padded(range_of(v, Q_CAP, (struct range){INFINITY, -INFINITY}), 0, 0.03, 8);
}

/* ---- what all panels draw ---- */

static struct spot spot_of(const struct frame *f, const struct view *v, unsigned x,
                           unsigned y, size_t i)
{
    return frame_spot(f, value_of(v, x, i).v, value_of(v, y, i).v);
}

static bool in_frame(const struct frame *f, struct spot at)
{
    const struct box b = f->box;

    return at.x >= b.x - 1 && at.x <= b.x + b.w + 1 && at.y >= b.y - 1 &&
           at.y <= b.y + b.h + 1;
}

static void draw_curve(struct canvas *c, const struct frame *f, const struct view *v,
                       unsigned y, struct pen pen)
{
    canvas_clip(c, f->box);
    for (size_t i = 0; i < v->sweep->n; i++) {
        struct spot at = spot_of(f, v, Q_CAP, y, i);
        canvas_to(c, at);
        if (i > 0)
            labels_take_line(c, spot_of(f, v, Q_CAP, y, i - 1), at, 4);
    }
    canvas_stroke(c, false, pen);
    canvas_unclip(c);
}

/* rings: caps outside the Pareto front are hollow. */
static void draw_dots(struct canvas *c, const struct frame *f, const struct view *v,
                      unsigned x, unsigned y, enum ink ink, bool rings)
{
    for (size_t i = 0; i < v->sweep->n; i++) {
        bool hollow = rings && !v->sweep->point[i].pareto;
        if (!in_frame(f, spot_of(f, v, x, y, i)))
            continue;
        canvas_mark(c, i);
        chart_dot(c, f, value_of(v, x, i), value_of(v, y, i), rings ? 3.2 : 2.4,
                  (struct pen){ink, hollow ? INK_PAPER : ink, rings ? 1.4 : 1, 0, 0});
        canvas_unmark(c);
    }
}

/* Draws the reference and the optima.  Marks of goals that share a cap are nested. */
static void draw_marks(struct canvas *c, const struct frame *f, const struct view *v,
                       unsigned x, unsigned y)
{
    static const double nested[SWEEP_OPTIMA] = {14, 11, 8, 5.5, 3.2};
    const struct sweep *s = v->sweep;
    struct spot ref = spot_of(f, v, x, y, s->ref);

    canvas_mark(c, s->ref);
    mark_draw(c, MARK_RING, ref, is_optimum(s, s->ref) ? 15 : 8, INK_REF);
    canvas_unmark(c);
    for (size_t g = 0; g < SWEEP_OPTIMA; g++) {
        size_t point = s->optimum[g].point, same = 0, before = 0;
        for (size_t k = 0; k < SWEEP_OPTIMA; k++) {
            same += s->optimum[k].point == point;
            before += k < g && s->optimum[k].point == point;
        }
        canvas_mark(c, point);
        mark_draw(c, picture_looks[g].mark, spot_of(f, v, x, y, point),
                  same > 1 ? nested[before] : 8, picture_looks[g].ink);
        canvas_unmark(c);
    }
}

/* ---- energy against time ---- */

static void draw_front(struct canvas *c, const struct frame *f, const struct view *v)
{
    const struct sweep *s = v->sweep;
    struct pen pen = pen_line(INK_FRONT, 9);
    size_t last = s->n, next;

    do { /* in order of time: with noise, caps may be in another order */
        next = s->n;
        for (size_t i = 0; i < s->n; i++)
            if (s->point[i].pareto &&
                (last == s->n || s->point[i].time_s > s->point[last].time_s) &&
                (next == s->n || s->point[i].time_s < s->point[next].time_s))
                next = i;
        if (next < s->n)
            canvas_to(c, spot_of(f, v, Q_T_REL, Q_E_REL, next));
        if (next < s->n && last < s->n)
            labels_take_line(c, spot_of(f, v, Q_T_REL, Q_E_REL, last),
                             spot_of(f, v, Q_T_REL, Q_E_REL, next), pen.width);
        last = next;
    } while (next < s->n);
    canvas_stroke(c, false, pen);
}

enum { LINE_SPOTS = 121 };

/* Point i of the line on which goal g is as good as at its optimum, or of its bound. */
static struct spot line_spot(const struct frame *f, const struct view *v, size_t g,
                             size_t i)
{
    const struct sweep_optimum *best = &v->sweep->optimum[g];
    struct goal_shape shape = sweep_shape(v->sweep, &best->goal);
    double part = (double)i / (LINE_SPOTS - 1);
    double t = f->x.lo + (f->x.hi - f->x.lo) * part;
    double e0 = 1 + best->energy_change, t0 = 1 + best->time_change;

    if (shape.product)
        return frame_spot(f, t, e0 * t0 / t);
    if (isfinite(shape.bound) || shape.we <= 0)
        return frame_spot(f, isfinite(shape.bound) ? shape.bound : t0,
                          f->y.lo + (f->y.hi - f->y.lo) * part);
    return frame_spot(f, t, e0 + shape.wt / shape.we * (t0 - t));
}

static void draw_goal_lines(struct canvas *c, const struct frame *f, const struct view *v)
{
    for (size_t g = 0; g < SWEEP_OPTIMA; g++) {
        canvas_clip(c, f->box);
        for (size_t i = 0; i < LINE_SPOTS; i++) {
            struct spot at = line_spot(f, v, g, i);
            canvas_to(c, at);
            if (i > 0 && in_frame(f, at))
                labels_take_line(c, line_spot(f, v, g, i - 1), at, 3);
        }
        canvas_stroke(c, false, (struct pen){picture_looks[g].ink, INK_NONE, 1.5, 7, 0});
        canvas_unclip(c);
    }
}

/* Names each line, as in "EDP = 0.856", far from the curve. */
static void name_goal_lines(struct canvas *c, const struct frame *f, const struct view *v)
{
    char text[2 * VIEW_TEXT], name[VIEW_TEXT];

    for (size_t g = 0; g < SWEEP_OPTIMA; g++) {
        const struct sweep_optimum *best = &v->sweep->optimum[g];
        struct type type = {12, picture_looks[g].ink, false};
        if (best->goal.kind == GOAL_SLOWDOWN)
            (void)snprintf(text, sizeof text, "T = %.4g", best->goal.param);
        else
            (void)snprintf(text, sizeof text, "%s = %.3f", view_goal_name(v, g, name),
                           best->value);
        for (size_t i = LINE_SPOTS; i-- > 0;) {
            struct spot at = line_spot(f, v, g, i);
            if (in_frame(f, at) && labels_put(c, at, 5, &type, false, text))
                break;
        }
    }
}

/* "min EDP, EDS(2): 185 W", "default: 300 W" */
static void mark_text(const struct view *v, size_t point, char *ret, size_t size)
{
    bool is_ref = point == v->sweep->ref, first = true;
    char watts[VIEW_TEXT], name[VIEW_TEXT];

    (void)snprintf(ret, size, "%s", is_ref ? "default" : "");
    for (size_t g = 0; g < SWEEP_OPTIMA; g++) {
        size_t at = strlen(ret);
        if (v->sweep->optimum[g].point != point)
            continue;
        bool bound = v->sweep->optimum[g].goal.kind == GOAL_SLOWDOWN;
        (void)snprintf(ret + at, size - at, "%s%s%s", at ? ", " : "",
                       first && !bound ? "min " : "", view_goal_name(v, g, name));
        first = first && bound;
    }
    size_t at = strlen(ret);
    (void)snprintf(ret + at, size - at, ": %s",
                   view_watts(v->sweep->point[point].cap_mw, watts));
}

/* Names the marks, or the other points: the first, the last and round caps. */
static void name_points(struct canvas *c, const struct frame *f, const struct view *v,
                        bool marks)
{
    static const struct type strong = {13, INK_TEXT, true}, weak = {11, INK_MUTED, false};
    const struct sweep *s = v->sweep;
    double span = (s->point[s->n - 1].cap_mw - s->point[0].cap_mw) / 1000.0;
    double step = axis_over(0, span > 0 ? span : 1, 8, true).step * 1000;
    char text[2 * VIEW_TEXT];

    for (size_t i = 0; i < s->n; i++) {
        struct spot at = spot_of(f, v, Q_T_REL, Q_E_REL, i);
        bool marked = is_optimum(s, i) || i == s->ref;
        bool round = i == 0 || i == s->n - 1 || fmod(s->point[i].cap_mw, step) == 0;
        mark_text(v, i, text, sizeof text);
        if (marked && marks)
            (void)labels_put(c, at, 12, &strong, true, text);
        else if (!marked && !marks && round && in_frame(f, at))
            (void)labels_put(c, at, 6, &weak, false,
                             view_watts(s->point[i].cap_mw, text));
    }
}

/* "far off: 100 W, 105 W": the caps outside the frame, as many as fit; or "". */
static void far_off(const struct frame *f, const struct view *v, char *ret, size_t size)
{
    char watts[VIEW_TEXT];

    ret[0] = '\0';
    for (size_t i = 0; i < v->sweep->n; i++) {
        size_t at = strlen(ret);
        bool room = at + 24 < size;
        if (in_frame(f, spot_of(f, v, Q_T_REL, Q_E_REL, i)))
            continue;
        (void)snprintf(ret + at, size - at, "%s%s", at ? ", " : "far off: ",
                       room ? view_watts(v->sweep->point[i].cap_mw, watts) : "\u2026");
        if (!room)
            return;
    }
}

static void trade_legend(struct canvas *c, const struct frame *f, const struct view *v)
{
    static const struct key keys[] = {
        {"Pareto front", KEY_LINE, {INK_FRONT, INK_NONE, 9, 0, 0}},
        {"cap on the front", KEY_DOT, {INK_POINT, INK_POINT, 1.4, 0, 0}},
        {"as good as the optimum", KEY_LINE, {INK_MUTED, INK_NONE, 1.5, 7, 0}},
        {"cap behind it", KEY_DOT, {INK_POINT, INK_PAPER, 1.4, 0, 0}}};
    static const struct type type = {12, INK_MUTED, false};
    double right = f->box.x + f->box.w, y = f->box.y + 24;
    bool behind = false;
    char off[60];

    for (size_t i = 0; i < v->sweep->n; i++)
        behind |= !v->sweep->point[i].pareto;
    labels_take(c, (struct box){right - 194, f->box.y, 194, 110});
    for (size_t i = 0; i < n_elements(keys) - !behind; i++) {
        (void)chart_key(c, right - 156, y, &keys[i]);
        y += 19;
    }
    far_off(f, v, off, sizeof off);
    canvas_text(c, right - 10, y, ALIGN_RIGHT, &type, off);
}

void picture_trade(struct canvas *c, const struct view *v, struct box box)
{
    const struct sweep *s = v->sweep;
    struct range t = range_of(v, Q_T_REL, (struct range){1, 1});
    struct range e = range_of(v, Q_E_REL, (struct range){1, 1});
    struct frame f = {
        .box = box,
        .y = padded(e, 0.01, 0.07, 7),
        .title = "Energy against time",
        .note = "each point is a cap; both relative to the default limit",
        .x_name = "time / time at the default limit",
        .y_name = "energy / energy at the default limit",
        .x_ticks = true,
    };

    t.hi += 0.14 * fmax(t.hi - t.lo, 0.01); /* room for names */
    f.x = padded(t, 0.01, 0.06, 7);
    frame_draw(c, &f);
    draw_front(c, &f, v);
    for (size_t i = 0; i < s->n; i++)
        labels_take_spot(c, spot_of(&f, v, Q_T_REL, Q_E_REL, i),
                         is_optimum(s, i) || i == s->ref ? 10 : 4);
    trade_legend(c, &f, v);
    draw_goal_lines(c, &f, v);
    draw_dots(c, &f, v, Q_T_REL, Q_E_REL, INK_POINT, true);
    draw_marks(c, &f, v, Q_T_REL, Q_E_REL);
    name_points(c, &f, v, true);
    name_goal_lines(c, &f, v);
    name_points(c, &f, v, false);
}

/* ---- over the cap ---- */

/* The line on which the mean power equals the cap. */
static void draw_cap_line(struct canvas *c, const struct frame *f, const struct view *v)
{
    struct key key = {v->boards > 1 ? "cap of all boards together" : "power = cap",
                      KEY_LINE,
                      {INK_AXIS, INK_NONE, 1.3, 4, 0}};
    double n = (double)v->boards, width = v->boards > 1 ? 172 : 84;

    canvas_clip(c, f->box);
    canvas_line(c, frame_spot(f, f->x.lo, f->x.lo * n),
                frame_spot(f, f->x.hi, f->x.hi * n), key.pen);
    canvas_unclip(c);
    (void)chart_key(c, f->box.x + f->box.w - width, f->box.y + f->box.h - 14, &key);
}

void picture_over_cap(struct canvas *c, const struct view *v, struct box column)
{
    const char *const units[] = {"W", view_energy_unit(v).name, view_time_unit(v).name};
    static const char *const names[] = {"Mean power", "Energy", "Time"};
    double gap = 48, h = (column.h - 2 * gap) / 3;
    char title[VIEW_TEXT];

    for (unsigned i = 0; i < n_elements(names); i++) {
        struct range r = range_of(v, Q_POWER + i, (struct range){INFINITY, -INFINITY});
        bool last = i == n_elements(names) - 1;
        struct frame f = {
            .box = {column.x, column.y + (double)i * (h + gap), column.w, h},
            .x = cap_axis(v),
            .y = padded(r, r.hi * 0.01, 0.08, 5),
            .title = title,
            .note = v->boards > 1 && i < 2 ? "all boards together" : NULL,
            .x_name = last ? "power cap, W" : NULL,
            .x_ticks = last,
        };
        (void)snprintf(title, sizeof title, "%s, %s", names[i], units[i]);
        frame_draw(c, &f);
        if (i == 0)
            draw_cap_line(c, &f, v);
        draw_curve(c, &f, v, Q_POWER + i, pen_line(INK_POINT, 1.6));
        draw_dots(c, &f, v, Q_CAP, Q_POWER + i, INK_POINT, false);
        draw_marks(c, &f, v, Q_CAP, Q_POWER + i);
    }
}

/* ---- EDP and EDS over the cap ---- */

void picture_metrics(struct canvas *c, const struct view *v, struct box box)
{
    const struct sweep *s = v->sweep;
    struct range r = {1, 1};
    struct frame f = {
        .box = box,
        .x = cap_axis(v),
        .title = "EDP and EDS over the cap",
        .note = "relative to the default limit; less is better",
        .x_name = "power cap, W",
        .y_name = "metric / at the default limit",
        .x_ticks = true,
    };
    char text[2 * VIEW_TEXT], name[VIEW_TEXT], watts[VIEW_TEXT];

    for (unsigned g = 1; g < SWEEP_METRICS; g++)
        r = range_of(v, Q_GOAL + g, r);
    f.y = padded(r, 0.01, 0.1, 6);
    frame_draw(c, &f);
    for (unsigned g = 1; g < SWEEP_METRICS; g++) {
        draw_curve(c, &f, v, Q_GOAL + g, pen_line(picture_looks[g].ink, 2));
        draw_dots(c, &f, v, Q_CAP, Q_GOAL + g, picture_looks[g].ink, false);
        labels_take_spot(c, spot_of(&f, v, Q_CAP, Q_GOAL + g, s->optimum[g].point), 9);
    }
    struct spot ref = spot_of(&f, v, Q_CAP, Q_GOAL, s->ref);
    mark_draw(c, MARK_RING, ref, is_optimum(s, s->ref) ? 13 : 7, INK_REF);
    labels_take_spot(c, ref, 9);
    for (unsigned g = 1; g < SWEEP_METRICS; g++) {
        const struct goal_look look = picture_looks[g];
        size_t point = s->optimum[g].point;
        struct spot at = spot_of(&f, v, Q_CAP, Q_GOAL + g, point);
        canvas_mark(c, point);
        mark_draw(c, look.mark, at, 8, look.ink);
        canvas_unmark(c);
        (void)snprintf(text, sizeof text, "%s: %s", view_goal_name(v, g, name),
                       view_watts(s->point[point].cap_mw, watts));
        (void)labels_put(c, at, 10, &(struct type){12, look.ink, true}, true, text);
    }
}
