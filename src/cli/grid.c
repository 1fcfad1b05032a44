#include "cli/grid.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "cli/figures.h"

struct grid *grid_new(unsigned rows, unsigned cols, bool ascii)
{
    struct grid *g = calloc(1, sizeof *g);

    if (!g)
        return NULL;
    g->rows = rows < 1 ? 1 : rows > GRID_ROWS_MAX ? GRID_ROWS_MAX : rows;
    g->cols = cols < 1 ? 1 : cols > GRID_COLS_MAX ? GRID_COLS_MAX : cols;
    g->ascii = ascii;
    g->cell = calloc((size_t)g->rows * g->cols, sizeof *g->cell);
    if (!g->cell) {
        free(g);
        return NULL;
    }
    for (size_t i = 0; i < (size_t)g->rows * g->cols; i++)
        g->cell[i].code = ' ';
    return g;
}

void grid_free(struct grid *g)
{
    if (!g)
        return;
    free(g->cell);
    free(g);
}

/* NULL: outside of the grid. */
static struct grid_cell *cell_at(const struct grid *g, unsigned row, unsigned col)
{
    return row < g->rows && col < g->cols ? &g->cell[(size_t)row * g->cols + col] : NULL;
}

/* What is left of a character that is overwritten in one of its two columns is blank. */
static void put(struct grid *g, unsigned row, unsigned col, uint32_t code,
                enum grid_look look)
{
    struct grid_cell *c = cell_at(g, row, col), *next = cell_at(g, row, col + 1);

    if (!c)
        return;
    if (c->code == 0 && col > 0)
        c[-1] = (struct grid_cell){.code = ' ', .look = c[-1].look};
    if (next && next->code == 0)
        next->code = ' ';
    *c = (struct grid_cell){.code = code, .look = (uint8_t)look};
}

/* The character at s; '?' for invalid UTF-8. */
static uint32_t code_at(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    unsigned more = s[0] < 0x80 ? 0 : s[0] >> 5 == 6 ? 1 : s[0] >> 4 == 14 ? 2 : 3;
    uint32_t code = more == 0 ? s[0] : s[0] & (0x3fu >> more);

    if (s[0] >= 0x80 && (s[0] < 0xc2 || s[0] > 0xf4))
        return '?';
    for (unsigned i = 1; i <= more; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return '?';
        code = code << 6 | (s[i] & 0x3f);
    }
    return code;
}

/* Characters that take one column in every locale: Latin, Greek, Cyrillic, punctuation,
 * boxes.
 */
static bool is_narrow(uint32_t code)
{
    return (code >= 0x20 && code < 0x7f) ||
           (code >= 0xa1 && code < 0x300 && code != 0xad) ||
           (code >= 0x370 && code < 0x530) || (code >= 0x2010 && code < 0x2028) ||
           (code >= 0x20a0 && code < 0x20c0) || (code >= 0x2190 && code < 0x2200) ||
           (code >= 0x2200 && code < 0x2300) || (code >= 0x2500 && code < 0x25a0);
}

static bool is_shown(const struct grid *g, uint32_t code)
{
    return g->ascii ? code >= 0x20 && code < 0x7f
                    : is_narrow(code) || wcwidth((wchar_t)code) >= 0;
}

/* Adds a combining character to the one before col. */
static void put_mark(struct grid *g, unsigned row, unsigned col, uint32_t mark)
{
    struct grid_cell *c = col > 0 ? cell_at(g, row, col - 1) : NULL;

    if (c && c->code == 0 && col > 1)
        c--;
    if (c && is_shown(g, mark) && c->mark == 0)
        c->mark = mark;
}

/* Draws the next character, unless it exceeds the columns before `end`, and advances
 * *text; returns its columns.
 */
static unsigned put_next(struct grid *g, unsigned row, unsigned col, unsigned end,
                         enum grid_look look, const char **text)
{
    uint32_t code = code_at(*text);
    unsigned width = text_next(text);

    if (width == 0)
        put_mark(g, row, col, code);
    for (unsigned i = 0; i < width && col + width <= end; i++)
        put(g, row, col + i, is_shown(g, code) ? code : '?', look);
    if (width == 2 && col + width <= end && is_shown(g, code) && cell_at(g, row, col + 1))
        cell_at(g, row, col + 1)->code = 0;
    return width;
}

/* The text without combining characters at its begin: what stands before it in the row is
 * another text.
 */
static const char *skip_marks(const char *text)
{
    for (const char *next = text; *next && text_next(&next) == 0;)
        text = next;
    return text;
}

unsigned grid_text(struct grid *g, unsigned row, unsigned col, enum grid_look look,
                   const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (const char *at = skip_marks(text); *at;)
        col += put_next(g, row, col, g->cols, look, &at);
    return col;
}

void grid_field(struct grid *g, unsigned row, unsigned col, unsigned width,
                enum grid_look look, const char *text)
{
    unsigned i = 0, more = 0;

    for (text = skip_marks(text); *text && i <= width; i += more)
        more = put_next(g, row, col + i, col + width, look, &text);
    bool cut = i > width;
    for (i = cut ? i - more : i; i < width; i++)
        put(g, row, col + i, ' ', look);
    if (cut && width > 0)
        put(g, row, col + width - 1, g->ascii ? '~' : 0x2026, look);
}

void grid_fill(struct grid *g, unsigned row, unsigned col, unsigned width,
               enum grid_look look)
{
    for (unsigned i = 0; i < width; i++)
        put(g, row, col + i, ' ', look);
}

void grid_look_at(struct grid *g, unsigned row, unsigned col, unsigned width,
                  enum grid_look look)
{
    for (unsigned end = col + width; row < g->rows && col < g->cols && col < end; col++)
        g->cell[(size_t)row * g->cols + col].look = (uint8_t)look;
}

static double within(double v, double lowest, double highest)
{
    return !(v > lowest) ? lowest : v > highest ? highest : v;
}

void grid_bar(struct grid *g, unsigned row, unsigned col, unsigned width, double value,
              double mark, enum grid_look look)
{
    /* Eighths of a column: U+258F is one, U+2588 eight. */
    unsigned full = (unsigned)lround(within(value, 0, 1) * width * 8);

    for (unsigned i = 0; i < width; i++) {
        unsigned eighths = full >= 8 * (i + 1) ? 8 : full > 8 * i ? full - 8 * i : 0;
        if (eighths == 0)
            put(g, row, col + i, g->ascii ? '.' : 0xb7, GRID_DIM);
        else if (g->ascii)
            put(g, row, col + i, eighths >= 4 ? '#' : '.', look);
        else
            put(g, row, col + i, 0x2590 - eighths, look);
    }
    if (mark >= 0 && width > 0) {
        unsigned at = (unsigned)(within(mark, 0, 1) * width);
        put(g, row, col + (at < width ? at : width - 1), g->ascii ? '|' : 0x2502,
            GRID_MARK);
    }
}

void grid_column(struct grid *g, unsigned row, unsigned col, unsigned height,
                 double value, enum grid_look look)
{
    static const char ascii[] = " .:-=+*##";
    /* Eighths of a row: U+2581 is one, U+2588 eight. */
    unsigned full = (unsigned)lround(within(value, 0, 1) * height * 8);

    full = full ? full : 1;
    for (unsigned i = 0; i < height && i <= row && full > 8 * i; i++) {
        unsigned eighths = full - 8 * i < 8 ? full - 8 * i : 8;
        put(g, row - i, col, g->ascii ? (uint32_t)ascii[eighths] : 0x2580 + eighths,
            look);
    }
}

void grid_spark(struct grid *g, unsigned row, unsigned col, const double *value, size_t n,
                double highest, enum grid_look look)
{
    static const char ascii[] = "_.:-=+*#";

    for (size_t i = 0; i < n; i++) {
        if (isnan(value[i]))
            continue;
        double part = highest > 0 ? value[i] / highest : 0;
        unsigned level = (unsigned)(within(part, 0, 0.999) * 8);
        put(g, row, col + (unsigned)i, g->ascii ? (uint32_t)ascii[level] : 0x2581 + level,
            look);
    }
}

unsigned grid_utf8(uint32_t code, char ret[5])
{
    unsigned n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (unsigned i = n; i-- > 1; code >>= 6)
        ret[i] = (char)(0x80 | (code & 0x3f));
    ret[0] = (char)(first[n] | code);
    ret[n] = '\0';
    return n;
}

char *grid_row(const struct grid *g, unsigned row)
{
    char *text = malloc((size_t)g->cols * 8 + 1);
    size_t n = 0, end = 0;

    if (!text)
        return NULL;
    for (unsigned col = 0; row < g->rows && col < g->cols; col++) {
        const struct grid_cell *c = cell_at(g, row, col);
        const uint32_t codes[] = {c->code, c->mark};
        for (size_t i = 0; i < 2 && codes[i]; i++) {
            char utf8[5];
            unsigned len = grid_utf8(codes[i], utf8);
            memcpy(text + n, utf8, len);
            n += len;
        }
        if (c->code != ' ')
            end = n;
    }
    text[end] = '\0';
    return text;
}
