/* The processes on a board.  Entries of the unversioned lists have 16 bytes, those
 * of _v2 and _v3 24.
 */
#include <string.h>

#include "sim/nvml/attach.h"

/* SIM_OK with *ret filled in, SIM_TOO_SMALL with *n set to the number, or an error. */
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

NVML_SAME(nvmlDeviceGetComputeRunningProcesses_v3,
          nvmlDeviceGetComputeRunningProcesses_v2)

NVML_API int nvmlDeviceGetGraphicsRunningProcesses(nv_device dev, unsigned *n,
                                                   const void *ret)
{
    struct sim_procs procs;

    (void)ret;
    if (!n)
        return SIM_INVALID;
    int r = nv_procs(dev, &procs);
    if (!r)
        *n = 0;
    return r;
}

NVML_SAME(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlDeviceGetGraphicsRunningProcesses)
NVML_SAME(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlDeviceGetGraphicsRunningProcesses)
NVML_SAME(nvmlDeviceGetMPSComputeRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses)
NVML_SAME(nvmlDeviceGetMPSComputeRunningProcesses_v2,
          nvmlDeviceGetGraphicsRunningProcesses)
NVML_SAME(nvmlDeviceGetMPSComputeRunningProcesses_v3,
          nvmlDeviceGetGraphicsRunningProcesses)

/* The first call asks for the size and always gets "too small", as from the driver, which
 * keeps a buffer whether or not a process runs.
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
