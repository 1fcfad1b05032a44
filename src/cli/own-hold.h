/* Holding boards of a node in this process, before anything is capped there. */
#ifndef CLI_OWN_HOLD_H
#define CLI_OWN_HOLD_H

#include "ask/own-node.h"

enum { OWN_HOLD_MS = 15000 }; /* longest wait until boards are held */

/* Claims the limit that is set on board i, so that the board is held: see own_hold_is().
 * ret_id (may be NULL) is the claim.
 */
int own_hold_claim(struct own_node *own, size_t i, const char *why, uint64_t *ret_id,
                   uw_error *err);
/* 1: board i is held; 0: not yet; < 0: it will not be (-ENOTSUP: it cannot be capped;
 * -EBUSY: another process of Underwatt has it; -EPERM; -EIO), and *err names the board
 * and says why.
 */
int own_hold_is(const struct own_node *own, size_t i, uw_error *err);
/* Whether board i, not held yet, is locked with its original recorded, and the driver has
 * accepted the write that proves the right to set limits: it refuses at once without the
 * right, and takes some 30 ms otherwise.
 */
bool own_hold_writes(const struct own_node *own, size_t i);
/* -ETIMEDOUT: board i was not held within OWN_HOLD_MS. */
int own_hold_late(const struct own_node *own, size_t i, uw_error *err);

#endif
