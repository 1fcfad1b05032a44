/* Messages to the service manager: the datagrams of sd_notify(3), sent from one socket
 * that is connected before the sandbox is entered.
 */
#ifndef ACTUATOR_HEART_H
#define ACTUATOR_HEART_H

#include "base/auto.h"
#include "io/loop.h"
#include "underwatt/error.h"

enum { HEART_BEAT_MS = 500 }; /* the service manager's watchdog waits for three seconds */

struct heart;

/* socket: the value of NOTIFY_SOCKET; NULL or "": no receiver, *ret is NULL (0). -EINVAL
 * (not a valid name), or the socket's -errno.
 */
int heart_new(const char *socket, struct loop *loop, struct heart **ret, uw_error *err);
/* Reports READY=1 and starts the watchdog messages.  h may be NULL in all these
 * functions.
 */
int heart_ready(struct heart *h, uw_error *err);
void heart_stopping(struct heart *h);
void heart_free(struct heart *h);
DEFINE_AUTO(struct heart *, heart_free);

#endif
