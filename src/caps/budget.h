/* The node's budget: a claimant of the source budget with one hard claim a board, stated
 * anew with every answer, so that the sum of limits that may be in force never rises
 * above the budget (core/budget/grant.h).
 *
 *     budget_new(loop, caps, n, &b, &err);
 *     budget_configure(b, mw);             again for another budget
 *     budget_free(b);                      before caps_free()
 *
 * Runs on the loop's thread.  Explained in docs/caps.md.
 */
#ifndef CAPS_BUDGET_H
#define CAPS_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "caps/types.h"
#include "underwatt/error.h"

struct budget;
struct caps;
struct loop;

/* n: boards of the caps.  -ENOMEM. */
int budget_new(struct loop *loop, struct caps *caps, size_t n, struct budget **ret,
               uw_error *err);
/* Its claims stay: limits never rise because a node ends.  budget_configure() with 0
 * withdraws them.
 */
void budget_free(struct budget *b);
DEFINE_AUTO(struct budget *, budget_free);

/* For the sum of all boards' limits, from the next turn of the loop on; 0: none. */
void budget_configure(struct budget *b, uint32_t budget_mw);
/* -ERANGE: less than the boards' minimums (text: both values). */
int budget_check(const struct caps *caps, size_t n, uint32_t budget_mw, uw_error *err);
void budget_look(const struct budget *b, struct caps_budget_view *ret);

#endif
