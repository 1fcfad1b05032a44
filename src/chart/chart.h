/* What charts are made of: axes, frames with ticks, series, marks, labels, legends. */
#ifndef CHART_CHART_H
#define CHART_CHART_H

#include "chart/canvas.h"

/* From values to pixels. */
struct axis {
    double lo, hi; /* values at the ends */
    double at_lo, at_hi;
    double step; /* between ticks: 1, 2 or 5 times a power of ten; 0: no ticks */
};
/* An axis over at least lo..hi with about `ticks` ticks.  Its ends are multiples of the
 * step, or the values themselves where `exact`.
 */
struct axis axis_over(double lo, double hi, unsigned ticks, bool exact);
double axis_at(const struct axis *axis, double value);
enum { AXIS_TEXT = 32 };
/* A tick's value, with the digits that its step needs. */
const char *axis_text(const struct axis *axis, double value, char ret[AXIS_TEXT]);

struct frame {
    struct box box;
    struct axis x, y; /* frame_draw() sets at_lo and at_hi */
    const char *title, *note, *x_name, *y_name;
    bool x_ticks; /* numbers below the grid */
};
/* Draws the frame and forgets the labels of the one before. */
void frame_draw(struct canvas *c, struct frame *f);
struct spot frame_spot(const struct frame *f, double x, double y);

enum mark {
    MARK_CIRCLE,
    MARK_SQUARE,
    MARK_TRIANGLE,
    MARK_DIAMOND,
    MARK_PENTAGON,
    MARK_RING
};
/* size: half its width. */
void mark_draw(struct canvas *c, enum mark mark, struct spot at, double size,
               enum ink ink);

/* A value with its error bar: v +- half. */
struct value {
    double v, half;
};
/* A dot with error bars in both directions, of which labels keep clear.  A bar that goes
 * on beyond the frame ends there with an arrow.
 */
void chart_dot(struct canvas *c, const struct frame *f, struct value x, struct value y,
               double radius, struct pen pen);

/* Values of a bar one after the other from `from` on along the axis: upwards if
 * `upward`, else to the right, `bar` giving the other direction.  Returns where it ends.
 */
double chart_stack(struct canvas *c, const struct axis *axis, struct box bar, bool upward,
                   const double *values, const enum ink *inks, size_t n);

enum key_form { KEY_LINE, KEY_DOT, KEY_SQUARE };
struct key {
    const char *text;
    enum key_form form;
    struct pen pen;
};
/* One entry of a legend, its text at x, y; returns the x behind it. */
double chart_key(struct canvas *c, double x, double y, const struct key *key);

/* ---- labels: of the current frame, none covers another ---- */

void labels_take(struct canvas *c, struct box box);
void labels_take_spot(struct canvas *c, struct spot at, double radius);
void labels_take_line(struct canvas *c, struct spot a, struct spot b, double width);
/* Write text beside `at`, at least `off` away, in the first place where it covers
 * nothing; a leader connects a place that is far.  must: in the least bad place when
 * there is no free one.  False: not written.
 */
bool labels_put(struct canvas *c, struct spot at, double off, const struct type *type,
                bool must, const char *text);

#endif
