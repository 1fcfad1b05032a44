#include <errno.h>

#include "base/error.h"
#include "gpu/nvml/dev.h"

static int missing(const char *call, uw_error *err)
{
    return fail(err, -ENOTSUP, "this driver's NVML has no %s", call);
}

static int read_limits(struct gpu_dev *dev, struct gpu_limits *ret, uw_error *err)
{
    const struct nvml_abi *abi = &dev->lib->abi;
    unsigned min = 0, max = 0, def = 0;

    if (!abi->constraints)
        return missing("nvmlDeviceGetPowerManagementLimitConstraints", err);
    nvml_result r = abi->constraints(dev->handle, &min, &max);
    if (r != NVML_OK)
        return nvml_fail(abi, r, "nvmlDeviceGetPowerManagementLimitConstraints", err);
    if (!abi->default_limit)
        return missing("nvmlDeviceGetPowerManagementDefaultLimit", err);
    r = abi->default_limit(dev->handle, &def);
    if (r != NVML_OK)
        return nvml_fail(abi, r, "nvmlDeviceGetPowerManagementDefaultLimit", err);
    *ret = (struct gpu_limits){.min_mw = min, .max_mw = max, .default_mw = def};
    return 0;
}

int dev_limits(struct gpu_dev *dev, struct gpu_limits *ret, uw_error *err)
{
    int r = dev_usable(dev, err);
    if (r < 0)
        return r;
    lib_enter(dev->lib);
    r = read_limits(dev, ret, err);
    lib_leave(dev->lib);
    return r;
}

/* Uses the _v2 call if the older one is missing or not supported any more. */
static int write_limit(struct gpu_dev *dev, uint32_t mw, uw_error *err)
{
    const struct nvml_abi *abi = &dev->lib->abi;
    struct nvml_power_value v = {.version = NVML_POWER_VALUE_V2, .mw = mw};
    nvml_result r = NVML_FUNCTION_NOT_FOUND;

    if (abi->set_limit) {
        r = abi->set_limit(dev->handle, mw);
        if (r != NVML_NOT_SUPPORTED && r != NVML_DEPRECATED)
            return nvml_fail(abi, r, "nvmlDeviceSetPowerManagementLimit", err);
    }
    if (abi->set_limit_v2) {
        r = abi->set_limit_v2(dev->handle, &v);
        return nvml_fail(abi, r, "nvmlDeviceSetPowerManagementLimit_v2", err);
    }
    if (!abi->set_limit)
        return missing("nvmlDeviceSetPowerManagementLimit", err);
    return nvml_fail(abi, r, "nvmlDeviceSetPowerManagementLimit", err);
}

int dev_set_limit(struct gpu_dev *dev, uint32_t mw, uw_error *err)
{
    int r = dev_usable(dev, err);
    if (r < 0)
        return r;
    lib_enter(dev->lib);
    r = write_limit(dev, mw, err);
    lib_leave(dev->lib);
    return r < 0 ? fail_in(err, r, "limit %u mW", (unsigned)mw) : 0;
}

int dev_lock_clocks(struct gpu_dev *dev, uint32_t min_mhz, uint32_t max_mhz,
                    uw_error *err)
{
    const struct nvml_abi *abi = &dev->lib->abi;

    int r = dev_usable(dev, err);
    if (r < 0)
        return r;
    if (!abi->lock_clocks || !abi->reset_clocks)
        return missing("nvmlDeviceSetGpuLockedClocks", err);
    if (min_mhz > max_mhz)
        return fail(err, -ERANGE, "clocks %u..%u MHz: the first is above the second",
                    (unsigned)min_mhz, (unsigned)max_mhz);
    lib_enter(dev->lib);
    nvml_result res = abi->lock_clocks(dev->handle, min_mhz, max_mhz);
    r = nvml_fail(abi, res, "nvmlDeviceSetGpuLockedClocks", err);
    lib_leave(dev->lib);
    return r < 0 ? fail_in(err, r, "clocks %u..%u MHz", (unsigned)min_mhz,
                           (unsigned)max_mhz)
                 : 0;
}

int dev_reset_clocks(struct gpu_dev *dev, uw_error *err)
{
    const struct nvml_abi *abi = &dev->lib->abi;

    int r = dev_usable(dev, err);
    if (r < 0)
        return r;
    if (!abi->reset_clocks)
        return missing("nvmlDeviceResetGpuLockedClocks", err);
    lib_enter(dev->lib);
    r = nvml_fail(abi, abi->reset_clocks(dev->handle), "nvmlDeviceResetGpuLockedClocks",
                  err);
    lib_leave(dev->lib);
    return r;
}
