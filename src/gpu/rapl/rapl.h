/* Energy of the processor and its memory: the RAPL counters that the kernel's
 * powercap tree shows (Documentation/power/powercap/powercap.rst).  A package and
 * its DRAM are boards that can do one thing: count energy.
 */
#ifndef GPU_RAPL_RAPL_H
#define GPU_RAPL_RAPL_H

#include "gpu/row.h"

#define RAPL_ROOT "/sys/class/powercap"

/* open(): opts.source is the folder in place of RAPL_ROOT; GPU_ABSENT where there is no
 * such tree.  info.uuid is "rapl:package-0", "rapl:package-0:dram".  The kernel's counter
 * wraps at max_energy_range_uj; what sample() gives does not.  Where nobody can tell (the
 * counter fell by more than a wrap of a possible power explains, or the last look was so
 * long ago that it may have wrapped twice) it falls to 0, as any counter that begins
 * anew: that is the meter's matter.  A counter that we may not read is listed, and each
 * sample says what is needed, until opts.given has a descriptor of it.
 */
extern const struct gpu_backend rapl_backend;
extern const struct gpu_backend_row rapl_row;

/* counters.c: see struct gpu_backend_row.  A name is "intel-rapl:0:1": neither
 * "intel-rapl" nor "intel-rapl-mmio:0", which counts the same energy a second time.
 */
void rapl_open_counters(const char *root, uid_t owner, struct gpu_counters *ret);
bool rapl_is_zone(const char *name);

#endif
