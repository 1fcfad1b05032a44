/* What is done to one board: blocking calls of the driver and of the journal, in
 * the board's own worker and nowhere else.  Each tells in *reply what it came to;
 * a reply without uuid has not been filled.
 */
#ifndef ACTUATOR_WORK_H
#define ACTUATOR_WORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "actuator/core.h"
#include "actuator/journal.h"
#include "actuator/result.h"
#include "gpu/gpu.h"

struct held {
    const struct gpu_backend *backend;
    void *lib;
    struct gpu_dev *dev;
    const struct gpu_info *info;
    const struct journal *journal;  /* NULL in virtual time: nothing to survive */
    const struct core_rules *rules; /* NULL: none */

    int lock_fd;         /* -1: not locked */
    bool damaged;        /* its entry is, and is kept aside */
    bool holder_stopped; /* … by us, and who has it is stopped (TAKEN) … */
    bool holder_passes;  /* … or gives it up soon */
    bool has_entry;
    struct cap_entry entry;
    uint32_t locked_mhz; /* the upper end of our lock; 0: none, or an earlier holder's */
    struct gpu_limits limits;
    bool yielded; /* a call has found another's limit: set by it, cleared by its reader */
    atomic_bool writing; /* hold: the driver writes the original, or has written it: set
                          * by the call, cleared by its reader */
    bool keep_original;  /* hold: entry's is still the original, if the driver is, too */
};

/* Lock, undo what an earlier holder left, note the original, prove the right to
 * set by writing the original.  Unless DONE the board is as it was, and unlocked.
 */
void work_hold(struct held *h, pid_t client, struct actuator_reply *reply);
/* Another client takes a held board over: nothing is written to it.  DONE, YIELDED as
 * below, UNKNOWN, GONE.
 */
void work_adopt(struct held *h, pid_t client, struct actuator_reply *reply);
/* YIELDED: the entry is dropped and the lock given up.  (GONE with yielded, where
 * another's limit was seen and our clock lock could not be reset: restoring goes on
 * trying.)
 */
void work_limit(struct held *h, uint32_t mw, struct actuator_reply *reply);
/* 0, 0: reset, of a lock of ours; clocks that we never locked are never reset. */
void work_clocks(struct held *h, uint32_t min_mhz, uint32_t max_mhz,
                 struct actuator_reply *reply);
/* Is our limit still there?  DONE, YIELDED as above, UNKNOWN, GONE. */
void work_look(struct held *h, struct actuator_reply *reply);
/* Undo ours where it is ours, drop the entry, unlock: DONE or YIELDED.  UNKNOWN,
 * GONE, DENIED or REFUSED: entry and lock are still there, try again.  The limit and the
 * clock are each tried, whatever becomes of the other.
 */
void work_restore(struct held *h, struct actuator_reply *reply);
/* The same for an entry that was left behind; TAKEN: its holder lives (or is stopped:
 * holder_stopped); REFUSED with no entry: it cannot be read, or is damaged and
 * kept aside (damaged).
 */
void work_recover(struct held *h, struct actuator_reply *reply);
/* Give the lock up, leave the entry to the next start. */
void work_abandon(struct held *h);

#endif
