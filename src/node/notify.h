/* What a service manager is told (sd_notify(3)), without its library: a datagram to the
 * socket that NOTIFY_SOCKET names.
 */
#ifndef NODE_NOTIFY_H
#define NODE_NOTIFY_H

#include "underwatt/error.h"

/* socket: the environment's value; NULL or "": nobody wants to know (0).  state: lines
 * as sd_notify() takes them.  Never blocks.  -EINVAL (no such form of a name) or the
 * socket's -errno.
 */
int notify(const char *socket, const char *state, uw_error *err);
/* "RELOADING=1" with the time that Type=notify-reload asks for. */
int notify_reloading(const char *socket, uw_error *err);

#endif
