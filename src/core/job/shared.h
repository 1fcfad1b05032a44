/* Records which boards a scheduler gives to several jobs at once (MPS, shards), from
 * looks at the steps of jobs.  Pure: time is an argument.  Explained in docs/jobs.md.
 */
#ifndef CORE_JOB_SHARED_H
#define CORE_JOB_SHARED_H

#include <stdint.h>

#define SHARED_NS (86400 * UINT64_C(1000000000)) /* how long a look counts */

enum { SHARED_BOARDS = 64 };

struct shared {
    uint64_t seen_ns[SHARED_BOARDS]; /* two jobs had steps on it then; 0: never */
};

/* Two jobs have had steps on these boards at now_ns.  The record expires after SHARED_NS,
 * so that a wrong look (after a job that hangs) does not last.
 */
void shared_seen(struct shared *s, uint64_t boards, uint64_t now_ns);
uint64_t shared_boards(const struct shared *s, uint64_t now_ns);

#endif
