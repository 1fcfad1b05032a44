/* The processes of the boards. */
#ifndef SIM_SMI_APPS_H
#define SIM_SMI_APPS_H

#include "sim/smi/lib.h"

enum { SMI_NAME = 256 };

struct smi_app {
    unsigned pid;
    uint64_t used_bytes;
    char name[SMI_NAME];
};

/* The compute processes of a board, at most SIM_PROCS_MAX; a result of NVML. */
int smi_apps(const struct smi *smi, nv_device dev, struct smi_app *ret, unsigned *ret_n);

#endif
