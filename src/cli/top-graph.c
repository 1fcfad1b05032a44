/* Graphs of the boards' recent power. */
#include <math.h>
#include <stdio.h>

#include "cli/top-draw.h"

enum {
    LABEL = 6,       /* columns left of a graph */
    COLS_LEAST = 30, /* of the terminal, for any graph */
};

/* The newest n powers of a board, the newest last, and their range; *ret_least >
 * *ret_most: none is known.
 */
static void newest(const struct top *t, const struct top_board *b, double *v, unsigned n,
                   double *ret_least, double *ret_most)
{
    *ret_least = INFINITY;
    *ret_most = 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned age = n - 1 - i;
        v[i] = b->history_w[(t->looks + TOP_HISTORY - 1 - age) % TOP_HISTORY];
        if (!isnan(v[i])) {
            *ret_least = fmin(*ret_least, v[i]);
            *ret_most = fmax(*ret_most, v[i]);
        }
    }
}

/* Draws the recent power of the picked board in one row. */
static void draw_history_row(const struct top *t, struct grid *g, unsigned row)
{
    double v[TOP_HISTORY], least, most;
    const struct top_board *b = &t->board[t->picked];
    unsigned left = grid_text(g, row, 0, GRID_PLAIN, "GPU %u ", b->index);
    unsigned n = g->cols - left - 18;

    if (n > TOP_HISTORY)
        n = TOP_HISTORY;
    newest(t, b, v, n, &least, &most);
    grid_spark(g, row, left, v, n, b->max_w > 0 ? b->max_w : most, GRID_GOOD);
    if (least <= most)
        (void)grid_text(g, row, left + n + 1, GRID_DIM, "%.0f..%.0f W", least, most);
}

/* Draws one board's recent power in `rows` rows and `cols` columns: a line of text, then
 * a graph from 0 to the highest limit with a line at the cap in force.
 */
static void draw_graph(const struct top *t, const struct top_board *b, struct grid *g,
                       unsigned row, unsigned rows, unsigned col, unsigned cols)
{
    double v[TOP_HISTORY], least, most;
    unsigned n = cols - LABEL < TOP_HISTORY ? cols - LABEL : TOP_HISTORY;
    unsigned left = col + LABEL, height = rows - 1, base = row + height;
    char range[40] = "", text[160];

    newest(t, b, v, n, &least, &most);
    double top = b->max_w > 0 ? b->max_w : most;
    if (least <= most)
        (void)snprintf(range, sizeof range, ", %.0f..%.0f W", least, most);
    (void)snprintf(text, sizeof text, "GPU %u power, %.0f s%s%s%.60s", b->index,
                   n * t->look_s, range, isnan(b->power_w) ? ", now: " : "",
                   !isnan(b->power_w) ? ""
                   : b->text[0]       ? b->text
                                      : "no answer");
    grid_field(g, row, col, cols, b == &t->board[t->picked] ? GRID_BOLD : GRID_PLAIN,
               text);
    top_right(g, row + 1, left - 1, GRID_DIM, top_number(top, "").t);
    top_right(g, base, left - 1, GRID_DIM, "0");
    if (b->cap_w > 0 && top > 0) {
        unsigned at = (unsigned)fmin(b->cap_w / top * height, height - 1);
        for (unsigned i = 0; i < n; i++)
            (void)grid_text(g, base - at, left + i, GRID_DIM, g->ascii ? "-" : "┈");
    }
    for (unsigned i = 0; i < n && top > 0; i++)
        if (!isnan(v[i]))
            grid_column(g, base, left + i, height, v[i] / top, GRID_GOOD);
}

void top_draw_graphs(const struct top *t, const struct top_shown *s,
                     const struct top_layout *l, struct grid *g, unsigned row)
{
    size_t n = (size_t)l->bands * l->beside;

    if (s->n == 0 || g->cols < COLS_LEAST)
        return;
    if (l->graphs == 1) {
        draw_history_row(t, g, row);
        return;
    }
    n = n < s->n ? n : s->n;
    size_t first = s->picked + n > s->n ? s->n - n : s->picked;
    unsigned cols = g->cols / l->beside;
    for (unsigned i = 0; i < n; i++) {
        unsigned band = i / l->beside, from = l->graphs * band / l->bands;
        unsigned to = l->graphs * (band + 1) / l->bands;
        draw_graph(t, &t->board[s->at[first + i]], g, row + from, to - from,
                   i % l->beside * cols, cols - 1);
    }
}
