/* As much of a libcuda.so.1 as a test needs: cuInit() loads the injection library as
 * NVIDIA's does (tests/system/test-real-cupti.py runs that one), launches go nowhere but
 * to whoever has asked to be told, which is fake-cupti.c.  For tests alone.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cupti.h"

typedef void (*hook_fn)(uint32_t id, const void *params, int32_t result);

int cuInit(unsigned flags);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                   unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
                   void **extra);
int cuGraphLaunch(void *graph, void *stream);
void fake_cuda_hook(hook_fn fn);

static hook_fn hook;

void fake_cuda_hook(hook_fn fn)
{
    hook = fn;
}

int cuInit(unsigned flags)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *lib = path ? dlopen(path, RTLD_NOW) : NULL;
    void *at = lib ? dlsym(lib, "InitializeInjection") : NULL;
    int (*inject)(void);
    (void)flags;

    if (at) {
        memcpy(&inject, &at, sizeof at);
        (void)inject();
    }
    return 0;
}

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                   unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
                   void **extra)
{
    const struct cupti_kernel_params p = {f, {gx, gy, gz}, {bx, by, bz}, shared, stream};
    (void)params;
    (void)extra;

    if (hook)
        hook(CUPTI_LAUNCH_KERNEL, &p, 0);
    return 0;
}

int cuGraphLaunch(void *graph, void *stream)
{
    const struct cupti_graph_params p = {graph, stream};

    if (hook)
        hook(CUPTI_GRAPH_LAUNCH, &p, 0);
    return 0;
}
