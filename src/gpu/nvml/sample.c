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

/* Makes one driver call and counts it. */
#define CALL(dev, fn, ...) \
    (dev_count(dev), (dev)->lib->abi.fn((dev)->handle, __VA_ARGS__))

/* One sample under way. */
struct job {
    struct gpu_dev *dev;
    const struct nvml_abi *abi;
    struct gpu_sample s;
    nvml_result bad;  /* the first fatal result, else the first failure */
    const char *call; /* the NVML function that returned it */
};

/* Records the result of a call; returns whether its value is valid. */
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

static double field_number(const struct nvml_field_value *v)
{
    switch (v->type) {
    case NVML_VALUE_DOUBLE:
        return v->value.d;
    case NVML_VALUE_UINT:
        return (double)v->value.u32;
    default:
        return (double)v->value.u64;
    }
}

/* The value as an integer, without the rounding of field_number() above 2^53. */
static uint64_t field_count(const struct nvml_field_value *v)
{
    switch (v->type) {
    case NVML_VALUE_DOUBLE:
        return v->value.d > 0 ? (uint64_t)v->value.d : 0;
    case NVML_VALUE_UINT:
        return v->value.u32;
    default:
        return v->value.u64;
    }
}

static const struct {
    uint32_t has;
    uint32_t field;
} field_of[] = {
    {GPU_HAS_ENERGY, NVML_FI_TOTAL_ENERGY},
    {GPU_HAS_INSTANT, NVML_FI_POWER_INSTANT},
    {GPU_HAS_AVERAGE, NVML_FI_POWER_AVERAGE},
    {GPU_HAS_ENFORCED, NVML_FI_POWER_CURRENT_LIMIT},
    {GPU_HAS_REQUESTED, NVML_FI_POWER_REQUESTED_LIMIT},
};

static void put_field(struct gpu_sample *s, uint32_t has,
                      const struct nvml_field_value *v)
{
    switch (has) {
    case GPU_HAS_ENERGY:
        s->energy_mj = field_count(v);
        break;
    case GPU_HAS_INSTANT:
        s->instant_w = field_number(v) * 1e-3;
        break;
    case GPU_HAS_AVERAGE:
        s->average_w = field_number(v) * 1e-3;
        break;
    case GPU_HAS_ENFORCED:
        s->enforced_mw = (uint32_t)field_count(v);
        break;
    default:
        s->requested_mw = (uint32_t)field_count(v);
        break;
    }
    s->has |= has;
}

nvml_result dev_fields(struct gpu_dev *dev, uint32_t want, struct gpu_sample *ret)
{
    struct nvml_field_value v[n_elements(field_of)];
    uint32_t has[n_elements(field_of)];
    nvml_result fatal = NVML_OK;
    int n = 0;

    for (size_t i = 0; i < n_elements(field_of); i++)
        if (want & field_of[i].has) {
            v[n] = (struct nvml_field_value){.field = field_of[i].field};
            has[n++] = field_of[i].has;
        }
    dev_count(dev);
    nvml_result r = dev->lib->abi.field_values(dev->handle, n, v);
    for (int i = 0; r == NVML_OK && i < n; i++) {
        if (v[i].result == NVML_OK)
            put_field(ret, has[i], &v[i]);
        else if (nvml_is_fatal(v[i].result))
            fatal = v[i].result;
    }
    return r == NVML_OK ? fatal : r;
}

static uint64_t now(const struct job *j)
{
    const struct gpu_clock *clock = &j->dev->lib->clock;

    return clock->now_ns(clock->user);
}

/* The part of want that the board reports as fields, to be read in one call. */
static uint32_t as_fields(const struct job *j, uint32_t want)
{
    const uint32_t can = j->dev->info.abilities;
    uint32_t fields = 0;

    fields |= can & GPU_CAN_INSTANT ? want & GPU_HAS_INSTANT : 0;
    fields |= can & GPU_CAN_AVERAGE ? want & GPU_HAS_AVERAGE : 0;
    if (j->dev->field_limits)
        fields |= want & (GPU_HAS_ENFORCED | GPU_HAS_REQUESTED);
    if (fields && j->dev->field_energy) /* energy alone uses the dedicated call */
        fields |= want & GPU_HAS_ENERGY;
    return fields;
}

static void take_fields(struct job *j, uint32_t fields)
{
    uint64_t began = now(j);

    if (!fields)
        return;
    (void)good(j, dev_fields(j->dev, fields, &j->s), "nvmlDeviceGetFieldValues");
    if (j->s.has & fields & GPU_HAS_ENERGY) {
        j->s.energy_began_ns = began;
        j->s.energy_at_ns = now(j);
    }
}

static void take_energy(struct job *j, uint32_t want)
{
    unsigned long long mj = 0;

    if (!(want & GPU_HAS_ENERGY) || !(j->dev->info.abilities & GPU_CAN_ENERGY))
        return;
    j->s.energy_began_ns = now(j);
    nvml_result r = CALL(j->dev, energy, &mj);
    j->s.energy_at_ns = now(j);
    if (!good(j, r, "nvmlDeviceGetTotalEnergyConsumption"))
        return;
    j->s.energy_mj = mj;
    j->s.has |= GPU_HAS_ENERGY;
}

static void take_power(struct job *j, uint32_t want)
{
    unsigned mw = 0;

    if (want & GPU_HAS_POWER &&
        good(j, CALL(j->dev, power_usage, &mw), "nvmlDeviceGetPowerUsage")) {
        j->s.power_w = mw * 1e-3;
        j->s.has |= GPU_HAS_POWER;
    }
}

static void take_limits(struct job *j, uint32_t want)
{
    unsigned mw = 0;

    if (want & GPU_HAS_ENFORCED && j->abi->enforced_limit &&
        good(j, CALL(j->dev, enforced_limit, &mw), "nvmlDeviceGetEnforcedPowerLimit")) {
        j->s.enforced_mw = mw;
        j->s.has |= GPU_HAS_ENFORCED;
    }
    if (want & GPU_HAS_REQUESTED && j->abi->requested_limit &&
        good(j, CALL(j->dev, requested_limit, &mw),
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
        r = CALL(j->dev, temperature_v, &v);
        if (r == NVML_OK)
            *ret = v.temperature_c;
    }
    if (j->abi->temperature && nvml_is_unable(r)) {
        r = CALL(j->dev, temperature, NVML_TEMPERATURE_GPU, &c);
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
        good(j, CALL(j->dev, utilization, &util), "nvmlDeviceGetUtilizationRates")) {
        j->s.util_gpu = util.gpu;
        j->s.util_mem = util.memory;
        j->s.has |= GPU_HAS_UTIL;
    }
    if (want & GPU_HAS_TEMP && can & GPU_CAN_TEMP &&
        good(j, read_temperature(j, &j->s.temp_c), "nvmlDeviceGetTemperature"))
        j->s.has |= GPU_HAS_TEMP;
    if (want & GPU_HAS_CLOCKS && can & GPU_CAN_CLOCKS &&
        good(j, CALL(j->dev, clock, NVML_CLOCK_SM, &sm), "nvmlDeviceGetClockInfo") &&
        good(j, CALL(j->dev, clock, NVML_CLOCK_MEM, &mem), "nvmlDeviceGetClockInfo")) {
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
    nvml_result r = j->dev->reasons_old ? CALL(j->dev, throttle_reasons, &bits)
                                        : CALL(j->dev, event_reasons, &bits);
    if (!good(j, r, "nvmlDeviceGetCurrentClocksEventReasons"))
        return;
    j->s.reasons = bits;
    j->s.has |= GPU_HAS_REASONS;
}

static void take_limited(struct job *j, uint32_t want)
{
    struct nvml_violation v = {0};

    if (!(want & GPU_HAS_LIMITED) || !(j->dev->info.abilities & GPU_CAN_LIMITED) ||
        !good(j, CALL(j->dev, violation, NVML_PERF_POLICY_POWER, &v),
              "nvmlDeviceGetViolationStatus"))
        return;
    j->s.limited_ns = v.violation_ns;
    j->s.has |= GPU_HAS_LIMITED;
}

/* Reads the energy counter first, as its time stamps matter most. */
int dev_sample(struct gpu_dev *dev, uint32_t want, struct gpu_sample *ret, uw_error *err)
{
    struct job j = {.dev = dev, .abi = &dev->lib->abi};

    int r = dev_usable(dev, err);
    if (r < 0)
        return r;
    lib_enter(dev->lib);
    const uint32_t fields = as_fields(&j, want);
    j.s.began_ns = now(&j);
    take_energy(&j, want & ~fields);
    take_fields(&j, fields);
    if (!nvml_is_fatal(j.bad)) { /* includes values whose field failed */
        take_energy(&j, want & fields & ~j.s.has);
        take_limits(&j, want & ~j.s.has);
        take_power(&j, want);
    }
    take_state(&j, want);
    take_reasons(&j, want);
    take_limited(&j, want);
    j.s.at_ns = now(&j);
    if (nvml_is_fatal(j.bad) || (j.bad != NVML_OK && j.s.has == 0))
        r = nvml_fail(j.abi, j.bad, j.call, err);
    else
        *ret = j.s;
    lib_leave(dev->lib);
    return r;
}
