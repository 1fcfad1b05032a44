#include "chart/late-cairo.h"

#include "base/auto.h"
#include "base/error.h"
#include "base/late.h"

const struct cairo_calls *cairo;

int cairo_load(uw_error *err)
{
    static struct cairo_calls calls;
    static const struct late_call late[] = {
#define CAIRO_CALL(name) {"cairo_" #name, &calls.name},
        CAIRO_CALLS(CAIRO_CALL)
#undef CAIRO_CALL
            {"FcFini", &calls.fonts_fini},
    };

    if (cairo)
        return 0;
    int r = late_load(CAIRO_LIBRARY, late, n_elements(late), err);
    if (r < 0)
        return fail_in(err, r, "pictures need Cairo");
    cairo = &calls;
    return 0;
}
