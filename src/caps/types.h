/* Plain values that caps and the parts of caps share: settings, and what is shown of a
 * clock's lock and of the budget.
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

struct caps_conf {
    struct cap_class cls; /* where no job names another */
    enum caps_others others;
    uint64_t reassert_ns; /* first wait before another's change is overwritten, doubled
                           * each time up to 64 x; 0: 10 s */
    uint64_t yield_ns;    /* a yielded board is tried again after so long; 0: 10 min */
    bool dry_run;         /* decide and tell, write nothing */
    bool clocks;        /* SM clocks may be claimed (root's configuration allows locks) */
    bool always_hold;   /* boards are held from the start (budgets act at once) */
    uint32_t budget_mw; /* of all boards' limits together; 0: none */
};

struct caps_clock_view {
    bool can; /* the board's clocks can be locked … */
    bool on;  /* … and may be, by our configuration */
    struct clock_bounds bounds;
    struct clock_verdict verdict;
    uint32_t locked_mhz; /* by us, the actuator's word; 0: not */
    uint32_t seen_mhz; /* last seen while the board was at work, where it is watched … */
    uint64_t seen_ns;  /* … then; 0: never */
    bool ramping;
    bool failed;   /* not locked as it should be: text */
    bool given_up; /* … as the board did not obey */
    uint64_t writes, failures;
    uint64_t disobeyed; /* locks that the board did not obey: given back */
    char text[200];
};

struct caps_budget_view {
    uint32_t budget_mw; /* 0: there is none */
    uint64_t
        counted_mw; /* limits that may be in force, together; of no meaning where … */
    bool unknown;   /* … nothing is known of some board, not even how much it takes */
    uint64_t least_mw; /* boards cannot do with less */
    bool is_short;     /* no room for all minimums */
    bool late;         /* boards do not come down, others make room for them */
};

#endif
