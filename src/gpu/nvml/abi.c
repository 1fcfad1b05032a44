#include "gpu/nvml/abi.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"

#define NVML_LIBRARY "libnvidia-ml.so.1"

/* names: the newest version, then older names with the same binary interface. */
struct symbol {
    size_t offset;
    const char *names[3];
    bool must;
};

/* clang-format off */
#define AT(member) offsetof(struct nvml_abi, member)
static const struct symbol symbols[] = {
    {AT(init), {"nvmlInit_v2", "nvmlInit"}, true},
    {AT(shutdown), {"nvmlShutdown"}, true},
    {AT(count), {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}, true},
    {AT(by_index), {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}, true},
    {AT(uuid), {"nvmlDeviceGetUUID"}, true},
    {AT(name), {"nvmlDeviceGetName"}, true},
    {AT(power_usage), {"nvmlDeviceGetPowerUsage"}, true},

    {AT(init_flags), {"nvmlInitWithFlags"}, false},
    {AT(by_bus), {"nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId"}, false},
    {AT(error_string), {"nvmlErrorString"}, false},
    {AT(driver_version), {"nvmlSystemGetDriverVersion"}, false},
    {AT(nvml_version), {"nvmlSystemGetNVMLVersion"}, false},
    {AT(architecture), {"nvmlDeviceGetArchitecture"}, false},
    {AT(compute_capability), {"nvmlDeviceGetCudaComputeCapability"}, false},
    {AT(minor), {"nvmlDeviceGetMinorNumber"}, false},
    {AT(pci_v3), {"nvmlDeviceGetPciInfo_v3"}, false},
    {AT(pci_v2), {"nvmlDeviceGetPciInfo_v2"}, false},
    {AT(energy), {"nvmlDeviceGetTotalEnergyConsumption"}, false},
    {AT(field_values), {"nvmlDeviceGetFieldValues"}, false},
    {AT(constraints), {"nvmlDeviceGetPowerManagementLimitConstraints"}, false},
    {AT(default_limit), {"nvmlDeviceGetPowerManagementDefaultLimit"}, false},
    {AT(requested_limit), {"nvmlDeviceGetPowerManagementLimit"}, false},
    {AT(enforced_limit), {"nvmlDeviceGetEnforcedPowerLimit"}, false},
    {AT(set_limit), {"nvmlDeviceSetPowerManagementLimit"}, false},
    {AT(set_limit_v2), {"nvmlDeviceSetPowerManagementLimit_v2"}, false},
    {AT(lock_clocks), {"nvmlDeviceSetGpuLockedClocks"}, false},
    {AT(reset_clocks), {"nvmlDeviceResetGpuLockedClocks"}, false},
    {AT(clock), {"nvmlDeviceGetClockInfo"}, false},
    {AT(max_clock), {"nvmlDeviceGetMaxClockInfo"}, false},
    {AT(memory_clocks), {"nvmlDeviceGetSupportedMemoryClocks"}, false},
    {AT(sm_clocks), {"nvmlDeviceGetSupportedGraphicsClocks"}, false},
    {AT(event_reasons), {"nvmlDeviceGetCurrentClocksEventReasons"}, false},
    {AT(throttle_reasons), {"nvmlDeviceGetCurrentClocksThrottleReasons"}, false},
    {AT(violation), {"nvmlDeviceGetViolationStatus"}, false},
    {AT(utilization), {"nvmlDeviceGetUtilizationRates"}, false},
    {AT(temperature_v), {"nvmlDeviceGetTemperatureV"}, false},
    {AT(temperature), {"nvmlDeviceGetTemperature"}, false},
    {AT(persistence), {"nvmlDeviceGetPersistenceMode"}, false},
    {AT(mig_mode), {"nvmlDeviceGetMigMode"}, false},
    {AT(max_migs), {"nvmlDeviceGetMaxMigDeviceCount"}, false},
    {AT(mig), {"nvmlDeviceGetMigDeviceHandleByIndex"}, false},
    {AT(gpu_instance), {"nvmlDeviceGetGpuInstanceId"}, false},
    {AT(compute_instance), {"nvmlDeviceGetComputeInstanceId"}, false},
    {AT(compute.v3), {"nvmlDeviceGetComputeRunningProcesses_v3"}, false},
    {AT(compute.v2), {"nvmlDeviceGetComputeRunningProcesses_v2"}, false},
    {AT(compute.v1), {"nvmlDeviceGetComputeRunningProcesses"}, false},
    {AT(graphics.v3), {"nvmlDeviceGetGraphicsRunningProcesses_v3"}, false},
    {AT(graphics.v2), {"nvmlDeviceGetGraphicsRunningProcesses_v2"}, false},
    {AT(graphics.v1), {"nvmlDeviceGetGraphicsRunningProcesses"}, false},
    {AT(mps.v3), {"nvmlDeviceGetMPSComputeRunningProcesses_v3"}, false},
    {AT(mps.v2), {"nvmlDeviceGetMPSComputeRunningProcesses_v2"}, false},
    {AT(mps.v1), {"nvmlDeviceGetMPSComputeRunningProcesses"}, false},
    {AT(proc_use), {"nvmlDeviceGetProcessUtilization"}, false},
};

/* Functions that doctor reports as missing, each with all its versions. */
static const struct {
    const char *name;
    size_t ways[3]; /* offsets, terminated by 0, the offset of handle */
} abilities[] = {
    {"nvmlDeviceGetTotalEnergyConsumption", {AT(energy)}},
    {"nvmlDeviceGetFieldValues", {AT(field_values)}},
    {"nvmlDeviceGetPowerManagementLimitConstraints", {AT(constraints)}},
    {"nvmlDeviceGetPowerManagementDefaultLimit", {AT(default_limit)}},
    {"nvmlDeviceGetPowerManagementLimit", {AT(requested_limit)}},
    {"nvmlDeviceGetEnforcedPowerLimit", {AT(enforced_limit)}},
    {"nvmlDeviceSetPowerManagementLimit", {AT(set_limit), AT(set_limit_v2)}},
    {"nvmlDeviceSetGpuLockedClocks", {AT(lock_clocks)}},
    {"nvmlDeviceResetGpuLockedClocks", {AT(reset_clocks)}},
    {"nvmlDeviceGetClockInfo", {AT(clock)}},
    {"nvmlDeviceGetCurrentClocksEventReasons", {AT(event_reasons), AT(throttle_reasons)}},
    {"nvmlDeviceGetUtilizationRates", {AT(utilization)}},
    {"nvmlDeviceGetTemperature", {AT(temperature), AT(temperature_v)}},
    {"nvmlDeviceGetPersistenceMode", {AT(persistence)}},
    {"nvmlDeviceGetComputeRunningProcesses",
     {AT(compute.v1), AT(compute.v2), AT(compute.v3)}},
};

/* NVML's results and the errors of gpu.h. */
static const struct {
    nvml_result result;
    int errno_;
    const char *text; /* for a library without nvmlErrorString */
} results[] = {
    {1, -ENODEV, "Uninitialized"},
    {2, -ERANGE, "Invalid Argument"},
    {3, -ENOTSUP, "Not Supported"},
    {4, -EPERM, "Insufficient Permissions"},
    {5, -EIO, "Already Initialized"},
    {6, -ENODEV, "Not Found"},
    {7, -EIO, "Insufficient Size"},
    {8, -EIO, "Insufficient External Power"},
    {9, -ENODEV, "Driver Not Loaded"},
    {10, -EIO, "Timeout"},
    {11, -EIO, "Interrupt Request Issue"},
    {12, -ENODEV, "NVML Shared Library Not Found"},
    {13, -ENOTSUP, "Function Not Found"},
    {14, -EIO, "Corrupted infoROM"},
    {15, -ENODEV, "GPU is lost"},
    {16, -ENODEV, "GPU requires reset"},
    {17, -EPERM, "The operating system has blocked the request"},
    {18, -ENODEV, "Driver/library version mismatch"},
    {19, -EIO, "In use by another client"},
    {20, -EIO, "Insufficient Memory"},
    {21, -EIO, "No data"},
    {22, -ENOTSUP, "The requested vgpu operation is not available"},
    {23, -EIO, "Insufficient Resources"},
    {24, -ERANGE, "Frequency Not Supported"},
    {25, -ENOTSUP, "Argument version mismatch"},
    {26, -ENOTSUP, "Deprecated"},
    {27, -EIO, "System is not ready"},
    {28, -ENODEV, "No GPUs were found"},
    {29, -EIO, "Invalid state"},
    {30, -ENOTSUP, "Reset type not supported"},
    {999, -EIO, "Unknown Error"},
};
/* clang-format on */

static void put(struct nvml_abi *abi, size_t offset, void *symbol)
{
    memcpy((char *)abi + offset, &symbol, sizeof symbol);
}

static bool has(const struct nvml_abi *abi, size_t offset)
{
    void *symbol;

    memcpy(&symbol, (const char *)abi + offset, sizeof symbol);
    return symbol != NULL;
}

static int look_up(struct nvml_abi *abi, uw_error *err)
{
    for (size_t i = 0; i < n_elements(symbols); i++) {
        const struct symbol *s = &symbols[i];
        void *found = NULL;
        for (size_t k = 0; k < n_elements(s->names) && s->names[k] && !found; k++)
            found = dlsym(abi->handle, s->names[k]);
        if (!found && s->must)
            return fail(err, -ENOTSUP,
                        "%s is missing: no NVML, or one of a driver that is too old",
                        s->names[0]);
        put(abi, s->offset, found);
    }
    put(abi, AT(sim_info), dlsym(abi->handle, "uw_sim_info"));
    return 0;
}

int nvml_abi_load(const char *path, struct nvml_abi *ret, uw_error *err)
{
    struct nvml_abi abi = {0};

    abi.handle = dlopen(path ? path : NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!abi.handle) {
        const char *why = dlerror();
        return fail(err, path ? -ENOENT : NVML_ABI_NO_LIBRARY, "cannot load %s",
                    why ? why : (path ? path : NVML_LIBRARY));
    }
    int r = look_up(&abi, err);
    if (r < 0) {
        (void)dlclose(abi.handle);
        return fail_in(err, r, "%s", path ? path : NVML_LIBRARY);
    }
    *ret = abi;
    return 0;
}

void nvml_abi_unload(struct nvml_abi *abi)
{
    if (abi->handle)
        (void)dlclose(abi->handle);
    *abi = (struct nvml_abi){0};
}

const char *nvml_abi_missing(const struct nvml_abi *abi, size_t i)
{
    for (size_t k = 0; k < n_elements(abilities); k++) {
        bool found = false;
        for (size_t w = 0; w < n_elements(abilities[k].ways); w++)
            found = found || (abilities[k].ways[w] && has(abi, abilities[k].ways[w]));
        if (!found && i-- == 0)
            return abilities[k].name;
    }
    return NULL;
}

int nvml_fail(const struct nvml_abi *abi, nvml_result result, const char *call,
              uw_error *err)
{
    const char *text = NULL;
    int r = -EIO;

    if (result == NVML_OK)
        return 0;
    if (abi->error_string)
        text = abi->error_string(result);
    for (size_t i = 0; i < n_elements(results); i++) {
        if (results[i].result != result)
            continue;
        r = results[i].errno_;
        if (!text || !*text)
            text = results[i].text;
    }
    return fail(err, r, "%s: %s (NVML %u)", call, text && *text ? text : "no text",
                result);
}

bool nvml_is_unable(nvml_result result)
{
    return result == NVML_NOT_SUPPORTED || result == NVML_FUNCTION_NOT_FOUND ||
           result == NVML_INVALID_ARGUMENT || result == NVML_ARGUMENT_VERSION_MISMATCH ||
           result == NVML_DEPRECATED;
}

bool nvml_is_fatal(nvml_result result)
{
    return result == NVML_UNINITIALIZED || result == NVML_DRIVER_NOT_LOADED ||
           result == NVML_GPU_IS_LOST || result == NVML_RESET_REQUIRED;
}
