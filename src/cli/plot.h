/* Axes, frames, marks and labels for the pictures. */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/canvas.h"

/* From values to pixels. */
struct axis {
    double lo, hi; /* values at the ends … */
    double at_lo, at_hi;
    double step; /* between ticks: 1, 2 or 5 times a power of ten */
};
/* An axis over at least lo..hi, its ends on whole steps or `loose` at the values, with
 * about `ticks` ticks.
 */
struct axis axis_over(double lo, double hi, unsigned ticks, bool loose);
double axis_at(const struct axis *axis, double value);

struct frame {
    struct box box;
    struct axis x, y; /* at_lo and at_hi are set by frame_draw() */
    const char *title, *note, *x_name, *y_name;
    bool x_ticks; /* numbers below; else only the grid */
    bool percent; /* y as a fraction of the reference is written as such: 0.85 */
};
void frame_draw(struct canvas *c, struct frame *f);
struct spot frame_spot(const struct frame *f, double x, double y);

enum mark { MARK_CIRCLE, MARK_SQUARE, MARK_TRIANGLE, MARK_DIAMOND, MARK_RING };
/* size: half its width; a rim of paper sets it off. */
void mark_draw(struct canvas *c, enum mark mark, struct spot at, double size,
               enum ink ink);

/* A vertical (or horizontal) bar of +-half about a value, both in pixels. */
void bar_draw(struct canvas *c, struct spot at, double half, bool horizontal,
              enum ink ink);

/* What labels may not cover. */
enum { LABELS_MAX = 4096 };
struct labels {
    struct box bounds; /* they stay in here */
    size_t n;
    struct box taken[LABELS_MAX];
};
void labels_take(struct labels *l, struct box box);
void labels_take_spot(struct labels *l, struct spot at, double radius);
/* A line is taken as a row of small boxes. */
void labels_take_line(struct labels *l, struct spot a, struct spot b, double width);
/* Write text beside `at`, no nearer than `off`: in the first of many places where it
 * covers nothing; with a thin leader when that is far.  must: in the least bad place
 * when there is none.  False: not written.
 */
bool labels_put(struct labels *l, struct canvas *c, struct spot at, double off,
                const char *text, const struct type *type, bool must);

#endif
