/* How a tuner caps the boards of its job: by claims through a table of functions, a
 * claimant's (tuner-claims.c) or a made-up world's (bench/capplay.c).  The caps walk to
 * each claim on its way (core/cap/claim.h).  What becomes of the claims is told by
 * tuner_on_told().
 */
#ifndef TUNER_TUNER_CAPS_H
#define TUNER_TUNER_CAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board/boards.h"
#include "caps/caps.h"
#include "caps/claimant.h"

/* A board is given by its index in tuner_opts.boards.  None calls tuner_on_told() from
 * inside; the last six may be NULL.
 */
struct tuner_caps {
    /* Claims at most mw.  -errno: refused, see err. */
    int (*state)(void *caps, size_t board, uint32_t mw, const struct claim_way *way,
                 uw_error *err);
    /* Withdraws the claims on the board and its clock. */
    void (*drop)(void *caps, size_t board);
    /* As claimant_progressed() and claimant_look(). */
    void (*progressed)(void *caps, unsigned units);
    void (*look)(const void *caps, size_t board, struct claim_told *ret);
    /* clock() claims at most mhz for the SM clock (0: withdraws it), clock_watch() has
     * the clock read, clock_look() returns lock and clock.  NULL: locks are not
     * supported.
     */
    int (*clock)(void *caps, size_t board, uint32_t mhz, const struct claim_way *way,
                 uw_error *err);
    void (*clock_watch)(void *caps, size_t board, bool watch);
    void (*clock_look)(void *caps, size_t board, struct caps_clock_view *ret);
    /* With a node's budget, share() returns the board's equal share of it; 0: the budget
     * does not bind.  split() divides the sum of these boards' shares otherwise, lowering
     * caps first; NULL: equally.  Both NULL: no budgets.
     */
    uint32_t (*share)(void *caps, size_t board);
    void (*split)(void *caps, const uint32_t *mw);
    /* The claim stands: it gets the current reason, and nothing else changes. */
    void (*explain)(void *caps, size_t board);
};

struct tuner;
struct tuner_claims;

struct tuner_claims_opts {
    struct loop *loop;
    struct caps *caps;
    struct board *const *boards;
    size_t n;
    enum claim_kind kind; /* SOFT: a search; NAMED: a cap by name */
    uint64_t job;
    uid_t uid;
    const char *who; /* copied: "search of job 12" */
    double percent;  /* requested percentage of the default limit, shown in claims; 0 */
    const char *preset; /* whose name the percentage has, borrowed; NULL or "": none */
};
int tuner_claims_new(const struct tuner_claims_opts *opts, struct tuner_claims **ret,
                     uw_error *err);
/* Withdraws the remaining claims. */
void tuner_claims_free(struct tuner_claims *c);
DEFINE_AUTO(struct tuner_claims *, tuner_claims_free);

/* caps: struct tuner_claims *. */
extern const struct tuner_caps tuner_claims_caps;

/* Claims the limit now set on each board, so that the actuator holds the boards and
 * reports their originals.  Only with kind SOFT.  Errors as of caps_claim().
 */
int tuner_claims_keep(struct tuner_claims *c, uw_error *err);
/* Sets the tuner that gets tuner_on_told(). */
void tuner_claims_tell(struct tuner_claims *c, struct tuner *tuner);
/* Sets the reason of later claims, for `explain`; copied. */
void tuner_claims_why(struct tuner_claims *c, const char *why);

#endif
