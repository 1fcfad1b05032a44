/* The keeper of an actuator: it never writes a cap and touches no board.  It watches the
 * heartbeat of its child; when that stops (the child was killed, stopped or hangs), the
 * keeper kills the child and runs the recovery to its end.
 */
#ifndef ACTUATOR_KEEPER_H
#define ACTUATOR_KEEPER_H

#include <stdbool.h>

enum {
    KEEPER_BEAT_MS =
        400, /* interval at which the child sends a byte, which the keeper returns */
    /* beats of this time missed: the peer is taken for dead.  Long enough for a machine
     * that keeps one of the two from running; docs/design/actuator.md adds up what
     * follows */
    KEEPER_SILENT_MS = 2800,
    KEEPER_SERVICE_MS =
        3000, /* the same for a service, which must tolerate a busy node */
};

struct keeper_opts {
    char *const *recovery; /* its argv; argv[0] is this program */
    int silent_ms;
    bool insist; /* run a recovery after any exit status except success and a usage error
                  */
    /* Receives one line for people when the keeper acts. */
    void (*say)(const char *text, void *user);
};

/* Forks.  Returns in the child with *ret_beat, its end of the heartbeat socket.  In the
 * keeper it returns only at the end, with *ret_beat -1; the result is then the exit
 * status for main (never negative): the child's, or the recovery's. Negative: could not
 * fork.  The keeper passes SIGTERM and SIGINT on to the child; they end neither the
 * keeper nor a recovery that it runs.
 */
int keeper_start(const struct keeper_opts *opts, int *ret_beat);

#endif
