/* The picture of a sweep: cards, energy against time, power, energy and time over the
 * cap, EDP and EDS over the cap.
 */
#ifndef CLI_SWEEP_PICTURE_H
#define CLI_SWEEP_PICTURE_H

#include "chart/chart.h"
#include "cli/view.h"

int picture_write(const struct view *v, enum canvas_kind kind, FILE *to, uw_error *err);

/* ---- its parts ---- */

/* The look of a goal in all panels. */
struct goal_look {
    enum ink ink;
    enum mark mark;
};
extern const struct goal_look picture_looks[SWEEP_OPTIMA];

void picture_trade(struct canvas *c, const struct view *v, struct box box);
void picture_over_cap(struct canvas *c, const struct view *v, struct box column);
void picture_metrics(struct canvas *c, const struct view *v, struct box box);

#endif
