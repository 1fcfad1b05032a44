#include "cli/canvas.h"

#include <cairo.h>
#include <errno.h>
#include <fontconfig/fontconfig.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/canvas-inside.h"
#include "cli/font.h"

struct canvas {
    const struct canvas_kind *kind;
    void *self;
    cairo_surface_t *ruler_surface;
    cairo_t *ruler;
    int r; /* the first failure */
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
    [INK_REF] = {"#1b1f26", "#eceff4"},    [INK_STAMP] = {"#9a6700", "#f0b429"},
};

const char *ink_colour(enum ink ink, bool dark)
{
    return dark ? colours[ink].dark : colours[ink].light;
}

int canvas_new(const struct canvas_kind *kind, void *self, struct canvas **ret,
               uw_error *err)
{
    struct canvas *c = calloc(1, sizeof *c);

    if (!c) {
        kind->free(self);
        return fail(err, -ENOMEM, "out of memory");
    }
    c->kind = kind;
    c->self = self;
    c->ruler_surface = cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1);
    c->ruler = cairo_create(c->ruler_surface);
    if (cairo_status(c->ruler) != CAIRO_STATUS_SUCCESS)
        c->r = -ENOMEM;
    *ret = c;
    return 0;
}

void canvas_free(struct canvas *c)
{
    if (!c)
        return;
    cairo_destroy(c->ruler);
    cairo_surface_destroy(c->ruler_surface);
    c->kind->free(c->self);
    free(c);
}

void canvas_forget_fonts(void)
{
    cairo_debug_reset_static_data();
    FcFini();
}

/* All drawing goes through here: nothing happens after a failure. */
#define DRAW(c, call)        \
    do {                     \
        if ((c)->r == 0)     \
            (c)->r = (call); \
    } while (0)

int canvas_finish(struct canvas *c, uw_error *err)
{
    DRAW(c, c->kind->finish(c->self));
    return c->r < 0 ? fail(err, c->r, "cannot write the picture: %s", strerror(-c->r))
                    : 0;
}

void canvas_fail(struct canvas *c, int r)
{
    DRAW(c, r);
}

void canvas_line(struct canvas *c, struct spot a, struct spot b, const struct pen *pen)
{
    struct spot ends[] = {a, b};
    canvas_path(c, ends, 2, false, pen);
}

void canvas_path(struct canvas *c, const struct spot *spots, size_t n, bool closed,
                 const struct pen *pen)
{
    if (n > 1)
        DRAW(c, c->kind->path(c->self, spots, n, closed, pen));
}

void canvas_box(struct canvas *c, struct box box, double radius, const struct pen *pen)
{
    DRAW(c, c->kind->box(c->self, box, radius, pen));
}

void canvas_circle(struct canvas *c, struct spot at, double radius, const struct pen *pen)
{
    DRAW(c, c->kind->circle(c->self, at, radius, pen));
}

void canvas_text(struct canvas *c, struct spot at, const char *text,
                 const struct type *type)
{
    DRAW(c, c->kind->text(c->self, at, text, type));
}

double canvas_text_width(struct canvas *c, const char *text, double size, bool bold)
{
    cairo_text_extents_t e;

    font_select(c->ruler, size, bold);
    cairo_text_extents(c->ruler, text, &e);
    return e.x_advance;
}

void canvas_clip(struct canvas *c, struct box box)
{
    DRAW(c, c->kind->clip(c->self, &box));
}

void canvas_unclip(struct canvas *c)
{
    DRAW(c, c->kind->clip(c->self, NULL));
}

void canvas_mark(struct canvas *c, size_t i)
{
    DRAW(c, c->kind->mark(c->self, i));
}

void canvas_unmark(struct canvas *c)
{
    DRAW(c, c->kind->mark(c->self, SIZE_MAX));
}

int canvas_escape(FILE *to, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        switch (*p) {
        case '&':
            (void)fputs("&amp;", to);
            break;
        case '<':
            (void)fputs("&lt;", to);
            break;
        case '>':
            (void)fputs("&gt;", to);
            break;
        case '"':
            (void)fputs("&quot;", to);
            break;
        default:
            (void)fputc(*p < ' ' || *p == 127 ? ' ' : *p, to);
        }
    }
    return ferror(to) ? -EIO : 0;
}
