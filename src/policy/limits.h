/* The limits of a policy: each board under a temperature, the node's rise bounded.  Steps
 * both once a second, and states what follows: one hard claim a board and limit.
 *
 * Owns how far each limit is on each board, and the claims.  Touches the caps; boards
 * come by the function of limits_opts.  Thread: the loop's.  Without a limit no timer
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

/* A board as it is now. */
struct limits_board {
    bool can_cap;
    bool temp_known, power_known, has_job;
    int temp_c;
    double power_w;
    bool slowed; /* the driver says that a cap slows it; … */
    bool tells;  /* … it says whether one does */
    uint32_t in_force_mw, min_mw, default_mw;
    struct cap_bounds bounds;
    const struct claims *claims; /* borrowed for the call; NULL: none */
};

enum limit_kind { LIMIT_TEMPERATURE, LIMIT_RISE, LIMIT_KINDS };

/* Told when heat begins and ends to lower a board, when a minimum does not hold it, and
 * when its temperature becomes unknown; once each.  After any of these it is told, too,
 * that limits_use() takes the limit away.
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

/* The boards are open; nothing where it was told before. */
int limits_open(struct limits *l, struct caps *caps, size_t n_boards, uw_error *err);
/* Withdraws its claims: after the actuator, so that no limit rises on the way. */
void limits_close(struct limits *l);
/* Other limits: one that was there goes on with its new value, one that is not there any
 * more withdraws its claims.
 */
void limits_use(struct limits *l, const struct policy_limits *ask);
/* Steps nothing, and keeps all as it is, until the next call with false. */
void limits_rest(struct limits *l, bool rests);

/* ---- to show ---- */

struct limits_row {
    enum limit_state state;
    uint64_t since_ns; /* in this state */
    uint32_t cap_mw;   /* of its claim; 0: none */
    const char *why;   /* as at firing; "" without a claim */
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
/* "83 °C", "83.3 W/s"; "" where there is no such limit.  Returns ret. */
const char *limit_asks(const struct policy_limits *ask, enum limit_kind kind,
                       char ret[LIMIT_TEXT]);

#endif
