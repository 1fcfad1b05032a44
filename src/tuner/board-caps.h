/* The caps of a job's boards: ranges, the claims made through the table of tuner-caps.h,
 * and the reports about them.
 */
#ifndef TUNER_BOARD_CAPS_H
#define TUNER_BOARD_CAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "actuator/result.h"
#include "base/units.h"
#include "core/optimum/search.h"
#include "tuner/tuner-caps.h"
#include "underwatt/error.h"

struct board_caps {
    const struct tuner_caps *table;
    void *of; /* first argument of the table's functions */
    struct board *const *boards;
    const uint32_t *original_mw;
    const struct actuator_range *range; /* NULL: the boards' own limits */
    size_t n;
    struct cap_arg cap; /* by name */

    uint32_t named_mw;     /* the cap by name, of the highest board; 0: a search */
    uint32_t commanded_mw; /* last claimed, of the highest board */
    uint32_t asked_mw[BOARDS_MAX]; /* the claim on each board; 0: none */
    uint64_t pending; /* mask: claims and withdrawals whose ramp is under way */
    bool refused;     /* a claim was refused, or cannot be met: text */
    char text[200];
    struct claim_told told[BOARDS_MAX]; /* last report on each board, and its text */
    char told_text[BOARDS_MAX][200];
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

/* The lowest limit in force on a board; 0: unknown of one. */
uint32_t board_caps_enforced_mw(const struct board_caps *b);
/* Likewise, or the last cap claimed until it is known. */
uint32_t board_caps_in_force_mw(const struct board_caps *b);
/* The lowest limit in force that is below mw and below its board's original, as where
 * another Underwatt holds the board; 0: none.
 */
uint32_t board_caps_below_mw(const struct board_caps *b, uint32_t mw);
/* The lowest limit on a board that a claim of the job lowers; 0: none. */
uint32_t board_caps_lowest_mw(const struct board_caps *b);
/* Whether every claim is in force. */
bool board_caps_stand(const struct board_caps *b);
/* The position of the lowest board on the ramp to its claim, regardless of other claims.
 */
uint32_t board_caps_at_mw(const struct board_caps *b);
/* Whether a board is below its original or this cap because of a claim of the job. */
bool board_caps_lower(const struct board_caps *b, uint32_t original_mw);
/* Whether a board waits at the first cap for the job's work. */
bool board_caps_stop(const struct board_caps *b);
/* The highest cap that others' claims allow on all boards, with or without those of
 * rules; UINT32_MAX: any.
 */
uint32_t board_caps_ceiling_mw(const struct board_caps *b, bool rules);

/* The lowest target of others' claims that is below the job's claim on its board; 0:
 * none.
 */
uint32_t board_caps_other_mw(const struct board_caps *b);

/* States the claim of each board; mw: the highest of them; each: each board's cap before
 * it is clamped to the board's range.  Of a claim that stands as it should only the
 * reason changes.
 */
void board_caps_set(struct board_caps *b, uint32_t mw, const uint32_t *each,
                    const struct claim_way *way);
/* Changes the reason of each claim and nothing else. */
void board_caps_explain(struct board_caps *b);
/* Claims what is in force on each board, so that no cap goes down any more. */
void board_caps_stay(struct board_caps *b);
/* Withdraws all claims. */
void board_caps_release(struct board_caps *b);
/* Stores a report on board i.  Returns whether its claim is met, its withdrawal is
 * complete, or the claim cannot be met.
 */
bool board_caps_hear(struct board_caps *b, size_t i, const struct claim_told *told,
                     const char *text);
/* Whether no claim is left and all boards are at rest. */
bool board_caps_back(const struct board_caps *b);
/* Why nothing of the claim on board i is in force, after "GPU " and its index. */
void board_caps_text(const struct board_caps *b, size_t i, char *ret, size_t size);

#endif
