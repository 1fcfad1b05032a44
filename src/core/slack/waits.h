/* Busy shares: which boards of a synchronous job work all the time and which wait, from
 * the power of each board in a window.  Pure.
 *
 * A board that waits for others draws less than its cap: in an NCCL collective it spins,
 * with a utilisation of 100 % and about half the power; a board that sleeps draws even
 * less, at a lower utilisation.  A board that works is limited by its cap; if its work
 * never reaches the cap, the cap can be lowered to its power without any effect.  So
 *
 *     busy = (power - waiting) / (cap - waiting)
 *
 * is 1 if any lower cap slows the job, and its ratio to the busiest board's says how much
 * longer a step of this board may take.
 *
 * On 11 recorded pipeline jobs (SOSP'24, A100 and A40) the waiting power is 0.38 to 0.5
 * of the highest cap.  The exact value hardly matters, as boards are compared with each
 * other.
 */
#ifndef CORE_SLACK_WAITS_H
#define CORE_SLACK_WAITS_H

#define WAITS_POWER 0.45 /* default waiting power / reference cap */

/* One board in one window. */
struct slack_seen {
    double cap_w;   /* in force, read back */
    double power_w; /* mean */
    double low_w;   /* lowest power level within a step (the waiting phase of a period,
                     * core/progress/period.h); 0: unknown */
    double util;    /* share of the time in which a kernel ran; 0: unknown */
};

/* The busy share, 0.02 to 1; waiting_w: see waits_power(). */
double waits_busy(const struct slack_seen *seen, double waiting_w);
/* The power while waiting: low_w if known, else WAITS_POWER x reference_w; always below
 * the mean power.
 */
double waits_power(const struct slack_seen *seen, double reference_w);

#endif
