/* GPU performance metrics of Hopper and newer boards: loads between two samples.  A
 * sample has what the driver shows at that moment; a metric is the mean of its two
 * samples.
 */
#include <stdlib.h>

#include "sim/nvml/attach.h"

enum {
    ARCH_HOPPER = 9,
    GPM_VERSION = 1,
    GPM_GRAPHICS = 1,
    GPM_SM = 2,
    GPM_DRAM = 10,
    GPM_METRICS_MAX = 512, /* bound against a request that is not one */
};

typedef struct nv_gpm_sample {
    bool taken;
    struct sim_readings now;
} * nv_gpm;

struct nv_gpm_metric {
    uint32_t id;
    int32_t result;
    double value;
    const char *short_name, *long_name, *unit;
};
_Static_assert(sizeof(struct nv_gpm_metric) == 40, "nvmlGpmMetric_t");

struct nv_gpm_get {
    uint32_t version, n;
    nv_gpm from, to;
    struct nv_gpm_metric metric[];
};

struct nv_gpm_support {
    uint32_t version, supported;
};

NVML_API int nvmlGpmQueryDeviceSupport(nv_device dev, struct nv_gpm_support *ret)
{
    const struct sim_identity *id;

    if (!ret)
        return SIM_INVALID;
    if (ret->version != GPM_VERSION)
        return SIM_VERSION_MISMATCH;
    int r = nv_identity(dev, &id);
    if (!r)
        ret->supported = id->arch >= ARCH_HOPPER;
    return r;
}

NVML_API int nvmlGpmSampleAlloc(nv_gpm *ret)
{
    if (!ret)
        return SIM_INVALID;
    *ret = calloc(1, sizeof **ret);
    return *ret ? SIM_OK : SIM_UNKNOWN;
}

NVML_API int nvmlGpmSampleFree(nv_gpm sample)
{
    if (!sample)
        return SIM_INVALID;
    free(sample);
    return SIM_OK;
}

NVML_API int nvmlGpmSampleGet(nv_device dev, nv_gpm sample)
{
    const struct sim_identity *id;

    if (!sample)
        return SIM_INVALID;
    int r = nv_readings_of(dev, &sample->now, &id);
    if (!r && id->arch < ARCH_HOPPER)
        r = SIM_NOT_SUPPORTED;
    sample->taken = !r;
    return r;
}

static void metric(struct nv_gpm_metric *m, const struct sim_readings *a,
                   const struct sim_readings *b)
{
    m->result = SIM_OK;
    m->unit = "%";
    m->value = 0.0;
    switch (m->id) {
    case GPM_GRAPHICS:
    case GPM_SM:
        m->short_name = m->id == GPM_SM ? "sm_util" : "graphics_util";
        m->long_name = m->id == GPM_SM ? "SM Util" : "Graphics Util";
        m->value = (double)(a->util_gpu + b->util_gpu) / 2.0;
        break;
    case GPM_DRAM:
        m->short_name = "dram_bw_util";
        m->long_name = "DRAM BW Util";
        m->value = (double)(a->util_mem + b->util_mem) / 2.0;
        break;
    default:
        m->short_name = m->long_name = m->unit = NULL;
        m->result = SIM_NOT_SUPPORTED;
        break;
    }
}

NVML_API int nvmlGpmMetricsGet(struct nv_gpm_get *get)
{
    if (!get || !get->from || !get->to || get->n > GPM_METRICS_MAX)
        return SIM_INVALID;
    if (get->version != GPM_VERSION)
        return SIM_VERSION_MISMATCH;
    if (!get->from->taken || !get->to->taken)
        return SIM_INVALID;
    for (uint32_t i = 0; i < get->n; i++)
        metric(&get->metric[i], &get->from->now, &get->to->now);
    return SIM_OK;
}
