/* A page to draw on: the same calls make an SVG file or a PNG.
 *
 * Coordinates are CSS pixels, y downwards.  Colours are roles (enum ink): the SVG
 * names them as classes f0, s0 … beside their light values, so that a page round it
 * can give them others (a dark theme).  A canvas remembers its first failure and
 * canvas_finish() reports it.
 */
#ifndef CLI_CANVAS_H
#define CLI_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/auto.h"
#include "underwatt/error.h"

enum ink {
    INK_NONE = -1,
    INK_PAPER,
    INK_PANEL,
    INK_GRID,
    INK_AXIS,
    INK_MUTED, /* secondary text */
    INK_TEXT,
    INK_POINT,  /* a cap */
    INK_FRONT,  /* the Pareto front */
    INK_ENERGY, /* the four goals: Okabe and Ito's palette for all kinds of eyes */
    INK_EDP,
    INK_EDS2,
    INK_EDS15,
    INK_REF,
    INK_STAMP,
    INKS,
};
/* "#0072b2" of the light or the dark theme. */
const char *ink_colour(enum ink ink, bool dark);

struct spot {
    double x, y;
};
struct box {
    double x, y, w, h;
};

struct pen {
    enum ink stroke, fill; /* INK_NONE: not */
    double width;          /* of the stroke */
    double dash;           /* 0: solid; else length of dashes and gaps */
    double alpha;          /* of both; 0 counts as 1 */
};

enum align { ALIGN_LEFT, ALIGN_MIDDLE, ALIGN_RIGHT };
struct type {
    double size;
    enum ink ink;
    enum align align;
    bool bold;
    bool upward; /* written from below to above */
};

struct canvas;

/* An SVG of its own, or (inlined) an <svg> element for an HTML page; written to `to`
 * as it is drawn.  title: for those who cannot see it.
 */
int canvas_new_svg(FILE *to, double width, double height, const char *title, bool inlined,
                   struct canvas **ret, uw_error *err);
/* A PNG of `scale` pixels a CSS pixel, written by canvas_finish(). */
int canvas_new_png(FILE *to, double width, double height, double scale,
                   struct canvas **ret, uw_error *err);
/* 0, -ENOMEM or -EIO.  Nothing may be drawn after it. */
int canvas_finish(struct canvas *c, uw_error *err);
void canvas_free(struct canvas *c);
DEFINE_AUTO(struct canvas *, canvas_free);
/* Fonts are kept from one canvas to the next; after the last one they may go. */
void canvas_forget_fonts(void);

/* Whoever draws lacks something (r < 0): canvas_finish() returns it. */
void canvas_fail(struct canvas *c, int r);
void canvas_line(struct canvas *c, struct spot a, struct spot b, const struct pen *pen);
void canvas_path(struct canvas *c, const struct spot *spots, size_t n, bool closed,
                 const struct pen *pen);
void canvas_box(struct canvas *c, struct box box, double radius, const struct pen *pen);
void canvas_circle(struct canvas *c, struct spot at, double radius,
                   const struct pen *pen);
/* at: on the base line. */
void canvas_text(struct canvas *c, struct spot at, const char *text,
                 const struct type *type);
/* Width of a line of text, with the font of the PNG. */
double canvas_text_width(struct canvas *c, const char *text, double size, bool bold);
/* What is drawn until canvas_unclip() shows inside the box only; no nesting. */
void canvas_clip(struct canvas *c, struct box box);
void canvas_unclip(struct canvas *c);
/* What is drawn until canvas_unmark() belongs to point i: a page's script finds it
 * by its class "pt" and attribute data-i.
 */
void canvas_mark(struct canvas *c, size_t i);
void canvas_unmark(struct canvas *c);

#endif
