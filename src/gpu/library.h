/* Checks which library a program may load, and from which folder it may read. */
#ifndef GPU_LIBRARY_H
#define GPU_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "underwatt/error.h"

/* Checks a library path from an option or the environment.  A process without root's
 * privileges may load any file.  A privileged one (root) may load only a file that other
 * users cannot replace: the file and all folders above it are owned by root and writable
 * only for root; a sticky folder such as /tmp is allowed, but not as the file's own
 * folder.  *ret: the checked path, with symbolic links resolved.  -EINVAL: not absolute;
 * -EPERM: not trusted; -errno of realpath() or lstat().
 */
int gpu_library_check(const char *path, bool root, char *ret, size_t size, uw_error *err);

/* The same for a folder with trusted files: the folder and all folders above it must be
 * owned by root or owner, and not be writable for other users.
 */
int gpu_folder_check(const char *path, uid_t owner, char *ret, size_t size,
                     uw_error *err);

#endif
