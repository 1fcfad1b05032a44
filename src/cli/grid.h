/* A grid of character cells that terminal views draw on.  It needs no terminal, so that
 * tests can read it.
 */
#ifndef CLI_GRID_H
#define CLI_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"

enum { GRID_ROWS_MAX = 400, GRID_COLS_MAX = 500 };

enum grid_look {
    GRID_PLAIN = 0,
    GRID_DIM,
    GRID_BOLD,
    GRID_HEAD, /* a table's head, a key's label */
    GRID_PICKED,
    GRID_GOOD,
    GRID_NEAR, /* power close to its cap */
    GRID_FULL, /* held by its cap */
    GRID_MARK,
    GRID_WARN,
    GRID_LOOKS,
};

struct grid_cell {
    uint32_t code; /* Unicode; 0: the right half of the character before */
    uint32_t mark; /* a combining character of it; 0: none */
    uint8_t look;  /* enum grid_look */
};

struct grid {
    unsigned rows, cols;
    bool ascii; /* no characters beyond ASCII */
    struct grid_cell *cell;
};

/* Makes a blank grid; sizes are clamped to 1 and the maximum.  NULL: out of memory. */
struct grid *grid_new(unsigned rows, unsigned cols, bool ascii);
void grid_free(struct grid *g);
DEFINE_AUTO(struct grid *, grid_free);

/* All of these clip at the edges.  Text is UTF-8; its characters take the columns of
 * text_next().  What the terminal cannot show becomes '?', a second combining character
 * of one cell is dropped, and so are those at the begin of a text.  Returns the column
 * after the text.
 */
unsigned grid_text(struct grid *g, unsigned row, unsigned col, enum grid_look look,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Writes exactly `width` columns: cuts text with '~' or an ellipsis, or pads it. */
void grid_field(struct grid *g, unsigned row, unsigned col, unsigned width,
                enum grid_look look, const char *text);
void grid_fill(struct grid *g, unsigned row, unsigned col, unsigned width,
               enum grid_look look);
/* Changes the look and keeps the characters. */
void grid_look_at(struct grid *g, unsigned row, unsigned col, unsigned width,
                  enum grid_look look);
/* Draws a bar of `width` columns; value and mark are fractions of it; mark < 0: none. */
void grid_bar(struct grid *g, unsigned row, unsigned col, unsigned width, double value,
              double mark, enum grid_look look);
/* Draws a bar upwards from row, of at most `height` rows: value is a fraction of it, of
 * which at least an eighth of a row is shown.
 */
void grid_column(struct grid *g, unsigned row, unsigned col, unsigned height,
                 double value, enum grid_look look);
/* Draws n values in n columns, scaled from 0 to highest; NaN leaves a gap. */
void grid_spark(struct grid *g, unsigned row, unsigned col, const double *value, size_t n,
                double highest, enum grid_look look);

/* Returns a row as UTF-8 without trailing blanks; free() it.  NULL: out of memory. */
char *grid_row(const struct grid *g, unsigned row);
/* Encodes a character as UTF-8; returns its length, 1..4. */
unsigned grid_utf8(uint32_t code, char ret[5]);

#endif
