/* Table of functions by which a tuner sets caps: claims (tuner-claims.c), or a made-up
 * world (bench/savingsplay.c).  A board is given by its index in tuner_opts.boards.
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

/* set(), hold() and release() return 0 and call fn exactly once, never from inside (with
 * actuator NULL in the daemon); on -EAGAIN and -ENOTCONN fn is not called.
 */
struct tuner_caps {
    /* Requests a limit of at most mw.  DONE: that limit is in force; CLAMPED: another one
     * is, see enforced_mw (in the daemon: another claim is lower, or a floor higher);
     * BUSY: replaced by a newer set().
     */
    int (*set)(void *caps, size_t board, uint32_t mw, actuator_reply_fn fn, void *user);
    /* Holds a board again after its lease ran out. */
    int (*hold)(void *caps, size_t board, actuator_reply_fn fn, void *user);
    /* Restores the original limit and ends all requests for the board. */
    int (*release)(void *caps, size_t board, actuator_reply_fn fn, void *user);
    /* Whether every board was last seen at its original limit. */
    bool (*back)(void *caps);
    /* clock() limits the SM clock of a board to mhz (0: removes the lock), clock_watch()
     * has the clock read, clock_look() returns lock and clock.  NULL: locks are not
     * supported.
     */
    int (*clock)(void *caps, size_t board, uint32_t mhz, uw_error *err);
    void (*clock_watch)(void *caps, size_t board, bool watch);
    void (*clock_look)(void *caps, size_t board, struct caps_clock_view *ret);
    /* With a node's budget, share() returns the board's equal share of it and the limit
     * in force; 0: the budget does not bind.  split() divides the sum of these boards'
     * shares otherwise, lowering caps first; NULL: equally.  Both NULL: no budgets.
     */
    uint32_t (*share)(void *caps, size_t board, uint32_t *ret_in_force_mw);
    void (*split)(void *caps, const uint32_t *mw);
    /* The implementation ramps down to a cap by name: the tuner requests it once. */
    bool walks;
};

struct tuner;
struct tuner_claims;

struct tuner_claims_opts {
    struct loop *loop;
    struct caps *caps;
    struct board *const *boards;
    size_t n;
    enum claim_kind kind; /* SOFT: a search, ramped by the tuner; NAMED: a cap by name */
    uint64_t job;
    uid_t uid;
    const char *who; /* copied: "search of job 12" */
    double percent;  /* requested percentage of the default limit, shown in claims; 0 */
};
int tuner_claims_new(const struct tuner_claims_opts *opts, struct tuner_claims **ret,
                     uw_error *err);
/* Withdraws the remaining claims; drops pending requests without a reply. */
void tuner_claims_free(struct tuner_claims *c);
DEFINE_AUTO(struct tuner_claims *, tuner_claims_free);

/* caps: struct tuner_claims *.  tuner_named_caps: for a cap by name, ramped by caps. */
extern const struct tuner_caps tuner_claims_caps, tuner_named_caps;

/* Claims the limit now set on each board, so that the actuator holds the boards and
 * reports their originals.  Only with kind SOFT.  Errors as of caps_claim().
 */
int tuner_claims_keep(struct tuner_claims *c, uw_error *err);
/* Sets the tuner that gets tuner_on_force() and tuner_on_event(). */
void tuner_claims_tell(struct tuner_claims *c, struct tuner *tuner);
/* Sets the reason of later claims, for `explain`; copied. */
void tuner_claims_why(struct tuner_claims *c, const char *why);

#endif
