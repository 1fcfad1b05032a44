/* Events: a board is lost (XID 79), its P-state or SM clock changes.  A waiting call
 * reads the page every few milliseconds, because the page sends no notification.  Boards
 * are always on mains: a change of the power source can be registered and never occurs.
 */
#include <stdlib.h>
#include <time.h>

#include "sim/nvml/attach.h"

enum {
    EVENT_PSTATE = 0x4,
    EVENT_XID = 0x8,
    EVENT_CLOCK = 0x10,
    EVENT_POWER_SOURCE = 0x80,
    EVENT_ALL = EVENT_PSTATE | EVENT_XID | EVENT_CLOCK | EVENT_POWER_SOURCE,
    XID_OFF_THE_BUS = 79,
    LOOK_MS = 5,
    REASON_IDLE = 1,
};

struct watch {
    nv_device dev;
    uint64_t types;
    uint64_t mhz;
    bool idle, lost;
};

/* Used by one thread at a time, as the real one. */
typedef struct nv_event_set {
    struct watch watch[SIM_BOARDS_MAX];
    unsigned n;
} * nv_events;

struct nv_event {
    nv_device dev;
    uint64_t type, data;
    uint32_t gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct nv_event) == 32, "nvmlEventData_t");

NVML_API int nvmlDeviceGetSupportedEventTypes(nv_device dev, unsigned long long *ret)
{
    const struct sim_identity *id;

    if (!ret)
        return SIM_INVALID;
    int r = nv_identity(dev, &id);
    if (!r)
        *ret = EVENT_ALL;
    return r;
}

NVML_API int nvmlEventSetCreate(nv_events *ret)
{
    const struct sim_page *page;

    if (!ret)
        return SIM_INVALID;
    int r = nv_page(&page);
    if (r)
        return r;
    *ret = calloc(1, sizeof **ret);
    return *ret ? SIM_OK : SIM_UNKNOWN;
}

NVML_API int nvmlEventSetFree(nv_events set)
{
    if (!set)
        return SIM_INVALID;
    free(set);
    return SIM_OK;
}

NVML_API int nvmlDeviceRegisterEvents(nv_device dev, unsigned long long types,
                                      nv_events set)
{
    struct sim_readings now;
    unsigned i = 0;

    if (!set)
        return SIM_INVALID;
    if (types & ~(unsigned long long)EVENT_ALL)
        return SIM_NOT_SUPPORTED;
    int r = nv_peek(dev, &now);
    if (r)
        return r;
    while (i < set->n && set->watch[i].dev != dev)
        i++;
    if (i == SIM_BOARDS_MAX)
        return SIM_INVALID;
    if (i == set->n)
        set->watch[set->n++] = (struct watch){
            .dev = dev, .mhz = now.sm_mhz, .idle = now.reasons & REASON_IDLE};
    set->watch[i].types |= types;
    return SIM_OK;
}

/* The next event of a board since the last look; 0: none. */
static uint64_t look(struct watch *w, uint64_t *ret_data)
{
    struct sim_readings now;
    bool was_lost = w->lost;

    int r = nv_peek(w->dev, &now);
    w->lost = r == SIM_LOST;
    *ret_data = XID_OFF_THE_BUS;
    if (w->lost && !was_lost && (w->types & EVENT_XID))
        return EVENT_XID;
    if (r)
        return 0;
    bool idle = now.reasons & REASON_IDLE;
    bool other = idle != w->idle;
    w->idle = idle;
    *ret_data = 0;
    if (other && (w->types & EVENT_PSTATE))
        return EVENT_PSTATE;
    other = now.sm_mhz != w->mhz;
    w->mhz = now.sm_mhz;
    return other && (w->types & EVENT_CLOCK) ? EVENT_CLOCK : 0;
}

static uint64_t mono_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000u + (uint64_t)ts.tv_nsec / 1000000u;
}

NVML_API int nvmlEventSetWait_v2(nv_events set, struct nv_event *ret, unsigned timeout_ms)
{
    struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    const struct sim_page *page;
    uint64_t until = mono_ms() + timeout_ms;

    if (!set || !ret)
        return SIM_INVALID;
    int r = nv_page(&page);
    if (r)
        return r;
    for (;;) {
        for (unsigned i = 0; i < set->n; i++) {
            uint64_t data;
            uint64_t type = look(&set->watch[i], &data);
            if (!type)
                continue;
            *ret = (struct nv_event){.dev = set->watch[i].dev,
                                     .type = type,
                                     .data = data,
                                     .gpu_instance = NV_NO_INSTANCE,
                                     .compute_instance = NV_NO_INSTANCE};
            return SIM_OK;
        }
        if (mono_ms() >= until)
            return SIM_TIMEOUT;
        (void)nanosleep(&pause, NULL);
    }
}

/* An event set of the first version: without the instances. */
NVML_API int nvmlEventSetWait(nv_events set, void *ret, unsigned timeout_ms)
{
    struct nv_event event;
    struct nv_event_v1 {
        nv_device dev;
        uint64_t type, data;
    } *v1 = ret;

    if (!ret)
        return SIM_INVALID;
    int r = nvmlEventSetWait_v2(set, &event, timeout_ms);
    if (!r)
        *v1 = (struct nv_event_v1){event.dev, event.type, event.data};
    return r;
}
