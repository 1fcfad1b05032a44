/* A mark that changes when the driver is reloaded, which resets limits and counters.
 *
 * For a real driver, the mark is the inode number of /sys/module/nvidia, new for each
 * load, with the driver's version.  The folder's time stamps do not serve: they change
 * when the kernel drops the inode from its cache, and Underwatt's own cap would then look
 * like another program's.
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
