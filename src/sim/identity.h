/* The identity of a simulated board. */
#ifndef SIM_IDENTITY_H
#define SIM_IDENTITY_H

#include <stdint.h>

#include "sim/machine.h"
#include "sim/state.h"

#define SIM_DRIVER_BYTES (300ull << 20) /* of a board's memory, taken by the driver */

/* The same board, seed and index give the same identity. */
void sim_identity_fill(const struct sim_machine_board *board, uint64_t seed,
                       unsigned index, struct sim_identity *ret);

#endif
