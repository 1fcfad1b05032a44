#include "cli/sweep-picture.h"

#include <string.h>

#include "base/auto.h"

enum { EDGE = 48 };

static const struct goal_look looks[SWEEP_OPTIMA] = {
    {INK_ENERGY, MARK_CIRCLE},
    {INK_EDP, MARK_SQUARE},
    {INK_EDS2, MARK_TRIANGLE},
    {INK_EDS15, MARK_DIAMOND},
};

struct goal_look picture_look(size_t optimum)
{
    return looks[optimum];
}

size_t picture_marks(struct canvas *c, const struct view *v, size_t point, struct spot at)
{
    static const double sizes[SWEEP_OPTIMA] = {8, 8, 8, 8};
    static const double nested[SWEEP_OPTIMA] = {12.5, 9, 6, 3.5};
    size_t n = 0, shown = 0;

    for (size_t g = 0; g < SWEEP_OPTIMA; g++)
        n += v->sweep->optimum[g].point == point;
    for (size_t g = 0; g < SWEEP_OPTIMA; g++) {
        if (v->sweep->optimum[g].point != point)
            continue;
        mark_draw(c, looks[g].mark, at, n > 1 ? nested[shown] : sizes[g], looks[g].ink);
        shown++;
    }
    return n;
}

void picture_mark_text(const struct view *v, size_t point, char *ret, size_t size)
{
    char watts[VIEW_TEXT];
    size_t at = 0, shown = 0;

    ret[0] = '\0';
    for (size_t g = 0; g < SWEEP_OPTIMA && at < size; g++) {
        if (v->sweep->optimum[g].point != point)
            continue;
        const char *before = shown                    ? ", "
                             : point == v->sweep->ref ? "default, min "
                                                      : "min ";
        int n = snprintf(ret + at, size - at, "%s%s", before, view_goal_name(g));
        at += n > 0 ? (size_t)n : 0;
        shown++;
    }
    if (at < size)
        (void)snprintf(ret + at, size - at, ": %s",
                       view_watts(v->sweep->point[point].cap_mw, watts));
}

/* ---- head, cards, foot ---- */

/* As much of text as fits into width, with an ellipsis where it is cut. */
static void fit_text(struct canvas *c, const char *text, double size, bool bold,
                     double width, char *ret, size_t room)
{
    (void)snprintf(ret, room, "%s", text);
    size_t len = strlen(ret);
    bool cut = len < strlen(text);

    while (len > 0) {
        if (cut) {
            while (len > 0 &&
                   (len + 4 > room || ((unsigned char)ret[len] & 0xc0) == 0x80))
                len--;
            (void)memcpy(ret + len, "\u2026", 4);
        }
        if (canvas_text_width(c, ret, size, bold) <= width)
            return;
        cut = true;
        len--;
    }
}

static void draw_head(struct canvas *c, const struct view *v)
{
    char line[400], fitted[300], extent[160];
    double room = PICTURE_WIDTH - 2 * EDGE - (v->simulated ? 190 : 0);

    char boards[VIEW_TEXT] = "";

    (void)snprintf(line, sizeof line, "%s on %s", v->label, v->board);
    bool long_name = canvas_text_width(c, line, 26, true) > room;
    fit_text(c, long_name ? v->label : line, 26, true, room, fitted, sizeof fitted);
    canvas_text(c, (struct spot){EDGE, 58}, fitted,
                &(struct type){26, INK_TEXT, ALIGN_LEFT, true, false});
    view_extent(v, extent, sizeof extent);
    if (v->boards > 1)
        (void)snprintf(boards, sizeof boards, ", sum of %zu boards", v->boards);
    (void)snprintf(line, sizeof line, "Power cap sweep%s%s, %s%s%s%s. %s.",
                   long_name ? " on " : "", long_name ? v->board : "", v->work_unit,
                   v->board_note[0] ? ", " : "", v->board_note, boards, extent);
    fit_text(c, line, 14, false, PICTURE_WIDTH - 2 * EDGE, fitted, sizeof fitted);
    canvas_text(c, (struct spot){EDGE, 86}, fitted,
                &(struct type){14, INK_MUTED, ALIGN_LEFT, false, false});
    if (!v->simulated)
        return;
    struct box stamp = {PICTURE_WIDTH - EDGE - 158, 32, 158, 34};
    canvas_box(c, stamp, 6, &(struct pen){INK_STAMP, INK_NONE, 2, 0, 0});
    canvas_text(c, (struct spot){stamp.x + stamp.w / 2, stamp.y + 24}, "SIMULATED",
                &(struct type){18, INK_STAMP, ALIGN_MIDDLE, true, false});
}

static void card_text(const struct view *v, size_t point, bool is_ref, char *ret,
                      size_t size)
{
    const struct sweep *s = v->sweep;
    const struct sweep_point *p = &s->point[point], *ref = &s->point[s->ref];
    struct view_unit e = view_energy_unit(v), t = view_time_unit(v);
    char change[2][VIEW_TEXT];

    if (is_ref)
        (void)snprintf(ret, size, "%#.4g %s in %#.4g %s", p->energy_j * e.scale, e.name,
                       p->time_s * t.scale, t.name);
    else
        (void)snprintf(ret, size, "E %s\u2003T %s",
                       view_change(p->energy_j / ref->energy_j - 1, true, change[0]),
                       view_change(p->time_s / ref->time_s - 1, true, change[1]));
}

/* i == 0: the reference; else optimum i - 1. */
static void draw_card(struct canvas *c, const struct view *v, size_t i, struct box b)
{
    const struct sweep *s = v->sweep;
    bool is_ref = i == 0;
    size_t point = is_ref ? s->ref : s->optimum[i - 1].point;
    char text[VIEW_TEXT], watts[VIEW_TEXT];
    struct spot mark = {b.x + 22, b.y + 24};

    canvas_mark(c, point);
    canvas_box(c, b, 8, &(struct pen){INK_GRID, INK_PANEL, 1, 0, 0});
    if (is_ref)
        mark_draw(c, MARK_RING, mark, 7, INK_REF);
    else
        mark_draw(c, looks[i - 1].mark, mark, 8, looks[i - 1].ink);
    (void)snprintf(text, sizeof text, "%s%s", is_ref ? "default limit" : "min ",
                   is_ref ? "" : view_goal_name(i - 1));
    canvas_text(c, (struct spot){b.x + 40, b.y + 29}, text,
                &(struct type){14, INK_TEXT, ALIGN_LEFT, false, false});
    canvas_text(c, (struct spot){b.x + b.w - 14, b.y + 30},
                view_watts(s->point[point].cap_mw, watts),
                &(struct type){18, INK_TEXT, ALIGN_RIGHT, true, false});
    card_text(v, point, is_ref, text, sizeof text);
    canvas_text(c, (struct spot){b.x + 14, b.y + 56}, text,
                &(struct type){13, INK_MUTED, ALIGN_LEFT, false, false});
    canvas_unmark(c);
}

/* Words of text in lines of at most `width`; returns the y of the next line. */
static double draw_lines(struct canvas *c, const char *text, double y, double width)
{
    struct type type = {12, INK_MUTED, ALIGN_LEFT, false, false};
    char line[400] = "";
    size_t len = 0;

    while (*text) {
        size_t word = strcspn(text, " ");
        size_t before = len;
        int n = snprintf(line + len, sizeof line - len, "%s%.*s", len ? " " : "",
                         (int)word, text);
        if (n < 0 || (size_t)n >= sizeof line - len || word == 0)
            break;
        len += (size_t)n;
        if (before > 0 && canvas_text_width(c, line, type.size, false) > width) {
            line[before] = '\0';
            canvas_text(c, (struct spot){EDGE, y}, line, &type);
            y += 17;
            len = 0;
            line[0] = '\0';
            continue;
        }
        text += word;
        text += strspn(text, " ");
    }
    if (line[0])
        canvas_text(c, (struct spot){EDGE, y}, line, &type);
    return y + 17;
}

static void draw_foot(struct canvas *c, const struct view *v)
{
    char drift[300];

    double y = draw_lines(c, v->method, 1192, PICTURE_WIDTH - 2 * EDGE);
    view_drift(v, true, drift, sizeof drift);
    if (drift[0])
        (void)draw_lines(c, drift, y, PICTURE_WIDTH - 2 * EDGE);
}

void picture_draw(struct canvas *c, const struct view *v)
{
    static const struct pen paper = {INK_NONE, INK_PAPER, 0, 0, 0};
    double gap = 14, width = (PICTURE_WIDTH - 2 * EDGE - 4 * gap) / 5;

    canvas_box(c, (struct box){0, 0, PICTURE_WIDTH, PICTURE_HEIGHT}, 0, &paper);
    draw_head(c, v);
    for (size_t i = 0; i <= SWEEP_OPTIMA; i++)
        draw_card(c, v, i,
                  (struct box){EDGE + (double)i * (width + gap), 108, width, 72});
    picture_trade(c, v, (struct box){EDGE + 62, 232, 590, 490});
    picture_metrics(c, v, (struct box){EDGE + 62, 828, 590, 290});
    picture_over_cap(c, v, (struct box){806, 232, PICTURE_WIDTH - EDGE - 806, 886});
    draw_foot(c, v);
}
