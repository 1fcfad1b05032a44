/* Parts of the view, and words that they share. */
#ifndef CLI_TOP_DRAW_H
#define CLI_TOP_DRAW_H

#include "cli/top.h"

struct top_word {
    char t[64];
};
/* "-" if unknown, never 0. */
struct top_word top_number(double v, const char *unit);
/* "3:12", "1:02:03", "2d04h"; infinite: "open"; NaN: "-". */
struct top_word top_span(double seconds);
/* Writes the text so that it ends before column `end`. */
void top_right(struct grid *g, unsigned row, unsigned end, enum grid_look look,
               const char *text);
/* Writes the text from column `col` to the right edge in the rows before `end`, broken at
 * blanks where possible; returns the rows that the whole text takes.
 */
unsigned top_wrap(struct grid *g, unsigned row, unsigned end, unsigned col,
                  enum grid_look look, const char *text);
/* Rows of the text in lines of `width` columns. */
unsigned top_wrap_rows(unsigned width, const char *text);

/* Recent power: of the picked board and of those after it. */
void top_draw_graphs(const struct top *t, const struct top_shown *s,
                     const struct top_layout *l, struct grid *g, unsigned row);
/* The claims on the picked board, and what else is known of it. */
unsigned top_claims_rows(const struct top *t, unsigned cols);
void top_draw_claims(const struct top *t, struct grid *g, unsigned row, unsigned end);
/* Why the board's cap is what it is, in full. */
unsigned top_cause_rows(const struct top_board *b, unsigned cols);
void top_draw_cause(const struct top_board *b, struct grid *g, unsigned row,
                    unsigned rows);
unsigned top_details_rows(const struct top *t, unsigned cols);
void top_draw_details(const struct top *t, struct grid *g, unsigned row, unsigned end);
/* The rows that the events take, rounded up, so that parts move seldom. */
unsigned top_events_rows(const struct top *t, unsigned cols);
void top_draw_events(const struct top *t, struct grid *g, unsigned row, unsigned rows);

#endif
