#include "tuner/window-energy.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

#define Z95 1.96

static int on_energy(const struct energy_sum_window *w, void *user)
{
    struct window_energy *e = user;

    e->pending--;
    if (w->r < 0) {
        e->lost++;
        return e->on_piece(w->error.text, e->user);
    }
    e->joules += w->energy_j;
    for (size_t i = 0; i < e->n_boards; i++)
        e->board_j[i] += w->board_j[i];
    e->half2_j2 += w->half_j * w->half_j;
    e->binding = binding_both(e->binding, w->binding);
    if (w->peak_w > e->peak_w)
        e->peak_w = w->peak_w;
    return e->on_piece(NULL, e->user);
}

void window_energy_ask(struct window_energy *e, const struct window *w)
{
    e->window = *w;
    e->joules = e->half2_j2 = e->peak_w = 0;
    e->binding = BINDING_NONE;
    memset(e->board_j, 0, sizeof e->board_j);
    e->lost = 0;
    for (size_t i = 0; i < w->n_pieces; i++) {
        const struct window_piece *p = &w->piece[i];
        if (energy_sum_window(e->meters, p->from.at_ns, p->to.at_ns, on_energy, e) == 0)
            e->pending++;
        else
            e->lost++;
    }
}

bool window_energy_hidden(const struct window_energy *e)
{
    const struct window *w = &e->window;

    return energy_sum_hides(e->meters, w->time_s, w->steps * w->time_s);
}

bool window_energy_step(const struct window_energy *e, struct search_window *ret)
{
    const struct window *w = &e->window;

    if (e->lost > 0 || !(e->joules > 0) || window_energy_hidden(e))
        return false;
    ret->time_s = w->time_s;
    ret->time_rse = w->time_rse;
    ret->energy_j = e->joules / w->steps;
    ret->energy_rse = sqrt(e->half2_j2) / Z95 / e->joules;
    if (ret->energy_rse < ret->time_rse)
        ret->energy_rse = ret->time_rse;
    ret->peak_w = e->peak_w;
    ret->binding = e->binding;
    uint64_t from_ns = w->piece[0].from.at_ns;
    ret->start_s = s_between(0, from_ns);
    ret->lasted_s = s_between(from_ns, w->piece[w->n_pieces - 1].to.at_ns);
    ret->parts = w->n_block > 0 ? w->n_block - 1 : 0;
    return true;
}
