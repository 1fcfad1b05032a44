/* The keeper of an actuator in local mode: it never writes a cap.  It listens for
 * its child's heart, and when that stops (killed, stopped, hung) it kills what
 * is left and starts the recovery.
 */
#ifndef ACTUATOR_KEEPER_H
#define ACTUATOR_KEEPER_H

enum {
    KEEPER_BEAT_MS = 400,    /* the child sends a byte so often, the keeper returns it */
    KEEPER_SILENT_MS = 1600, /* after this the other one counts as dead */
};

/* Forks.  Returns in the child with *ret_beat, its end of the line; in the
 * keeper only when all is over, with *ret_beat -1, and then the result is the
 * exit status for main (never negative).  Negative: could not fork.
 * recovery: argv of the recovery, argv[0] is this very program.
 */
int keeper_start(char *const *recovery, int *ret_beat);

#endif
