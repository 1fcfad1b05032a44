/* The result of one run of CMD, for the report. */
#ifndef CLI_JOB_RESULT_H
#define CLI_JOB_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/preset.h"
#include "core/meter/meter.h"
#include "gpu/gpu.h"
#include "jobs/job-progress.h"
#include "jobs/job-records.h"
#include "tuner/tuner.h"

enum job_caps {
    JOB_CAPS_NONE,   /* no caps at all */
    JOB_CAPS_NAMED,  /* a cap by name */
    JOB_CAPS_SEARCH, /* find the best one */
};

struct job_board {
    const struct gpu_info *info;
    bool used; /* counts in the result */
    bool away; /* boards that an earlier run of the daemon had, together: without info */
    struct meter_result energy;
};

struct job_result {
    uw_error error; /* why the energy is unknown */
    int status;     /* of waitpid() */
    uint64_t begin_ns, end_ns;
    int64_t begin_utc_ns;
    bool simulated;
    bool measured; /* energy is known */
    double time_s, energy_j, half_j;
    double stood_s; /* of time_s: without this process, which read no board */
    double power_w; /* mean over the time in which that energy was taken */
    uint32_t why;   /* enum meter_why */
    size_t n;
    const struct job_board *board; /* every open board; borrowed */
    size_t n_used;
    size_t n_cpu; /* processor domains with known energy (not in energy_j) */
    const struct job_board *cpu; /* borrowed */
    const struct tuner_report
        *tuner;     /* NULL: no caps were wanted, or tuning did not start */
    uint64_t steps; /* training steps reported; 0: none */
    char launches[JOB_PROGRESS_LAUNCHES]; /* result of counting; "": not counted */
    const struct preset_board *preset;    /* what it is on each board; borrowed */
    size_t n_preset;                      /* 0: none, or unknown */
    struct job_capped capped;             /* by the daemon's policy */
    bool silent; /* caps were wanted, but the job reported no step */
};

#endif
