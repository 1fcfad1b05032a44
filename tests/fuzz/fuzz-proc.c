/* /proc/PID/stat and status: a process chooses its own name in both. */
#include <stdint.h>
#include <string.h>

#include "fuzz.h"
#include "io/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proc_facts f = {.pid = -7};
    uid_t uid = 0;

    bool stat = proc_parse_stat((const char *)data, size, &f) == 0;
    if (stat) {
        if (f.pid < 0 || f.ppid < 0 || strnlen(f.comm, sizeof f.comm) == sizeof f.comm)
            __builtin_trap();
    } else if (f.pid != -7) {
        __builtin_trap();
    }
    if (proc_parse_status((const char *)data, size, &uid) == 0)
        return fuzz_say(stat ? "both" : "status", "uid %u", uid);
    return fuzz_say(stat ? "stat" : "refused", "pid %d parent %d '%s'", (int)f.pid,
                    (int)f.ppid, f.comm);
}
