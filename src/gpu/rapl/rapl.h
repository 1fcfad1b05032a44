/* Energy of the processor and its memory: the RAPL counters that the kernel's
 * powercap tree shows (Documentation/power/powercap/powercap.rst).  A package and
 * its DRAM are boards that can do one thing: count energy.
 */
#ifndef GPU_RAPL_RAPL_H
#define GPU_RAPL_RAPL_H

#include "base/auto.h"
#include "gpu/gpu.h"

#define RAPL_ROOT "/sys/class/powercap"

/* Descriptors of counters that only root may open, handed to us.  Any thread may put one;
 * the backend's next sample of that zone reads it.
 */
struct rapl_given;
struct rapl_given *rapl_given_new(void); /* NULL: out of memory */
/* zone: "intel-rapl:0:1"; fd: of its energy_uj, taken over, in place of an older one.
 * -E2BIG: too many, -EINVAL: no such name; the descriptor is closed then.
 */
int rapl_given_put(struct rapl_given *given, const char *zone, int fd);
/* Not while a backend that has it is open. */
void rapl_given_free(struct rapl_given *given);
DEFINE_AUTO(struct rapl_given *, rapl_given_free);

/* What opts.backend_user points at, where it is not NULL. */
struct rapl_opts {
    const char *root;         /* in place of RAPL_ROOT; NULL: that */
    struct rapl_given *given; /* or NULL */
};

/* open(): GPU_ABSENT where there is no such tree.  info.uuid is "rapl:package-0",
 * "rapl:package-0:dram".  The kernel's counter wraps at max_energy_range_uj; what
 * sample() gives does not.  Where nobody can tell (the counter fell by more than a wrap
 * of a possible power explains, or the last look was so long ago that it may have wrapped
 * twice) it falls to 0, as any counter that begins anew: that is the meter's matter.  A
 * counter that we may not read is listed, and each sample says what is needed, until a
 * descriptor of it is given.
 */
extern const struct gpu_backend rapl_backend;

#endif
