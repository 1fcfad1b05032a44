/* The energy of a window that was closed: asked for piece by piece, then told as what one
 * step took.
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
    /* A piece is answered; lost: why its energy is not known, else NULL. */
    int (*on_piece)(const char *lost, void *user);
    void *user;

    struct window window; /* the last that was asked for */
    size_t pending;       /* pieces that are not answered yet */
    double joules, half2_j2, peak_w, board_j[BOARDS_MAX];
    bool lost;
};

/* None may be pending. */
void window_energy_ask(struct window_energy *e, const struct window *w);
/* False: its energy is not known.  Sets all but the cap and the length. */
bool window_energy_step(const struct window_energy *e, struct search_window *ret);

#endif
