/* A drawing surface: the same calls write an SVG or a PNG.
 *
 * chart/ owns the drawing of pictures.  It may include base/ and cairo, knows nothing of
 * boards or energy, and runs on the thread of its caller.
 *
 * Coordinates are CSS pixels, y downwards.  Colours are roles (enum ink).  An SVG names
 * each role as a class (f0: fill, s0: stroke) beside its light colour, so that a page
 * can set other colours (a dark theme).
 */
#ifndef CHART_CANVAS_H
#define CHART_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "underwatt/error.h"

enum ink {
    INK_NONE = -1,
    INK_PAPER,
    INK_PANEL,
    INK_GRID,
    INK_AXIS,
    INK_MUTED, /* secondary text */
    INK_TEXT,
    INK_POINT,
    INK_FRONT,  /* the Pareto front */
    INK_ENERGY, /* the four goals: the palette of Okabe and Ito, distinct for the
                   colour-blind */
    INK_EDP,
    INK_EDS2,
    INK_EDS15,
    INK_CHOSEN, /* … and a fifth one */
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
    enum ink stroke, fill;
    double width; /* of the stroke */
    double dash;  /* length of dashes and gaps; 0: solid */
    double alpha; /* of both; 0 counts as 1 */
};
struct pen pen_line(enum ink ink, double width);
struct pen pen_fill(enum ink ink);

enum align { ALIGN_LEFT, ALIGN_MIDDLE, ALIGN_RIGHT, ALIGN_UPWARD /* middle, turned */ };
struct type {
    double size;
    enum ink ink;
    bool bold;
};

struct canvas;

enum canvas_kind {
    CANVAS_SVG,    /* a file of its own */
    CANVAS_INLINE, /* an <svg> element for an HTML page */
    CANVAS_PNG,    /* two pixels a CSS pixel */
};
struct sheet {
    enum canvas_kind kind;
    double w, h;
    const char *title; /* alternative text of an SVG */
};
typedef void (*draw_fn)(struct canvas *c, const void *user);

/* Before a command whose picture comes last: whether pictures can be written.  -ENOENT:
 * the library is missing.
 */
int canvas_load(uw_error *err);
/* Write to `to` what `draw` draws.  Returns 0, -ENOENT
 * (canvas_load()), -ENOMEM or -EIO.
 */
int canvas_write(FILE *to, const struct sheet *sheet, draw_fn draw, const void *user,
                 uw_error *err);
double canvas_width(const struct canvas *c);
/* Free the fonts that are cached between canvases. */
void canvas_forget_fonts(void);
/* Write text with &, <, > and " escaped and controls as blanks, for XML and HTML. */
void canvas_escape(FILE *to, const char *text);

/* Add a corner to the path; canvas_stroke() paints the path and begins a new one. */
void canvas_to(struct canvas *c, struct spot at);
void canvas_stroke(struct canvas *c, bool closed, struct pen pen);
void canvas_line(struct canvas *c, struct spot a, struct spot b, struct pen pen);
void canvas_box(struct canvas *c, struct box box, double radius, struct pen pen);
void canvas_circle(struct canvas *c, struct spot at, double radius, struct pen pen);
/* x, y: on the base line. */
void canvas_text(struct canvas *c, double x, double y, enum align align,
                 const struct type *type, const char *text);
double canvas_text_width(struct canvas *c, const struct type *type, const char *text);
/* Show only what lies inside the box, until canvas_unclip().  Clips do not nest. */
void canvas_clip(struct canvas *c, struct box box);
void canvas_unclip(struct canvas *c);
/* Tag what is drawn until canvas_unmark() as point i, for the script of a page: an
 * element of class "pt" with the attribute data-i.
 */
void canvas_mark(struct canvas *c, size_t i);
void canvas_unmark(struct canvas *c);

/* What the labels of the current frame must not cover: see chart.h. */
enum { TAKEN_MAX = 4096 };
struct labels {
    struct box bounds;
    size_t n;
    struct box taken[TAKEN_MAX];
};
struct labels *canvas_labels(struct canvas *c);

#endif
