/* Records refusals, each cause once a minute and user, so that repeated refusals fill
 * neither log nor ledger.
 *
 * Owns: when each cause was last recorded.  Touches: the log, the ledger's rows.
 * Thread: the loop's.  Explained in docs/design/ledger.md.
 */
#ifndef NODE_REFUSALS_H
#define NODE_REFUSALS_H

#include "base/auto.h"
#include "base/names.h"
#include "node/ledger-writer.h"

struct refusals;

enum refusal { REFUSALS(NAME_ENUM) };

/* -ENOMEM.  writer is borrowed and must outlive refusals. */
int refusals_new(struct loop *loop, struct ledger_writer *writer, struct refusals **ret);
void refusals_free(struct refusals *rs);
DEFINE_AUTO(struct refusals *, refusals_free);

/* A cause is the request, its result r, the user and the board (SIZE_MAX: none).  who may
 * be NULL.
 */
void refusals_say(struct refusals *rs, enum refusal of, int r, size_t board, uid_t uid,
                  const char *who, const uw_error *why);

#endif
