/* Detects a permanent change of a job under a constant cap: time or energy per step
 * differs from the past by >= 5 %.  It reports a change within 3 windows, and less than
 * one false alarm per hour.  Pure.
 *
 * The logarithms of both are compared with a baseline, the mean (outliers clipped) of up
 * to CHANGE_BASE_MAX windows older than the last three.  A change is reported when mean
 * and median of the last three both differ by more than 0.6 of the change to detect, in
 * one direction; a single outlier (a checkpoint, an evaluation) is not a change.
 */
#ifndef CORE_OPTIMUM_CHANGE_H
#define CORE_OPTIMUM_CHANGE_H

enum {
    CHANGE_RECENT = 3,
    CHANGE_BASE_MIN = 4,  /* windows in the baseline before a change is reported */
    CHANGE_BASE_MAX = 64, /* windows in the baseline at most */
};

struct change_track {
    double base;
    double recent[CHANGE_RECENT]; /* newest first */
};

/* A mean of logarithms, weighted by precision. */
struct change_mean {
    double w, sum;
};

struct change {
    double least;
    unsigned base_n, recent_n;
    struct change_track time, energy;
    struct change_mean part_t, part_e; /* windows too imprecise to be used one by one */
    struct change_mean usual_e;        /* all windows since the last change */
};

enum change_what {
    CHANGE_NONE = 0,
    CHANGE_TIME = 1,
    CHANGE_ENERGY = 2, /* both: 3 */
};

/* least: the relative change to detect; 0: 0.05. */
void change_init(struct change *c, double least);
/* Adds a window at the same cap: time and energy per unit of work.  Returns enum
 * change_what, CHANGE_TIME | CHANGE_ENERGY for both.  A change restarts the baseline with
 * the last three windows.  Values that are not finite and positive are ignored.
 */
int change_on_window(struct change *c, double time_s, double energy_j);
/* The largest relative standard error of a window with which the rates above hold (for
 * windows of 5 s or more).
 */
double change_needs_rse(const struct change *c);
/* change_on_window() with relative standard errors: imprecise windows are merged until
 * their time meets change_needs_rse().  If their energy does not by then, the mean of all
 * windows since the last change replaces it.
 */
int change_on_unsure(struct change *c, double time_s, double energy_j, double time_rse,
                     double energy_rse);

#endif
