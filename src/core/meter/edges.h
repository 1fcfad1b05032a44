/* Period and phase at which a driver publishes a value, estimated from polls that saw the
 * value change: each change lies in a bracket [u, v].
 */
#ifndef CORE_METER_EDGES_H
#define CORE_METER_EDGES_H

#include <stdbool.h>
#include <stddef.h>

#define EDGES_WIDE 0.9 /* periods from which on a bracket may hold several edges */

enum { EDGES_KEPT = 256 };

struct edges {
    double nominal_s; /* the model's period */
    double known_s;   /* the same; once learnt, that of the last sure fit */
    bool learnt;
    unsigned tries;           /* fits from anew since the last sure fit */
    double period_s, phase_s; /* edge k is at phase_s + k period_s */
    double error_s;           /* standard deviation of the last edge's time */
    double slope_error;       /* growth of error_s, s a second */
    double order;             /* k of the last edge */
    bool locked;
    size_t n, next;
    struct bracket {
        double u, v, k;
    } kept[EDGES_KEPT];
};

void edges_init(struct edges *e, double nominal_s);
/* The values polled at u and v differ; several edges may lie between if v - u is longer
 * than a period.  Returns the most likely time of the last edge, *ret_sd its standard
 * deviation.
 */
double edges_change(struct edges *e, double u, double v, double *ret_sd);
/* Standard deviation of an edge's time at t, not before the last bracket; infinite while
 * not locked.
 */
double edges_error(const struct edges *e, double t);
/* Numbers of the first and the last edge at which a value may have been published that a
 * call between began and at has read; edge k is at phase_s + k period_s.  False: the
 * phase is not known well enough to tell. *ret_sd: of an edge's time.
 */
bool edges_read(const struct edges *e, double began, double at, double *ret_first,
                double *ret_last, double *ret_sd);
/* When the first edge that is surely at t or later has surely passed.  False: the line is
 * not that sure.
 */
bool edges_after(const struct edges *e, double t, double *ret);
/* The edge nearest to t by the current estimate; t itself while not locked. */
double edges_nearest(const struct edges *e, double t);

#endif
