/* What peers send to a simulated node in words: job options and faults. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "sim/job.h"
#include "sim/machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sim_fault fault;
    struct sim_job job, driven;
    uw_error err, err2;

    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    int r = sim_job_parse_text(text, &job, &err);
    if (r == 0 &&
        (job.n_phases == 0 || job.n_phases > JOB_PHASES_MAX || job.epochs == 0 ||
         strnlen(job.workload, sizeof job.workload) == sizeof job.workload))
        abort();
    if (sim_job_parse_driven(text, &driven, &err2) == 0 &&
        (r != 0 || !driven.driven || strcmp(driven.workload, "none") == 0))
        abort();
    int q = sim_fault_parse(text, &fault, &err2);
    if (q == 0 && ((unsigned)fault.kind >= SIM_FAULT_K_N ||
                   (fault.for_ns && !sim_fault_may_last(fault.kind))))
        abort();
    free(text);
    if (q == 0)
        return fuzz_say(r == 0 ? "both" : "fault", "kind %d board %d for %g s, %u mW",
                        (int)fault.kind, (int)fault.board, (double)fault.for_ns / 1e9,
                        fault.mw);
    if (r == 0)
        return fuzz_say("job", "%s, %zu phases, %u epochs", job.workload, job.n_phases,
                        (unsigned)job.epochs);
    return fuzz_say("refused", "job: %s; fault: %s", err.text, err2.text);
}
