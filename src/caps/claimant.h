/* A claimant: the handle through which code of the node states claims.  The search, a
 * rule engine, a scheduler's adapter or a cluster's grant is a row of CLAIM_SOURCES
 * (base/names.h), a row of the table in claim-sources.c, and a file of its own.
 *
 *     claimant_new(loop, caps, &who, &c, &err);
 *     claimant_state(c, board, &ask, &err);  again for each change
 *     claimant_renew(c, ...);                where its source has a lease
 *     claimant_free(c);                      its claims go
 *
 * who.fn is called when the progress of a claim changes.  Runs on the loop's thread.
 * Explained in docs/caps.md.
 */
#ifndef CAPS_CLAIMANT_H
#define CAPS_CLAIMANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "core/cap/claim.h"
#include "underwatt/error.h"

struct caps;
struct loop;

struct claimant_ask {
    uint32_t mw, mhz; /* one of them, the other is 0 */
    struct claim_way way;
    uint64_t until_ns;    /* CLAIM_FOREVER; 0: as long as the lease of the source */
    const char *why;      /* one line for people; copied */
    const char *who;      /* who claims, in place of the claimant's name; NULL; copied */
    enum claim_kind kind; /* one that its source may have; 0: the source's own */
};

/* How far a claim on watts, or its withdrawal, has come on one board. */
enum claim_progress {
    CLAIM_COMING, /* asked for, or on the ramp */
    CLAIM_MET, /* in force as it was asked for; without a claim: the board is at rest */
    CLAIM_CLAMPED, /* the board is at rest at another limit: in_force_mw */
    CLAIM_UNMET,   /* the caps do not bring it about now: why */
    CLAIM_OVER,    /* ended by others: its time, a withdrawal, the end of its process */
};

/* Why nothing of a claim is in force. */
enum claim_unmet {
    UNMET_NONE,
    UNMET_YIELDED,  /* another writer's limit is respected */
    UNMET_RELEASED, /* the board was released on request */
    UNMET_DENIED,   /* the right to set limits is missing, or refused */
    UNMET_LOST,     /* the board or its actuator does not answer */
    UNMET_DRY_RUN,  /* decided, not written */
    UNMET_LATE,     /* nothing has moved for 30 s */
};

/* The same of its claim on the clock. */
struct claim_clock {
    enum claim_progress progress; /* UNMET: also while a lock fails, or is not obeyed */
    bool claimed;
    bool walking, stops; /* as in claim_told, of the lock's ramp */
    uint32_t
        locked_mhz; /* by the actuator's report; 0: no lock; no news while it walks */
};

struct claim_told {
    enum claim_progress progress;
    enum claim_unmet why; /* UNMET alone */
    uint64_t released_ns; /* when the board was released; 0: it is not */
    bool claimed;         /* there is a claim on watts */
    bool walking;         /* on the ramp to the target of all claims … */
    bool stops;     /* … and at its first cap; claimant_progressed() ends that if this
                     * claim wins */
    uint32_t at_mw; /* where the ramp is; alone it is no news */
    bool answers;   /* the actuator is there and has answered for this board */
    bool taken;     /* another Underwatt holds the board */
    uint32_t in_force_mw; /* read back, or the original where nobody holds the board; 0:
                           * unknown */
    /* The target of all claims but those of this claimant and of a policy; an uneven
     * share of the budget counts as an equal one; UINT32_MAX: nobody else asks for less
     * than the original.
     */
    uint32_t without_mw;
    uint32_t rules_mw; /* the same with the claims of a policy's rules and limits */
    bool ruled;        /* one of these lowers the target below that of all others */
    uint32_t original_mw;
    bool original_known; /* by the actuator, or seen while nobody held the board */
    bool unrestored;     /* as in caps_view: the actuator goes on restoring the board */
    struct claim_clock clock;
};

/* text: for people, may be ""; where the board is taken, who has it; told and text are
 * borrowed for the call.  One call a turn of the loop and never from inside a call of the
 * claimant's own; it may free the claimant.  A negative result ends the loop.
 */
typedef int (*claimant_fn)(size_t board, const struct claim_told *told, const char *text,
                           void *user);

struct claimant_who {
    enum claim_source source;
    uid_t uid;
    uint64_t job; /* 0: none */
    uint64_t
        boards; /* bit i: board i of the node; told of these, states on these alone */
    char name[CLAIM_TEXT];
    claimant_fn fn; /* NULL: hears nothing */
    void *user;
};

struct claimant;

/* 0 or -ENOMEM.  Claims of an earlier daemon: claimant_adopt(). */
int claimant_new(struct loop *loop, struct caps *caps, const struct claimant_who *who,
                 struct claimant **ret, uw_error *err);
/* Withdraws its claims; those of a source with LEASE_KEEP stay.  Call it before
 * caps_free().
 */
void claimant_free(struct claimant *c);
DEFINE_AUTO(struct claimant *, claimant_free);

/* One claim a board on watts and one on the clock; a second replaces the first.  0, or
 * as caps_claim(), or -EPERM (its source may not, or not its board): nothing changed.
 */
int claimant_state(struct claimant *c, size_t board, const struct claimant_ask *ask,
                   uw_error *err);
/* Withdraws the claim on watts, or on the clock; nothing happens where there is none. */
void claimant_drop(struct claimant *c, size_t board);
void claimant_drop_clock(struct claimant *c, size_t board);
/* The claim on watts of an earlier daemon, of this source and job, is its own now. */
void claimant_adopt(struct claimant *c, size_t board);
/* Its claim on watts; 0: none. */
uint64_t claimant_claim(const struct claimant *c, size_t board);
/* Changes the reason of its claim on watts and nothing else. */
void claimant_explain(struct claimant *c, size_t board, const char *why);

/* Under a budget of the node: the sum of the shares of its boards is divided as mw says
 * (one a board of the node), lower first; NULL: equally again.
 */
void claimant_split(struct claimant *c, const uint32_t *mw);

/* A lease from now on for all its claims.  safe_mw (one a board of the node; NULL: none):
 * where LEASE_SAFE falls to.
 */
void claimant_renew(struct claimant *c, const uint32_t *safe_mw);

/* The job has done so many more units of work since the last call: ends the stop at the
 * first cap of each of its claims, on watts and on the clock (claim_way's check_units).
 * Units count while the claim wins and the first cap is in force.
 */
void claimant_progressed(struct claimant *c, unsigned units);

/* What it was told last, or would be told now. */
void claimant_look(const struct claimant *c, size_t board, struct claim_told *ret);

#endif
