/* The safe static cap of a job whose progress is unknown. */
#ifndef TUNER_SAFE_CAP_H
#define TUNER_SAFE_CAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/optimum/goal.h"
#include "tuner/board-caps.h"

struct safe_cap {
    const struct board_caps *caps;
    struct goal goal;
    uint32_t mw; /* the last one chosen */
};

/* Whether the goal allows one: a goal with a bound on time needs a measure of time. */
bool safe_cap_allowed(const struct safe_cap *s);
/* Chooses the cap from the boards' peak power; reference_mw: the highest possible
 * cap.
 */
void safe_cap_choose(struct safe_cap *s, double peak_w, uint32_t reference_mw);
/* Writes why, given why progress is unknown. */
void safe_cap_why(const char *unknown, char *ret, size_t size);

#endif
