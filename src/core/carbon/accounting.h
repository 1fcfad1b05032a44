/* Figures of the site's that are applied when a report is made, beside what is booked and
 * never in it.  None has a default: figure and origin are the user's.  Pure.
 * Explained in docs/emissions.md.
 */
#ifndef CORE_CARBON_ACCOUNTING_H
#define CORE_CARBON_ACCOUNTING_H

#include <stdbool.h>

#include "base/auto.h"
#include "core/carbon/market.h"
#include "underwatt/error.h"

enum { EMBODIED_MODELS = 64, EMBODIED_MODEL = 96 };

/* Emissions of making a board and what it stands in, by the hour of its life. */
struct embodied {
    char model[EMBODIED_MODEL]; /* the board's name as the driver tells it */
    double g_hour;
    char origin[MARKET_ORIGIN];
};

struct accounting {
    double pue; /* energy of the facility over that of its devices; 0: not given */
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
/* Of a board's name; NULL: none was given. */
const struct embodied *accounting_board(const struct accounting *a, const char *model);

/* A board's time in an hour, of its rows in the ledger and as its meter saw it.  Jobs
 * that share a board each have its time in their rows.
 */
struct embodied_hour {
    int64_t held_ms;  /* rows of jobs and of idle time */
    int64_t used_ms;  /* in which the board has such a row: at most held_ms */
    int64_t other_ms; /* rows of energy that is nobody's, beside these or alone */
    int64_t board_ms;
};
/* What of a row of ms is of the board's time, in ms: rows of jobs and idle time share
 * used_ms in proportion, the others (`other`) what that leaves.  The parts of an hour
 * make up board_ms; where that is 0 a row has its own time.
 */
double embodied_ms(const struct embodied_hour *h, bool other, int64_t ms);
/* used_ms of rows of which only the bucket is known: h's other columns are of the bucket,
 * longest_ms is the longest time of one job, or idle, in it.  The least that fits them:
 * nobody's energy counts as not beside a job where it need not have been.
 */
int64_t embodied_used_ms(const struct embodied_hour *h, int64_t longest_ms);

#endif
