#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"
#include "cli/canvas-inside.h"

#define FONTS                                                           \
    "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial," \
    "'Liberation Sans','DejaVu Sans',sans-serif"

struct svg {
    FILE *to;
    unsigned clips;
};

static int state(const struct svg *s)
{
    return ferror(s->to) ? -EIO : 0;
}

static void put_ink(const struct svg *s, const char *what, enum ink ink)
{
    (void)fprintf(s->to, " %s=\"%s\"", what,
                  ink == INK_NONE ? "none" : ink_colour(ink, false));
}

static void put_pen(const struct svg *s, const struct pen *pen)
{
    (void)fputs(" class=\"", s->to);
    if (pen->fill != INK_NONE)
        (void)fprintf(s->to, "f%d", (int)pen->fill);
    if (pen->stroke != INK_NONE)
        (void)fprintf(s->to, "%ss%d", pen->fill != INK_NONE ? " " : "", (int)pen->stroke);
    (void)fputc('"', s->to);
    put_ink(s, "fill", pen->fill);
    if (pen->stroke != INK_NONE) {
        put_ink(s, "stroke", pen->stroke);
        (void)fprintf(s->to, " stroke-width=\"%.4g\"", pen->width);
        if (pen->dash > 0)
            (void)fprintf(s->to, " stroke-dasharray=\"%.4g\"", pen->dash);
    }
    if (pen->alpha > 0 && pen->alpha < 1)
        (void)fprintf(s->to, " opacity=\"%.3g\"", pen->alpha);
}

static int svg_path(void *self, const struct spot *spots, size_t n, bool closed,
                    const struct pen *pen)
{
    struct svg *s = self;

    (void)fputs("<path", s->to);
    put_pen(s, pen);
    (void)fputs(" d=\"", s->to);
    for (size_t i = 0; i < n; i++)
        (void)fprintf(s->to, "%c%.2f %.2f", i ? 'L' : 'M', spots[i].x, spots[i].y);
    (void)fprintf(s->to, "%s\"/>\n", closed ? "Z" : "");
    return state(s);
}

static int svg_box(void *self, struct box b, double radius, const struct pen *pen)
{
    struct svg *s = self;

    (void)fprintf(s->to, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"",
                  b.x, b.y, b.w, b.h);
    if (radius > 0)
        (void)fprintf(s->to, " rx=\"%.2f\"", radius);
    put_pen(s, pen);
    (void)fputs("/>\n", s->to);
    return state(s);
}

static int svg_circle(void *self, struct spot at, double radius, const struct pen *pen)
{
    struct svg *s = self;

    (void)fprintf(s->to, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\"", at.x, at.y,
                  radius);
    put_pen(s, pen);
    (void)fputs("/>\n", s->to);
    return state(s);
}

static int svg_text(void *self, struct spot at, const char *text, const struct type *type)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    struct svg *s = self;

    (void)fprintf(s->to, "<text class=\"f%d\" x=\"%.2f\" y=\"%.2f\" font-size=\"%.4g\"",
                  (int)type->ink, at.x, at.y, type->size);
    if (type->bold)
        (void)fputs(" font-weight=\"bold\"", s->to);
    if (type->align != ALIGN_LEFT)
        (void)fprintf(s->to, " text-anchor=\"%s\"", anchors[type->align]);
    if (type->upward)
        (void)fprintf(s->to, " transform=\"rotate(-90 %.2f %.2f)\"", at.x, at.y);
    put_ink(s, "fill", type->ink);
    (void)fputc('>', s->to);
    (void)canvas_escape(s->to, text);
    (void)fputs("</text>\n", s->to);
    return state(s);
}

static int svg_clip(void *self, const struct box *b)
{
    struct svg *s = self;

    if (!b) {
        (void)fputs("</g>\n", s->to);
        return state(s);
    }
    (void)fprintf(s->to,
                  "<clipPath id=\"clip%u\"><rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
                  "height=\"%.2f\"/></clipPath>\n<g clip-path=\"url(#clip%u)\">\n",
                  s->clips, b->x, b->y, b->w, b->h, s->clips);
    s->clips++;
    return state(s);
}

static int svg_mark(void *self, size_t i)
{
    struct svg *s = self;

    if (i == SIZE_MAX)
        (void)fputs("</g>\n", s->to);
    else
        (void)fprintf(s->to, "<g class=\"pt\" data-i=\"%zu\">\n", i);
    return state(s);
}

static int svg_finish(void *self)
{
    struct svg *s = self;

    (void)fputs("</svg>\n", s->to);
    return state(s);
}

static const struct canvas_kind svg_kind = {
    svg_path, svg_box, svg_circle, svg_text, svg_clip, svg_mark, svg_finish, free,
};

int canvas_new_svg(FILE *to, double width, double height, const char *title, bool inlined,
                   struct canvas **ret, uw_error *err)
{
    struct svg *s = calloc(1, sizeof *s);

    if (!s)
        return fail(err, -ENOMEM, "out of memory");
    s->to = to;
    if (!inlined)
        (void)fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", to);
    (void)fprintf(to,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" "
                  "font-family=\"%s\" role=\"img\"",
                  width, height, FONTS);
    if (!inlined)
        (void)fprintf(to, " width=\"%g\" height=\"%g\"", width, height);
    (void)fputs(">\n<title>", to);
    (void)canvas_escape(to, title);
    (void)fputs("</title>\n", to);
    return canvas_new(&svg_kind, s, ret, err);
}
