/* How much this process may do, and where its files lie. */
#ifndef ACTUATOR_TRUST_H
#define ACTUATOR_TRUST_H

#include <stdbool.h>
#include <stddef.h>

#include "underwatt/error.h"

/* Root, a set-uid program, or any effective capability. */
bool trust_is_privileged(void);

/* Where journal and locks of these boards lie: /run/underwatt-actuator for real ones
 * (root alone: -EPERM), the world's own folder (state_dir) for simulated ones.
 */
int trust_state_dir(bool simulated, const char *state_dir, char *ret, size_t size,
                    uw_error *err);

#endif
