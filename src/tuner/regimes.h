/* The regimes of a job (periods without a permanent change), each with the time and
 * energy of its training steps: stretches of steps, whose energy is queried when they
 * end, and the caps measured in the last regime.
 */
#ifndef TUNER_REGIMES_H
#define TUNER_REGIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board/energy-sum.h"
#include "core/optimum/goal.h"
#include "core/optimum/search.h"
#include "tuner/savings.h"
#include "tuner/whole-job.h"

enum { TUNER_CAPS_MAX = 64, TUNER_REGIMES_MAX = 16 };

struct tuner_cap { /* a measured cap */
    uint32_t cap_mw;
    struct savings_mean mean;
    struct goal_value value; /* of a step, by the goal; only in a report */
};

struct regimes {
    struct energy_sum *meters;
    int (*on_energy)(void *user); /* called after each pending query has ended */
    void *user;

    struct savings savings[TUNER_REGIMES_MAX];
    size_t n, merged; /* merged: number of older regimes merged into the first */
    /* Of the regime under way, in order of first measurement. */
    struct tuner_cap cap[TUNER_CAPS_MAX];
    size_t n_caps;
    struct stretch stretch;   /* under way */
    bool rests;               /* steps are STRETCH_RULED until … */
    enum stretch_kind after;  /* … they are of this kind again */
    unsigned pending;         /* queries for the energy of stretches */
    struct stretch_ask *asks; /* list of them */
};

void regimes_init(struct regimes *r, struct energy_sum *meters,
                  int (*on_energy)(void *user), void *user);
/* Drops pending queries; the caller frees the meters next. */
void regimes_fini(struct regimes *r);

/* The savings of the regime under way. */
struct savings *regimes_savings(struct regimes *r);
/* Begins a regime; merges the oldest two if the table is full. */
void regimes_add(struct regimes *r);

/* Adds a window at a cap of all boards; ignored if TUNER_CAPS_MAX other caps exist. */
void regimes_on_cap(struct regimes *r, const struct search_window *w);
/* Adds a window to a mean. */
void regimes_mean_add(struct savings_mean *m, const struct search_window *w);

/* Call after each read of the steps. */
void regimes_on_steps(struct regimes *r, const struct steps *steps);
/* Sets the kind of the following steps. */
void regimes_turn(struct regimes *r, enum stretch_kind kind);
/* While it rests the following steps are of STRETCH_RULED. */
void regimes_rest(struct regimes *r, bool rests);
/* The steps of the regime under way whose energy is not known yet. */
struct whole_job_more regimes_more(const struct regimes *r);
/* Ends and books the stretch under way: the time until the next step is of none. */
void regimes_close(struct regimes *r);
/* Queries the energy of a finished stretch and books it, unless its mean power is outside
 * of least_w..most_w (0: no bound).
 */
void regimes_book(struct regimes *r, const struct stretch_done *d, double least_w,
                  double most_w);

#endif
