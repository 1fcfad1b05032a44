/* Client of the service manager's notification protocol (sd_notify(3)), without its
 * library: sends datagrams to the socket named by NOTIFY_SOCKET. Also parses such
 * datagrams, for underwatt-start.
 */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>

#include "underwatt/error.h"

/* socket: value of NOTIFY_SOCKET; NULL or "": no receiver, returns 0. state: lines as for
 * sd_notify().  Never blocks. -EINVAL (invalid socket name) or the socket's -errno.
 */
int notify(const char *socket, const char *state, uw_error *err);
/* Sends RELOADING=1 with the time that Type=notify-reload requires. */
int notify_reloading(const char *socket, uw_error *err);

/* Whether a datagram of n bytes is a sign of life: one of its lines is exactly WATCHDOG=1
 * or READY=1.  Pure.
 */
bool notify_beats(const char *text, size_t n);

#endif
