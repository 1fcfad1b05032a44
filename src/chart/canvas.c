#include "chart/canvas.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "chart/late-cairo.h"

#define FONTS                                                           \
    "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial," \
    "'Liberation Sans','DejaVu Sans',sans-serif"

/* The cairo context builds every path and measures text.  It paints only for a PNG: for
 * an SVG, whose elements are written as they are drawn, its surface is one pixel.
 */
struct canvas {
    FILE *to;
    struct sheet sheet;
    cairo_surface_t *surface;
    cairo_t *cr;
    unsigned clips;
    bool out_of_memory; /* a path was lost */
    struct labels labels;
};

static const struct {
    const char *light, *dark;
} colours[INKS] = {
    [INK_PAPER] = {"#ffffff", "#14171c"},  [INK_PANEL] = {"#f7f8fa", "#1c2027"},
    [INK_GRID] = {"#e1e4ea", "#2d333d"},   [INK_AXIS] = {"#9aa1ad", "#626b79"},
    [INK_MUTED] = {"#5b6470", "#a2abb8"},  [INK_TEXT] = {"#1b1f26", "#eceff4"},
    [INK_POINT] = {"#4a5361", "#b9c2cf"},  [INK_FRONT] = {"#b9c3d3", "#485468"},
    [INK_ENERGY] = {"#0072b2", "#56b4e9"}, [INK_EDP] = {"#d55e00", "#ff8a3d"},
    [INK_EDS2] = {"#00805c", "#2fc79a"},   [INK_EDS15] = {"#b0528a", "#e59ac6"},
    [INK_CHOSEN] = {"#7a6a00", "#e6d35c"}, [INK_REF] = {"#1b1f26", "#eceff4"},
    [INK_STAMP] = {"#9a6700", "#f0b429"},
};

const char *ink_colour(enum ink ink, bool dark)
{
    return dark ? colours[ink].dark : colours[ink].light;
}

struct pen pen_line(enum ink ink, double width)
{
    return (struct pen){ink, INK_NONE, width, 0, 0};
}

struct pen pen_fill(enum ink ink)
{
    return (struct pen){INK_NONE, ink, 0, 0, 0};
}

static bool is_png(const struct canvas *c)
{
    return c->sheet.kind == CANVAS_PNG;
}

int canvas_load(uw_error *err)
{
    return cairo_load(err);
}

double canvas_width(const struct canvas *c)
{
    return c->sheet.w;
}

struct labels *canvas_labels(struct canvas *c)
{
    return &c->labels;
}

void canvas_forget_fonts(void)
{
    if (!cairo)
        return;
    cairo->debug_reset_static_data();
    cairo->fonts_fini();
}

void canvas_escape(FILE *to, const char *text)
{
    static const char *const names[128] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;"};

    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p < 128 && names[*p])
            (void)fputs(names[*p], to);
        else
            (void)fputc(*p < ' ' || *p == 127 ? ' ' : *p, to);
    }
}

/* ---- painting ---- */

static void put_ink(FILE *to, const char *what, enum ink ink)
{
    (void)fprintf(to, " %s=\"%s\"", what,
                  ink == INK_NONE ? "none" : ink_colour(ink, false));
}

static void put_pen(FILE *to, struct pen pen)
{
    (void)fputs(" class=\"", to);
    if (pen.fill != INK_NONE)
        (void)fprintf(to, "f%d", (int)pen.fill);
    if (pen.stroke != INK_NONE)
        (void)fprintf(to, "%ss%d", pen.fill != INK_NONE ? " " : "", (int)pen.stroke);
    (void)fputc('"', to);
    put_ink(to, "fill", pen.fill);
    if (pen.stroke != INK_NONE) {
        put_ink(to, "stroke", pen.stroke);
        (void)fprintf(to, " stroke-width=\"%.4g\"", pen.width);
        if (pen.dash > 0)
            (void)fprintf(to, " stroke-dasharray=\"%.4g\"", pen.dash);
    }
    if (pen.alpha > 0 && pen.alpha < 1)
        (void)fprintf(to, " opacity=\"%.3g\"", pen.alpha);
}

/* The current path as an SVG element. */
static void put_path(struct canvas *c, struct pen pen)
{
    cairo_path_t *path = cairo->copy_path(c->cr);
    bool closed = false;

    c->out_of_memory |= path->status != CAIRO_STATUS_SUCCESS;
    (void)fputs("<path", c->to);
    put_pen(c->to, pen);
    (void)fputs(" d=\"", c->to);
    for (int i = 0; i < path->num_data && !closed; i += path->data[i].header.length) {
        const cairo_path_data_t *d = &path->data[i];
        closed = d->header.type == CAIRO_PATH_CLOSE_PATH;
        (void)fputc("MLCZ"[d->header.type], c -> to);
        for (int k = 1; k < d->header.length; k++)
            (void)fprintf(c->to, "%s%.2f %.2f", k > 1 ? " " : "", d[k].point.x,
                          d[k].point.y);
    }
    (void)fputs("\"/>\n", c->to);
    cairo->path_destroy(path);
}

static double channel(const char *hex)
{
    int v = 0;

    for (int i = 0; i < 2; i++)
        v = v * 16 + (hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10);
    return v / 255.0;
}

static void use_ink(cairo_t *cr, enum ink ink, double alpha)
{
    const char *hex = ink_colour(ink, false);

    cairo->set_source_rgba(cr, channel(hex + 1), channel(hex + 3), channel(hex + 5),
                           alpha > 0 ? alpha : 1);
}

static void paint(struct canvas *c, struct pen pen)
{
    double dashes[] = {pen.dash, pen.dash};

    if (!is_png(c))
        put_path(c, pen);
    if (is_png(c) && pen.fill != INK_NONE) {
        use_ink(c->cr, pen.fill, pen.alpha);
        cairo->fill_preserve(c->cr);
    }
    if (is_png(c) && pen.stroke != INK_NONE) {
        use_ink(c->cr, pen.stroke, pen.alpha);
        cairo->set_line_width(c->cr, pen.width);
        cairo->set_dash(c->cr, dashes, pen.dash > 0 ? 2 : 0, 0);
        cairo->stroke_preserve(c->cr);
    }
    cairo->new_path(c->cr);
}

void canvas_to(struct canvas *c, struct spot at)
{
    cairo->line_to(c->cr, at.x, at.y);
}

void canvas_stroke(struct canvas *c, bool closed, struct pen pen)
{
    if (closed)
        cairo->close_path(c->cr);
    paint(c, pen);
}

void canvas_line(struct canvas *c, struct spot a, struct spot b, struct pen pen)
{
    canvas_to(c, a);
    canvas_to(c, b);
    paint(c, pen);
}

void canvas_box(struct canvas *c, struct box b, double r, struct pen pen)
{
    if (r > 0) {
        cairo->arc(c->cr, b.x + b.w - r, b.y + r, r, -M_PI / 2, 0);
        cairo->arc(c->cr, b.x + b.w - r, b.y + b.h - r, r, 0, M_PI / 2);
        cairo->arc(c->cr, b.x + r, b.y + b.h - r, r, M_PI / 2, M_PI);
        cairo->arc(c->cr, b.x + r, b.y + r, r, M_PI, 3 * M_PI / 2);
        cairo->close_path(c->cr);
    } else {
        cairo->rectangle(c->cr, b.x, b.y, b.w, b.h);
    }
    paint(c, pen);
}

void canvas_circle(struct canvas *c, struct spot at, double radius, struct pen pen)
{
    if (is_png(c)) {
        cairo->arc(c->cr, at.x, at.y, radius, 0, 2 * M_PI);
        paint(c, pen);
        return;
    }
    (void)fprintf(c->to, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\"", at.x, at.y,
                  radius);
    put_pen(c->to, pen);
    (void)fputs("/>\n", c->to);
}

double canvas_text_width(struct canvas *c, const struct type *type, const char *text)
{
    cairo_text_extents_t e;

    cairo->select_font_face(c->cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                            type->bold ? CAIRO_FONT_WEIGHT_BOLD
                                       : CAIRO_FONT_WEIGHT_NORMAL);
    cairo->set_font_size(c->cr, type->size);
    cairo->text_extents(c->cr, text, &e);
    return e.x_advance;
}

static void put_text(struct canvas *c, double x, double y, enum align align,
                     const struct type *type)
{
    static const char *const anchors[] = {"start", "middle", "end", "middle"};

    (void)fprintf(c->to, "<text class=\"f%d\" x=\"%.2f\" y=\"%.2f\" font-size=\"%.4g\"",
                  (int)type->ink, x, y, type->size);
    if (type->bold)
        (void)fputs(" font-weight=\"bold\"", c->to);
    if (align != ALIGN_LEFT)
        (void)fprintf(c->to, " text-anchor=\"%s\"", anchors[align]);
    if (align == ALIGN_UPWARD)
        (void)fprintf(c->to, " transform=\"rotate(-90 %.2f %.2f)\"", x, y);
    put_ink(c->to, "fill", type->ink);
    (void)fputc('>', c->to);
}

void canvas_text(struct canvas *c, double x, double y, enum align align,
                 const struct type *type, const char *text)
{
    static const double shifts[] = {0, -0.5, -1, -0.5};

    if (!is_png(c)) {
        put_text(c, x, y, align, type);
        canvas_escape(c->to, text);
        (void)fputs("</text>\n", c->to);
        return;
    }
    double w = canvas_text_width(c, type, text);
    cairo->save(c->cr);
    cairo->translate(c->cr, x, y);
    if (align == ALIGN_UPWARD)
        cairo->rotate(c->cr, -M_PI / 2);
    cairo->move_to(c->cr, shifts[align] * w, 0);
    use_ink(c->cr, type->ink, 1);
    cairo->show_text(c->cr, text);
    cairo->restore(c->cr);
    cairo->new_path(c->cr);
}

void canvas_clip(struct canvas *c, struct box b)
{
    if (is_png(c)) {
        cairo->rectangle(c->cr, b.x, b.y, b.w, b.h);
        cairo->clip(c->cr);
        return;
    }
    (void)fprintf(c->to,
                  "<clipPath id=\"clip%u\"><rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
                  "height=\"%.2f\"/></clipPath>\n<g clip-path=\"url(#clip%u)\">\n",
                  c->clips, b.x, b.y, b.w, b.h, c->clips);
    c->clips++;
}

void canvas_unclip(struct canvas *c)
{
    if (is_png(c))
        cairo->reset_clip(c->cr);
    else
        (void)fputs("</g>\n", c->to);
}

void canvas_mark(struct canvas *c, size_t i)
{
    if (!is_png(c))
        (void)fprintf(c->to, "<g class=\"pt\" data-i=\"%zu\">\n", i);
}

void canvas_unmark(struct canvas *c)
{
    if (!is_png(c))
        (void)fputs("</g>\n", c->to);
}

/* ---- from the first byte to the last ---- */

static void put_head(const struct canvas *c)
{
    const struct sheet *s = &c->sheet;

    if (s->kind == CANVAS_SVG)
        (void)fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", c->to);
    (void)fprintf(c->to,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" "
                  "font-family=\"%s\" role=\"img\"",
                  s->w, s->h, FONTS);
    if (s->kind == CANVAS_SVG)
        (void)fprintf(c->to, " width=\"%g\" height=\"%g\"", s->w, s->h);
    (void)fputs(">\n<title>", c->to);
    canvas_escape(c->to, s->title);
    (void)fputs("</title>\n", c->to);
}

static void begin(struct canvas *c)
{
    double scale = is_png(c) ? 2 : 1;
    int w = is_png(c) ? (int)ceil(c->sheet.w * scale) : 1;
    int h = is_png(c) ? (int)ceil(c->sheet.h * scale) : 1;
    cairo_font_options_t *options = cairo->font_options_create();

    c->surface = cairo->image_surface_create(CAIRO_FORMAT_RGB24, w, h);
    c->cr = cairo->create(c->surface);
    cairo->scale(c->cr, scale, scale);
    cairo->set_line_join(c->cr, CAIRO_LINE_JOIN_ROUND);
    /* Text has the same width in a PNG as in an SVG: both have the same layout. */
    cairo->font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo->set_font_options(c->cr, options);
    cairo->font_options_destroy(options);
    if (!is_png(c))
        put_head(c);
}

static cairo_status_t write_bytes(void *to, const unsigned char *data, unsigned len)
{
    return fwrite(data, 1, len, to) == len ? CAIRO_STATUS_SUCCESS
                                           : CAIRO_STATUS_WRITE_ERROR;
}

static int finish(struct canvas *c)
{
    cairo_status_t s = c->out_of_memory ? CAIRO_STATUS_NO_MEMORY : cairo->status(c->cr);

    if (s == CAIRO_STATUS_SUCCESS && is_png(c))
        s = cairo->surface_write_to_png_stream(c->surface, write_bytes, c->to);
    else if (s == CAIRO_STATUS_SUCCESS)
        (void)fputs("</svg>\n", c->to);
    if (s != CAIRO_STATUS_SUCCESS && s != CAIRO_STATUS_WRITE_ERROR)
        return -ENOMEM;
    return s != CAIRO_STATUS_SUCCESS || ferror(c->to) ? -EIO : 0;
}

int canvas_write(FILE *to, const struct sheet *sheet, draw_fn draw, const void *user,
                 uw_error *err)
{
    auto_(mem_free) struct canvas *c = calloc(1, sizeof *c);

    if (!c)
        return fail(err, -ENOMEM, "out of memory");
    int r = cairo_load(err);
    if (r < 0)
        return r;
    c->to = to;
    c->sheet = *sheet;
    begin(c);
    draw(c, user);
    r = finish(c);
    cairo->destroy(c->cr);
    cairo->surface_destroy(c->surface);
    return r < 0 ? fail(err, r, "cannot write the picture: %s", strerror(-r)) : 0;
}
