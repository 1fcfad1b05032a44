#include "core/policy/phase-book.h"

#include <stdlib.h>
#include <string.h>

/* The limit found when a phase begins may still change within this time. */
#define FOUND_S 1.0

static uint32_t lower(uint32_t a_mw, uint32_t b_mw)
{
    return a_mw && (!b_mw || a_mw < b_mw) ? a_mw : b_mw;
}

void phase_book_cap(struct phase_book *b, size_t board, uint32_t mw, uint64_t now_ns)
{
    if (board >= BOOK_BOARDS)
        return;
    uint32_t was_mw = b->in_force_mw[board];
    if (!b->lowest_mw[board] && s_between(b->since_ns, now_ns) >= FOUND_S)
        b->lowest_mw[board] = was_mw;
    b->lowest_mw[board] = lower(b->lowest_mw[board], mw);
    b->in_force_mw[board] = mw;
}

static void keep(struct phase_book *b, uint64_t now_ns)
{
    struct book_phase *k = &b->kind[b->phase];

    for (size_t i = 0; i < BOOK_BOARDS; i++) {
        uint32_t mw = b->lowest_mw[i] ? b->lowest_mw[i] : b->in_force_mw[i];
        k->ran_mw[i] = lower(k->ran_mw[i], mw);
    }
    if (b->whole)
        k->length_s[k->n++ % BOOK_LENGTHS] = s_between(b->since_ns, now_ns);
}

bool phase_book_phase(struct phase_book *b, uint32_t phase, uint64_t now_ns)
{
    if (phase >= BOOK_PHASES)
        phase = UW_PHASE_UNKNOWN;
    if (phase == b->phase)
        return false;
    if (b->phase != UW_PHASE_UNKNOWN)
        keep(b, now_ns);
    b->whole = b->phase != UW_PHASE_UNKNOWN;
    b->phase = phase;
    b->since_ns = now_ns;
    memset(b->lowest_mw, 0, sizeof b->lowest_mw);
    return true;
}

uint32_t phase_book_ran(const struct phase_book *b, size_t board)
{
    return b->phase != UW_PHASE_UNKNOWN && board < BOOK_BOARDS
               ? b->kind[b->phase].ran_mw[board]
               : 0;
}

static int by_length(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct maybe phase_book_length(const struct phase_book *b)
{
    const struct book_phase *k = &b->kind[b->phase];
    size_t n = k->n < BOOK_LENGTHS ? k->n : BOOK_LENGTHS;
    double sorted[BOOK_LENGTHS];

    if (n == 0)
        return (struct maybe){false, 0};
    memcpy(sorted, k->length_s, n * sizeof sorted[0]);
    qsort(sorted, n, sizeof sorted[0], by_length);
    return (struct maybe){true, (sorted[(n - 1) / 2] + sorted[n / 2]) / 2};
}
