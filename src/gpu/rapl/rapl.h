/* Energy of the processor and its memory: the RAPL counters that the kernel's
 * powercap tree shows (Documentation/power/powercap/powercap.rst).  A package and
 * its DRAM are boards that can do one thing: count energy.
 */
#ifndef GPU_RAPL_RAPL_H
#define GPU_RAPL_RAPL_H

#include "gpu/gpu.h"

#define RAPL_ROOT "/sys/class/powercap"

/* What opts.backend_user points at, where it is not NULL. */
struct rapl_opts {
    const char *root; /* in place of RAPL_ROOT */
};

/* open(): GPU_ABSENT where there is no such tree.  info.uuid is "rapl:package-0",
 * "rapl:package-0:dram".  The kernel's counter wraps at max_energy_range_uj; what
 * sample() gives does not, as long as it is called once a wrap (minutes).  A
 * counter that we may not read is listed, and each sample says what is needed.
 */
extern const struct gpu_backend rapl_backend;

#endif
