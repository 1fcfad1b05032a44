/* What is in force on a board once its caps have ended, as it was read, in words.  Pure.
 */
#ifndef LOCAL_END_STATE_H
#define LOCAL_END_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "local/held.h"

struct end_state_board {
    const char *name;     /* "GPU 0", or its UUID */
    uint32_t in_force_mw; /* read after the caps had ended; 0: it could not be … */
    const char *error;    /* … why not; NULL: the driver does not tell */
    uint32_t original_mw; /* 0: unknown */
    uint32_t
        others_mw; /* read the last time, when it was END_STATE_OTHERS; 0: it was not */
    struct held held; /* looked at after that */
    pid_t self;       /* a client that is us has let go of it */
};

enum end_state {
    END_STATE_BACK,   /* the original is in force, nothing is owed */
    END_STATE_OTHERS, /* another's limit is, nothing is owed */
    END_STATE_HELD,   /* somebody who runs holds the board */
    END_STATE_OWED,   /* the original is not back */
    END_STATE_UNREAD, /* nobody knows */
};

/* What stands there, with the line for a human. */
enum end_state end_state_judge(const struct end_state_board *b, char *ret, size_t size);
/* It may still change by itself: somebody who runs restores, or is about to, as far as
 * can be told.
 */
bool end_state_is_moving(const struct end_state_board *b);

#endif
