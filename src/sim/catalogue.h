/* The workloads of a simulated node: those of the plant, and those that its
 * machine file describes.
 */
#ifndef SIM_CATALOGUE_H
#define SIM_CATALOGUE_H

#include <stddef.h>

#include "plant/workload.h"
#include "sim/machine.h"
#include "underwatt/error.h"

enum { SIM_CATALOGUE_MAX = SIM_WORKLOADS_MAX * 8 };

struct sim_catalogue {
    struct plant_workload
        work[SIM_CATALOGUE_MAX]; /* one a described workload and model */
    char name[SIM_CATALOGUE_MAX][32];
    size_t n;
};

/* Fills what the machine's boards can run; keep it as long as a job runs. */
int sim_catalogue_fill(const struct sim_machine *machine, struct sim_catalogue *ret,
                       uw_error *err);

/* For plant_job_opts.find; user is the catalogue.  Described ones come first. */
const struct plant_workload *sim_catalogue_find(const struct plant_board *board,
                                                const char *name, void *user);

#endif
