/* What peers send to a simulated node in words: job options and faults. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/job.h"
#include "sim/machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sim_fault fault;
    struct sim_job job;
    uw_error err;

    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (sim_job_parse_text(text, &job, &err) == 0 &&
        (job.n_phases == 0 || job.n_phases > JOB_PHASES_MAX || job.epochs == 0 ||
         strnlen(job.workload, sizeof job.workload) == sizeof job.workload))
        abort();
    if (sim_fault_parse(text, &fault, &err) == 0 &&
        ((unsigned)fault.kind >= SIM_FAULT_K_N ||
         (fault.for_ns && !sim_fault_may_last(fault.kind))))
        abort();
    free(text);
    return 0;
}
