/* Which boards this process has open.  The world's writer reads it: a board that a
 * process has open cannot be reset.  The NVML API Reference Manual gives the rules:
 * nvmlInit() attaches every board that the process may use (devices.h),
 * nvmlInitWithFlags(NO_ATTACH) none.  A handle attaches its board; a search by UUID or
 * serial number also attaches the boards before it.  nvmlShutdown() detaches all.
 */
#ifndef SIM_NVML_USERS_H
#define SIM_NVML_USERS_H

#include <stdbool.h>

#include "sim/state.h"

/* Opens the users file of page's world. */
void users_begin(const struct sim_page *page);
void users_attach(unsigned board);
bool users_has(unsigned board);
void users_end(void);

#endif
