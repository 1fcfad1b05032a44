#include "cli/inject.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "io/file.h"

/* Relative to the folder of the program; the last one applies to a build tree only. */
static const char *const places[] = {
    "../" UW_LIBDIR "/underwatt/libunderwatt-cuda.so",
    "../lib/underwatt/libunderwatt-cuda.so",
    "../cuda/libunderwatt-cuda.so",
};

int inject_prepare(const struct cli_env *env, bool wanted, struct inject *ret,
                   uw_error *err)
{
    char here[3072];
    bool built = false;

    *ret = (struct inject){.env = ""};
    if (!wanted)
        return 0;
    if (env->cuda_injection && *env->cuda_injection) {
        ret->note = "CUDA_INJECTION64_PATH is set already: launches are not counted";
        return 0;
    }
    int r = file_program_dir(here, sizeof here, &built);
    if (r < 0)
        return fail(err, r, "/proc/self/exe cannot be read");
    for (size_t i = 0; i < n_elements(places) - !built; i++) {
        static const char name[] = "CUDA_INJECTION64_PATH=";
        int len = snprintf(ret->env, sizeof ret->env, "%s%s/%s", name, here, places[i]);
        if (len > 0 && (size_t)len < sizeof ret->env &&
            access(ret->env + sizeof name - 1, R_OK) == 0)
            return 0;
    }
    ret->env[0] = '\0';
    return fail(err, -ENOENT, "%s/%s is not there: install the whole package", here,
                places[0]);
}
