/* The caps of a job's boards: ranges, the last request and the caps in force.  Requests
 * go through a table (tuner-caps.h).
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

/* Called for each reply, after struct board_caps was updated. */
typedef int (*board_caps_fn)(enum board_caps_ask ask, const struct actuator_reply *reply,
                             void *user);

struct board_caps {
    const struct tuner_caps *table;
    void *of; /* first argument of the table's functions */
    struct board *const *boards;
    const uint32_t *original_mw;
    const struct actuator_range *range; /* NULL: the boards' own limits */
    size_t n;
    struct cap_arg cap; /* by name */
    board_caps_fn fn;
    void *user;

    uint32_t named_mw;           /* the cap by name, of the highest board; 0: a search */
    uint32_t commanded_mw;       /* last request, of the highest board */
    uint32_t enforced_mw;        /* lowest limit read back since; 0: none yet */
    uint32_t got_mw[BOARDS_MAX]; /* each board's limit, last read back */
    unsigned pending;            /* sets and holds without a reply yet */
    unsigned releasing;          /* releases without a reply yet */
    bool refused;                /* a set failed */
};

/* The cap by name on a board with these limits: a percentage of the default limit,
 * clamped to the range, or a value in watts, unchanged.
 */
uint32_t cap_of_limits(const struct cap_arg *cap, const struct gpu_limits *limits);

const char *board_caps_uuid(const struct board_caps *b, size_t i);
/* The board's limits, with the actuator's minimum. */
struct gpu_limits board_caps_limits(const struct board_caps *b, size_t i);
/* The highest limit that may be set below the original. */
uint32_t board_caps_top_mw(const struct board_caps *b, size_t i);
/* The highest default limit of the boards. */
uint32_t board_caps_most_default_mw(const struct board_caps *b);
/* Sets the limits of *ret to the common range of all boards; -ERANGE: there is none. */
int board_caps_common(const struct board_caps *b, struct search_setup *ret,
                      uw_error *err);
/* Checks the cap by name against each board's range and sets named_mw; -ERANGE. */
int board_caps_take_named(struct board_caps *b, uint32_t original_mw, uw_error *err);

/* The lowest cap in force on a board, or the last request until it is known. */
uint32_t board_caps_in_force_mw(const struct board_caps *b);
/* Requests a cap on each board; mw: the highest of them; each: each board's cap before it
 * is clamped to the board's range.
 */
void board_caps_set(struct board_caps *b, uint32_t mw, const uint32_t *each);
/* Requests to hold board i again, or to release it: 0, -EAGAIN, -ENOTCONN. */
int board_caps_hold(struct board_caps *b, size_t i);
int board_caps_release(struct board_caps *b, size_t i);
/* Whether a set failed in a way that no event reports. */
bool board_caps_is_refusal(enum actuator_result result);
/* The actuator's text after "GPU " and the board's index. */
void board_caps_reply_text(const struct board_caps *b, const struct actuator_reply *reply,
                           char *ret, size_t size);

#endif
