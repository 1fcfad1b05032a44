/* The part of CUPTI's callback API that is used, declared here so that the build needs no
 * CUDA: from the public headers cupti_callbacks.h, cupti_driver_cbid.h, cupti_result.h
 * and generated_cuda_meta.h of CUPTI 11.8 and 13.5, which agree on it (ids and layouts
 * are ABI; tests/system/test-real-cupti.py compares them with both).
 */
#ifndef CUDA_CUPTI_H
#define CUDA_CUPTI_H

#include <stddef.h>
#include <stdint.h>

enum {
    CUPTI_SUCCESS = 0,
    CUPTI_ERROR_INVALID_PARAMETER = 1,

    CUPTI_DOMAIN_DRIVER_API = 1,
    CUPTI_SITE_EXIT = 1,

    CUPTI_LAUNCH = 115,
    CUPTI_LAUNCH_GRID = 116,
    CUPTI_LAUNCH_GRID_ASYNC = 117,
    CUPTI_LAUNCH_KERNEL = 307,
    CUPTI_LAUNCH_KERNEL_PTSZ = 442,
    CUPTI_LAUNCH_COOPERATIVE = 477,
    CUPTI_LAUNCH_COOPERATIVE_PTSZ = 478,
    CUPTI_LAUNCH_COOPERATIVE_MULTI = 480,
    CUPTI_GRAPH_LAUNCH = 514,
    CUPTI_GRAPH_LAUNCH_PTSZ = 515,
    CUPTI_LAUNCH_KERNEL_EX = 652,
    CUPTI_LAUNCH_KERNEL_EX_PTSZ = 653,
};

/* X(id, its name in CUPTI) of every call that is counted. */
#define CUPTI_LAUNCHES(X)                                                     \
    X(CUPTI_LAUNCH, "cuLaunch")                                               \
    X(CUPTI_LAUNCH_GRID, "cuLaunchGrid")                                      \
    X(CUPTI_LAUNCH_GRID_ASYNC, "cuLaunchGridAsync")                           \
    X(CUPTI_LAUNCH_KERNEL, "cuLaunchKernel")                                  \
    X(CUPTI_LAUNCH_KERNEL_PTSZ, "cuLaunchKernel_ptsz")                        \
    X(CUPTI_LAUNCH_COOPERATIVE, "cuLaunchCooperativeKernel")                  \
    X(CUPTI_LAUNCH_COOPERATIVE_PTSZ, "cuLaunchCooperativeKernel_ptsz")        \
    X(CUPTI_LAUNCH_COOPERATIVE_MULTI, "cuLaunchCooperativeKernelMultiDevice") \
    X(CUPTI_GRAPH_LAUNCH, "cuGraphLaunch")                                    \
    X(CUPTI_GRAPH_LAUNCH_PTSZ, "cuGraphLaunch_ptsz")                          \
    X(CUPTI_LAUNCH_KERNEL_EX, "cuLaunchKernelEx")                             \
    X(CUPTI_LAUNCH_KERNEL_EX_PTSZ, "cuLaunchKernelEx_ptsz")

/* CUpti_CallbackData */
struct cupti_call {
    int32_t site;
    const char *function;
    const void *params; /* of that call: the structs below */
    const int32_t *result;
    const char *symbol;
    void *context;
    uint32_t context_uid;
    uint64_t *correlation_data;
    uint32_t correlation;
};

/* cuLaunchKernel_params and cuLaunchCooperativeKernel_params, up to the stream */
struct cupti_kernel_params {
    void *function;
    uint32_t grid[3], block[3], shared_bytes;
    const void *stream;
};

/* CUlaunchConfig of cuda.h, up to the stream */
struct cupti_launch_config {
    uint32_t grid[3], block[3], shared_bytes;
    const void *stream;
};
struct cupti_kernel_ex_params {
    const struct cupti_launch_config *config;
};

struct cupti_grid_async_params {
    void *function;
    int32_t width, height;
    const void *stream;
};

struct cupti_graph_params {
    void *graph;
    const void *stream;
};

typedef void (*cupti_callback_fn)(void *user, int32_t domain, uint32_t id,
                                  const void *data);

/* CUpti_SubscriberParams (13.3 and newer) */
struct cupti_subscriber_params {
    size_t size;
    const char *name;
    char *old_name;
    size_t old_size;
    uint8_t allow_others;
    uint8_t padding[7];
};
/* From this version on cuptiSubscribe_v2() with these parameters allows several
 * subscribers (13.3 introduced it, but could crash; with an older driver it fails).
 */
enum { CUPTI_SHARES_FROM = 130400 };

struct cupti {
    int32_t (*version)(uint32_t *ret);
    int32_t (*callback_name)(int32_t domain, uint32_t id, const char **ret);
    int32_t (*subscribe)(void **ret, cupti_callback_fn fn, void *user);
    int32_t (*subscribe_v2)(void **ret, cupti_callback_fn fn, void *user,
                            struct cupti_subscriber_params *params); /* may be NULL */
    int32_t (*unsubscribe)(void *subscriber);
    int32_t (*enable)(uint32_t on, void *subscriber, int32_t domain, uint32_t id);
};

#endif
