/* Charges each interval's energy: emissions by the signals carbon and carbon.marginal,
 * money by price, with the values known at the interval's time.
 *
 * Owns: the last CHARGES_STEPS changes of these signals, remainders of rows below a whole
 * milligram or millionth, and sums.  Pure: time is an argument. Explained in
 * docs/design/ledger.md.
 */
#ifndef NODE_CHARGES_H
#define NODE_CHARGES_H

#include "base/auto.h"
#include "energy/attribution.h"
#include "io/ledger.h"
#include "policy/signals.h"

enum { CHARGES_STEPS = 128, CHARGES_CURRENCY = 16 };

/* Sums since the daemon began, by enum ledger_charge. */
struct charges_sum {
    int64_t amount[LEDGER_CHARGES], covered_uj[LEDGER_CHARGES]; /* of ledger_amount */
    char currency[CHARGES_CURRENCY]; /* "EUR"; "": no price was known */
};

struct charges;

int charges_new(struct charges **ret); /* -ENOMEM */
void charges_free(struct charges *c);
DEFINE_AUTO(struct charges *, charges_free);

/* The present value of a signal from now on; signals other than these three are ignored.
 */
void charges_signal(struct charges *c, uint64_t now_ns, const struct signal_view *v);
/* Fills charge[] of a row whose energy is known; its texts are valid until the next
 * charges_signal().
 */
void charges_put(struct charges *c, const struct attribution_row *row,
                 struct ledger_energy *e);

/* The sums of a board, or of a job while it is among the last CHARGES_JOBS.  Sums of
 * money restart with another currency.
 */
void charges_board(const struct charges *c, size_t board, struct charges_sum *ret);
void charges_job(const struct charges *c, uint64_t job, struct charges_sum *ret);
/* The boards may change: drops their sums. */
void charges_drop_boards(struct charges *c);

#endif
