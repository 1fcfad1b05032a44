/* The keeper of an actuator: it never writes a cap and touches no board.  It listens for
 * its child's heart, and when that stops (killed, stopped, hung) it kills what is left
 * and runs the recovery to its end.
 */
#ifndef ACTUATOR_KEEPER_H
#define ACTUATOR_KEEPER_H

#include <stdbool.h>

enum {
    KEEPER_BEAT_MS = 400,    /* the child sends a byte so often, the keeper returns it */
    KEEPER_SILENT_MS = 1600, /* after this the other one counts as dead */
    KEEPER_SERVICE_MS =
        3000, /* the same for a service, which is to outlive a busy node */
};

struct keeper_opts {
    char *const *recovery; /* its argv; argv[0] is this very program */
    int silent_ms;
    bool insist; /* a recovery after everything but success and a wrong argument */
    /* One line for a human, when the keeper has to act. */
    void (*say)(const char *text, void *user);
};

/* Forks.  Returns in the child with *ret_beat, its end of the line; in the
 * keeper only when all is over, with *ret_beat -1, and then the result is the
 * exit status for main (never negative): the child's, or the recovery's.  Negative:
 * could not fork.  SIGTERM and SIGINT to the keeper are handed to the child; they do not
 * end the keeper, nor a recovery that it runs.
 */
int keeper_start(const struct keeper_opts *opts, int *ret_beat);

#endif
