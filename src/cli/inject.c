#include "cli/inject.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"

/* From the program's folder: in a build tree, or where it was installed. */
static const char *const places[] = {
    "../cuda/libunderwatt-cuda.so",
    "../" UW_LIBDIR "/underwatt/libunderwatt-cuda.so",
    "../lib/underwatt/libunderwatt-cuda.so",
};

int inject_prepare(const struct cli_env *env, bool wanted, struct inject *ret,
                   uw_error *err)
{
    char here[3072];

    *ret = (struct inject){.env = ""};
    if (!wanted)
        return 0;
    if (env->cuda_injection && *env->cuda_injection) {
        ret->note = "CUDA_INJECTION64_PATH is set already: launches are not counted";
        return 0;
    }
    ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);
    here[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(here, '/');
    if (!slash)
        return fail(err, -ENOENT, "/proc/self/exe cannot be read");
    *slash = '\0';
    for (size_t i = 0; i < n_elements(places); i++) {
        static const char name[] = "CUDA_INJECTION64_PATH=";
        int len = snprintf(ret->env, sizeof ret->env, "%s%s/%s", name, here, places[i]);
        if (len > 0 && (size_t)len < sizeof ret->env &&
            access(ret->env + sizeof name - 1, R_OK) == 0)
            return 0;
    }
    ret->env[0] = '\0';
    return fail(err, -ENOENT, "%s/%s is not there: install the whole package", here,
                places[1]);
}
