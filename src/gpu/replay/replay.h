/* Boards of a recorded trace: replays their values at the pace of the caller's clock.
 *
 * The trace is CSV.  Its header names the columns in any order: time_s and uuid are
 * mandatory; name, power_w, instant_w, average_w, energy_j, enforced_w, requested_w,
 * util_percent, temp_c and sm_mhz are optional.  A row holds the values of one board at
 * one time; an empty field means unknown.  Rows of a board are in order of time.  Lines
 * that begin with # are comments.
 */
#ifndef GPU_REPLAY_REPLAY_H
#define GPU_REPLAY_REPLAY_H

#include "gpu/row.h"

/* open(): opts.source is the trace; -errno of fopen(), -EINVAL with FILE:LINE, -E2BIG;
 * GPU_ABSENT: no rows.  The replay starts at open().  sample() returns the board's latest
 * row; -ENODEV before its first row and from one second after its last.  The boards are
 * read-only and marked as simulated; their state is kept in the folder FILE.underwatt
 * beside the trace.
 */
extern const struct gpu_backend replay_backend;
extern const struct gpu_backend_row replay_row;

#endif
