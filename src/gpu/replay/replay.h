/* Boards of a recorded trace: what they showed then is shown again, at the pace of
 * the caller's clock.
 *
 * The trace is CSV.  Its header names the columns: time_s and uuid are mandatory,
 * the others optional and in any order: name, power_w, instant_w, average_w,
 * energy_j, enforced_w, requested_w, util_percent, temp_c, sm_mhz.  A row is what
 * one board showed at one time; an empty field was unknown.  Rows of a board stand
 * in order of time.  Lines that begin with # are comments.
 */
#ifndef GPU_REPLAY_REPLAY_H
#define GPU_REPLAY_REPLAY_H

#include "gpu/row.h"

/* open(): opts.source is the trace; -ENOENT …, -EINVAL with FILE:LINE, -E2BIG, GPU_ABSENT
 * for a trace without rows.  The trace begins when it is opened.  sample() gives a
 * board's latest row; -ENODEV before its first and a second after its last.  Nothing can
 * be set. Its boards are no boards of this node: they are told as simulated, and what
 * belongs to them lies in a folder beside the trace, FILE.underwatt.
 */
extern const struct gpu_backend replay_backend;
extern const struct gpu_backend_row replay_row;

#endif
