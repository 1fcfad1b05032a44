/* What a simulation did, for tools/traces: where UNDERWATT_TRACE names a file, a line is
 * written whenever the cap in force on a board, the state of the search that has the
 * board, or the lock of its SM clock has changed:
 *
 *     case NAME
 *     SECONDS BOARD CAP_MW STATE [LOCK_MHZ]
 *
 * Times are virtual and count from the start of the loop.  Nothing is added to the loop:
 * the table of the boards' functions is wrapped, and each call looks for a change.
 * Programs that use this are linked with trace_link (meson.build), which wraps
 * tuner_new() and tuner_free().
 */
#ifndef SIMULATION_TRACE_H
#define SIMULATION_TRACE_H

#include "gpu/gpu.h"

/* The virtual boards, watched where a trace is wanted. */
const struct gpu_backend *trace_backend(void);

/* What follows belongs to this case.  A name that was used before gets a number. */
void trace_case(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
