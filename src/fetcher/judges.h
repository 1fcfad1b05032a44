/* Forecasts of this process held against what came: a judge for each (core/carbon), and
 * their file in the cache.
 *
 * Owns: the judges, a worker that writes the file.  Touches: the cache, in the worker's
 * thread; the log.  Thread: the loop's.
 * Explained in docs/design/signals.md#forecasts-judged.
 */
#ifndef FETCHER_JUDGES_H
#define FETCHER_JUDGES_H

#include "base/auto.h"
#include "io/loop.h"
#include "signal/config.h"
#include "signal/facts.h"
#include "signal/source.h"
#include "underwatt/error.h"

struct judges;

/* What is held: fn is called with each series.  limits: as held_end(). */
typedef void (*judges_series_fn)(const char *source, const struct signals_source *limits,
                                 const struct source_series *series, void *arg);
typedef void (*judges_each_fn)(judges_series_fn fn, void *arg, void *user);

/* folder: of the cache, NULL: none.  Asks each() every few seconds. */
int judges_new(struct loop *loop, const char *folder, judges_each_fn each, void *user,
               struct judges **ret, uw_error *err);
void judges_free(struct judges *j);
DEFINE_AUTO(struct judges *, judges_free);

/* Adds the scores of the forecast of this name, where it has any. */
void judges_facts(const struct judges *j, const char *signal, int64_t utc_s,
                  struct signal_facts *f);

#endif
