/* What claims of each source (CLAIM_SOURCES in base/names.h) are, and what they may do.
 */
#ifndef CAPS_CLAIM_SOURCES_H
#define CAPS_CLAIM_SOURCES_H

#include <stdint.h>

#include "core/cap/claim.h"
#include "underwatt/error.h"

/* What claims of a source may do. */
enum claim_may {
    MAY_CLOCK = 1u << 0,   /* claim the SM clock */
    MAY_RAISE = 1u << 1,   /* lift the cap above the original: struct claim's raises */
    MAY_NOT_END = 1u << 2, /* nobody else withdraws its claims */
    MAY_KEEP = 1u << 3, /* keep a board held at its original: it changes its cap often */
};

/* What stands when a lease ends that was not renewed. */
enum claim_lease_end {
    LEASE_WITHDRAW, /* no claim */
    LEASE_KEEP,     /* the claim as it was */
    LEASE_SAFE,     /* a claim at the safe share that claimant_renew() told last */
};

struct claim_source_row {
    enum claim_kind kind; /* that its handle states … */
    unsigned kinds;       /* … and all that its claims may have: 1 << enum claim_kind */
    uint64_t lease_ns;    /* 0: none, each claim has its own end */
    enum claim_lease_end at_end;
    unsigned may; /* enum claim_may */
    const char
        *is; /* what people read who may not end a claim of it; NULL: who made it */
};

const struct claim_source_row *claim_source_row(enum claim_source source);
/* -EPERM: a claim of this source may not be of that kind, on a clock, or raise. */
int claim_source_check(const struct claim *claim, uw_error *err);
/* -EPERM: this claim may not be ended by others than its claimant. */
int claim_source_refuse(const struct claim *claim, uw_error *err);

#endif
