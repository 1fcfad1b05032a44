/* Which boards this process has open, noted where the world's writer sees it: as long as
 * somebody has a board open, it cannot be reset.  As the API Reference Manual tells it:
 * nvmlInit() attaches every board, nvmlInitWithFlags(NO_ATTACH) none; a handle attaches
 * its board, and one that is searched by UUID or serial number all that are passed on
 * the way.  nvmlShutdown() lets go of all.
 */
#ifndef SIM_NVML_USERS_H
#define SIM_NVML_USERS_H

#include <stdbool.h>

#include "sim/state.h"

/* Beside this world's page from now on. */
void users_begin(const struct sim_page *page);
void users_attach(unsigned board);
void users_attach_all(const struct sim_page *page);
bool users_has(unsigned board);
void users_end(void);

#endif
