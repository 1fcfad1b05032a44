/* The text of /proc/PID/cgroup: what a user may lay out. */
#include <stdint.h>
#include <string.h>

#include "base/names.h"
#include "core/job/cgroup.h"
#include "fuzz.h"

static void check(const char *text)
{
    size_t n = strnlen(text, CGROUP_ID);

    if (n == CGROUP_ID)
        __builtin_trap();
    for (size_t i = 0; i < n; i++)
        if (text[i] <= ' ' || text[i] > '~' || text[i] == '"' || text[i] == '/')
            __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cgroup_job job;
    char shown[CGROUP_ID + 16];

    cgroup_parse((const char *)data, size, &job);
    check(job.id);
    check(job.container);
    check(job.step);
    if ((job.kind == CGROUP_NONE) != (job.id[0] == '\0'))
        __builtin_trap();
    if (job.kind == CGROUP_SLURM && strspn(job.id, "0123456789") != strlen(job.id))
        __builtin_trap();
    const char *name = cgroup_name(&job, shown, sizeof shown);
    return fuzz_say(job.kind == CGROUP_NONE ? "none" : names_word(NAMES_CGROUP, job.kind),
                    "%s step '%s' container '%s'", name ? name : "", job.step,
                    job.container);
}
