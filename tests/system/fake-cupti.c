/* As much of a libcupti as a test needs, on top of fake-cuda.c.  FAKE_CUPTI=taken: there
 * is a subscriber already; =shared: the newest, where several may be.  For tests alone.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cupti.h"

enum { TAKEN = 39, IDS = 1024, INVALID = 1 };

int32_t cuptiGetVersion(uint32_t *ret);
int32_t cuptiGetCallbackName(int32_t domain, uint32_t id, const char **ret);
int32_t cuptiSubscribe(void **ret, cupti_callback_fn fn, void *user);
int32_t cuptiSubscribe_v2(void **ret, cupti_callback_fn fn, void *user,
                          struct cupti_subscriber_params *params);
int32_t cuptiUnsubscribe(void *subscriber);
int32_t cuptiEnableCallback(uint32_t on, void *subscriber, int32_t domain, uint32_t id);

static struct {
    cupti_callback_fn fn;
    void *user;
    uint8_t on[IDS];
} s;

static int is(const char *what)
{
    const char *env = getenv("FAKE_CUPTI");
    return env && strcmp(env, what) == 0;
}

int32_t cuptiGetVersion(uint32_t *ret)
{
    *ret = is("shared") ? 130500 : 28;
    return 0;
}

/* One of the names is another's: that id is not to be enabled. */
int32_t cuptiGetCallbackName(int32_t domain, uint32_t id, const char **ret)
{
#define LAUNCH(i, name) {i, name},
    static const struct {
        uint32_t id;
        const char *name;
    } calls[] = {CUPTI_LAUNCHES(LAUNCH)};

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (domain == CUPTI_DOMAIN_DRIVER_API && calls[i].id == id) {
            *ret = id == CUPTI_LAUNCH_COOPERATIVE ? "cuSomethingElse" : calls[i].name;
            return 0;
        }
    return INVALID;
}

static void on_launch(uint32_t id, const void *params, int32_t result)
{
    struct cupti_call call = {.site = 0, .params = params, .result = &result};

    if (id >= IDS || !s.on[id] || !s.fn)
        return;
    s.fn(s.user, CUPTI_DOMAIN_DRIVER_API, id, &call);
    call.site = CUPTI_SITE_EXIT;
    s.fn(s.user, CUPTI_DOMAIN_DRIVER_API, id, &call);
}

int32_t cuptiSubscribe(void **ret, cupti_callback_fn fn, void *user)
{
    void (*hook)(void (*)(uint32_t, const void *, int32_t));
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *at = cuda ? dlsym(cuda, "fake_cuda_hook") : NULL;

    if (is("taken") || s.fn || !at)
        return TAKEN;
    memcpy(&hook, &at, sizeof at);
    s.fn = fn;
    s.user = user;
    hook(on_launch);
    *ret = &s;
    return 0;
}

int32_t cuptiSubscribe_v2(void **ret, cupti_callback_fn fn, void *user,
                          struct cupti_subscriber_params *params)
{
    if (!is("shared") || params->size != sizeof *params || !params->allow_others)
        return INVALID;
    return cuptiSubscribe(ret, fn, user);
}

int32_t cuptiUnsubscribe(void *subscriber)
{
    (void)subscriber;
    memset(&s, 0, sizeof s);
    return 0;
}

int32_t cuptiEnableCallback(uint32_t on, void *subscriber, int32_t domain, uint32_t id)
{
    if (subscriber != &s || domain != CUPTI_DOMAIN_DRIVER_API || id >= IDS ||
        id == CUPTI_LAUNCH_COOPERATIVE)
        return INVALID;
    s.on[id] = on != 0;
    return 0;
}
