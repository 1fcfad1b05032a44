/* Resetting a board, as a driver does it: only while nobody has it open. */
#ifndef SIM_RESET_H
#define SIM_RESET_H

#include <stddef.h>

#include "sim/world.h"

/* SIM_OK: its counters begin anew, its limit is the default one, what was wrong with it
 * is over.  SIM_IN_USE: text names the processes that have it open, and nothing has
 * changed.  SIM_INVALID: no such board.
 */
enum sim_result reset_board(struct sim_world *world, const char *state_dir, size_t board,
                            uw_error *err);

#endif
