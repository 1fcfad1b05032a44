/* Made-up boards with believable clocks (plant/vf.h), of the classes of real ones. */
#ifndef BENCH_VFBOARDS_H
#define BENCH_VFBOARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "virtual/vf.h"

enum { VFBOARDS = 3 };

struct vfboard {
    const char *name;
    double min_w, max_w;
    uint32_t min_mhz, max_mhz;
};
extern const struct vfboard vfboards[VFBOARDS];

/* A compute-bound part at high power and one that waits for memory or links, drawn at
 * random; slow: the power controller tells them apart.
 */
struct plant_vf vfboard_made_up(size_t board, bool slow, struct rng *rng);

#endif
