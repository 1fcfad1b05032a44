/* Bounds the growth of a node's power: the caps under which its boards may draw more only
 * so fast, all together.  Pure: time is an argument.
 *
 * A board without a job is held at its minimum, and one whose job draws little (a pause)
 * as low as that, or near what it draws.  When it draws again, the step up to that cap is
 * unavoidable; it is charged, and the caps of the boards that want more grow from there
 * by the rate, in equal parts.  A board that others hold lower is followed down, so that
 * the end of their claims is no step either.  Caps cannot slow a fall: it is measured
 * alone. Explained in docs/policies.md.
 */
#ifndef CORE_POLICY_RISE_H
#define CORE_POLICY_RISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/policy/limit.h"

enum { RISE_BOARDS_MAX = 64 };
#define RISE_PAUSE_S 10 /* a board draws little for so long, or a claim is lower: so */
#define RISE_GRAIN 0.01 /* steps of a cap, of the default limit */

struct rise_now {
    bool known; /* power_w is */
    bool has_job;
    bool slowed; /* a cap slows it, the driver says */
    double power_w;
    uint32_t min_mw, default_mw, original_mw;
    uint32_t top_mw; /* what all other claims allow */
};

struct rise_board {
    uint32_t cap_mw; /* 0: none */
    enum limit_state state;
    bool low;           /* without a job, or in a pause */
    bool seen;          /* its power was known once */
    uint64_t little_ns; /* it wants no more than its cap since then; 0: it does */
    double level_w;     /* what it drew in the last seconds, since then */
    uint64_t behind_ns; /* others hold it lower since then; 0: they do not */
    double cap_w;       /* its cap with the fractions of a step */
};

/* Zeroed at first. */
struct rise {
    struct rise_board board[RISE_BOARDS_MAX];
    uint64_t last_ns; /* of the last step; 0: none */
    double credit_w;  /* by which caps may grow now; < 0: a step up was not earned yet */
    double power_w;   /* of all boards at the last step; < 0: not known of one */
    double first_w;   /* the step up when all boards that are held low begin to draw */
    double fall_w;    /* largest fall from one step to the next */
};

/* One step, once a second, by rate_w_s. */
void rise_step(struct rise *r, double rate_w_s, const struct rise_now *now, size_t n,
               uint64_t now_ns);

#endif
