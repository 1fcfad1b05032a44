#include "sim/smi/apps.h"

#include <string.h>

int smi_apps(const struct smi *smi, nv_device dev, struct smi_app *ret, unsigned *ret_n)
{
    typedef int (*list_fn)(nv_device, unsigned *, struct nv_proc_v2 *);
    typedef int (*name_fn)(unsigned, char *, unsigned);
    list_fn list = (list_fn)smi_find(smi, "nvmlDeviceGetComputeRunningProcesses_v3");
    name_fn name = (name_fn)smi_find(smi, "nvmlSystemGetProcessName");
    struct nv_proc_v2 procs[SIM_PROCS_MAX];
    unsigned n = SIM_PROCS_MAX;

    int r = list && name ? list(dev, &n, procs) : SMI_NO_FUNCTION;
    *ret_n = r ? 0 : n;
    for (unsigned i = 0; i < *ret_n; i++) {
        ret[i] = (struct smi_app){.pid = procs[i].pid, .used_bytes = procs[i].used_bytes};
        if (name(ret[i].pid, ret[i].name, SMI_NAME))
            memcpy(ret[i].name, "[Not Found]", sizeof "[Not Found]");
    }
    return r;
}
