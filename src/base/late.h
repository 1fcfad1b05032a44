/* Libraries that are loaded when they are needed first (docs/decisions/0024-late.md). */
#ifndef BASE_LATE_H
#define BASE_LATE_H

#include <stddef.h>

#include "underwatt/error.h"

struct late_call {
    const char *name;
    void *to; /* a pointer to a function of the library: is set */
};
/* Loads the library and sets all its n calls.  -ENOENT: it cannot be loaded, or lacks one
 * of them; some may be set then.  The library stays loaded.
 */
int late_load(const char *library, const struct late_call *calls, size_t n,
              uw_error *err);

#endif
