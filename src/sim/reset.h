/* Resets a board as a driver does: only while no process has the board open. */
#ifndef SIM_RESET_H
#define SIM_RESET_H

#include <stddef.h>

#include "sim/world.h"

/* SIM_OK: the counter starts at 0, the limit is the default one, the board's faults have
 * ended.  SIM_IN_USE: *err names the processes that have the board open, and nothing has
 * changed.  SIM_INVALID: no such board.
 */
enum sim_result reset_board(struct sim_world *world, const char *state_dir, size_t board,
                            uw_error *err);

#endif
