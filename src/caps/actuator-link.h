/* The connection to the actuator: opened on request and reopened after each loss, with a
 * delay that doubles up to 30 s.
 *
 * Owns: the client of the actuator and the timer of the next attempt.
 * Touches: the actuator's socket.  Thread: the loop's.  Explained in docs/caps.md.
 */
#ifndef CAPS_ACTUATOR_LINK_H
#define CAPS_ACTUATOR_LINK_H

#include <stdbool.h>

#include "actuator/client.h"
#include "base/auto.h"
#include "io/loop.h"

struct actuator_link;

struct actuator_link_opts {
    struct loop *loop;
    const char *socket; /* of the service; borrowed until the link is freed */
    bool simulated;
    const struct actuator_virtual
        *service;                      /* a virtual service in place of it, or NULL */
    const struct gpu_backend *virtual; /* an actuator inside this process, or NULL … */
    void *boards_lib;                  /* … for these boards */
    /* A process of our own in place of the service: actuator_start_local(). */
    bool local;
    const char *library; /* … its boards text; borrowed; NULL: the system's */
    /* The actuator accepts requests; act is borrowed until on_lost(). */
    void (*on_ready)(struct actuator *act, void *user);
    /* The connection is lost or could not be made; the client is freed after this
     * returns.  false: do not reconnect.
     */
    bool (*on_lost)(const char *text, void *user);
    actuator_event_fn on_event; /* on_lost() comes after ACTUATOR_EVENT_ENDED */
    void *user;
};
int actuator_link_new(const struct actuator_link_opts *opts, struct actuator_link **ret,
                      uw_error *err);
/* Does not call on_lost(). */
void actuator_link_free(struct actuator_link *l);
DEFINE_AUTO(struct actuator_link *, actuator_link_free);

/* Connects now, unless connected or connecting. */
void actuator_link_start(struct actuator_link *l);
/* NULL: not connected (also where l is NULL). */
struct actuator *actuator_link_ready(const struct actuator_link *l);

#endif
