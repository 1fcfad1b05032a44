/* The program that a command line names, before it is executed. */
#ifndef IO_PROGRAM_H
#define IO_PROGRAM_H

#include <stddef.h>

#include "underwatt/error.h"

/* Finds the program as execvp() does; `folders` is PATH, NULL: not set.  Its file must be
 * executable, and so must the interpreter of a script and the loader of a program of this
 * machine's kind, whose program headers must lie in the file; the kernel alone knows
 * about files of other kinds.  Writes the path; -errno of execvp(), or -EISDIR, with one
 * line that begins with the name.
 */
int program_find(const char *name, const char *folders, char *ret_path, size_t size,
                 uw_error *err);

/* Executes what program_find() found as execvpe() does, except that an ELF file which the
 * kernel cannot execute is not given to /bin/sh.  Async-signal-safe.  Returns only on
 * failure: -errno.
 */
int program_exec(const char *path, char *const *argv, char *const *env);

/* Returns r, -errno of program_exec(), with one line that begins with the name; of a
 * program of another machine it names both machines.
 */
int program_fail(const char *name, const char *path, int r, uw_error *err);

#endif
