/* What is remembered of the phases of one job: under which caps each has run, and how
 * long it takes.  Pure: time is an argument.  Explained in docs/policies.md.
 *
 *     phase_book_cap()     each time a limit comes into force on one of its boards
 *     phase_book_phase()   each time the phase is known; the same one again is no change
 */
#ifndef CORE_POLICY_PHASE_BOOK_H
#define CORE_POLICY_PHASE_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/units.h"
#include "underwatt/progress.h"

enum {
    BOOK_PHASES = UW_PHASE_STARTUP + 1, /* by enum uw_phase */
    BOOK_BOARDS = 64,
    BOOK_LENGTHS = 8,
};

/* One phase, over all times that it came. */
struct book_phase {
    uint32_t ran_mw[BOOK_BOARDS]; /* lowest cap in force in a time that has ended; 0:
                                   * none */
    double length_s[BOOK_LENGTHS];
    unsigned n; /* lengths seen; the last BOOK_LENGTHS are kept */
};

struct phase_book {
    uint32_t phase; /* now */
    uint64_t since_ns;
    bool whole; /* its begin was seen */
    uint32_t in_force_mw[BOOK_BOARDS];
    uint32_t lowest_mw[BOOK_BOARDS]; /* in this phase; 0: none came into force in it */
    struct book_phase kind[BOOK_PHASES];
};

/* {0} is a book of nothing. */
void phase_book_cap(struct phase_book *b, size_t board, uint32_t mw, uint64_t now_ns);
/* Whether that is a change.  What the ended phase ran under counts from here on: it does
 * not change while a phase lasts.
 */
bool phase_book_phase(struct phase_book *b, uint32_t phase, uint64_t now_ns);

/* The lowest cap under which the current phase has run before; 0: none. */
uint32_t phase_book_ran(const struct phase_book *b, size_t board);
/* How long the current phase takes: the median of the last times that were seen whole. */
struct maybe phase_book_length(const struct phase_book *b);

#endif
