/* Locates the begin of a change that was detected.  Pure. */
#ifndef CORE_PROGRESS_ONSET_H
#define CORE_PROGRESS_ONSET_H

#include "core/progress/envelope.h"

struct onset {
    uint64_t at_ns;
    double level_w; /* mean power since */
    bool up;        /* the mean rose */
};

/* The readings of the regime that began at from_ns are split at half of their range into
 * high and low ones; the onset is where the log-likelihood of the readings since, under
 * the new shares and means of the two classes against the old ones, is largest (Page
 * 1954), so that a swinging pattern is compared with itself.
 */
struct onset onset_find(const struct history *h, uint64_t from_ns,
                        const struct breach *b);

#endif
