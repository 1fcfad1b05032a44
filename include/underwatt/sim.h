/* The one symbol that the simulated libnvidia-ml.so has and the real one lacks.
 *
 * Whoever loads an NVML library looks up "uw_sim_info".  Where it is missing the
 * boards are real; where it is there they are simulated, and this says whose
 * clock they follow and which world they belong to, so that journals and locks
 * of simulated boards stay apart from real ones.
 */
#ifndef UNDERWATT_SIM_H
#define UNDERWATT_SIM_H

#include <stddef.h>
#include <stdint.h>

enum { UW_SIM_SIMULATED = 1 };

struct uw_sim_info {
    uint32_t size;       /* in: sizeof(struct uw_sim_info) of the caller */
    uint32_t simulated;  /* UW_SIM_SIMULATED, always */
    uint64_t load_id;    /* of this world's driver; a reload changes it; never 0 */
    uint64_t world_id;   /* of this start of the world; never 0 */
    char clock[64];      /* "T0_NS:SPEED", as UNDERWATT_CLOCK carries it */
    char state_dir[256]; /* the world's state directory, absolute */
};

/* Works before nvmlInit() too.  0, or NVML's 2 (NULL or a size that is too
 * small), 9 (no world beside this library's own file, or it has stopped: then
 * simulated and state_dir are filled all the same).  An older caller's shorter
 * struct is filled as far as it goes.
 */
typedef int (*uw_sim_info_fn)(struct uw_sim_info *info);

#endif
