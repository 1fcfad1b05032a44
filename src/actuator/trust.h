/* What a privileged process may load, and where its files lie. */
#ifndef ACTUATOR_TRUST_H
#define ACTUATOR_TRUST_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu/gpu.h"
#include "underwatt/error.h"

/* Root, a set-uid program, or any effective capability. */
bool trust_is_privileged(void);

/* May this library be loaded by this process?  Without privilege: any.  With it:
 * an absolute path whose file, and every folder above, belongs to root and
 * cannot be written or replaced by others (a sticky folder such as /tmp
 * lets nobody replace root's files).  *ret is the path without links.
 */
int trust_library(const char *path, char *ret, size_t size, uw_error *err);

/* Where journal and locks of these boards lie: /run/underwatt for real ones (root
 * alone), the world's own folder for simulated ones.  Call it once the library
 * is loaded (NULL: the system's).
 */
int trust_state_dir(const char *library, char *ret, size_t size, uw_error *err);

#endif
