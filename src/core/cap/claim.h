/* Claims on one board: "this board at most N mW, because WHY, until T", or at most F MHz.
 * Pure: time is an argument.
 */
#ifndef CORE_CAP_CLAIM_H
#define CORE_CAP_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/names.h"
#include "underwatt/error.h"

enum claim_kind { CLAIM_KINDS(NAME_ENUM) };
enum claim_source { CLAIM_SOURCES(NAME_ENUM) };
enum claim_end { CLAIM_ENDS(NAME_ENUM) };

enum {
    CLAIMS_MAX = 32,
    CLAIMS_HARD = 8, /* … of which soft and named ones leave so many for hard ones */
    CLAIM_TEXT = 96,
};
#define CLAIM_FOREVER UINT64_MAX

struct claim {
    uint64_t id; /* of the node; never 0 */
    enum claim_kind kind;
    enum claim_source source;
    uint32_t mw;                /* one of these two, the other is 0 … */
    uint32_t mhz;               /* … a claim on the SM clock */
    uint64_t made_ns, until_ns; /* CLAIM_FOREVER: until it is withdrawn */
    uid_t uid;                  /* who made it … */
    uint64_t job;               /* … for which job; 0: none */
    pid_t pid;                  /* it ends with this process; 0: with none */
    uint64_t pid_start;         /* start time of that process, in ticks as /proc has it */
    bool admin;           /* an administrator made it: it needs no job on the board */
    bool walked;          /* the search's own: it walks down itself, so no ramp here */
    char who[CLAIM_TEXT]; /* "user anna", "search of job 12", "budget row-3" */
    char why[CLAIM_TEXT]; /* one line for a human */
};

/* The claims of one board, in the order in which they were made. */
struct claims {
    struct claim claim[CLAIMS_MAX];
    size_t n;
};

/* Adds a claim, or replaces the one of the same id where that stands.  -EINVAL (no id,
 * no kind, neither watts nor clock or both, over before it began), -E2BIG (CLAIMS_MAX are
 * there, or all that are not kept for hard ones): nothing has changed.
 */
int claims_put(struct claims *c, const struct claim *claim, uw_error *err);
bool claims_drop(struct claims *c, uint64_t id); /* false: no such claim */
/* Drops what is over at now_ns; each is told to fn before (may be NULL).  Returns
 * how many.
 */
typedef void (*claims_over_fn)(const struct claim *claim, void *user);
size_t claims_expire(struct claims *c, uint64_t now_ns, claims_over_fn fn, void *user);
/* When the next one is over; CLAIM_FOREVER: none. */
uint64_t claims_next_ns(const struct claims *c);
const struct claim *claims_find(const struct claims *c, uint64_t id);

#endif
