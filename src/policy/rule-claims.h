/* The claims of a policy: two a board, each named after the rule or limit that requests
 * it.  Their lease is renewed as long as they stand; if this process ends, they end.
 *
 * Owns two claimants (caps/claimant.h).  Thread: the loop's.  Explained in
 * docs/policies.md.
 */
#ifndef POLICY_RULE_CLAIMS_H
#define POLICY_RULE_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "core/cap/claim.h"
#include "policy/engine.h"
#include "underwatt/error.h"

struct caps;
struct loop;
struct rule_claims;

/* Of boards 0 to n - 1.  CLAIM_OF_RULE: the first of a board's claims is soft, the second
 * hard; CLAIM_OF_LIMIT: both are hard.
 */
int rule_claims_new(struct loop *loop, struct caps *caps, enum claim_source source,
                    size_t n, struct rule_claims **ret, uw_error *err);
/* Withdraws its claims; call it after the actuator is closed, so that no limit rises
 * meanwhile.
 */
void rule_claims_free(struct rule_claims *c);
DEFINE_AUTO(struct rule_claims *, rule_claims_free);

/* which: 0 or 1.  NULL: no claim.  Repeating the same claim causes no event.  A refused
 * claim is reported once as a failure of the board's cap, and retried with the next call.
 */
void rule_claims_state(struct rule_claims *c, size_t board, size_t which,
                       const struct engine_claim *claim);
/* The id of the claim; 0: none. */
uint64_t rule_claims_id(const struct rule_claims *c, size_t board, size_t which);
/* Claims that were refused. */
uint64_t rule_claims_refused(const struct rule_claims *c);

#endif
