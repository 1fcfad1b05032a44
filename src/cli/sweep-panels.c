#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/auto.h"
#include "cli/sweep-picture.h"

static double e_rel(const struct sweep *s, size_t i)
{
    return s->point[i].energy_j / s->point[s->ref].energy_j;
}

static double t_rel(const struct sweep *s, size_t i)
{
    return s->point[i].time_s / s->point[s->ref].time_s;
}

static bool is_optimum(const struct sweep *s, size_t point)
{
    for (size_t g = 0; g < SWEEP_OPTIMA; g++)
        if (s->optimum[g].point == point)
            return true;
    return false;
}

/* Caps so low that they cost a multiple (below the knee) would squeeze all others into
 * a corner: they are left out of the frame, and named.
 */
static bool in_view(const struct sweep *s, size_t point)
{
    double t = 1, e = 1;

    for (size_t g = 0; g < SWEEP_OPTIMA; g++) {
        t = fmax(t, t_rel(s, s->optimum[g].point));
        e = fmin(e, e_rel(s, s->optimum[g].point));
    }
    return t_rel(s, point) <= 1.05 + 2 * (t - 1) && e_rel(s, point) <= 1.03 + (1 - e) / 3;
}

/* "not shown: 100 W, 105 W, 110 W", as many as fit; "" where all are. */
static void not_shown(const struct sweep *s, char *ret, size_t size)
{
    char watts[VIEW_TEXT];
    size_t at = 0, n = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < s->n; i++) {
        if (in_view(s, i))
            continue;
        bool room = at + 24 < size;
        int len = snprintf(ret + at, size - at, "%s%s", n ? ", " : "far off: ",
                           room ? view_watts(s->point[i].cap_mw, watts) : "\u2026");
        if (len < 0 || !room)
            return;
        at += (size_t)len;
        n++;
    }
}

/* ---- energy against time ---- */

/* Energy that makes the goal `value` at that time, both relative. */
static double energy_on_line(const struct goal *goal, double value, double t)
{
    switch (goal->kind) {
    case GOAL_EDP:
        return value / t;
    case GOAL_EDS:
        return (goal->param * value - t) / (goal->param - 1);
    default:
        return value;
    }
}

enum { LINE_SPOTS = 121 };

/* The line on which the goal is as good as at its optimum; returns its spots inside
 * the frame.
 */
static size_t metric_line(struct canvas *c, const struct frame *f, struct labels *l,
                          const struct sweep_optimum *best, struct spot *ret,
                          enum ink ink)
{
    struct pen pen = {ink, INK_NONE, 1.5, 7, 0};
    struct spot spots[LINE_SPOTS];
    size_t n = 0;

    for (size_t i = 0; i < LINE_SPOTS; i++) {
        double t = f->x.lo + (f->x.hi - f->x.lo) * (double)i / (LINE_SPOTS - 1);
        double e = energy_on_line(&best->goal, best->value, t);
        spots[i] = frame_spot(f, t, e);
        if (!(e > f->y.lo && e < f->y.hi))
            continue;
        if (n > 0)
            labels_take_line(l, ret[n - 1], spots[i], 3);
        ret[n++] = spots[i];
    }
    canvas_clip(c, f->box);
    canvas_path(c, spots, LINE_SPOTS, false, &pen);
    canvas_unclip(c);
    return n;
}

/* "EDP = 0.856" beside the line, as far from the curve as there is room. */
static void name_line(struct canvas *c, struct labels *l, const struct spot *spots,
                      size_t n, const char *text, enum ink ink)
{
    struct type type = {12, ink, ALIGN_LEFT, false, false};

    for (size_t i = 0; i < n; i++)
        if (labels_put(l, c, spots[n - 1 - i], 5, text, &type, false))
            return;
}

struct lines {
    struct spot spots[SWEEP_OPTIMA][LINE_SPOTS];
    size_t n[SWEEP_OPTIMA];
};

static void metric_lines(struct canvas *c, const struct frame *f, struct labels *l,
                         const struct view *v, struct lines *ret)
{
    for (size_t g = 0; g < SWEEP_OPTIMA; g++)
        ret->n[g] = metric_line(c, f, l, &v->sweep->optimum[g], ret->spots[g],
                                picture_look(g).ink);
}

static void name_lines(struct canvas *c, struct labels *l, const struct view *v,
                       const struct lines *lines)
{
    char text[VIEW_TEXT];

    for (size_t g = 0; g < SWEEP_OPTIMA; g++) {
        (void)snprintf(text, sizeof text, "%s = %.3f", view_goal_name(g),
                       v->sweep->optimum[g].value);
        name_line(c, l, lines->spots[g], lines->n[g], text, picture_look(g).ink);
    }
}

static int by_time(const void *a, const void *b)
{
    const struct spot *x = a, *y = b;
    return (x->x > y->x) - (x->x < y->x);
}

static void draw_front(struct canvas *c, const struct frame *f, struct labels *l,
                       const struct view *v)
{
    const struct sweep *s = v->sweep;
    struct pen pen = {INK_FRONT, INK_NONE, 9, 0, 0};
    struct spot *front = calloc(s->n, sizeof *front);
    size_t n = 0;

    if (!front)
        canvas_fail(c, -ENOMEM);
    for (size_t i = 0; front && i < s->n; i++)
        if (s->point[i].pareto)
            front[n++] = frame_spot(f, t_rel(s, i), e_rel(s, i));
    if (n > 0)
        qsort(front, n, sizeof *front, by_time);
    for (size_t i = 1; i < n; i++)
        labels_take_line(l, front[i - 1], front[i], pen.width);
    canvas_path(c, front, n, false, &pen);
    free(front);
}

static void draw_caps(struct canvas *c, const struct frame *f, const struct view *v)
{
    const struct sweep *s = v->sweep;
    double per_t =
        (f->x.at_hi - f->x.at_lo) / (f->x.hi - f->x.lo) / s->point[s->ref].time_s;
    double per_e =
        (f->y.at_lo - f->y.at_hi) / (f->y.hi - f->y.lo) / s->point[s->ref].energy_j;

    for (size_t i = 0; i < s->n; i++) {
        const struct sweep_point *p = &s->point[i];
        struct spot at = frame_spot(f, t_rel(s, i), e_rel(s, i));
        struct pen pen = {INK_POINT, p->pareto ? INK_POINT : INK_PAPER, 1.4, 0, 0};
        if (!in_view(s, i))
            continue;
        canvas_mark(c, i);
        bar_draw(c, at, p->time_sd_s * per_t, true, INK_POINT);
        bar_draw(c, at, p->energy_sd_j * per_e, false, INK_POINT);
        canvas_circle(c, at, 3.2, &pen);
        canvas_unmark(c);
    }
}

static void draw_optima(struct canvas *c, const struct frame *f, const struct view *v)
{
    const struct sweep *s = v->sweep;

    for (size_t i = 0; i < s->n; i++) {
        struct spot at = frame_spot(f, t_rel(s, i), e_rel(s, i));
        canvas_mark(c, i);
        if (i == s->ref)
            mark_draw(c, MARK_RING, at, is_optimum(s, i) ? 15 : 9, INK_REF);
        if (is_optimum(s, i))
            (void)picture_marks(c, v, i, at);
        canvas_unmark(c);
    }
}

/* Which cap each mark is: these must be there, the caps at round watts need not. */
static void name_marks(struct canvas *c, const struct frame *f, struct labels *l,
                       const struct view *v)
{
    const struct sweep *s = v->sweep;
    struct type strong = {13, INK_TEXT, ALIGN_LEFT, true, false};
    char text[VIEW_TEXT], watts[VIEW_TEXT];

    for (size_t i = 0; i < s->n; i++) {
        if (is_optimum(s, i))
            picture_mark_text(v, i, text, sizeof text);
        else if (i == s->ref)
            (void)snprintf(text, sizeof text, "default: %s",
                           view_watts(s->point[i].cap_mw, watts));
        else
            continue;
        (void)labels_put(l, c, frame_spot(f, t_rel(s, i), e_rel(s, i)), 12, text, &strong,
                         true);
    }
}

static void name_caps(struct canvas *c, const struct frame *f, struct labels *l,
                      const struct view *v)
{
    const struct sweep *s = v->sweep;
    struct type weak = {11, INK_MUTED, ALIGN_LEFT, false, false};
    char watts[VIEW_TEXT];

    double span = (s->point[s->n - 1].cap_mw - s->point[0].cap_mw) / 1000.0;
    struct axis caps = axis_over(0, span > 0 ? span : 1, 8, true);
    uint32_t every = (uint32_t)(caps.step * 1000);
    for (size_t i = 0; i < s->n; i++) {
        bool ends = i == 0 || i == s->n - 1;
        if (is_optimum(s, i) || i == s->ref || !in_view(s, i) ||
            (!ends && (every == 0 || s->point[i].cap_mw % every != 0)))
            continue;
        struct spot at = frame_spot(f, t_rel(s, i), e_rel(s, i));
        (void)labels_put(l, c, at, 6, view_watts(s->point[i].cap_mw, watts), &weak,
                         false);
    }
}

static void trade_legend(struct canvas *c, const struct frame *f, struct labels *l,
                         const struct view *v)
{
    static const char *const words[] = {"Pareto front", "cap on the front",
                                        "cap behind it", "as good as the optimum"};
    double x = f->box.x + f->box.w - 186, y = f->box.y + 24;
    struct type type = {12, INK_MUTED, ALIGN_LEFT, false, false};
    bool behind = false;
    char off[60];

    for (size_t i = 0; i < v->sweep->n; i++)
        behind |= !v->sweep->point[i].pareto;
    labels_take(l, (struct box){x - 8, f->box.y, 194, 110});
    for (size_t i = 0; i < n_elements(words); i++) {
        struct spot a = {x, y - 4}, b = {x + 22, y - 4}, mid = {x + 11, y - 4};
        if (i == 2 && !behind)
            continue;
        if (i == 0)
            canvas_line(c, a, b, &(struct pen){INK_FRONT, INK_NONE, 9, 0, 0});
        else if (i == 3)
            canvas_line(c, a, b, &(struct pen){INK_MUTED, INK_NONE, 1.5, 7, 0});
        else
            canvas_circle(
                c, mid, 3.2,
                &(struct pen){INK_POINT, i == 1 ? INK_POINT : INK_PAPER, 1.4, 0, 0});
        canvas_text(c, (struct spot){x + 30, y}, words[i], &type);
        y += 19;
    }
    not_shown(v->sweep, off, sizeof off);
    type.align = ALIGN_RIGHT;
    if (off[0])
        canvas_text(c, (struct spot){f->box.x + f->box.w - 10, y}, off, &type);
}

static struct axis relative_axis(const struct sweep *s,
                                 double (*of)(const struct sweep *, size_t))
{
    double lo = 1, hi = 1;

    for (size_t i = 0; i < s->n; i++) {
        if (!in_view(s, i))
            continue;
        lo = fmin(lo, of(s, i));
        hi = fmax(hi, of(s, i));
    }
    double pad = (hi - lo > 0.01 ? hi - lo : 0.01) * 0.07;
    return axis_over(lo - pad, hi + (of == t_rel ? 3 : 1) * pad, 7, true);
}

void picture_trade(struct canvas *c, const struct view *v, struct box box)
{
    const struct sweep *s = v->sweep;
    struct frame f = {
        .box = box,
        .x = relative_axis(s, t_rel),
        .y = relative_axis(s, e_rel),
        .title = "Energy against time",
        .note = "each point is a cap; both relative to the default limit",
        .x_name = "time / time at the default limit",
        .y_name = "energy / energy at the default limit",
        .x_ticks = true,
    };
    struct labels *l = calloc(1, sizeof *l);
    struct lines lines;

    frame_draw(c, &f);
    if (!l) {
        canvas_fail(c, -ENOMEM);
        return;
    }
    l->bounds = (struct box){box.x + 3, box.y + 3, box.w - 6, box.h - 6};
    draw_front(c, &f, l, v);
    for (size_t i = 0; i < s->n; i++) {
        bool big = is_optimum(s, i) || i == s->ref;
        labels_take_spot(l, frame_spot(&f, t_rel(s, i), e_rel(s, i)), big ? 10 : 4);
    }
    trade_legend(c, &f, l, v);
    metric_lines(c, &f, l, v, &lines);
    draw_caps(c, &f, v);
    draw_optima(c, &f, v);
    name_marks(c, &f, l, v);
    name_lines(c, l, v, &lines);
    name_caps(c, &f, l, v);
    free(l);
}

/* ---- over the cap ---- */

typedef double (*value_fn)(const struct view *v, size_t point, double *ret_sd);

static double power_of(const struct view *v, size_t i, double *ret_sd)
{
    *ret_sd = v->sweep->point[i].power_sd_w;
    return v->sweep->point[i].power_w;
}

static double energy_of(const struct view *v, size_t i, double *ret_sd)
{
    double scale = view_energy_unit(v).scale;
    *ret_sd = v->sweep->point[i].energy_sd_j * scale;
    return v->sweep->point[i].energy_j * scale;
}

static double time_of(const struct view *v, size_t i, double *ret_sd)
{
    double scale = view_time_unit(v).scale;
    *ret_sd = v->sweep->point[i].time_sd_s * scale;
    return v->sweep->point[i].time_s * scale;
}

static double cap_of(const struct sweep *s, size_t i)
{
    return s->point[i].cap_mw / 1000.0;
}

static struct axis cap_axis(const struct sweep *s)
{
    double lo = cap_of(s, 0), hi = cap_of(s, s->n - 1), pad = (hi - lo) * 0.03;
    return axis_over(lo - pad, hi + pad, 8, true);
}

static struct axis value_axis(const struct view *v, value_fn of)
{
    double lo = INFINITY, hi = -INFINITY, sd;

    for (size_t i = 0; i < v->sweep->n; i++) {
        double value = of(v, i, &sd);
        if (!in_view(v->sweep, i))
            continue;
        lo = fmin(lo, value - sd);
        hi = fmax(hi, value + sd);
    }
    double pad = (hi - lo > hi * 0.01 ? hi - lo : hi * 0.01) * 0.08;
    return axis_over(lo - pad, hi + pad, 5, true);
}

static bool in_frame(const struct frame *f, struct spot at)
{
    return at.y >= f->box.y - 1 && at.y <= f->box.y + f->box.h + 1;
}

/* One curve with its points, bars and marks. */
static void draw_curve(struct canvas *c, const struct frame *f, const struct view *v,
                       value_fn of)
{
    const struct sweep *s = v->sweep;
    struct pen line = {INK_POINT, INK_NONE, 1.6, 0, 0};
    struct pen dot = {INK_POINT, INK_POINT, 1, 0, 0};
    double per = (f->y.at_lo - f->y.at_hi) / (f->y.hi - f->y.lo), sd;
    struct spot *spots = calloc(s->n, sizeof *spots);

    if (!spots) {
        canvas_fail(c, -ENOMEM);
        return;
    }
    for (size_t i = 0; i < s->n; i++)
        spots[i] = frame_spot(f, cap_of(s, i), of(v, i, &sd));
    canvas_clip(c, f->box);
    canvas_path(c, spots, s->n, false, &line);
    canvas_unclip(c);
    for (size_t i = 0; i < s->n; i++) {
        (void)of(v, i, &sd);
        if (!in_frame(f, spots[i]))
            continue;
        canvas_mark(c, i);
        bar_draw(c, spots[i], sd * per, false, INK_POINT);
        canvas_circle(c, spots[i], 2.4, &dot);
        if (i == s->ref)
            mark_draw(c, MARK_RING, spots[i], is_optimum(s, i) ? 14 : 7, INK_REF);
        if (is_optimum(s, i))
            (void)picture_marks(c, v, i, spots[i]);
        canvas_unmark(c);
    }
    free(spots);
}

/* Where the mean power would be if it were the cap. */
static void draw_cap_line(struct canvas *c, const struct frame *f, const struct view *v)
{
    struct pen pen = {INK_AXIS, INK_NONE, 1.3, 4, 0};
    double n = (double)v->boards, low = f->x.lo, high = f->x.hi;
    struct type type = {12, INK_MUTED, ALIGN_LEFT, false, false};

    canvas_clip(c, f->box);
    canvas_line(c, frame_spot(f, low, low * n), frame_spot(f, high, high * n), &pen);
    canvas_unclip(c);
    const char *text = v->boards > 1 ? "cap of all boards together" : "power = cap";
    double x = f->box.x + f->box.w - 12 - canvas_text_width(c, text, type.size, false);
    double y = f->box.y + f->box.h - 14;
    canvas_line(c, (struct spot){x - 30, y - 4}, (struct spot){x - 8, y - 4}, &pen);
    canvas_text(c, (struct spot){x, y}, text, &type);
}

void picture_over_cap(struct canvas *c, const struct view *v, struct box column)
{
    char energy[VIEW_TEXT], time[VIEW_TEXT];
    const struct {
        const char *title;
        value_fn of;
    } panels[] = {{"Mean power, W", power_of}, {energy, energy_of}, {time, time_of}};
    double gap = 48, h = (column.h - 2 * gap) / 3;

    (void)snprintf(energy, sizeof energy, "Energy, %s", view_energy_unit(v).name);
    (void)snprintf(time, sizeof time, "Time, %s", view_time_unit(v).name);
    for (size_t i = 0; i < n_elements(panels); i++) {
        bool last = i == n_elements(panels) - 1;
        struct frame f = {
            .box = {column.x, column.y + (double)i * (h + gap), column.w, h},
            .x = cap_axis(v->sweep),
            .y = value_axis(v, panels[i].of),
            .title = panels[i].title,
            .note = v->boards > 1 && i < 2 ? "all boards together" : NULL,
            .x_name = last ? "power cap, W" : NULL,
            .x_ticks = last,
        };
        frame_draw(c, &f);
        if (i == 0)
            draw_cap_line(c, &f, v);
        draw_curve(c, &f, v, panels[i].of);
    }
}

/* ---- EDP and EDS over the cap ---- */

static struct axis metric_axis(const struct sweep *s)
{
    double lo = 1, hi = 1;

    for (size_t g = 1; g < SWEEP_OPTIMA; g++) {
        for (size_t i = 0; i < s->n; i++) {
            double value = sweep_value(s, &s->optimum[g].goal, i);
            if (!in_view(s, i))
                continue;
            lo = fmin(lo, value);
            hi = fmax(hi, value);
        }
    }
    double pad = (hi - lo > 0.01 ? hi - lo : 0.01) * 0.1;
    return axis_over(lo - pad, hi + pad, 6, true);
}

static void metric_curve(struct canvas *c, const struct frame *f, struct labels *l,
                         const struct view *v, size_t g)
{
    const struct sweep *s = v->sweep;
    const struct goal *goal = &s->optimum[g].goal;
    struct pen line = {picture_look(g).ink, INK_NONE, 2, 0, 0};
    struct pen dot = {picture_look(g).ink, picture_look(g).ink, 1, 0, 0};
    double per = (f->y.at_lo - f->y.at_hi) / (f->y.hi - f->y.lo);
    struct spot *spots = calloc(s->n, sizeof *spots);

    if (!spots) {
        canvas_fail(c, -ENOMEM);
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        spots[i] = frame_spot(f, cap_of(s, i), sweep_value(s, goal, i));
        if (i > 0)
            labels_take_line(l, spots[i - 1], spots[i], 4);
    }
    canvas_clip(c, f->box);
    canvas_path(c, spots, s->n, false, &line);
    canvas_unclip(c);
    for (size_t i = 0; i < s->n; i++) {
        if (!in_frame(f, spots[i]))
            continue;
        canvas_mark(c, i);
        bar_draw(c, spots[i], sweep_value_se(s, goal, i) * per, false, line.stroke);
        canvas_circle(c, spots[i], 2.2, &dot);
        canvas_unmark(c);
    }
    free(spots);
}

static void metric_optimum(struct canvas *c, const struct frame *f, struct labels *l,
                           const struct view *v, size_t g)
{
    const struct sweep *s = v->sweep;
    const struct sweep_optimum *best = &s->optimum[g];
    struct spot at = frame_spot(f, cap_of(s, best->point), best->value);
    struct type type = {12, picture_look(g).ink, ALIGN_LEFT, true, false};
    char text[VIEW_TEXT], watts[VIEW_TEXT];

    canvas_mark(c, best->point);
    mark_draw(c, picture_look(g).mark, at, 8, picture_look(g).ink);
    canvas_unmark(c);
    (void)snprintf(text, sizeof text, "%s: %s", view_goal_name(g),
                   view_watts(s->point[best->point].cap_mw, watts));
    (void)labels_put(l, c, at, 10, text, &type, true);
}

void picture_metrics(struct canvas *c, const struct view *v, struct box box)
{
    const struct sweep *s = v->sweep;
    struct frame f = {
        .box = box,
        .x = cap_axis(s),
        .y = metric_axis(s),
        .title = "EDP and EDS over the cap",
        .note = "relative to the default limit; less is better",
        .x_name = "power cap, W",
        .y_name = "metric / at the default limit",
        .x_ticks = true,
    };
    struct labels *l = calloc(1, sizeof *l);

    frame_draw(c, &f);
    if (!l) {
        canvas_fail(c, -ENOMEM);
        return;
    }
    l->bounds = (struct box){box.x + 3, box.y + 3, box.w - 6, box.h - 6};
    for (size_t g = 1; g < SWEEP_OPTIMA; g++)
        metric_curve(c, &f, l, v, g);
    struct spot ref = frame_spot(&f, cap_of(s, s->ref), 1);
    mark_draw(c, MARK_RING, ref, is_optimum(s, s->ref) ? 13 : 7, INK_REF);
    labels_take_spot(l, ref, 9);
    for (size_t g = 1; g < SWEEP_OPTIMA; g++)
        labels_take_spot(
            l, frame_spot(&f, cap_of(s, s->optimum[g].point), s->optimum[g].value), 9);
    for (size_t g = 1; g < SWEEP_OPTIMA; g++)
        metric_optimum(c, &f, l, v, g);
    free(l);
}
