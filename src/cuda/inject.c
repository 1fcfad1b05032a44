/* libunderwatt-cuda.so: the CUDA driver loads it into a process that has its path in
 * CUDA_INJECTION64_PATH, and calls InitializeInjection() from its first cuInit().  See
 * docs/design/launches.md; docs/decisions/0006 explains why counting is opt-in.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/count.h"
#include "cuda/cupti.h"

int InitializeInjection(void); /* the name that the driver looks up */

/* Newest first. */
static const char *const names[] = {
    "libcupti.so.13",   "libcupti.so.12",   "libcupti.so.11.8", "libcupti.so.11.7",
    "libcupti.so.11.6", "libcupti.so.11.5", "libcupti.so.11.4", "libcupti.so.11.3",
    "libcupti.so.11.2", "libcupti.so.11.1", "libcupti.so.11.0", "libcupti.so",
};
enum { N_NAMES = sizeof names / sizeof names[0] };

static int load(void *handle, struct cupti *ret)
{
    const struct {
        void *to;
        const char *name;
        int must;
    } symbols[] = {
        {&ret->version, "cuptiGetVersion", 1},
        {&ret->callback_name, "cuptiGetCallbackName", 1},
        {&ret->subscribe, "cuptiSubscribe", 1},
        {&ret->subscribe_v2, "cuptiSubscribe_v2", 0},
        {&ret->unsubscribe, "cuptiUnsubscribe", 1},
        {&ret->enable, "cuptiEnableCallback", 1},
    };

    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *at = dlsym(handle, symbols[i].name);
        if (!at && symbols[i].must)
            return -ENOTSUP;
        memcpy(symbols[i].to, &at, sizeof at);
    }
    return 0;
}

/* Enables each call whose id has the expected name; returns their number. */
static unsigned enable(const struct cupti *cupti, void *subscriber)
{
#define LAUNCH(id, name) {id, name},
    static const struct {
        uint32_t id;
        const char *name;
    } calls[] = {CUPTI_LAUNCHES(LAUNCH)};
#undef LAUNCH
    unsigned n = 0;

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const char *name = NULL;
        if (cupti->callback_name(CUPTI_DOMAIN_DRIVER_API, calls[i].id, &name) == 0 &&
            name && strcmp(name, calls[i].name) == 0 &&
            cupti->enable(1, subscriber, CUPTI_DOMAIN_DRIVER_API, calls[i].id) == 0)
            n++;
    }
    return n;
}

/* CUptiResult; *ret_state is the resulting state. */
static int32_t subscribe(const struct cupti *cupti, uint32_t version, struct count *c,
                         void **ret, enum uw_launches_state *ret_state)
{
    struct cupti_subscriber_params params = {
        .size = sizeof params, .name = "underwatt", .allow_others = 1};

    if (cupti->subscribe_v2 && version >= CUPTI_SHARES_FROM) {
        int32_t r = cupti->subscribe_v2(ret, count_on_call, c, &params);
        *ret_state = UW_LAUNCHES_SHARED;
        if (r != CUPTI_ERROR_INVALID_PARAMETER)
            return r;
    }
    *ret_state = UW_LAUNCHES_ALONE;
    return cupti->subscribe(ret, count_on_call, c);
}

/* The CUPTI already loaded by the process (frameworks bring their own), else the newest
 * one that the linker finds.
 */
static void *find_cupti(void)
{
    void *handle = NULL;

    for (size_t i = 0; i < N_NAMES && !handle; i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    for (size_t i = 0; i < N_NAMES && !handle; i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return handle;
}

/* If CUPTI refuses, another client uses it: does not try again. */
static void begin(struct count *c)
{
    void *handle = find_cupti();
    enum uw_launches_state state;
    struct cupti cupti;
    void *subscriber = NULL;
    uint32_t version = 0;

    if (!handle || load(handle, &cupti) < 0) {
        count_state(c, UW_LAUNCHES_ABSENT, 0, 0);
        return;
    }
    (void)cupti.version(&version);
    int32_t r = subscribe(&cupti, version, c, &subscriber, &state);
    if (r == CUPTI_SUCCESS && enable(&cupti, subscriber) == 0) {
        (void)cupti.unsubscribe(subscriber);
        r = CUPTI_ERROR_INVALID_PARAMETER;
    }
    if (r == CUPTI_SUCCESS)
        count_state(c, state, version, 0);
    else
        count_state(c, UW_LAUNCHES_ASIDE, version, (uint32_t)r);
}

/* True if the user has disabled counting, or a profiler will need CUPTI later. */
static int is_unwanted(void)
{
    const char *wanted = secure_getenv("UNDERWATT_COUNT_LAUNCHES");

    return (wanted && strcmp(wanted, "0") == 0) || secure_getenv("KINETO_USE_DAEMON");
}

/* Always returns 1: a failure here must not fail cuInit(). */
__attribute__((visibility("default"))) int InitializeInjection(void)
{
    static int begun;
    const char *path = secure_getenv("UNDERWATT_PROGRESS");
    struct count *c = NULL;
    int was = errno;

    if (path && *path && !is_unwanted() &&
        !__atomic_exchange_n(&begun, 1, __ATOMIC_ACQ_REL) && count_open(path, &c) == 0)
        begin(c);
    errno = was;
    return 1;
}
