/* Signals from outside in the node: the store (policy/signals.h), the files that
 * policy.yaml names, values set by hand, and the audit trail of them.
 *
 * Owns: the store and the readers of files.  Touches: the log, the ledger's rows; the
 * files in workers' threads.  Thread: the loop's. Explained in
 * docs/policies.md#signals-from-outside.
 *
 * A restart drops values set by hand: unknown is the safe state.
 */
#ifndef NODE_OUTSIDE_H
#define NODE_OUTSIDE_H

#include "base/auto.h"
#include "node/ledger-writer.h"
#include "node/request.h"
#include "policy/signal-source.h"
#include "policy/signals.h"

struct outside;

/* writer is borrowed and must outlive *ret; each change of a factor is passed to it
 * (node/charges.h).  changed(): the value of a signal may have changed; also called from
 * inside the functions below, which it must not call.
 */
int outside_new(struct loop *loop, struct ledger_writer *writer,
                void (*changed)(void *user), void *user, struct outside **ret,
                uw_error *err);
void outside_free(struct outside *o);
DEFINE_AUTO(struct outside *, outside_free);

/* Prepares other signals and files of the site.  Copied; nothing changes before
 * outside_use().  -EINVAL (a duplicate name), -E2BIG, -EAGAIN (no thread), -ENOMEM.
 */
struct outside_plan;
int outside_plan_new(struct outside *o, const struct signal_sources *sources,
                     struct outside_plan **ret, uw_error *err);
void outside_plan_free(struct outside_plan *plan);
DEFINE_AUTO(struct outside_plan *, outside_plan_free);
/* Puts the plan in force and frees it; NULL: no effect.  Values of remaining signals are
 * kept.
 */
void outside_use(struct outside *o, struct outside_plan *plan);

/* Call once a second: records when another source gives the same value. */
void outside_tick(struct outside *o);

/* The value of a read of this signal; leaves *ret unchanged if no signal has its name,
 * type and unit.
 */
void outside_read(const struct outside *o, const struct policy_signal *signal,
                  const struct policy_read *read, struct policy_value *ret);

/* -EINVAL (no such signal, another type or unit), -ERANGE, -ENOENT (not set by hand). */
int outside_set(struct outside *o, const struct node_who *who, const char *name,
                const struct node_signal *ask, uw_error *err);
int outside_unset(struct outside *o, const struct node_who *who, const char *name,
                  uw_error *err);

/* All signals as they are now; borrowed until the next call. */
const struct signal_view *outside_look(struct outside *o, size_t *ret_n);

#endif
