/* Who computes on a board.  Entries of the unversioned lists have 16 bytes, those
 * of _v2 and _v3 24.
 */
#include <string.h>

#include "sim/nvml/attach.h"
#include "sim/nvml/calls.h"

/* 0 with *ret filled, 7 with *n = how many there are, or another failure. */
static int list(nv_device dev, unsigned *n, const void *to, struct sim_procs *ret)
{
    if (!n)
        return SIM_INVALID;
    int r = nv_procs(dev, ret);
    if (r)
        return r;
    unsigned room = *n;
    *n = (unsigned)ret->n;
    return ret->n > room || (ret->n > 0 && !to) ? SIM_TOO_SMALL : SIM_OK;
}

static int none(nv_device dev, unsigned *n)
{
    struct sim_procs procs;

    if (!n)
        return SIM_INVALID;
    int r = nv_procs(dev, &procs);
    if (!r)
        *n = 0;
    return r;
}

NVML_API int nvmlDeviceGetComputeRunningProcesses(nv_device dev, unsigned *n,
                                                  struct nv_proc_v1 *ret)
{
    struct sim_procs procs;

    int r = list(dev, n, ret, &procs);
    for (unsigned i = 0; !r && i < *n; i++)
        ret[i] =
            (struct nv_proc_v1){(uint32_t)procs.proc[i].pid, procs.proc[i].used_bytes};
    return r;
}

NVML_API int nvmlDeviceGetComputeRunningProcesses_v2(nv_device dev, unsigned *n,
                                                     struct nv_proc_v2 *ret)
{
    struct sim_procs procs;

    int r = list(dev, n, ret, &procs);
    for (unsigned i = 0; !r && i < *n; i++)
        ret[i] =
            (struct nv_proc_v2){(uint32_t)procs.proc[i].pid, procs.proc[i].used_bytes,
                                NV_NO_INSTANCE, NV_NO_INSTANCE};
    return r;
}

NVML_API int nvmlDeviceGetComputeRunningProcesses_v3(nv_device dev, unsigned *n,
                                                     struct nv_proc_v2 *ret)
{
    return nvmlDeviceGetComputeRunningProcesses_v2(dev, n, ret);
}

#define NO_PROCESSES(function, type)                             \
    NVML_API int function(nv_device dev, unsigned *n, type *ret) \
    {                                                            \
        (void)ret;                                               \
        return none(dev, n);                                     \
    }

NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, struct nv_proc_v1)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, struct nv_proc_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, struct nv_proc_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, struct nv_proc_v1)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, struct nv_proc_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, struct nv_proc_v2)

/* The first call asks for the size and is always answered "too small", as the
 * driver does: it keeps a buffer whether or not anybody runs.
 */
NVML_API int nvmlDeviceGetProcessUtilization(nv_device dev, struct nv_proc_util *ret,
                                             unsigned *n, unsigned long long since_us)
{
    struct sim_procs procs;

    if (!n)
        return SIM_INVALID;
    int r = nv_procs(dev, &procs);
    if (r)
        return r;
    if (!ret || *n < procs.n) {
        *n = SIM_PROCS_MAX;
        return SIM_TOO_SMALL;
    }
    if (procs.n == 0 || procs.at_us <= since_us) {
        *n = 0;
        return SIM_NOT_FOUND;
    }
    *n = (unsigned)procs.n;
    for (unsigned i = 0; i < *n; i++)
        ret[i] = (struct nv_proc_util){
            .pid = (uint32_t)procs.proc[i].pid,
            .at_us = procs.at_us,
            .sm = (uint32_t)procs.proc[i].util_gpu,
            .mem = (uint32_t)procs.proc[i].util_mem,
        };
    return SIM_OK;
}
