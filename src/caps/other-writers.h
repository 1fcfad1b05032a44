/* Limits set by other programs on one board, and limits enforced below the one that is
 * set: finds the cause, and how long another's limit is left alone.  Pure: the board's
 * caps report the events and make the requests.
 */
#ifndef CAPS_OTHER_WRITERS_H
#define CAPS_OTHER_WRITERS_H

#include "caps/types.h"

struct other_writers {
    bool again;         /* this session has yielded the board before */
    uint32_t mw;        /* another's limit that was reported; 0: none */
    unsigned reasserts; /* in a row */
    uint64_t held_ns;   /* start of the hold */
    uint64_t forgot_ns; /* last loss put down to persistence mode; 0: never */
    bool bounded;       /* enforced below what is set: heat, board management */
    uint64_t reasons;   /* of the last sample, enum gpu_reason */
    bool told;          /* the driver reports the requested limit */
    uint64_t energy_mj; /* of the last sample: falls when the driver is reloaded */
    bool reloaded;      /* energy_mj has fallen since the last comparison */
    uint64_t changes[CAPS_CAUSES];
};

/* A change of the limit, and what is known of the board. */
struct other_change {
    const struct gpu_info *info;
    uint32_t default_mw, asked_mw; /* the board's default; our last request */
    uint32_t mw;                   /* the limit that is set now; 0: unknown */
    enum actuator_why why;
};

void other_writers_sample(struct other_writers *o, const struct gpu_sample *sample);
/* The cause of a change. */
enum caps_cause other_writers_cause(const struct other_writers *o,
                                    const struct other_change *change);
/* What keeps the enforced limit below the one that is set. */
enum caps_cause other_writers_bound(const struct other_writers *o);
/* How long another's limit is left alone; 0: our limit was lost without anybody's intent
 * and is set again at once.
 */
uint64_t other_writers_wait_ns(struct other_writers *o, const struct caps_conf *conf,
                               enum caps_cause cause, uint64_t now_ns);

#endif
