/* Power, energy, limits, and the reasons for the clocks. */
#include "sim/nvml/attach.h"

enum { POLICY_POWER = 0, POLICY_THERMAL = 1, ALL_REASONS = 0x1ff };

NV_READ(nvmlDeviceGetPowerUsage, unsigned, now.power_mw)
NV_READ(nvmlDeviceGetEnforcedPowerLimit, unsigned, now.enforced_mw)
NV_READ(nvmlDeviceGetPowerManagementLimit, unsigned, now.requested_mw)
NV_READ(nvmlDeviceGetPersistenceMode, unsigned, now.persistence)
NV_READ(nvmlDeviceGetPowerSource, unsigned, now.power_mw * 0) /* mains */
NV_READ(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, now.reasons)

NVML_API int nvmlDeviceGetPowerManagementDefaultLimit(nv_device dev, unsigned *ret)
{
    const struct sim_identity *id;
    struct sim_readings now;

    if (!ret)
        return SIM_INVALID;
    int r = nv_readings_of(dev, &now, &id);
    if (!r)
        *ret = id->default_mw;
    return r;
}

NVML_API int nvmlDeviceGetPowerManagementLimitConstraints(nv_device dev,
                                                          unsigned *ret_min,
                                                          unsigned *ret_max)
{
    const struct sim_identity *id;
    struct sim_readings now;

    if (!ret_min || !ret_max)
        return SIM_INVALID;
    int r = nv_readings_of(dev, &now, &id);
    if (r)
        return r;
    *ret_min = id->min_mw;
    *ret_max = id->max_mw;
    return SIM_OK;
}

NVML_API int nvmlDeviceGetTotalEnergyConsumption(nv_device dev, unsigned long long *ret)
{
    const struct sim_identity *id;
    struct sim_readings now;

    if (!ret)
        return SIM_INVALID;
    int r = nv_readings_of(dev, &now, &id);
    if (r)
        return r;
    if (!(id->abilities & SIM_HAS_ENERGY))
        return SIM_NOT_SUPPORTED;
    *ret = now.energy_mj;
    return SIM_OK;
}

static void give(struct nv_field_value *v, bool can, uint64_t value, enum nv_value_type t)
{
    v->result = can ? SIM_OK : SIM_NOT_SUPPORTED;
    v->type = t;
    v->value.u64 = 0;
    if (!can)
        return;
    if (t == NV_VALUE_UINT)
        v->value.u32 = (uint32_t)value;
    else
        v->value.u64 = value;
}

static void field(struct nv_field_value *v, const struct sim_identity *id,
                  const struct sim_readings *now)
{
    bool gpu = v->scope == 0; /* boards have no module or memory scope */

    switch (v->field) {
    case NV_FIELD_TOTAL_ENERGY:
        give(v, gpu && (id->abilities & SIM_HAS_ENERGY), now->energy_mj,
             NV_VALUE_ULONGLONG);
        break;
    case NV_FIELD_NVLINK_COUNT: /* monitors then ask for no counter of a link */
        give(v, true, 0, NV_VALUE_UINT);
        break;
    case NV_FIELD_POWER_AVERAGE:
        give(v, gpu && (id->abilities & SIM_HAS_AVERAGE), now->average_mw, NV_VALUE_UINT);
        break;
    case NV_FIELD_POWER_INSTANT:
        give(v, gpu && (id->abilities & SIM_HAS_INSTANT), now->instant_mw, NV_VALUE_UINT);
        break;
    case NV_FIELD_POWER_MIN_LIMIT:
        give(v, gpu, id->min_mw, NV_VALUE_UINT);
        break;
    case NV_FIELD_POWER_MAX_LIMIT:
        give(v, gpu, id->max_mw, NV_VALUE_UINT);
        break;
    case NV_FIELD_POWER_DEFAULT_LIMIT:
        give(v, gpu, id->default_mw, NV_VALUE_UINT);
        break;
    case NV_FIELD_POWER_CURRENT_LIMIT:
        give(v, gpu, now->enforced_mw, NV_VALUE_UINT);
        break;
    case NV_FIELD_POWER_REQUESTED_LIMIT:
        give(v, gpu, now->requested_mw, NV_VALUE_UINT);
        break;
    default:
        give(v, false, 0, NV_VALUE_UINT);
        break;
    }
}

NVML_API int nvmlDeviceGetFieldValues(nv_device dev, int n, struct nv_field_value *values)
{
    const struct sim_identity *id;
    struct sim_readings now;

    if (!values || n < 0)
        return SIM_INVALID;
    int r = nv_readings_of(dev, &now, &id);
    if (r)
        return r;
    int64_t at_us = nv_utc_us();
    for (int i = 0; i < n; i++) {
        field(&values[i], id, &now);
        values[i].timestamp_us = at_us;
        values[i].latency_us = 0;
    }
    return SIM_OK;
}

NVML_API int nvmlDeviceClearFieldValues(nv_device dev, int n,
                                        struct nv_field_value *values)
{
    (void)dev;
    (void)n;
    (void)values;
    return SIM_NOT_SUPPORTED;
}

NVML_API int nvmlDeviceGetViolationStatus(nv_device dev, unsigned policy,
                                          struct nv_violation *ret)
{
    struct sim_readings now;

    if (!ret)
        return SIM_INVALID;
    int r = nv_readings(dev, &now);
    if (r)
        return r;
    if (policy > POLICY_THERMAL)
        return SIM_NOT_SUPPORTED;
    ret->reference_us = (uint64_t)nv_utc_us();
    ret->violation_ns =
        policy == POLICY_POWER ? now.power_violation_ns : now.thermal_violation_ns;
    return SIM_OK;
}

NVML_SAME(nvmlDeviceGetCurrentClocksThrottleReasons,
          nvmlDeviceGetCurrentClocksEventReasons)

NVML_API int nvmlDeviceGetSupportedClocksEventReasons(nv_device dev,
                                                      unsigned long long *ret)
{
    int r = nvmlDeviceGetCurrentClocksEventReasons(dev, ret);

    if (!r)
        *ret = ALL_REASONS;
    return r;
}

NVML_SAME(nvmlDeviceGetSupportedClocksThrottleReasons,
          nvmlDeviceGetSupportedClocksEventReasons)

/* ---- requests to the writer ---- */

NVML_API int nvmlDeviceSetPowerManagementLimit(nv_device dev, unsigned mw)
{
    return nv_request(dev, SIM_OP_SET_LIMIT, mw, 0);
}

NVML_API int nvmlDeviceSetPowerManagementLimit_v2(nv_device dev,
                                                  const struct nv_power_value *v)
{
    if (!v)
        return SIM_INVALID;
    if (v->version != NV_POWER_VALUE_V2)
        return SIM_VERSION_MISMATCH;
    if (v->scope != 0)
        return SIM_NOT_SUPPORTED;
    return nv_request(dev, SIM_OP_SET_LIMIT, v->mw, 0);
}

NVML_API int nvmlDeviceSetPersistenceMode(nv_device dev, unsigned mode)
{
    if (mode > 1)
        return SIM_INVALID;
    return nv_request(dev, SIM_OP_PERSISTENCE, mode, 0);
}

NVML_API int nvmlDeviceSetGpuLockedClocks(nv_device dev, unsigned min_mhz,
                                          unsigned max_mhz)
{
    return nv_request(dev, SIM_OP_LOCK_CLOCKS, min_mhz, max_mhz);
}

NVML_API int nvmlDeviceResetGpuLockedClocks(nv_device dev)
{
    return nv_request(dev, SIM_OP_RESET_CLOCKS, 0, 0);
}
