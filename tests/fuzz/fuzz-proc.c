/* /proc/PID/stat and status: a process chooses its own name in both. */
#include <stdint.h>
#include <string.h>

#include "io/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); /* -Wmissing-prototypes */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proc_facts f = {.pid = -7};
    uid_t uid = 0;

    if (proc_parse_stat((const char *)data, size, &f) == 0) {
        if (f.pid < 0 || f.ppid < 0 || strnlen(f.comm, sizeof f.comm) == sizeof f.comm)
            __builtin_trap();
    } else if (f.pid != -7) {
        __builtin_trap();
    }
    (void)proc_parse_status((const char *)data, size, &uid);
    return 0;
}
