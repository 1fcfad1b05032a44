#include "cli/figures.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/within.h"
#include "cli/view.h"

struct scale {
    double factor;
    const char *unit;
};

static struct scale scale_of(double j)
{
    static const struct scale scales[] = {{1e9, "GJ"}, {1e6, "MJ"}, {1e3, "kJ"}};

    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if (fabs(j) >= 0.99995 * scales[i].factor)
            return scales[i];
    return (struct scale){1, "J"};
}

const char *figure_joules_unit(double j, double *ret_factor)
{
    struct scale s = scale_of(j);

    *ret_factor = s.factor;
    return s.unit;
}

struct figure figure_joules(double j)
{
    struct figure f = {"-"};
    struct scale s = scale_of(j);

    if (!isnan(j))
        (void)snprintf(f.t, sizeof f.t, "%.*f %s", view_digits(fabs(j) / s.factor),
                       j / s.factor, s.unit);
    return f;
}

struct figure figure_within(double v, double half, const char *unit)
{
    struct figure f = {"-"};
    char text[WITHIN_TEXT];

    if (!isnan(v) && !isnan(half))
        (void)snprintf(f.t, sizeof f.t, "%s%s%s", within_text(v, half, text),
                       *unit ? " " : "", unit);
    return f;
}

struct figure figure_joules_within(double j, double half_j)
{
    struct scale s = scale_of(j);

    return figure_within(j / s.factor, half_j / s.factor, s.unit);
}

bool figure_told(double v, double half)
{
    return fabs(v) > half;
}

struct figure figure_saved(double v, double half, const char *unit)
{
    return figure_saved_in(v, half, unit, TEXT_COLUMNS);
}

struct figure figure_saved_in(double v, double half, const char *unit, unsigned columns)
{
    struct within w = within(v, half);
    struct figure f = figure_within(v, half, unit);
    const char *blank = *unit ? " " : "";

    if (isnan(v) || isnan(half))
        return f;
    if (!figure_told(v, half))
        (void)snprintf(f.t, sizeof f.t, "~0 ± %.*f%s%s", w.places, w.half, blank, unit);
    else if (half > 0 && w.places > 0 && text_columns(f.t) > columns)
        (void)snprintf(f.t, sizeof f.t, "%.*f ± %.*f%s%s", w.places - 1, v, w.places - 1,
                       half, blank, unit);
    return f;
}

void figure_put_signs(FILE *to, unsigned indent, bool untold)
{
    (void)fprintf(to, "%*s±: %s%s\n", (int)indent, "", FIGURE_HALF,
                  untold ? "; " FIGURE_UNTOLD : "");
}

struct figure figure_time(double s)
{
    struct figure f = {"-"};

    if (s >= 864000)
        (void)snprintf(f.t, sizeof f.t, "%.0f d", s / 86400);
    else if (s >= 36000)
        (void)snprintf(f.t, sizeof f.t, "%.1f h", s / 3600);
    else if (s >= 600)
        (void)snprintf(f.t, sizeof f.t, "%.0f min", s / 60);
    else if (!isnan(s))
        (void)snprintf(f.t, sizeof f.t, "%.0f s", s);
    return f;
}

struct figure figure_watts(double w)
{
    struct figure f = {"-"};

    if (fabs(w) >= 9999.5)
        (void)snprintf(f.t, sizeof f.t, "%.0f W", w);
    else if (!isnan(w))
        (void)snprintf(f.t, sizeof f.t, "%.4g W", fabs(w) < 0.0005 ? 0 : w);
    return f;
}

struct figure figure_power(double w)
{
    struct figure f = {"-"};

    if (!isnan(w))
        (void)snprintf(f.t, sizeof f.t, "%.1f W", fabs(w) < 0.05 ? 0 : w);
    return f;
}

size_t board_name_length(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n >= m && strcmp(name + n - m, end) == 0 ? n - m : n;
}

unsigned text_next(const char **text)
{
    mbstate_t state = {0};
    wchar_t c = L'\0';
    size_t n = mbrtowc(&c, *text, strlen(*text), &state);

    if (n > 0 && n != (size_t)-1 && n != (size_t)-2) {
        int width = wcwidth(c);
        *text += n;
        return width < 0 ? 1 : (unsigned)width;
    }
    do
        ++*text;
    while (((unsigned char)**text & 0xc0) == 0x80);
    return 1;
}

static unsigned columns_of(const char *text, size_t len)
{
    const char *end = text + len;
    unsigned n = 0;

    while (text < end)
        n += text_next(&text);
    return n;
}

unsigned text_columns(const char *text)
{
    return columns_of(text, strlen(text));
}

unsigned text_width(void)
{
    struct winsize size = {.ws_col = 0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return TEXT_COLUMNS;
    return size.ws_col;
}

void text_wrap(FILE *to, unsigned at, unsigned indent, const char *text)
{
    text_wrap_in(to, TEXT_COLUMNS, at, indent, text);
}

void text_wrap_in(FILE *to, unsigned width, unsigned at, unsigned indent,
                  const char *text)
{
    static const char within[] = " ± "; /* "1.5 ± 0.2" is one word */
    bool first = true;                  /* first word of the line */

    while (*text) {
        size_t len = strcspn(text, " ");
        if (strncmp(text + len, within, strlen(within)) == 0)
            len += strlen(within) + strcspn(text + len + strlen(within), " ");
        unsigned n = columns_of(text, len);
        if (!first && at + 1 + n > width) {
            (void)fprintf(to, "\n%*s", (int)indent, "");
            at = indent;
            first = true;
        }
        (void)fprintf(to, "%s%.*s", first ? "" : " ", (int)len, text);
        at += n + !first;
        first = false;
        text += len;
        text += strspn(text, " ");
    }
    (void)fputc('\n', to);
}
