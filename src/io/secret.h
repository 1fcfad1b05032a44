/* Secrets in files: one line that nobody but this user or root may read. */
#ifndef IO_SECRET_H
#define IO_SECRET_H

#include <stdbool.h>

#include "underwatt/error.h"

enum { SECRET_MAX = 511 };

/* The first line of the file, which what names in errors ("token"): printable characters
 * of ASCII, without blanks unless `blanks`.  -EPERM: others may read it, or it belongs to
 * another user; -EINVAL: its line is none, or too long.  Free it by secret_free().
 */
int secret_read(const char *path, const char *what, bool blanks, char **ret,
                uw_error *err);
/* Whether nobody but this user or root may read the file: -EPERM, or -errno of stat(). */
int secret_check(const char *path, const char *what, uw_error *err);
void secret_free(char *secret); /* wipes it first */

#endif
