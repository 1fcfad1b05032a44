#include "cli/html.h"

#include <stdbool.h>

#include "cli/canvas.h"

static void put_theme(bool dark, FILE *to)
{
    for (int i = 0; i < INKS; i++)
        (void)fprintf(to, "--i%d:%s;", i, ink_colour((enum ink)i, dark));
}

void html_put_style(const char *style, FILE *to)
{
    (void)fputs("<style>\n:root{color-scheme:light dark;", to);
    put_theme(false, to);
    (void)fputs("}\n@media(prefers-color-scheme:dark){:root{", to);
    put_theme(true, to);
    (void)fputs("}}\n", to);
    for (int i = 0; i < INKS; i++)
        (void)fprintf(to, ".f%d{fill:var(--i%d)}.s%d{stroke:var(--i%d)}", i, i, i, i);
    (void)fprintf(to, "\n%s</style>\n", style);
}
