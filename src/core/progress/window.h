/* Begin and end of a measuring window of a job: whole training steps, at a settled cap,
 * long enough.  Pure: fed after each steps_feed().
 *
 *     window_arm(&w, &rule, now)     the cap has just come into force
 *     window_feed(&w, &steps, now)   until WINDOW_CLOSED: then w.piece[], w.time_s
 *
 * A window never holds a step that began before the cap had settled, nor a validation,
 * checkpoint or data-loading pause that the job reported; after such a pause the window
 * continues in a further piece.  A piece under LEAST_PIECE_S is dropped; a new generation
 * drops all pieces.
 */
#ifndef CORE_PROGRESS_WINDOW_H
#define CORE_PROGRESS_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/progress/steps.h"

enum { WINDOW_BLOCKS = 64, WINDOW_PIECES = 8 };
#define LEAST_PIECE_S 1.5

struct window_rule {
    double settle_s;       /* least time from arming to the first step that counts */
    unsigned settle_steps; /* least number of whole steps in that time */
    double least_s;        /* least length of the window */
    unsigned least_steps;
    double target_rse; /* relative standard error of the step time; 0: none */
    double most_s;     /* closes at this length even if target_rse is not reached, but
                          not before the error can be estimated */
};

enum window_state {
    WINDOW_IDLE,
    WINDOW_SETTLING,
    WINDOW_OPEN,
    WINDOW_CLOSED,
};

struct window {
    struct window_rule rule;
    enum window_state state;
    uint64_t armed_ns;
    struct step_mark armed; /* first mark seen after arming or after a pause */
    bool has_armed;
    struct step_mark from; /* of the current piece */
    struct window_piece {
        struct step_mark from, to;
    } piece[WINDOW_PIECES];
    size_t n_pieces;                       /* finished pieces */
    struct step_mark block[WINDOW_BLOCKS]; /* marks inside, evenly thinned */
    unsigned n_block, thin, skipped;
    double kept_steps, kept_s; /* in the finished pieces */
    unsigned restarts;         /* by pauses and new generations while open */
    /* of the closed window: */
    double steps, time_s; /* time of one step */
    double time_rse;      /* relative standard error of time_s */
};

void window_arm(struct window *w, const struct window_rule *rule, uint64_t now_ns);
void window_cancel(struct window *w);

/* Another cap was in force in a pause and is not any more: the first step after counts
 * once the cap has settled anew.  Finished pieces stay.
 */
void window_settle(struct window *w, uint64_t now_ns);

/* Returns the new state; WINDOW_CLOSED once, then WINDOW_IDLE. */
enum window_state window_feed(struct window *w, const struct steps *s, uint64_t now_ns);

#endif
