/* The energy of windows over boards of one or several samplers, added up: what a tuner
 * asks.  In the daemon each board has a sampler of its own for ever, and a job has some
 * of the boards.
 */
#ifndef BOARD_ENERGY_SUM_H
#define BOARD_ENERGY_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "board/sampler.h"

struct energy_sum;

struct energy_sum_window {
    int r; /* 0, or -ENODATA, -ENOMEM: some board cannot say; see error */
    uw_error error;
    uint64_t begin_ns, end_ns;
    double energy_j, half_j;    /* sums; half: 95 %, boards independent */
    double board_j[BOARDS_MAX]; /* of each board, in the order of the samplers' boards */
    double peak_w;              /* observed peak of the hungriest board; 0 unknown */
    uint32_t why;               /* enum meter_why of all boards */
};
typedef int (*energy_sum_fn)(const struct energy_sum_window *w, void *user);

/* Over all boards of these n samplers that count in; they outlive the meters. */
int energy_sum_new(struct sampler *const *samplers, size_t n, struct energy_sum **ret,
                   uw_error *err);
/* Windows still waited for are forgotten. */
void energy_sum_free(struct energy_sum *m);
DEFINE_AUTO(struct energy_sum *, energy_sum_free);

/* A window will begin or end about then. */
void energy_sum_mark(struct energy_sum *m, uint64_t at_ns);
/* As sampler_window(): fn is called once, never from inside.  0, -EAGAIN, -ENOMEM. */
int energy_sum_window(struct energy_sum *m, uint64_t begin_ns, uint64_t end_ns,
                      energy_sum_fn fn, void *user);

#endif
