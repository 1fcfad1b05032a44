/* The limits of a policy: each board stays under a temperature, and the rise of the
 * node's power is bounded.  Steps both once a second, and states one hard claim a board
 * and limit.
 *
 * Owns the state of each limit on each board, and the claims.  Touches the caps; boards
 * come from the function in limits_opts.  Thread: the loop's.  Without a limit no timer
 * runs.  Explained in docs/policies.md.
 */
#ifndef POLICY_LIMITS_H
#define POLICY_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "core/cap/arbiter.h"
#include "core/policy/limit.h"
#include "underwatt/error.h"

struct caps;
struct limits;
struct loop;

enum { LIMITS_BOARDS_MAX = 64, LIMIT_TEXT = 96 };

/* The present state of a board. */
struct limits_board {
    bool can_cap;
    bool temp_known, power_known, has_job;
    int temp_c;
    double power_w;
    bool slowed; /* the driver reports that a cap slows the board; … */
    bool tells;  /* … valid only if the driver reports this */
    uint32_t in_force_mw, min_mw, default_mw;
    struct cap_bounds bounds;
    const struct claims *claims; /* borrowed for the call; NULL: none */
};

enum limit_kind { LIMIT_TEMPERATURE, LIMIT_RISE, LIMIT_KINDS };

/* Reported once each: when the limit begins and ends to lower a board for its
 * temperature, when the board's minimum does not keep it under the limit, and when its
 * temperature becomes unknown; after any of these also that limits_use() has removed the
 * limit.
 */
struct limits_event {
    enum limit_kind kind;
    size_t board;
    enum limit_state state;
    uint32_t cap_mw; /* of its claim; 0: none */
    char text[160];
};

struct limits_opts {
    struct loop *loop;
    /* Fills ret of all boards; returns how many. */
    size_t (*look)(struct limits_board *ret, void *user);
    void (*event)(const struct limits_event *event, void *user);
    void *user;
};
/* -ENOMEM */
int limits_new(const struct limits_opts *opts, struct limits **ret, uw_error *err);
void limits_free(struct limits *l);
DEFINE_AUTO(struct limits *, limits_free);

/* The boards are open; no effect if called before. */
int limits_open(struct limits *l, struct caps *caps, size_t n_boards, uw_error *err);
/* Withdraws its claims; call it after the actuator is closed, so that no limit rises
 * meanwhile.
 */
void limits_close(struct limits *l);
/* Sets other limits: an existing limit continues with its new value, and a limit that is
 * gone withdraws its claims.
 */
void limits_use(struct limits *l, const struct policy_limits *ask);
/* Suspends all steps and keeps the state until the next call with false. */
void limits_rest(struct limits *l, bool rests);

/* ---- views ---- */

struct limits_row {
    enum limit_state state;
    uint64_t since_ns; /* in this state */
    uint32_t cap_mw;   /* of its claim; 0: none */
    const char *why;   /* reason of the claim; "" without a claim */
    bool margin_known; /* temperature: … */
    double margin_k;   /* … how far the board is below it */
};
struct limits_view {
    struct policy_limits ask;
    size_t n_boards;
    struct limits_row row[LIMIT_KINDS][LIMITS_BOARDS_MAX];
    double first_w; /* rise: the step up when all boards that are held low begin */
    double fall_w;  /* rise: the largest fall from one second to the next */
};
void limits_look(const struct limits *l, struct limits_view *ret);
/* Claims that were refused. */
uint64_t limits_refused(const struct limits *l);
/* "temperature", "rise" */
const char *limit_word(enum limit_kind kind);
/* "83 °C", "83.3 W/s"; "": no such limit.  Returns ret. */
const char *limit_asks(const struct policy_limits *ask, enum limit_kind kind,
                       char ret[LIMIT_TEXT]);

#endif
