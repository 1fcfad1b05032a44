#include <errno.h>

#include "base/error.h"
#include "gpu/nvml/dev.h"

int dev_usable(const struct gpu_dev *dev, uw_error *err)
{
    if (dev->handle)
        return 0;
    return fail(err, -ENODEV, "%s",
                dev->error.text[0] ? dev->error.text : "no answer from the driver");
}

/* One sample under way. */
struct job {
    struct gpu_dev *dev;
    const struct nvml_abi *abi;
    struct gpu_sample s;
    nvml_result bad;  /* the worst that a call said */
    const char *call; /* … and which */
};

/* Notes what a call said; true where its value may be used. */
static bool good(struct job *j, nvml_result r, const char *call)
{
    if (r == NVML_OK)
        return true;
    if (j->bad == NVML_OK || (nvml_is_fatal(r) && !nvml_is_fatal(j->bad))) {
        j->bad = r;
        j->call = call;
    }
    return false;
}

static double field_w(const struct nvml_field_value *v)
{
    double mw = 0;

    switch (v->type) {
    case NVML_VALUE_DOUBLE:
        mw = v->value.d;
        break;
    case NVML_VALUE_UINT:
        mw = (double)v->value.u32;
        break;
    default:
        mw = (double)v->value.u64;
        break;
    }
    return mw * 1e-3;
}

nvml_result dev_power_fields(const struct gpu_dev *dev, uint32_t *ret_has,
                             double *ret_average_w, double *ret_instant_w)
{
    struct nvml_field_value v[2] = {{.field = NVML_FI_POWER_AVERAGE},
                                    {.field = NVML_FI_POWER_INSTANT}};

    nvml_result r = dev->lib->abi.field_values(dev->handle, 2, v);
    if (r != NVML_OK)
        return r;
    if (v[0].result == NVML_OK) {
        *ret_average_w = field_w(&v[0]);
        *ret_has |= GPU_HAS_AVERAGE;
    }
    if (v[1].result == NVML_OK) {
        *ret_instant_w = field_w(&v[1]);
        *ret_has |= GPU_HAS_INSTANT;
    }
    if (nvml_is_fatal(v[0].result))
        return v[0].result;
    return nvml_is_fatal(v[1].result) ? v[1].result : NVML_OK;
}

static uint64_t now(const struct job *j)
{
    const struct gpu_clock *clock = &j->dev->lib->clock;

    return clock->now_ns(clock->user);
}

static void take_energy(struct job *j, uint32_t want)
{
    unsigned long long mj = 0;

    if (!(want & GPU_HAS_ENERGY) || !(j->dev->info.abilities & GPU_CAN_ENERGY))
        return;
    j->s.energy_began_ns = now(j);
    nvml_result r = j->abi->energy(j->dev->handle, &mj);
    j->s.energy_at_ns = now(j);
    if (!good(j, r, "nvmlDeviceGetTotalEnergyConsumption"))
        return;
    j->s.energy_mj = mj;
    j->s.has |= GPU_HAS_ENERGY;
}

static void take_power(struct job *j, uint32_t want)
{
    const uint32_t fields = want & (GPU_HAS_INSTANT | GPU_HAS_AVERAGE);
    const bool can = j->dev->info.abilities & (GPU_CAN_INSTANT | GPU_CAN_AVERAGE);
    unsigned mw = 0;

    if (want & GPU_HAS_POWER &&
        good(j, j->abi->power_usage(j->dev->handle, &mw), "nvmlDeviceGetPowerUsage")) {
        j->s.power_w = mw * 1e-3;
        j->s.has |= GPU_HAS_POWER;
    }
    if (fields && can) {
        uint32_t has = 0;
        nvml_result r = dev_power_fields(j->dev, &has, &j->s.average_w, &j->s.instant_w);
        (void)good(j, r, "nvmlDeviceGetFieldValues");
        j->s.has |= has & fields;
    }
}

static void take_limits(struct job *j, uint32_t want)
{
    unsigned mw = 0;

    if (want & GPU_HAS_ENFORCED && j->abi->enforced_limit &&
        good(j, j->abi->enforced_limit(j->dev->handle, &mw),
             "nvmlDeviceGetEnforcedPowerLimit")) {
        j->s.enforced_mw = mw;
        j->s.has |= GPU_HAS_ENFORCED;
    }
    if (want & GPU_HAS_REQUESTED && j->abi->requested_limit &&
        good(j, j->abi->requested_limit(j->dev->handle, &mw),
             "nvmlDeviceGetPowerManagementLimit")) {
        j->s.requested_mw = mw;
        j->s.has |= GPU_HAS_REQUESTED;
    }
}

static nvml_result read_temperature(const struct job *j, int32_t *ret)
{
    struct nvml_temperature v = {.version = NVML_TEMPERATURE_V1,
                                 .sensor = NVML_TEMPERATURE_GPU};
    unsigned c = 0;
    nvml_result r = NVML_FUNCTION_NOT_FOUND;

    if (j->abi->temperature_v) {
        r = j->abi->temperature_v(j->dev->handle, &v);
        if (r == NVML_OK)
            *ret = v.temperature_c;
    }
    if (j->abi->temperature && nvml_is_unable(r)) {
        r = j->abi->temperature(j->dev->handle, NVML_TEMPERATURE_GPU, &c);
        if (r == NVML_OK)
            *ret = (int32_t)c;
    }
    return r;
}

static void take_state(struct job *j, uint32_t want)
{
    const uint32_t can = j->dev->info.abilities;
    struct nvml_utilization util = {0};
    unsigned sm = 0, mem = 0;

    if (want & GPU_HAS_UTIL && can & GPU_CAN_UTIL &&
        good(j, j->abi->utilization(j->dev->handle, &util),
             "nvmlDeviceGetUtilizationRates")) {
        j->s.util_gpu = util.gpu;
        j->s.util_mem = util.memory;
        j->s.has |= GPU_HAS_UTIL;
    }
    if (want & GPU_HAS_TEMP && can & GPU_CAN_TEMP &&
        good(j, read_temperature(j, &j->s.temp_c), "nvmlDeviceGetTemperature"))
        j->s.has |= GPU_HAS_TEMP;
    if (want & GPU_HAS_CLOCKS && can & GPU_CAN_CLOCKS &&
        good(j, j->abi->clock(j->dev->handle, NVML_CLOCK_SM, &sm),
             "nvmlDeviceGetClockInfo") &&
        good(j, j->abi->clock(j->dev->handle, NVML_CLOCK_MEM, &mem),
             "nvmlDeviceGetClockInfo")) {
        j->s.sm_mhz = sm;
        j->s.mem_mhz = mem;
        j->s.has |= GPU_HAS_CLOCKS;
    }
}

static void take_reasons(struct job *j, uint32_t want)
{
    unsigned long long bits = 0;

    if (!(want & GPU_HAS_REASONS) || !(j->dev->info.abilities & GPU_CAN_REASONS))
        return;
    nvml_result r = j->dev->reasons_old ? j->abi->throttle_reasons(j->dev->handle, &bits)
                                        : j->abi->event_reasons(j->dev->handle, &bits);
    if (!good(j, r, "nvmlDeviceGetCurrentClocksEventReasons"))
        return;
    j->s.reasons = bits;
    j->s.has |= GPU_HAS_REASONS;
}

/* The counter first: its time stamps matter most. */
int dev_sample(struct gpu_dev *dev, uint32_t want, struct gpu_sample *ret, uw_error *err)
{
    struct job j = {.dev = dev, .abi = &dev->lib->abi};

    int r = dev_usable(dev, err);
    if (r < 0)
        return r;
    lib_enter(dev->lib);
    j.s.began_ns = now(&j);
    take_energy(&j, want);
    take_power(&j, want);
    take_limits(&j, want);
    take_state(&j, want);
    take_reasons(&j, want);
    j.s.at_ns = now(&j);
    if (nvml_is_fatal(j.bad) || (j.bad != NVML_OK && j.s.has == 0))
        r = nvml_fail(j.abi, j.bad, j.call, err);
    else
        *ret = j.s;
    lib_leave(dev->lib);
    return r;
}
