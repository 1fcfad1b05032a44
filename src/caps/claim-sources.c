#include "caps/claim-sources.h"

#include <errno.h>
#include <inttypes.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/names.h"
#include "base/units.h"

#define KIND(kind) (1u << CLAIM_##kind)

static const struct claim_source_row rows[] = {
    [CLAIM_OF_PERSON] = {CLAIM_NAMED, KIND(SOFT) | KIND(NAMED) | KIND(HARD), 0,
                         LEASE_WITHDRAW, MAY_CLOCK | MAY_RAISE},
    [CLAIM_OF_JOB_CAP] = {CLAIM_NAMED, KIND(NAMED), 0, LEASE_WITHDRAW, 0},
    [CLAIM_OF_SEARCH] = {CLAIM_SOFT, KIND(SOFT), 0, LEASE_WITHDRAW, MAY_CLOCK | MAY_KEEP},
    [CLAIM_OF_BUDGET] = {CLAIM_HARD, KIND(HARD), 0, LEASE_KEEP, MAY_NOT_END,
                         "the node's budget: budget.node in underwattd.yaml changes it"},
    [CLAIM_OF_SWEEP] = {CLAIM_NAMED, KIND(NAMED), 0, LEASE_WITHDRAW,
                        MAY_RAISE | MAY_KEEP},
    [CLAIM_OF_RULE] = {CLAIM_SOFT, KIND(SOFT) | KIND(HARD), 30 * NS_PER_S, LEASE_WITHDRAW,
                       MAY_NOT_END},
    [CLAIM_OF_LIMIT] = {CLAIM_HARD, KIND(HARD), 30 * NS_PER_S, LEASE_WITHDRAW,
                        MAY_NOT_END,
                        "a limit of the policy: `limits` in policy.yaml changes it"},
    [CLAIM_OF_SCHEDULER] = {CLAIM_NAMED, KIND(NAMED), 0, LEASE_WITHDRAW, 0},
    [CLAIM_OF_GRANT] = {CLAIM_HARD, KIND(HARD), 30 * NS_PER_S, LEASE_SAFE, MAY_NOT_END},
};

#define HAS_ROW(id, number, word, text) \
    _Static_assert((number) < n_elements(rows), word " has no row");
CLAIM_SOURCES(HAS_ROW)

const struct claim_source_row *claim_source_row(enum claim_source source)
{
    return &rows[source];
}

int claim_source_check(const struct claim *claim, uw_error *err)
{
    const struct claim_source_row *row = &rows[claim->source];

    if (claim->kind && !(row->kinds & (1u << claim->kind)))
        return fail(err, -EPERM, "a claim of a %s cannot be %s",
                    names_word(NAMES_CLAIM_SOURCE, claim->source),
                    names_word(NAMES_CLAIM_KIND, claim->kind));
    if (claim->mhz && !(row->may & MAY_CLOCK))
        return fail(err, -EPERM, "a claim of a %s cannot be on the clock",
                    names_word(NAMES_CLAIM_SOURCE, claim->source));
    if (claim->raises && !(row->may & MAY_RAISE))
        return fail(err, -EPERM,
                    "a claim of a %s cannot raise the cap above the original",
                    names_word(NAMES_CLAIM_SOURCE, claim->source));
    return 0;
}

int claim_source_refuse(const struct claim *claim, uw_error *err)
{
    const char *is = rows[claim->source].is;

    return fail(err, -EPERM, "claim %" PRIu64 " is %s%s", claim->id, is ? is : claim->who,
                is ? "" : ": nobody else may end it");
}
