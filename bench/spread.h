/* Simulated boards that differ (the plant, in time) as worlds for bench/slack. */
#ifndef BENCH_SPREAD_H
#define BENCH_SPREAD_H

#include "base/auto.h"
#include "plant/plant.h"
#include "slackplay.h"

enum { SPREAD_BOARDS = 8 };

enum spread_kind {
    SPREAD_POWER_EVEN, /* power at the same clock from -5 % to +5 %, evenly */
    SPREAD_POWER_ONE,  /* one board draws 10 % more than the seven others */
    SPREAD_SPEED_EVEN, /* the slowest takes 10 % longer than the fastest, at the first
                          caps */
    SPREAD_KINDS,
};
extern const char *const spread_names[SPREAD_KINDS];

struct spread_opts {
    const char *board, *workload;
    enum spread_kind kind;
    uint32_t start_mw; /* the cap of each at the beginning */
};

struct spread;
int spread_new(const struct spread_opts *opts, struct spread **ret, uw_error *err);
void spread_free(struct spread *s);
DEFINE_AUTO(struct spread *, spread_free);

/* run() advances the boards under the caps: 20 s to settle, then 20 s or 20 steps. */
void spread_world(struct spread *s, struct slack_world *ret);
/* The least time of a step that caps of this sum allow, over its time at the first caps:
 * steady state, without heat.
 */
double spread_best_time(struct spread *s, uint64_t budget_mw);

#endif
