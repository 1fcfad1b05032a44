/* Signals in a terminal: a chart of blocks, times in local time. */
#ifndef CLI_SIGHT_CHART_H
#define CLI_SIGHT_CHART_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/grid.h"
#include "core/carbon/stretch.h"

enum { SIGHT_TIME = 48, SIGHT_COLS = 80, SIGHT_ROWS = 11 };

/* "Thu 21:00 CET", with the date where it is a week away.  Returns ret. */
const char *sight_time(int64_t utc_s, int64_t now_utc_s, char ret[SIGHT_TIME]);
/* "42 s", "15 min", "7.5 h", "3.2 d".  Returns ret. */
const char *sight_lasts(int64_t s, char ret[24]);

struct sight_chart {
    const struct stretch_point *point;
    size_t n;
    int64_t from_utc_s, to_utc_s;
    int64_t mark_utc_s, mark_s; /* a stretch below the axis; mark_s 0: none */
};
/* Values as bars over time, on SIGHT_ROWS rows of g, which has up to SIGHT_COLS columns:
 * axis and times are the last ones.
 */
void sight_chart_draw(const struct sight_chart *c, struct grid *g);
/* One row of n cells: the course of the values. */
void sight_chart_spark(const struct sight_chart *c, struct grid *g, unsigned row,
                       unsigned col, unsigned n);

/* Whether standard output takes ASCII alone: the locale's word. */
bool sight_ascii(void);
/* Prints rows; colours where `colour`. */
void sight_print(const struct grid *g, bool colour);

#endif
