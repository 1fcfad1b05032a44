/* The workloads of a simulated node: those of the plant, and those described in its
 * machine file.
 */
#ifndef SIM_CATALOGUE_H
#define SIM_CATALOGUE_H

#include <stddef.h>

#include "plant/workload.h"
#include "sim/machine.h"
#include "underwatt/error.h"

enum { SIM_CATALOGUE_MAX = SIM_WORKLOADS_MAX * 8 };

struct sim_catalogue {
    /* one per described workload and board model */
    struct plant_workload work[SIM_CATALOGUE_MAX];
    char name[SIM_CATALOGUE_MAX][32];
    size_t n;
};

/* Fills in the workloads of the machine's boards; it must outlive the jobs that use it.
 */
int sim_catalogue_fill(const struct sim_machine *machine, struct sim_catalogue *ret,
                       uw_error *err);

/* A plant_job_opts.find function; user is the catalogue.  Described workloads come first.
 */
const struct plant_workload *sim_catalogue_find(const struct plant_board *board,
                                                const char *name, void *user);

#endif
