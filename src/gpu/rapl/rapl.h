/* Energy of processors and their memory: the RAPL counters in the kernel's powercap tree
 * (Documentation/power/powercap/powercap.rst).  Packages and their DRAM are boards whose
 * only ability is to count energy.
 */
#ifndef GPU_RAPL_RAPL_H
#define GPU_RAPL_RAPL_H

#include "gpu/row.h"

#define RAPL_ROOT "/sys/class/powercap"

/* open(): opts.source replaces RAPL_ROOT; GPU_ABSENT: no such tree.  info.uuid is
 * "rapl:package-0" or "rapl:package-0:dram".  The kernel's counter wraps at
 * max_energy_range_uj; the energy of sample() does not.  If the gain is ambiguous (the
 * counter fell, and a wrap would need implausible power, or the last sample is so old
 * that it may have wrapped twice), the energy restarts at 0, which the meter handles as a
 * reset.  A counter without read permission is listed, and sample() fails with -EPERM,
 * until opts.given has its descriptor.
 */
extern const struct gpu_backend rapl_backend;
extern const struct gpu_backend_row rapl_row;

/* counters.c: see struct gpu_backend_row.  A valid name is "intel-rapl:0:1", but neither
 * "intel-rapl" nor "intel-rapl-mmio:0", which counts the same energy again.
 */
void rapl_open_counters(const char *root, uid_t owner, struct gpu_counters *ret);
bool rapl_is_zone(const char *name);

#endif
