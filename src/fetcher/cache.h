/* One file of the cache, by the name of its source.
 * Explained in docs/signals.md#values-that-are-held.
 */
#ifndef FETCHER_CACHE_H
#define FETCHER_CACHE_H

#include "io/kept-file.h"

/* folder NULL: no cache.  name: borrowed. */
void cache_file_init(struct kept_file *f, const char *folder, const char *name,
                     struct loop_worker *worker);

#endif
