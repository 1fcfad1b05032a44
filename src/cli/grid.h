/* A sheet of character cells: what a terminal view draws on.  Nothing here knows a
 * terminal, so that views can be read by tests.
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
    uint32_t code; /* Unicode, one column wide */
    uint8_t look;  /* enum grid_look */
};

struct grid {
    unsigned rows, cols;
    bool ascii; /* no characters beyond ASCII */
    struct grid_cell *cell;
};

/* Blank, at least 1 x 1, at most as above.  NULL out of memory. */
struct grid *grid_new(unsigned rows, unsigned cols, bool ascii);
void grid_free(struct grid *g);
DEFINE_AUTO(struct grid *, grid_free);

/* All of these clip at the edges.  Text is UTF-8; what is no character of one column
 * becomes '?'.  Returns the column after the text.
 */
unsigned grid_text(struct grid *g, unsigned row, unsigned col, enum grid_look look,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
/* In exactly so many columns: cut with '~' (or an ellipsis) at the end, or filled up. */
void grid_field(struct grid *g, unsigned row, unsigned col, unsigned width,
                enum grid_look look, const char *text);
void grid_fill(struct grid *g, unsigned row, unsigned col, unsigned width,
               enum grid_look look);
/* Looks alone, characters kept. */
void grid_look_at(struct grid *g, unsigned row, unsigned col, unsigned width,
                  enum grid_look look);
/* A bar of `width` columns, value and mark as fractions of it; mark < 0: none. */
void grid_bar(struct grid *g, unsigned row, unsigned col, unsigned width, double value,
              double mark, enum grid_look look);
/* n values in n columns on a scale from 0 to highest; NaN leaves a gap. */
void grid_spark(struct grid *g, unsigned row, unsigned col, const double *value, size_t n,
                double highest, enum grid_look look);

/* A row as UTF-8 without blanks at its end; free() it.  NULL out of memory. */
char *grid_row(const struct grid *g, unsigned row);
/* A character as UTF-8; returns its length, 1..4. */
unsigned grid_utf8(uint32_t code, char ret[5]);

#endif
