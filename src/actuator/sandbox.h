/* What the service gives up once everything is open and before the first client: all
 * capabilities but the one that setting limits takes, and all system calls but those
 * that boards, journal and clients need.  See docs/actuator.md.
 */
#ifndef ACTUATOR_SANDBOX_H
#define ACTUATOR_SANDBOX_H

#include <stdbool.h>

#include "underwatt/error.h"

/* This thread's, and of all threads that it will start: CAP_SYS_ADMIN where it is there,
 * nothing else, in no set; nothing can be had back by a program that is started.
 * Without any capability nothing is done.
 */
int sandbox_drop_capabilities(uw_error *err);

/* The filter, for all threads.  A call that is not on the list fails with EPERM (clone3
 * with ENOSYS: glibc then uses clone, which can be looked into).  -ENOSYS: this kernel
 * has no such filters.  Does nothing under a sanitizer, which needs more calls.
 */
int sandbox_filter(uw_error *err);
/* Whether this build has a filter at all. */
bool sandbox_has_filter(void);

#endif
