/* A lasting change of a job under a constant cap: time or energy a step differs
 * by >= 5 % from what they were.  Fed with one window after the other, it says
 * so within 3 windows of the change, and falsely less than once an hour.  Pure.
 *
 * Each quantity is compared in logarithms with a baseline, the mean (outliers
 * clipped) of up to CHANGE_BASE_MAX windows older than the last three: mean and median of
 * the last three must both lie beyond 0.6 of the change asked for, on one side.  So one
 * odd window (a checkpoint, an evaluation) is no change.
 */
#ifndef CORE_OPTIMUM_CHANGE_H
#define CORE_OPTIMUM_CHANGE_H

enum {
    CHANGE_RECENT = 3,
    CHANGE_BASE_MIN = 4,  /* windows before anything is noticed, those three apart */
    CHANGE_BASE_MAX = 64, /* windows that make the baseline */
};

struct change_track {
    double base;
    double recent[CHANGE_RECENT]; /* the newest first */
};

/* A mean of logarithms, weighted by precision. */
struct change_mean {
    double w, sum;
};

struct change {
    double least;
    unsigned base_n, recent_n;
    struct change_track time, energy;
    struct change_mean part_t, part_e; /* windows too unsure to count alone … */
    struct change_mean usual_e;        /* … and all there were */
};

enum change_what {
    CHANGE_NONE = 0,
    CHANGE_TIME = 1,
    CHANGE_ENERGY = 2, /* both: 3 */
};

/* least: the relative change to notice; 0: 0.05. */
void change_init(struct change *c, double least);
/* The next window at the same cap: time and energy a unit of work.  Returns
 * enum change_what, CHANGE_TIME | CHANGE_ENERGY for both.  After a change it has
 * begun anew, the last three windows as the first of the new baseline.  Values
 * that are not finite and positive are ignored.
 */
int change_on_window(struct change *c, double time_s, double energy_j);
/* A window's relative standard error must not exceed this for the promise to
 * hold (windows of 5 s or more): make windows longer until it does not.
 */
double change_needs_rse(const struct change *c);
/* The same with the window's relative standard errors: those that are too unsure count
 * together, as one window, once they are sure enough; energy that is unsure even then is
 * no news.
 */
int change_on_unsure(struct change *c, double time_s, double energy_j, double time_rse,
                     double energy_rse);

#endif
