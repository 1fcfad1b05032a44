/* The energy of an interval times a factor that changes in steps: emissions in whole
 * milligrams of CO2 equivalent, money in whole millionths of the currency's unit.  Pure.
 *
 * The fraction below a whole milligram or millionth is carried to the next interval of
 * the same account, so that a sum over rows is the exact product rounded down once.
 * Factors and amounts may be negative.
 */
#ifndef CORE_CARBON_ACCOUNT_H
#define CORE_CARBON_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum account_signal { ACCOUNT_CO2, ACCOUNT_MARGINAL, ACCOUNT_COST, ACCOUNT_SIGNALS };

/* A factor from from_ns until the next step. */
struct account_step {
    uint64_t from_ns;
    bool known;
    int64_t factor; /* account_factor() */
    size_t source;  /* the caller's */
};

/* A factor in g/kWh, or in units of a currency a kWh, as account_interval() takes it:
 * kept to a thousandth of a milligram, or of a millionth, a kWh.  false: not finite, or
 * beyond 1e9 g/kWh or 1e6 of the currency a kWh.
 */
bool account_factor(enum account_signal which, double v, int64_t *ret);

struct account_amount {
    bool known;         /* a factor covers some of it; else the rest is 0 */
    int64_t amount;     /* mg, or millionths, of the covered energy */
    int64_t covered_uj; /* the rest of the energy is not covered */
    size_t source;      /* of the step that covers most */
};
/* Energy is spread evenly over the interval; before the first step the factor is unknown.
 * step: in the order of time.  energy_uj: 0 to 1e18.  *rest: of the account, 0 at first.
 */
void account_interval(const struct account_step *step, size_t n, uint64_t begin_ns,
                      uint64_t end_ns, int64_t energy_uj, int64_t *rest,
                      struct account_amount *ret);

#endif
