#include "cli/inject.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"

/* From the program's folder: where it was installed, or in a build tree, whose folder of
 * the command alone is called so: from /usr/local/bin, ../cuda is NVIDIA's.
 */
static const struct {
    const char *path, *of;
} places[] = {
    {"../" UW_LIBDIR "/underwatt/libunderwatt-cuda.so", ""},
    {"../lib/underwatt/libunderwatt-cuda.so", ""},
    {"../cuda/libunderwatt-cuda.so", "/src/cli"},
};

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

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
        if (!ends_with(here, places[i].of))
            continue;
        int len =
            snprintf(ret->env, sizeof ret->env, "%s%s/%s", name, here, places[i].path);
        if (len > 0 && (size_t)len < sizeof ret->env &&
            access(ret->env + sizeof name - 1, R_OK) == 0)
            return 0;
    }
    ret->env[0] = '\0';
    return fail(err, -ENOENT, "%s/%s is not there: install the whole package", here,
                places[0].path);
}
