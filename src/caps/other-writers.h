/* What others do to the limit of one board, and what holds a board under the limit that
 * is set: from what was read to a cause, and how long another's limit is left alone.
 * Values in, values out: the board's caps tell events and ask the actuator.
 */
#ifndef CAPS_OTHER_WRITERS_H
#define CAPS_OTHER_WRITERS_H

#include "caps/types.h"

struct other_writers {
    bool again;         /* this session has yielded there */
    uint32_t mw;        /* another's limit that was told; 0: none */
    unsigned reasserts; /* in a row */
    uint64_t held_ns;   /* the board is held since then */
    uint64_t forgot_ns; /* persistence mode had been off then; 0: never */
    bool bounded;       /* enforced is under what is set: heat, board's management */
    uint64_t reasons;   /* of the last sample, enum gpu_reason */
    bool told;          /* the driver tells what was asked of it */
    uint64_t energy_mj; /* of the last sample: falls when the driver is loaded anew */
    bool reloaded;      /* it has fallen since the last write */
    uint64_t changes[CAPS_CAUSES];
};

/* A change of the limit, with what is known of the board. */
struct other_change {
    const struct gpu_info *info;
    uint32_t default_mw, asked_mw; /* the board's default; what we asked for last */
    uint32_t mw;                   /* the limit that is set now; 0: not known */
    enum actuator_why why;
};

void other_writers_sample(struct other_writers *o, const struct gpu_sample *sample);
/* Who or what changed it. */
enum caps_cause other_writers_cause(const struct other_writers *o,
                                    const struct other_change *change);
/* What keeps the enforced limit under the one that is set. */
enum caps_cause other_writers_bound(const struct other_writers *o);
/* How long the other's limit stays; 0: what we had set is gone by nobody's will, and is
 * set again at once.
 */
uint64_t other_writers_wait_ns(struct other_writers *o, const struct caps_conf *conf,
                               enum caps_cause cause, uint64_t now_ns);

#endif
