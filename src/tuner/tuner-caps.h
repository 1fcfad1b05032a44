/* How a tuner gets its caps: a table, so that one tuner serves the command in local
 * mode (its own actuator: tuner-local.c) and the daemon (claims: tuner-claims.c).
 * Boards are the tuner's, by their place in tuner_opts.boards.
 */
#ifndef TUNER_TUNER_CAPS_H
#define TUNER_TUNER_CAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "actuator/client.h"
#include "board/boards.h"
#include "board/sampler.h"
#include "caps/caps.h"

/* Each asks; 0: fn is called exactly once, never from inside the call (actuator NULL
 * where there is none of ours); -EAGAIN, -ENOTCONN: it is not.
 */
struct tuner_caps {
    /* At most mw.  DONE: that limit is in force; CLAMPED: another one is, told in
     * enforced_mw (in the daemon: another's claim lies lower, or a floor higher);
     * BUSY: a newer set came before.
     */
    int (*set)(void *caps, size_t board, uint32_t mw, actuator_reply_fn fn, void *user);
    /* Holds a board again, after a lease that ran out. */
    int (*hold)(void *caps, size_t board, actuator_reply_fn fn, void *user);
    /* Restores the original and asks for nothing any more. */
    int (*release)(void *caps, size_t board, actuator_reply_fn fn, void *user);
    /* True when every board was last seen at its original limit. */
    bool (*back)(void *caps);
    /* The SM clock of a board at most mhz from now on (0: no lock of ours); what came of
     * it, and what clock is seen, is looked at.  NULL: there are no locks.
     */
    int (*clock)(void *caps, size_t board, uint32_t mhz, uw_error *err);
    void (*clock_watch)(void *caps, size_t board, bool watch);
    void (*clock_look)(void *caps, size_t board, struct caps_clock_view *ret);
    /* Under a node's budget: board's equal share of it, with what is in force there; 0:
     * no budget bounds it.  And another split inside the sum of all these boards' shares,
     * lower first (NULL: equal ones again).  NULL: budgets are not known of.
     */
    uint32_t (*share)(void *caps, size_t board, uint32_t *ret_in_force_mw);
    void (*split)(void *caps, const uint32_t *mw);
    /* The implementation ramps down to a cap by name: the tuner asks for it once. */
    bool walks;
    const char *lease_over; /* what has happened when a lease ran out; NULL: the event's
                             * text says it */
};

/* ---- local mode ---- */

struct tuner_local {
    struct actuator *actuator; /* holds all of these */
    struct sampler *sampler;   /* of all boards of their set */
    struct board *const *boards;
    const uint32_t *original_mw;
    size_t n;
};
extern const struct tuner_caps tuner_local_caps; /* caps: struct tuner_local * */

/* ---- the daemon ---- */

struct tuner;
struct tuner_claims;

struct tuner_claims_opts {
    struct loop *loop;
    struct caps *caps;
    struct board *const *boards;
    size_t n;
    enum claim_kind kind; /* SOFT: the search's own, walked; NAMED: a cap by name */
    uint64_t job;
    uid_t uid;
    const char *who; /* copied: "search of job 12" */
    double percent;  /* of each board's default limit, as asked for: claims say so; 0 */
};
int tuner_claims_new(const struct tuner_claims_opts *opts, struct tuner_claims **ret,
                     uw_error *err);
/* Withdraws the claims that are left.  What is still asked is never answered. */
void tuner_claims_free(struct tuner_claims *c);
DEFINE_AUTO(struct tuner_claims *, tuner_claims_free);

/* caps: struct tuner_claims *; the second for a cap by name, which the ramp of caps
 * walks.
 */
extern const struct tuner_caps tuner_claims_caps, tuner_named_caps;

/* Claims at the limit that is set on each board, whoever left it there: the actuator is
 * asked for the boards, and says what their originals are.  Of kind SOFT alone.  As
 * caps_claim().
 */
int tuner_claims_keep(struct tuner_claims *c, uw_error *err);
/* Whom to tell what happens to the caps: highest cap that others' claims allow, yields,
 * losses (tuner_on_ceiling(), tuner_on_event()).
 */
void tuner_claims_tell(struct tuner_claims *c, struct tuner *tuner);
/* Why the next claims are made, for `explain`; copied. */
void tuner_claims_why(struct tuner_claims *c, const char *why);

#endif
