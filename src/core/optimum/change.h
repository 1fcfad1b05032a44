/* Detects a permanent change of a job under a constant cap: time or energy per step
 * differs from the past by >= 5 %.  Pure.
 *
 * The logarithms of the latest 2, 3, 5, 8, 12 and 18 windows are compared with the median
 * of at least as many older ones.  A change is reported when three quarters of them are
 * off by more than 0.6 of the change to detect, in one direction, and the run's own
 * windows make that improbable: a window without a change is taken to be as far off by
 * chance with the highest of three probabilities, of Student's t with 2 degrees of
 * freedom as wide as the older windows scatter, of a normal distribution as wide as the
 * error that the window states, and the share of older windows as far off.  So windows
 * that are far off now and then, with stated errors that are too small, are no change.
 * Where the older windows are correlated, the latest count as fewer windows.
 *
 * Windows of a standard error of 0.3 % show a change of 5 % within 3 windows, of 0.75 %
 * within 6, of 1.25 % within 12.  Less than one constant job in 250 has a false alarm; of
 * jobs of 8 hours with noise of 1 % that has a memory of 60 s, one in 20.
 */
#ifndef CORE_OPTIMUM_CHANGE_H
#define CORE_OPTIMUM_CHANGE_H

enum {
    CHANGE_BASE_MIN = 4,  /* older windows before a change [changes, edp: searches] */
    CHANGE_BASE_MAX = 64, /* at most: those after them are dropped */
    CHANGE_LATEST_MAX = 18,
    CHANGE_WINDOWS = CHANGE_BASE_MAX + CHANGE_LATEST_MAX,
};

/* Time or energy per unit of work, oldest first. */
struct change_track {
    double value[CHANGE_WINDOWS]; /* logarithms */
    double rse[CHANGE_WINDOWS];
};

struct change {
    double least;
    unsigned n;
    struct change_track time, energy;
};

enum change_what {
    CHANGE_NONE = 0,
    CHANGE_TIME = 1,
    CHANGE_ENERGY = 2, /* both: 3 */
};

/* least: the relative change to detect; 0: 0.05. */
void change_init(struct change *c, double least);
/* Adds a window at the same cap: time and energy per unit of work, with their relative
 * standard errors.  Returns enum change_what, CHANGE_TIME | CHANGE_ENERGY for both. After
 * a change the windows that show it are the past.  Values that are not finite and
 * positive, and errors that are not finite or below 0, are ignored.
 */
int change_on_window(struct change *c, double time_s, double energy_j, double time_rse,
                     double energy_rse);

#endif
