/* The privileges of this process, and the place of its files. */
#ifndef ACTUATOR_TRUST_H
#define ACTUATOR_TRUST_H

#include <stdbool.h>
#include <stddef.h>

#include "underwatt/error.h"

/* Root, a set-uid program, or any effective capability. */
bool trust_is_privileged(void);

/* The folder of journal and locks of these boards: /run/underwatt-actuator for real
 * boards (only for root: -EPERM), the world's own folder (state_dir) for simulated ones.
 */
int trust_state_dir(bool simulated, const char *state_dir, char *ret, size_t size,
                    uw_error *err);

#endif
