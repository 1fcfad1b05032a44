/* The cap that keeps one board under a temperature.  Pure: time is an argument.
 *
 * Lowered at once, by HEAT_DOWN of the default limit a second, while the temperature
 * rises towards the limit or is above it; trimmed by what one reading says, up or down,
 * once the temperature has settled.  Sensors give whole degrees, so one degree up or down
 * is no rise.  Explained in docs/policies.md.
 */
#ifndef CORE_POLICY_HEAT_H
#define CORE_POLICY_HEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/policy/limit.h"

#define HEAT_DOWN 0.03  /* of the default limit a second, 5 W/s at least */
#define HEAT_UP_W_S 1.0 /* fastest raise, W/s */
#define HEAT_ROOM_C 2   /* the cap is not raised within this distance of the limit */
#define HEAT_SETTLED_S \
    45 /* time within one degree after which the temperature is settled */
#define HEAT_AGE_S \
    60 /* how long the cap stays with an unknown temperature before it is lowered */
#define HEAT_IDLE_S \
    600 /* a cool board that the cap has not slowed for this time is released */

struct heat_now {
    bool known; /* temp_c is known */
    int temp_c;
    double limit_c;
    double power_w;       /* 0: unknown */
    bool slowed;          /* the cap in force slows the board, or this is unknown */
    uint32_t in_force_mw; /* the limit in force */
    uint32_t min_mw, default_mw;
    uint32_t top_mw;  /* the highest cap that all other claims allow … */
    uint32_t open_mw; /* … and the highest cap without any claim */
};

enum { HEAT_KEPT = 16 };

/* Zeroed at first. */
struct heat {
    uint32_t cap_mw; /* 0: none */
    enum limit_state state;
    uint64_t last_ns;              /* of the last step; 0: none */
    uint64_t known_ns, settled_ns; /* time of the last known temperature; begin of the
                                      time within one degree */
    uint64_t changed_ns;           /* time of the last change of the cap */
    uint64_t slowed_ns;            /* time at which the cap last slowed the board */
    int low_c, high_c;             /* of that degree */
    bool was_known;
    struct heat_past { /* the last seconds, the newest last */
        uint64_t at_ns;
        int temp_c;
        uint32_t cap_mw;
    } past[HEAT_KEPT];
    size_t n;
};

/* One step, once a second.  True when cap_mw has changed. */
bool heat_step(struct heat *h, const struct heat_now *now, uint64_t now_ns);

#endif
