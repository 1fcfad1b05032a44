#include "cli/sweep-picture.h"

#include <string.h>

#include "base/auto.h"

enum { WIDTH = 1280, HEIGHT = 1276, EDGE = 48 };

const struct goal_look picture_looks[SWEEP_OPTIMA] = {
    {INK_ENERGY, MARK_CIRCLE}, {INK_EDP, MARK_SQUARE},      {INK_EDS2, MARK_TRIANGLE},
    {INK_EDS15, MARK_DIAMOND}, {INK_CHOSEN, MARK_PENTAGON},
};

/* Cuts text to the width, with an ellipsis. */
static void fit_text(struct canvas *c, const struct type *type, double width,
                     const char *text, char *ret, size_t size)
{
    (void)snprintf(ret, size, "%s", text);
    size_t len = strlen(ret);
    bool cut = len < strlen(text);

    while (len > 0) {
        if (cut) {
            while (len > 0 &&
                   (len + 4 > size || ((unsigned char)ret[len] & 0xc0) == 0x80))
                len--;
            (void)memcpy(ret + len, "\u2026", 4);
        }
        if (canvas_text_width(c, type, ret) <= width)
            return;
        cut = true;
        len--;
    }
}

static void draw_head(struct canvas *c, const struct view *v)
{
    static const struct type head = {26, INK_TEXT, true}, sub = {14, INK_MUTED, false},
                             stamp = {18, INK_STAMP, true};
    char line[400], fitted[300], extent[160], boards[VIEW_TEXT] = "";
    double room = WIDTH - 2 * EDGE - (v->simulated ? 190 : 0);

    (void)snprintf(line, sizeof line, "%s on %s", v->label, v->board);
    bool long_name = canvas_text_width(c, &head, line) > room;
    fit_text(c, &head, room, long_name ? v->label : line, fitted, sizeof fitted);
    canvas_text(c, EDGE, 58, ALIGN_LEFT, &head, fitted);
    view_extent(v, extent, sizeof extent);
    if (v->boards > 1)
        (void)snprintf(boards, sizeof boards, ", sum of %zu boards", v->boards);
    (void)snprintf(line, sizeof line, "Power cap sweep%s%s, %s%s%s%s. %s.",
                   long_name ? " on " : "", long_name ? v->board : "", v->work_unit,
                   v->board_note[0] ? ", " : "", v->board_note, boards, extent);
    fit_text(c, &sub, WIDTH - 2 * EDGE, line, fitted, sizeof fitted);
    canvas_text(c, EDGE, 86, ALIGN_LEFT, &sub, fitted);
    if (!v->simulated)
        return;
    canvas_box(c, (struct box){WIDTH - EDGE - 158, 32, 158, 34}, 6,
               pen_line(INK_STAMP, 2));
    canvas_text(c, WIDTH - EDGE - 79, 56, ALIGN_MIDDLE, &stamp, "SIMULATED");
}

/* i == 0: the reference; else optimum i - 1. */
static void draw_card(struct canvas *c, const struct view *v, size_t i, struct box b)
{
    static const struct type name = {14, INK_TEXT, false}, cap = {18, INK_TEXT, true},
                             change = {13, INK_MUTED, false};
    const struct sweep *s = v->sweep;
    size_t point = i == 0 ? s->ref : s->optimum[i - 1].point;
    const struct sweep_point *p = &s->point[point], *ref = &s->point[s->ref];
    struct view_unit e = view_energy_unit(v), t = view_time_unit(v);
    struct spot mark = {b.x + 22, b.y + 24};
    char title[VIEW_TEXT] = "default limit", text[2 * VIEW_TEXT], part[2][VIEW_TEXT];

    if (i == 0) {
        double energy = p->energy_j * e.scale, time = p->time_s * t.scale;
        (void)snprintf(text, sizeof text, "%.*f %s in %.*f %s", view_digits(energy),
                       energy, e.name, view_digits(time), time, t.name);
    } else {
        (void)view_goal_title(v, i - 1, title);
        (void)snprintf(text, sizeof text, "E %s\u2003T %s",
                       view_change(p->energy_j / ref->energy_j - 1, true, part[0]),
                       view_change(p->time_s / ref->time_s - 1, true, part[1]));
    }
    canvas_mark(c, point);
    canvas_box(c, b, 8, (struct pen){INK_GRID, INK_PANEL, 1, 0, 0});
    if (i == 0)
        mark_draw(c, MARK_RING, mark, 7, INK_REF);
    else
        mark_draw(c, picture_looks[i - 1].mark, mark, 8, picture_looks[i - 1].ink);
    canvas_text(c, b.x + 40, b.y + 29, ALIGN_LEFT, &name, title);
    canvas_text(c, b.x + 14, b.y + 58, ALIGN_LEFT, &cap, view_watts(p->cap_mw, part[0]));
    canvas_text(c, b.x + 14, b.y + 82, ALIGN_LEFT, &change, text);
    canvas_unmark(c);
}

/* Writes text in lines between the edges; returns the y of the next line. */
static double draw_lines(struct canvas *c, const char *text, double y)
{
    static const struct type type = {12, INK_MUTED, false};
    char line[400];

    while (*text) {
        size_t len = 0, next;
        do { /* add a word */
            next = len + strspn(text + len, " ");
            next += strcspn(text + next, " ");
            (void)snprintf(line, sizeof line, "%.*s", (int)next, text);
            if (len > 0 && (next >= sizeof line ||
                            canvas_text_width(c, &type, line) > WIDTH - 2 * EDGE))
                break;
            len = next;
        } while (text[len]);
        (void)snprintf(line, sizeof line, "%.*s", (int)len, text);
        canvas_text(c, EDGE, y, ALIGN_LEFT, &type, line);
        y += 17;
        text += len + strspn(text + len, " ");
    }
    return y;
}

static void draw(struct canvas *c, const void *user)
{
    const struct view *v = user;
    double gap = 14, width = (WIDTH - 2 * EDGE - SWEEP_OPTIMA * gap) / (SWEEP_OPTIMA + 1);
    char drift[300];

    canvas_box(c, (struct box){0, 0, WIDTH, HEIGHT}, 0, pen_fill(INK_PAPER));
    draw_head(c, v);
    for (size_t i = 0; i <= SWEEP_OPTIMA; i++)
        draw_card(c, v, i,
                  (struct box){EDGE + (double)i * (width + gap), 108, width, 98});
    picture_trade(c, v, (struct box){EDGE + 62, 258, 590, 490});
    picture_metrics(c, v, (struct box){EDGE + 62, 854, 590, 290});
    picture_over_cap(c, v, (struct box){806, 258, WIDTH - EDGE - 806, 886});
    double y = draw_lines(c, v->method, 1218);
    view_drift(v, true, drift, sizeof drift);
    (void)draw_lines(c, drift, y);
}

int picture_write(const struct view *v, enum canvas_kind kind, FILE *to, uw_error *err)
{
    char title[300];

    (void)snprintf(title, sizeof title, "%sPower cap sweep: %.200s on %.40s",
                   v->simulated ? "Simulated. " : "", v->label, v->board);
    return canvas_write(to, &(struct sheet){kind, WIDTH, HEIGHT, title}, draw, v, err);
}

int view_svg(const struct view *v, FILE *to, uw_error *err)
{
    return picture_write(v, CANVAS_SVG, to, err);
}

int view_png(const struct view *v, FILE *to, uw_error *err)
{
    return picture_write(v, CANVAS_PNG, to, err);
}
