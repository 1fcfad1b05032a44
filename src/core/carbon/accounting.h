/* Site figures that are applied when a report is made, in addition to the booked figures
 * and never included in them.  None has a default: the user provides figure and origin.
 * Pure.  Explained in docs/emissions.md.
 */
#ifndef CORE_CARBON_ACCOUNTING_H
#define CORE_CARBON_ACCOUNTING_H

#include <stdbool.h>

#include "base/auto.h"
#include "core/carbon/market.h"
#include "underwatt/error.h"

enum { EMBODIED_MODELS = 64, EMBODIED_MODEL = 96 };

/* Embodied emissions of a board and its share of the machine, per hour of its life. */
struct embodied {
    char model[EMBODIED_MODEL]; /* the board's name as the driver reports it */
    double g_hour;
    char origin[MARKET_ORIGIN];
};

struct accounting {
    double pue; /* energy of the facility / energy of its devices; 0: not given */
    struct embodied embodied[EMBODIED_MODELS];
    size_t n_embodied;
    struct market_contract *contract;
    size_t n_contracts;
};
void accounting_fini(struct accounting *a);

/* A copy to free with accounting_free(); NULL: no memory is left. */
struct accounting *accounting_copy(const struct accounting *a);
void accounting_free(struct accounting *a); /* NULL is fine */
DEFINE_AUTO(struct accounting *, accounting_free);

bool accounting_is_pue(double v); /* 1 to 10 */
/* "1.25": 1 to 10.  -EINVAL, -ERANGE. */
int accounting_pue(struct accounting *a, const char *text, uw_error *err);
/* Adds a model.  -EINVAL, -ERANGE (0 to 10000 g an hour), -EEXIST, -E2BIG. */
int accounting_embodied(struct accounting *a, const char *model, double g_hour,
                        const char *origin, uw_error *err);
/* The same from "NVIDIA H100 80GB HBM3=12.3 vendor's report 2024". */
int accounting_embodied_text(struct accounting *a, const char *text, uw_error *err);
/* The entry for a board's name; NULL: none was given. */
const struct embodied *accounting_board(const struct accounting *a, const char *model);

/* A board's time in one hour, by its rows in the ledger and by its meter.  Each of
 * several jobs that share a board has the board's time in its rows.
 */
struct embodied_hour {
    int64_t held_ms;  /* rows of jobs and of idle time */
    int64_t used_ms;  /* time in which the board has such a row: at most held_ms */
    int64_t other_ms; /* rows of unattributed energy, at the same time or alone */
    int64_t board_ms;
};
/* The board's time, in ms, that a row of `ms` stands for: rows of jobs and idle time
 * share used_ms in proportion, other rows (`other`) share the remainder.  The parts of an
 * hour sum to board_ms; if that is 0, a row keeps its own time.
 */
double embodied_ms(const struct embodied_hour *h, bool other, int64_t ms);
/* used_ms of rows for which only the bucket is known: h's other members are of the
 * bucket, longest_ms is the longest time of one job, or of idle time, in it.  Returns the
 * least value that is consistent with them.
 */
int64_t embodied_used_ms(const struct embodied_hour *h, int64_t longest_ms);

#endif
