#include "base/late.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"

int late_load(const char *library, const struct late_call *calls, size_t n, uw_error *err)
{
    void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);

    if (!lib)
        return fail(err, -ENOENT, "%s", dlerror());
    for (size_t i = 0; i < n; i++) {
        void *found = dlsym(lib, calls[i].name);
        if (!found)
            return fail(err, -ENOENT, "%s", dlerror());
        memcpy(calls[i].to, &found, sizeof found);
    }
    return 0;
}
