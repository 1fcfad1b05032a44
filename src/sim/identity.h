/* What a simulated board says that it is. */
#ifndef SIM_IDENTITY_H
#define SIM_IDENTITY_H

#include <stdint.h>

#include "sim/machine.h"
#include "sim/state.h"

#define SIM_DRIVER_BYTES (300ull << 20) /* of a board's memory, taken by the driver */

/* Everything follows from the board, the seed and its index. */
void sim_identity_fill(const struct sim_machine_board *board, uint64_t seed,
                       unsigned index, struct sim_identity *ret);

#endif
