/* The caps of a job's boards: what each board may have, what was asked for last, what is
 * in force.  Caps are asked of a table (tuner-caps.h).
 */
#ifndef TUNER_BOARD_CAPS_H
#define TUNER_BOARD_CAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/units.h"
#include "core/optimum/search.h"
#include "tuner/tuner-caps.h"
#include "underwatt/error.h"

enum board_caps_ask { BOARD_CAPS_SET, BOARD_CAPS_HOLD, BOARD_CAPS_RELEASE };

/* An answer, after the fields below were updated. */
typedef int (*board_caps_fn)(enum board_caps_ask ask, const struct actuator_reply *reply,
                             void *user);

struct board_caps {
    const struct tuner_caps *table;
    void *of; /* for table */
    struct board *const *boards;
    const uint32_t *original_mw;
    const struct actuator_range *range; /* NULL: the boards' own limits */
    size_t n;
    struct cap_arg cap; /* by name */
    board_caps_fn fn;
    void *user;

    uint32_t named_mw;           /* the cap by name, of the highest board; 0: a search */
    uint32_t commanded_mw;       /* last asked for, of the highest board */
    uint32_t enforced_mw;        /* lowest that was read back since; 0: none yet */
    uint32_t got_mw[BOARDS_MAX]; /* each board's, last read back */
    unsigned pending;            /* sets and holds that are not answered yet … */
    unsigned releasing;          /* … and releases */
    bool refused;                /* a set failed */
};

/* What a cap by name comes to on a board of these limits: a percentage is of its default
 * limit, and never outside its range; watts are what they are.
 */
uint32_t cap_of_limits(const struct cap_arg *cap, const struct gpu_limits *limits);

const char *board_caps_uuid(const struct board_caps *b, size_t i);
/* From the lowest that may be set; and the highest that may be set under the original. */
struct gpu_limits board_caps_limits(const struct board_caps *b, size_t i);
uint32_t board_caps_top_mw(const struct board_caps *b, size_t i);
uint32_t board_caps_most_default_mw(const struct board_caps *b);
/* Fills in the range that all boards have in common; -ERANGE: there is none. */
int board_caps_common(const struct board_caps *b, struct search_setup *ret,
                      uw_error *err);
/* Checks the cap by name against each board's range and sets named_mw; -ERANGE. */
int board_caps_take_named(struct board_caps *b, uint32_t original_mw, uw_error *err);

/* The cap in force on the lowest board, as far as it is known. */
uint32_t board_caps_in_force_mw(const struct board_caps *b);
/* Asks for a cap on each board; mw: the highest of them; each: what each board gets
 * before its own bounds.
 */
void board_caps_set(struct board_caps *b, uint32_t mw, const uint32_t *each);
/* Board i is to be held again, or released: 0, -EAGAIN, -ENOTCONN. */
int board_caps_hold(struct board_caps *b, size_t i);
int board_caps_release(struct board_caps *b, size_t i);
/* The cap was not set, and nothing else tells of it. */
bool board_caps_is_refusal(enum actuator_result result);
/* What the actuator says, with the board it is about. */
void board_caps_reply_text(const struct actuator_reply *reply, char *ret, size_t size);

#endif
