/* Plain values shared by caps and its parts: settings, and the views of a clock lock and
 * of the budget.
 */
#ifndef CAPS_TYPES_H
#define CAPS_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "actuator/client.h"
#include "base/names.h"
#include "board/boards.h"
#include "core/cap/arbiter.h"
#include "core/cap/clock.h"

enum caps_others { CAP_OTHERS(NAME_ENUM) };

/* The longest time for which a board may be claimed or released. */
enum { CAPS_FOR_MAX_D = 365 };
#define CAPS_FOR_MAX_NS (CAPS_FOR_MAX_D * UINT64_C(86400) * NS_PER_S)
#define CAPS_YIELD_FOREVER_NS (UINT64_C(365) * 86400 * NS_PER_S)

struct caps_conf {
    struct cap_class cls; /* of jobs that name none */
    enum caps_others others;
    uint64_t reassert_ns; /* first wait before another's change is overwritten, doubled
                           * each time up to 64 x; 0: 10 s */
    uint64_t yield_ns;    /* delay before a yielded board is held again; 0: 10 min;
                           * CAPS_YIELD_FOREVER_NS: it is left alone for good */
    bool dry_run;         /* decide and report, write nothing */
    bool clocks;       /* SM clocks may be claimed (root's configuration allows locks) */
    bool hold_claimed; /* a board with a claim is held, whatever the claim comes to */
    bool always_hold;  /* boards are held from the start (budgets act at once) */
};

struct caps_clock_view {
    bool can; /* the board's clocks can be locked */
    bool on;  /* and may be, by the configuration */
    struct clock_bounds bounds;
    struct clock_verdict verdict;
    uint32_t locked_mhz; /* by the actuator's report; 0: not locked */
    uint32_t seen_mhz;   /* last sampled under load, while watched */
    uint64_t seen_ns;    /* time of that sample; 0: never */
    bool ramping;
    bool waiting;  /* at its first step, until the job is seen to continue */
    bool failed;   /* not locked as it should be: text */
    bool given_up; /* because the board did not obey */
    uint64_t writes, failures;
    uint64_t disobeyed; /* locks that the board did not obey; they were reset */
    char text[200];
};

struct caps_budget_view {
    uint32_t budget_mw;  /* 0: none */
    uint64_t counted_mw; /* sum of the limits that may be in force; not valid if … */
    bool unknown;        /* … no limit and no power of some board is known */
    uint64_t least_mw;   /* least sum of the boards' limits */
    bool is_short;       /* no room for all minimums */
    bool late;           /* boards do not come down; others make room for them */
};

#endif
