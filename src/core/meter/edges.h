/* When a value that a driver publishes once a period was published: from polls that
 * saw it change, each of which says "between u and v", the period and the phase.
 */
#ifndef CORE_METER_EDGES_H
#define CORE_METER_EDGES_H

#include <stdbool.h>
#include <stddef.h>

enum { EDGES_KEPT = 256 };

struct edges {
    double nominal_s;
    double period_s, phase_s; /* edge k is at phase_s + k period_s */
    double error_s;           /* standard deviation of an edge's place */
    double order;             /* the last edge's k */
    bool locked;
    size_t n, next;
    struct {
        double u, v, k;
    } kept[EDGES_KEPT];
};

void edges_init(struct edges *e, double nominal_s);
/* The value seen at u was another than that seen at v; there may be several edges in
 * between where v - u is longer than a period.  Returns the likeliest moment of the
 * last one, *ret_sd its standard deviation.
 */
double edges_change(struct edges *e, double u, double v, double *ret_sd);
/* The edge nearest to t as is known by now; t itself where nothing is. */
double edges_nearest(const struct edges *e, double t);

#endif
