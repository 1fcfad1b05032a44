/* Loading, unloading, the system, and finding boards. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "sim/devices.h"
#include "sim/nvml/attach.h"
#include "sim/nvml/users.h"
#include "underwatt/sim.h"

enum { CUDA_VERSION = 12040, NO_ATTACH = 2 };

int nv_text(char *to, unsigned size, const char *from)
{
    size_t n = strlen(from);

    if (!to)
        return SIM_INVALID;
    if (n >= size)
        return SIM_TOO_SMALL;
    memcpy(to, from, n + 1);
    return SIM_OK;
}

NVML_API int nvmlInit_v2(void)
{
    return nv_init(true);
}

NVML_SAME(nvmlInit, nvmlInit_v2)

NVML_API int nvmlInitWithFlags(unsigned flags)
{
    return nv_init(!(flags & NO_ATTACH)); /* the flag "no GPUs is fine" is implied */
}

NVML_API int nvmlShutdown(void)
{
    return nv_shutdown();
}

NVML_API const char *nvmlErrorString(int result)
{
    static const struct {
        int result;
        const char *text;
    } texts[] = {
        {0, "Success"},
        {1, "Uninitialized"},
        {2, "Invalid Argument"},
        {3, "Not Supported"},
        {4, "Insufficient Permissions"},
        {5, "Already Initialized"},
        {6, "Not Found"},
        {7, "Insufficient Size"},
        {8, "Insufficient External Power"},
        {9, "Driver Not Loaded"},
        {10, "Timeout"},
        {11, "Interrupt Request Issue"},
        {12, "NVML Shared Library Not Found"},
        {13, "Function Not Found"},
        {14, "Corrupted infoROM"},
        {15, "GPU is lost"},
        {16, "GPU requires reset"},
        {17, "GPU access blocked by the operating system"},
        {18, "Driver/library version mismatch"},
        {19, "In use by another client"},
        {20, "Insufficient Memory"},
        {21, "No data"},
        {22, "ECC is disabled for this vGPU"},
        {23, "Insufficient Resources"},
        {24, "Frequency not supported"},
        {25, "Argument version mismatch"},
        {26, "Deprecated"},
        {27, "Not ready"},
        {28, "GPU not found"},
        {29, "Invalid state"},
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].result == result)
            return texts[i].text;
    return "Unknown Error";
}

NVML_API int nvmlSystemGetDriverVersion(char *ret, unsigned size)
{
    const struct sim_page *page;

    int r = nv_page(&page);
    return r ? r : nv_text(ret, size, page->driver_version);
}

NVML_API int nvmlSystemGetNVMLVersion(char *ret, unsigned size)
{
    return nv_text(ret, size, "12.0.simulated");
}

NVML_API int nvmlSystemGetCudaDriverVersion(int *ret)
{
    if (!ret)
        return SIM_INVALID;
    *ret = CUDA_VERSION;
    return SIM_OK;
}

NVML_SAME(nvmlSystemGetCudaDriverVersion_v2, nvmlSystemGetCudaDriverVersion)

NVML_API int nvmlSystemGetProcessName(unsigned pid, char *ret, unsigned size)
{
    char path[64];
    char name[256];

    if (!ret || size == 0)
        return SIM_INVALID;
    (void)snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return SIM_NOT_FOUND;
    size_t n = fread(name, 1, sizeof name - 1, f);
    (void)fclose(f);
    name[n] = '\0';
    (void)snprintf(ret, size, "%s", name);
    return n ? SIM_OK : SIM_NOT_FOUND;
}

NVML_API int nvmlDeviceGetCount_v2(unsigned *ret)
{
    const struct sim_page *page;

    int r = nv_page(&page);
    if (r)
        return r;
    if (!ret)
        return SIM_INVALID;
    if (!nv_world_lives(page))
        return SIM_UNKNOWN;
    *ret = sim_devices_count(page, nv_may());
    return SIM_OK;
}

NVML_SAME(nvmlDeviceGetCount, nvmlDeviceGetCount_v2)

/* A lost board has no handle. */
NVML_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, nv_device *ret)
{
    const struct sim_page *page;
    const struct sim_identity *id;

    int r = nv_page(&page);
    if (r)
        return r;
    unsigned board = sim_devices_at(page, nv_may(), index);
    if (!ret || board >= page->n_boards)
        return SIM_INVALID;
    users_attach(board);
    r = nv_identity(nv_handle_of(board), &id);
    if (!r)
        *ret = nv_handle_of(board);
    return r;
}

NVML_SAME(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2)

/* "0000:3B:00.0" and "00000000:3b:00.0" name the same board. */
static bool same_bus(const char *asked, const char *have)
{
    size_t na = strlen(asked);
    size_t nh = strlen(have);

    if (na > nh)
        return false;
    for (size_t i = 0; i < nh - na; i++)
        if (have[i] != '0')
            return false;
    return na >= 7 && strcasecmp(asked, have + (nh - na)) == 0;
}

static bool same_text(const char *asked, const char *have)
{
    return strcmp(asked, have) == 0;
}

/* searches: also attaches the boards before the one found. */
static int by_text(const char *text, size_t offset,
                   bool (*same)(const char *asked, const char *have), bool searches,
                   nv_device *ret)
{
    const struct sim_page *page;

    int r = nv_page(&page);
    if (r)
        return r;
    if (!ret || !text)
        return SIM_INVALID;
    for (unsigned i = 0; i < page->n_boards; i++) {
        if (!(nv_may() >> i & 1))
            continue;
        if (searches)
            users_attach(i);
        if (same(text, (const char *)&page->board[i].identity + offset))
            return nvmlDeviceGetHandleByIndex_v2(sim_devices_place(nv_may(), i), ret);
    }
    return SIM_NOT_FOUND;
}

NVML_API int nvmlDeviceGetHandleByUUID(const char *uuid, nv_device *ret)
{
    return by_text(uuid, offsetof(struct sim_identity, uuid), same_text, true, ret);
}

NVML_API int nvmlDeviceGetHandleBySerial(const char *serial, nv_device *ret)
{
    return by_text(serial, offsetof(struct sim_identity, serial), same_text, true, ret);
}

NVML_API int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nv_device *ret)
{
    return by_text(bus, offsetof(struct sim_identity, bus_id), same_bus, false, ret);
}

NVML_SAME(nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2)

NVML_API int nvmlUnitGetCount(unsigned *ret)
{
    if (!ret)
        return SIM_INVALID;
    *ret = 0;
    return SIM_OK;
}

NVML_SAME(nvmlGetExcludedDeviceCount, nvmlUnitGetCount)

/* The symbol that only a simulated library has: include/underwatt/sim.h. */
NVML_API int uw_sim_info(struct uw_sim_info *ret)
{
    const size_t smallest = offsetof(struct uw_sim_info, clock);
    struct uw_sim_info info = {.simulated = UW_SIM_SIMULATED};
    const struct sim_page *page;

    if (!ret || ret->size < smallest)
        return SIM_INVALID;
    size_t n = ret->size < sizeof info ? ret->size : sizeof info;
    info.size = (uint32_t)n;
    (void)nv_state_dir(info.state_dir, sizeof info.state_dir);
    int r = nv_world(&page);
    if (!r) {
        info.load_id = __atomic_load_n(&page->load_id, __ATOMIC_RELAXED);
        info.world_id = page->world_id;
        (void)snprintf(info.clock, sizeof info.clock, "%llu:%.17g",
                       (unsigned long long)page->t0_ns, page->speed);
    }
    memcpy(ret, &info, n);
    return r;
}
