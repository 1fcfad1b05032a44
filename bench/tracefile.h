/* Recorded telemetry from CSV: a header that names the columns t_s and power_w, and
 * optionally sm_util, mem_util (percent), sm_mhz and energy_j (of a counter), in any
 * order; other columns are ignored; an empty field is unknown (not t_s; a row without
 * power_w is left out).  Rows in order of time, one board.
 */
#ifndef BENCH_TRACEFILE_H
#define BENCH_TRACEFILE_H

#include <stddef.h>

#include "base/auto.h"
#include "core/progress/activity.h"
#include "underwatt/error.h"

struct tracefile {
    char *name; /* the file's, without its folder */
    struct activity *items;
    size_t n, cap;
};

/* -EINVAL and the like with "FILE:LINE: …": no such column, not a number, time that goes
 * back, more than TRACE_ROWS_MAX rows.
 */
enum { TRACE_ROWS_MAX = 20000000 };
int tracefile_read(const char *path, struct tracefile *ret, uw_error *err);
void tracefile_fini(struct tracefile *t);
static inline void tracefile_fini_p(struct tracefile *t)
{
    tracefile_fini(t);
}

#endif
