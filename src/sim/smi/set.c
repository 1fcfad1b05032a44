#include "sim/smi/set.h"

#include <string.h>

#include "base/units.h"
#include "sim/smi/fields.h"

static const char *bus_of(const struct smi *smi, nv_device dev, char ret[SMI_TEXT])
{
    if (smi_field_get(smi_field("pci.bus_id"), smi, dev, ret))
        (void)snprintf(ret, SMI_TEXT, "?");
    return ret;
}

static int early(int r)
{
    (void)printf("Terminating early due to previous errors.\n");
    return smi_exit_of(r);
}

static int done(void)
{
    (void)printf("All done.\n");
    return SMI_OK;
}

static int bad(const char *option, const char *text, const char *want)
{
    (void)printf("Invalid value \"%s\" for %s: %s\n", text, option, want);
    return SMI_BAD_ARGUMENT;
}

/* ---- -pl ---- */

static int limit_one(const struct smi *smi, nv_device dev, unsigned mw)
{
    typedef int (*set_fn)(nv_device, unsigned);
    set_fn set = (set_fn)smi_find(smi, "nvmlDeviceSetPowerManagementLimit");
    unsigned low = 0, high = 0, before = 0;
    char bus[SMI_TEXT];

    (void)bus_of(smi, dev, bus);
    int r =
        smi_pair(smi, dev, "nvmlDeviceGetPowerManagementLimitConstraints", &low, &high);
    if (!r && (mw < low || mw > high)) {
        (void)printf(
            "Provided power limit %.2f W is not a valid power limit which should "
            "be between %.2f W and %.2f W for GPU %s\n",
            w_of_mw(mw), w_of_mw(low), w_of_mw(high), bus);
        return SIM_INVALID;
    }
    (void)smi_u32(smi, dev, "nvmlDeviceGetPowerManagementLimit", &before);
    if (!r)
        r = set ? set(dev, mw) : SMI_NO_FUNCTION;
    if (r == SIM_NOT_SUPPORTED) {
        (void)printf("Changing power management limit is not supported for GPU: %s.\n"
                     "Treating as warning and moving on.\n",
                     bus);
        return SIM_OK;
    }
    if (r)
        (void)printf("Failed to set power management limit for GPU %s: %s\n", bus,
                     smi_error(smi, r));
    else
        (void)printf("Power limit for GPU %s was set to %.2f W from %.2f W.\n", bus,
                     w_of_mw(mw), w_of_mw(before));
    return r;
}

int smi_set_limit(const struct smi *smi, const char *text)
{
    uw_error err = {""};
    double w;

    if (parse_double(text, &w, &err) || !(w > 0) || w > 1e5)
        return bad("--power-limit", text, "a number of watts is wanted");
    for (unsigned i = 0; i < smi->n_chosen; i++) {
        nv_device dev;
        int r = smi_handle(smi, smi->chosen[i], &dev);
        if (!r)
            r = limit_one(smi, dev, mw_of_w(w));
        if (r)
            return early(r);
    }
    return done();
}

/* ---- -lgc, -rgc ---- */

/* SIM_OK also if the board has no clock locks, because the real program continues. */
static int clocks_result(const struct smi *smi, nv_device dev, int r)
{
    char bus[SMI_TEXT];

    if (!r)
        return r;
    (void)bus_of(smi, dev, bus);
    if (r == SIM_NOT_SUPPORTED) {
        (void)printf("Setting locked GPU clocks is not supported for GPU %s.\n"
                     "Treating as warning and moving on.\n",
                     bus);
        return SIM_OK;
    }
    if (r == SIM_NO_PERMISSION)
        (void)printf(
            "The current user does not have permission to change clocks for GPU %s.\n",
            bus);
    else
        (void)printf("Failed to change clocks for GPU %s: %s\n", bus, smi_error(smi, r));
    return r;
}

static int lock_one(const struct smi *smi, nv_device dev, unsigned low, unsigned high)
{
    typedef int (*lock_fn)(nv_device, unsigned, unsigned);
    lock_fn lock = (lock_fn)smi_find(smi, "nvmlDeviceSetGpuLockedClocks");
    char bus[SMI_TEXT];

    int r = lock ? lock(dev, low, high) : SMI_NO_FUNCTION;
    if (r)
        return clocks_result(smi, dev, r);
    (void)printf("GPU clocks set to \"(gpuClkMin %u, gpuClkMax %u)\" for GPU %s\n", low,
                 high, bus_of(smi, dev, bus));
    return SIM_OK;
}

int smi_set_clocks(const struct smi *smi, const char *text)
{
    char low[SMI_TEXT];
    uint64_t mhz[2];
    uw_error err = {""};
    const char *comma = strchr(text, ',');

    (void)snprintf(low, sizeof low, "%.*s",
                   comma ? (int)(comma - text) : (int)strlen(text), text);
    if (parse_u64(low, &mhz[0], &err) ||
        parse_u64(comma ? comma + 1 : low, &mhz[1], &err) || mhz[0] > mhz[1] ||
        mhz[1] > UINT32_MAX)
        return bad("--lock-gpu-clocks", text, "MIN,MAX or one clock in MHz is wanted");
    for (unsigned i = 0; i < smi->n_chosen; i++) {
        nv_device dev;
        int r = smi_handle(smi, smi->chosen[i], &dev);
        if (!r)
            r = lock_one(smi, dev, (unsigned)mhz[0], (unsigned)mhz[1]);
        if (r)
            return early(r);
    }
    return done();
}

int smi_reset_clocks(const struct smi *smi, const char *text)
{
    typedef int (*reset_fn)(nv_device);
    reset_fn reset = (reset_fn)smi_find(smi, "nvmlDeviceResetGpuLockedClocks");

    (void)text;
    for (unsigned i = 0; i < smi->n_chosen; i++) {
        nv_device dev;
        int r = smi_handle(smi, smi->chosen[i], &dev);
        if (!r)
            r = clocks_result(smi, dev, reset ? reset(dev) : SMI_NO_FUNCTION);
        if (r)
            return early(r);
    }
    return done();
}

/* ---- -pm ---- */

static int persist_one(const struct smi *smi, nv_device dev, unsigned on)
{
    typedef int (*set_fn)(nv_device, unsigned);
    set_fn set = (set_fn)smi_find(smi, "nvmlDeviceSetPersistenceMode");
    unsigned before = 0;
    char bus[SMI_TEXT];

    (void)bus_of(smi, dev, bus);
    (void)smi_u32(smi, dev, "nvmlDeviceGetPersistenceMode", &before);
    int r = set ? set(dev, on) : SMI_NO_FUNCTION;
    if (r)
        (void)printf("Unable to set persistence mode for GPU %s: %s\n", bus,
                     smi_error(smi, r));
    else if (before == on)
        (void)printf("Persistence mode is already %s for GPU %s.\n",
                     on ? "Enabled" : "Disabled", bus);
    else
        (void)printf("%s persistence mode for GPU %s.\n", on ? "Enabled" : "Disabled",
                     bus);
    return r;
}

int smi_set_persistence(const struct smi *smi, const char *text)
{
    bool on = strcmp(text, "1") == 0 || strcmp(text, "ENABLED") == 0;

    if (!on && strcmp(text, "0") != 0 && strcmp(text, "DISABLED") != 0)
        return bad("--persistence-mode", text, "0 or 1 is wanted");
    for (unsigned i = 0; i < smi->n_chosen; i++) {
        nv_device dev;
        int r = smi_handle(smi, smi->chosen[i], &dev);
        if (!r)
            r = persist_one(smi, dev, on);
        if (r)
            return early(r);
    }
    return done();
}
