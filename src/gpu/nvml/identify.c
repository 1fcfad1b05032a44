#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "gpu/nvml/dev.h"

enum { FIELD_FAR_MJ = 10000000 }; /* the highest plausible energy between two calls */

/* Sets an ability's bit according to the result of a call, unless it means "not
 * supported".  A temporary failure does not clear an ability.
 */
static void probe(struct gpu_dev *dev, enum gpu_ability bit, nvml_result result)
{
    if (!nvml_is_unable(result))
        dev->info.abilities |= (uint32_t)bit;
}

static enum gpu_arch arch_of_capability(int major, int minor)
{
    switch (major) {
    case 3:
        return GPU_ARCH_KEPLER;
    case 5:
        return GPU_ARCH_MAXWELL;
    case 6:
        return GPU_ARCH_PASCAL;
    case 7:
        return minor >= 5 ? GPU_ARCH_TURING : GPU_ARCH_VOLTA;
    case 8:
        return minor == 9 ? GPU_ARCH_ADA : GPU_ARCH_AMPERE;
    case 9:
        return GPU_ARCH_HOPPER;
    case 10:
    case 12:
        return GPU_ARCH_BLACKWELL;
    default:
        return GPU_ARCH_UNKNOWN;
    }
}

static void identify_arch(struct gpu_dev *dev)
{
    const struct nvml_abi *abi = &dev->lib->abi;
    unsigned arch = 0;
    int major = 0, minor = 0;

    if (abi->architecture && abi->architecture(dev->handle, &arch) == NVML_OK &&
        arch != UINT32_MAX)
        dev->info.arch = (enum gpu_arch)arch;
    else if (abi->compute_capability &&
             abi->compute_capability(dev->handle, &major, &minor) == NVML_OK)
        dev->info.arch = arch_of_capability(major, minor);
}

static void identify_bus(struct gpu_dev *dev)
{
    const struct nvml_abi *abi = &dev->lib->abi;
    struct nvml_pci pci = {0};
    const char *id = NULL;
    size_t size = 0;

    if (abi->pci_v3 && abi->pci_v3(dev->handle, &pci) == NVML_OK) {
        id = pci.bus_id;
        size = sizeof pci.bus_id;
    } else if (abi->pci_v2 && abi->pci_v2(dev->handle, &pci) == NVML_OK) {
        id = pci.bus_id_legacy;
        size = sizeof pci.bus_id_legacy;
    }
    if (!id)
        return;
    size_t n = strnlen(id, size);
    if (n >= sizeof dev->info.pci_bus_id)
        n = sizeof dev->info.pci_bus_id - 1;
    memcpy(dev->info.pci_bus_id, id, n);
    dev->info.pci_bus_id[n] = '\0';
    utf8_mend(dev->info.pci_bus_id);
}

/* The number of the device file is not the index: it follows the order in which the
 * kernel's driver found the boards.
 */
static void identify_minor(struct gpu_dev *dev)
{
    const struct nvml_abi *abi = &dev->lib->abi;
    unsigned minor = 0;

    dev->info.has_minor = abi->minor && abi->minor(dev->handle, &minor) == NVML_OK;
    dev->info.minor = dev->info.has_minor ? minor : 0;
}

/* Finds the lowest SM clock at the highest memory clock; the order of the driver's lists
 * is not specified.
 */
static void identify_clocks(struct gpu_dev *dev)
{
    enum { MEMORY_MAX = 32, SM_MAX = 512 };
    const struct nvml_abi *abi = &dev->lib->abi;
    unsigned memory[MEMORY_MAX], sm[SM_MAX], n = MEMORY_MAX, top = 0;

    if (!abi->memory_clocks || !abi->sm_clocks || !abi->lock_clocks ||
        abi->memory_clocks(dev->handle, &n, memory) != NVML_OK || n == 0)
        return;
    for (unsigned i = 0; i < n && i < MEMORY_MAX; i++)
        top = memory[i] > top ? memory[i] : top;
    n = SM_MAX;
    if (abi->sm_clocks(dev->handle, top, &n, sm) != NVML_OK)
        return;
    for (unsigned i = 0; i < n && i < SM_MAX; i++)
        if (sm[i] && (!dev->info.clock_min_mhz || sm[i] < dev->info.clock_min_mhz))
            dev->info.clock_min_mhz = sm[i];
}

static void identify_modes(struct gpu_dev *dev)
{
    const struct nvml_abi *abi = &dev->lib->abi;
    unsigned on = 0, pending = 0, mhz = 0;

    if (abi->persistence && abi->persistence(dev->handle, &on) == NVML_OK) {
        dev->info.has_persistence = true;
        dev->info.persistence = on == 1;
    }
    if (abi->mig_mode && abi->mig_mode(dev->handle, &on, &pending) == NVML_OK)
        dev->info.mig_enabled = on == 1;
    if (abi->max_clock && abi->max_clock(dev->handle, NVML_CLOCK_SM, &mhz) == NVML_OK)
        dev->info.clock_max_mhz = mhz;
    identify_clocks(dev);
}

/* Finds the fields to use: those whose values agree with the dedicated calls. */
static void probe_fields(struct gpu_dev *dev, unsigned long long mj)
{
    const struct nvml_abi *abi = &dev->lib->abi;
    struct gpu_sample s = {0};
    unsigned mw = 0;

    if (!abi->field_values ||
        dev_fields(dev, GPU_HAS_AVERAGE | GPU_HAS_INSTANT, &s) != NVML_OK)
        return;
    dev->info.abilities |= s.has & GPU_HAS_AVERAGE ? GPU_CAN_AVERAGE : 0;
    dev->info.abilities |= s.has & GPU_HAS_INSTANT ? GPU_CAN_INSTANT : 0;
    if (dev_fields(dev, GPU_HAS_ENERGY | GPU_HAS_ENFORCED | GPU_HAS_REQUESTED, &s) !=
        NVML_OK)
        return;
    dev->field_energy = dev->info.abilities & GPU_CAN_ENERGY && s.has & GPU_HAS_ENERGY &&
                        s.energy_mj >= mj && s.energy_mj - mj < FIELD_FAR_MJ;
    dev->field_limits =
        s.has & GPU_HAS_ENFORCED && s.has & GPU_HAS_REQUESTED && abi->enforced_limit &&
        abi->requested_limit && abi->enforced_limit(dev->handle, &mw) == NVML_OK &&
        mw == s.enforced_mw && abi->requested_limit(dev->handle, &mw) == NVML_OK &&
        mw == s.requested_mw;
}

static void probe_power(struct gpu_dev *dev)
{
    const struct nvml_abi *abi = &dev->lib->abi;
    unsigned long long mj = 0;
    unsigned a = 0, b = 0;

    if (abi->energy)
        probe(dev, GPU_CAN_ENERGY, abi->energy(dev->handle, &mj));
    probe_fields(dev, mj);
    if (abi->constraints && (abi->enforced_limit || abi->requested_limit))
        probe(dev, GPU_CAN_LIMIT, abi->constraints(dev->handle, &a, &b));
    if (dev->info.abilities & GPU_CAN_LIMIT && (abi->set_limit || abi->set_limit_v2))
        dev->info.abilities |= GPU_CAN_SET_LIMIT;
}

static void probe_rest(struct gpu_dev *dev)
{
    const struct nvml_abi *abi = &dev->lib->abi;
    unsigned value = 0;
    unsigned long long reasons = 0;
    struct nvml_violation limited;
    struct nvml_utilization util;
    struct nvml_temperature temp = {.version = NVML_TEMPERATURE_V1,
                                    .sensor = NVML_TEMPERATURE_GPU};

    if (abi->clock)
        probe(dev, GPU_CAN_CLOCKS, abi->clock(dev->handle, NVML_CLOCK_SM, &value));
    if (abi->event_reasons)
        probe(dev, GPU_CAN_REASONS, abi->event_reasons(dev->handle, &reasons));
    if (!(dev->info.abilities & GPU_CAN_REASONS) && abi->throttle_reasons) {
        dev->reasons_old = true;
        probe(dev, GPU_CAN_REASONS, abi->throttle_reasons(dev->handle, &reasons));
    }
    if (abi->violation)
        probe(dev, GPU_CAN_LIMITED,
              abi->violation(dev->handle, NVML_PERF_POLICY_POWER, &limited));
    if (abi->utilization)
        probe(dev, GPU_CAN_UTIL, abi->utilization(dev->handle, &util));
    if (abi->temperature_v)
        probe(dev, GPU_CAN_TEMP, abi->temperature_v(dev->handle, &temp));
    if (!(dev->info.abilities & GPU_CAN_TEMP) && abi->temperature)
        probe(dev, GPU_CAN_TEMP,
              abi->temperature(dev->handle, NVML_TEMPERATURE_GPU, &value));
    if (abi->compute.v3 || abi->compute.v2 || abi->compute.v1)
        dev->info.abilities |= GPU_CAN_PROCS;
    /* A lock cannot be read, so support is derived from the generation (since Volta). */
    if (abi->lock_clocks && abi->reset_clocks && dev->info.arch >= GPU_ARCH_VOLTA)
        dev->info.abilities |= GPU_CAN_LOCK_CLOCKS;
}

/* Slice numbers have gaps, so a missing slice is skipped. */
static void identify_migs(struct gpu_dev *dev)
{
    const struct nvml_abi *abi = &dev->lib->abi;
    struct gpu_info *info = &dev->info;
    unsigned max = 0;

    if (!info->mig_enabled || !abi->max_migs || !abi->mig ||
        abi->max_migs(dev->handle, &max) != NVML_OK)
        return;
    for (unsigned i = 0; i < max && info->n_migs < GPU_MIGS_MAX; i++) {
        struct gpu_mig *m = &info->mig[info->n_migs];
        nvml_device slice = NULL;
        if (abi->mig(dev->handle, i, &slice) != NVML_OK ||
            abi->uuid(slice, m->uuid, sizeof m->uuid) != NVML_OK)
            continue;
        m->uuid[sizeof m->uuid - 1] = '\0';
        if (abi->gpu_instance)
            (void)abi->gpu_instance(slice, &m->gpu_instance);
        if (abi->compute_instance)
            (void)abi->compute_instance(slice, &m->compute_instance);
        info->n_migs++;
    }
}

/* Prefers the bus id: indices may have changed. */
void dev_take_handle(struct gpu_dev *dev)
{
    const struct nvml_abi *abi = &dev->lib->abi;
    bool by_bus = abi->by_bus && dev->info.pci_bus_id[0];
    nvml_device handle = NULL;

    nvml_result r = by_bus ? abi->by_bus(dev->info.pci_bus_id, &handle)
                           : abi->by_index(dev->info.index, &handle);
    dev->handle = r == NVML_OK ? handle : NULL;
    dev->error = (uw_error){""};
    (void)nvml_fail(
        abi, r, by_bus ? "nvmlDeviceGetHandleByPciBusId" : "nvmlDeviceGetHandleByIndex",
        &dev->error);
}

void dev_put_away(struct gpu_dev *dev)
{
    dev->handle = NULL;
    (void)fail(&dev->error, -ENODEV, "board %u is released: the driver is not open on it",
               dev->info.index);
}

void dev_identify(struct gpu_dev *dev)
{
    const struct nvml_abi *abi = &dev->lib->abi;

    dev_take_handle(dev);
    if (!dev->handle)
        return;
    nvml_device handle = dev->handle;
    dev->info.abilities = 0; /* discard opts.known */
    dev->info.n_migs = 0;
    nvml_result r = abi->uuid(handle, dev->info.uuid, sizeof dev->info.uuid);
    if (r != NVML_OK) {
        dev->info.uuid[0] = '\0';
        (void)nvml_fail(abi, r, "nvmlDeviceGetUUID", &dev->error);
    }
    nvml_result named = abi->name(handle, dev->info.name, sizeof dev->info.name);
    if (named != NVML_OK) {
        dev->info.name[0] = '\0';
        (void)nvml_fail(abi, named, "nvmlDeviceGetName", &dev->error);
    }
    dev->info.uuid[sizeof dev->info.uuid - 1] = '\0';
    dev->info.name[sizeof dev->info.name - 1] = '\0';
    utf8_mend(dev->info.uuid);
    utf8_mend(dev->info.name);
    if (nvml_is_fatal(r) || nvml_is_fatal(named))
        return;
    identify_arch(dev);
    identify_bus(dev);
    identify_minor(dev);
    identify_modes(dev);
    identify_migs(dev);
    probe_power(dev);
    probe_rest(dev);
}
