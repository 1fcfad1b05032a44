/* The connection to the actuator: made when it is asked for, and again after each loss,
 * each time after twice as long (30 s at most).
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
    const char *socket; /* of the service; borrowed for as long as the link is there */
    bool simulated;
    const struct actuator_virtual *service; /* a virtual service in its place … */
    const struct gpu_backend *virtual; /* … or an actuator inside this process … */
    void *boards_lib;                  /* … over these boards; NULL: none */
    /* It can be asked from now on; borrowed until on_lost(). */
    void (*on_ready)(struct actuator *act, void *user);
    /* It cannot be asked any more, or could not be reached: the client is freed when this
     * has returned.  false: do not try again.
     */
    bool (*on_lost)(const char *text, void *user);
    actuator_event_fn on_event; /* on_lost() comes after ACTUATOR_EVENT_ENDED */
    void *user;
};
int actuator_link_new(const struct actuator_link_opts *opts, struct actuator_link **ret,
                      uw_error *err);
/* on_lost() is not called. */
void actuator_link_free(struct actuator_link *l);
DEFINE_AUTO(struct actuator_link *, actuator_link_free);

/* Connect now, unless that was done. */
void actuator_link_start(struct actuator_link *l);
/* NULL: it cannot be asked (also where l is NULL). */
struct actuator *actuator_link_ready(const struct actuator_link *l);

#endif
