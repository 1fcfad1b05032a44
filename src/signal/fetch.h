/* The schedule of one source: the times of its rounds.
 *
 * Owns: nothing.  Touches: nothing; time is an argument, and randomness comes from a
 * seed. Explained in docs/signals.md#rounds.
 *
 * A round begins `every_ns` after the end of the round before, plus up to a tenth
 * (jitter, so that nodes do not ask at the same time).  After a failed round the next one
 * begins after FETCH_AGAIN_S, doubled with each failure, or after every_ns if that is
 * shorter; the bound is the longer of FETCH_AGAIN_MAX_S and every_ns.  A rest that the
 * service requires (Retry-After) is always kept.
 */
#ifndef SIGNAL_FETCH_H
#define SIGNAL_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "signal/source.h"
#include "underwatt/error.h"

enum {
    FETCH_FIRST_S = 5, /* the first round begins within this time, or within every / 10 */
    FETCH_AGAIN_S = 60,                    /* after the first failure … */
    FETCH_AGAIN_MAX_S = 900,               /* … and after many */
    FETCH_REQUESTS = 2 * SOURCE_STEPS + 2, /* of a round, logins included */
};

struct fetch {
    uint64_t every_ns;
    struct rng rng;
    unsigned failures; /* rounds in a row */
    unsigned asked;    /* requests of the round under way */
    uint64_t due_ns;   /* the next round, on the loop's clock */
};

/* The time since the last round of an earlier process (0: none), for fetch_begin();
 * unknown if the clock was set back since then.
 */
uint64_t fetch_ago_ns(int64_t asked_utc_s, int64_t utc_s);

/* ago_ns: time since the last round of an earlier process; UINT64_MAX: none.  rest_ns: no
 * request before this time has passed.
 */
void fetch_begin(struct fetch *f, uint64_t every_ns, uint64_t seed, uint64_t now_ns,
                 uint64_t ago_ns, uint64_t rest_ns);

/* The next request of the round that is due: as source_next(), a login first where the
 * source has one.  SOURCE_E_DONE, too, after FETCH_REQUESTS of them.
 */
int fetch_next(struct fetch *f, const struct source_config *c, const char *secret,
               struct source_state *s, int64_t utc_s, struct source_request *ret,
               uw_error *err);

/* Ends the round; good: nothing failed.  Sets due_ns. */
void fetch_over(struct fetch *f, struct source_state *s, bool good, uint64_t rest_ns,
                uint64_t now_ns);

#endif
