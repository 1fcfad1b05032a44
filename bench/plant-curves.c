/* The steady state of every workload on every simulated board, as curves for
 * bench/search: a row every 5 W from the default limit down, on stdout.
 */
#include <stdio.h>

#include "base/units.h"
#include "plant/plant.h"

enum { STEP_MW = 5000 };

static void print_curve(const struct plant_board *board, const struct plant_workload *w)
{
    for (uint32_t mw = board->default_mw; mw >= board->min_mw; mw -= STEP_MW) {
        struct plant_steady s = plant_steady(board, w, mw);
        (void)printf("simulated/%s/%s,%g,%.12g,%.12g\n", board->key, w->name, w_of_mw(mw),
                     s.time_s, s.energy_j);
    }
}

int main(void)
{
    const struct plant_workload *w;
    size_t n;
    const struct plant_board *boards = plant_boards(&n);

    (void)puts("curve,cap_w,time_s,energy_j");
    for (size_t b = 0; b < n; b++)
        for (size_t i = 0; (w = plant_workload_at(&boards[b], i)); i++)
            print_curve(&boards[b], w);
    return 0;
}
