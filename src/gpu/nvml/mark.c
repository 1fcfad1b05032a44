/* A mark of the driver's load: another one means that limits and counters have
 * been reset since.
 *
 * Of a real driver it is the inode number of /sys/module/nvidia, which the kernel
 * gives out anew for every load, with the driver's version.  Not that folder's
 * time stamps: they are those of the inode in the cache, so they change whenever
 * memory was short, and a cap of ours would look like another's.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "gpu/nvml/dev.h"

#define MODULE "/sys/module/nvidia"

int lib_mark(const struct lib *lib, char *ret, size_t size, uw_error *err)
{
    struct uw_sim_info sim = {.size = sizeof sim};
    struct stat st;
    int n = 0;

    if (size == 0)
        return fail(err, -ERANGE, "no room for the driver's mark");
    if (lib->abi.sim_info) {
        (void)lib->abi.sim_info(&sim);
        n = snprintf(ret, size, "sim:%016llx:%016llx", (unsigned long long)sim.world_id,
                     (unsigned long long)sim.load_id);
    } else if (stat(MODULE, &st) == 0) {
        n = snprintf(ret, size, "nvidia:%llu:%s", (unsigned long long)st.st_ino,
                     lib->about.driver_version);
    } else {
        ret[0] = '\0';
    }
    if (n < 0 || (size_t)n >= size)
        return fail(err, -ERANGE, "the driver's mark needs %d bytes", n + 1);
    return 0;
}
