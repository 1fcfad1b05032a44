/* Energy of windows over the boards of one or several samplers, added up, for the tuner.
 * In the daemon each board has its own sampler, and a job may have several boards.
 */
#ifndef BOARD_ENERGY_SUM_H
#define BOARD_ENERGY_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "board/sampler.h"

struct energy_sum;

struct energy_sum_window {
    int r; /* 0, or -ENODATA, -ENOMEM: unknown for some board; see error */
    uw_error error;
    uint64_t begin_ns, end_ns;
    double energy_j; /* sum of all boards */
    double half_j;   /* root of the sum of the boards' squared half widths: to compare
                      * windows of the same boards, which share the rest of the error */
    double board_j[BOARDS_MAX]; /* of each board, in the order of the samplers' boards */
    double peak_w;              /* highest observed peak of one board; 0: unknown */
    enum binding binding;       /* of the limit, on all boards */
    uint32_t why;               /* enum meter_why of all boards */
};
typedef int (*energy_sum_fn)(const struct energy_sum_window *w, void *user);

/* Sums over all boards of these n samplers that count in; the samplers must outlive it.
 */
int energy_sum_new(struct sampler *const *samplers, size_t n, struct energy_sum **ret,
                   uw_error *err);
/* Pending windows are dropped without a callback. */
void energy_sum_free(struct energy_sum *m);
DEFINE_AUTO(struct energy_sum *, energy_sum_free);

/* Announces that a window will begin or end about at_ns, see sampler_mark(). */
void energy_sum_mark(struct energy_sum *m, uint64_t at_ns);
/* As sampler_window(): fn is called once, never from inside.  -EAGAIN, -ENOMEM. */
int energy_sum_window(struct energy_sum *m, uint64_t begin_ns, uint64_t end_ns,
                      energy_sum_fn fn, void *user);
/* meter_hides() of any board. */
bool energy_sum_hides(const struct energy_sum *m, double step_s, double length_s);

#endif
