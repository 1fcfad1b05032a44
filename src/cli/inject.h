/* --count-launches: the library that the CUDA driver is to load into CMD. */
#ifndef CLI_INJECT_H
#define CLI_INJECT_H

#include <stdbool.h>

#include "cli/cmd.h"
#include "underwatt/error.h"

struct inject {
    char env[4160];   /* "CUDA_INJECTION64_PATH=…" for CMD; "": nothing */
    const char *note; /* why not, for a human; NULL: nothing to say */
};

/* What CMD gets.  Not wanted, or the variable is set already (whoever set it comes
 * first): nothing, and in the latter case a note.  -ENOENT: the library is not where it
 * was installed; -ENAMETOOLONG.
 */
int inject_prepare(const struct cli_env *env, bool wanted, struct inject *ret,
                   uw_error *err);

#endif
