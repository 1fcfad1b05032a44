/* What a service manager is told (sd_notify(3)), without its library: a datagram to the
 * socket that NOTIFY_SOCKET names; and how one is read, by underwatt-start.
 */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>

#include "underwatt/error.h"

/* socket: the environment's value; NULL or "": nobody wants to know (0).  state: lines
 * as sd_notify() takes them.  Never blocks.  -EINVAL (no such form of a name) or the
 * socket's -errno.
 */
int notify(const char *socket, const char *state, uw_error *err);
/* "RELOADING=1" with the time that Type=notify-reload asks for. */
int notify_reloading(const char *socket, uw_error *err);

/* Does a datagram of n bytes say that its sender lives: is one of its lines WATCHDOG=1 or
 * READY=1, and nothing else?  Pure.
 */
bool notify_beats(const char *text, size_t n);

#endif
