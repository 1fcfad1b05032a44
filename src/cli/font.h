/* The one font of the pictures. */
#ifndef CLI_FONT_H
#define CLI_FONT_H

#include <cairo.h>
#include <stdbool.h>

static inline void font_select(cairo_t *cr, double size, bool bold)
{
    cairo_select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cr, size);
}

#endif
