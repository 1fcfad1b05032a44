/* When a measuring window of a job begins and ends: whole training steps, at a
 * settled cap, long enough.  Pure: fed after each steps_feed().
 *
 *     window_arm(&w, &rule, now)     the cap has just come into force
 *     window_feed(&w, &steps, now)   … until WINDOW_CLOSED: w.piece[], w.time_s
 *
 * A window never holds a step that began before the cap had settled, nor a
 * validation, checkpoint or data-loading pause that the job told of; where one
 * comes too early the window goes on in a further piece after it.  A piece under
 * LEAST_PIECE_S is dropped; a new generation drops them all.
 */
#ifndef CORE_PROGRESS_WINDOW_H
#define CORE_PROGRESS_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/progress/steps.h"

enum { WINDOW_BLOCKS = 64, WINDOW_PIECES = 8 };
#define LEAST_PIECE_S 1.5

struct window_rule {
    double settle_s;       /* from arming to the first step that counts … */
    unsigned settle_steps; /* … and so many whole steps */
    double least_s;        /* length of the window: all of these */
    unsigned least_steps;
    double target_rse; /* of the time a step; 0: none */
    double most_s;     /* closes here even if target_rse is not reached */
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
    struct step_mark from; /* of the piece under way */
    struct window_piece {
        struct step_mark from, to;
    } piece[WINDOW_PIECES];
    size_t n_pieces;                       /* finished ones */
    struct step_mark block[WINDOW_BLOCKS]; /* marks inside, evenly thinned */
    unsigned n_block, thin, skipped;
    double kept_steps, kept_s; /* in the finished pieces */
    unsigned restarts;         /* pauses and new generations that threw it back */
    /* Of the closed window: */
    double steps, time_s; /* time of one step */
    double time_rse;      /* relative standard error of that; 0 unknown */
};

void window_arm(struct window *w, const struct window_rule *rule, uint64_t now_ns);
void window_cancel(struct window *w);

/* The state after this; WINDOW_CLOSED once, then the window is idle. */
enum window_state window_feed(struct window *w, const struct steps *s, uint64_t now_ns);

#endif
