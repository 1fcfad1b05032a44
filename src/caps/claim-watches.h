/* Watches the processes with which claims end.
 *
 * Owns: one pidfd for each watched process.  Touches: /proc, for the owner of a process.
 * Thread: the loop's.  Explained in docs/caps.md.
 *
 * A process is watched before its claim is made, as the claim contains the process' start
 * time; claim_watches_assign() then names the claim.
 */
#ifndef CAPS_CLAIM_WATCHES_H
#define CAPS_CLAIM_WATCHES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "io/loop.h"
#include "underwatt/error.h"

struct claim_watches;

/* The process of this claim has ended; its watch is over. */
typedef void (*claim_watches_fn)(uint64_t claim, void *user);

/* -ENOMEM */
int claim_watches_new(struct loop *loop, claim_watches_fn fn, void *user,
                      struct claim_watches **ret);
void claim_watches_free(struct claim_watches *w);
DEFINE_AUTO(struct claim_watches *, claim_watches_free);

/* Watches a process.  start: its start time in ticks, 0: any; uid: its required owner,
 * (uid_t)-1: any.  *ret_start (may be NULL): its start time.  -ESRCH, -EPERM (another
 * user's), -E2BIG.
 */
int claim_watches_begin(struct claim_watches *w, pid_t pid, uint64_t start, uid_t uid,
                        uint64_t *ret_start, uw_error *err);
/* Assigns the process watched last to this claim; 0: ends its watch. */
void claim_watches_assign(struct claim_watches *w, uint64_t claim);
bool claim_watches_has(const struct claim_watches *w, uint64_t claim);
/* The claim was withdrawn: ends its watches. */
void claim_watches_end(struct claim_watches *w, uint64_t claim);

#endif
