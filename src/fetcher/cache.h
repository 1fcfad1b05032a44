/* One file of the cache: read at the start, written beside its place and renamed, at most
 * once a minute.
 *
 * Owns: the text that is being written.  Touches: the file, in a worker's thread.
 * Thread: the loop's.  Explained in docs/signals.md#values-that-are-held.
 */
#ifndef FETCHER_CACHE_H
#define FETCHER_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/loop.h"
#include "signal/config.h"
#include "underwatt/error.h"

enum { CACHE_FILE_PATH = SIGNALS_CONFIG_PATH + SOURCE_WORD + 8 };

struct cache_file {
    const char *name;           /* in the log */
    char path[CACHE_FILE_PATH]; /* "": none, nothing is read or written */
    struct loop_worker *worker; /* borrowed */
    uint64_t saved_ns;
    bool saving; /* the worker has the text */
    bool fails;
    bool ends; /* nothing is said any more */
    char *text;
    uw_error why;
};

/* folder NULL: no cache.  name: borrowed. */
void cache_file_init(struct cache_file *f, const char *folder, const char *name,
                     struct loop_worker *worker);
/* The file's text, free() it; its -errno, -ENOENT also without a cache. */
int cache_file_read(const struct cache_file *f, char **ret_text, size_t *ret_len,
                    uw_error *why);
/* One line in the log: "ignored", "not-written". */
void cache_file_say(const struct cache_file *f, const char *state, const char *why);
/* Whether a text would be written now. */
bool cache_file_due(const struct cache_file *f, uint64_t now_ns);
/* Takes the text, of a file that is due. */
void cache_file_write(struct cache_file *f, char *text, uint64_t now_ns);

#endif
