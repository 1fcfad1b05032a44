#include <math.h>

#include "base/auto.h"
#include "cli/plot.h"

void labels_take(struct labels *l, struct box box)
{
    if (l->n < LABELS_MAX)
        l->taken[l->n++] = box;
}

void labels_take_spot(struct labels *l, struct spot at, double radius)
{
    labels_take(l, (struct box){at.x - radius, at.y - radius, 2 * radius, 2 * radius});
}

void labels_take_line(struct labels *l, struct spot a, struct spot b, double width)
{
    double len = hypot(b.x - a.x, b.y - a.y);
    int pieces = (int)ceil(len / 4) + 1;

    if (pieces > 400)
        pieces = 400;
    for (int i = 0; i <= pieces; i++) {
        double f = (double)i / pieces;
        struct spot at = {a.x + (b.x - a.x) * f, a.y + (b.y - a.y) * f};
        labels_take_spot(l, at, width / 2);
    }
}

/* Area that both cover, with a little air between them. */
static double overlap(struct box a, struct box b)
{
    double w = fmin(a.x + a.w, b.x + b.w) - fmax(a.x, b.x);
    double h = fmin(a.y + a.h, b.y + b.h) - fmax(a.y, b.y);
    return w > 0 && h > 0 ? w * h : 0;
}

static double badness(const struct labels *l, struct box b)
{
    const struct box in = l->bounds;
    double bad = 0;

    if (b.x < in.x || b.y < in.y || b.x + b.w > in.x + in.w || b.y + b.h > in.y + in.h)
        return INFINITY;
    for (size_t i = 0; i < l->n; i++)
        bad += overlap(b, l->taken[i]);
    return bad;
}

/* The place k steps round `at` at that distance. */
static struct box place(struct spot at, double off, double w, double h, unsigned k)
{
    static const struct {
        double x, y; /* direction; where the text's middle lies */
    } ways[] = {{1, -0.6}, {-1, -0.6}, {1, 0.6},  {-1, 0.6},  {1, 0},   {-1, 0},
                {0, -1},   {0, 1},     {0.5, -1}, {-0.5, -1}, {0.5, 1}, {-0.5, 1}};
    double ux = ways[k % n_elements(ways)].x, uy = ways[k % n_elements(ways)].y;
    double x = at.x + ux * (off + w / 2), y = at.y + uy * (off + h / 2);

    return (struct box){x - w / 2, y - h / 2, w, h};
}

enum { WAYS = 12, RINGS = 9 };

bool labels_put(struct labels *l, struct canvas *c, struct spot at, double off,
                const char *text, const struct type *type, bool must)
{
    double w = canvas_text_width(c, text, type->size, type->bold) + 4;
    double h = type->size + 2, least = INFINITY, far = 0;
    struct box best = {0};

    for (unsigned k = 0; k < WAYS * (must ? RINGS : 1) && least > 0; k++) {
        double ring = off + 9.0 * (k / WAYS); /* NOLINT: whole rings */
        struct box b = place(at, ring, w, h, k);
        double bad = badness(l, b);
        if (bad < least) {
            least = bad;
            best = b;
            far = ring - off;
        }
    }
    if (isinf(least) || (least > 0 && !must))
        return false;
    if (far > 12) {
        struct pen leader = {INK_AXIS, INK_NONE, 1, 0, 0};
        double ex = fmax(best.x, fmin(at.x, best.x + best.w));
        double ey = fmax(best.y, fmin(at.y, best.y + best.h));
        double d = hypot(ex - at.x, ey - at.y), s = d > 0 ? off * 0.8 / d : 0;
        canvas_line(c, (struct spot){at.x + (ex - at.x) * s, at.y + (ey - at.y) * s},
                    (struct spot){ex, ey}, &leader);
    }
    labels_take(l, best);
    struct type t = *type;
    t.align = ALIGN_MIDDLE;
    canvas_text(c, (struct spot){best.x + best.w / 2, best.y + h - 4}, text, &t);
    return true;
}
