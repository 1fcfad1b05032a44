#include "cli/html.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

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
    "th,td{padding:6px 9px;text-align:right;border-bottom:1px solid var(--i2);"
    "white-space:nowrap}\n"
    "th{white-space:normal;vertical-align:bottom}\n"
    "th:first-child,td:first-child{text-align:left}\n"
    "td:first-child{white-space:normal;overflow-wrap:anywhere;min-width:8em}\n"
    "th{color:var(--i4);font-weight:600}\n"
    "p,li{max-width:75ch;overflow-wrap:anywhere}ul{padding-left:20px}\n"
    ".muted{color:var(--i4)}a{color:inherit}\n"
    ".stamp{color:var(--i13);font-weight:700;letter-spacing:.04em}\n";

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
    (void)fprintf(to, "\n%s%s</style>\n</head>\n<body>\n", common, style);
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

void html_table(FILE *to, const char *columns)
{
    (void)fputs("<div class=\"scroll\"><table>\n", to);
    if (!*columns)
        return;
    (void)fputs("<tr>", to);
    for (const char *at = columns;; at++) {
        size_t len = strcspn(at, "|");
        html_put(to, "th", "%.*s", (int)len, at);
        at += len;
        if (!*at)
            break;
    }
    (void)fputs("</tr>\n", to);
}

void html_table_end(FILE *to)
{
    (void)fputs("</table></div>\n", to);
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
