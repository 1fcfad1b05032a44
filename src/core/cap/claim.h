/* Claims on one board: "at most N mW (or F MHz), because WHY, until T".  Pure: time is an
 * argument.
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
    CLAIMS_HARD = 8, /* places of CLAIMS_MAX that are reserved for hard claims */
    CLAIM_TEXT = 96,
};
#define CLAIM_FOREVER UINT64_MAX

/* How a cap is lowered to a claim; a cap is raised at once.  For a claim on the clock the
 * values are in MHz.
 */
struct claim_way {
    bool own;          /* false: the settings of the class of the board's job apply */
    double rate_mw_s;  /* 0: at once */
    uint32_t first_mw; /* the first step goes to this value at once, the rest gradually;
                          0: all gradually */
    unsigned check_units; /* the ramp stops there until the job has done this much work;
                             0: no stop */
};
#define CLAIM_AT_ONCE ((struct claim_way){.own = true})

struct claim {
    uint64_t id; /* unique on the node; never 0 */
    enum claim_kind kind;
    enum claim_source source;
    uint32_t mw;                /* cap; 0: a claim on the clock */
    uint32_t mhz;               /* highest SM clock; 0: a claim on the cap */
    uint64_t made_ns, until_ns; /* CLAIM_FOREVER: until it is withdrawn */
    uid_t uid;                  /* of its user */
    uint64_t job;               /* the job of the claim; 0: none */
    pid_t pid;                  /* the claim ends with this process; 0: no process */
    uint64_t pid_start;         /* start time of pid, in ticks as in /proc/PID/stat */
    bool admin;  /* made by an administrator: requires no job on the board */
    bool raises; /* named: may lift the cap above the original, up to mw */
    struct claim_way way;
    char who[CLAIM_TEXT]; /* "user anna", "search of job 12", "budget row-3" */
    char why[CLAIM_TEXT]; /* one line for a human */
};

/* The claims of one board, in the order in which they were made. */
struct claims {
    struct claim claim[CLAIMS_MAX];
    size_t n;
};

/* Whether the cap is lowered to the claim without a ramp: a hard claim, or one whose way
 * requires it.
 */
bool claim_is_at_once(const struct claim *claim);

/* Adds a claim, or replaces the one with the same id in place.  -EINVAL (no id or kind,
 * neither watts nor clock or both, ends before it begins, no rate) or -E2BIG (no free
 * place, or only reserved ones): nothing has changed.
 */
int claims_put(struct claims *c, const struct claim *claim, uw_error *err);
/* Whether there is a place for this claim, not counting the one that it replaces. */
bool claims_has_room(const struct claims *c, const struct claim *claim);
/* Replaces the reason of a claim; no such claim: does nothing. */
void claims_explain(struct claims *c, uint64_t id, const char *why);
bool claims_drop(struct claims *c, uint64_t id); /* false: no such claim */
void claims_drop_of(struct claims *c, enum claim_source source); /* all of the source */
/* Drops the claims that have ended at now_ns and calls fn (or NULL) for each before.  fn
 * must not change the claims.  Returns how many were dropped.
 */
typedef void (*claims_over_fn)(const struct claim *claim, void *user);
size_t claims_expire(struct claims *c, uint64_t now_ns, claims_over_fn fn, void *user);
/* When the next claim ends; CLAIM_FOREVER: never. */
uint64_t claims_next_ns(const struct claims *c);
const struct claim *claims_find(const struct claims *c, uint64_t id);

#endif
