/* What each interval's energy is charged with: emissions by the signals carbon and
 * carbon.marginal, money by price, each as it was known in the interval's time.
 *
 * Owns: how these signals changed in the last CHARGES_STEPS steps, what rows left below a
 * whole milligram or millionth, and sums.  Pure: time is an argument.
 * Explained in docs/design/ledger.md.
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

/* A signal as it is from now on; others than the three count for nothing. */
void charges_signal(struct charges *c, uint64_t now_ns, const struct signal_view *v);
/* Fills charge[] of a row whose energy is known; its texts are valid until the next
 * charges_signal().
 */
void charges_put(struct charges *c, const struct attribution_row *row,
                 struct ledger_energy *e);

/* Of a board; of a job: while it is among the last ones of CHARGES_JOBS.  Money begins
 * anew with another currency.
 */
void charges_board(const struct charges *c, size_t board, struct charges_sum *ret);
void charges_job(const struct charges *c, uint64_t job, struct charges_sum *ret);
/* The boards may be others from now on. */
void charges_drop_boards(struct charges *c);

#endif
