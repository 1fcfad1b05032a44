/* Notes of a search's trials: a cap that is tried for the first time, and what that has
 * shown, are news.  Further windows at caps that were measured before are counted, and
 * noted once, when another cap is tried or one is held.
 */
#ifndef TUNER_TRIALS_H
#define TUNER_TRIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuner/notes.h"

struct trials {
    const struct tuner_notes *notes;
    bool again;         /* the trial under way is at a cap that was measured before */
    uint32_t cap_mw[2]; /* the caps of such trials … */
    size_t n;
    unsigned windows;        /* … and their windows that were not noted */
    bool told;               /* there was a note of these caps */
    char result[TUNER_TEXT]; /* of the last window */
};

/* again: windows at this cap were measured before. */
void trials_begin(struct trials *t, uint32_t cap_mw, const char *why, bool again);
/* A window at the reference cap. */
void trials_reference(struct trials *t, uint32_t cap_mw, const char *why, bool important);
/* What a window of the trial has shown; "": nothing to note. */
void trials_result(struct trials *t, const char *text);
/* A cap is held; other: not the one held before the trials. */
void trials_end(struct trials *t, bool other);

#endif
