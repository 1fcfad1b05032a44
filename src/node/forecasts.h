/* Judges the forecasts of the files that policy.yaml names: one judge for each
 * (signal/judge-list.h), whose scores go into the store, and a file for them beside the
 * ledger.  underwatt-signals judges the forecasts that come by a socket.
 *
 * Owns: the judges, past values of signals without a series, a worker that writes the
 * file.  Touches: the file, in the worker's thread; the log.  Thread: the loop's.
 * Explained in docs/design/signals.md#forecasts-judged.
 */
#ifndef NODE_FORECASTS_H
#define NODE_FORECASTS_H

#include "base/auto.h"
#include "io/loop.h"
#include "policy/signal-files.h"
#include "policy/signals.h"

struct forecasts;

/* store: must outlive *ret.  folder: of the file forecasts.json, "": none.  A file that
 * cannot be read is ignored and logged.
 */
int forecasts_new(struct loop *loop, struct signals *store, const char *folder,
                  struct forecasts **ret, uw_error *err);
/* Writes the file; a folder that hangs delays it by 2 s at most. */
void forecasts_free(struct forecasts *f);
DEFINE_AUTO(struct forecasts *, forecasts_free);

/* Judges the forecasts of these files every few seconds.  Borrowed until the next call;
 * NULL: none.
 */
void forecasts_use(struct forecasts *f, const struct signal_files *files);

#endif
