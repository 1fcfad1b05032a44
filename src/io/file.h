/* Whole files: bounded reads, atomic writes. */
#ifndef IO_FILE_H
#define IO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "underwatt/error.h"

/* Reads the whole file, NUL-terminated behind its *ret_len bytes (ret_len may be NULL);
 * free() it.  -EFBIG: more than max bytes; -EINVAL: a named pipe, which is not waited
 * for; else open's and read's -errno.  Open pipes (/dev/stdin, /dev/fd/N), devices and
 * files of /proc are allowed; "-" has no special meaning here.
 */
int file_read(const char *path, size_t max, char **ret_text, size_t *ret_len,
              uw_error *err);

/* The same of a regular file; -EINVAL: a pipe, a device, a folder, none of which is
 * waited for.  Read in a thread of its own: -ETIMEDOUT where the file system does not
 * answer in `ms`; that thread ends with its call.  -EBUSY: FILE_HANGING_MAX of them have
 * not.
 */
enum { FILE_HANGING_MAX = 4 };
int file_read_regular(const char *path, size_t max, int ms, char **ret_text,
                      size_t *ret_len, uw_error *err);
/* Whether such a read has not returned yet. */
bool file_hangs(void);

/* Writes all bytes; 0 or -errno. */
int file_write_all(int fd, const char *data, size_t len);

/* A mode for file_write(), of files that a user names: 0666 less the umask.  A file that
 * exists keeps its mode, and as far as possible its owner and group; what root writes is
 * root's where others than the file's owner and root may write the folder.  Links are
 * followed; -EACCES, -ELOOP: a link that open() does not follow.
 */
#define FILE_MODE_UMASK ((mode_t)-1)

/* Whether errors must not show text of files: this process has more rights (root's,
 * another id, capabilities at its start) than the user who started it may have, for
 * example through sudo; an error could then show that user a file they may not read.
 */
bool file_hides(void);

/* file_read() for a program whose errors quote the file; before it has threads.  Root
 * reads with the rights of nobody, and with its own where nobody may not read the file:
 * *ret_hidden is true then, and errors must not show the text, as wherever else
 * file_hides() says so.
 */
int file_read_shown(const char *path, size_t max, char **ret_text, size_t *ret_len,
                    bool *ret_hidden, uw_error *err);

/* Whether an opened file may be believed: a regular one of root or of this process's
 * user, which nobody else may write.  -EINVAL, -EPERM with one line.
 */
int file_check_owned(const char *path, const struct stat *st, uw_error *err);
/* file_read_regular() of such a file; *ret_st: as it was before. */
int file_read_owned(const char *path, size_t max, int ms, char **ret_text,
                    size_t *ret_len, struct stat *ret_st, uw_error *err);

/* Whether path is there, is no folder, and may be read: -errno with one line. */
int file_check_read(const char *path, uw_error *err);

/* Whether path names a file that a process has open: /dev/stdout, /dev/fd/3, or below
 * /proc.
 */
bool file_is_open(const char *path);

/* Replaces (or makes) path with these bytes: written to a temporary file beside it,
 * synced, renamed, the folder synced.  The folder is opened once, and stays the one that
 * is written to whatever its user puts in its place.  On failure path is unchanged and
 * the temporary file is removed.  The file's mode is `mode`, whatever the umask.  Where
 * path is a device, a pipe or an open file (/dev/stdout, /dev/fd/3) it is appended to.  A
 * file that is mounted there (docker run -v FILE:PATH) cannot be renamed: it is emptied
 * and written, keeps its mode, and may hold a part of the bytes after a failure.
 */
int file_write(const char *path, const void *data, size_t len, mode_t mode,
               uw_error *err);
/* Whether file_write() with FILE_MODE_UMASK can do this now: the same steps on a
 * temporary file, and nothing that changes the file or that a reader of a pipe notices.
 * -errno with one line.
 */
int file_check_write(const char *path, uw_error *err);
/* Whether both paths lead to the same file, which may not exist yet, and which
 * file_write() replaces: of two texts the second alone would be kept.
 */
bool file_is_same(const char *a, const char *b);

/* mkdir -p: makes each missing folder with `mode` (less the umask).  0 also when path
 * exists; -ENOTDIR when a part of it is not a folder.
 */
int file_make_dirs(const char *path, mode_t mode, uw_error *err);

/* The folder for a user's sockets and pages: $XDG_RUNTIME_DIR/NAME, or where
 * that is not set /tmp/NAME-UID.  The caller gives the environment's value (NULL
 * or "": not set; -EINVAL: not absolute).  Writes the path into ret.
 */
int file_runtime_path(const char *xdg_runtime_dir, const char *name, uid_t uid, char *ret,
                      size_t size, uw_error *err);

/* Makes that folder, mode 0700, but not its parents.  -EPERM when path exists and is a
 * link, not uid's, or open to others: another user may have made it.
 */
int file_private_dir(const char *path, uid_t uid, uw_error *err);
/* The same; where path is another user's (any user can take a name in /tmp or /dev/shm)
 * makes a new folder "PATH-XXXXXX", written into path.  1: that one, which the caller
 * must remove.
 */
int file_own_dir(char *path, size_t size, uid_t uid, uw_error *err);

/* The folder of this program; *ret_built: a folder of a build tree (…/src/cli,
 * …/src/daemon), beside which the programs of other rooms lie.  Elsewhere a folder beside
 * it may be writable for others (/usr/local/cuda), and nothing may be run or loaded from
 * there.  -errno.
 */
int file_program_dir(char *ret, size_t size, bool *ret_built);

#endif
