/* Watches the processes with which claims end.
 *
 * Owns: one pidfd for each watched process.  Touches: /proc, to see whose process it is.
 * Thread: the loop's.  Explained in docs/caps.md.
 *
 * A process is watched before its claim is made, as the claim tells when the process
 * began; claim_watches_assign() then names the claim.
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

/* The process of this claim has ended; it is watched no more. */
typedef void (*claim_watches_fn)(uint64_t claim, void *user);

/* -ENOMEM */
int claim_watches_new(struct loop *loop, claim_watches_fn fn, void *user,
                      struct claim_watches **ret);
void claim_watches_free(struct claim_watches *w);
DEFINE_AUTO(struct claim_watches *, claim_watches_free);

/* start: the process's start time in ticks, 0: any; uid: its owner has to be, (uid_t)-1:
 * anybody.  *ret_start (may be NULL): its start time.  -ESRCH, -EPERM (another user's),
 * -E2BIG.
 */
int claim_watches_begin(struct claim_watches *w, pid_t pid, uint64_t start, uid_t uid,
                        uint64_t *ret_start, uw_error *err);
/* The process watched last is this claim's; 0: it is watched no more. */
void claim_watches_assign(struct claim_watches *w, uint64_t claim);
bool claim_watches_has(const struct claim_watches *w, uint64_t claim);
/* The claim was withdrawn. */
void claim_watches_end(struct claim_watches *w, uint64_t claim);

#endif
