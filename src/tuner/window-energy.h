/* The energy of a closed window: queried piece by piece, then converted to the energy of
 * one step.
 */
#ifndef TUNER_WINDOW_ENERGY_H
#define TUNER_WINDOW_ENERGY_H

#include <stdbool.h>
#include <stddef.h>

#include "board/energy-sum.h"
#include "core/optimum/search.h"
#include "core/progress/window.h"

struct window_energy {
    struct energy_sum *meters;
    size_t n_boards;
    /* Called for each piece; lost: why its energy is unknown, else NULL. */
    int (*on_piece)(const char *lost, void *user);
    void *user;

    struct window window; /* the last window queried */
    size_t pending;       /* pieces without a result yet */
    double joules, half2_j2, peak_w, board_j[BOARDS_MAX];
    enum binding binding;
    size_t lost; /* pieces whose energy is unknown */
};

/* Queries the energy of w; pending must be 0. */
void window_energy_ask(struct window_energy *e, const struct window *w);
/* Whether a board's sensor saw the same part of each step only, see meter_hides(). */
bool window_energy_hidden(const struct window_energy *e);
/* Sets all members but the cap and the length.  False: the energy is unknown. */
bool window_energy_step(const struct window_energy *e, struct search_window *ret);

#endif
