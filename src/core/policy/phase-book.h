/* A record of the phases of one job: under which caps each has run, and how long it
 * takes.  Pure: time is an argument.  Explained in docs/policies.md.
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

/* One kind of phase, over all its occurrences. */
struct book_phase {
    uint32_t
        ran_mw[BOOK_BOARDS]; /* lowest cap in force in an ended occurrence; 0: none */
    double length_s[BOOK_LENGTHS];
    unsigned n; /* lengths seen; the last BOOK_LENGTHS are kept */
};

struct phase_book {
    uint32_t phase; /* now */
    uint64_t since_ns;
    bool whole; /* the begin of the phase was seen */
    uint32_t in_force_mw[BOOK_BOARDS];
    uint32_t lowest_mw[BOOK_BOARDS]; /* lowest cap that came into force in this phase; 0:
                                        none */
    struct book_phase kind[BOOK_PHASES];
};

/* {0} is a book of nothing. */
void phase_book_cap(struct phase_book *b, size_t board, uint32_t mw, uint64_t now_ns);
/* Returns whether the phase changed.  The caps of the ended phase count from then on; the
 * record does not change while a phase lasts.
 */
bool phase_book_phase(struct phase_book *b, uint32_t phase, uint64_t now_ns);

/* The lowest cap under which the current phase has run before; 0: none. */
uint32_t phase_book_ran(const struct phase_book *b, size_t board);
/* The length of the current kind of phase: the median of the last occurrences that were
 * seen whole.
 */
struct maybe phase_book_length(const struct phase_book *b);

#endif
