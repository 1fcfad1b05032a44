/* The sources of signals.yaml: their rounds, the values held of each, and its cache on
 * disk.
 *
 * Owns: a worker and connections for each source: one that hangs delays no other.
 * Touches: the network, files of sources, keys, and the cache, in workers' threads.
 * Thread: the loop's.  Explained in docs/signals.md#the-process.
 */
#ifndef FETCHER_FEED_H
#define FETCHER_FEED_H

#include "base/auto.h"
#include "fetcher/judges.h"
#include "io/json.h"
#include "io/loop.h"
#include "signal/config.h"
#include "signal/held.h"
#include "underwatt/error.h"

struct feed;

/* config: borrowed.  Reads the caches, then asks each source when its time has come. */
int feed_new(struct loop *loop, const struct signals_config *config, struct feed **ret,
             uw_error *err);
void feed_free(struct feed *f); /* cancels what is under way */
DEFINE_AUTO(struct feed *, feed_free);

/* Number of finished rounds: changes whenever the shown values change. */
uint64_t feed_rounds(const struct feed *f);
/* Calls fn with each series that is held. */
void feed_each(const struct feed *f, judges_series_fn fn, void *arg);
/* The signals as objects in o.  judges: NULL: none. */
void feed_show(const struct feed *f, const struct judges *judges,
               const struct held_shown *shown, struct json_out *o);

#endif
