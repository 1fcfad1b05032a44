/* Writes or removes a small file in a worker's thread, so that a slow disk does not stop
 * the loop.
 */
#ifndef IO_FILE_SAVE_H
#define IO_FILE_SAVE_H

#include "io/loop.h"

/* text: copied, written with mode 0600; NULL: removes the file.  fn (may be NULL) is
 * called once after success or failure, from inside if the work cannot be started (worker
 * NULL, path "", out of memory).
 */
void file_save(struct loop_worker *worker, const char *path, const char *text,
               void (*fn)(void *user), void *user);

#endif
