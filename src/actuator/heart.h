/* Messages to the service manager: the datagrams of sd_notify(3), sent from one socket
 * that is connected before the sandbox is entered.
 */
#ifndef ACTUATOR_HEART_H
#define ACTUATOR_HEART_H

#include "base/auto.h"
#include "io/loop.h"
#include "underwatt/error.h"

enum { HEART_BEAT_MS = 500 }; /* its watchdog waits for three seconds */

struct heart;

/* socket: NOTIFY_SOCKET's value; NULL or "": nobody listens, *ret is NULL (0).
 * -EINVAL (no such form of a name), or the socket's -errno.
 */
int heart_new(const char *socket, struct loop *loop, struct heart **ret, uw_error *err);
/* Ready from now on, and beating; h may be NULL for all of these. */
int heart_ready(struct heart *h, uw_error *err);
void heart_stopping(struct heart *h);
void heart_free(struct heart *h);
DEFINE_AUTO(struct heart *, heart_free);

#endif
