/* What the HTML pages of reports and sweeps share. */
#ifndef CLI_HTML_H
#define CLI_HTML_H

#include <stdio.h>

/* The style element: the inks of both themes as variables and classes, then `style`. */
void html_put_style(const char *style, FILE *to);

#endif
