/* The picture of a sweep on any canvas: cards, energy against time, power, energy and
 * time over the cap, EDP and EDS over the cap.
 */
#ifndef CLI_SWEEP_PICTURE_H
#define CLI_SWEEP_PICTURE_H

#include "cli/plot.h"
#include "cli/view.h"

enum { PICTURE_WIDTH = 1280, PICTURE_HEIGHT = 1250 };

void picture_draw(struct canvas *c, const struct view *v);

/* ---- its parts ---- */

/* How each goal looks everywhere. */
struct goal_look {
    enum ink ink;
    enum mark mark;
};
struct goal_look picture_look(size_t optimum);
/* Goals whose optimum lies at the point share it: one mark inside the other.  Draws
 * them and returns how many there are.
 */
size_t picture_marks(struct canvas *c, const struct view *v, size_t point,
                     struct spot at);
/* "min EDP, EDS(2): 185 W". */
void picture_mark_text(const struct view *v, size_t point, char *ret, size_t size);

void picture_trade(struct canvas *c, const struct view *v, struct box box);
void picture_over_cap(struct canvas *c, const struct view *v, struct box column);
void picture_metrics(struct canvas *c, const struct view *v, struct box box);

#endif
