/* Whole files: bounded reads, writes that are there entirely or not at all. */
#ifndef IO_FILE_H
#define IO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "underwatt/error.h"

/* The whole file, NUL-terminated behind its *ret_len bytes (NULL: not wanted);
 * free() it.  -EFBIG when it holds more than max bytes, else open's and read's
 * -errno.  Pipes and /proc files are fine; "-" is no special name here.
 */
int file_read(const char *path, size_t max, char **ret_text, size_t *ret_len,
              uw_error *err);

/* A mode for file_write(): 0666 less the umask. */
#define FILE_MODE_UMASK ((mode_t)-1)

/* Whether errors must show nothing of the text of files: this process runs with more
 * rights (root's, another's id, capabilities at its start) than whoever started it may
 * have, through sudo, say; a file that it is told to read would come back in an error.
 */
bool file_hides(void);

/* Replace (or make) path with these bytes: written to a temporary file beside it,
 * synced, renamed, the folder synced.  On failure path is what it was before and
 * the temporary file is gone.  The file's mode is `mode`, whatever the umask.
 * Where path is a device or a pipe (/dev/stdout, /dev/fd/3) it is written to.
 */
int file_write(const char *path, const void *data, size_t len, mode_t mode,
               uw_error *err);

/* mkdir -p: each missing folder is made with `mode` (less the umask).  0 also
 * when it is there already; -ENOTDIR when a part of it is no folder.
 */
int file_make_dirs(const char *path, mode_t mode, uw_error *err);

/* The folder for a user's sockets and pages: $XDG_RUNTIME_DIR/NAME, or where
 * that is not set /tmp/NAME-UID.  The caller gives the environment's value (NULL
 * or "": not set; -EINVAL: not absolute).  Writes the path into ret.
 */
int file_runtime_path(const char *xdg_runtime_dir, const char *name, uid_t uid, char *ret,
                      size_t size, uw_error *err);

/* Make that folder, mode 0700, its parents' not.  -EPERM when it is there but a
 * link, not uid's, or open to others: somebody may have laid it out for us.
 */
int file_private_dir(const char *path, uid_t uid, uw_error *err);
/* The same, and where path is somebody else's (anybody can take a name in /tmp or
 * /dev/shm) a new one "PATH-XXXXXX", written into path.  1: that one, to be removed by
 * the caller.
 */
int file_own_dir(char *path, size_t size, uid_t uid, uw_error *err);

/* The folder that this program lies in; *ret_built: one of a build tree (…/src/cli,
 * …/src/daemon), where the programs of other rooms lie beside it.  Elsewhere a folder
 * beside it may be anybody's (/usr/local/cuda), and nothing is to be run or loaded from
 * there.  -errno.
 */
int file_program_dir(char *ret, size_t size, bool *ret_built);

#endif
