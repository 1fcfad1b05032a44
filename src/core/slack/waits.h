/* Who of a synchronous job's boards works all the time, and who waits: from what a
 * window shows of each board.  Pure.
 *
 * A board that waits for others draws less than its cap: in a collective of NCCL it
 * spins, so utilisation says 100 % while power falls to about half; one that sleeps
 * falls further, and utilisation says so.  A board that works is held by its cap, or,
 * where its work never reaches the cap, gives nothing away: lowering its cap down to
 * what it draws changes nothing.  So in both cases
 *
 *     busy = (power - waiting) / (cap - waiting)
 *
 * is 1 where lowering the cap any further slows the job, and its distance from the
 * busiest board's is how much longer a step of this board may take.
 *
 * On 11 recorded pipeline jobs (SOSP'24, A100 and A40) waiting power is 0.38 to 0.5 of
 * the highest cap; which of these is taken hardly matters, as boards are compared with
 * each other.
 */
#ifndef CORE_SLACK_WAITS_H
#define CORE_SLACK_WAITS_H

#define WAITS_POWER 0.45 /* of the reference cap, where nobody has seen it */

/* One board in one window. */
struct slack_seen {
    double cap_w;   /* in force, read back */
    double power_w; /* mean */
    double low_w;   /* lowest level of power within its steps (a period's waiting phase,
                     * core/progress/period.h); 0: not known */
    double util;    /* share of the time in which a kernel ran; 0: not known */
};

/* Busy share, 0.02 to 1; waiting_w: see waits_power(). */
double waits_busy(const struct slack_seen *seen, double waiting_w);
/* What the board draws while it waits: what was seen, or WAITS_POWER of reference_w; in
 * any case less than it draws on the mean.
 */
double waits_power(const struct slack_seen *seen, double reference_w);

#endif
