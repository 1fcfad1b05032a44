/* Clocks, temperature, load, memory. */
#include "sim/nvml/attach.h"

enum {
    CLOCK_ID_CURRENT = 0,
    ENCODER_PERIOD_US = 167000,
    PSTATE_BUSY = 0,
    PSTATE_IDLE = 8,
    REASON_IDLE = 1,
    SAMPLES_POWER = 0,
    SAMPLES_GPU_UTIL = 1,
    SAMPLES_MEM_UTIL = 2,
};

NVML_API int nvmlDeviceGetTemperature(nv_device dev, unsigned sensor, unsigned *ret)
{
    struct sim_readings now;

    if (!ret || sensor != 0)
        return SIM_INVALID;
    int r = nv_readings(dev, &now);
    if (!r)
        *ret = (unsigned)now.temp_c;
    return r;
}

NVML_API int nvmlDeviceGetTemperatureV(nv_device dev, struct nv_temperature *ret)
{
    struct sim_readings now;

    if (!ret)
        return SIM_INVALID;
    if (ret->version != NV_TEMPERATURE_V1)
        return SIM_VERSION_MISMATCH;
    if (ret->sensor != 0)
        return SIM_INVALID;
    int r = nv_readings(dev, &now);
    if (!r)
        ret->temperature_c = (int32_t)now.temp_c;
    return r;
}

NVML_API int nvmlDeviceGetUtilizationRates(nv_device dev, struct nv_utilization *ret)
{
    struct sim_readings now;

    if (!ret)
        return SIM_INVALID;
    int r = nv_readings(dev, &now);
    if (r)
        return r;
    ret->gpu = (uint32_t)now.util_gpu;
    ret->memory = (uint32_t)now.util_mem;
    return SIM_OK;
}

NVML_API int nvmlDeviceGetEncoderUtilization(nv_device dev, unsigned *ret,
                                             unsigned *ret_us)
{
    struct sim_readings now;

    if (!ret || !ret_us)
        return SIM_INVALID;
    int r = nv_readings(dev, &now);
    if (r)
        return r;
    *ret = 0;
    *ret_us = ENCODER_PERIOD_US;
    return SIM_OK;
}

NVML_SAME(nvmlDeviceGetDecoderUtilization, nvmlDeviceGetEncoderUtilization)

NVML_API int nvmlDeviceGetMemoryInfo(nv_device dev, struct nv_memory *ret)
{
    const struct sim_identity *id;
    struct sim_readings now;

    if (!ret)
        return SIM_INVALID;
    int r = nv_readings_of(dev, &now, &id);
    if (r)
        return r;
    ret->total = id->memory_bytes;
    ret->used = now.memory_used_bytes < ret->total ? now.memory_used_bytes : ret->total;
    ret->free = ret->total - ret->used;
    return SIM_OK;
}

NVML_API int nvmlDeviceGetMemoryInfo_v2(nv_device dev, struct nv_memory_v2 *ret)
{
    struct nv_memory m;

    if (!ret)
        return SIM_INVALID;
    if (ret->version != NV_MEMORY_V2)
        return SIM_VERSION_MISMATCH;
    int r = nvmlDeviceGetMemoryInfo(dev, &m);
    if (r)
        return r;
    ret->total = m.total;
    ret->reserved = 0;
    ret->free = m.free;
    ret->used = m.used;
    return SIM_OK;
}

NVML_API int nvmlDeviceGetBAR1MemoryInfo(nv_device dev, struct nv_memory *ret)
{
    struct nv_memory m;

    if (!ret)
        return SIM_INVALID;
    int r = nvmlDeviceGetMemoryInfo(dev, &m);
    if (r)
        return r;
    ret->total = m.total;
    ret->used = 0; /* the order is total, free, used here as well */
    ret->free = m.total;
    return SIM_OK;
}

NVML_API int nvmlDeviceGetFanSpeed(nv_device dev, unsigned *ret)
{
    const struct sim_identity *id;
    struct sim_readings now;

    if (!ret)
        return SIM_INVALID;
    int r = nv_readings_of(dev, &now, &id);
    if (r)
        return r;
    if (!id->fan)
        return SIM_NOT_SUPPORTED;
    *ret = (unsigned)now.fan_percent;
    return SIM_OK;
}

NVML_API int nvmlDeviceGetFanSpeed_v2(nv_device dev, unsigned fan, unsigned *ret)
{
    return fan ? SIM_INVALID : nvmlDeviceGetFanSpeed(dev, ret);
}

NVML_API int nvmlDeviceGetClockInfo(nv_device dev, unsigned type, unsigned *ret)
{
    struct sim_readings now;

    if (!ret || type > NV_CLOCK_VIDEO)
        return SIM_INVALID;
    int r = nv_readings(dev, &now);
    if (!r)
        *ret = (unsigned)(type == NV_CLOCK_MEM ? now.mem_mhz : now.sm_mhz);
    return r;
}

NVML_API int nvmlDeviceGetMaxClockInfo(nv_device dev, unsigned type, unsigned *ret);

NVML_API int nvmlDeviceGetClock(nv_device dev, unsigned type, unsigned id, unsigned *ret)
{
    if (id == CLOCK_ID_CURRENT)
        return nvmlDeviceGetClockInfo(dev, type, ret);
    return nvmlDeviceGetMaxClockInfo(dev, type, ret);
}

NVML_API int nvmlDeviceGetPcieThroughput(nv_device dev, unsigned counter, unsigned *ret)
{
    struct sim_readings now;

    if (!ret || counter > 1)
        return SIM_INVALID;
    int r = nv_readings(dev, &now);
    if (!r)
        *ret = (unsigned)now.util_gpu * (counter ? 9000u : 1500u); /* KB/s, arbitrary */
    return r;
}

NV_READ(nvmlDeviceGetPerformanceState, unsigned,
        now.reasons &REASON_IDLE ? PSTATE_IDLE : PSTATE_BUSY)

NVML_SAME(nvmlDeviceGetPowerState, nvmlDeviceGetPerformanceState)

/* Returns one sample: the current value. */
NVML_API int nvmlDeviceGetSamples(nv_device dev, unsigned type,
                                  unsigned long long since_us, unsigned *ret_type,
                                  unsigned *n, struct nv_sample *ret)
{
    struct sim_readings now;

    if (!ret_type || !n)
        return SIM_INVALID;
    int r = nv_readings(dev, &now);
    if (r)
        return r;
    if (type > SAMPLES_MEM_UTIL)
        return SIM_NOT_SUPPORTED;
    unsigned room = *n;
    *ret_type = NV_VALUE_UINT;
    *n = 1;
    if (!ret)
        return SIM_OK; /* query of the size */
    if (room < 1)
        return SIM_TOO_SMALL;
    uint64_t at_us = (uint64_t)nv_utc_us();
    if (at_us <= since_us)
        return SIM_NOT_FOUND;
    uint64_t value = type == SAMPLES_POWER      ? now.power_mw
                     : type == SAMPLES_GPU_UTIL ? now.util_gpu
                                                : now.util_mem;
    ret->at_us = at_us;
    ret->value.u64 = 0;
    ret->value.u32 = (uint32_t)value;
    return SIM_OK;
}
