/* Bounds the growth of a node's power: computes caps under which the boards together may
 * increase their power only at a given rate.  Pure: time is an argument.
 *
 * A board without a job is held at its minimum; a board whose job draws little (a pause)
 * is held at its minimum or near its power.  When such a board draws more again, the step
 * up to its cap is unavoidable; the step is charged against the rate, and the caps of
 * boards that request more grow from there by the rate, in equal parts.  A board that
 * other claims hold lower is followed down, so that the end of those claims is no step
 * either.  Caps cannot slow a fall: falls are only measured. Explained in
 * docs/policies.md.
 */
#ifndef CORE_POLICY_RISE_H
#define CORE_POLICY_RISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/policy/limit.h"

enum { RISE_BOARDS_MAX = 64 };
#define RISE_PAUSE_S \
    10 /* after this time of little power, or of a lower claim, the cap follows */
#define RISE_GRAIN 0.01 /* steps of a cap, of the default limit */

struct rise_now {
    bool known; /* power_w is known */
    bool has_job;
    bool slowed; /* the driver reports that a cap slows the board */
    double power_w;
    uint32_t min_mw, default_mw, original_mw;
    uint32_t top_mw; /* the cap that all other claims allow */
};

struct rise_board {
    uint32_t cap_mw; /* 0: none */
    enum limit_state state;
    bool low;  /* without a job, or in a pause */
    bool seen; /* the board's power was known before */
    uint64_t
        little_ns; /* since when the board wants no more than its cap; 0: it wants more */
    double level_w;     /* its power in the last seconds, since then */
    uint64_t behind_ns; /* since when other claims hold it lower; 0: none does */
    double cap_w;       /* the cap including fractions of a step */
};

/* Zeroed at first. */
struct rise {
    struct rise_board board[RISE_BOARDS_MAX];
    uint64_t last_ns; /* of the last step; 0: none */
    double credit_w; /* watts by which caps may grow now; < 0: a step up still exceeds the
                        rate */
    double power_w;  /* of all boards at the last step; < 0: not known of one */
    double first_w;  /* the step up when all boards that are held low begin to work */
    double fall_w;   /* largest fall from one step to the next */
};

/* One step, once a second, by rate_w_s. */
void rise_step(struct rise *r, double rate_w_s, const struct rise_now *now, size_t n,
               uint64_t now_ns);

#endif
