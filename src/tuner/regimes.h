/* The regimes of a job (until it changes for good), each with what its training steps
 * cost in time and energy: stretches of steps, whose energy is asked for as they end, and
 * the caps that were measured in the last regime.
 */
#ifndef TUNER_REGIMES_H
#define TUNER_REGIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board/energy-sum.h"
#include "core/optimum/search.h"
#include "tuner/savings.h"

enum { TUNER_CAPS_MAX = 64, TUNER_REGIMES_MAX = 16 };

struct tuner_cap { /* a cap that was measured */
    uint32_t cap_mw;
    struct savings_mean mean;
};

struct regimes {
    struct energy_sum *meters;
    int (*on_energy)(void *user); /* one of the pending is answered */
    void *user;

    struct savings savings[TUNER_REGIMES_MAX];
    size_t n, merged;                     /* so many older ones are in the first */
    struct tuner_cap cap[TUNER_CAPS_MAX]; /* of the regime under way, as first measured */
    size_t n_caps;
    struct stretch stretch; /* under way */
    unsigned pending;       /* stretches whose energy is not known yet … */
    struct stretch_ask *asks;
};

void regimes_init(struct regimes *r, struct energy_sum *meters,
                  int (*on_energy)(void *user), void *user);
/* What is asked for is not waited for any more; its meters go, too. */
void regimes_fini(struct regimes *r);

/* Of the regime under way. */
struct savings *regimes_savings(struct regimes *r);
/* One more begins; where all are taken the oldest two become one. */
void regimes_add(struct regimes *r);
/* Seconds of training steps that are booked in all of them. */
double regimes_trained_s(const struct regimes *r);

/* A window at a cap of all boards.  Left out where TUNER_CAPS_MAX are taken. */
void regimes_on_cap(struct regimes *r, const struct search_window *w);
/* Adds a window to a mean. */
void regimes_mean_add(struct savings_mean *m, const struct search_window *w);

/* Steps were read. */
void regimes_on_steps(struct regimes *r, const struct steps *steps);
/* From now on steps are of this kind. */
void regimes_turn(struct regimes *r, enum stretch_kind kind);
/* The stretch under way ends, and none begins. */
void regimes_close(struct regimes *r);
/* A stretch that is over: its energy is asked for.  It is left out where its mean power
 * is not between least_w and most_w (0: any).
 */
void regimes_book(struct regimes *r, const struct stretch_done *d, double least_w,
                  double most_w);

#endif
