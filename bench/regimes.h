/* Jobs that change while they run, made of recorded curves: what a step costs at any cap
 * and any moment, and what the best cap is then.
 */
#ifndef BENCH_REGIMES_H
#define BENCH_REGIMES_H

#include <stdint.h>

#include "core/optimum/goal.h"
#include "curves.h"

enum regime_kind {
    REGIME_BATCH,   /* another recorded curve of the same board: another batch size */
    REGIME_FREEZE,  /* 40 % less work, half of what is left bound by memory */
    REGIME_NETWORK, /* each step waits for 25 % of its time, at a quarter of the power */
    REGIME_HEAT,    /* power for the same clock rises by 3 to 8 %, slowly */
    REGIME_COMES,   /* such waits come and go */
    REGIME_STEADY,
    REGIME_KINDS,
};
extern const char *const regime_names[REGIME_KINDS];

enum { REGIME_TURNS = 128, REGIME_PARTS = 32 };

struct regimes {
    enum regime_kind kind;
    const struct record *before, *after; /* after: REGIME_BATCH alone */
    struct goal goal;
    double scale;                /* REGIME_BATCH: of a step of `after` */
    double heat;                 /* REGIME_HEAT: at its end */
    double turn_s[REGIME_TURNS]; /* when it changes: there, back, … */
    double oracle_w[REGIME_PARTS + 1], oracle[REGIME_PARTS + 1]; /* 0: not known yet */
};

/* One that changes for good at at_s (REGIME_COMES: comes and goes from then on, as seed
 * says).
 */
void regimes_init(struct regimes *r, enum regime_kind kind, const struct record *before,
                  const struct record *after, const struct goal *goal, double at_s,
                  uint64_t seed);
/* How far it has changed by then: 0 to 1. */
double regimes_part(const struct regimes *r, double now_s);
struct curve_value regimes_at(const struct regimes *r, double cap_w, double part);
/* The goal's value there over the oracle's: 1 at best.  slowdown:F: of the energy,
 * whether or not the bound is kept.
 */
double regimes_worth(struct regimes *r, double cap_w, double part);
/* Time at this cap over that at the highest. */
double regimes_slowdown(const struct regimes *r, double cap_w, double part);
double regimes_oracle_w(struct regimes *r, double part);

/* The batch size in a curve's name (BOARD/SOURCE/MODEL/DATASET/BATCH/…); 0: none. */
double regimes_batch(const char *name);
/* Curves of one board, model and data set with different batch sizes and the same range.
 */
int regimes_are_pair(const struct record *a, const struct record *b);

#endif
