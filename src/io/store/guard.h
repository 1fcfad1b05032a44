/* Whose file is it: what stands between the ledger and files that somebody laid out. */
#ifndef IO_STORE_GUARD_H
#define IO_STORE_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "underwatt/error.h"

/* The path with its folder's links followed, so that the file itself is the last
 * step; free() it.
 */
int guard_path(const char *path, char **ret, uw_error *err);
/* Opens (and makes, 0640) the ledger's file and locks it for writing: -EPERM for a
 * link, another's file, one that others may write, or a folder in which others may
 * rename; -EBUSY when another process has it.  *ret_alien: there
 * is something in it, but no database.
 */
int guard_open(const char *path, int *ret_fd, bool *ret_alien, uw_error *err);
/* Is path the file behind fd, still? */
bool guard_same(const char *path, int fd);
/* Rename the file and what belongs to it (-wal, -shm) to PATH.WHY-20261121T193000Z, a
 * name that is free.  *err says the name, also on success.
 */
int guard_aside(const char *path, const char *why, int64_t utc_ms, uw_error *err);

#endif
