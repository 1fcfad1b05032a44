/* Which library a program may load, and which folder it may read from. */
#ifndef GPU_LIBRARY_H
#define GPU_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "underwatt/error.h"

/* The library that somebody named (an option, the environment), for a process
 * with or without root's rights.  Without them any file will do.  With them only
 * one that nobody but root can exchange: the file and every folder above it are
 * root's and writable for nobody else; a folder like /tmp, where everybody may
 * write but each can remove only what is his own, is fine above a folder of
 * root's, not right above the file.  Links are followed first, and what was
 * checked is what *ret names.  -EINVAL (not absolute), -ENOENT …, -EPERM.
 */
int gpu_library_check(const char *path, bool root, char *ret, size_t size, uw_error *err);

/* The same for a folder of files that are trusted: it and every folder above it are
 * root's or owner's, and writable for nobody else.
 */
int gpu_folder_check(const char *path, uid_t owner, char *ret, size_t size,
                     uw_error *err);

#endif
