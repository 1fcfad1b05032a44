#include <cairo.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"
#include "cli/canvas-inside.h"
#include "cli/font.h"

struct png {
    FILE *to;
    cairo_surface_t *surface;
    cairo_t *cr;
};

static int status(struct png *p)
{
    return cairo_status(p->cr) == CAIRO_STATUS_SUCCESS ? 0 : -ENOMEM;
}

static double channel(const char *hex)
{
    int v = 0;
    for (int i = 0; i < 2; i++)
        v = v * 16 + (hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10);
    return v / 255.0;
}

static void use_ink(struct png *p, enum ink ink, double alpha)
{
    const char *hex = ink_colour(ink, false);
    cairo_set_source_rgba(p->cr, channel(hex + 1), channel(hex + 3), channel(hex + 5),
                          alpha > 0 ? alpha : 1);
}

/* Fills and strokes the path that was laid down. */
static int paint(struct png *p, const struct pen *pen)
{
    if (pen->fill != INK_NONE) {
        use_ink(p, pen->fill, pen->alpha);
        cairo_fill_preserve(p->cr);
    }
    if (pen->stroke != INK_NONE) {
        double dashes[] = {pen->dash, pen->dash};
        use_ink(p, pen->stroke, pen->alpha);
        cairo_set_line_width(p->cr, pen->width);
        cairo_set_dash(p->cr, dashes, pen->dash > 0 ? 2 : 0, 0);
        cairo_stroke_preserve(p->cr);
    }
    cairo_new_path(p->cr);
    return status(p);
}

static int png_path(void *self, const struct spot *spots, size_t n, bool closed,
                    const struct pen *pen)
{
    struct png *p = self;

    cairo_move_to(p->cr, spots[0].x, spots[0].y);
    for (size_t i = 1; i < n; i++)
        cairo_line_to(p->cr, spots[i].x, spots[i].y);
    if (closed)
        cairo_close_path(p->cr);
    return paint(p, pen);
}

static int png_box(void *self, struct box b, double r, const struct pen *pen)
{
    struct png *p = self;

    if (r > 0) {
        cairo_arc(p->cr, b.x + b.w - r, b.y + r, r, -M_PI / 2, 0);
        cairo_arc(p->cr, b.x + b.w - r, b.y + b.h - r, r, 0, M_PI / 2);
        cairo_arc(p->cr, b.x + r, b.y + b.h - r, r, M_PI / 2, M_PI);
        cairo_arc(p->cr, b.x + r, b.y + r, r, M_PI, 3 * M_PI / 2);
        cairo_close_path(p->cr);
    } else {
        cairo_rectangle(p->cr, b.x, b.y, b.w, b.h);
    }
    return paint(p, pen);
}

static int png_circle(void *self, struct spot at, double radius, const struct pen *pen)
{
    struct png *p = self;

    cairo_arc(p->cr, at.x, at.y, radius, 0, 2 * M_PI);
    return paint(p, pen);
}

static int png_text(void *self, struct spot at, const char *text, const struct type *type)
{
    struct png *p = self;
    cairo_text_extents_t e;

    cairo_save(p->cr);
    font_select(p->cr, type->size, type->bold);
    cairo_text_extents(p->cr, text, &e);
    cairo_translate(p->cr, at.x, at.y);
    if (type->upward)
        cairo_rotate(p->cr, -M_PI / 2);
    double shift = type->align == ALIGN_LEFT     ? 0
                   : type->align == ALIGN_MIDDLE ? -e.x_advance / 2
                                                 : -e.x_advance;
    cairo_move_to(p->cr, shift, 0);
    use_ink(p, type->ink, 1);
    cairo_show_text(p->cr, text);
    cairo_restore(p->cr);
    cairo_new_path(p->cr);
    return status(p);
}

static int png_clip(void *self, const struct box *b)
{
    struct png *p = self;

    cairo_reset_clip(p->cr);
    if (b) {
        cairo_rectangle(p->cr, b->x, b->y, b->w, b->h);
        cairo_clip(p->cr);
    }
    return status(p);
}

static int png_mark(void *self, size_t i)
{
    (void)self;
    (void)i;
    return 0;
}

static cairo_status_t write_bytes(void *to, const unsigned char *data, unsigned len)
{
    return fwrite(data, 1, len, to) == len ? CAIRO_STATUS_SUCCESS
                                           : CAIRO_STATUS_WRITE_ERROR;
}

static int png_finish(void *self)
{
    struct png *p = self;

    cairo_surface_flush(p->surface);
    cairo_status_t s = cairo_surface_write_to_png_stream(p->surface, write_bytes, p->to);
    return s == CAIRO_STATUS_SUCCESS ? 0 : s == CAIRO_STATUS_WRITE_ERROR ? -EIO : -ENOMEM;
}

static void png_free(void *self)
{
    struct png *p = self;

    cairo_destroy(p->cr);
    cairo_surface_destroy(p->surface);
    free(p);
}

static const struct canvas_kind png_kind = {
    png_path, png_box, png_circle, png_text, png_clip, png_mark, png_finish, png_free,
};

int canvas_new_png(FILE *to, double width, double height, double scale,
                   struct canvas **ret, uw_error *err)
{
    struct png *p = calloc(1, sizeof *p);

    if (!p)
        return fail(err, -ENOMEM, "out of memory");
    p->to = to;
    p->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(width * scale),
                                            (int)ceil(height * scale));
    p->cr = cairo_create(p->surface);
    cairo_scale(p->cr, scale, scale);
    cairo_set_line_join(p->cr, CAIRO_LINE_JOIN_ROUND);
    return canvas_new(&png_kind, p, ret, err);
}
