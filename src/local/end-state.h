/* Describes the limit in force on a board after its caps have ended.  Pure. */
#ifndef LOCAL_END_STATE_H
#define LOCAL_END_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "local/held.h"

struct end_state_board {
    const char *name;     /* "GPU 0", or its UUID */
    uint32_t in_force_mw; /* read after the caps had ended; 0: could not be read */
    const char *error;    /* why not; NULL: the driver reports none */
    uint32_t original_mw; /* 0: unknown */
    uint32_t others_mw; /* the last reading, if it was END_STATE_OTHERS; 0: it was not */
    struct held held;   /* read after in_force_mw */
    pid_t self;         /* our pid: as a client we have let go of the board */
};

enum end_state {
    END_STATE_BACK,   /* the original is in force, nothing to restore */
    END_STATE_OTHERS, /* another program's limit is in force, nothing to restore */
    END_STATE_HELD,   /* a running client holds the board */
    END_STATE_OWED,   /* the original is not restored */
    END_STATE_UNREAD, /* unknown */
};

/* Judges the board's state and writes a line for people. */
enum end_state end_state_judge(const struct end_state_board *b, char *ret, size_t size);
/* Whether the state may still change by itself: as far as is known, a running process
 * restores the limit or is about to.
 */
bool end_state_is_moving(const struct end_state_board *b);

#endif
