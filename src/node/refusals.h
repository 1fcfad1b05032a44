/* Writes refusals down, each cause once a minute and user, so that whoever is refused a
 * thousand times fills neither log nor ledger.
 *
 * Owns: when each cause was last written down.  Touches: the log, the ledger's rows.
 * Thread: the loop's.  Explained in docs/ledger.md.
 */
#ifndef NODE_REFUSALS_H
#define NODE_REFUSALS_H

#include "base/auto.h"
#include "node/ledger-writer.h"

struct refusals;

enum refusal_kind { REFUSAL_REFUSED, REFUSAL_WITHDRAWN };

/* -ENOMEM.  writer: borrowed for longer than this lives. */
int refusals_new(struct loop *loop, struct ledger_writer *writer, struct refusals **ret);
void refusals_free(struct refusals *rs);
DEFINE_AUTO(struct refusals *, refusals_free);

/* board SIZE_MAX: of none.  who may be NULL. */
void refusals_say(struct refusals *rs, enum refusal_kind kind, size_t board, uid_t uid,
                  const char *who, const uw_error *why);

#endif
