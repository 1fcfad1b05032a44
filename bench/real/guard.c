/* Keeps session.py from writing to a board.  Loaded with LD_PRELOAD: a program that looks
 * up a function of NVML that is not known to read only gets one that refuses
 * (NVML_ERROR_NO_PERMISSION) and adds a line to the file that UNDERWATT_REAL_CALLS names.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NO_PERMISSION = 4 };

typedef void *(*dlsym_fn)(void *, const char *);

static dlsym_fn real;

static int refuse(void)
{
    static const char line[] = "a function of NVML that may write was called\n";
    const char *path = getenv("UNDERWATT_REAL_CALLS");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;

    if (fd >= 0) {
        (void)!write(fd, line, sizeof line - 1);
        (void)close(fd);
    }
    return NO_PERMISSION;
}

static bool reads(const char *name)
{
    static const char *const whole[] = {
        "nvmlInit",     "nvmlInit_v2",     "nvmlInitWithFlags",
        "nvmlShutdown", "nvmlErrorString", "nvmlInternalGetExportTable",
    };
    static const char *const begin[] = {
        "nvmlDeviceGet",
        "nvmlDeviceIs",
        "nvmlDeviceOnSameBoard",
        "nvmlSystemGet",
        "nvmlUnitGet",
        "nvmlGpuInstanceGet",
        "nvmlComputeInstanceGet",
        "nvmlVgpuTypeGet",
        "nvmlVgpuInstanceGet",
        "nvmlGetVgpu",
        "nvmlGetExcluded",
        "nvmlEventSet",
        "nvmlDeviceRegisterEvents",
        "nvmlGpmQuery",
        "nvmlGpmMetricsGet",
        "nvmlGpmSample",
    };

    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (strcmp(name, whole[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (strncmp(name, begin[i], strlen(begin[i])) == 0)
            return true;
    return false;
}

__attribute__((constructor)) static void find_real(void)
{
    void *found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"); /* its version on x86-64 */

    if (!found)
        found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (!found)
        found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17"); /* on 64-bit Arm */
    memcpy(&real, &found, sizeof real);
}

/* This must be a tail call (optimisation is on, meson.build): the real dlsym looks at
 * its caller for RTLD_NEXT.
 */
__attribute__((visibility("default"))) void *dlsym(void *restrict handle,
                                                   const char *restrict name)
{
    static int (*const refuser)(void) = refuse;
    void *found;

    if (!real)
        find_real();
    if (strncmp(name, "nvml", 4) != 0 || reads(name))
        return real(handle, name);
    found = real(handle, name);
    if (found)
        memcpy(&found, &refuser, sizeof found);
    return found;
}
