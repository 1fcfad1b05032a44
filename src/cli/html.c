#include "cli/html.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "chart/canvas.h"

static const char common[] =
    "body{margin:0 auto;padding:0 16px 48px;background:var(--i0);"
    "color:var(--i5);font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,"
    "'Helvetica Neue',Arial,sans-serif}\n"
    "svg{display:block;width:100%;height:auto}\n"
    "h2{font-size:18px;margin:32px 0 8px}\n"
    ".scroll{overflow-x:auto}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}\n"
    "th,td{padding:6px;text-align:right;border-bottom:1px solid var(--i2);"
    "white-space:nowrap}\n"
    "th{white-space:normal;vertical-align:bottom}\n"
    "th:first-child,td:first-child{text-align:left}\n"
    "td:first-child{white-space:normal;overflow-wrap:anywhere;min-width:8em}\n"
    "th{color:var(--i4);font-weight:600}\n"
    "p,li{max-width:75ch;overflow-wrap:anywhere}ul{padding-left:20px}\n"
    ".muted{color:var(--i4)}a{color:inherit}\n"
    ".stamp{color:var(--i13);font-weight:700;letter-spacing:.04em}\n";

/* A table that does not fit shows its rows as blocks: the first cell, then the others,
 * each with the head of its column, which the table has as --cN.  The width is unknown
 * here: more than MANY columns need more of it.
 */
enum { MANY = 7 };
static const struct {
    const char *table;
    int below_px;
} narrow[] = {{"table", 720}, {"table.many", 1040}};

static const struct {
    const char *of, *what;
} blocks[] = {
    {"", "display:block"},
    {" thead", "display:none"},
    {" tbody", "display:block"},
    {" tr", "display:grid;grid-template-columns:repeat(auto-fill,minmax(16em,1fr));"
            "gap:2px 24px;padding:8px 0;border-bottom:1px solid var(--i2)"},
    {" td", "display:flow-root;padding:0;border:0;min-width:0;white-space:normal;"
            "overflow-wrap:anywhere"},
    {" td:first-child", "grid-column:1/-1;font-weight:600"},
    {" td:empty", "display:none"},
    {" td::before", "display:block;float:left;margin-right:12px;color:var(--i4);"
                    "font-weight:400"},
};

static void put_narrow(FILE *to)
{
    for (int i = 1; i <= HTML_COLUMNS; i++)
        (void)fprintf(to, "td:nth-child(%d)::before{content:var(--c%d)}", i, i);
    (void)fputs("\ntd::before{display:none}\n", to);
    for (size_t i = 0; i < n_elements(narrow); i++) {
        (void)fprintf(to, "@media(max-width:%dpx){", narrow[i].below_px);
        for (size_t k = 0; k < n_elements(blocks); k++)
            (void)fprintf(to, "%s%s{%s}", narrow[i].table, blocks[k].of, blocks[k].what);
        (void)fputs("}\n", to);
    }
}

static void put_theme(bool dark, FILE *to)
{
    for (int i = 0; i < INKS; i++)
        (void)fprintf(to, "--i%d:%s;", i, ink_colour((enum ink)i, dark));
}

void html_begin(FILE *to, bool simulated, const char *title, const char *style)
{
    (void)fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                "\n",
                to);
    html_put(to, "title", "%s%s", simulated ? "Simulated: " : "", title);
    (void)fputs("\n<style>\n:root{color-scheme:light dark;", to);
    put_theme(false, to);
    (void)fputs("}\n@media(prefers-color-scheme:dark){:root{", to);
    put_theme(true, to);
    (void)fputs("}}\n", to);
    for (int i = 0; i < INKS; i++)
        (void)fprintf(to, ".f%d{fill:var(--i%d)}.s%d{stroke:var(--i%d)}", i, i, i, i);
    (void)fprintf(to, "\n%s", common);
    put_narrow(to);
    (void)fprintf(to, "%s</style>\n</head>\n<body>\n", style);
}

int html_end(FILE *to, uw_error *err)
{
    (void)fputs("</body>\n</html>\n", to);
    return ferror(to) ? fail(err, -EIO, "cannot write the page") : 0;
}

void html_put(FILE *to, const char *tag, const char *format, ...)
{
    char text[1000];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)fprintf(to, "<%s>", tag);
    canvas_escape(to, text);
    (void)fprintf(to, "</%s>", tag);
}

/* Writes a head as a string of CSS, in an attribute. */
static void put_label(FILE *to, int column, const char *head, size_t len)
{
    char text[200];
    size_t n = 0;

    for (size_t i = 0; i < len && n + 2 < sizeof text; i++) {
        if (head[i] == '"' || head[i] == '\\')
            text[n++] = '\\';
        text[n++] = head[i];
    }
    text[n] = '\0';
    (void)fprintf(to, "--c%d:&quot;", column);
    canvas_escape(to, text);
    (void)fputs("&quot;;", to);
}

/* Writes the heads of "a|b" as cells, or as properties of their table. */
static void put_heads(FILE *to, const char *columns, bool as_style)
{
    int column = 1;

    for (const char *at = columns;; at++, column++) {
        size_t len = strcspn(at, "|");
        if (!as_style)
            html_put(to, "th", "%.*s", (int)len, at);
        else if (len > 0)
            put_label(to, column, at, len);
        at += len;
        if (!*at)
            break;
    }
}

static int count(const char *columns)
{
    int n = 1;

    while ((columns = strchr(columns, '|')) != NULL) {
        columns++;
        n++;
    }
    return n;
}

void html_table(FILE *to, const char *columns)
{
    (void)fprintf(to, "<div class=\"scroll\"><table%s style=\"",
                  count(columns) > MANY ? " class=\"many\"" : "");
    put_heads(to, columns, true);
    (void)fputs("\">\n<thead><tr>", to);
    put_heads(to, columns, false);
    (void)fputs("</tr></thead>\n<tbody>\n", to);
}

void html_table_end(FILE *to)
{
    (void)fputs("</tbody></table></div>\n", to);
}

void html_stamp(FILE *to)
{
    (void)fputs("<span class=\"stamp\">SIMULATED.</span> ", to);
}

void html_method(FILE *to, bool simulated)
{
    (void)fputs("<h2>Method</h2>\n<p>", to);
    if (simulated)
        html_stamp(to);
}
