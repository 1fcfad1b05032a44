/* The caps that rules request for a board, and the rule that wins.  Pure; explained in
 * docs/policies.md.
 *
 * All rules that act on a board make one soft and one hard claim: the lowest of each.
 * Rules with a relative cap all start from the same base, so that they do not multiply:
 *
 *     base = min(original, lowest named or hard claim, the search's settled hold,
 *                lowest absolute rule, observed peak)
 */
#ifndef CORE_POLICY_CAP_H
#define CORE_POLICY_CAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cap/claim.h"
#include "underwatt/error.h"

enum policy_measure {
    POLICY_WATTS,      /* 250 W */
    POLICY_OF_DEFAULT, /* 75 %, a preset: of the board's default limit */
    POLICY_OF_DEMAND,  /* 85 % of demand */
    POLICY_LESS_SHARE, /* -25 %: of the base */
    POLICY_LESS_WATTS, /* -100 W */
};
struct policy_cap {
    enum policy_measure measure;
    double share; /* 0..1, of all but watts */
    uint32_t mw;
    const char *preset; /* its name, borrowed; NULL: none */
};

enum { POLICY_PRESET_NAME = 49 }; /* bytes of a name, and its end */
struct policy_preset {
    const char *name;
    double share; /* of the default limit */
};
/* The built-in presets aggressive, balanced and minimal; a policy may redefine them. */
enum { POLICY_PRESETS_BUILT_IN = 3 };
extern const struct policy_preset policy_presets[POLICY_PRESETS_BUILT_IN];

/* The one of this name.  -EINVAL; the text has the nearest name and all names. */
int policy_preset_find(const struct policy_preset *presets, size_t n, const char *name,
                       struct policy_preset *ret, uw_error *err);

/* "250 W", "75 %", "85 % of demand", "-25 %", "-100 W", or the name of one of the n
 * presets.  -EINVAL or -ERANGE with a text.
 */
int policy_cap_read(const char *text, const struct policy_preset *presets, size_t n,
                    struct policy_cap *ret, uw_error *err);
/* "70 %": above 0, at most 100 %. */
int policy_share_read(const char *text, double *ret, uw_error *err);
/* The inverse of policy_cap_read(); a preset with its share: "balanced (85 %)".  Returns
 * ret.
 */
enum { POLICY_CAP_TEXT = 80 };
const char *policy_cap_text(const struct policy_cap *cap, char ret[POLICY_CAP_TEXT]);

/* How a cap is lowered. */
enum policy_pace {
    POLICY_AS_CLASS,
    POLICY_AT_ONCE,
    POLICY_AT_RATE,
};
struct policy_ramp {
    enum policy_pace pace;
    double rate; /* of the default limit a second */
};
/* "class", "at once", "2 %/s". */
int policy_ramp_read(const char *text, struct policy_ramp *ret, uw_error *err);

/* A board and its job; 0: unknown, or none. */
struct policy_board {
    uint32_t original_mw, default_mw, min_mw, max_mw;
    uint32_t lowest_mw; /* the lowest named or hard claim of others */
    uint32_t hold_mw;   /* the settled cap of the job's search; 0 while it measures */
    uint32_t peak_mw, demand_mw;
    uint32_t ran_mw;   /* the lowest cap under which the phase of its job has run */
    double class_rate; /* of the daemon's ramp: of the default limit a second */
    double floor; /* of the job's class: soft claims go no lower than this fraction of
                     demand; 0: none */
    struct policy_ramp ramp; /* of the job's class; POLICY_AS_CLASS: as the daemon's */
};

/* A rule that acts, or the preset of a class. */
struct policy_asks {
    const char *name;
    struct policy_cap cap;
    double
        floor; /* the rule's claim goes no lower than this fraction of demand; 0: none */
    bool hard;
    bool phase; /* lowered at once to the lowest cap under which the phase has run, then
                   by the ramp */
    struct policy_ramp ramp;
};

struct policy_won {
    int asks; /* index of the winning rule; -1: no claim */
    uint32_t mw;
    bool floored; /* a floor has raised the claim */
    struct claim_way way;
};
struct policy_claims {
    uint32_t base_mw;
    struct policy_won soft, hard;
};

/* each_mw: the cap that each requests (may be NULL); 0: none, as the demand or the
 * default limit that its percentage refers to is unknown.  Of two equal requests the
 * first wins.
 */
void policy_claims_of(const struct policy_board *board, const struct policy_asks *asks,
                      size_t n, uint32_t *each_mw, struct policy_claims *ret);

#endif
