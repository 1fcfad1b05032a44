#include "base/auto.h"
#include "cli/canvas.h"
#include "cli/sweep-picture.h"
#include "cli/view.h"

int view_svg(const struct view *v, FILE *to, uw_error *err)
{
    auto_(canvas_free) struct canvas *c = NULL;
    char title[300];

    (void)snprintf(title, sizeof title, "%sPower cap sweep: %.200s on %.40s",
                   v->simulated ? "Simulated. " : "", v->label, v->board);
    int r = canvas_new_svg(to, PICTURE_WIDTH, PICTURE_HEIGHT, title, false, &c, err);
    if (r < 0)
        return r;
    picture_draw(c, v);
    return canvas_finish(c, err);
}

int view_png(const struct view *v, FILE *to, uw_error *err)
{
    auto_(canvas_free) struct canvas *c = NULL;

    int r = canvas_new_png(to, PICTURE_WIDTH, PICTURE_HEIGHT, 2, &c, err);
    if (r < 0)
        return r;
    picture_draw(c, v);
    return canvas_finish(c, err);
}
