/* Words of the view. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/figures.h"
#include "cli/top-draw.h"

struct top_word top_number(double v, const char *unit)
{
    struct top_word s = {"-"};

    if (!isnan(v))
        (void)snprintf(s.t, sizeof s.t, "%.0f%s", v, unit);
    return s;
}

struct top_word top_span(double seconds)
{
    struct top_word s = {"-"};
    long v = isnan(seconds) ? -1 : lround(fmin(seconds, 1e9));

    if (isinf(seconds))
        (void)snprintf(s.t, sizeof s.t, "open");
    else if (v >= 86400)
        (void)snprintf(s.t, sizeof s.t, "%ldd%02ldh", v / 86400, v / 3600 % 24);
    else if (v >= 3600)
        (void)snprintf(s.t, sizeof s.t, "%ld:%02ld:%02ld", v / 3600, v / 60 % 60, v % 60);
    else if (v >= 0)
        (void)snprintf(s.t, sizeof s.t, "%ld:%02ld", v / 60, v % 60);
    return s;
}

void top_right(struct grid *g, unsigned row, unsigned end, enum grid_look look,
               const char *text)
{
    unsigned len = text_columns(text);

    (void)grid_text(g, row, end > len ? end - len : 0, look, "%s", text);
}

/* Bytes of the text's first line of `width` columns. */
static size_t line_bytes(const char *text, unsigned width)
{
    const char *at = text, *blank = NULL;
    unsigned cols = 0;

    while (*at) {
        const char *from = at;
        cols += text_next(&at);
        if (cols > width && from > text)
            return (size_t)((*from == ' ' || !blank ? from : blank) - text);
        if (*from == ' ')
            blank = from;
    }
    return (size_t)(at - text);
}

unsigned top_wrap(struct grid *g, unsigned row, unsigned end, unsigned col,
                  enum grid_look look, const char *text)
{
    unsigned width = g->cols > col ? g->cols - col : 1, n = 0;

    while (*text || n == 0) {
        size_t len = line_bytes(text, width);
        if (row + n < end)
            (void)grid_text(g, row + n, col, look, "%.*s", (int)len, text);
        n++;
        text += len;
        text += strspn(text, " ");
    }
    return n;
}

unsigned top_wrap_rows(unsigned width, const char *text)
{
    unsigned n = 0;

    while (*text || n == 0) {
        text += line_bytes(text, width);
        text += strspn(text, " ");
        n++;
    }
    return n;
}
