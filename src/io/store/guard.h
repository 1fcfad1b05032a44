/* Checks the owners of the ledger's file and folder, so that no other user can plant one.
 */
#ifndef IO_STORE_GUARD_H
#define IO_STORE_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "underwatt/error.h"

/* The path with its folder's links followed, so that the file itself is the last
 * step; free() it.
 */
int guard_path(const char *path, char **ret, uw_error *err);
/* Opens (and makes, 0640) the ledger's file and locks it for writing: -EPERM for a link,
 * another user's file, a file that others may write, or a folder in which others may
 * rename; -EBUSY when another process has it.  *ret_alien: the file is not empty and not
 * a database.
 */
int guard_open(const char *path, int *ret_fd, bool *ret_alien, uw_error *err);
/* Whether path still names the file of fd. */
bool guard_same(const char *path, int fd);
/* SQLite's own files beside it: -wal and -shm.  Zeroes: none. */
enum { GUARD_BESIDE = 2 };
struct guard_file {
    dev_t dev;
    ino_t ino;
};
void guard_beside(const char *path, struct guard_file ret[GUARD_BESIDE]);
/* Removes those files that are still the ones in `ours`, so that SQLite does not apply
 * them to another database; a -wal that is not empty is renamed.
 */
void guard_clear(const char *path, const struct guard_file ours[GUARD_BESIDE]);
/* As guard_open(), for a file that is only read: -EPERM. */
int guard_look(const char *path, uw_error *err);
/* Renames the file and its -wal and -shm to PATH.WHY-20261121T193000Z, a free name.  *err
 * has the name, also on success.
 */
int guard_aside(const char *path, const char *why, int64_t utc_ms, uw_error *err);

#endif
