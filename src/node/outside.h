/* Signals from outside, as the node has them: the store (policy/signals.h), the files
 * that policy.yaml names, values set by hand, and the audit trail of all.
 *
 * Owns: the store and the looks at files.  Touches: policy.yaml, the log, the ledger's
 * rows; the files in workers' threads.  Thread: the loop's.
 * Explained in docs/policies.md#signals-from-outside.
 *
 * A restart forgets values set by hand: unknown is the safe state.
 */
#ifndef NODE_OUTSIDE_H
#define NODE_OUTSIDE_H

#include "base/auto.h"
#include "node/ledger-writer.h"
#include "node/request.h"
#include "policy/signals.h"

struct outside;

/* writer is borrowed and must outlive *ret.  policy_file: see outside_configure(). */
int outside_new(struct loop *loop, struct ledger_writer *writer, const char *policy_file,
                struct outside **ret, uw_error *err);
void outside_free(struct outside *o);
DEFINE_AUTO(struct outside *, outside_free);

/* Reads `signals` of this file anew; "", or a file that is missing: there are none.
 * -EINVAL and so on with FILE:LINE: nothing has changed.
 */
int outside_configure(struct outside *o, const char *policy_file, uw_error *err);

/* Borrowed; its indices hold until outside_configure(). */
struct signals *outside_signals(const struct outside *o);

/* -EINVAL (no such signal, another type or unit), -ERANGE, -ENOENT (not set by hand). */
int outside_set(struct outside *o, const struct node_who *who, const char *name,
                const struct node_signal *ask, uw_error *err);
int outside_unset(struct outside *o, const struct node_who *who, const char *name,
                  uw_error *err);

/* All signals as they are now; borrowed until the next call. */
const struct signal_view *outside_look(struct outside *o, size_t *ret_n);

#endif
