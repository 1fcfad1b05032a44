/* --count-launches: the library that the CUDA driver loads into CMD. */
#ifndef CLI_INJECT_H
#define CLI_INJECT_H

#include <stdbool.h>

#include "cli/cmd.h"
#include "underwatt/error.h"

struct inject {
    char env[4160];   /* "CUDA_INJECTION64_PATH=…" for CMD; "": none */
    const char *note; /* why it is not set, for the user; NULL: none */
};

/* Sets *ret for CMD.  If it is not wanted, or the variable is already set, ret->env is
 * ""; in the second case with a note.  -ENOENT: the library is not installed;
 * -ENAMETOOLONG.
 */
int inject_prepare(const struct cli_env *env, bool wanted, struct inject *ret,
                   uw_error *err);

#endif
