/* What each interval's energy is charged with: emissions by the signals carbon and
 * carbon.marginal, money by price, each as it was known in the interval's time.
 *
 * Owns: how these signals changed in the last CHARGES_STEPS steps, and what rows left
 * below a whole milligram or millionth.  Pure: time is an argument.
 * Explained in docs/ledger.md.
 */
#ifndef NODE_CHARGES_H
#define NODE_CHARGES_H

#include "base/auto.h"
#include "energy/attribution.h"
#include "io/ledger.h"
#include "policy/signals.h"

enum { CHARGES_STEPS = 128 };

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

#endif
