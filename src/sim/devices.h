/* Which boards a process may use by the permissions of their device files, as the driver
 * decides it: a board whose file a process may not open is none to it, and the others are
 * counted from 0.  The files are nvidiaMINOR in the folder `dev` of the state directory,
 * which somebody else has put there; without that folder every board may be used.
 */
#ifndef SIM_DEVICES_H
#define SIM_DEVICES_H

#include "sim/state.h"

/* Bit i: board i may be used by this process.  Opens no file. */
uint64_t sim_devices(const struct sim_page *page);

/* How many of the world's boards may be used; the board that is at this place among them,
 * SIM_BOARDS_MAX where there is none; the place of a board.
 */
unsigned sim_devices_count(const struct sim_page *page, uint64_t may);
unsigned sim_devices_at(const struct sim_page *page, uint64_t may, unsigned place);
unsigned sim_devices_place(uint64_t may, unsigned board);

#endif
