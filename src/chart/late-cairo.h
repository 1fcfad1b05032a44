/* Cairo's functions: of a library that is loaded with the first picture (base/late.h). */
#ifndef CHART_LATE_CAIRO_H
#define CHART_LATE_CAIRO_H

#include <cairo.h>
#include <fontconfig/fontconfig.h>

#include "underwatt/error.h"

#define CAIRO_CALLS(X)               \
    X(arc)                           \
    X(clip)                          \
    X(close_path)                    \
    X(copy_path)                     \
    X(create)                        \
    X(debug_reset_static_data)       \
    X(destroy)                       \
    X(fill_preserve)                 \
    X(font_options_create)           \
    X(font_options_destroy)          \
    X(font_options_set_hint_metrics) \
    X(image_surface_create)          \
    X(line_to)                       \
    X(move_to)                       \
    X(new_path)                      \
    X(path_destroy)                  \
    X(rectangle)                     \
    X(reset_clip)                    \
    X(restore)                       \
    X(rotate)                        \
    X(save)                          \
    X(scale)                         \
    X(select_font_face)              \
    X(set_dash)                      \
    X(set_font_options)              \
    X(set_font_size)                 \
    X(set_line_join)                 \
    X(set_line_width)                \
    X(set_source_rgba)               \
    X(show_text)                     \
    X(status)                        \
    X(stroke_preserve)               \
    X(surface_destroy)               \
    X(surface_write_to_png_stream)   \
    X(text_extents)                  \
    X(translate)

struct cairo_calls {
#define CAIRO_CALL(name) __typeof__(&cairo_##name) name;
    CAIRO_CALLS(CAIRO_CALL)
#undef CAIRO_CALL
    __typeof__(&FcFini) fonts_fini; /* of the library that Cairo finds fonts with */
};
/* NULL before cairo_load() has returned 0. */
extern const struct cairo_calls *cairo;

/* 0 at once where it is loaded.  -ENOENT. */
int cairo_load(uw_error *err);

#endif
