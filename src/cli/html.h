/* Parts that the HTML pages of reports and sweeps share. */
#ifndef CLI_HTML_H
#define CLI_HTML_H

#include <stdbool.h>
#include <stdio.h>

#include "underwatt/error.h"

/* Writes a page up to <body>: title, style with the inks of both themes, then `style`. */
void html_begin(FILE *to, bool simulated, const char *title, const char *style);
int html_end(FILE *to, uw_error *err);
/* Writes <tag>text</tag> with the text escaped. */
void html_put(FILE *to, const char *tag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum { HTML_COLUMNS = 20, HTML_HEADS = 1000 };
/* Opens a table: "a|b" makes two columns, of HTML_COLUMNS at most; rows follow. */
void html_table(FILE *to, const char *columns);
void html_table_end(FILE *to);
/* Writes the heading, the stamp if simulated, and an open <p>. */
void html_method(FILE *to, bool simulated);
void html_stamp(FILE *to);

#endif
