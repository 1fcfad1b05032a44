/* Work on one board: blocking calls of the driver and of the journal, made in the board's
 * own worker only.  Each function reports its result in *reply; a reply without uuid was
 * not filled.
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
    const struct journal *journal;  /* NULL in virtual time */
    const struct core_rules *rules; /* NULL: none */

    int lock_fd;         /* -1: not locked */
    bool damaged;        /* the entry is damaged and kept aside */
    bool holder_stopped; /* the holder of the lock is stopped (TAKEN) … */
    bool holder_passes;  /* … or about to release the lock */
    bool has_entry;
    struct cap_entry entry;
    uint32_t locked_mhz; /* upper end of this session's clock lock; 0: none */
    struct gpu_limits limits;
    bool yielded; /* a call has found another program's limit: set by the call, cleared by
                     its reader */
    atomic_bool writing; /* hold: the driver is writing, or has written, the original
                            limit: set by the call, cleared by its reader */
    bool keep_original;  /* hold: keep the original limit of the entry, unless the driver
                            was reloaded */
};

/* Locks the board, undoes what an earlier holder left, records the original limit, and
 * proves the right to set limits by writing it.  Unless DONE, the board is unchanged and
 * unlocked.
 */
void work_hold(struct held *h, pid_t client, struct actuator_reply *reply);
/* Another client takes a held board over; nothing is written.  DONE, YIELDED as below,
 * UNKNOWN, GONE.
 */
void work_adopt(struct held *h, pid_t client, struct actuator_reply *reply);
/* YIELDED: the entry is dropped and the lock given up.  (GONE with yielded set: another
 * program's limit was seen, and the clock lock could not be reset: restoring continues.)
 */
void work_limit(struct held *h, uint32_t mw, struct actuator_reply *reply);
/* 0, 0: resets Underwatt's lock; clocks that Underwatt never locked are never reset. */
void work_clocks(struct held *h, uint32_t min_mhz, uint32_t max_mhz,
                 struct actuator_reply *reply);
/* Checks that the limit that was set is still in force.  DONE, YIELDED as above, UNKNOWN,
 * GONE.
 */
void work_look(struct held *h, struct actuator_reply *reply);
/* Restores the original limit where the limit in force is Underwatt's, drops the entry
 * and unlocks: DONE or YIELDED.  UNKNOWN, GONE, DENIED or REFUSED: entry and lock remain;
 * try again.  Limit and clock are each tried, whatever the result of the other.
 */
void work_restore(struct held *h, struct actuator_reply *reply);
/* The same for an entry left by an earlier actuator.  TAKEN: its holder runs (or is
 * stopped: holder_stopped); REFUSED with no entry: the entry cannot be read, or is
 * damaged and kept aside (damaged).
 */
void work_recover(struct held *h, struct actuator_reply *reply);
/* Gives up the lock and leaves the entry to the next start. */
void work_abandon(struct held *h);

#endif
