/* Constant properties of a board. */
#include <stdio.h>
#include <string.h>

#include "sim/nvml/attach.h"

enum { BRAND_TESLA = 2, BRAND_QUADRO_RTX = 12, MHZ_LIST_MAX = 512 };

#define ZERO(id) ((void)(id), 0u)

#define IDENTITY_TEXT(function, field)                             \
    NVML_API int function(nv_device dev, char *ret, unsigned size) \
    {                                                              \
        const struct sim_identity *id;                             \
        int r = nv_identity(dev, &id);                             \
        return r ? r : nv_text(ret, size, id->field);              \
    }

#define IDENTITY_U32(function, value)                   \
    NVML_API int function(nv_device dev, unsigned *ret) \
    {                                                   \
        const struct sim_identity *id;                  \
        if (!ret)                                       \
            return SIM_INVALID;                         \
        int r = nv_identity(dev, &id);                  \
        if (!r)                                         \
            *ret = (value);                             \
        return r;                                       \
    }

IDENTITY_TEXT(nvmlDeviceGetName, name)
IDENTITY_TEXT(nvmlDeviceGetUUID, uuid)
IDENTITY_TEXT(nvmlDeviceGetSerial, serial)
IDENTITY_U32(nvmlDeviceGetArchitecture, id->arch)
IDENTITY_U32(nvmlDeviceGetNumGpuCores, id->cores)
IDENTITY_U32(nvmlDeviceGetMaxPcieLinkGeneration, id->pcie_gen)
IDENTITY_U32(nvmlDeviceGetGpuMaxPcieLinkGeneration, id->pcie_gen)
IDENTITY_U32(nvmlDeviceGetMaxPcieLinkWidth, id->pcie_width)
IDENTITY_U32(nvmlDeviceGetCurrPcieLinkGeneration, id->pcie_gen)
IDENTITY_U32(nvmlDeviceGetCurrPcieLinkWidth, id->pcie_width)
IDENTITY_U32(nvmlDeviceGetPcieReplayCounter, ZERO(id))
IDENTITY_U32(nvmlDeviceGetMultiGpuBoard, ZERO(id))
IDENTITY_U32(nvmlDeviceGetBoardId, id->pci_bus << 8)
IDENTITY_U32(nvmlDeviceGetMinorNumber, (unsigned)id->minor)
IDENTITY_U32(nvmlDeviceGetBrand, id->fan ? BRAND_QUADRO_RTX : BRAND_TESLA)
IDENTITY_U32(nvmlDeviceGetNumFans, id->fan)
IDENTITY_U32(nvmlDeviceIsMigDeviceHandle, ZERO(id))
IDENTITY_U32(nvmlDeviceGetComputeMode, ZERO(id))
IDENTITY_U32(nvmlDeviceGetDisplayMode, ZERO(id))
IDENTITY_U32(nvmlDeviceGetDisplayActive, ZERO(id))
IDENTITY_U32(nvmlDeviceGetMaxMigDeviceCount, ZERO(id))
IDENTITY_U32(nvmlDeviceGetPowerManagementMode, 1u | ZERO(id))

NVML_API int nvmlDeviceGetBoardPartNumber(nv_device dev, char *ret, unsigned size)
{
    const struct sim_identity *id;

    int r = nv_identity(dev, &id);
    return r ? r : nv_text(ret, size, "simulated");
}

NVML_SAME(nvmlDeviceGetVbiosVersion, nvmlDeviceGetBoardPartNumber)

NVML_API int nvmlDeviceGetIndex(nv_device dev, unsigned *ret)
{
    return ret ? nv_index(dev, ret) : SIM_INVALID;
}

NVML_API int nvmlDeviceGetCudaComputeCapability(nv_device dev, int *ret_major,
                                                int *ret_minor)
{
    const struct sim_identity *id;

    if (!ret_major || !ret_minor)
        return SIM_INVALID;
    int r = nv_identity(dev, &id);
    if (r)
        return r;
    *ret_major = (int)id->cc_major;
    *ret_minor = (int)id->cc_minor;
    return SIM_OK;
}

NVML_API int nvmlDeviceGetPciInfo_v3(nv_device dev, struct nv_pci *ret)
{
    const struct sim_identity *id;

    if (!ret)
        return SIM_INVALID;
    int r = nv_identity(dev, &id);
    if (r)
        return r;
    memset(ret, 0, sizeof *ret);
    ret->bus = id->pci_bus;
    ret->device_id = id->pci_device_id;
    ret->subsystem_id = id->pci_subsystem_id;
    (void)snprintf(ret->bus_id, sizeof ret->bus_id, "%s", id->bus_id);
    /* The old form has a domain of four digits: "0000:3B:00.0". */
    const char *old = strlen(id->bus_id) > 4 ? id->bus_id + 4 : id->bus_id;
    (void)snprintf(ret->bus_id_legacy, sizeof ret->bus_id_legacy, "%.15s", old);
    return SIM_OK;
}

NVML_API int nvmlDeviceGetPciInfo_v2(nv_device dev, struct nv_pci_v2 *ret)
{
    struct nv_pci pci;

    if (!ret)
        return SIM_INVALID;
    int r = nvmlDeviceGetPciInfo_v3(dev, &pci);
    if (r)
        return r;
    memset(ret, 0, sizeof *ret);
    memcpy(ret->bus_id, pci.bus_id_legacy, sizeof ret->bus_id);
    ret->bus = pci.bus;
    ret->device_id = pci.device_id;
    ret->subsystem_id = pci.subsystem_id;
    return SIM_OK;
}

NVML_SAME(nvmlDeviceGetPciInfo, nvmlDeviceGetPciInfo_v2)

NVML_API int nvmlDeviceGetPciInfoExt(nv_device dev, struct nv_pci_ext *ret)
{
    struct nv_pci pci;

    if (!ret)
        return SIM_INVALID;
    int r = nvmlDeviceGetPciInfo_v3(dev, &pci);
    if (r)
        return r;
    *ret = (struct nv_pci_ext){
        .version = ret->version,
        .bus = pci.bus,
        .device_id = pci.device_id,
        .subsystem_id = pci.subsystem_id,
        .base_class = 3,
        .sub_class = 2,
    };
    memcpy(ret->bus_id, pci.bus_id, sizeof ret->bus_id);
    return SIM_OK;
}

NVML_API int nvmlDeviceGetMaxClockInfo(nv_device dev, unsigned type, unsigned *ret)
{
    const struct sim_identity *id;

    if (!ret || type > NV_CLOCK_VIDEO)
        return SIM_INVALID;
    int r = nv_identity(dev, &id);
    if (!r)
        *ret = type == NV_CLOCK_MEM ? id->mem_max_mhz : id->sm_max_mhz;
    return r;
}

NVML_SAME(nvmlDeviceGetMaxCustomerBoostClock, nvmlDeviceGetMaxClockInfo)
NVML_SAME(nvmlDeviceGetDefaultApplicationsClock, nvmlDeviceGetMaxClockInfo)
NVML_SAME(nvmlDeviceGetApplicationsClock, nvmlDeviceGetMaxClockInfo)

NVML_API int nvmlDeviceGetSupportedMemoryClocks(nv_device dev, unsigned *n, unsigned *ret)
{
    const struct sim_identity *id;

    if (!n)
        return SIM_INVALID;
    int r = nv_identity(dev, &id);
    if (r)
        return r;
    unsigned room = *n;
    *n = 1;
    if (room < 1 || !ret)
        return SIM_TOO_SMALL;
    ret[0] = id->mem_max_mhz;
    return SIM_OK;
}

NVML_API int nvmlDeviceGetSupportedGraphicsClocks(nv_device dev, unsigned mem,
                                                  unsigned *n, unsigned *ret)
{
    const struct sim_identity *id;

    if (!n)
        return SIM_INVALID;
    int r = nv_identity(dev, &id);
    if (r)
        return r;
    if (!(id->abilities & SIM_HAS_LOCKED_CLOCKS))
        return SIM_NOT_SUPPORTED;
    if (mem != id->mem_max_mhz)
        return SIM_NOT_FOUND;
    unsigned room = *n;
    unsigned step = id->sm_step_mhz ? id->sm_step_mhz : 15;
    unsigned have = (id->sm_max_mhz - id->sm_min_mhz) / step + 1;
    have = have > MHZ_LIST_MAX ? MHZ_LIST_MAX : have;
    *n = have;
    if (room < have || !ret)
        return SIM_TOO_SMALL;
    for (unsigned i = 0; i < have; i++)
        ret[i] = id->sm_max_mhz - i * step;
    return SIM_OK;
}

NVML_API int nvmlDeviceGetTemperatureThreshold(nv_device dev, unsigned type,
                                               unsigned *ret)
{
    const struct sim_identity *id;

    if (!ret)
        return SIM_INVALID;
    int r = nv_identity(dev, &id);
    if (r)
        return r;
    if (type > 1) /* 0 shutdown, 1 slowdown */
        return SIM_NOT_SUPPORTED;
    *ret = type == 0 ? id->shutdown_c : id->slowdown_c;
    return SIM_OK;
}

/* Simulated boards have no MIG instances. */
NVML_API int nvmlDeviceGetMigMode(nv_device dev, unsigned *ret_now, unsigned *ret_pending)
{
    const struct sim_identity *id;

    if (!ret_now || !ret_pending)
        return SIM_INVALID;
    int r = nv_identity(dev, &id);
    if (r || !id->mig)
        return r ? r : SIM_NOT_SUPPORTED;
    *ret_now = *ret_pending = 1;
    return SIM_OK;
}
